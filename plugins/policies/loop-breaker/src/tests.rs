use tollgate_sdk::Operation;
use tollgate_sdk::native::Judge;

use super::*;

/// Past calls in a notation: `a1` is a call `a` with outcome `1`, `a!` one that was denied as a loop; the
/// newest is the last. `a1+` is inside the call before it, and `a?` belongs to the current request. `a~` is one
/// that another policy wants repeated later, and `a/` a read that its caller cancelled.
fn past(words: &str) -> Vec<Operation> {
    let connection = Request::of("task_get", "{}").connection;
    let mut seq = 0;
    let operation = |word: &str| {
        let (call, outcome) = word.split_at(1);
        let is_inside = outcome.ends_with('+');
        let outcome = outcome.trim_end_matches('+');
        seq += u64::from(!is_inside);
        let error_code = match outcome {
            "!" => Some(CODE),
            "~" => Some("RATE_LIMITED"),
            "/" => Some("CANCELLED"),
            _ => None,
        };
        let error_code = error_code.map(str::to_owned);
        Operation {
            tool: "task_get".to_owned(),
            effect: Some(Effect::Read),
            op_id: format!("op_{seq}"),
            args_hash: hash(call),
            connection: connection.clone(),
            seq: if outcome == "?" { 0 } else { seq },
            success: Some(error_code.is_none()),
            result_hash: (error_code.is_none() && outcome != "?").then(|| outcome.to_owned()),
            error_code,
            ..Operation::default()
        }
    };
    words.split_whitespace().map(operation).collect()
}

