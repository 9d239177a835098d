//! Roles: who may call what, and who may claim to be who.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_kit_test::Arguments;
use tollgate_sdk::Effect;
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, check_after, refusal, reply, run};

const ROLES: [&str; 6] = [
    "orchestrator",
    "executor",
    "spec_reviewer",
    "quality_reviewer",
    "gateway",
    "human",
];

/// Arguments that fit a tool's schema, whatever they mean.
fn arguments(tool: &str, review_type: &str, role: &str) -> Value {
    let mut arguments = Arguments::of(&["x"])
        .fixed("actor", json!("somebody"))
        .fixed("actor_role", json!(role));
    if !review_type.is_empty() {
        arguments = arguments.fixed("review_type", json!(review_type));
    }
    arguments.required(&task_store::PACK, tool)
}

fn may(session: &Session, tool: &str, review_type: &str, role: &str) -> bool {
    let arguments = arguments(tool, review_type, role).to_string();
    match session.call(tool, &arguments) {
        Ok(_) => true,
        Err(err) => {
            assert_ne!(err.code, "INVALID_ARGUMENTS", "{tool} {arguments}: {err}");
            err.code != "ROLE_FORBIDDEN"
        }
    }
}

#[test]
fn every_role_against_every_tool() {
    let session = Session::new(&task_store::PACK);
    let mut matrix = String::new();
    for tool in task_store::PACK.tools {
        let review_types = match tool.name {
            "task_append_review" => &["spec", "quality"][..],
            _ => &[""],
        };
        for review_type in review_types {
            let roles: Vec<_> = ROLES
                .into_iter()
                .filter(|role| may(&session, tool.name, review_type, role))
                .collect();
            matrix += &format!("{} {review_type}: {}\n", tool.name, roles.join(" "));
        }
    }
    expect![[r#"
        task_create : orchestrator
        task_update_spec : orchestrator
        task_get : orchestrator executor spec_reviewer quality_reviewer gateway human
        task_list : orchestrator executor spec_reviewer quality_reviewer gateway human
        task_list_ready : orchestrator executor spec_reviewer quality_reviewer gateway human
        task_list_approvals : orchestrator executor spec_reviewer quality_reviewer gateway human
        task_recover : orchestrator executor spec_reviewer quality_reviewer gateway human
        task_events : orchestrator executor spec_reviewer quality_reviewer gateway human
        task_transition : orchestrator
        task_open_circuit : orchestrator
        task_start_attempt : orchestrator
        task_finish_attempt : orchestrator executor
        task_record_checkpoint : orchestrator executor spec_reviewer quality_reviewer gateway
        task_record_artifact : orchestrator executor spec_reviewer quality_reviewer gateway
        task_append_review spec: spec_reviewer
        task_append_review quality: quality_reviewer
        task_request_approval : orchestrator gateway
        task_resolve_approval : gateway human
    "#]]
    .assert_eq(&matrix);
}

#[test]
fn a_forbidden_call_says_who_may() {
    check_after(
        EXECUTING,
        r#"
        task_transition {"task_id": "tsk_1", "from_phase": "executing", "to_phase": "spec_gate", "reason": "r", "actor": "hand", "actor_role": "executor"}
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "approved", "findings": [], "actor": "eye", "actor_role": "spec_reviewer"}
        task_resolve_approval {"task_id": "tsk_1", "approval_id": "apr_1", "resolution": "approved", "resolved_by": "boss", "actor": "boss", "actor_role": "orchestrator"}
        task_record_checkpoint {"task_id": "tsk_1", "checkpoint_type": "note", "payload": {}, "actor": "ada", "actor_role": "human"}
        task_get {"task_id": "tsk_1", "actor_role": "nobody"}
        "#,
        expect![[r#"
            err ROLE_FORBIDDEN: executor may not call task_transition {"role":"executor","tool":"task_transition","allowed_roles":["orchestrator"]} -> task_list {}
              - ROLE_FORBIDDEN (actor_role): executor may not call task_transition
            err ROLE_FORBIDDEN: spec_reviewer may not call task_append_review with review_type quality {"role":"spec_reviewer","tool":"task_append_review","allowed_roles":["quality_reviewer"]} -> task_list {}
              - ROLE_FORBIDDEN (actor_role): spec_reviewer may not call task_append_review with review_type quality
            err ROLE_FORBIDDEN: orchestrator may not call task_resolve_approval {"role":"orchestrator","tool":"task_resolve_approval","allowed_roles":["gateway","human"]} -> task_list {}
              - ROLE_FORBIDDEN (actor_role): orchestrator may not call task_resolve_approval
            err ROLE_FORBIDDEN: human may not call task_record_checkpoint {"role":"human","tool":"task_record_checkpoint","allowed_roles":["orchestrator","executor","spec_reviewer","quality_reviewer","gateway"]} -> task_list {}
              - ROLE_FORBIDDEN (actor_role): human may not call task_record_checkpoint
            err INVALID_ARGUMENTS: the arguments of task_get do not match the tool's input schema: `nobody` is not one of orchestrator, executor, spec_reviewer, quality_reviewer, gateway, human at line 1 column 44
        "#]],
    );
}

#[test]
fn tools_that_write_want_a_role_and_take_a_name() {
    let session = Session::new(&task_store::PACK);
    for tool in task_store::PACK.tools {
        for field in ["actor", "actor_role"] {
            let mut arguments = arguments(tool.name, "spec", "orchestrator");
            arguments.as_object_mut().unwrap().remove(field);
            let code = session
                .call(tool.name, &arguments.to_string())
                .map_err(|err| err.code);
            let refused = code == Err("INVALID_ARGUMENTS".to_owned());
            let is_wanted = tool.effect == Effect::Write && field == "actor_role";
            assert_eq!(refused, is_wanted, "{} without {field}", tool.name);
        }
    }
}

/// The name in an event: the argument, else the proven identity, else the role.
#[test]
fn an_event_has_the_best_name_that_is_known() {
    let session = Session::new(&task_store::PACK);
    let mut created = arguments("task_create", "", "orchestrator");
    created.as_object_mut().unwrap().remove("actor");
    reply(&session, &format!("task_create {created}"));
    session.set_identity("token:ada");
    reply(&session, &format!("task_create {created}"));
    created["actor"] = json!("bob");
    reply(&session, &format!("task_create {created}"));
    let events = reply(&session, "task_events");
    let actors: Vec<&Value> = (0..3).map(|place| &events["events"][place]["actor"]).collect();
    assert_eq!(actors, ["orchestrator", "token:ada", "bob"]);
}

fn bound() -> Session {
    Session::new(&task_store::PACK).config(&json!({"roles": {
        "human": {"identities": ["ada"]},
        "executor": {"clients": ["coder"]},
        "quality_reviewer": {},
    }}))
}

/// The roles that may read, and so be claimed.
fn claimable(session: &Session) -> String {
    let roles: Vec<_> = ROLES
        .into_iter()
        .filter(|role| may(session, "task_list", "", role))
        .collect();
    roles.join(" ")
}

#[test]
fn a_bound_role_belongs_to_its_binding() {
    let session = bound();
    assert_eq!(claimable(&session), "orchestrator spec_reviewer gateway");
    session.set_client("coder");
    assert_eq!(claimable(&session), "executor");
    session.set_identity("ada");
    assert_eq!(claimable(&session), "executor human");
    session.set_client("ada");
    assert_eq!(claimable(&session), "human");
    session.set_identity("eve");
    assert_eq!(claimable(&session), "orchestrator spec_reviewer gateway");
    // A role need not be claimed for reading.
    reply(&session, "task_list");
}

#[test]
fn a_misclaim_says_whose_the_role_is() {
    let session = bound();
    session.set_client("coder");
    let mut log = String::new();
    for (tool, role) in [
        ("task_create", "orchestrator"),
        ("task_resolve_approval", "human"),
        ("task_list", "gateway"),
    ] {
        log += &run(&session, &format!("{tool} {}", arguments(tool, "", role)));
    }
    session.set_client("stranger");
    let as_human = arguments("task_resolve_approval", "", "human");
    log += &run(&session, &format!("task_resolve_approval {as_human}"));
    expect![[r#"
        err ROLE_FORBIDDEN: this caller may not act as orchestrator in task_create {"role":"orchestrator","tool":"task_create","your_roles":["executor"]} -> task_list {}
          - ROLE_FORBIDDEN (actor_role): this caller may not act as orchestrator in task_create
        err ROLE_FORBIDDEN: this caller may not act as human in task_resolve_approval {"role":"human","tool":"task_resolve_approval","your_roles":["executor"]} -> task_list {}
          - ROLE_FORBIDDEN (actor_role): this caller may not act as human in task_resolve_approval
        err ROLE_FORBIDDEN: this caller may not act as gateway in task_list {"role":"gateway","tool":"task_list","your_roles":["executor"]} -> task_list {}
          - ROLE_FORBIDDEN (actor_role): this caller may not act as gateway in task_list
        err ROLE_FORBIDDEN: this caller may not act as human in task_resolve_approval {"role":"human","tool":"task_resolve_approval","bound_to":{"clients":[],"identities":["ada"]}} -> task_list {}
          - ROLE_FORBIDDEN (actor_role): this caller may not act as human in task_resolve_approval
    "#]].assert_eq(&log);
}

#[test]
fn wrong_role_and_wrong_claim_come_together() {
    let session = bound();
    session.set_client("coder");
    let arguments = arguments("task_transition", "", "human");
    let err = refusal(&session, &format!("task_transition {arguments}"));
    assert_eq!(err.blockers.len(), 2, "{err:?}");
}
