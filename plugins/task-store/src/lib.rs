//! The pack `task-store`: the canonical state of each task in a team of agents.
//!
//! A task moves through phases along legal transitions only. Each transition has conditions on stored
//! evidence: attempts, reviews, approvals. Roles separate reviewers from deciders, and every change adds one
//! event to an append-only log.
//!
//! Pure functions in `phase`, `role`, `retry` and `config` decide what is legal. The tools gather their facts
//! and apply their decisions.

mod arguments;
mod asked;
mod caller;
mod condition;
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
mod worker;

use tollgate_sdk::{Pack, Want, config_schema, migration};

use crate::config::Config;

/// The pack.
pub const PACK: Pack = Pack {
    name: "task-store",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Canonical task state: phases, attempts, reviews, approvals and an append-only event log.",
    instructions: "Tasks move spec_draft → spec_review → execution_ready → executing → spec_gate → quality_gate → \
        completed. The other phases are awaiting_approval, ready_to_resume, circuit_open and failed. Only an \
        orchestrator moves tasks, with task_transition. Give your name in `actor` and your role in `actor_role`; claim \
        only a role that you were given. Call task_recover first for a task that you do not know: it shows the latest \
        record of each kind, and each legal transition as a complete call. A refusal lists all its reasons at once.",
    wants: &[Want::LedgerQuery, Want::Budget(tools::approval::APPROVALS_BUDGET)],
    migrations: &[
        migration!("../../../migrations/task-store", "0001_init"),
        migration!("../../../migrations/task-store", "0002_circuits_and_workers"),
        migration!(
            "../../../migrations/task-store",
            "0003_reviews_approvals_and_resets"
        ),
    ],
    tools: tollgate_sdk::tools![
        tools::create::TaskCreate,
        tools::create::TaskUpdateSpec,
        tools::show::TaskGet,
        tools::list::TaskList,
        tools::ready::TaskListReady,
        tools::approvals::TaskListApprovals,
        tools::recover::TaskRecover,
        tools::show::TaskEvents,
        tools::transition::TaskTransition,
        tools::transition::TaskOpenCircuit,
        tools::attempt::TaskStartAttempt,
        tools::attempt_end::TaskFinishAttempt,
        tools::record::TaskRecordCheckpoint,
        tools::record::TaskRecordArtifact,
        tools::record::TaskAppendReview,
        tools::approval::TaskRequestApproval,
        tools::approval::TaskResolveApproval,
    ],
    config_schema: Some(config_schema::<Config>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
