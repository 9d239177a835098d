//! The pack `tasks`: plans, tasks and trees of steps that close only with confirmed checkpoints.
//!
//! State is a set of records. Every write goes through `write::Write`, which plans records and events and
//! applies them together with the journal and the revision. Optimistic concurrency, undo and the event stream
//! are therefore the same for every tool, and a refused call has written nothing.

mod budget;
mod build;
mod check;
mod checkpoint;
mod closing;
mod config;
mod dependency;
mod error;
mod lease;
mod limits;
mod model;
mod mutation;
mod patch;
mod path;
mod record;
mod redact;
mod reply;
mod scope;
mod store;
mod target;
mod templates;
mod tools;
mod view;
mod write;

use tollgate_sdk::{Pack, Want, config_schema, migration};

use crate::config::Config;

/// The pack.
pub const PACK: Pack = Pack {
    name: "tasks",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Plans, tasks and steps for agents: explicit targets, checkpoint-gated completion, undo, one-screen views.",
    instructions: "The loop: tasks_radar (or tasks_next across the workspace) → do the work → tasks_evidence_capture → \
        tasks_close_step with the checkpoints that you checked → next. Start with tasks_bootstrap. Every call names its \
        `workspace`. Address steps by step_id, because paths such as s:0.s:1 move when steps are deleted. Pass \
        `expected_revision` from your last reply: REVISION_MISMATCH then lists what others changed. A refusal lists \
        every reason with the call that resolves it. Confirm a checkpoint only if it holds. tasks_resume_pack loads the \
        state into a fresh context; tasks_handoff reports it to the next worker.",
    migrations: &[
        migration!("../../../migrations/tasks", "0001_init"),
        migration!("../../../migrations/tasks", "0002_envelopes"),
        migration!("../../../migrations/tasks", "0004_actors"),
    ],
    wants: &[Want::Artifacts],
    tools: tollgate_sdk::tools![
        tools::create::Create,
        tools::create::Bootstrap,
        tools::context::Context,
        tools::edit::Edit,
        tools::focus::FocusGet,
        tools::focus::FocusSet,
        tools::focus::FocusClear,
        tools::steps::Decompose,
        tools::steps::Define,
        tools::place::Move,
        tools::progress::AddNote,
        tools::close::Verify,
        tools::progress::Done,
        tools::close::CloseStep,
        tools::views::Radar,
        tools::views::Delta,
        tools::lifecycle::Complete,
        tools::lifecycle::CloseTask,
        tools::edit::PatchTool,
        tools::steps::Delete,
        tools::progress::Progress,
        tools::progress::Block,
        tools::plan::PlanTool,
        tools::plan::Contract,
        tools::batch::Batch,
        tools::history::History,
        tools::history::Undo,
        tools::history::Redo,
        tools::evidence::EvidenceCapture,
        tools::resume::Resume,
        tools::resume::ResumePack,
        tools::views::ContextPack,
        tools::context::Mirror,
        tools::views::HandoffTool,
        tools::lint::Lint,
        tools::node::TaskAdd,
        tools::node::TaskDefine,
        tools::node::TaskDelete,
        tools::template::TemplatesList,
        tools::template::Scaffold,
        tools::template::TemplateSave,
        tools::storage::Storage,
        tools::lease::StepClaim,
        tools::lease::StepRenew,
        tools::lease::StepRelease,
        tools::next::Next,
    ],
    config_schema: Some(config_schema::<Config>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
