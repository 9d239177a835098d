// Tests without a host. `tollgate policies check` and `test` try the component.
import { expect, test } from "vitest";
import { Judge, request } from "@tollgate/sdk/testing";
import { judge as freeze } from "./app.js";

test("only those who may change something", async () => {
  const judge = await Judge.open(freeze, { reason: "release day", allowed: ["ada"] });
  const verdict = (args, more) => judge.before(request("task_create", args, more)).verdict;
  expect(verdict({ title: "x" })).toMatchObject({ tag: "deny", code: "FROZEN" });
  expect(verdict({ actor: "bob" }).tag).toBe("deny");
  expect(verdict({ actor: "ada" }).tag).toBe("pass");
  expect(verdict({}, { effect: "read" }).tag).toBe("pass");
});

test("a reason is wanted", async () => {
  await expect(Judge.open(freeze, { reason: " " })).rejects.toEqual([
    { key: "reason", message: "must give a reason for callers" },
  ]);
});
