// Tests without a host. `tollgate packs check` tries the component.
import { expect, test } from "vitest";
import { Session } from "@tollgate/sdk/testing";
import { pack } from "./app.js";

test("notes are kept until there are too many", async () => {
  const session = await Session.open(pack, { settings: { max_notes: 2 } });
  session.call("my_pack_add", { text: "the build needs protoc" });
  session.call("my_pack_add", { text: "releases are cut on Fridays" });
  expect(() => session.call("my_pack_add", { text: "one too many" })).toThrow(/maximum of 2 notes/);
  const { notes } = session.call("my_pack_list", { limit: 1 });
  expect(notes.map((note) => note.text)).toEqual(["releases are cut on Fridays"]);
  expect(() => session.call("my_pack_list", { limit: 0, x: 1 })).toThrow(/limit: breaks minimum 1; x: is not known/);
  expect(session.prompt("my_pack_recall", { topic: "x" })).toContain("about x");
});

test("every client takes the tools", async () => {
  expect((await Session.open(pack)).faults()).toEqual([]);
});
