//! `process`: programs that the operator allowed, in `run` tools.

use std::time::Duration;

use tollgate_sdk::permit::{self, Refused};
use tollgate_sdk::{Command as Wanted, Ending, Outcome, ProcessError};
use wasmtime::component::{HasData, Linker};

use crate::deadline::Deadline;
use crate::packs::Effect;
use crate::process::{Job, Launcher};
use crate::progress::{Narrator, Progress};
use crate::sandbox::CallState;
use crate::sandbox::bindings::tollgate::host::process::{self, Command, Ending as WireEnding, Error};
use crate::sandbox::state::Transactions;
use crate::workspaces::Access;

/// What a program leaves of its call's time, so that the reply can tell of it.
const RESERVE: Duration = Duration::from_millis(500);

struct View<'a> {
    access: &'a Access,
    launcher: &'a Launcher,
    effect: Effect,
    transactions: Transactions,
    deadline: &'a Deadline,
    progress: &'a mut Progress,
}

impl View<'_> {
    fn start(&mut self, workspace: &str, wanted: Wanted) -> Result<Outcome, ProcessError> {
        let reach = self
            .access
            .workspace(workspace)
            .map_err(|_| ProcessError::UnknownWorkspace(workspace.escape_debug().to_string()))?;
        if self.effect != Effect::Run {
            return Err(ProcessError::Denied(
                "only `run` tools start processes".to_owned(),
            ));
        }
        let argv = permit::command(&reach.info, self.access.programs(), &wanted)
            .map_err(|refused| ProcessError::Denied(denied(workspace, &wanted.program, refused)))?;
        if self.transactions == Transactions::Open {
            return Err(ProcessError::TransactionOpen);
        }
        let left = self.deadline.remaining();
        let job = Job {
            dir: reach.workspace.tree.dir(),
            argv,
            stdin: wanted.stdin,
            timeout: wanted.timeout.min(left.saturating_sub(RESERVE.min(left / 10))),
            output_limit: wanted.output_limit,
        };
        let mut narrator = Narrator::new(self.progress, &wanted.program);
        self.launcher.run(job, self.deadline, &mut narrator)
    }
}

/// A refusal that says how it is changed.
fn denied(workspace: &str, program: &str, refused: Refused) -> String {
    match refused {
        Refused::Program => format!(
            "`{}` is no program the pack was granted, nor, with these arguments, a test of `{workspace}`; \
             tests are registered as `tests.NAME` in [workspaces.{workspace}]",
            program.escape_debug()
        ),
        Refused::Git(why) => why,
    }
}

impl process::Host for View<'_> {
    fn run(&mut self, command: Command) -> Result<process::Outcome, ProcessError> {
        let wanted = Wanted {
            program: command.program,
            arguments: command.arguments,
            stdin: command.stdin,
            timeout: Duration::from_millis(command.timeout_ms.into()),
            output_limit: command.output_limit,
        };
        let outcome = self.start(&command.workspace, wanted)?;
        Ok(process::Outcome {
            ending: match outcome.ending {
                Ending::Exited(code) => WireEnding::Exited(code),
                Ending::Signalled(signal) => WireEnding::Signalled(signal),
                Ending::TimedOut => WireEnding::TimedOut,
            },
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            stdout: outcome.stdout.bytes,
            stderr: outcome.stderr.bytes,
            stdout_total: outcome.stdout.total,
            stderr_total: outcome.stderr.total,
            artifact_id: outcome.artifact_id,
        })
    }

    fn convert_error(&mut self, err: ProcessError) -> wasmtime::Result<Error> {
        Ok(match err {
            ProcessError::Denied(why) => Error::Denied(why),
            ProcessError::UnknownWorkspace(name) => Error::UnknownWorkspace(name),
            ProcessError::Invalid(why) => Error::Invalid(why),
            ProcessError::NotStarted(why) => Error::NotStarted(why),
            ProcessError::TransactionOpen => Error::TransactionOpen,
            ProcessError::Cancelled => Error::Cancelled,
            ProcessError::Internal => Error::Internal,
        })
    }
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    process::add_to_linker::<_, HasView>(linker, |state| View {
        access: &state.access,
        launcher: &state.launcher,
        effect: state.effect,
        transactions: state.transactions,
        deadline: &state.deadline,
        progress: &mut state.progress,
    })
}
