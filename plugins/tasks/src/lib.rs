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
mod evidence;
mod guide;
mod lease;
mod limits;
mod model;
mod mutation;
mod named;
mod patch;
mod path;
mod prompts;
mod record;
mod redact;
mod reply;
mod run;
mod scope;
mod store;
mod target;
mod templates;
mod tools;
mod view;
mod work;
mod write;

use tollgate_sdk::{Pack, Want, config_schema, migration};

use crate::config::Config;
use crate::guide::entry;

/// The pack.
pub const PACK: Pack = Pack {
    name: "tasks",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Plans, tasks and steps for agents: explicit targets, checkpoint-gated completion, undo, one-screen views.",
    instructions: "The loop: tasks_radar (or tasks_next across the workspace) → do the work → tasks_evidence_capture → \
        tasks_close_step with the checkpoints that you checked → next. Start with tasks_bootstrap. Every call names \
        its `workspace`. Address steps by step_id, because paths such as s:0.s:1 move when steps are deleted. Pass \
        `expected_revision` from your last reply: REVISION_MISMATCH then lists what others changed. A refusal lists \
        every reason with the call that resolves it. Confirm a checkpoint only if it is met. tasks_resume_pack loads \
        the state into a fresh context; tasks_handoff reports it to the next worker.",
    migrations: &[
        migration!("../../../migrations/tasks", "0001_init"),
        migration!("../../../migrations/tasks", "0002_envelopes"),
        migration!("../../../migrations/tasks", "0003_priority"),
        migration!("../../../migrations/tasks", "0004_actors"),
    ],
    wants: &[Want::Artifacts, Want::LedgerQuery],
    tools: &[
        entry::<tools::create::Create>(),
        entry::<tools::create::Bootstrap>(),
        entry::<tools::context::Context>(),
        entry::<tools::edit::Edit>(),
        entry::<tools::focus::FocusGet>(),
        entry::<tools::focus::FocusSet>(),
        entry::<tools::focus::FocusClear>(),
        entry::<tools::steps::Decompose>(),
        entry::<tools::steps::Define>(),
        entry::<tools::place::Move>(),
        entry::<tools::progress::AddNote>(),
        entry::<tools::close::Verify>(),
        entry::<tools::progress::Done>(),
        entry::<tools::close::CloseStep>(),
        entry::<tools::views::Radar>(),
        entry::<tools::views::Delta>(),
        entry::<tools::lifecycle::Complete>(),
        entry::<tools::lifecycle::CloseTask>(),
        entry::<tools::edit::PatchTool>(),
        entry::<tools::steps::Delete>(),
        entry::<tools::progress::Progress>(),
        entry::<tools::progress::Block>(),
        entry::<tools::plan::PlanTool>(),
        entry::<tools::plan::Contract>(),
        entry::<tools::batch::Batch>(),
        entry::<tools::history::History>(),
        entry::<tools::history::Undo>(),
        entry::<tools::history::Redo>(),
        entry::<tools::evidence::EvidenceCapture>(),
        entry::<tools::resume::Resume>(),
        entry::<tools::resume::ResumePack>(),
        entry::<tools::views::ContextPack>(),
        entry::<tools::context::Mirror>(),
        entry::<tools::views::HandoffTool>(),
        entry::<tools::lint::Lint>(),
        entry::<tools::node::TaskAdd>(),
        entry::<tools::node::TaskDefine>(),
        entry::<tools::node::TaskDelete>(),
        entry::<tools::template::TemplatesList>(),
        entry::<tools::template::Scaffold>(),
        entry::<tools::template::TemplateSave>(),
        entry::<tools::storage::Storage>(),
        entry::<tools::lease::StepClaim>(),
        entry::<tools::lease::StepRenew>(),
        entry::<tools::lease::StepRelease>(),
        entry::<tools::next::Next>(),
        entry::<tools::take::Take>(),
        entry::<tools::show::Show>(),
        entry::<tools::search::Search>(),
        entry::<tools::workspaces::Workspaces>(),
    ],
    prompts: tollgate_sdk::prompts![prompts::ResumeWork],
    config_schema: Some(config_schema::<Config>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
