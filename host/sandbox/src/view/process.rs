//! `process`: programs that the operator allowed, in `run` tools.

use std::io::Write as _;
use std::time::Duration;

use tollgate_core::deadline::Deadline;
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sdk::permit::{self, Permitted, Refused};
use tollgate_sdk::{Command as Wanted, Ending, Outcome, ProcessError, WorkspaceInfo};
use tollgate_store::artifacts::{ArtifactKind, ArtifactWriter, CallArtifacts};
use tollgate_store::storage::{Ran, Session, TestRun};
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::process::{self, Command, Ending as WireEnding, Error};
use crate::counted_programs::{CountPrograms, Counted};
use crate::facts::Transactions;
use crate::git;
use crate::process::{Job, Launcher, Sink, Stream};
use crate::progress::{Narrator, Progress};
use crate::side_effects::SideEffects;
use crate::view::prefetch::Prefetcher;
use crate::workspaces::Access;

/// Part of its call's time that a program must leave, so that the reply can report the end.
const REPLY_RESERVE: Duration = Duration::from_millis(500);

/// Longest list of words in a refusal, in bytes.
const MAX_LINE: usize = 300;

pub(crate) struct View<'a> {
    pub(crate) access: &'a Access,
    pub(crate) launcher: &'a Launcher,
    pub(crate) effect: Effect,
    pub(crate) transactions: Transactions,
    pub(crate) side_effects: &'a mut SideEffects,
    pub(crate) deadline: &'a Deadline,
    pub(crate) progress: &'a mut Progress,
    pub(crate) artifacts: &'a CallArtifacts,
    pub(crate) prefetcher: &'a mut Prefetcher,
    pub(crate) session: &'a Session,
    pub(crate) programs: Option<&'a dyn CountPrograms>,
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
        let permitted = permit::command(&reach.info, self.access.programs(), &wanted)
            .map_err(|refused| ProcessError::Denied(denied(workspace, &wanted, refused)))?;
        if self.transactions == Transactions::Open {
            return Err(ProcessError::TransactionOpen);
        }
        let git = match &permitted {
            Permitted::Program(_) => None,
            Permitted::Git(git) => match git::prepare(&reach.workspace, git, self.launcher, self.deadline)? {
                Ok(prepared) => Some((prepared, git)),
                Err(outcome) => return Ok(outcome),
            },
        };
        let counted = counted(&reach.info, &permitted);
        if let (Some(programs), Some(counted)) = (self.programs, counted) {
            self.count(programs, counted)?;
        }
        let left = self.deadline.remaining();
        let job = Job {
            dir: reach.workspace.tree.dir(),
            variables: git
                .as_ref()
                .map(|(git, _)| git.variables.clone())
                .unwrap_or_default(),
            alone: git.as_ref().is_some_and(|(git, _)| git.alone),
            memory: git.as_ref().map(|_| git::MEMORY_BYTES),
            argv: match (&git, &permitted) {
                (Some((git, _)), _) => git.argv.clone(),
                (None, Permitted::Program(argv)) => argv.clone(),
                (None, Permitted::Git(git)) => git.arguments.clone(),
            },
            stdin: wanted.stdin,
            timeout: wanted
                .timeout
                .min(left.saturating_sub(REPLY_RESERVE.min(left / 10))),
            output_limit: wanted.output_limit,
        };
        let mut watcher = Watcher {
            narrator: Narrator::new(self.progress, &wanted.program),
            // Output of Git for packs is not stored as a log.
            log: match &git {
                Some(_) => None,
                None => self.artifacts.create(ArtifactKind::Log).unwrap_or_else(no_log),
            },
        };
        let before = *self.side_effects;
        // Only Git's commands are known well enough to tell that they change nothing.
        if git
            .as_ref()
            .is_none_or(|(prepared, git)| prepared.has_effects(git))
        {
            self.side_effects.begin();
        }
        let outcome = self.launcher.run(job, self.deadline, &mut watcher);
        if outcome.as_ref().is_err_and(|err| !may_have_run(err)) {
            *self.side_effects = before;
        }
        let kept = git.map_or(Ok(()), |(prepared, git)| prepared.finish(git));
        // A program may change any file.
        self.prefetcher.forget();
        let outcome = outcome?;
        if let (Some(programs), Some(Counted::Test)) = (self.programs, counted) {
            let alike = alike(&reach.info, &permitted);
            let run = TestRun {
                workspace: reach.info.name.clone(),
                test: alike.first().copied().unwrap_or_default().to_owned(),
                result: how_it_ended(outcome.ending),
            };
            programs.test_ended(run, &alike);
        }
        kept?;
        Ok(Outcome {
            artifact_id: watcher.keep(),
            ..outcome
        })
    }

    /// Counts a program that is about to start, or returns why it must not.
    fn count(&self, programs: &dyn CountPrograms, counted: Counted) -> Result<(), ProcessError> {
        let count = || programs.count(self.session, self.deadline, counted);
        match self.session.as_host(count) {
            Ok(counted) => counted.map_err(ProcessError::Denied),
            Err(_) if self.deadline.is_cancelled() => Err(ProcessError::Cancelled),
            Err(err) => {
                tracing::error!(%err, "cannot count the program's start against the envelope");
                Err(ProcessError::Internal)
            }
        }
    }
}

