//! The reasons to refuse a call.

use serde_json::{Value, json};
use thiserror::Error;
use tollgate_kit::text::clip;
use tollgate_kit::{INVALID_ARGUMENTS, NOT_FOUND};

use crate::arguments::is_placeholder;
use crate::state::{Event, Illegal, Status};

/// One reason why a call is refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum Reason {
    #[error("{field} {fault}")]
    Argument { field: String, fault: String },
    #[error("there is no {what} {id}")]
    NotFound { what: &'static str, id: String },
    #[error(transparent)]
    WrongStatus(#[from] Illegal),
    #[error("step {given} is not the current one, which is {current}")]
    WrongStep { given: String, current: String },
    #[error("the prompt of step {0} has not been requested yet")]
    StepNotActive(String),
    #[error("step {0} is done and cannot be changed")]
    StepDone(String),
    #[error("the last submission was rejected and no mistake was recorded since then")]
    MistakeRequired,
    #[error("{message}")]
    Gap {
        code: &'static str,
        field: String,
        message: String,
    },
    #[error("{0}")]
    UnknownGate(String),
    #[error("the batch that {0} opened must be committed first")]
    BatchOpen(String),
    #[error("batch commits are not allowed by this job's policies")]
    BatchForbidden,
    #[error("the variable {0} has no value")]
    VariableMissing(String),
    #[error("template {0} already exists")]
    TemplateExists(String),
    #[error("template {0} already exists and is built in")]
    TemplateBuiltin(String),
    #[error("{0}")]
    Bundle(String),
    #[error("{0}")]
    Git(GitFault),
    #[error("the repository cannot be read: {0}")]
    Repository(String),
    #[error("workspace {workspace} does not allow this pack to write {path}")]
    WriteDenied { workspace: String, path: String },
    #[error("`{0}` exists and is not a regular file")]
    NotAFile(String),
    #[error("there is no map of the repository yet")]
    MapMissing,
    #[error("{0}")]
    Description(String),
    #[error("{0}")]
    NotInMap(String),
}

/// A reason why a Git command failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum GitFault {
    #[error("Git cannot be used here: {0}")]
    Unavailable(String),
    #[error("{0} is not a Git repository")]
    NoRepository(String),
    #[error("a {0} is in progress in the repository")]
    InProgress(String),
    #[error("the named paths have no changes to commit")]
    NothingToCommit,
    #[error("the path {path} {fault}")]
    Path { path: String, fault: String },
    #[error("the repository's own configuration names programs for filters: {}", clip(&.0.join(", ")))]
    Filters(Vec<String>),
    #[error("git {command} printed {bytes} bytes, which is too much to read")]
    TooMuch { command: String, bytes: u64 },
    #[error("git {command} failed: {message}")]
    Failed { command: String, message: String },
}

impl Reason {
    /// A fault of one argument.
    pub(crate) fn argument(field: impl Into<String>, fault: impl Into<String>) -> Reason {
        Reason::Argument {
            field: field.into(),
            fault: fault.into(),
        }
    }

    /// A reference by the caller to nothing.
    pub(crate) fn not_found(what: &'static str, id: &str) -> Reason {
        Reason::NotFound { what, id: clip(id) }
    }
}

impl tollgate_kit::Reason for Reason {
    fn argument(field: String, fault: String) -> Reason {
        Reason::Argument { field, fault }
    }

