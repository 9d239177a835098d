// Schemas: a JSON Schema as it is, or a type of zod through `of` in @tollgate/sdk/zod.

/** Returns a schema in the form that the SDK needs: its JSON, and a function that checks a value. */
export function schemaOf(schema) {
  return typeof schema?.parse === "function" && schema.json ? schema : { json: schema, parse: (value) => value };
}

/** Everything that is wrong with a value by a JSON Schema, as far as tools use one. */
export function mistakes(schema, value, path = "") {
  const at = path || "the value";
  if (schema.enum && !schema.enum.includes(value)) return [`${at}: is not one of ${schema.enum.join(", ")}`];
  if (schema.type && !fits(schema.type, value)) return [`${at}: is not of type ${schema.type}`];
  const bounds = [
    ["minimum", value, "<"],
    ["maximum", value, ">"],
    ["minLength", value?.length, "<"],
    ["maxLength", value?.length, ">"],
    ["minItems", value?.length, "<"],
    ["maxItems", value?.length, ">"],
  ];
  const found = bounds
    .filter(([key, size, sign]) => schema[key] !== undefined && (sign === "<" ? size < schema[key] : size > schema[key]))
    .map(([key]) => `${at}: breaks ${key} ${schema[key]}`);
  if (schema.pattern && !new RegExp(schema.pattern, "u").test(value)) found.push(`${at}: does not match ${schema.pattern}`);
  if (Array.isArray(value)) {
    found.push(...value.flatMap((item, nth) => mistakes(schema.items ?? {}, item, `${path}[${nth}]`)));
  } else if (typeof value === "object" && value !== null) {
    found.push(...ofObject(schema, value, path));
  }
  return found;
}

function ofObject(schema, value, path) {
  const below = (name) => (path ? `${path}.${name}` : name);
  const found = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${below(name)}: is missing`);
  for (const [name, member] of Object.entries(value)) {
    const known = schema.properties?.[name];
    const others = schema.additionalProperties;
    if (known) found.push(...mistakes(known, member, below(name)));
    else if (others === false) found.push(`${below(name)}: is not known`);
    else if (typeof others === "object") found.push(...mistakes(others, member, below(name)));
  }
  return found;
}

function fits(type, value) {
  switch (type) {
    case "string":
    case "boolean":
      return typeof value === type;
    case "number":
      return typeof value === "number";
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    default:
      return typeof value === "object" && value !== null && !Array.isArray(value);
  }
}
