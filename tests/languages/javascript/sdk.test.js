// The SDK's double of the host, beyond what the template's tests show.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { db, definePack, tool } from "@tollgate/sdk";
import { Session } from "@tollgate/sdk/testing";

const output = {
  type: "object",
  properties: { rows: { type: "integer", maximum: 10, description: "Number of rows." } },
  required: ["rows"],
};

const sloppy = (rows, more = {}) =>
  definePack({
    name: "sloppy",
    summary: "Counts badly.",
    migrations: [{ name: "0001_init", sql: "CREATE TABLE sloppy_rows (id INTEGER PRIMARY KEY);" }],
    tools: [
      tool({
        name: "sloppy_count",
        title: "Count rows",
        description: "Count the rows of a table.",
        effect: "write",
        input: { type: "object", properties: {} },
        output,
        run() {
          db.execute("INSERT INTO sloppy_rows (id) VALUES (1)");
          return { rows };
        },
        ...more,
      }),
    ],
  });

test("a reply that does not match its schema is refused and leaves no rows", async () => {
  expect((await Session.open(sloppy(3))).call("sloppy_count")).toEqual({ rows: 3 });
  for (const [rows, why] of [
    ["3", /rows: is not of type integer/],
    [11, /rows: breaks maximum 10/],
    [undefined, /rows: is missing/],
  ]) {
    const session = await Session.open(sloppy(rows));
    expect(() => session.call("sloppy_count")).toThrow(why);
    expect(session.sql("SELECT id FROM sloppy_rows")).toEqual([]);
  }
});

test("faults are those of packs check", async () => {
  const input = { type: "object", properties: { job_id: { type: "string", description: "The job id." }, other: { type: "string" } } };
  const vague = sloppy(1, { name: "Vague_Tool", title: "", effect: "read", destructive: true, input });
  expect((await Session.open(vague)).faults()).toEqual([
    'Vague_Tool: the name "Vague_Tool" does not match ^[a-z][a-z0-9_]{0,39}$',
    "Vague_Tool: the tool has no title",
    "Vague_Tool: the tool has the effect read and is marked as destructive",
    'Vague_Tool: input.job_id has a vague description: "The job id."',
    "Vague_Tool: input.other has no description",
  ]);
  expect((await Session.open(sloppy(1))).faults()).toEqual([]);
});

const faults = async (more) => {
  const found = (await Session.open(sloppy(1, more))).faults();
  return found.map((fault) => fault.slice(fault.indexOf(": ") + 2).split(": ")[0]);
};

test("the table of descriptions holds", async () => {
  const table = JSON.parse(readFileSync(new URL("descriptions.json", import.meta.url), "utf8"));
  for (const [kind, name, text, expected] of table.descriptions) {
    const described = { type: "object", properties: { [name]: { type: "string", description: text } } };
    const found = await faults({ parameter: { input: described }, field: { output: described }, tool: { name, description: text } }[kind]);
    const told = { fine: [], vague: [/ has a vague description$/], none: [/ has no description$/] }[expected];
    expect(found, `${name}: ${text}`).toEqual(told.map((pattern) => expect.stringMatching(pattern)));
  }
  for (const [keywords, expected] of table.schemas) {
    const a = { type: "object", description: "Rows to add to the table, by key.", ...keywords };
    const found = await faults({ input: { type: "object", properties: { a } } });
    expect(found.sort(), JSON.stringify(keywords)).toEqual(expected.sort());
  }
});
