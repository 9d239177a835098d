//! The tool table: names, descriptions, and schemas that every client takes.

use std::collections::BTreeSet;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};
use tollgate_sdk::{Effect, Tier};

const PACK: tollgate_sdk::Pack = gsd::PACK;

#[test]
fn names_are_unique_and_plain() {
    let mut seen = BTreeSet::new();
    for tool in PACK.tools {
        assert!(seen.insert(tool.name), "{} twice", tool.name);
        let mut chars = tool.name.chars();
        assert!(
            chars.next().is_some_and(|c| c.is_ascii_lowercase()),
            "{}",
            tool.name
        );
        assert!(
            chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "{}",
            tool.name
        );
        assert!(tool.name.len() <= 40, "{}", tool.name);
        assert!((1..=40).contains(&tool.title.len()), "{}", tool.title);
    }
}

#[test]
fn few_tools_are_core_and_readers_are_not_destructive() {
    let core = PACK.tools.iter().filter(|tool| tool.tier == Tier::Core).count();
    assert!(core <= 7, "{core} tools are core");
    for tool in PACK.tools {
        assert!(
            tool.effect != Effect::Read || !tool.hints.destructive,
            "{}",
            tool.name
        );
    }
}

#[test]
fn every_tool_and_field_is_described() {
    for tool in PACK.tools {
        let schema = (tool.input_schema)();
        let description = schema["description"].as_str().unwrap_or_default();
        assert!((1..=1024).contains(&description.len()), "{}", tool.name);
        each_property(&schema, tool.name, &mut |path, property| {
            let described = property["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty());
            assert!(described, "{path} has no description");
        });
        each_property(&(tool.output_schema)(), tool.name, &mut |path, property| {
            let described = property["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty());
            assert!(described, "the output's {path} has no description");
        });
    }
}

/// Visits every property of a schema, however deep.
fn each_property(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        let path = format!("{path}.{name}");
        visit(&path, property);
        each_property(property, &path, visit);
    }
    if schema["items"].is_object() {
        each_property(&schema["items"], &format!("{path}[]"), visit);
    }
}

#[test]
fn schemas_are_what_every_client_takes() {
    for tool in PACK.tools {
        for schema in [(tool.input_schema)(), (tool.output_schema)()] {
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(
                schema.to_string().len() <= 16 * 1024,
                "{} is too large",
                tool.name
            );
            lint(&schema, tool.name, 0);
        }
        let input = (tool.input_schema)();
        assert_eq!(input["additionalProperties"], json!(false), "{}", tool.name);
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
        lint(property, &format!("{path}.{name}"), depth + 1);
    }
}

#[test]
fn the_schemas_as_clients_see_them() {
    let mut text = String::new();
    for tool in PACK.tools {
        let schema = serde_json::to_string_pretty(&(tool.input_schema)()).unwrap();
        text += &format!(
            "{} ({:?}, {:?}, destructive {}, idempotent {})\n{schema}\n\n",
            tool.name, tool.effect, tool.tier, tool.hints.destructive, tool.hints.idempotent
        );
    }
    let config = PACK.config_schema.unwrap()();
    text += &format!("config\n{}\n", serde_json::to_string_pretty(&config).unwrap());
    expect_file!["snapshots/input_schemas.txt"].assert_eq(&text);
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
