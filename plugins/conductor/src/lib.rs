//! The pack `conductor`: plan a job in one thread, execute it step by step in another.
//!
//! Planning fills a job with a goal, invariants and a chain of steps; the ready gate lists every gap. Execution
//! returns one prompt at a time and accepts a step only with evidence, which gates compare with Git, files and
//! commands. Recorded mistakes appear in the prompts of related steps.
//!
//! Pure functions decide what is legal or missing (`state`, `interview`, `ready`, `evidence`, `submission`,
//! `gate::decide`, `checkpoint`, `prompt`). The tools gather facts for them and apply their decisions.

mod access;
mod arguments;
mod asked;
mod briefing;
mod checkpoint;
mod digest;
mod edits;
mod entity;
mod entry;
mod error;
mod evidence;
mod export;
mod freeze;
mod gate;
mod git;
mod import;
mod interview;
mod listed;
mod mistakes;
mod model;
mod page;
mod person;
mod plan;
mod policy;
mod prompt;
mod prompts;
mod ready;
mod repo;
mod root;
mod rules;
mod search;
mod settle;
mod state;
mod step;
mod store;
mod submission;
mod suggest;
mod template;
mod tools;
mod workspaces;

use tollgate_sdk::{GitAccess, Pack, Want, migration};

use crate::prompts::{ExecuteJob, PlanJob};
use crate::tools::answer::ConductorAnswer;
use crate::tools::approval::{StepApprove, StepRevokeApproval};
use crate::tools::archive::{JobExportBundle, JobImport};
use crate::tools::conductor::{ConductorInit, ConductorNextQuestions};
use crate::tools::context::{
    ContextAddBlock, ContextDeleteBlock, ContextGetBlock, ContextSearch, ContextUpdateBlock,
};
use crate::tools::delete::JobDelete;
use crate::tools::documents::RepoDocumentsWrite;
use crate::tools::execute::{JobNextStepPrompt, JobStart};
use crate::tools::git::{GitDiffSummary, GitLog, GitStatus};
use crate::tools::git_refs::{GitBranch, GitTag};
use crate::tools::git_write::GitCommit;
use crate::tools::jobs::{JobGet, JobList, JobUpdatePolicies};
use crate::tools::lifecycle::{JobArchive, JobFail, JobPause, JobResume, JobSetReady};
use crate::tools::logs::{DecisionRecord, DevlogAppend, DevlogExport, DevlogList};
use crate::tools::map::{RepoMapQuery, RepoMapUpdate};
use crate::tools::map_export::RepoMapExport;
use crate::tools::mistakes::{MistakeList, MistakeRecord};
use crate::tools::plan::{
    PlanSetAssumptions, PlanSetConstraints, PlanSetDefinitionOfDone, PlanSetDeliverables, PlanSetInvariants,
    PlanSetRisks,
};
use crate::tools::repo::{RepoFileDescriptionsUpdate, RepoSnapshot};
use crate::tools::steps::{PlanProposeSteps, PlanRefineSteps};
use crate::tools::submit::JobSubmitStepResult;
use crate::tools::templates::{TemplateApply, TemplateList, TemplateSave};
use crate::tools::tidy::{RepoFindStaleCandidates, RepoHygieneSuggest};

/// The tool table, with what every tool has in common.
macro_rules! entries {
    ($($tool:ty),+ $(,)?) => {
        &[$(entry::entry::<$tool>()),+]
    };
}

/// Definition of the pack.
pub const PACK: Pack = Pack {
    name: "conductor",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Plan a job in one thread, execute it step by step with evidence in another.",
    // Clients with all packs see the first 190 bytes or so: what executes a job comes first, then what plans one.
    instructions: "Execute JOB-…: job_start, then job_next_step_prompt, do exactly that step, job_submit_step_result, \
        until JOB_COMPLETE. Plan: conductor_init, conductor_answer, plan_propose_steps, job_set_ready. A job is \
        planned in one thread and executed in another that knows only its id. While planning, ask the user what the \
        questions ask; template_apply plans steps, too, and job_set_ready lists every gap with the call that closes \
        it. Submit the evidence that the prompt asks for. Do not claim MET while a criterion is not met: gates check \
        Git, files and commands. After a rejection fix what it names and submit again. job_get (through tool_call) \
        shows the state of a job.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("REPO_MAP.md"),
        Want::WorkspaceWrite("DEPRECATED.md"),
        Want::WorkspaceWrite("DEVLOG.md"),
        Want::Tests,
        Want::Git(GitAccess::Write),
    ],
    migrations: &[
        migration!("../../../migrations/conductor", "0001_init"),
        migration!("../../../migrations/conductor", "0002_repository"),
        migration!("../../../migrations/conductor", "0003_facts"),
        migration!("../../../migrations/conductor", "0004_commands"),
        migration!("../../../migrations/conductor", "0005_baselines"),
        migration!("../../../migrations/conductor", "0006_memory"),
        migration!("../../../migrations/conductor", "0007_gone"),
        migration!("../../../migrations/conductor", "0008_runs"),
    ],
    prompts: tollgate_sdk::prompts![PlanJob, ExecuteJob],
    tools: entries![
        ConductorInit,
        ConductorNextQuestions,
        ConductorAnswer,
        ContextAddBlock,
        ContextGetBlock,
        ContextUpdateBlock,
        ContextDeleteBlock,
        ContextSearch,
        PlanSetDeliverables,
        PlanSetInvariants,
        PlanSetConstraints,
        PlanSetAssumptions,
        PlanSetDefinitionOfDone,
        PlanSetRisks,
        PlanProposeSteps,
        PlanRefineSteps,
        JobSetReady,
        JobStart,
        JobNextStepPrompt,
        JobSubmitStepResult,
        JobPause,
        JobResume,
        JobFail,
        JobGet,
        JobList,
        JobArchive,
        JobDelete,
        JobUpdatePolicies,
        JobExportBundle,
        JobImport,
        StepApprove,
        StepRevokeApproval,
        DevlogAppend,
        DevlogList,
        DevlogExport,
        DecisionRecord,
        MistakeRecord,
        MistakeList,
        RepoSnapshot,
        RepoFileDescriptionsUpdate,
        RepoMapUpdate,
        RepoMapQuery,
        RepoMapExport,
        RepoFindStaleCandidates,
        RepoHygieneSuggest,
        RepoDocumentsWrite,
        GitStatus,
        GitDiffSummary,
        GitLog,
        GitCommit,
        GitBranch,
        GitTag,
        TemplateList,
        TemplateApply,
        TemplateSave,
    ],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
