//! Edits of plans: what a call leaves out stays, and `clear` empties by name.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{check, refusal, reply, run, text};

/// A complete M01, and M02 after it with everything that can be planned.
fn planned() -> Session {
    let session = Session::new(&gsd::PACK);
    let milestone = json!({"milestone_id": "M02", "title": "Grow", "vision": "Wide", "depends_on": ["M01"],
        "success_criteria": ["fast"], "key_risks": ["load"], "definition_of_done": ["measured"], "slices": [
            {"slice_id": "S01", "title": "one", "risk": "high", "demo": "it runs", "goal": "Run."},
            {"slice_id": "S02", "title": "two", "depends": ["S01"]}]});
    let tasks = json!({"milestone_id": "M02", "slice_id": "S01", "tasks": [{"task_id": "T01", "title": "a", "description": "Do.",
        "estimate": "1h", "files": ["a.rs"], "verify": "make", "inputs": ["b"], "expected_output": ["c"]}]});
    run(
        &session,
        &format!(
            "- plan M01 S01
             - skip M01/S01
             - validate M01 pass
             - finish M01
             - gsd_plan_milestone {milestone}
             - gsd_plan_slice {tasks}"
        ),
    );
    session
}

/// The stored plans, one line for each unit.
fn stored(session: &Session) -> String {
    let rows = session.sql(
        "SELECT id || ' ' || title || '|' || status || '|' || vision || '|' || depends_on_json || '|' || success_criteria_json \
         || key_risks_json || definition_of_done_json FROM gsd_milestones WHERE id = 'M02' \
         UNION ALL SELECT id || ' ' || title || '|' || risk || '|' || depends_json || '|' || demo || '|' || goal \
         FROM gsd_slices WHERE milestone_id = 'M02' \
         UNION ALL SELECT id || ' ' || title || '|' || description || '|' || estimate || '|' || files_json || '|' || verify || '|' \
         || inputs_json || expected_output_json FROM gsd_tasks WHERE milestone_id = 'M02'",
    );
    let lines = rows.iter().map(|row| row.get::<String>(0).unwrap());
    lines.map(|line| line + "\n").collect()
}

