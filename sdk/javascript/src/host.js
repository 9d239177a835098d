// The host that a component runs in. A component sets it when it is made, tests put a double in its place.

const nowhere = new Proxy(
  {},
  {
    get(_, name) {
      throw new Error(`${String(name)} needs a host; in tests, call through Session or Judge of @tollgate/sdk/testing`);
    },
  },
);

export const host = { current: nowhere };

/** Has the SDK use a host during a call. */
export function using(current, call) {
  const before = host.current;
  host.current = current;
  try {
    return call();
  } finally {
    host.current = before;
  }
}

/** A statement that failed. Its effects are rolled back. */
export class DbError extends Error {
  constructor(kind, detail = "") {
    super(detail ? `${kind}: ${detail}` : kind);
    this.name = "DbError";
    this.kind = kind;
    this.detail = detail;
  }
}

function statements(run) {
  return {
    query: (sql, ...params) => run().query(sql, params),
    one: (sql, ...params) => run().query(sql, params)[0],
    execute: (sql, ...params) => run().execute(sql, params),
  };
}

export const db = {
  ...statements(() => host.current),
  transaction: (work) => host.current.transaction((inner) => work(statements(() => inner))),
};

export const memory = {
  get: (key) => host.current.remembered(key),
  list: (prefix = "", after = undefined, limit = 200) => host.current.memoryList(prefix, after, limit),
  put: (key, text, until = undefined) => host.current.put(key, text, until),
  add: (key, amount = 1, until = undefined) => host.current.add(key, amount, until),
  forget: (key) => host.current.forget(key),
};

export const nowMs = () => host.current.nowMs();
export const now = () => new Date(nowMs()).toISOString();
export const newId = (prefix) => host.current.newId(prefix);
export const log = (message, level = "info") => host.current.log(level, message);
export const progress = (done, total = undefined, message = "") => host.current.progress(done, total, message);
