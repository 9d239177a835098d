//! The pack `task-store`: the one place that knows where each task of a team of agents stands.
//!
//! A task moves through phases along legal edges only, each edge under conditions that stored
//! evidence has to meet: attempts, reviews, approvals. Roles keep those who judge apart from those who
//! decide, and every change leaves one event in a log that is only ever appended to.
//!
//! What is legal is decided by pure functions in `phase`, `role`, `retry` and `config`; the tools
//! gather facts for them and apply what they say.

mod arguments;
mod caller;
mod config;
mod error;
mod model;
mod phase;
mod retry;
mod role;
mod spec;
mod spec_markdown;
mod store;
mod tools;

use tollgate_sdk::{Pack, config_schema, migration};

use crate::config::Config;
use crate::tools::approval::{TaskRequestApproval, TaskResolveApproval};
use crate::tools::attempt::{TaskFinishAttempt, TaskStartAttempt};
use crate::tools::create::{TaskCreate, TaskUpdateSpec};
use crate::tools::list::{TaskList, TaskListReady};
use crate::tools::record::{TaskAppendReview, TaskRecordArtifact, TaskRecordCheckpoint};
use crate::tools::recover::TaskRecover;
use crate::tools::show::{TaskEvents, TaskGet};
use crate::tools::transition::{TaskOpenCircuit, TaskTransition};

/// The pack.
pub const PACK: Pack = Pack {
    name: "task-store",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Canonical task state: phases, attempts, reviews, approvals and an append-only event log.",
    instructions: "Tasks move spec_draft → spec_review → execution_ready → executing → spec_gate → quality_gate → \
        completed; the other phases are awaiting_approval, ready_to_resume, circuit_open and failed. Only an \
        orchestrator moves them, with task_transition. Say who you are in `actor` and which part you play in \
        `actor_role`; do not claim a role you were not given. Call task_recover first when you come to a task \
        you do not know: it has the latest of everything and each legal move as a ready call. A refusal \
        lists all its reasons at once.",
    migrations: &[migration!("../../../migrations/task-store", "0001_init")],
    tools: tollgate_sdk::tools![
        TaskCreate,
        TaskUpdateSpec,
        TaskGet,
        TaskList,
        TaskListReady,
        TaskRecover,
        TaskEvents,
        TaskTransition,
        TaskOpenCircuit,
        TaskStartAttempt,
        TaskFinishAttempt,
        TaskRecordCheckpoint,
        TaskRecordArtifact,
        TaskAppendReview,
        TaskRequestApproval,
        TaskResolveApproval,
    ],
    config_schema: Some(config_schema::<Config>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
