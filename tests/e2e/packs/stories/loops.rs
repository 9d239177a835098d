//! Stories of agents that loop: on a failing test, over envelopes, on a flaky test, and back to what failed before.

use serde_json::{Value, json};

use crate::envelopes::observed_edits::{place, write};
use crate::harness::Session;

/// A call that a refusal suggests, made by a client that may call listed tools only.
async fn follow(session: &Session, refusal: &Value) -> Value {
    let tools = session.client().list_all_tools().await.unwrap();
    let next = &refusal["next_call"];
    let tool = next["tool"].as_str().unwrap_or_else(|| panic!("{refusal:#}"));
    if tools.iter().any(|listed| listed.name == tool) {
        return session.ok(tool, next["arguments"].clone()).await;
    }
    session
        .ok("tool_call", json!({"tool": tool, "arguments": next["arguments"]}))
        .await
}

#[tokio::test]
async fn an_agent_that_loops_on_a_failing_test_is_told_and_stopped() {
    let place = place("");
    let session = place.serve(&[]).await;
    let limits = json!({"max_mutations": 4, "max_test_runs": 6});
    session
        .ok("envelope_open", json!({"workspace": "default", "limits": limits}))
        .await;
    session.ok("test_run", json!({})).await;
    let mut ran = Value::Null;
    for (at, value) in ["1", "2", "-1", "4"].into_iter().enumerate() {
        write(&place, "value", value);
        let recorded = session.ok("mutation_record", json!({})).await;
        // The third edit goes back to where the work began.
        assert_eq!(recorded["oscillation"], at == 2, "{recorded:#}");
        assert_eq!(
            recorded.pointer("/left/mutations").is_some(),
            at == 3,
            "{recorded:#}"
        );
        ran = session.ok("test_run", json!({})).await;
        assert_eq!(ran["non_progress"], true, "{ran:#}");
    }
    let message = ran["message"].as_str().unwrap();
    assert!(
        message.contains("same failure seen 5 times across 4 edits; no progress"),
        "{message}"
    );
    assert_eq!(ran["left"]["mutations"], 0, "{ran:#}");
    let refusal = session.refused("mutation_record", json!({})).await;
    assert_eq!(refusal["code"], "MUTATION_BUDGET_EXHAUSTED");
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("its limit of 4 mutations was used up"),
        "{message}"
    );
    let report = follow(&session, &refusal).await;
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("test_calc.py::test_add"), "{text}");
    session.close().await;
}

#[tokio::test]
async fn an_agent_that_wants_to_go_on_for_ever_comes_to_an_end() {
    let place = place(
        "[envelope]\nrequire = \"always\"\nceiling = { max_mutations = 2, max_test_runs = 2 }\n\
         [[envelope.window]]\nper = \"1h\"\nmax_test_runs = 5\nmax_edits = 6\n",
    );
    let session = place.serve(&["--tier", "full"]).await;
    let (mut edits, mut runs, mut last) = (0, 0, Value::Null);
    let mut codes = Vec::new();
    for round in 0..12 {
        // An edit before an envelope is opened, and one within it.
        write(&place, "value", &format!("{round}0"));
        let opened = session
            .call_raw("envelope_open", json!({"workspace": "default"}))
            .await
            .structured_content
            .unwrap();
        if let Some(code) = opened["error"]["code"].as_str() {
            codes.push(code.to_owned());
            continue;
        }
        let id = opened["envelope_id"].clone();
        edits += i32::from(round > 0);
        write(&place, "value", &format!("{round}1"));
        let ran = session
            .call_raw("test_run", json!({"envelope_id": id}))
            .await
            .structured_content
            .unwrap();
        match ran["error"]["code"].as_str() {
            Some(code) => codes.push(code.to_owned()),
            None => {
                (edits, runs) = (edits + 1, runs + 1);
                last = ran;
            }
        }
        session
            .ok("envelope_close", json!({"envelope_id": id, "outcome": "failed"}))
            .await;
    }
    assert!(
        !codes.is_empty() && codes.iter().all(|code| code == "WINDOW_EXHAUSTED"),
        "{codes:?}"
    );
    assert_eq!((edits, runs), (6, 3), "{codes:?}");
    assert_eq!(last["earlier_envelopes"], 2, "{last:#}");
    let message = last["message"].as_str().unwrap();
    assert!(
        message.contains("seen in 2 earlier envelopes across 4 edits, first"),
        "{message}"
    );
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}

/// Passes or fails as a file beside the work tree says, which it then changes.
const BY_TURNS: &str = "turn=$(head -n 1 ../turns)\nsed -i 1d ../turns\n[ \"$turn\" = pass ] && exit 0\n\
    echo 'FAILED test_calc.py::test_add - AssertionError: assert 1 == 3'\nexit 1\n";

#[tokio::test]
async fn a_flaky_test_is_called_so_and_no_lack_of_progress() {
    let place = place("");
    write(&place, "run.sh", BY_TURNS);
    std::fs::write(place.path().join("turns"), "fail\nfail\npass\nfail\n").unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("envelope_open", json!({"workspace": "default"})).await;
    let mut flaky = Vec::new();
    for _ in 0..4 {
        let ran = session.ok("test_run", json!({})).await;
        assert_eq!(ran["non_progress"], false, "{ran:#}");
        assert_eq!(ran.get("regression"), None, "{ran:#}");
        flaky.push(ran["flaky"] == true);
    }
    assert_eq!(flaky, [false, false, true, true]);
    let status = session.ok("convergence_status", json!({})).await;
    assert_eq!(status["flaky"], true, "{status:#}");
    session.close().await;
}

