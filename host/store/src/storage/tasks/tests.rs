//! Tests of stored tasks.

use serde_json::json;
use tollgate_sdk::ApprovalRequest;

use super::super::fixture::Alone;
use super::super::session::Session;
use super::super::{AskedBy, Operation};
use super::*;

fn new(id: &str, number: usize) -> NewTask {
    NewTask {
        id: id.to_owned(),
        tool: "test_run".to_owned(),
        args_hash: "hash".to_owned(),
        op_id: Operation::for_tests(number, None, "2026-03-01T00:00:00.000Z").op_id,
        host_id: "hst_1".to_owned(),
        now_ms: 1_000,
        ttl_ms: 500,
        poll_ms: 100,
        ..NewTask::default()
    }
}

fn replied(reply: &str) -> TaskEnd {
    TaskEnd {
        event: TaskEvent::Replied,
        op_id: None,
        error_code: None,
        note: None,
        reply: reply.to_owned(),
    }
}

fn session() -> Alone {
    let session = crate::storage::fixture::session();
    session.begin_write().unwrap();
    session
}

fn record(session: &Session, number: usize, success: Option<bool>, code: Option<&str>) {
    let mut row = Operation::for_tests(number, None, "2026-03-01T00:00:00.000Z");
    row.success = success;
    row.error_code = code.map(str::to_owned);
    session.ledger().record(&row).unwrap();
}

#[test]
fn a_task_ends_once_and_keeps_its_reply_for_its_time() {
    let session = session();
    assert!(session.tasks().insert(&new("tsk_a", 1)).unwrap());
    session.tasks().note("tsk_a", "half", 1_100).unwrap();
    let task = session.tasks().get("tsk_a", 1_100).unwrap().unwrap();
    assert_eq!(
        (task.state, task.note.as_deref()),
        (TaskState::Working, Some("half"))
    );
    // Longer than a part, and with characters of more than a byte.
    let reply = "ä".repeat(PART_BYTES);
    assert!(session.tasks().end("tsk_a", &replied(&reply), 1_200).unwrap());
    assert!(!session.tasks().end("tsk_a", &replied("again"), 1_300).unwrap());
    session.tasks().note("tsk_a", "late", 1_300).unwrap();
    assert!(!session.tasks().want_cancelled("tsk_a", 1_300).unwrap());
    let task = session.tasks().get("tsk_a", 1_300).unwrap().unwrap();
    assert_eq!((task.state, task.note), (TaskState::Completed, None));
    assert_eq!(task.reply_hash, Some(hash::sha256_hex(reply.as_bytes())));
    assert_eq!(session.tasks().reply("tsk_a").unwrap(), Some(reply));
    assert!(session.tasks().get("tsk_a", 1_499).unwrap().is_some());
    assert!(session.tasks().get("tsk_a", 1_500).unwrap().is_none());
    assert_eq!(session.tasks().forget(1_500, 10).unwrap(), 1);
    assert_eq!(session.tasks().reply("tsk_a").unwrap(), None);
}

#[test]
fn an_open_task_outlives_its_time() {
    let session = session();
    session.tasks().insert(&new("tsk_a", 1)).unwrap();
    assert_eq!(session.tasks().forget(9_000, 10).unwrap(), 0);
    assert!(session.tasks().get("tsk_a", 9_000).unwrap().is_some());
}

#[test]
fn a_call_that_is_over_becomes_no_task() {
    let session = session();
    record(&session, 1, Some(true), None);
    assert!(!session.tasks().insert(&new("tsk_a", 1)).unwrap());
    assert!(session.tasks().get("tsk_a", 1_000).unwrap().is_none());
    // One that was refused with a question waits for the answer.
    let asked = json!({"questions": {"1.ok": {}}, "approvals": ["apv_1"]});
    let waiting = NewTask {
        asked: Some(asked),
        ..new("tsk_b", 1)
    };
    assert!(session.tasks().insert(&waiting).unwrap());
    let task = session.tasks().get("tsk_b", 1_000).unwrap().unwrap();
    assert_eq!(task.state, TaskState::InputRequired);
    assert_eq!(task.approvals().collect::<Vec<_>>(), ["apv_1"]);
}

