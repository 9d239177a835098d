/** A JSON Schema. */
export type Json = { [key: string]: unknown };

/** A schema with a way to check a value. `of` of `@tollgate/sdk/zod` makes one. */
export interface Schema<T> {
  json: Json;
  parse(value: unknown): T;
}

/** Type of the values of a schema. A plain JSON Schema says nothing to the compiler. */
export type Value<S> = S extends Schema<infer T> ? T : any;

export type Effect = "read" | "write" | "run";
export type Sql = null | boolean | number | bigint | string | Uint8Array;
/** Values of a row: null, numbers, bigints beyond 2^53, strings and bytes. */
export type Row = any[];

/** A call that is ready to run. */
export interface NextCall {
  tool: string;
  arguments?: Json;
}

/** Facts about a call besides its arguments. */
export interface Call<Settings = any> {
  opId: string;
  envelopeId?: string;
  identity?: string;
  client?: string;
  sessionId: string;
  settings: Settings;
}

/** Ends a call with a stable code, a message and a way out. All rows of the call are rolled back. */
export class Refusal extends Error {
  constructor(
    code: string,
    message: string,
    remediation?: string,
    more?: {
      blockers?: Array<{ code: string; message: string; field?: string; nextCall?: NextCall }>;
      context?: Json;
      nextCall?: NextCall;
      keepRows?: boolean;
    },
  );
  readonly code: string;
  readonly remediation: string;
}

export interface Tool {
  readonly name: string;
}

/** A tool: what clients are told about it, and the function that runs. */
export function tool<I extends Schema<any> | Json, O extends Schema<any> | Json>(definition: {
  name: string;
  title: string;
  description: string;
  effect: Effect;
  tier?: "core" | "standard" | "full";
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
  aliases?: string[];
  input: I;
  output: O;
  run(args: Value<I>, call: Call): Value<O>;
}): Tool;

/** A prompt: its arguments are texts, and `say` returns the text of the prompt. */
export function prompt<I extends Schema<any> | Json>(definition: {
  name: string;
  title: string;
  description: string;
  input: I;
  say(args: Value<I>, call: Call): string;
}): Tool;

/** A request beside the component's own storage. The operator grants it. */
export interface Want {
  kind:
    | "workspace-read"
    | "workspace-write"
    | "process"
    | "tests"
    | "git"
    | "ledger-query"
    | "budget"
    | "artifacts"
    | "client";
  value?: string;
}

/** A step of the schema. A step that was released never changes. */
export interface Migration {
  name: string;
  sql: string;
}

export interface Pack {
  describe(): unknown;
  call(context: unknown, tool: string, args: string): unknown;
}

/** A pack: export it under the name `pack`. */
export function definePack(definition: {
  name: string;
  version?: string;
  summary: string;
  instructions?: string;
  settings?: Schema<any> | Json;
  wants?: Want[];
  migrations?: Migration[];
  renderTool?: string;
  tools?: Tool[];
  prompts?: Tool[];
}): Pack;

/** A call to evaluate. */
export interface Request {
  opId: string;
  pack: string;
  tool: string;
  effect: Effect;
  arguments: Json;
  argsHash: string;
  envelopeId?: string;
  identity?: string;
  client?: string;
  connection: string;
  at: number;
  notes: Record<string, string>;
  /**
   * The proven identity, else the claim in the argument `actor` or `actor_name`, which any caller can set. A claim in the form of an
   * identity, such as `token:ada`, is ignored, because the transport would have proved it.
   */
  actor?: string;
  /** The actor as the ledger records it: the proven identity, or `claimed:` and the name in the arguments. */
  recordedActor?: string;
}

/** Outcome of an evaluated call. */
export interface Outcome {
  success: boolean;
  errorCode?: string;
  body: any;
  text?: string;
  durationMs: number;
}

export interface Deny {
  tag: "deny";
  code: string;
  reason: string;
  remediation: string;
  nextCall?: NextCall;
}
export interface Pass {
  tag: "pass";
}
export interface Amend {
  tag: "amend";
  arguments: Json;
}
export interface Ask {
  tag: "ask";
  message: string;
  otherwise: Deny;
  key?: string;
  arguments?: Json;
}
export type Review = Pass | Deny;
export type Verdict = Pass | Deny | Amend | Ask;

export function pass(): Pass;
export function amend(args: Json): Amend;
export function deny(code: string, reason: string, remediation?: string, nextCall?: NextCall): Deny;
/** `key` binds the answer to a key instead of the message; `arguments` are those with which the call runs after a yes. */
export function ask(message: string, otherwise: Deny, more?: { key?: string; arguments?: Json }): Ask;

export interface Problem {
  key: string;
  message: string;
}

export interface Policy {
  describe(): unknown;
  configure(settings: string): void;
  beforeCall(request: any): unknown;
  afterCall(request: any, outcome: any): unknown;
}

/** A policy: export it under the name `judge`. */
export function definePolicy<S extends Schema<any> | Json>(definition: {
  name: string;
  version?: string;
  summary: string;
  phase?: "request" | "response" | "both";
  settings?: S;
  wants?: Want[];
  migrations?: Migration[];
  problems?(settings: Value<S>): Problem[];
  before?(request: Request, settings: Value<S>): Verdict;
  after?(request: Request, outcome: Outcome, settings: Value<S>): Review;
}): Policy;

/** Leaves a note for later policies, and for the evaluation of the result. */
export function note(key: string, value: string): void;
/** JSON Schema of the arguments that the called tool takes. */
export function inputSchema(): Json | undefined;

/** A statement that failed. Its effects are rolled back. */
export class DbError extends Error {
  constructor(kind: string, detail?: string);
  readonly kind: string;
  readonly detail: string;
}

export interface Statements {
  query(sql: string, ...params: Sql[]): Row[];
  one(sql: string, ...params: Sql[]): Row | undefined;
  execute(sql: string, ...params: Sql[]): number;
}

/** SQL over the component's own tables, whose names start with its name. Parameters are `?1`, `?2` and so on. */
export const db: Statements & {
  /** A transaction in a `run` tool. An exception rolls it back. */
  transaction<T>(work: (statements: Statements) => T): T;
};

export interface Entry {
  key: string;
  text?: string;
  number: number;
  until?: number;
}

/** Memory of a policy over all calls that it evaluates. What is remembered commits with the evaluated call's row. */
export const memory: {
  get(key: string): Entry | undefined;
  list(prefix?: string, after?: string, limit?: number): Entry[];
  put(key: string, text: string, until?: number): void;
  add(key: string, amount?: number, until?: number): number;
  forget(key: string): void;
};

export function nowMs(): number;
/** The time as RFC 3339, for example 2026-01-01T00:00:00.000Z. Such texts sort by time. */
export function now(): string;
/** A new id that sorts by time of creation, for example note_01k… */
export function newId(prefix: string): string;
export function log(message: string, level?: "debug" | "info" | "warn" | "error"): void;
export function progress(done: number, total?: number, message?: string): void;
