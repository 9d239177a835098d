// Doubles of the host: `Session` for packs and `Judge` for policies. SQLite holds the tables, and the clock is fixed.
import { DbError, using } from "./host.js";
import { Refusal } from "./index.js";
import { mistakes } from "./schema.js";
import { faults } from "./surface.js";

/** Start of the clock: 2026-01-01T00:00:00Z. */
export const EPOCH_MS = 1_767_225_600_000;

/** Node's own SQLite, or else sql.js. */
async function openSqlite() {
  const own = await import("node:sqlite").catch(() => undefined);
  if (own?.DatabaseSync) {
    const database = new own.DatabaseSync(":memory:");
    return {
      script: (sql) => database.exec(sql),
      query: (sql, params) => database.prepare(sql).all(...params).map((row) => Object.values(row)),
      execute: (sql, params) => Number(database.prepare(sql).run(...params).changes),
    };
  }
  const other = await import("sql.js").catch(() => undefined);
  if (!other) throw new Error("tables need Node 22.13 or later, or the package sql.js: npm install --save-dev sql.js");
  const { Database } = await other.default();
  const database = new Database();
  return {
    script: (sql) => void database.exec(sql),
    query(sql, params) {
      const statement = database.prepare(sql);
      try {
        statement.bind(params);
        const rows = [];
        while (statement.step()) rows.push(statement.get());
        return rows;
      } finally {
        statement.free();
      }
    },
    execute(sql, params) {
      database.run(sql, params);
      return database.getRowsModified();
    },
  };
}

const plain = (params) => params.map((value) => (typeof value === "boolean" ? Number(value) : (value ?? null)));

class Double {
  constructor(sqlite, steps) {
    Object.assign(this, { sqlite, clockMs: EPOCH_MS, ids: 0, lines: [], entries: new Map(), isRun: false, isOpen: false });
    sqlite.script("PRAGMA foreign_keys = ON");
    steps.forEach((step) => sqlite.script(step.sql));
  }

  /** Storage as a call of an effect has it. An exception rolls back what it wrote. */
  during(effect, writes, call) {
    this.clockMs += 1000;
    this.isRun = effect === "run";
    this.sqlite.script(`PRAGMA query_only = ${writes ? "OFF" : "ON"}`);
    this.sqlite.script("SAVEPOINT call");
    let isKept = false;
    try {
      const result = using(this, call);
      isKept = true;
      return result;
    } catch (err) {
      isKept = err?.keepRows === true;
      throw err;
    } finally {
      if (!isKept) this.sqlite.script("ROLLBACK TO call");
      this.sqlite.script("RELEASE call");
      this.sqlite.script("PRAGMA query_only = OFF");
    }
  }

  run(kind, sql, params) {
    if (this.isRun && !this.isOpen) {
      throw new DbError("transaction-state", "a `run` tool reaches storage in `db.transaction(…)`");
    }
    try {
      return this.sqlite[kind](sql, plain(params));
    } catch (err) {
      if (/readonly/.test(err.message)) throw new DbError("read-only");
      throw new DbError(/constraint/i.test(err.message) ? "constraint" : "refused", err.message);
    }
  }

  query = (sql, params) => this.run("query", sql, params);
  execute = (sql, params) => this.run("execute", sql, params);

  transaction(work) {
    if (!this.isRun || this.isOpen) throw new DbError("transaction-state", "only a `run` tool begins a transaction, and one at a time");
    this.isOpen = true;
    this.sqlite.script("SAVEPOINT transaction_of_run");
    try {
      return work(this);
    } catch (err) {
      this.sqlite.script("ROLLBACK TO transaction_of_run");
      throw err;
    } finally {
      this.sqlite.script("RELEASE transaction_of_run");
      this.isOpen = false;
    }
  }

  nowMs = () => this.clockMs;
  newId = (prefix) => `${prefix}_${String(++this.ids).padStart(26, "0")}`;
  log = (level, message) => void this.lines.push(`${level} ${message}`);
  progress = (done, total, message) => void this.lines.push(`progress ${done}/${total} ${message}`);

  remembered(key) {
    const entry = this.entries.get(key);
    return entry?.until !== undefined && entry.until <= this.clockMs ? undefined : entry;
  }

  memoryList(prefix, after, limit) {
    const keys = [...this.entries.keys()].filter((key) => key.startsWith(prefix) && (after === undefined || key > after)).sort();
    return keys.map((key) => this.remembered(key)).filter(Boolean).slice(0, limit);
  }

  put(key, text, until) {
    this.entries.set(key, { key, text, number: this.remembered(key)?.number ?? 0, until });
  }

  add(key, amount, until) {
    const before = this.remembered(key);
    const number = (before?.number ?? 0) + amount;
    this.entries.set(key, { key, text: before?.text, number, until: before ? before.until : until });
    return number;
  }

  forget = (key) => void this.entries.delete(key);
  inputSchema = () => (this.toolSchema === undefined ? undefined : JSON.stringify(this.toolSchema));
  bindQuestion = (key) => void (this.key = key);
  propose = (args) => void (this.proposed = args);
}