#[test]
fn parking_and_renaming_change_nothing_else() {
    let session = planned();
    let before = stored(&session);
    expect![[r#"
        M02 Grow|active|Wide|["M01"]|["fast"]["load"]["measured"]
        S01 one|high|[]|it runs|Run.
        S02 two|medium|["S01"]||
        T01 a|Do.|1h|["a.rs"]|make|["b"]["c"]
    "#]]
    .assert_eq(&before);
    for line in [
        r#"gsd_plan_milestone {"milestone_id": "M02", "parked": true}"#,
        r#"gsd_plan_milestone {"milestone_id": "M02", "parked": false}"#,
        r#"gsd_plan_milestone {"milestone_id": "M02", "slices": [{"slice_id": "S01"}, {"slice_id": "S02"}]}"#,
        r#"gsd_plan_slice {"unit": "M02/S01", "tasks": [{"task_id": "T01"}]}"#,
        r#"gsd_plan_task {"unit": "M02/S01/T01"}"#,
    ] {
        run(&session, &format!("- {line}"));
    }
    assert_eq!(stored(&session), before);
    run(
        &session,
        r#"- gsd_plan_milestone {"milestone_id": "M02", "title": "Grow!", "slices": [{"slice_id": "S02", "title": "two!"}]}
           - gsd_plan_slice {"unit": "M02/S01", "tasks": [{"task_id": "T01", "title": "a!"}]}"#,
    );
    let renamed = before
        .replace("Grow", "Grow!")
        .replace(" two", " two!")
        .replace(" a|", " a!|");
    assert_eq!(stored(&session), renamed);
}

#[test]
fn a_dependency_holds_after_a_rename_and_its_reopening() {
    let session = planned();
    run(&session, "- reopen M01 not yet");
    run(
        &session,
        r#"- gsd_plan_milestone {"milestone_id": "M02", "title": "Renamed"}"#,
    );
    assert_eq!(
        refusal(&session, "start M02/S01/T01").code,
        "DEPENDENCY_INCOMPLETE"
    );
    run(
        &session,
        r#"- gsd_plan_milestone {"milestone_id": "M02", "clear": ["depends_on"]}
           - start M02/S01/T01"#,
    );
}

#[test]
fn clear_empties_by_name() {
    let session = planned();
    run(
        &session,
        r#"- gsd_plan_milestone {"milestone_id": "M02", "clear": ["vision", "key_risks"], "slices": [{"slice_id": "S02", "clear": ["depends"]}]}
           - gsd_plan_slice {"unit": "M02/S01", "clear": ["goal"], "tasks": [{"task_id": "T01", "clear": ["files", "description"]}]}"#,
    );
    expect![[r#"
        M02 Grow|active||["M01"]|["fast"][]["measured"]
        S01 one|high|[]|it runs|
        S02 two|medium|[]||
        T01 a||1h|[]|make|["b"]["c"]
    "#]]
    .assert_eq(&stored(&session));
}

#[test]
fn an_empty_value_empties_nothing_and_is_told() {
    let session = planned();
    let before = stored(&session);
    let planned = reply(
        &session,
        r#"gsd_plan_milestone {"milestone_id": "M02", "vision": " ", "depends_on": [], "slices": [{"slice_id": "S01", "goal": "", "depends": []}]}"#,
    );
    expect![[r#"["vision of M02 was not changed, because the call passed an empty value; to empty it, name it in clear","depends_on of M02 was not changed, because the call passed an empty value; to empty it, name it in clear","slices[0].goal of M02/S01 was not changed, because the call passed an empty value; to empty it, name it in slices[0].clear"]"#]]
        .assert_eq(&planned["warnings"].to_string());
    assert_eq!(stored(&session), before);
}

#[test]
fn what_clear_cannot_empty() {
    check(
        r#"gsd_plan_milestone {"milestone_id": "M01"}
           - plan M01 S01
           gsd_plan_milestone {"milestone_id": "M01", "vision": "x", "clear": ["title", "vision", "all\n"], "slices": [{"slice_id": "S02", "clear": ["risk"]}]}
           gsd_plan_slice {"unit": "M01/S01", "clear": ["tasks"], "tasks": [{"task_id": "T01"}]}"#,
        expect![[r#"
            err INVALID_ARGUMENTS: title is required for a new unit
            err INVALID_ARGUMENTS: clear[0] is `title`, not one of vision, depends_on, success_criteria, key_risks, definition_of_done; and 4 more reasons
              - INVALID_ARGUMENTS (clear[0]): clear[0] is `title`, not one of vision, depends_on, success_criteria, key_risks, definition_of_done
              - INVALID_ARGUMENTS (clear[2]): clear[2] is `all\n`, not one of vision, depends_on, success_criteria, key_risks, definition_of_done
              - INVALID_ARGUMENTS (vision): vision has a value, but is also named in clear
              - INVALID_ARGUMENTS (slices[0].title): slices[0].title is required for a new unit
              - INVALID_ARGUMENTS (slices[0].clear[0]): slices[0].clear[0] is `risk`, not one of depends, demo, goal
            err INVALID_ARGUMENTS: clear[0] is `tasks`, not one of goal; and 1 more reason
              - INVALID_ARGUMENTS (clear[0]): clear[0] is `tasks`, not one of goal
              - INVALID_ARGUMENTS (tasks[0].title): tasks[0].title is required for a new unit
        "#]],
    );
}

#[test]
fn a_unit_is_named_by_its_key_or_by_its_ids() {
    let session = planned();
    for arguments in [
        r#"{"unit": "M02/S01/T01"}"#,
        r#"{"milestone_id": "M02", "slice_id": "S01", "task_id": "T01"}"#,
        r#"{"unit": "M02/S01/T01", "milestone_id": "M02"}"#,
    ] {
        assert_eq!(
            reply(&session, &format!("gsd_task_start {arguments}"))["unit"],
            "M02/S01/T01"
        );
    }
    for (arguments, fault) in [
        (
            r#"{"unit": "M02/S01"}"#,
            "unit is M02/S01, not a task such as M01/S01/T01",
        ),
        (
            r#"{"unit": "T01"}"#,
            "unit is `T01`, not a key such as M01/S01/T01",
        ),
        (
            r#"{"unit": "M02/S01/T01", "slice_id": "S02"}"#,
            "unit is M02/S01/T01, but milestone_id, slice_id or task_id names another unit; pass only one of the two forms",
        ),
        (r#"{}"#, "unit is missing; pass a key, for example M01/S01/T01"),
    ] {
        let err = refusal(&session, &format!("gsd_task_start {arguments}"));
        assert!(err.message.contains(fault), "{err}");
    }
    // An event names the ids, whatever the call named.
    let events = reply(&session, "gsd_events {\"unit\": \"M02/S01/T01\"}");
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
    assert_eq!(
        events["events"][0]["params"],
        json!({"milestone_id": "M02", "slice_id": "S01", "task_id": "T01"})
    );
}

#[test]
fn the_older_name_of_the_actor_works() {
    let session = planned();
    run(
        &session,
        r#"- gsd_claim {"unit": "M02/S01", "actor_name": "ada"}"#,
    );
    let err = refusal(
        &session,
        r#"gsd_task_start {"unit": "M02/S01/T01", "actor": "bob", "actor_name": "ada"}"#,
    );
    assert_eq!(
        err.message,
        "actor differs from actor_name; pass one of them; and 1 more reason"
    );
    run(
        &session,
        r#"- gsd_task_start {"unit": "M02/S01/T01", "actor": "ada", "actor_name": "ada"}"#,
    );
    assert!(text(&session, "status").contains("started by ada"));
}
