//! Tests of the policy, without a host.

use tollgate_sdk::native::Judge;
use tollgate_sdk::{NextCall, Operation};

use super::*;

const MINUTE: i64 = 60_000;

fn deploy(at: i64) -> Request {
    let arguments = r#"{"to": "production", "task_id": "t1", "attempt_id": "a1", "actor": "ada",
        "actor_role": "orchestrator"}"#;
    Request {
        at,
        ..Request::of("job_deploy", arguments)
    }
}

fn said(judge: &Judge<SideEffectApproval>, at: i64) -> (String, Option<NextCall>) {
    match judge.before(&deploy(at)).verdict {
        Verdict::Pass => ("pass".to_owned(), None),
        Verdict::Deny(denial) => (denial.code, denial.next_call),
        Verdict::Ask(question) => (
            format!("ask, else {}", question.otherwise.code),
            question.otherwise.next_call,
        ),
        Verdict::Amend(_) => panic!("it amends nothing"),
    }
}

fn resolve(judge: &Judge<SideEffectApproval>, asked: &NextCall, status: &str, at: i64) -> Review {
    resolve_from(None, judge, asked, status, at)
}

fn resolve_from(
    client: Option<&str>,
    judge: &Judge<SideEffectApproval>,
    asked: &NextCall,
    status: &str,
    at: i64,
) -> Review {
    let request = Request {
        at,
        client: client.map(str::to_owned),
        ..Request::of(RESOLVE_TOOL, "{}")
    };
    let mut approval = asked.arguments.clone();
    approval.insert("status".to_owned(), status.into());
    approval.insert("resolved_by".to_owned(), "grace".into());
    let outcome = Outcome {
        success: true,
        error_code: None,
        body: json!({ "approval": approval }),
        text: None,
        duration_ms: 1,
    };
    judge.after(&request, &outcome).verdict
}

#[test]
fn an_approval_lets_one_call_through() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
    let (code, asked) = said(&judge, 0);
    assert_eq!(code, "APPROVAL_REQUIRED");
    assert_eq!(resolve(&judge, &asked.unwrap(), "approved", MINUTE), Review::Pass);
    assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
    judge.session().set_operations(vec![Operation {
        tool: "job_deploy".to_owned(),
        args_hash: deploy(0).args_hash,
        at_ms: 2 * MINUTE,
        success: Some(true),
        ..Operation::default()
    }]);
    let (code, asked) = said(&judge, 3 * MINUTE);
    assert_eq!(code, "APPROVAL_REQUIRED");
    assert!(
        asked.unwrap().arguments["idempotency_key"]
            .as_str()
            .unwrap()
            .ends_with("-2")
    );
}

#[test]
fn an_approval_that_another_call_took_is_used_up() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
    let asked = said(&judge, 0).1.unwrap();
    resolve(&judge, &asked, "approved", MINUTE);
    assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
    let key = asked.arguments["idempotency_key"].as_str().unwrap();
    judge.session().set_taken(vec![format!("job_deploy {key}")]);
    let (code, again) = said(&judge, 2 * MINUTE);
    assert_eq!(code, "APPROVAL_REQUIRED");
    // Another answer is another approval.
    resolve(&judge, &again.unwrap(), "approved", 3 * MINUTE);
    assert_eq!(said(&judge, 4 * MINUTE).0, "pass");
}

#[test]
fn it_ends_with_its_time() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"minutes": 5, "once": false}"#).unwrap();
    let (code, asked) = said(&judge, 0);
    assert_eq!(code, "ask, else APPROVAL_REQUIRED");
    resolve(&judge, &asked.unwrap(), "approved", 0);
    assert_eq!(said(&judge, 4 * MINUTE).0, "pass");
    assert_eq!(said(&judge, 5 * MINUTE).0, "ask, else APPROVAL_REQUIRED");
}

#[test]
fn a_no_is_a_no_until_it_is_over() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"minutes": 5}"#).unwrap();
    let asked = said(&judge, 0).1.unwrap();
    resolve(&judge, &asked, "rejected", 0);
    assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REJECTED");
    assert_eq!(said(&judge, 6 * MINUTE).0, "ask, else APPROVAL_REQUIRED");
}

