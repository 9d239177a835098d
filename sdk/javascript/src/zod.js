// Types of zod as schemas of tools and settings.
import { z } from "zod";

/** Keywords that put several types into one property, which many clients do not take. */
const SEVERAL = ["anyOf", "oneOf", "allOf", "$ref"];

/** The schema of a type: `of(z.object({ … }))`. */
export function of(type) {
  const json = z.toJSONSchema(type, { io: "input", target: "draft-2020-12" });
  delete json.$schema;
  check(json, "");
  return { json, parse: (value) => type.parse(value) };
}

function check(schema, path) {
  const bad = SEVERAL.find((key) => key in schema);
  if (bad) throw new TypeError(`${path || "the type"} needs ${bad} in JSON Schema, which many clients do not support; use one type`);
  for (const [name, member] of Object.entries(schema.properties ?? {})) check(member, path ? `${path}.${name}` : name);
  if (typeof schema.items === "object") check(schema.items, `${path}[]`);
}