/// True if the launcher's error leaves open whether the program ran.
fn may_have_run(err: &ProcessError) -> bool {
    match err {
        ProcessError::Denied(_)
        | ProcessError::UnknownWorkspace(_)
        | ProcessError::Invalid(_)
        | ProcessError::NotStarted(_)
        | ProcessError::TransactionOpen => false,
        ProcessError::Cancelled | ProcessError::Internal => true,
    }
}

/// Kind under which a command is counted. A registered test counts as one even if another rule permits it.
fn counted(info: &WorkspaceInfo, permitted: &Permitted) -> Option<Counted> {
    match permitted {
        Permitted::Program(argv) if info.tests.iter().any(|test| test.argv == *argv) => Some(Counted::Test),
        Permitted::Program(_) => Some(Counted::Other),
        Permitted::Git(_) => None,
    }
}

/// Names of the registered tests with these words.
fn alike<'a>(info: &'a WorkspaceInfo, permitted: &Permitted) -> Vec<&'a str> {
    let Permitted::Program(argv) = permitted else {
        return Vec::new();
    };
    let tests = info.tests.iter().filter(|test| test.argv == *argv);
    tests.map(|test| test.name.as_str()).collect()
}

fn how_it_ended(ending: Ending) -> Ran {
    match ending {
        Ending::Exited(0) => Ran::Passed,
        Ending::Exited(_) => Ran::Failed,
        Ending::Signalled(_) => Ran::Killed,
        Ending::TimedOut => Ran::TimedOut,
    }
}

/// Reports the running program to the client, and stores its output.
struct Watcher<'a> {
    narrator: Narrator<'a>,
    log: Option<ArtifactWriter>,
}

impl Sink for Watcher<'_> {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        self.narrator.bytes(stream, bytes);
        if let Some(log) = &mut self.log
            && let Err(err) = log.write_all(bytes)
        {
            self.log = no_log(err);
        }
    }

    fn tick(&mut self) {
        self.narrator.tick();
    }
}

impl Watcher<'_> {
    /// Artifact id of the log.
    fn keep(self) -> Option<String> {
        self.log?.keep().map_or_else(no_log, Some)
    }
}

/// A program runs even if its log cannot be stored.
fn no_log<T>(err: std::io::Error) -> Option<T> {
    tracing::warn!(%err, "cannot keep a program's output");
    None
}

/// Refusal with the configuration line that would allow the program.
fn denied(workspace: &str, wanted: &Wanted, refused: Refused) -> String {
    match refused {
        Refused::Program => {
            let argv = std::iter::once(&wanted.program).chain(&wanted.arguments);
            let argv: Vec<String> = argv.map(|word| format!("{word:?}")).collect();
            let argv = argv.join(", ");
            format!(
                "`{}` is neither a program granted to the pack nor, with these arguments, a registered test of \
                 `{workspace}`; to register the command as a test, add `tests.NAME = [{}]` to [workspaces.{workspace}]",
                wanted.program.escape_debug(),
                text::clean(text::cut(&argv, MAX_LINE)),
            )
        }
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

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    process::add_to_linker::<_, HasView>(linker, view)
}
