//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::expect_file;
use tollgate_kit_test::table;
use tollgate_sdk::{Effect, Pack, Tier};

const PACK: Pack = tasks::PACK;

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