/// Passes if the value is right.
const BY_VALUE: &str = "value=$(cat value)\n[ \"$value\" = 3 ] && exit 0\n\
    echo \"FAILED test_calc.py::test_add - AssertionError: assert $value == 3\"\nexit 1\n";

#[tokio::test]
async fn a_failure_that_comes_back_after_a_pass_is_a_regression() {
    let place = place("");
    write(&place, "run.sh", BY_VALUE);
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
    let mut told = Vec::new();
    for value in ["-1", "3", "-1"] {
        write(&place, "value", value);
        let ran = session.ok("test_run", json!({})).await;
        told.push((ran["passed"] == true, ran["regression"] == true));
        if value == "-1" && told.len() == 3 {
            let message = ran["message"].as_str().unwrap();
            assert!(message.contains("regression: the last run passed"), "{message}");
        }
    }
    assert_eq!(told, [(false, false), (true, false), (false, true)]);
    let shown = session
        .ok("envelope_get", json!({"envelope_id": opened["envelope_id"]}))
        .await;
    assert_eq!(shown["flags"]["regression"], true, "{shown:#}");
    assert_eq!(shown["flags"]["oscillation_period"], 2, "{shown:#}");
    session.close().await;
}

#[tokio::test]
async fn an_envelope_for_each_attempt_hides_no_change_of_a_result() {
    let place = place("");
    write(&place, "run.sh", BY_TURNS);
    std::fs::write(place.path().join("turns"), "pass\nfail\npass\nfail\npass\nfail\n").unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let mut told = Vec::new();
    // An attempt is in an envelope of its own, or in none. The last two each come after an edit.
    for (is_inside, value) in [
        (true, None),
        (true, None),
        (false, None),
        (true, None),
        (true, Some("1")),
        (true, Some("2")),
    ] {
        if let Some(value) = value {
            write(&place, "value", value);
        }
        let opened = match is_inside {
            true => session.ok("envelope_open", json!({"workspace": "default"})).await,
            false => Value::Null,
        };
        let ran = session.ok("test_run", json!({})).await;
        let flags = ["flaky", "regression"];
        let set: Vec<&str> = flags.into_iter().filter(|flag| ran[*flag] == true).collect();
        told.push(set.join(" "));
        if is_inside {
            let end = json!({"envelope_id": opened["envelope_id"], "outcome": "failed"});
            session.ok("envelope_close", end).await;
        }
    }
    assert_eq!(told, ["", "flaky", "flaky", "flaky", "", "regression"]);
    session.close().await;
}

#[tokio::test]
async fn a_claim_after_each_attempt_hides_no_lack_of_progress() {
    let place = place("");
    let session = place.serve(&["--tier", "full"]).await;
    let claim =
        json!({"exit_code": 0, "output": "TAP version 13\n1..1\nok 1 - adds\n", "command": "default"});
    for inside in [false, true] {
        let mut told = Vec::new();
        for value in ["1", "2", "4"] {
            write(&place, "value", &format!("{value}{}", u8::from(inside)));
            let opened = match inside {
                true => session.ok("envelope_open", json!({"workspace": "default"})).await,
                false => Value::Null,
            };
            let ran = session.ok("test_run", json!({})).await;
            assert_eq!(ran.get("regression"), None, "{ran:#}");
            session.ok("test_report", claim.clone()).await;
            let status = session.ok("convergence_status", json!({})).await;
            told.push((ran["non_progress"] == true, status["non_progress"] == true));
            if inside {
                let shown = session
                    .ok("envelope_get", json!({"envelope_id": opened["envelope_id"]}))
                    .await;
                let flag = shown["flags"]["non_progress"] == true;
                assert_eq!(flag, ran["non_progress"] == true, "{shown:#}");
                let end = json!({"envelope_id": opened["envelope_id"], "outcome": "failed"});
                session.ok("envelope_close", end).await;
            }
        }
        assert_eq!(
            told,
            [(false, false), (true, true), (true, true)],
            "inside: {inside}"
        );
    }
    session.close().await;
}

#[tokio::test]
async fn the_next_morning_the_ledger_tells_what_happened() {
    let place = place("[artifacts]\nenabled = true\n");
    let session = place.serve(&["--tier", "full"]).await;
    let limits = json!({"max_mutations": 3, "max_test_runs": 9});
    let opened = session
        .ok(
            "envelope_open",
            json!({"workspace": "default", "label": "add", "limits": limits}),
        )
        .await;
    let id = opened["envelope_id"].as_str().unwrap();
    session.ok("test_run", json!({})).await;
    for (value, note) in [("1", "try one"), ("2", "try two"), ("7", "try seven")] {
        write(&place, "value", value);
        session.ok("mutation_record", json!({"note": note})).await;
        session.ok("test_run", json!({})).await;
    }
    session.refused("mutation_record", json!({})).await;
    session.close().await;

    let output = place.run(&["ledger", "report", id]);
    let report = String::from_utf8(output.stdout).unwrap();
    // Which test, which message, what was tried, with which client, what each edit was, where the log is, why it ended.
    for told in [
        "test_calc.py::test_add",
        "assert 7 == 3",
        "try seven",
        "via rmcp",
        "1 file changed, +1 -1",
        "art_",
        "its mutations were used up",
        "3 of 3 mutations",
    ] {
        assert!(report.contains(told), "{told} is not in\n{report}");
    }
    let failed = place.run(&["ledger", "query", "--tests", "failed", "--json"]);
    assert_eq!(String::from_utf8(failed.stdout).unwrap().lines().count(), 4);
    let diffs = place.sql("SELECT count(*) FROM core_artifacts WHERE kind = 'diff'");
    assert_eq!(diffs, ["3"]);
    let told = place.run(&["ledger", "tail"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("failed"), "{told}");
}
