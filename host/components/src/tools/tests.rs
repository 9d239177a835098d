//! Tests of declarations in schemas.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::effect::Effect;

use super::declared::take;
use super::host_tool::{HostTool, HostTools};
use super::resource::MAX_ADDRESS;
use super::spec::{Tier, ToolSpec};
use super::values::{Values, check_source};

pub(super) fn spec(schema: Value) -> ToolSpec {
    ToolSpec {
        name: "job_export".to_owned(),
        title: "Export".to_owned(),
        description: "Export a job.".to_owned(),
        effect: Effect::Read,
        tier: Tier::Core,
        destructive: false,
        idempotent: true,
        open_world: false,
        members: None,
        input_schema: schema.as_object().unwrap().clone(),
        output_schema: Arc::default(),
        aliases: Vec::new(),
    }
}

fn declaring(path: &str) -> ToolSpec {
    spec(json!({"type": "object",
    "x-resources": [{"path": path, "name": "job", "title": "A job", "description": "It.", "arguments": {"format": "md"}}],
    "properties": {
        "job_id": {"type": "string", "x-values": {"tool": "job_list", "items": "jobs", "value": "id"}},
        "part": {"type": "integer"},
        "format": {"type": "string", "enum": ["md", "json"]},
    }}))
}

#[test]
fn addresses_are_read_and_written() {
    let mut spec = declaring("jobs/{job_id}.md{?part}");
    let declared = take("conductor", &mut spec).unwrap();
    assert!(!Value::Object(spec.input_schema).to_string().contains("x-"));
    assert!(matches!(&declared.values["format"], Values::Words(words) if words.len() == 2));
    assert!(matches!(&declared.values["job_id"], Values::Listed(source) if source.tool == "job_list"));
    let job = &declared.resources[0];
    assert_eq!(job.template(), "tollgate://conductor/jobs/{job_id}.md{?part}");
    let address = job.address("a/b é");
    assert_eq!(address, "tollgate://conductor/jobs/a%2Fb%20%C3%A9.md");
    let arguments = job.arguments(&address).unwrap();
    assert_eq!(
        Value::Object(arguments.clone()),
        json!({"format": "md", "job_id": "a/b é"})
    );
    let next = job.continued(&arguments, "part", &json!(2)).unwrap();
    let asked = job.arguments(&next).unwrap();
    assert_eq!(
        Value::Object(asked),
        json!({"format": "md", "job_id": "a/b é", "part": 2})
    );
    assert_eq!(job.continued(&arguments, "cursor", &json!(2)), None);
    let text = job.arguments("tollgate://conductor/jobs/x.md?part=two").unwrap();
    assert_eq!(text["part"], "two", "the tool says what is wrong with it");
}

const HOST_TOOLS: &[HostTool] = &[
    host_tool("ledger_query", false),
    host_tool("envelope_open", false),
    host_tool("envelope_list", true),
];

const fn host_tool(name: &'static str, lists_values: bool) -> HostTool {
    HostTool {
        name,
        spec: || spec(json!({})),
        discovers: false,
        lists_values,
    }
}

#[test]
fn values_are_listed_by_a_reader_of_the_pack_itself() {
    let named = |name: &str, effect: Effect| ToolSpec {
        name: name.to_owned(),
        effect,
        ..spec(json!({}))
    };
    let tools = [named("job_list", Effect::Read), named("job_start", Effect::Run)];
    let check = |tool: &str| {
        let source = json!({"tool": tool, "items": "jobs", "value": "id"});
        check_source(
            &tools,
            HostTools(HOST_TOOLS),
            &serde_json::from_value(source).unwrap(),
        )
    };
    assert_eq!((check("job_list"), check("envelope_list")), (Ok(()), Ok(())));
    for tool in [
        "job_start",
        "task_list",
        "tool_call",
        "ledger_query",
        "envelope_open",
        "",
    ] {
        let why = check(tool).unwrap_err();
        assert!(why.contains(tool) && why.contains("envelope_list"), "{why}");
    }
}

#[test]
fn only_members_inherit() {
    let schema =
        || json!({"type": "object", "properties": {"workspace": {"type": "string", "x-inherited": true}}});
    let mut batch = ToolSpec {
        members: Some("operations".to_owned()),
        ..spec(schema())
    };
    assert_eq!(take("tasks", &mut batch).unwrap().inherited, ["workspace"]);
    assert!(!Value::Object(batch.input_schema).to_string().contains("x-"));
    assert!(take("tasks", &mut spec(schema())).is_err());
}

#[test]
fn what_is_no_address_of_it_is_none() {
    let declared = take("conductor", &mut declaring("jobs/{job_id}.md{?part}")).unwrap();
    for address in [
        "",
        "tollgate://conductor/jobs/.md",
        "tollgate://conductor/jobs/x.json",
        "tollgate://conductor/jobs/x.md/",
        "tollgate://conductor/jobs/a/b.md",
        "tollgate://conductor/jobs/x.md?part",
        "tollgate://conductor/jobs/x.md?part=",
        "tollgate://conductor/jobs/x.md?part=1&part=2",
        "tollgate://conductor/jobs/x.md?format=json",
        "tollgate://conductor/jobs/%ff.md",
        "tollgate://conductorx/jobs/x.md",
        "file:///etc/passwd",
    ] {
        assert_eq!(declared.resources[0].arguments(address), None, "{address}");
    }
    let long = format!("tollgate://conductor/jobs/{}.md", "x".repeat(MAX_ADDRESS));
    assert_eq!(declared.resources[0].arguments(&long), None);
}

#[test]
fn declarations_that_cannot_be_are_named() {
    for path in [
        "",
        "/x",
        "a//b",
        "{job_id",
        "x{?part",
        "{id}",
        "a b",
        "{job_id}{part}",
    ] {
        let problems = take("conductor", &mut declaring(path)).unwrap_err();
        assert!(
            problems[0].starts_with("tool job_export: x-resources"),
            "{problems:?}"
        );
    }
    let mut writes = declaring("x");
    writes.effect = Effect::Write;
    assert!(take("conductor", &mut writes).is_err());
    let mut nonsense =
        spec(json!({"type": "object", "x-resources": 1, "properties": {"a": {"x-values": []}}}));
    assert_eq!(take("conductor", &mut nonsense).unwrap_err().len(), 2);
}