/** A pack over an empty database. Calls go the way of a component's. */
export class Session {
  static async open(pack, { settings = {}, migrations = undefined, identity = undefined } = {}) {
    const session = new Session();
    const steps = (pack.definition.migrations ?? []).slice(0, migrations);
    Object.assign(session, { pack, settings, identity, host: new Double(await openSqlite(), steps) });
    return session;
  }

  /** Applies the migrations that the session was opened without. */
  migrate(from) {
    (this.pack.definition.migrations ?? []).slice(from).forEach((step) => this.host.sqlite.script(step.sql));
  }

  /** Runs a tool, and returns its reply. Throws a `Refusal`. */
  call(name, args = {}) {
    return JSON.parse(this.reply(name, args).structured);
  }

  /** Text of a prompt. */
  prompt(name, args = {}) {
    return this.reply(name, args).text;
  }

  /** Runs SQL outside of any tool, to look at tables or to fill them. */
  sql(sql, ...params) {
    return this.host.sqlite.query(sql, params);
  }

  reply(name, args) {
    const tool = this.pack.definition.all.get(name);
    const found = tool ? mistakes({ ...tool.input.json, additionalProperties: false }, args) : [];
    if (found.length > 0) throw new Refusal("INVALID_ARGUMENTS", found.join("; "), "Correct the arguments and call again.");
    const context = {
      opId: "op_test",
      identity: this.identity,
      sessionId: "00000000-0000-7000-8000-000000000000",
      config: JSON.stringify(this.settings),
      answers: [],
    };
    const effect = tool?.effect ?? "read";
    try {
      return this.host.during(effect, effect !== "read", () => {
        const reply = this.pack.call(context, name, JSON.stringify(args));
        // The host refuses such a reply, and rolls its rows back.
        const wrong = tool?.output ? mistakes(tool.output.json, JSON.parse(reply.structured)) : [];
        if (wrong.length > 0) throw new Error(`the reply of ${name} does not match its output schema: ${wrong.join("; ")}`);
        return reply;
      });
    } catch (err) {
      if (typeof err?.code !== "string" || err instanceof Error) throw err;
      throw new Refusal(err.code, err.message, err.remediation, { context: JSON.parse(err.context), keepRows: err.keepRows });
    }
  }

  /** Everything that clients refuse or nobody would understand, as in `tollgate packs check`. A test of each pack has none. */
  faults() {
    return [...this.pack.definition.all.values()].flatMap((tool) => {
      const found = tool.kind === "prompt" ? ofPrompt(tool) : faults(tool);
      return found.map((fault) => `${tool.name}: ${fault}`);
    });
  }
}

function ofPrompt({ description, input }) {
  const properties = Object.entries(input.json.properties ?? {});
  const bare = properties.filter(([, member]) => !member.description).map(([name]) => `the argument ${name} has no description`);
  return description ? bare : ["the prompt has no description", ...bare];
}

/** A call to evaluate, with what tests leave out. */
export function request(tool, args = {}, more = {}) {
  return { tool, arguments: args, effect: "write", ...more };
}

/** A policy with settings. */
export class Judge {
  static async open(policy, settings = {}) {
    policy.configure(JSON.stringify(settings));
    const judge = new Judge();
    Object.assign(judge, { policy, settings, host: new Double(await openSqlite(), policy.definition.migrations ?? []) });
    return judge;
  }

  /** Evaluates a call: `{ verdict, notes }`. Throws what a component would say if it cannot evaluate the call. */
  before(asked) {
    return this.judged("read", asked, (request) => this.policy.beforeCall(request));
  }

  /** Evaluates a result. */
  after(asked, outcome) {
    const seen = { success: true, durationMs: 0n, ...outcome, body: JSON.stringify(outcome.body ?? null) };
    return this.judged(asked.effect, asked, (request) => this.policy.afterCall(request, seen));
  }

  judged(effect, asked, judge) {
    const whole = {
      opId: "op_test",
      pack: "test",
      argsHash: JSON.stringify(asked.arguments),
      connection: "test",
      ...asked,
      at: BigInt(asked.at ?? EPOCH_MS),
      arguments: JSON.stringify(asked.arguments),
      notes: Object.entries(asked.notes ?? {}).map(([key, value]) => ({ key, value })),
      settings: JSON.stringify(this.settings),
    };
    Object.assign(this.host, { key: undefined, proposed: undefined });
    const before = new Map(this.host.entries);
    try {
      // Storage commits with a `write` call only.
      const [said, notes] = this.host.during("read", effect === "write", () => judge(whole));
      return { verdict: this.verdict(said), notes: Object.fromEntries(notes.map(({ key, value }) => [key, value])) };
    } catch (err) {
      // A failed evaluation remembers nothing.
      this.host.entries = before;
      throw typeof err === "string" ? new Error(err) : err;
    }
  }

  verdict({ tag, val }) {
    if (tag === "amend") return { tag, arguments: JSON.parse(val) };
    if (tag === "ask") {
      const proposed = this.host.proposed && JSON.parse(this.host.proposed);
      return { tag, ...val, key: this.host.key, arguments: proposed };
    }
    return { tag, ...val };
  }
}
