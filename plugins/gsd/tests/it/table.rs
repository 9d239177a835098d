//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::{expect, expect_file};
use tollgate_kit_test::{scopes, table};
use tollgate_sdk::Pack;

const PACK: Pack = gsd::PACK;

#[test]
fn every_client_takes_the_tools_and_few_are_core() {
    table(&PACK, 7, &expect_file!["snapshots/input_schemas.txt"]);
}

#[test]
fn swapped_names_are_aliases() {
    let aliases: Vec<String> = PACK
        .tools
        .iter()
        .flat_map(|tool| {
            tool.aliases
                .iter()
                .map(move |alias| format!("{alias} = {}", tool.name))
        })
        .collect();
    expect![[r#"
        gsd_milestone_plan = gsd_plan_milestone
        gsd_slice_plan = gsd_plan_slice
        gsd_task_plan = gsd_plan_task
        gsd_start_task = gsd_task_start
        gsd_complete_task = gsd_task_complete
        gsd_complete_slice = gsd_slice_complete
        gsd_skip_slice = gsd_slice_skip
        gsd_milestone_validate = gsd_validate_milestone
        gsd_complete_milestone = gsd_milestone_complete
        gsd_roadmap_reassess = gsd_reassess_roadmap
        gsd_slice_replan = gsd_replan_slice
        gsd_reopen_task = gsd_task_reopen
        gsd_reopen_slice = gsd_slice_reopen
        gsd_reopen_milestone = gsd_milestone_reopen
    "#]]
    .assert_eq(&(aliases.join("\n") + "\n"));
}

/// Declaring a scope is a decision: changes in different workspaces run side by side on a server, so neither may look at rows that
/// the other one changes. A read whose pages follow a number that all workspaces share is a feed.
#[test]
fn changes_in_different_workspaces_share_no_rows() {
    expect![[r#"
        gsd_status -
        gsd_plan_milestone ["workspace"]
        gsd_plan_slice ["workspace"]
        gsd_plan_task ["workspace"]
        gsd_task_start ["workspace"]
        gsd_task_complete ["workspace"]
        gsd_slice_complete ["workspace"]
        gsd_slice_skip ["workspace"]
        gsd_validate_milestone ["workspace"]
        gsd_milestone_complete ["workspace"]
        gsd_reassess_roadmap ["workspace"]
        gsd_replan_slice ["workspace"]
        gsd_task_reopen ["workspace"]
        gsd_slice_reopen ["workspace"]
        gsd_milestone_reopen ["workspace"]
        gsd_claim ["workspace"]
        gsd_release ["workspace"]
        gsd_claims -
        gsd_events feed
        gsd_audit_log feed
        gsd_render -
        gsd_import -
        gsd_show -
    "#]]
    .assert_eq(&scopes(&PACK));
}
