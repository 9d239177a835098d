//! Tests of requests for approval.

use std::time::Duration;

use serde_json::json;
use tollgate_sdk::{Answerers, Answering, ApprovalRequest, NextCall};

use super::super::fixture::{self, change};
use super::super::session::Session;
use super::super::{Among, StoreFailure};
use super::stored::nobody;
use super::*;

fn request(key: &str, to: &str) -> ApprovalRequest {
    ApprovalRequest::new(key, format!("Deploy to {to}"), json!({"to": to}))
}

fn ask(session: &Session, request: &ApprovalRequest, identity: Option<&str>, now_ms: i64) -> String {
    let newest = session.approvals().newest("pack", &request.key).unwrap();
    if let Some(newest) = newest.as_ref().filter(|newest| newest.stands(request, now_ms)) {
        return newest.approval.id.clone();
    }
    let round = newest.map_or(1, |newest| newest.round + 1);
    let by = AskedBy {
        identity: identity.map(str::to_owned),
        ..AskedBy::default()
    };
    let new = NewApproval::new("pack", request.clone(), by, (round, now_ms));
    session.approvals().insert(&new).unwrap();
    new.id
}

fn answer(status: ApprovalStatus, at_ms: i64) -> Answered {
    Answered {
        status,
        by: Some("grace".to_owned()),
        identity: None,
        op_id: "op_2".to_owned(),
        note: None,
        at_ms,
    }
}

#[test]
fn the_same_key_is_the_same_request_until_its_content_changes() {
    let session = fixture::session();
    session.begin_write().unwrap();
    let first = ask(&session, &request("k", "staging"), None, 1);
    assert_eq!(ask(&session, &request("k", "staging"), None, 2), first);
    let other = ask(&session, &request("k", "production"), None, 3);
    assert_ne!(other, first);
    let status = |id: &str| session.approvals().get(id).unwrap().unwrap().status(4);
    assert_eq!(status(&first), ApprovalStatus::Withdrawn);
    assert!(
        !session
            .approvals()
            .answer(&first, &answer(ApprovalStatus::Approved, 4))
            .unwrap()
    );
    assert!(
        session
            .approvals()
            .answer(&other, &answer(ApprovalStatus::Approved, 4))
            .unwrap()
    );
    // One answer settles it.
    assert!(
        !session
            .approvals()
            .answer(&other, &answer(ApprovalStatus::Rejected, 5))
            .unwrap()
    );
    assert_eq!(status(&other), ApprovalStatus::Approved);
    assert_eq!(ask(&session, &request("k", "production"), None, 6), other);
    let renewed = ApprovalRequest {
        renew: true,
        ..request("k", "production")
    };
    assert_ne!(ask(&session, &renewed, None, 7), other);
    session.commit().unwrap();
}

#[test]
fn hosts_that_ask_the_same_on_one_snapshot_have_one_request() {
    let session = fixture::session();
    session.begin_write().unwrap();
    let new = |to: &str| NewApproval::new("pack", request("k", to), AskedBy::default(), (1, 1));
    for to in ["staging", "staging", "production", "staging"] {
        session.approvals().insert(&new(to)).unwrap();
    }
    let all = session.approvals().list(&ApprovalFilter::default(), 10).unwrap();
    let rounds: Vec<_> = all
        .iter()
        .map(|found| (found.title.as_str(), found.round, found.approval.status))
        .collect();
    let mut rounds = rounds;
    rounds.sort_by_key(|(_, round, _)| *round);
    assert_eq!(
        rounds,
        [
            ("Deploy to staging", 1, ApprovalStatus::Withdrawn),
            ("Deploy to production", 2, ApprovalStatus::Pending),
        ]
    );
    session.commit().unwrap();
}

#[test]
fn a_request_is_open_until_its_time_and_a_new_one_follows() {
    let session = fixture::session();
    session.begin_write().unwrap();
    let timed = ApprovalRequest {
        until_ms: Some(100),
        ..request("k", "staging")
    };
    let first = ask(&session, &timed, None, 1);
    let listed = |status: ApprovalStatus, now_ms: i64| {
        let filter = ApprovalFilter {
            status: Some(status),
            now_ms,
            ..ApprovalFilter::default()
        };
        session.approvals().list(&filter, 10).unwrap().len()
    };
    assert_eq!(
        (
            listed(ApprovalStatus::Pending, 99),
            listed(ApprovalStatus::Expired, 99)
        ),
        (1, 0)
    );
    assert_eq!(
        (
            listed(ApprovalStatus::Pending, 100),
            listed(ApprovalStatus::Expired, 100)
        ),
        (0, 1)
    );
    assert!(
        !session
            .approvals()
            .answer(&first, &answer(ApprovalStatus::Approved, 100))
            .unwrap()
    );
    let later = ApprovalRequest {
        until_ms: Some(300),
        ..timed
    };
    assert_ne!(ask(&session, &later, None, 200), first);
    session.commit().unwrap();
}

