//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::{expect, expect_file};
use tollgate_kit_test::table;
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