#[test]
fn only_answers_of_those_who_may_count() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false, "approvers": ["edsger"]}"#).unwrap();
    let asked = said(&judge, 0).1.unwrap();
    assert!(
        matches!(resolve(&judge, &asked, "approved", 0), Review::Deny(denial) if denial.code == "APPROVER_UNKNOWN")
    );
    assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REQUIRED");
    let proven = Judge::<SideEffectApproval>::new(r#"{"ask": false, "proven": true}"#).unwrap();
    assert!(matches!(resolve(&proven, &asked, "approved", 0), Review::Deny(_)));
}

#[test]
fn the_user_of_who_asks_is_no_other() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"by_another": true}"#).unwrap();
    let (code, asked) = said(&judge, 0);
    assert_eq!(code, "APPROVAL_REQUIRED");
    let mut own = asked.clone().unwrap();
    own.arguments.insert("requested_by".to_owned(), "grace".into());
    assert!(
        matches!(resolve(&judge, &own, "approved", 0), Review::Deny(denial) if denial.code == "APPROVER_ASKED")
    );
    assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REQUIRED");
    let mut of_another = asked.unwrap();
    of_another
        .arguments
        .insert("requested_by".to_owned(), "ada".into());
    assert_eq!(resolve(&judge, &of_another, "approved", MINUTE), Review::Pass);
    assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
}

#[test]
fn the_stored_requester_counts_and_not_the_one_that_an_answer_names() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"by_another": true}"#).unwrap();
    let requested = Outcome {
        success: true,
        error_code: None,
        body: json!({ "approval": { "id": "A1", "requested_by": "grace" } }),
        text: None,
        duration_ms: 1,
    };
    let noted = judge.after(&Request::of(REQUEST_TOOL, "{}"), &requested);
    assert_eq!(noted.verdict, Review::Pass);
    let mut answer = said(&judge, 0).1.unwrap();
    answer.arguments.insert("id".to_owned(), "A1".into());
    answer.arguments.insert("requested_by".to_owned(), "ada".into());
    assert!(
        matches!(resolve(&judge, &answer, "approved", 0), Review::Deny(denial) if denial.code == "APPROVER_ASKED")
    );
}

