//! The tool table: names, descriptions, and schemas that every client takes.

use expect_test::{expect, expect_file};
use tollgate_kit_test::table;
use tollgate_sdk::{Effect, Pack};

const PACK: Pack = conductor::PACK;

#[test]
fn every_client_takes_the_tools_and_few_are_core() {
    table(&PACK, 8, &expect_file!["snapshots/input_schemas.txt"]);
}

/// A new tool that writes needs a decision: with the scope, it may only change rows of the job that it names, and may not
/// decide on rows of other jobs.
#[test]
fn every_tool_that_writes_has_a_scope_or_sees_no_other_call() {
    let mut log = String::new();
    for tool in PACK.tools {
        let schema = (tool.input_schema)();
        assert_eq!(
            schema.get("x-scope").is_some(),
            schema["x-scope-folds"] == true,
            "ids of any case name one job: {}",
            tool.name
        );
        match (tool.effect, schema.get("x-scope"), schema.get("x-feed")) {
            (Effect::Write, Some(scope), _) => log += &format!("{} {scope}\n", tool.name),
            (Effect::Write, None, _) => log += &format!("{} alone\n", tool.name),
            (_, None, Some(_)) => log += &format!("{} feed\n", tool.name),
            (_, scope, _) => assert_eq!(scope, None, "{}", tool.name),
        }
    }
    expect![[r#"
        conductor_next_questions ["job_id"]
        context_add_block ["job_id"]
        context_update_block ["job_id"]
        context_delete_block ["job_id"]
        plan_set_deliverables ["job_id"]
        plan_set_invariants ["job_id"]
        plan_set_constraints ["job_id"]
        plan_set_assumptions ["job_id"]
        plan_set_definition_of_done ["job_id"]
        plan_set_risks ["job_id"]
        plan_propose_steps ["job_id"]
        plan_refine_steps ["job_id"]
        job_next_step_prompt ["job_id"]
        job_pause ["job_id"]
        job_resume ["job_id"]
        job_fail ["job_id"]
        job_archive ["job_id"]
        job_delete alone
        job_update_policies ["job_id"]
        job_import alone
        step_approve ["job_id"]
        step_revoke_approval ["job_id"]
        devlog_append ["job_id"]
        decision_record ["job_id"]
        mistake_record ["job_id"]
        mistake_list feed
        repo_file_descriptions_update alone
        repo_documents_write alone
        template_apply ["job_id"]
        template_save alone
    "#]]
    .assert_eq(&log);
}
