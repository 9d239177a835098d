// Rules for what clients list of a tool, as `tollgate packs check` has them.
const LONGEST_NAME = 40;
const LONGEST_ALIAS = 64;
const LONGEST_DESCRIPTION = 1 << 10;
const LARGEST_SCHEMA = 16 << 10;
const SHORTEST_PARAMETER = 25;

const bytes = (text) => new TextEncoder().encode(text).length;

/** Everything about a tool that some client refuses, or that nobody would understand. */
export function faults(tool) {
  const found = [];
  const names = [[tool.name, LONGEST_NAME], ...(tool.aliases ?? []).map((alias) => [alias, LONGEST_ALIAS])];
  for (const [name, longest] of names) {
    const pattern = `^[a-z][a-z0-9_]{0,${longest - 1}}$`;
    if (!new RegExp(pattern).test(name)) found.push(`the name "${name}" does not match ${pattern}`);
  }
  if (!tool.title) found.push("the tool has no title");
  else if (bytes(tool.title) > LONGEST_NAME) found.push(`the title "${tool.title}" is longer than ${LONGEST_NAME} bytes`);
  const length = bytes(tool.description ?? "");
  if (length === 0) found.push("the tool has no description");
  if (length > LONGEST_DESCRIPTION) found.push(`the description has ${length} bytes, more than ${LONGEST_DESCRIPTION}`);
  if (tool.effect === "read" && tool.destructive) found.push("the tool has the effect read and is marked as destructive");
  for (const [side, schema] of [
    ["input", tool.input?.json],
    ["output", tool.output?.json],
  ]) {
    if (!schema) continue;
    const size = bytes(JSON.stringify(schema));
    if (size > LARGEST_SCHEMA) found.push(`the ${side} schema has ${size} bytes, more than ${LARGEST_SCHEMA}`);
    found.push(...ofSchema(schema, side));
  }
  return found;
}

function ofSchema(schema, path) {
  if (schema.items) return ofSchema(schema.items, `${path}[]`);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const below = `${path}.${name}`;
    const text = member.description ?? "";
    const found = [];
    if (!text) found.push(`${below} has no description`);
    else if (path.startsWith("input") && isVague(name, text)) found.push(`${below} is described only as "${text}"`);
    return [...found, ...ofSchema(member, below)];
  });
}

/** True if a description explains nothing beyond the parameter's name. */
function isVague(name, description) {
  const text = description.trim().replace(/\.+$/, "").toLowerCase().replace(/^the /, "").replaceAll(" ", "_");
  return [...description].length < SHORTEST_PARAMETER || text === name.toLowerCase();
}
