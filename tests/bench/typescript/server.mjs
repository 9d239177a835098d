// The server that tollgate's durable writes are compared with: the TypeScript SDK over stdio, and
// better-sqlite3 with synchronous=FULL. Each call inserts the rows that creating a task leaves, with a
// new id, and commits.
//
// usage: node server.mjs DATABASE ROWS, ROWS being {"schema": [SQL], "inserts": [{sql, values, ids}]}

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import Database from "better-sqlite3";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const [path, rows] = process.argv.slice(2);
const { schema, inserts } = JSON.parse(readFileSync(rows, "utf8"));
const db = new Database(path);
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.pragma("foreign_keys = ON");
for (const sql of schema) db.exec(sql);

const prepared = inserts.map(({ sql, values, ids }) => ({ statement: db.prepare(sql), values, ids }));
const insert = db.transaction((id) => {
  for (const { statement, values, ids } of prepared) {
    const row = values.slice();
    for (const at of ids) row[at] = id;
    statement.run(row);
  }
});

const server = new McpServer({ name: "bench-typescript", version: "0.0.0" });
server.registerTool(
  "task_create",
  {
    title: "Create a task",
    description: "Create a task.",
    inputSchema: {
      title: z.string(),
      spec_markdown: z.string(),
      workspace: z.string(),
      initial_phase: z.string(),
      labels: z.array(z.string()),
      actor: z.string(),
      actor_role: z.string(),
    },
    outputSchema: { id: z.string(), title: z.string() },
  },
  ({ title }) => {
    const id = `task_${randomUUID()}`;
    insert.immediate(id);
    const created = { id, title };
    return { content: [{ type: "text", text: JSON.stringify(created) }], structuredContent: created };
  },
);
await server.connect(new StdioServerTransport());
