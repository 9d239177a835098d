//! The tool table: names, descriptions, and schemas that every client takes.

use std::collections::BTreeSet;

use serde_json::Value;
use tollgate_sdk::{Effect, Tier};

const PACK: tollgate_sdk::Pack = tasks::PACK;

/// Every tool that the contract names, and those that were added.
const NAMES: &str = "bootstrap batch block close_step close_task complete context context_pack contract create \
    decompose define delete delta done edit evidence_capture focus_clear focus_get focus_set handoff history lint \
    mirror note patch plan progress radar redo resume resume_pack scaffold storage task_add task_define task_delete \
    templates_list undo verify next step_claim step_renew step_release template_save";

#[test]
fn every_tool_of_the_contract_is_there() {
    let wanted: BTreeSet<String> = NAMES
        .split_whitespace()
        .map(|name| format!("tasks_{name}"))
        .collect();
    let there: BTreeSet<String> = PACK.tools.iter().map(|tool| tool.name.to_owned()).collect();
    assert_eq!(wanted, there);
    assert_eq!(PACK.tools.len(), 45);
}

#[test]
fn the_daily_tools_are_few() {
    let core: Vec<&str> = PACK
        .tools
        .iter()
        .filter(|tool| tool.tier == Tier::Core)
        .map(|tool| tool.name)
        .collect();
    assert!(core.len() <= 8, "{core:?}");
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
    ];
    for tool in PACK.tools {
        let properties = (tool.input_schema)()["properties"].clone();
        assert!(properties.get("workspace").is_some(), "{}", tool.name);
        if tool.effect == Effect::Write && !without.contains(&tool.name) {
            assert!(properties.get("expected_revision").is_some(), "{}", tool.name);
        }
    }
}

#[test]
fn schemas_are_described_and_what_every_client_takes() {
    for tool in PACK.tools {
        let input = (tool.input_schema)();
        let description = input["description"].as_str().unwrap_or_default();
        assert!((1..=1024).contains(&description.len()), "{}", tool.name);
        for schema in [input, (tool.output_schema)()] {
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(
                schema.to_string().len() <= 16 * 1024,
                "{} is too large",
                tool.name
            );
            lint(&schema, tool.name, 0);
        }
    }
}

fn lint(schema: &Value, path: &str, depth: usize) {
    assert!(depth <= 5, "{path} is too deep");
    for key in [
        "oneOf", "anyOf", "allOf", "$ref", "$defs", "$schema", "not", "const",
    ] {
        assert_eq!(schema.get(key), None, "{path} has {key}");
    }
    let kind = schema["type"].as_str();
    assert!(kind.is_some(), "{path} has no single type: {schema}");
    if kind == Some("array") {
        lint(&schema["items"], &format!("{path}[]"), depth + 1);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let described = property["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        assert!(described, "{path}.{name} has no description");
        lint(property, &format!("{path}.{name}"), depth + 1);
    }
}