/// The denial of a call outside any task, which asks by itself.
fn denied(judge: &Judge<SideEffectApproval>, arguments: &str) -> Denial {
    match judge.before(&Request::of("job_start", arguments)).verdict {
        Verdict::Deny(denial) => denial,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_denied_call_asks_by_itself_for_exactly_this_call() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
    let denial = denied(&judge, r#"{"job_id": "JOB-1"}"#);
    assert_eq!(denial.code, "APPROVAL_REQUIRED");
    assert_eq!(denial, denied(&judge, r#"{"job_id": "JOB-1"}"#), "it asks once");
    denied(&judge, r#"{"job_id": "JOB-2"}"#);
    let asked = judge.session().approvals();
    let [(first, open), _] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(first.detail["arguments"], json!({"job_id": "JOB-1"}));
    assert!(
        denial
            .remediation
            .contains(&format!("tollgate approvals allow {}", open.id))
    );
    judge.session().answer_approval(&first.key, true, "grace");
    let passes =
        |arguments: &str| judge.before(&Request::of("job_start", arguments)).verdict == Verdict::Pass;
    assert!(passes(r#"{"job_id": "JOB-1"}"#));
    assert!(!passes(r#"{"job_id": "JOB-2"}"#));
    // Used up, so that the same call asks anew.
    judge.session().set_taken(vec![open.id.clone()]);
    assert!(!passes(r#"{"job_id": "JOB-1"}"#));
    let asked = judge.session().approvals();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].1.status, ApprovalStatus::Pending);
}

#[test]
fn a_listed_no_is_a_no_and_rules_go_with_the_request() {
    let settings = r#"{"by_another": true, "approvers": ["grace"], "proven": true}"#;
    let judge = Judge::<SideEffectApproval>::new(settings).unwrap();
    denied(&judge, "{}");
    let asked = judge.session().approvals();
    let rules = asked[0].0.answerers.as_ref().unwrap();
    assert_eq!(
        (&rules.names[..], rules.proven, rules.another),
        (&["grace".to_owned()][..], true, true)
    );
    judge.session().answer_approval(&asked[0].0.key, false, "grace");
    let no = denied(&judge, "{}");
    assert_eq!(
        (no.code.as_str(), no.reason.as_str()),
        ("APPROVAL_REJECTED", "grace said no to job_start")
    );
}

#[test]
fn what_does_not_fit_in_the_list_goes_through_task_store() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
    let long = json!({"text": "x".repeat(40_000)}).to_string();
    let denial = denied(&judge, &long);
    assert!(
        denial.remediation.contains(REQUEST_TOOL),
        "{}",
        denial.remediation
    );
    assert!(judge.session().approvals().is_empty());
}

#[test]
fn an_answer_through_task_store_takes_the_call_out_of_the_list() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
    let asked = said(&judge, 0).1.unwrap();
    assert_eq!(judge.session().approvals()[0].1.status, ApprovalStatus::Pending);
    resolve(&judge, &asked, "approved", MINUTE);
    assert_eq!(judge.session().approvals()[0].1.status, ApprovalStatus::Withdrawn);
    assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
}

#[test]
fn approvals_of_other_kinds_are_nobodys_business_here() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"approvers": ["edsger"]}"#).unwrap();
    let other = NextCall::new(
        REQUEST_TOOL,
        json!({"side_effect_kind": "deploy", "idempotency_key": "release"}),
    );
    assert_eq!(resolve(&judge, &other, "approved", 0), Review::Pass);
    assert!(Judge::<SideEffectApproval>::new(r#"{"minutes": 0}"#).is_err());
}

#[test]
fn an_agent_answers_nothing_that_wants_a_terminal() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false, "terminal": true}"#).unwrap();
    let asked = said(&judge, 0).1.unwrap();
    for client in [
        None,
        Some("agent"),
        Some("tollgate call"),
        Some("claimed:tollgate terminal"),
    ] {
        let review = resolve_from(client, &judge, &asked, "approved", MINUTE);
        assert!(
            matches!(review, Review::Deny(denial) if denial.code == "TERMINAL_REQUIRED"),
            "{client:?}"
        );
    }
    assert_eq!(said(&judge, MINUTE).0, "APPROVAL_REQUIRED");
    let review = resolve_from(Some(tollgate_sdk::TERMINAL), &judge, &asked, "approved", MINUTE);
    assert_eq!(review, Review::Pass);
    assert_eq!(said(&judge, 2 * MINUTE).0, "pass");
}

#[test]
fn an_approval_is_for_the_identity_that_calls() {
    let judge = Judge::<SideEffectApproval>::new(r#"{"ask": false}"#).unwrap();
    let by = |identity: &str, at: i64| Request {
        identity: Some(identity.to_owned()),
        ..deploy(at)
    };
    let code = |identity: &str, at: i64| match judge.before(&by(identity, at)).verdict {
        Verdict::Deny(denial) => denial.code,
        _ => "pass".to_owned(),
    };
    let Verdict::Deny(denial) = judge.before(&by("token:ada", 0)).verdict else {
        panic!("it is approved already");
    };
    let asked = denial.next_call.unwrap();
    assert_eq!(code("token:eve", 0), "APPROVAL_REQUIRED");
    let keys: Vec<String> = judge
        .session()
        .approvals()
        .into_iter()
        .map(|(request, _)| request.key)
        .collect();
    assert_eq!(keys.len(), 2, "each has a request of its own: {keys:?}");
    resolve(&judge, &asked, "approved", MINUTE);
    assert_eq!(code("token:eve", 2 * MINUTE), "APPROVAL_REQUIRED");
    assert_eq!(code("token:ada", 2 * MINUTE), "pass");
    // The ends of long identities tell them apart.
    let long = |end: &str| format!("https://id.example/{}#{end}", "tenant/".repeat(40));
    assert_ne!(list_key(&by(&long("a"), 0)), list_key(&by(&long("b"), 0)));
    assert!(list_key(&by(&long("a"), 0)).len() < 200);
}