/// Hash of the arguments, as in the SDK's native backend.
fn hash(call: &str) -> String {
    Request::of("task_get", &format!(r#"{{"id": "{call}"}}"#)).args_hash
}

fn request(call: &str) -> Request {
    Request::of("task_get", &format!(r#"{{"id": "{call}"}}"#))
}

fn judge(settings: &str, operations: Vec<Operation>) -> Judge<LoopBreaker> {
    let judge = Judge::<LoopBreaker>::new(settings).unwrap();
    judge.session().set_operations(operations);
    judge
}

fn denied(settings: &str, words: &str, call: &str) -> bool {
    judge(settings, past(words)).before(&request(call)).is_denied()
}

#[test]
fn circles_are_closed_and_progress_goes_on() {
    for (past, call, expected) in [
        ("", "a", false),
        ("a1 a1", "a", false),
        ("a1 a1 a1", "a", true),
        ("a1 a1 a1", "b", false),
        ("a1 a1 a2", "a", false),
        ("a1 b1 a1 a1", "a", false),
        // A denial changes nothing about the loop.
        ("a1 a1 a1 a!", "a", true),
        ("a1 a1 a1 a! b1", "a", false),
        // A call that is repeated on request, or without a result so far, is not a loop.
        ("a~ a~ a~ a~", "a", false),
        ("a/ a/ a/ a/", "a", false),
        ("a1 a1 a~ a/", "a", false),
        ("a1 a1 a1 a~ a/", "a", true),
        ("a1 b2 a1 b2", "a", false),
        ("a1 b2 a1 b2 a1 b2", "a", true),
        ("a1 b2 a1 b2 a1 b2", "c", false),
        ("a1 b2 a1 b2 a1 b3", "a", false),
        ("a1 b2 a1 b2 a1 b2 a! a!", "a", true),
        // Calls inside others count separately, and so do the outer calls.
        ("B1 a1+ B1 a1+ B1 a1+", "a", true),
        ("B1 a1+ B1 a1+ B1 a1+", "B", true),
        ("B1 a1+ C1 a1+ a1", "a", true),
        ("B1 a1+ c1+ B1 a1+ c1+ B1 a1+ c1+", "a", true),
        ("B1 a1+ c1+ d1+ B1 a1+ c1+ d1+ B1 a1+ c1+ d1+", "a", true),
        ("B1 a1+ c1+ d1+ B1 a1+ c1+ d1+ B1 a1+ c1+ d1+", "B", true),
        // Different calls in batches with equal results are different calls.
        ("B1 a1+ b1+ c1+ d1+ e1+ f1+ g1+", "h", false),
        // Calls of the current request have no outcome yet.
        ("B? a?+ a?+", "a", false),
        ("B? a?+ a?+ a?+", "a", true),
        ("a1 a1 a1 B?", "a", true),
        ("a1 a1 B? a?+", "a", true),
        ("a1 a2 B? a?+", "a", false),
        ("a1 a1 B? b?+", "a", false),
        ("B? a?+ b?+ c?+ d?+ e?+ f?+ g?+", "h", false),
    ] {
        assert_eq!(denied("{}", past, call), expected, "{past} then {call}");
    }
}

#[test]
fn calls_that_take_turns_are_noticed_in_any_order() {
    for (past, call, expected) in [
        ("a1 b2 c3 a1 b2 c3 a1 b2", "c", false),
        ("a1 b2 c3 a1 b2 c3 a1 b2 c3", "a", true),
        ("a1 b2 c3 b2 a1 c3 c3 a1 b2", "b", true),
        ("a1 b2 c3 a1 b2 c3 a1 b2 c3", "d", false),
        ("a1 b2 c3 a1 b2 c3 a1 b2 c4", "a", false),
        ("a1 b2 c3 d4 a1 b2 c3 d4 a1 b2 c3 d4", "a", true),
        ("a1 b2 c3 d4 e5 a1 b2 c3 d4 e5 a1 b2 c3 d4 e5", "a", false),
        ("a1 b2 c3 a1 b2 c3 a1 b2 c3 a! b! c! a! b! c!", "a", true),
    ] {
        assert_eq!(denied("{}", past, call), expected, "{past} then {call}");
    }
    let five = "a1 b2 c3 d4 e5 a1 b2 c3 d4 e5 a1 b2 c3 d4 e5";
    assert!(denied(r#"{"rotation": 5}"#, five, "a"));
    assert!(!denied(r#"{"rotation": 2}"#, "a1 b2 c3 a1 b2 c3 a1 b2 c3", "a"));
}

#[test]
fn an_argument_that_changes_nothing_hides_no_loop() {
    assert!(!denied("{}", "a1 b1 c1 d1 e1", "f"));
    assert!(denied("{}", "a1 b1 c1 d1 e1 f1", "g"));
    assert!(!denied("{}", "a1 b1 c1 d1 e1 f2", "g"));
    assert!(denied(r#"{"results": 3}"#, "a1 b1 c1", "d"));
    assert!(!denied(r#"{"results": 0}"#, "a1 b1 c1 d1 e1 f1", "g"));
    // Two forms of a result, alternating or not.
    let two = "a1 b2 c1 d2 e1 f2 g1 h2 i1 j2 k1 l2";
    assert!(denied("{}", two, "m"));
    let mut other = request("m");
    other.tool = "task_list".to_owned();
    assert!(!judge("{}", past("a1 b1 c1 d1 e1 f1")).before(&other).is_denied());
}

#[test]
fn a_circle_is_the_callers_whichever_connection_and_envelope_it_uses() {
    let over = |connections: bool, actor: &str, identity: Option<&str>, envelope: Option<&str>| {
        let mut operations = past("a1 a1 a1");
        for (number, operation) in operations.iter_mut().enumerate() {
            if connections {
                operation.connection = format!("con_{number}");
            } else {
                operation.envelope_id = Some(format!("env_{number}"));
            }
            operation.actor = Some(actor.to_owned());
        }
        let mut request = request("a");
        request.identity = identity.map(str::to_owned);
        request.envelope_id = envelope.map(str::to_owned);
        judge("{}", operations).before(&request).is_denied()
    };
    assert!(over(true, "claimed:ada", None, None));
    assert!(over(true, "token:ada", Some("token:ada"), None));
    assert!(over(false, "token:ada", Some("token:ada"), Some("env_9")));
    assert!(over(false, "claimed:Ada", None, Some("env_9")));
    assert!(!over(true, "token:bob", Some("token:ada"), None));
    assert!(!over(true, "token:bob", None, None));
    assert!(!over(true, "claimed:token:ada", Some("token:ada"), None));
}

#[test]
fn denials_hide_no_circle_however_many_there_are() {
    let many = |word: &str| format!("{} ", word).repeat(400);
    assert!(denied("{}", &format!("a1 a1 a1 {}", many("a!")), "a"));
    assert!(denied("{}", &format!("a1 b2 a1 b2 a1 b2 {}", many("a! b!")), "a"));
    assert!(!denied("{}", &format!("a1 a1 a1 {} b1", many("a!")), "a"));
    // The failures are out of sight then, and the call is denied until another one comes in between.
    let mut failed = past(&format!("a1 a1 a1 {}", many("a!")));
    for operation in failed.iter_mut().take(3) {
        operation.success = Some(false);
        operation.error_code = operation.result_hash.take();
    }
    assert!(judge("{}", failed.clone()).before(&request("a")).is_denied());
    assert!(!judge("{}", failed.clone()).before(&request("b")).is_denied());
    let mut after = past("b1");
    after[0].seq = 10_000;
    failed.extend(after);
    assert!(!judge("{}", failed).before(&request("a")).is_denied());
}

#[test]
fn equal_calls_at_once_count_before_any_of_them_ended() {
    let judge = judge("{}", past("b1"));
    for _ in 0..3 {
        assert!(!judge.before(&request("a")).is_denied());
    }
    assert!(judge.before(&request("a")).is_denied());
    assert!(!judge.before(&request("c")).is_denied());
    // With the same outcome in the ledger they are repetitions; with another they are progress.
    judge.session().set_operations(past("b1 a1 a1"));
    assert!(judge.before(&request("a")).is_denied());
    judge.session().set_operations(past("b1 a1 a2"));
    assert!(!judge.before(&request("a")).is_denied());
    let slots = judge.session().slots();
    assert!(
        slots
            .iter()
            .all(|slot| slot.kept_by_failed && slot.reads_by_host && slot.code == CODE)
    );
    assert!(slots.iter().all(|slot| slot.remediation.is_some()));
}

#[test]
fn either_circle_can_be_let_alone() {
    assert!(!denied(r#"{"repeats": 0}"#, "a1 a1 a1 a1", "a"));
    assert!(!denied(r#"{"turns": 0}"#, "a1 b2 a1 b2 a1 b2", "a"));
    assert!(denied(r#"{"repeats": 2}"#, "a1 a1", "a"));
    let judge = judge(r#"{"repeats": 0}"#, Vec::new());
    assert!((0..9).all(|_| !judge.before(&request("a")).is_denied()));
}

#[test]
fn every_mistake_is_named() {
    let settings = r#"{"repeats": 1, "turns": 51, "results": 101, "rotation": 9, "seconds": 0}"#;
    let problems = Judge::<LoopBreaker>::new(settings).err().unwrap();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["repeats", "turns", "results", "rotation", "seconds"]);
    assert!(Judge::<LoopBreaker>::new(r#"{"repeats": 0, "turns": 0}"#).is_err());
}