#[test]
fn each_question_is_answered_once() {
    let session = session();
    session.tasks().insert(&new("tsk_a", 1)).unwrap();
    let asked = json!({"questions": {"1.a": {}, "1.b": {}}});
    assert!(session.tasks().ask("tsk_a", &asked, 1_001).unwrap());
    assert!(!session.tasks().ask("tsk_a", &asked, 1_001).unwrap());
    assert!(session.tasks().to_wake("hst_1").unwrap().is_empty());
    let answer = |key: &str, value: i64| {
        session
            .tasks()
            .answer("tsk_a", key, &json!(value), 1_002)
            .unwrap()
    };
    assert!(answer("1.a", 1));
    assert!(!answer("1.a", 2));
    assert!(!answer("1.c", 3));
    assert!(session.tasks().to_wake("hst_1").unwrap().is_empty());
    assert!(answer("1.b", 4));
    let awake = session.tasks().to_wake("hst_1").unwrap();
    assert_eq!(
        Value::Object(awake[0].answers.clone()),
        json!({"1.a": 1, "1.b": 4})
    );
    assert!(session.tasks().resume("tsk_a", 1_003).unwrap());
    assert!(!answer("1.b", 5));
    session.tasks().note_call("tsk_a", "op_later").unwrap();
    let task = session.tasks().get("tsk_a", 1_003).unwrap().unwrap();
    assert_eq!((task.op_id.as_str(), task.asked), ("op_later", None));
}

#[test]
fn a_question_enters_the_list_later_only_while_its_task_waits_with_it() {
    let session = session();
    session.tasks().insert(&new("tsk_a", 1)).unwrap();
    let question = |op_id: &str| {
        let by = AskedBy {
            op_id: op_id.to_owned(),
            ..AskedBy::default()
        };
        let request = ApprovalRequest::new("tsk_a", "Really?", json!({}));
        NewApproval::new(QUESTIONS_OF_TASKS, request, by, (1, 1_000))
    };
    let op_id = session.tasks().get("tsk_a", 1_000).unwrap().unwrap().op_id;
    let enters = |op_id: &str| {
        session
            .tasks()
            .note_listed("tsk_a", &question(op_id), 1_002)
            .unwrap()
    };
    assert!(!enters(&op_id), "it does not wait");
    let asked = json!({"questions": {"1_allow": {}}, "approvals": []});
    session.tasks().ask("tsk_a", &asked, 1_001).unwrap();
    assert!(!enters("op_earlier"));
    assert!(enters(&op_id));
    assert!(!enters(&op_id), "it is there");
    let task = session.tasks().get("tsk_a", 1_002).unwrap().unwrap();
    assert_eq!(task.approvals().collect::<Vec<_>>(), [question(&op_id).id]);
    session.tasks().resume("tsk_a", 1_003).unwrap();
    session.tasks().ask("tsk_a", &asked, 1_004).unwrap();
    session
        .tasks()
        .answer("tsk_a", "1_allow", &json!(true), 1_005)
        .unwrap();
    assert!(!enters(&op_id), "its client answered");
}

