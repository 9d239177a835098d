//! Templates.

use expect_test::expect;
use serde_json::json;

use crate::harness::{Bench, no_faults, result, step};

#[test]
fn every_built_in_template_makes_a_job_ready() {
    let bench = Bench::new();
    let list = bench.reply("template_list", json!({}));
    let mut names = Vec::new();
    for template in list["templates"].as_array().unwrap() {
        let bench = Bench::new();
        bench.run(r#"- conductor_answer {"answers": {"deliverables": ["x"]}}"#);
        bench.reply("conductor_answer", json!({"answers": no_faults()}));
        let variables: serde_json::Map<_, _> = template["variables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| (name.as_str().unwrap().to_owned(), json!("the exporter")))
            .collect();
        let applied = bench.reply(
            "template_apply",
            json!({"name": template["name"], "variables": variables}),
        );
        assert!(!applied.to_string().contains("{{"), "{applied}");
        bench.run("- job_set_ready {}");
        names.push(template["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        names,
        [
            "strict_feature",
            "tdd_loop",
            "bug_fix",
            "refactor",
            "docs",
            "dependency_upgrade",
            "pre_merge_checklist",
            "debug_checklist"
        ]
    );
}

#[test]
fn variables_are_checked_all_at_once() {
    let log = Bench::new().run(
        r#"
        template_apply {"name": "docs", "variables": {"topc": "x", "audience": " "}}
        template_apply {"name": "none"}
        template_list {"name": "tdd_loop"} ? templates.0.variables templates.0.steps templates.0.source
        template_list {"name": "none"}
        "#,
    );
    expect![[r#"
        err INVALID_ARGUMENTS: variables.audience is blank; and 2 more reasons
          - INVALID_ARGUMENTS (variables.audience): variables.audience is blank
          - VARIABLE_MISSING (variables): the variable topic has no value
          - INVALID_ARGUMENTS (variables.topc): variables.topc is not a variable of docs
        err NOT_FOUND: there is no template none
          - NOT_FOUND: there is no template none
        ok templates.0.variables=["behaviour"] templates.0.steps=["Red: a failing test for {{behaviour}}","Green: minimal code for {{behaviour}}","Refactor"] templates.0.source="built-in"
        err NOT_FOUND: there is no template none
          - NOT_FOUND: there is no template none
    "#]].assert_eq(&log);
}

#[test]
fn a_finished_job_becomes_a_template() {
    let bench = Bench::new().started(json!([step("Export reports as CSV", json!([]))]));
    let mut log = bench.run(r#"template_save {"name": "Bad Name", "summary": " ", "variables": {"X": "y"}}"#);
    bench.run("- job_next_step_prompt {}");
    bench.reply("job_submit_step_result", result("S1"));
    log += &bench.run(
        r#"
        template_save {"name": "docs", "summary": "taken"}
        template_save {"name": "odd", "summary": "Odd", "variables": {"what": "reports", "none": "XLS"}}
        template_save {"name": "export", "summary": "An exporter", "variables": {"what": "reports", "how": "CSV"}} ? variables steps
        template_save {"name": "export", "summary": "Again"}
        template_save {"name": "export", "summary": "An exporter", "variables": {"what": "reports", "how": "CSV"}, "replace": true} ? variables
        "#,
    );
    let next = bench.reply("conductor_init", json!({"title": "Next", "goal": "Go on"}))["job_id"].clone();
    let applied = json!({"job_id": next, "name": "export", "variables": {"what": "invoices", "how": "XML"}});
    let chain = bench.reply("template_apply", applied);
    log += &format!("{} {}\n", chain["steps"][0]["title"], chain["status"]);
    expect![[r#"
        err INVALID_ARGUMENTS: name must consist of lower-case letters, digits and `_`; and 3 more reasons
          - INVALID_ARGUMENTS (name): name must consist of lower-case letters, digits and `_`
          - INVALID_ARGUMENTS (summary): summary is blank
          - INVALID_ARGUMENTS (variables.X): variables.X is not a valid name of a variable
          - INVALID_ARGUMENTS (job_id): job_id must be a finished job, but its status is EXECUTING
        err TEMPLATE_EXISTS: template docs already exists and is built in
          - TEMPLATE_EXISTS (name): template docs already exists and is built in
        err INVALID_ARGUMENTS: variables.none has a text that does not occur in the plan of the job
          - INVALID_ARGUMENTS (variables.none): variables.none has a text that does not occur in the plan of the job
        ok variables=["how","what"] steps=["Export {{what}} as {{how}}"]
        err TEMPLATE_EXISTS: template export already exists
          - TEMPLATE_EXISTS (name): template export already exists
        ok variables=["how","what"]
        "Export invoices as XML" "PLANNING"
    "#]]
    .assert_eq(&log);
}
