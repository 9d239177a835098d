//! The pack `tasks`: plans, tasks and trees of steps whose completion wants confirmed checkpoints.
//!
//! State is a set of records. Every write goes through `write::Write`: it plans records and events, and
//! applies them together with the journal and the revision. So optimistic concurrency, undo and the stream of
//! events are the same for every tool, and a refused call has written nothing.

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
use crate::tools::batch::Batch;
use crate::tools::close::{CloseStep, Verify};
use crate::tools::context::{Context, Mirror};
use crate::tools::create::{Bootstrap, Create};
use crate::tools::edit::{Edit, PatchTool};
use crate::tools::evidence::EvidenceCapture;
use crate::tools::focus::{FocusClear, FocusGet, FocusSet};
use crate::tools::history::{History, Redo, Undo};
use crate::tools::lease::{StepClaim, StepRelease, StepRenew};
use crate::tools::lifecycle::{CloseTask, Complete};
use crate::tools::lint::Lint;
use crate::tools::next::Next;
use crate::tools::node::{TaskAdd, TaskDefine, TaskDelete};
use crate::tools::plan::{Contract, PlanTool};
use crate::tools::progress::{AddNote, Block, Done, Progress};
use crate::tools::resume::{Resume, ResumePack};
use crate::tools::steps::{Decompose, Define, Delete};
use crate::tools::storage::Storage;
use crate::tools::template::{Scaffold, TemplateSave, TemplatesList};
use crate::tools::views::{ContextPack, Delta, HandoffTool, Radar};

/// The pack.
pub const PACK: Pack = Pack {
    name: "tasks",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Plans, tasks and steps for agents: explicit targets, checkpoint-gated completion, undo, one-screen views.",
    instructions: "The loop: tasks_radar shows what is at hand (or tasks_next, what is ready across the workspace) → do the \
        work → tasks_evidence_capture what shows it → tasks_close_step with the checkpoints you checked → next. Start \
        with tasks_bootstrap. Every call names its `workspace`. Name steps by step_id; paths such as s:0.s:1 move when \
        steps are deleted. Pass `expected_revision` from the last reply: REVISION_MISMATCH then says what \
        others changed. A refusal lists every reason with the call that removes it. Confirm a checkpoint only if it \
        holds. tasks_resume_pack brings a fresh context up to date; tasks_handoff is for whoever comes next.",
    migrations: &[
        migration!("../../../migrations/tasks", "0001_init"),
        migration!("../../../migrations/tasks", "0002_envelopes"),
    ],
    wants: &[Want::Artifacts],
    tools: tollgate_sdk::tools![
        Create,
        Bootstrap,
        Context,
        Edit,
        FocusGet,
        FocusSet,
        FocusClear,
        Decompose,
        Define,
        AddNote,
        Verify,
        Done,
        CloseStep,
        Radar,
        Delta,
        Complete,
        CloseTask,
        PatchTool,
        Delete,
        Progress,
        Block,
        PlanTool,
        Contract,
        Batch,
        History,
        Undo,
        Redo,
        EvidenceCapture,
        Resume,
        ResumePack,
        ContextPack,
        Mirror,
        HandoffTool,
        Lint,
        TaskAdd,
        TaskDefine,
        TaskDelete,
        TemplatesList,
        Scaffold,
        TemplateSave,
        Storage,
        StepClaim,
        StepRenew,
        StepRelease,
        Next,
    ],
    config_schema: Some(config_schema::<Config>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
