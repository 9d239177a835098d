// Tools and policies for Tollgate in JavaScript.
import { DbError, host } from "./host.js";
import { mistakes, schemaOf } from "./schema.js";

export { DbError, db, log, memory, newId, now, nowMs, progress } from "./host.js";

/** Ends a call with a stable code, a message and a way out. All rows of the call are rolled back. */
export class Refusal extends Error {
  constructor(code, message, remediation = "", { blockers = [], context = {}, nextCall, keepRows = false } = {}) {
    super(message);
    this.name = "Refusal";
    Object.assign(this, { code, remediation, blockers, context, nextCall, keepRows });
  }
}

const withNext = (nextCall) => nextCall && { tool: nextCall.tool, arguments: JSON.stringify(nextCall.arguments ?? {}) };

function refused(refusal) {
  return {
    code: refusal.code,
    message: refusal.message,
    remediation: refusal.remediation,
    blockers: refusal.blockers.map((blocker) => ({ ...blocker, nextCall: withNext(blocker.nextCall) })),
    context: JSON.stringify(refusal.context),
    nextCall: withNext(refusal.nextCall),
    keepRows: refusal.keepRows,
    asking: undefined,
  };
}

/** A refusal that says what a type of zod found. */
function parsed(schema, value, code, remediation) {
  try {
    return schema.parse(value);
  } catch (err) {
    if (!Array.isArray(err?.issues)) throw err;
    const told = err.issues.map((issue) => `${issue.path.join(".") || "the value"}: ${issue.message}`);
    throw new Refusal(code, told.join("; "), remediation);
  }
}

/** A tool: what clients are told about it, and the function that runs. */
export function tool(definition) {
  return { kind: "tool", tier: "core", ...definition, input: schemaOf(definition.input), output: schemaOf(definition.output) };
}

/** A prompt: its arguments are texts, and `say` returns the text of the prompt. */
export function prompt(definition) {
  return { kind: "prompt", effect: "read", ...definition, input: schemaOf(definition.input) };
}

function described(tool) {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    effect: tool.effect,
    tier: tool.tier,
    destructive: tool.destructive ?? false,
    idempotent: tool.idempotent ?? tool.effect === "read",
    openWorld: tool.openWorld ?? false,
    members: undefined,
    inputSchema: JSON.stringify({ ...tool.input.json, description: tool.description, additionalProperties: false }),
    outputSchema: JSON.stringify(tool.output.json),
    aliases: tool.aliases ?? [],
  };
}

function describedPrompt({ name, title, description, input }) {
  const required = input.json.required ?? [];
  const parameters = Object.entries(input.json.properties ?? {}).map(([name, member]) => ({
    name,
    description: member.description ?? "",
    required: required.includes(name),
  }));
  return { name, title, description, arguments: parameters };
}

/** A want as the interfaces have it: `{ kind: "process", value: "make" }`. */
const want = ({ kind, value }) => (value === undefined ? { tag: kind } : { tag: kind, val: value });

/** A pack: export it under the name `pack`. */
export function definePack(definition) {
  const settings = definition.settings && schemaOf(definition.settings);
  const all = new Map([...(definition.tools ?? []), ...(definition.prompts ?? [])].map((tool) => [tool.name, tool]));
  return {
    definition: { ...definition, all },
    describe: () => ({
      name: definition.name,
      version: definition.version ?? "0.1.0",
      summary: definition.summary,
      instructions: definition.instructions ?? "",
      wants: (definition.wants ?? []).map(want),
      migrations: definition.migrations ?? [],
      prompts: (definition.prompts ?? []).map(describedPrompt),
      configSchema: settings && JSON.stringify(settings.json),
      renderTool: definition.renderTool,
      tools: (definition.tools ?? []).map(described),
    }),
    call(context, name, args) {
      try {
        return answered(all.get(name), name, context, JSON.parse(args), settings);
      } catch (err) {
        if (err instanceof Refusal) throw refused(err);
        if (!(err instanceof DbError)) throw err;
        throw refused(new Refusal("STORAGE_FAILED", err.message, "Report this to the author of the pack."));
      }
    },
  };
}

function answered(tool, name, context, args, settings) {
  if (!tool) throw new Refusal("UNKNOWN_TOOL", `\`${name}\` is not a tool of the pack`, "List the tools.");
  const config = JSON.parse(context.config || "{}");
  const call = {
    ...context,
    settings: settings ? parsed(settings, config, "BAD_SETTINGS", "Ask the operator to correct the pack's config.") : config,
  };
  const checked = parsed(tool.input, args, "INVALID_ARGUMENTS", "Correct the arguments and call again.");
  if (tool.kind === "prompt") return { structured: "{}", text: tool.say(checked, call), content: [] };
  return { structured: JSON.stringify(tool.run(checked, call)), text: undefined, content: [] };
}

