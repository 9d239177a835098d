//! The tool table: names, descriptions, and schemas that every client takes.

use std::collections::BTreeSet;

use expect_test::expect_file;
use tollgate_kit_test::table;
use tollgate_sdk::{Effect, Pack, Tier};

const PACK: Pack = tasks::PACK;

/// Every tool that the contract names, and those that were added.
const NAMES: &str = "bootstrap batch block close_step close_task complete context context_pack contract create \
    decompose define delete delta done edit evidence_capture focus_clear focus_get focus_set handoff history lint \
    mirror move note patch plan progress radar redo resume resume_pack scaffold storage task_add task_define task_delete \
    templates_list undo verify next step_claim step_renew step_release template_save take show search workspaces";

#[test]
fn every_tool_of_the_contract_is_there() {
    let wanted: BTreeSet<String> = NAMES
        .split_whitespace()
        .map(|name| format!("tasks_{name}"))
        .collect();
    let there: BTreeSet<String> = PACK.tools.iter().map(|tool| tool.name.to_owned()).collect();
    assert_eq!(wanted, there);
}

#[test]
fn the_daily_tools_are_few() {
    let core: Vec<&str> = PACK
        .tools
        .iter()
        .filter(|tool| tool.tier == Tier::Core)
        .map(|tool| tool.name)
        .collect();
    for name in ["tasks_radar", "tasks_close_step", "tasks_bootstrap"] {
        assert!(core.contains(&name), "{name}");
    }
    let order = ["tasks_radar", "do the work", "tasks_close_step", "→ next"]
        .map(|word| PACK.instructions.find(word).unwrap());
    assert!(order.is_sorted(), "the instructions teach the loop in order");
}

#[test]
fn every_write_takes_a_revision_and_every_tool_a_workspace() {
    let without = [
        "tasks_batch",
        "tasks_focus_set",
        "tasks_focus_clear",
        "tasks_template_save",
        "tasks_take",
    ];
    for tool in PACK.tools {
        let properties = (tool.input_schema)()["properties"].clone();
        let lists_them = tool.name == "tasks_workspaces";
        assert_eq!(
            properties.get("workspace").is_some(),
            !lists_them,
            "{}",
            tool.name
        );
        if tool.effect == Effect::Write && !without.contains(&tool.name) {
            assert!(properties.get("expected_revision").is_some(), "{}", tool.name);
        }
    }
}

#[test]
fn every_client_takes_the_tools_and_few_are_core() {
    table(&PACK, 8, &expect_file!["snapshots/input_schemas.txt"]);
}
