// The host behind the interfaces that a component imports.
import { DbError } from "./host.js";

/** A value as the interfaces have it. */
function toWit(value) {
  if (value === null || value === undefined) return { tag: "null" };
  if (typeof value === "boolean") return { tag: "integer", val: value ? 1n : 0n };
  if (typeof value === "bigint") return { tag: "integer", val: value };
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? { tag: "integer", val: BigInt(value) } : { tag: "real", val: value };
  }
  if (typeof value === "string") return { tag: "text", val: value };
  if (value instanceof Uint8Array) return { tag: "blob", val: value };
  throw new TypeError(`${typeof value} cannot be stored; use null, a boolean, a number, a bigint, a string or a Uint8Array`);
}

/** A value as JavaScript has it: whole numbers that a number cannot hold are a bigint. */
function fromWit({ tag, val }) {
  if (tag === "null") return null;
  if (tag !== "integer") return val;
  const number = Number(val);
  return Number.isSafeInteger(number) ? number : val;
}

function told(work) {
  try {
    return work();
  } catch (err) {
    const failed = err?.payload ?? err;
    if (typeof failed?.tag !== "string") throw err;
    throw new DbError(failed.tag, failed.val === undefined ? "" : String(failed.val));
  }
}

const statements = (runner) => ({
  query: (sql, params) => told(() => runner.query(sql, params.map(toWit))).map((row) => row.map(fromWit)),
  execute: (sql, params) => Number(told(() => runner.execute(sql, params.map(toWit)))),
});

const entry = (found) => found && { ...found, number: Number(found.number), until: found.until && Number(found.until) };
const until = (time) => (time === undefined ? undefined : BigInt(time));

/** Everything that packs and policies have. */
export function common(storage, clock, logs) {
  return {
    ...statements(storage),
    transaction(work) {
      const transaction = told(() => storage.Transaction.begin());
      const result = work(statements(transaction));
      told(() => storage.Transaction.commit(transaction));
      return result;
    },
    nowMs: () => Number(clock.now()),
    newId: (prefix) => clock.newId(prefix),
    log: (level, message) => logs.write(level, message),
    progress: (done, total, message) => logs.progress(BigInt(done), until(total), message),
  };
}

/** Functions of the host that only policies have. */
export function ofPolicy(memory, judged) {
  return {
    remembered: (key) => entry(told(() => memory.get(key))),
    memoryList: (prefix, after, limit) => told(() => memory.list(prefix, after, limit)).map(entry),
    put: (key, text, time) => told(() => memory.put(key, text, until(time))),
    add: (key, amount, time) => Number(told(() => memory.add(key, BigInt(amount), until(time)))),
    forget: (key) => told(() => memory.forget(key)),
    inputSchema: () => judged.inputSchema(),
    bindQuestion: (key) => judged.bindQuestion(key),
    propose: (args) => judged.propose(args),
  };
}
