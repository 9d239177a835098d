// The TypeScript SDK with the entry of an `mcpServers` file: sdk.mjs FILE. Prints how many tools it lists.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const entry = JSON.parse(readFileSync(process.argv[2], "utf8")).mcpServers.tollgate;
const filled = (text) => text.replace(/\$\{env:(\w+)\}/g, (_, name) => process.env[name]);
const headers = Object.fromEntries(Object.entries(entry.headers ?? {}).map(([name, text]) => [name, filled(text)]));
const transport = entry.command
  ? new StdioClientTransport({ command: entry.command, args: entry.args })
  : new StreamableHTTPClientTransport(new URL(entry.url), { requestInit: { headers } });
const client = new Client({ name: "clients-test", version: "1.0.0" });
await client.connect(transport);
const { tools } = await client.listTools();
console.log(`${tools.length} tools`);
await client.close();
