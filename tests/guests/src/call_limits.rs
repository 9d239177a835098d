//! Uses more time, memory, stack and output than its limits.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};

macro_rules! misbehaviour {
    ($(#[$doc:meta])* $name:ident, $tool:literal, $effect:ident, $body:expr) => {
        $(#[$doc])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {}

        impl Tool for $name {
            const NAME: &'static str = $tool;
            const TITLE: &'static str = stringify!($name);
            const EFFECT: Effect = Effect::$effect;
            type Output = Done;

            fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
                let body: fn(&Cx<'_>) -> String = $body;
                Ok(Done::new(body(cx)))
            }
        }
    };
}

misbehaviour!(
    /// Return at once.
    Answer, "call_limits_answer", Read, |_| "here".to_owned()
);
misbehaviour!(
    /// Loop without end in a read call.
    Spin, "call_limits_spin", Read, |_| spin()
);
misbehaviour!(
    /// Loop without end in a write call, which holds the write transaction.
    SpinWriting, "call_limits_spin_writing", Write, |_| spin()
);
misbehaviour!(
    /// Loop without end in a run call, outside any transaction.
    SpinRunning, "call_limits_spin_running", Run, |_| spin()
);
misbehaviour!(
    /// Allocate until memory is exhausted.
    Grow, "call_limits_grow", Read, |_| grow()
);
misbehaviour!(
    /// Recurse until the stack is exhausted.
    Recurse, "call_limits_recurse", Read, |_| format!("{}", recurse(1))
);
misbehaviour!(
    /// Panic.
    Panic, "call_limits_panic", Write, |_| panic!("as asked")
);
misbehaviour!(
    /// Print a large output.
    Flood, "call_limits_flood", Read, |_| flood()
);
misbehaviour!(
    /// Loop without end inside the database.
    SpinInSql, "call_limits_spin_in_sql", Read, |cx| spin_in_sql(cx)
);
misbehaviour!(
    /// Return a reply that is too large.
    Babble, "call_limits_babble", Read, |_| "x".repeat(3 << 20)
);

fn spin() -> String {
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}

fn grow() -> String {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(vec![1; 1 << 20]);
        std::hint::black_box(&hoard);
    }
}

#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    std::hint::black_box(recurse(std::hint::black_box(depth + 1)) + depth)
}

fn flood() -> String {
    use std::io::Write as _;
    let line = [b'x'; 1000];
    for _ in 0..10_000 {
        let _ = std::io::stdout().write_all(&line);
    }
    "flooded".to_owned()
}

fn spin_in_sql(cx: &Cx<'_>) -> String {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    match cx.db.query(sql, &[]) {
        Ok(_) => "came back".to_owned(),
        Err(err) => err.to_string(),
    }
}

const PACK: Pack = Pack {
    name: "call-limits",
    version: "0.1.0",
    summary: "Uses more than it may.",
    tools: tools![
        Answer,
        Spin,
        SpinWriting,
        SpinRunning,
        Grow,
        Recurse,
        Panic,
        Flood,
        SpinInSql,
        Babble
    ],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