    fn code(&self) -> &'static str {
        match self {
            Reason::Argument { .. } | Reason::UnknownGate(_) => INVALID_ARGUMENTS,
            Reason::NotFound { .. } => NOT_FOUND,
            Reason::WrongStatus(_) => "WRONG_STATUS",
            Reason::WrongStep { .. } => "WRONG_STEP",
            Reason::StepNotActive(_) => "STEP_NOT_ACTIVE",
            Reason::StepDone(_) => "STEP_DONE",
            Reason::MistakeRequired => "MISTAKE_REQUIRED",
            Reason::Gap { code, .. } => code,
            Reason::BatchOpen(_) => "BATCH_OPEN",
            Reason::BatchForbidden => "BATCH_FORBIDDEN",
            Reason::VariableMissing(_) => "VARIABLE_MISSING",
            Reason::TemplateExists(_) | Reason::TemplateBuiltin(_) => "TEMPLATE_EXISTS",
            Reason::Bundle(_) => "BUNDLE_INVALID",
            Reason::Git(GitFault::Unavailable(_)) => "GIT_UNAVAILABLE",
            Reason::Git(GitFault::NoRepository(_)) => "NO_REPOSITORY",
            Reason::Git(GitFault::InProgress(_)) => "GIT_IN_PROGRESS",
            Reason::Git(GitFault::NothingToCommit) => "NOTHING_TO_COMMIT",
            Reason::Git(GitFault::Path { .. }) => "PATH_REFUSED",
            Reason::Git(GitFault::Filters(_)) => "GIT_FILTERS",
            Reason::Git(GitFault::TooMuch { .. }) => "GIT_TOO_MUCH",
            Reason::Git(GitFault::Failed { .. }) => "GIT_FAILED",
            Reason::Repository(_) => "REPOSITORY_UNAVAILABLE",
            Reason::WriteDenied { .. } => "WRITE_DENIED",
            Reason::NotAFile(_) => "NOT_A_FILE",
            Reason::MapMissing => "MAP_MISSING",
            Reason::Description(_) => "DESCRIPTION_REFUSED",
            Reason::NotInMap(_) => "NOT_IN_MAP",
        }
    }

    fn remediation(&self) -> &'static str {
        match self {
            Reason::Argument { .. } => "Correct the argument.",
            Reason::NotFound { .. } => "Look the id up with job_get or job_list.",
            Reason::WrongStatus(Illegal {
                status: Status::Executing | Status::Paused,
                event: Event::EditPlan,
            }) => "Change open steps with plan_refine_steps, or give the job up with job_fail.",
            Reason::WrongStatus(Illegal {
                status: Status::Complete | Status::Failed | Status::Archived,
                ..
            }) => "The job has ended. Look at the job with job_get, or start another with conductor_init.",
            Reason::WrongStatus(_) => "Move the job to one of allowed_statuses first.",
            Reason::WrongStep { .. } | Reason::StepNotActive(_) => {
                "Call job_next_step_prompt and work on the step that it gives."
            }
            Reason::StepDone(_) => "Add a step after this one with plan_refine_steps instead.",
            Reason::MistakeRequired => "Record what went wrong with mistake_record, then submit again.",
            Reason::Gap { .. } => "Close each gap with the call it names, then call job_set_ready again.",
            Reason::UnknownGate(_) => "Use the gates that the message lists.",
            Reason::BatchOpen(_) => "Commit the open batch with git_commit.",
            Reason::BatchForbidden => "Commit now, or allow it with job_update_policies.",
            Reason::VariableMissing(_) => "Give each variable a value in `variables`.",
            Reason::TemplateExists(_) => "Choose another name, or pass replace=true.",
            Reason::TemplateBuiltin(_) => "Choose another name.",
            Reason::Bundle(_) => "Import a bundle that job_export_bundle exported with format json.",
            Reason::Git(GitFault::Unavailable(_)) => {
                "Ask the operator to set git in [workspaces.NAME], for example git = \"read\", or git = \"write\" for \
                 commits and branches. If another key is missing, the message names that key."
            }
            Reason::Git(GitFault::NoRepository(_)) => {
                "Name a workspace, or a path in one, that is a repository."
            }
            Reason::Git(GitFault::InProgress(_)) => "Finish or abort the operation first.",
            Reason::Git(GitFault::NothingToCommit) => "Name paths that git_status shows as changed.",
            Reason::Git(GitFault::Path { .. }) => "Name paths inside the repository, relative to its root.",
            Reason::Git(GitFault::Filters(_)) => {
                "Ask a person to move the needed filters to their own configuration (git config --global) and to \
                 remove the others. Or ask the operator to accept the filters with git_config in [workspaces.NAME], \
                 for example git_config = [\"filter.lfs.*\"]."
            }
            Reason::Git(GitFault::TooMuch { .. }) => {
                "Add files that should not be tracked to .gitignore, and commit the others."
            }
            Reason::Git(GitFault::Failed { message, .. }) if lacks_identity(message) => {
                "Pass author_name and author_email to git_commit, or ask a person to set user.name and user.email with \
                 git config."
            }
            Reason::Git(GitFault::Failed { .. }) => "Correct what Git's message names.",
            Reason::Repository(_) => {
                "Give the job a repo_root that is a registered workspace, or a directory in one."
            }
            Reason::WriteDenied { .. } => {
                "Ask the operator to allow the paths with `write` in [workspaces.NAME], for example write = [\".\"]. \
                 Documents are written to the top of the workspace. To get them without writing, call \
                 job_export_bundle."
            }
            Reason::NotAFile(_) => {
                "Remove what is at the document's path, or omit the document with `documents`."
            }
            Reason::MapMissing => "Create the map with repo_map_update.",
            Reason::Description(_) => {
                "Describe existing files, each in one line that says more than the file's name."
            }
            Reason::NotInMap(_) => "Pass a path from repo_map_query, or update the map.",
        }
    }

    fn field(&self) -> Option<&str> {
        match self {
            Reason::Argument { field, .. } | Reason::Gap { field, .. } => Some(field),
            Reason::WrongStep { .. } | Reason::StepNotActive(_) | Reason::StepDone(_) => Some("step_id"),
            Reason::VariableMissing(_) => Some("variables"),
            Reason::TemplateExists(_) | Reason::TemplateBuiltin(_) => Some("name"),
            Reason::Bundle(_) => Some("bundle"),
            Reason::UnknownGate(_) => Some("gates"),
            Reason::Description(_) => Some("descriptions"),
            _ => None,
        }
    }

    fn context(&self) -> Value {
        match self {
            Reason::WrongStatus(Illegal { status, event }) => {
                json!({"status": status, "allowed_statuses": Status::that_allow(*event)})
            }
            Reason::WrongStep { current, .. } => json!({"current_step_id": current}),
            _ => Value::Null,
        }
    }

    fn how_to_call(text: &str) -> Option<String> {
        crate::listed::how_to_call(text)
    }

    fn fault_of(text: &str) -> Option<&'static str> {
        is_placeholder(text).then_some("is still a placeholder; say what it stands for")
    }
}

/// Checks whether Git refused to commit because it does not know the author.
fn lacks_identity(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "tell me who you are",
        "ident name",
        "user.email",
        "auto-detect email",
    ]
    .iter()
    .any(|part| message.contains(part))
}

tollgate_kit::refusals! {
    /// Every reason found so far why a call has to be refused.
    pub(crate) struct Refusals of Reason;
}