#[test]
fn tasks_of_a_gone_host_end_with_what_the_ledger_knows() {
    let session = session();
    for (number, id) in ["tsk_none", "tsk_unknown", "tsk_done", "tsk_refused", "tsk_waits"]
        .into_iter()
        .enumerate()
    {
        session.tasks().insert(&new(id, number)).unwrap();
    }
    let other = NewTask {
        host_id: "hst_2".to_owned(),
        ..new("tsk_other", 9)
    };
    session.tasks().insert(&other).unwrap();
    let asked = json!({"questions": {"1.ok": {}}});
    session.tasks().ask("tsk_waits", &asked, 1_001).unwrap();
    record(&session, 1, None, None);
    record(&session, 2, Some(true), None);
    record(&session, 3, Some(false), Some("NO_TESTS"));
    record(&session, 4, Some(false), Some("APPROVAL_REQUIRED"));
    assert_eq!(session.tasks().hosts().unwrap(), ["hst_1", "hst_2"]);
    assert_eq!(
        session.tasks().give_up_all("hst_1", "HOST_GONE", 1_100).unwrap(),
        5
    );
    assert_eq!(
        session.tasks().give_up_all("hst_1", "HOST_GONE", 1_100).unwrap(),
        0
    );
    let said = |id: &str| {
        let task = session.tasks().get(id, 1_100).unwrap().unwrap();
        let reply: Value = serde_json::from_str(&session.tasks().reply(id).unwrap().unwrap()).unwrap();
        assert_eq!(reply["error"]["code"].as_str(), task.error_code.as_deref());
        let note = task.note.unwrap();
        format!("{} {}: {note}", task.state.as_str(), task.error_code.unwrap())
    };
    assert_eq!(
        ["tsk_none", "tsk_unknown", "tsk_done", "tsk_refused", "tsk_waits"].map(said),
        [
            "failed HOST_GONE: its host ended; the call did not start, the ledger has no row for it, and nothing was \
             changed",
            "failed OUTCOME_UNKNOWN: its host ended; the call had started, and its progress is unknown",
            "failed RESULT_LOST: its host ended; the call succeeded, but its reply was not saved",
            "failed HOST_GONE: its host ended; the ledger records that the call failed with NO_TESTS",
            "failed HOST_GONE: its host ended; the call waited for an answer, and nothing was changed",
        ]
    );
    let task = session.tasks().get("tsk_other", 1_100).unwrap().unwrap();
    assert_eq!(task.state, TaskState::Working);
}

#[test]
fn lists_and_counts_are_by_owner() {
    let session = session();
    for (number, owner) in [None, Some("token:ada"), Some("token:ada")]
        .into_iter()
        .enumerate()
    {
        let task = NewTask {
            owner: owner.map(str::to_owned),
            now_ms: 1_000 + i64::try_from(number).unwrap(),
            ..new(&format!("tsk_{number}"), number)
        };
        session.tasks().insert(&task).unwrap();
    }
    session.tasks().end("tsk_1", &replied("{}"), 1_100).unwrap();
    let counted = |owner| session.tasks().count(owner).unwrap();
    assert_eq!(
        counted(Some("token:ada")),
        TaskCounts {
            open: 1,
            all: 2,
            bytes: 2
        }
    );
    assert_eq!(counted(None).all, 1);
    let ids = |filter: TaskFilter| -> Vec<String> {
        let found = session.tasks().list(&filter, 10).unwrap();
        found.into_iter().map(|task| task.id).collect()
    };
    assert_eq!(ids(TaskFilter::default()), ["tsk_2", "tsk_1", "tsk_0"]);
    let adas = TaskFilter {
        owner: Some("token:ada".to_owned()),
        state: Some(TaskState::Working),
        ..TaskFilter::default()
    };
    assert_eq!(ids(adas), ["tsk_2"]);
}

#[test]
fn the_end_of_an_envelope_wants_its_tasks_to_end() {
    let (_place, session) = super::super::fixture::ledger("");
    session.begin_write().unwrap();
    for (number, envelope) in [Some("env_k"), None].into_iter().enumerate() {
        let task = NewTask {
            envelope_id: envelope.map(str::to_owned),
            ..new(&format!("tsk_{number}"), number)
        };
        session.tasks().insert(&task).unwrap();
    }
    let ending = super::super::Ending::by_host(
        tollgate_core::envelope::State::ClosedSuccess,
        "TEST",
        super::super::fixture::NOW,
        0,
    );
    session.envelopes().close("env_k", ending).unwrap();
    let awake = session.tasks().to_wake("hst_1").unwrap();
    let ids: Vec<&str> = awake.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["tsk_0"]);
}

