//! The pack `gsd`: milestones, slices and tasks whose every change passes a guard, names its actor and can be
//! reversed.
//!
//! What may happen is decided by the pure functions in `guard`; `act` is the frame that every change runs in:
//! check in full, log, apply, audit, bring the files up to date. Files are projections and never read.

mod act;
mod arguments;
mod config;
mod draw;
mod event_hash;
mod files;
pub mod grammar;
mod guard;
mod header;
mod model;
mod standing;
mod store;
mod tools;
mod violation;

use tollgate_sdk::{Pack, Want, config_schema, migration};

use crate::config::Config;
use crate::tools::claim::{ClaimUnit, ListClaims, ReleaseUnit};
use crate::tools::complete::{CompleteSlice, CompleteTask};
use crate::tools::log::{ListAudit, ListEvents};
use crate::tools::milestone::{CompleteMilestone, ValidateMilestone};
use crate::tools::plan::{PlanSlice, PlanTask};
use crate::tools::render::RenderFiles;
use crate::tools::reopen::{ReopenMilestone, ReopenSlice, ReopenTask};
use crate::tools::revise::{ReassessRoadmap, ReplanSlice};
use crate::tools::roadmap::PlanMilestone;
use crate::tools::skip::SkipSlice;
use crate::tools::start::StartTask;
use crate::tools::status::ShowStatus;

/// The pack.
pub const PACK: Pack = Pack {
    name: "gsd",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Milestones, slices and tasks with guards on every change, claims, reopening and an audit log.",
    instructions: "A milestone (M01) has slices (S01), a slice has tasks (T01). Begin with gsd_status: it shows the tree, \
        what to do next and what waits for what. The way: gsd_plan_milestone with its slices, gsd_plan_slice with its \
        tasks, then gsd_task_start and gsd_task_complete for each task, gsd_slice_complete, gsd_validate_milestone, \
        gsd_milestone_complete. A refusal lists every reason at once. Closed work never changes; gsd_task_reopen, \
        gsd_slice_reopen and gsd_milestone_reopen take it up again with a reason. Say who you are in actor_name and why \
        you act in trigger_reason; hold what you work on with gsd_claim when others work beside you.",
    wants: &[Want::WorkspaceRead("*"), Want::WorkspaceWrite(".gsd/")],
    migrations: &[migration!("../../../migrations/gsd", "0001_init")],
    tools: tollgate_sdk::tools![
        ShowStatus,
        PlanMilestone,
        PlanSlice,
        PlanTask,
        StartTask,
        CompleteTask,
        CompleteSlice,
        SkipSlice,
        ValidateMilestone,
        CompleteMilestone,
        ReassessRoadmap,
        ReplanSlice,
        ReopenTask,
        ReopenSlice,
        ReopenMilestone,
        ClaimUnit,
        ReleaseUnit,
        ListClaims,
        ListEvents,
        ListAudit,
        RenderFiles,
    ],
    config_schema: Some(config_schema::<Config>),
    render_tool: Some("gsd_render"),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
