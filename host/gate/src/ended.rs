//! End of a guest: its result, or an error that names the failure.

use std::fmt;

use tollgate_components::catalog::Body;
use tollgate_components::packs::Pack;
use tollgate_components::policies::Verdict;
use tollgate_core::deadline::Deadline;
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sandbox::Exceeded;
use tollgate_sandbox::annotations::Annotations;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::bindings::tollgate::host::component as shared;
use tollgate_sandbox::guest::{GuestResult, StopReason, Stopped};
use tollgate_sandbox::progress::Line;
use tollgate_sandbox::state::CallState;
use tollgate_sdk::{Blocker, NextCall, ToolError};
use tollgate_store::storage::PolicyRow;

use super::callable::{self, Callable};
use super::elicit;
use super::failure::Failure;
use super::guest_call::GuestCall;
use super::reply::{self, Reply};
use super::told::Told;

/// Longest error text from a component, in bytes.
const MAX_TEXT: usize = 4 << 10;
/// Most blockers that a component may give for one error.
const MAX_BLOCKERS: usize = 200;

/// Outcome of a guest, with its additions to the operation's record.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) result: Result<Reply, Failure>,
    pub(super) annotations: Annotations,
    /// True if the host cut it short, so that nothing from the guest is sent.
    pub(super) cut_short: bool,
    /// Verdicts of policies on the result.
    pub(super) verdicts: Vec<Verdict>,
    /// Database pages that rows of policies took.
    pub(super) pages: i64,
    /// Everything that policies remember about the call, if one judged the result.
    pub(super) remembered: Option<Vec<PolicyRow>>,
    /// Log lines of the component, held back until the result was judged.
    pub(super) lines: Vec<Line>,
    /// Statements about envelopes for the row.
    pub(super) told: Told,
    /// Extent to which its component has begun.
    pub(super) begun: Begun,
}

/// Extent to which a call is known to have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    /// Its component was not called.
    Nothing,
    /// Its component was called, and began nothing with a side effect.
    NoSideEffect,
    /// Its component may have begun anything.
    Anything,
}

impl Ended {
    pub(super) fn of(result: Result<Reply, Failure>) -> Ended {
        Ended {
            result,
            begun: Begun::Anything,
            annotations: Annotations::default(),
            cut_short: false,
            verdicts: Vec::new(),
            pages: 0,
            remembered: None,
            lines: Vec::new(),
            told: Told::default(),
        }
    }

    pub(super) fn failed(failure: Failure) -> Ended {
        Ended {
            cut_short: true,
            ..Ended::of(Err(failure))
        }
    }

    /// Refusal, if the call was refused.
    pub(super) fn refusal(&self) -> Option<&ToolError> {
        match &self.result {
            Ok(reply) => reply.refusal.as_deref(),
            Err(failure) => Some(&failure.error),
        }
    }

    /// True if the call ran out of time or was cancelled.
    pub(super) fn is_given_up(&self) -> bool {
        let failure = self.result.as_ref().err();
        let code = failure.map(|failure| failure.error.code.as_str());
        matches!(code, Some("DEADLINE_EXCEEDED" | "CANCELLED"))
    }

    /// Drops everything that the component returned beside its result, because no policy let it through.
    pub(super) fn withhold(&mut self) {
        self.lines.clear();
        self.annotations = Annotations::default();
    }
}

/// End of a call, from its guest's result and state.
pub(super) fn conclude(
    call: &GuestCall,
    pack: &Pack,
    called: GuestResult<Result<wit::Reply, wit::ToolError>>,
    state: &mut CallState,
    deadline: &Deadline,
) -> Ended {
    let cut_short = called.is_err();
    let result = match called {
        Ok(Ok(reply)) => reply::read(&pack.manifest.name, reply).map(|mut reply| {
            let calls = callable::calls_of(call.identity.as_ref());
            reply.json = Callable::new(&call.generation.catalog, calls).result(&call.tool, reply.json);
            if !state.deferred_writes.is_empty() {
                reply.deferred_writes = std::mem::take(&mut state.deferred_writes).into();
            }
            reply
        }),
        // A guest's own error about being cut short adds nothing, and must not give permits back.
        Ok(Err(_)) if call.effect != Effect::Write && deadline.is_cancelled() => {
            Err(cancelled(call, Changed::by(call, state)))
        }
        Ok(Err(err)) if call.effect != Effect::Write && err.asking.is_none() && is_late(deadline) => {
            let failure = late(call, Changed::by(call, state));
            Err(failure.map(|error| error.context("pack", pack.manifest.name.as_str())))
        }
        Ok(Err(err)) if err.keep_rows && call.effect == Effect::Write => Ok(Reply {
            deferred_writes: std::mem::take(&mut state.deferred_writes).into(),
            refusal: Some(Box::new(read_error(err, pack))),
            ..Reply::default()
        }),
        Ok(Err(err)) => Err(Failure::of_tool(read_error(err, pack))),
        Err(trap) => Err(name_trap(call, pack, &trap, state, deadline)),
    };
    Ended {
        annotations: std::mem::take(&mut state.annotations),
        lines: state.progress.take_lines(),
        cut_short,
        begun: match state.side_effects.has_begun() {
            true => Begun::Anything,
            false => Begun::NoSideEffect,
        },
        ..Ended::of(result)
    }
}

/// True if the time of the call itself is up, not only that of a transaction.
fn is_late(deadline: &Deadline) -> bool {
    deadline.is_over() && !deadline.is_narrowed()
}

