// Makes a component: node build.mjs WIT WORLD SOURCE COMPONENT
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const [witPath, worldName, source, out] = process.argv.slice(2);
const { component } = await componentize(await readFile(source, "utf8"), {
  witPath,
  worldName,
  // Whatever a component needs comes from the host's own interfaces, so nothing of WASI is left to import.
  disableFeatures: ["stdio", "random", "clocks", "http", "fetch-event"],
});
await writeFile(out, component);