#[test]
fn a_call_that_is_kept_is_taken_up_by_the_first_host() {
    let session = session();
    let kept = |id: &str, number: usize| NewTask {
        arguments: Some("{}".to_owned()),
        ..new(id, number)
    };
    for (number, id) in [
        "tsk_none",
        "tsk_unknown",
        "tsk_done",
        "tsk_refused",
        "tsk_waits",
        "tsk_ends",
    ]
    .into_iter()
    .enumerate()
    {
        session.tasks().insert(&kept(id, number)).unwrap();
    }
    session.tasks().insert(&new("tsk_plain", 8)).unwrap();
    let asked = json!({"questions": {"1.ok": {}}});
    session.tasks().ask("tsk_waits", &asked, 1_001).unwrap();
    session.tasks().want_cancelled("tsk_ends", 1_001).unwrap();
    record(&session, 1, None, None);
    record(&session, 2, Some(true), None);
    record(&session, 3, Some(false), Some("NO_TESTS"));
    record(&session, 4, Some(false), Some("ANSWER_NEEDED"));
    // What came to an end, what somebody wants to end, and what is not kept ends.
    assert_eq!(
        session.tasks().give_up_all("hst_1", "HOST_GONE", 1_100).unwrap(),
        4
    );
    let seen =
        ["tsk_none", "tsk_unknown", "tsk_waits"].map(|id| session.tasks().get(id, 1_100).unwrap().unwrap());
    for task in &seen {
        assert!(
            session.tasks().take_up(task, "hst_2", 1_200).unwrap(),
            "{}",
            task.id
        );
        assert!(
            !session.tasks().take_up(task, "hst_3", 1_200).unwrap(),
            "{}",
            task.id
        );
        assert!(!session.tasks().give_up(task, 1_200).unwrap(), "{}", task.id);
        let taken = session.tasks().get(&task.id, 1_200).unwrap().unwrap();
        assert_eq!(
            (taken.host_id.as_str(), taken.state, taken.resumed, taken.asked),
            ("hst_2", TaskState::Working, 1, None)
        );
    }
    // One that ends its hosts is not taken up for ever.
    for round in 1..MAX_RESUMED {
        let task = session.tasks().get("tsk_none", 1_200).unwrap().unwrap();
        let host = format!("hst_{}", round + 2);
        assert!(session.tasks().take_up(&task, &host, 1_200).unwrap());
    }
    let task = session.tasks().get("tsk_none", 1_200).unwrap().unwrap();
    assert!(!session.tasks().take_up(&task, "hst_9", 1_200).unwrap());
    assert_eq!(
        session
            .tasks()
            .give_up_all(&task.host_id, "HOST_GONE", 1_200)
            .unwrap(),
        1
    );
    // Neither is one whose time is over, nor one of a host that stops.
    assert_eq!(
        session.tasks().give_up_all("hst_2", "HOST_GONE", 1_600).unwrap(),
        2
    );
    session.tasks().insert(&kept("tsk_stops", 9)).unwrap();
    assert_eq!(
        session
            .tasks()
            .give_up_all("hst_1", "HOST_STOPPED", 1_100)
            .unwrap(),
        1
    );
}

#[test]
fn a_call_that_may_still_run_is_not_taken_up() {
    let session = session();
    let kept = NewTask {
        arguments: Some("{}".to_owned()),
        ..new("tsk_a", 1)
    };
    session.tasks().insert(&kept).unwrap();
    session
        .intents()
        .insert(&Operation::for_tests(1, None, "2026-03-01T00:00:00.000Z"))
        .unwrap();
    let seen = session.tasks().get("tsk_a", 1_100).unwrap().unwrap();
    assert!(!session.tasks().take_up(&seen, "hst_2", 1_200).unwrap());
}