/// Trap, interruption or limit as the caller sees it. The log has the full error.
fn name_trap(
    call: &GuestCall,
    pack: &Pack,
    trap: &Stopped,
    state: &CallState,
    deadline: &Deadline,
) -> Failure {
    let limits = &pack.limits;
    let pack = pack.manifest.name.as_str();
    tracing::warn!(
        op_id = call.context.op_id,
        pack,
        tool = call.tool,
        trap = format!("{trap:#}"),
        "a guest was stopped"
    );
    if deadline.is_cancelled() {
        return cancelled(call, Changed::by(call, state));
    }
    let changed = Changed::by(call, state);
    let late = || late(call, changed).map(|error| error.context("pack", pack));
    let error = match (state.exceeded(), trap.reason()) {
        (Some(Exceeded::Memory), _) => {
            ToolError::new("MEMORY_LIMIT", format!("pack `{pack}` exceeded its memory limit"))
                .remediation(
                    "Request less data in one call; the operator can raise limits.memory_mib of the pack.",
                )
                .context("limit_bytes", limits.memory)
        }
        (Some(Exceeded::Table), _) => ToolError::new(
            "TABLE_LIMIT",
            format!("pack `{pack}` exceeded the size limit of a table"),
        )
        .remediation("Report the operation's id to the pack's author; the host's log has the trace."),
        (_, StopReason::Handles) => ToolError::new(
            "HANDLE_LIMIT",
            format!("pack `{pack}` held too many open resources at once"),
        )
        .remediation("Request less data in one call, or report the operation's id to the pack's author."),
        (None, _) if deadline.is_narrowed() => ToolError::new(
            "TRANSACTION_LIMIT",
            format!("pack `{pack}` kept a transaction open for too long; the transaction was rolled back"),
        )
        .remediation("Do less in one transaction; the operator can raise limits.write_ms of the pack.")
        .context(
            "limit_ms",
            u64::try_from(limits.write.as_millis()).unwrap_or(u64::MAX),
        ),
        (None, StopReason::Interrupt) => return late(),
        (None, StopReason::StackOverflow) => {
            ToolError::new("STACK_OVERFLOW", format!("pack `{pack}` recursed too deeply"))
                .remediation("Send flatter arguments, or report the case to the pack's author.")
        }
        _ if deadline.is_over() => return late(),
        _ => ToolError::new("GUEST_TRAPPED", format!("pack `{pack}` crashed; {changed}"))
            .remediation("Report the operation's id to the pack's author; the host's log has the trace."),
    };
    Failure::trap(error.context("pack", pack))
}

/// Effects of a call that remain although it was stopped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Changed {
    /// None: everything is rolled back.
    Nothing,
    /// Transactions that a `run` call committed, and all effects of its programs.
    Committed(u32),
}

impl Changed {
    fn by(call: &GuestCall, state: &CallState) -> Changed {
        match call.effect {
            Effect::Run => Changed::Committed(state.commits),
            Effect::Read | Effect::Write => Changed::Nothing,
        }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Changed::Nothing => f.write_str("nothing was changed"),
            Changed::Committed(0) => {
                f.write_str("the call stored nothing, but a program that it ran may have changed files")
            }
            Changed::Committed(commits) => write!(
                f,
                "{} of the call and the changes made by its programs were not rolled back",
                text::counted(*commits, "committed transaction")
            ),
        }
    }
}

/// Error of a call that ran out of time.
pub(super) fn late(call: &GuestCall, changed: Changed) -> Failure {
    let error = ToolError::new(
        "DEADLINE_EXCEEDED",
        format!("the call ran out of time; {changed}"),
    )
    .remediation(match &call.body {
        Body::Guest(_) if call.ends_with_envelope => {
            "The time limit of the call's envelope was reached. Report to your owner what was achieved, and ask \
             for an envelope with more time."
        }
        Body::Guest(_) => {
            "Request less data in one call, for example with a smaller limit; the operator can raise the pack's time \
             limits."
        }
        Body::Core(_) => "Request less data in one call, for example with a smaller limit.",
    })
    .context(
        "limit_ms",
        u64::try_from(call.time.as_millis()).unwrap_or(u64::MAX),
    );
    Failure::timeout(error)
}

/// Error of a call that was cancelled.
pub(super) fn cancelled(call: &GuestCall, changed: Changed) -> Failure {
    let reason = call.cancel.reason();
    let why = reason.map_or("the caller cancelled the call", |reason| reason.message.as_str());
    let mut err =
        ToolError::new("CANCELLED", format!("{why}; {changed}")).context("tool", call.tool.as_str());
    if let Changed::Committed(_) = changed {
        err = err.remediation("Check what the call was meant to change before you call it again.");
    }
    Failure::cancelled(match reason {
        Some(reason) => err.context("cause", reason.code),
        None => err,
    })
}

fn read_error(said: wit::ToolError, pack: &Pack) -> ToolError {
    let context = text::clean_values(serde_json::from_str(&said.context).unwrap_or_default());
    ToolError {
        code: text::code(&said.code),
        message: line(&said.message),
        remediation: line(&said.remediation),
        blockers: said
            .blockers
            .into_iter()
            .take(MAX_BLOCKERS)
            .map(|blocker| Blocker {
                code: text::code(&blocker.code),
                message: line(&blocker.message),
                field: blocker.field.map(|field| line(&field)),
                next_call: blocker.next_call.and_then(next_call),
            })
            .collect(),
        context,
        next_call: said.next_call.and_then(next_call),
        asking: said
            .asking
            .and_then(|asking| elicit::read(asking, &pack.granted))
            .map(Box::new),
    }
}

fn next_call(said: shared::NextCall) -> Option<NextCall> {
    let arguments: serde_json::Map<_, _> = serde_json::from_str(&said.arguments).ok()?;
    // The person who runs it should see all of it.
    (!text::hides_in(&arguments)).then(|| NextCall {
        arguments,
        tool: line(&said.tool),
    })
}

fn line(said: &str) -> String {
    text::clean(text::cut(said, MAX_TEXT))
}
