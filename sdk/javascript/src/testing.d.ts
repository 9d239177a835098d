import type { Effect, Json, Outcome, Pack, Policy, Review, Verdict } from "./index.js";

/** Start of the clock: 2026-01-01T00:00:00Z. */
export const EPOCH_MS: number;

/** A pack over an empty database. Calls go the way of a component's. */
export class Session {
  static open(pack: Pack, options?: { settings?: Json; migrations?: number; identity?: string }): Promise<Session>;
  /** Applies the migrations after the first `from`. */
  migrate(from: number): void;
  /** Runs a tool, and returns its reply. Throws a `Refusal`, or an `Error` if the reply does not match the output schema. */
  call(tool: string, args?: Json): any;
  prompt(name: string, args?: Json): string;
  /** Runs SQL outside of any tool, to look at tables or to fill them. */
  sql(sql: string, ...params: unknown[]): unknown[][];
  /** Everything that clients refuse or nobody would understand, as in `tollgate packs check`. */
  faults(): string[];
}

/** A call to evaluate, with what tests leave out. */
export interface Asked {
  tool: string;
  arguments: Json;
  effect: Effect;
  identity?: string;
  client?: string;
  at?: number;
  notes?: Record<string, string>;
}
export function request(tool: string, args?: Json, more?: Partial<Asked>): Asked;

/** A policy with settings. `open` throws the list of problems if these are wrong. */
export class Judge {
  static open(policy: Policy, settings?: Json): Promise<Judge>;
  before(asked: Asked): { verdict: Verdict; notes: Record<string, string> };
  after(asked: Asked, outcome: Partial<Outcome>): { verdict: Review; notes: Record<string, string> };
}