export const pass = () => ({ tag: "pass" });
export const amend = (args) => ({ tag: "amend", arguments: args });
export const deny = (code, reason, remediation = "", nextCall = undefined) => ({ tag: "deny", code, reason, remediation, nextCall });
export const ask = (message, otherwise, { key, arguments: args } = {}) => ({ tag: "ask", message, otherwise, key, arguments: args });

const denial = ({ code, reason, remediation, nextCall }) => ({ code, reason, remediation, nextCall: withNext(nextCall) });

function verdict(said) {
  switch (said?.tag) {
    case "pass":
      return { tag: "pass" };
    case "amend":
      return { tag: "amend", val: JSON.stringify(said.arguments) };
    case "deny":
      return { tag: "deny", val: denial(said) };
    case "ask":
      if (said.key !== undefined) host.current.bindQuestion(said.key);
      if (said.arguments !== undefined) host.current.propose(JSON.stringify(said.arguments));
      return { tag: "ask", val: { message: said.message, otherwise: denial(said.otherwise) } };
    default:
      throw new Error("that is not a verdict; return pass(), amend(), deny() or ask()");
  }
}

let notes = [];

/** Leaves a note for later policies, and for the evaluation of the result. */
export const note = (key, value) => void notes.push({ key, value });

/** JSON Schema of the arguments that the called tool takes. */
export function inputSchema() {
  const text = host.current.inputSchema();
  return text === undefined ? undefined : JSON.parse(text);
}

/** Mistakes in settings, by the schema and by the policy's own rules. */
function problems(definition, schema, settings) {
  const found = mistakes({ ...schema.json, additionalProperties: false }, settings).map((told) => {
    const [key, ...message] = told.split(": ");
    return { key, message: message.join(": ") };
  });
  return found.length > 0 ? found : (definition.problems?.(schema.parse(settings)) ?? []);
}

/** The name that a call claims for itself. */
function claimedBy({ actor, actor_name }) {
  return [actor, actor_name].find((name) => typeof name === "string" && name.trim() !== "");
}

/** True for the form of an identity: `token:NAME`, or an issuer's URL, `#` and the subject. */
function isLikeIdentity(name = "") {
  return name.trim().startsWith("token:") || (name.includes("#") && name.includes(":"));
}

/** A policy: export it under the name `judge`. */
export function definePolicy(definition) {
  const schema = schemaOf(definition.settings ?? { type: "object", properties: {} });
  const judged = (request, work) => {
    notes = [];
    try {
      const settings = schema.parse(JSON.parse(request.settings || "{}"));
      const asked = {
        ...request,
        at: Number(request.at),
        arguments: JSON.parse(request.arguments),
        notes: Object.fromEntries(request.notes.map(({ key, value }) => [key, value])),
      };
      const claimed = claimedBy(asked.arguments);
      asked.actor = request.identity ?? (isLikeIdentity(claimed) ? undefined : claimed);
      asked.recordedActor = request.identity ?? (claimed === undefined ? undefined : `claimed:${claimed}`);
      return [verdict(work(asked, settings)), notes];
    } catch (err) {
      // An error says why there is no verdict; a denial would be one.
      throw err instanceof Error ? err.message : err;
    }
  };
  return {
    definition: { ...definition, schema },
    describe: () => ({
      name: definition.name,
      version: definition.version ?? "0.1.0",
      summary: definition.summary,
      phase: definition.phase ?? "request",
      wants: (definition.wants ?? []).map(want),
      migrations: definition.migrations ?? [],
      configSchema: JSON.stringify({ ...schema.json, additionalProperties: false }),
    }),
    configure(settings) {
      const found = problems(definition, schema, JSON.parse(settings || "{}"));
      if (found.length > 0) throw found;
    },
    beforeCall: (request) => judged(request, (asked, settings) => definition.before?.(asked, settings) ?? pass()),
    afterCall: (request, outcome) =>
      judged(request, (asked, settings) => {
        const body = outcome.body ? JSON.parse(outcome.body) : null;
        return definition.after?.(asked, { ...outcome, body, durationMs: Number(outcome.durationMs) }, settings) ?? pass();
      }),
  };
}
