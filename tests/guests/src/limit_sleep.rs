//! Waits in the host in every way that WASI offers.

use std::time::Duration;

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Hints, Pack, Tool, ToolError, tools};
use wasip2::clocks::monotonic_clock::{now, subscribe_duration, subscribe_instant};
use wasip2::io::poll::poll;

/// One hour in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

macro_rules! waits {
    ($(#[$doc:meta])* $name:ident, $tool:literal, $effect:ident $(, $hints:ident)?) => {
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$doc])*
        pub struct $name {
            /// Way to wait: thread, block, instant, never, poll, again, stdin or output.
            how: String,
            /// Duration of a single wait in milliseconds, if the way has one.
            #[serde(default = "hour")]
            ms: u64,
        }

        impl Tool for $name {
            const NAME: &'static str = $tool;
            const TITLE: &'static str = stringify!($name);
            const EFFECT: Effect = Effect::$effect;
            $(const HINTS: Hints = Hints::$hints;)?
            type Output = Done;

            fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
                wait(&self.how, self.ms);
                Ok(Done::new("awake"))
            }
        }
    };
}

waits!(
    /// Wait in a read call.
    Reading, "limit_sleep_read", Read
);
waits!(
    /// Wait in a write call, which holds the write transaction.
    Writing, "limit_sleep_write", Write
);
waits!(
    /// Wait in a run call, outside any transaction.
    Running, "limit_sleep_run", Run
);
waits!(
    /// Wait in a run call, for clients with tasks alone.
    #[schemars(extend("x-task" = "required"))]
    Lasting, "limit_sleep_required", Run
);
waits!(
    /// Wait in a run call that never becomes a task.
    #[schemars(extend("x-task" = "never"))]
    Attended, "limit_sleep_attended", Run
);

waits!(
    /// Wait in a run call that may be made again.
    Repeatable, "limit_sleep_idempotent", Run, IDEMPOTENT
);

fn hour() -> u64 {
    HOUR / 1_000_000
}

fn wait(how: &str, ms: u64) {
    let length = ms.saturating_mul(1_000_000);
    match how {
        "thread" => std::thread::sleep(Duration::from_millis(ms)),
        "block" => subscribe_duration(length).block(),
        "instant" => subscribe_instant(now() + length).block(),
        "never" => subscribe_duration(u64::MAX).block(),
        "poll" => {
            let waits: Vec<_> = (0..100).map(|more| subscribe_duration(length + more)).collect();
            poll(&waits.iter().collect::<Vec<_>>());
        }
        // In short steps, each of which is quick.
        "again" => (0..u64::MAX).for_each(|_| subscribe_duration(1_000_000).block()),
        "stdin" => {
            let _ = wasip2::cli::stdin::get_stdin().blocking_read(1 << 20);
            let _ = wasip2::cli::stdin::get_stdin().blocking_skip(u64::MAX);
        }
        _ => {
            let stdout = wasip2::cli::stdout::get_stdout();
            let stdin = wasip2::cli::stdin::get_stdin();
            for _ in 0..1_000 {
                let _ = stdout.blocking_write_zeroes_and_flush(4096);
                let _ = stdout.write_zeroes(1 << 16);
                let _ = stdout.blocking_flush();
                let _ = stdout.blocking_splice(&stdin, u64::MAX);
            }
        }
    }
}

const PACK: Pack = Pack {
    name: "limit-sleep",
    version: "0.1.0",
    summary: "Waits for hours.",
    tools: tools![Reading, Writing, Running, Lasting, Attended, Repeatable],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