#[test]
fn nobody_fills_the_list_for_others() {
    let session = fixture::session();
    session.begin_write().unwrap();
    let full = |identity: Option<&str>| session.approvals().full("pack", identity, 1).unwrap();
    for number in 0..MAX_PENDING_OF_ONE {
        assert_eq!(full(Some("token:ada")), None);
        ask(
            &session,
            &request(&format!("a{number}"), "x"),
            Some("token:ada"),
            1,
        );
    }
    assert_eq!(full(Some("token:ada")), Some(MAX_PENDING_OF_ONE));
    assert_eq!(full(Some("token:bob")), None);
    let room = |identity: Option<&str>| session.approvals().room("pack", identity, 1).unwrap();
    assert_eq!(
        [Some("token:ada"), Some("token:bob"), None].map(room),
        [0, MAX_PENDING_OF_ONE, MAX_PENDING_OF_ONE]
    );
    for number in MAX_PENDING_OF_ONE..MAX_PENDING {
        ask(&session, &request(&format!("a{number}"), "x"), None, 1);
    }
    assert_eq!(full(None), Some(MAX_PENDING));
    assert_eq!(session.approvals().full("other", None, 1).unwrap(), None);
    session.commit().unwrap();
}

#[test]
fn each_request_is_told_once_and_pages_follow_each_other() {
    let session = fixture::session();
    session.begin_write().unwrap();
    for number in 0..5 {
        ask(&session, &request(&format!("k{number}"), "x"), None, number);
    }
    session
        .approvals()
        .settle("pack", "k0", &answer(ApprovalStatus::Withdrawn, 9))
        .unwrap();
    assert!(session.approvals().has_unheard().unwrap());
    assert_eq!(session.approvals().take_unheard(9, 3).unwrap().len(), 2);
    assert_eq!(session.approvals().take_unheard(9, 3).unwrap().len(), 2);
    assert!(!session.approvals().has_unheard().unwrap());
    let mut keys = Vec::new();
    let mut filter = ApprovalFilter::default();
    loop {
        let page = session.approvals().list(&filter, 2).unwrap();
        let Some(last) = page.last() else { break };
        filter.after = Some(last.approval.id.clone());
        keys.extend(page.into_iter().map(|found| found.approval.key));
    }
    assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4"]);
    session.commit().unwrap();
}

#[test]
fn what_is_stored_reads_as_it_was_asked() {
    let session = fixture::session();
    session.begin_write().unwrap();
    let whole = ApprovalRequest {
        requested_by: Some("ada".to_owned()),
        answering: Some(Answering {
            reject: Some(NextCall::new("task_reject", json!({}))),
            by: Some("resolved_by".to_owned()),
            ..Answering::new(NextCall::new("task_approve", json!({"id": 1})))
        }),
        answerers: Some(Answerers {
            names: vec!["grace".to_owned()],
            proven: true,
            another: false,
        }),
        ..request("k", "x")
    };
    let id = ask(&session, &whole, Some("token:ada"), 1);
    let found = session.approvals().get(&id).unwrap().unwrap();
    assert_eq!(
        (&found.answering, &found.answerers),
        (&whole.answering, &whole.answerers)
    );
    assert_eq!(found.approval.requested_by.as_deref(), Some("ada"));
    assert!(found.stands(&whole, 2));
    change(&session, "UPDATE core_approvals SET answerers = '[]'").unwrap();
    let broken = session.approvals().get(&id).unwrap().unwrap();
    assert_eq!(broken.answerers, Some(nobody()));
    session.commit().unwrap();
}

#[test]
fn nobodys_many_requests_hide_those_of_others() {
    let session = fixture::session();
    session.begin_write().unwrap();
    for number in 0..5 {
        ask(
            &session,
            &request(&format!("ada {number}"), "staging"),
            Some("token:ada"),
            number,
        );
    }
    ask(&session, &request("eve", "staging"), Some("token:eve"), 9);
    let keys = |page| -> Vec<String> {
        let found = session.approvals().list_by_turns(20, page).unwrap();
        found.into_iter().map(|found| found.title).collect()
    };
    let all = keys((0, 10));
    assert_eq!(all.len(), 6);
    assert_eq!(session.approvals().count_open(20).unwrap(), 6);
    let by = |place: u32| {
        session.approvals().list_by_turns(20, (place, 1)).unwrap()[0]
            .by
            .identity
            .clone()
    };
    assert_eq!(by(0).as_deref(), Some("token:ada"));
    assert_eq!(
        by(1).as_deref(),
        Some("token:eve"),
        "the newest of all, and the first of its own"
    );
    assert_eq!(by(2).as_deref(), Some("token:ada"));
}

#[test]
fn requests_of_one_component_are_counted_one_after_another() {
    if !fixture::on_postgres() {
        return;
    }
    let (_place, database) = fixture::database();
    let (first, second) = (
        database.write_session().unwrap(),
        database.write_session().unwrap(),
    );
    second.wait_at_most(Duration::from_millis(50));
    for session in [&first, &second] {
        session.begin_write_among(&Among::default()).unwrap();
    }
    let full = |session: &Session, component: &str| session.approvals().full(component, None, 1);
    assert_eq!(full(&first, "pack").unwrap(), None);
    assert_eq!(full(&second, "other").unwrap(), None);
    // What the first one adds is not committed yet, and has to count.
    let waits = full(&second, "pack").unwrap_err();
    assert_eq!(waits.failure(), StoreFailure::Busy, "{waits}");
}
