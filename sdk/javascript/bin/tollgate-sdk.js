#!/usr/bin/env node
// tollgate-sdk build SOURCE [-o COMPONENT]: bundles a module and makes a component of it.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { componentize } from "@bytecodealliance/componentize-js";
import { rolldown } from "rolldown";

const WORLDS = { pack: "tool-pack", judge: "policy" };
const sdk = resolve(dirname(fileURLToPath(import.meta.url)), "..");

const { values, positionals } = parseArgs({ allowPositionals: true, options: { output: { type: "string", short: "o" } } });
const [command, source] = positionals;
if (command !== "build" || source === undefined) {
  console.error("usage: tollgate-sdk build SOURCE [-o COMPONENT]");
  process.exit(2);
}
const output = values.output ?? source.replace(/\.[cm]?[jt]s$/, "") + ".wasm";

const text = await readFile(source, "utf8");
const name = Object.keys(WORLDS).find((name) => new RegExp(`export\\s+(const|let|var)\\s+${name}\\b`).test(text));
if (!name) {
  console.error(`${source} exports nothing; write \`export const pack = definePack(…)\` or \`export const judge = definePolicy(…)\``);
  process.exit(1);
}
const host = name === "pack" ? "pack" : "policy";
const entry = "\0tollgate-entry";
const bundle = await rolldown({
  input: entry,
  external: /^tollgate:host\//,
  plugins: [
    {
      name: "tollgate-entry",
      resolveId: (id) => (id === entry ? id : undefined),
      load: (id) =>
        id === entry
          ? `import ${JSON.stringify(resolve(sdk, `src/component-${host}.js`))};\nexport { ${name} } from ${JSON.stringify(resolve(source))};`
          : undefined,
    },
  ],
});
const { output: chunks } = await bundle.generate({ format: "esm", codeSplitting: false });
const { component } = await componentize(chunks[0].code, {
  witPath: resolve(sdk, "wit"),
  worldName: WORLDS[name],
  // Whatever a component needs comes from the host's own interfaces, so nothing of WASI is left to import.
  disableFeatures: ["stdio", "random", "clocks", "http", "fetch-event"],
});
await mkdir(dirname(resolve(output)), { recursive: true });
await writeFile(output, component);
console.log(`${output}: ${(component.length / (1 << 20)).toFixed(1)} MiB`);
