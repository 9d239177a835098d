// Rules for what clients list of a tool, as `tollgate packs check` has them.
const LONGEST_NAME = 40;
const LONGEST_ALIAS = 64;
const LONGEST_DESCRIPTION = 1 << 10;
const LARGEST_SCHEMA = 16 << 10;
const DIALECT = "https://json-schema.org/draft/2020-12/schema";
/** Least that a description says: visible characters, and distinct words beside those of the name and EMPTY_WORDS. */
const OF_TOOL = { length: 25, words: 1 };
const OF_PARAMETER = { length: 25, words: 2 };
const OF_FIELD = { length: 10, words: 1 };
/** Words that explain nothing, in any description. */
const EMPTY_WORDS = new Set(["a", "an", "the", "this", "is", "its", "of", "s", "value", "given"]);
/** First words of descriptions that nobody has written yet. */
const PLACEHOLDERS = new Set(["todo", "tbd", "fixme"]);
/**
 * Characters that no reader sees: those that Unicode calls ignorable by default, annotations, and control characters
 * except white space.
 */
const INVISIBLE =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]/gu;
/** Keywords for which some client refuses the whole list. */
const BANNED = ["$ref", "$schema", "$defs", "oneOf", "anyOf", "allOf", "not"];
/** Keywords with schemas that clients do not show, so that nobody reads the descriptions in there. */
const UNREAD = [
  "definitions",
  "patternProperties",
  "prefixItems",
  "additionalItems",
  "contains",
  "propertyNames",
  "dependencies",
  "dependentSchemas",
  "unevaluatedItems",
  "unevaluatedProperties",
  "contentSchema",
  "$dynamicRef",
  "$recursiveRef",
  "if",
  "then",
  "else",
];

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
  const description = tool.description ?? "";
  const length = bytes(description);
  if (!words(description).length) found.push("the tool has no description");
  else if (isVague(tool.name, description, OF_TOOL)) found.push(`the tool has a vague description: "${description.slice(0, 80)}"`);
  if (length > LONGEST_DESCRIPTION) found.push(`the description has ${length} bytes; at most ${LONGEST_DESCRIPTION} are allowed`);
  if (tool.effect === "read" && tool.destructive) found.push("the tool has the effect read and is marked as destructive");
  for (const [side, schema] of [
    ["input", tool.input?.json],
    ["output", tool.output?.json],
  ]) {
    if (!schema) continue;
    const size = bytes(JSON.stringify(schema));
    if (size > LARGEST_SCHEMA) found.push(`the ${side} schema has ${size} bytes; at most ${LARGEST_SCHEMA} are allowed`);
    if (side === "input" && schema.$schema === DIALECT) {
      found.push("the input schema uses all of JSON Schema 2020-12, which some clients refuse", ...ofFull(schema, side));
    } else found.push(...ofSchema(schema, side));
  }
  return found;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function ofSchema(schema, path) {
  const used = (keywords) => keywords.filter((keyword) => Object.hasOwn(schema, keyword)).map((keyword) => `${path} uses ${keyword}`);
  const found = [...used(BANNED), ...used(UNREAD).map((fault) => `${fault}, which some clients do not read`)];
  if (isObject(schema.items)) found.push(...ofSchema(schema.items, `${path}[]`));
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const below = `${path}.${name}`;
    if (!isObject(member)) found.push(`${below} has no type`);
    else found.push(...ofDescription(name, member.description ?? "", below), ...ofSchema(member, below));
  }
  const others = schema.additionalProperties;
  if (isObject(others)) found.push(...ofSchema(others, `${path}.*`));
  return found;
}

/** Vague descriptions in a schema that uses all of JSON Schema, wherever it describes a property. */
function ofFull(schema, path) {
  if (Array.isArray(schema)) return schema.flatMap((member) => ofFull(member, path));
  if (!isObject(schema)) return [];
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (["properties", "patternProperties"].includes(keyword) && isObject(value)) {
      return Object.entries(value).flatMap(([name, member]) => {
        const below = `${path}.${name}`;
        const text = isObject(member) ? member.description : undefined;
        return [...(typeof text === "string" ? ofDescription(name, text, below) : []), ...ofFull(member, below)];
      });
    }
    if (["$defs", "definitions", "dependentSchemas"].includes(keyword) && isObject(value)) return ofFull(Object.values(value), path);
    return ["const", "default", "enum", "examples"].includes(keyword) ? [] : ofFull(value, path);
  });
}

function ofDescription(name, text, path) {
  if (!words(text).length) return [`${path} has no description`];
  const least = path.startsWith("input") ? OF_PARAMETER : OF_FIELD;
  return isVague(name, text, least) ? [`${path} has a vague description: "${text}"`] : [];
}

/** True if a description explains nothing beyond the name, or is a placeholder. */
function isVague(name, description, least) {
  const said = words(description);
  // Dots, spaces and other signs in a row count as two characters at most.
  const text = visible(description).replace(/([^\p{Alphabetic}\p{N}]{2})[^\p{Alphabetic}\p{N}]+/gu, "$1");
  if ([...text].length < least.length || PLACEHOLDERS.has(said[0].toLowerCase())) return true;
  const known = parts(words(name));
  known.push(known.join(""));
  const further = [];
  for (const word of parts(said)) {
    const isKnown = [...known, ...further].some((other) => isForm(word, other) || isForm(other, word));
    if (!isKnown && !EMPTY_WORDS.has(word)) further.push(word);
  }
  return further.length < least.words;
}

/** Text that readers see, with one space for all white space between two words. */
const visible = (text) => text.replace(INVISIBLE, "").replace(/\s+/gu, " ").trim();

/** Visible words of a text. */
const words = (text) => visible(text).match(/[\p{Alphabetic}\p{N}]+/gu) ?? [];

/** Lower-case parts of words, which camelCase joins. */
const parts = (joined) => joined.flatMap((word) => word.split(/(?<=\p{Ll})(?=\p{Lu})/u)).map((word) => word.toLowerCase());

/** True if a word is another one or its plural. */
const isForm = (word, other) =>
  [other, `${other}s`, `${other}es`].includes(word) || (other.endsWith("y") && word === `${other.slice(0, -1)}ies`);
