//! The pack `gsd`: milestones, slices and tasks. Every change passes a guard, names its actor and can be
//! reversed.
//!
//! The pure functions in `guard` decide which changes are allowed. `act` is the frame of every change: check
//! in full, log, apply, audit, update the files. Files are projections; only gsd_import reads the logs among them.

mod act;
mod arguments;
mod config;
mod describe;
mod draw;
mod edit;
mod event_hash;
mod files;
mod grammar;
mod guard;
mod header;
mod keyed;
mod model;
mod next;
mod prompts;
mod refused;
mod replay;
mod standing;
mod store;
mod tools;
mod violation;

use tollgate_sdk::{Pack, Want, config_schema, migration};

use crate::config::Config;
use crate::keyed::Keyed;

/// The pack.
pub const PACK: Pack = Pack {
    name: "gsd",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Milestones, slices and tasks with guards on every change, claims, reopening and an audit log.",
    instructions: "A milestone (M01) has slices (S01), a slice has tasks (T01). Start with gsd_status: it shows the tree, \
        the next steps and what blocks the rest. The order is: gsd_plan_milestone with its slices, gsd_plan_slice with \
        its tasks, gsd_task_start and gsd_task_complete for each task, gsd_slice_complete, gsd_validate_milestone, \
        gsd_milestone_complete. A refusal lists every reason at once. Closed work does not change; gsd_task_reopen, \
        gsd_slice_reopen and gsd_milestone_reopen reopen it with a reason. Give your name in actor and your reason in \
        trigger_reason. Claim your work with gsd_claim when others work in the same workspace. gsd_show has all that \
        is stored about a unit.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite(".gsd/"),
        Want::LedgerQuery,
    ],
    migrations: &[
        migration!("../../../migrations/gsd", "0001_init"),
        migration!("../../../migrations/gsd", "0002_imported_events"),
        migration!("../../../migrations/gsd", "0003_removed_units"),
    ],
    tools: tollgate_sdk::tools![
        tools::status::ShowStatus,
        tools::roadmap::PlanMilestone,
        Keyed<tools::plan::PlanSlice>,
        Keyed<tools::plan::PlanTask>,
        Keyed<tools::start::StartTask>,
        Keyed<tools::complete::CompleteTask>,
        Keyed<tools::complete::CompleteSlice>,
        Keyed<tools::skip::SkipSlice>,
        tools::milestone::ValidateMilestone,
        tools::milestone::CompleteMilestone,
        tools::revise::ReassessRoadmap,
        Keyed<tools::revise::ReplanSlice>,
        Keyed<tools::reopen::ReopenTask>,
        Keyed<tools::reopen::ReopenSlice>,
        tools::reopen::ReopenMilestone,
        Keyed<tools::claim::ClaimUnit>,
        Keyed<tools::claim::ReleaseUnit>,
        tools::claim::ListClaims,
        tools::log::ListEvents,
        tools::log::ListAudit,
        tools::render::RenderFiles,
        tools::import::ImportLogs,
        tools::show::ShowUnit,
    ],
    prompts: tollgate_sdk::prompts![prompts::ResumeWork],
    config_schema: Some(config_schema::<Config>),
    render_tool: Some("gsd_render"),
};
tollgate_sdk::export_pack!(PACK);
