//! Policies that misbehave: each denies the call with a typed error, and the others still work.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::altered_component::altered;
use crate::harness::{Place, Session, guest, policy_component, until};

/// Summary of the built-in policy `cel`, and another text of the same length.
const SUMMARY: &str = "Denies calls, or asks the user, by one CEL expression.";
const OTHER_SUMMARY: &str = "Denies calls, or asks the mole, by one CEL expression.";

/// The guest `policy-faults`, which evaluates `task_get` and `task_create`, with settings.
fn policy_faults(more: &str) -> String {
    // Time enough on a busy machine, where time is not what it lacks.
    let is_late = ["loop", "sleep"].iter().any(|deed| more.contains(deed));
    let time_ms = if is_late { 50 } else { 10_000 };
    format!(
        "[policies.policy-faults]\nsource = {:?}\nlimits.time_ms = {time_ms}\ntools = [\"task_get\", \"task_create\"]\n{more}\n",
        guest("policy-faults")
    )
}

fn create() -> Value {
    json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "actor": "a", "actor_role": "orchestrator", "initial_phase": "spec_review"})
}

#[tokio::test]
async fn each_misdeed_denies_with_its_cause() {
    let cases = [
        ("before", "trap", "crash"),
        ("before", "loop", "deadline"),
        ("before", "sleep", "deadline"),
        ("before", "grow", "memory"),
        ("before", "give up", "cannot_judge"),
        ("before", "amend to no object", "bad_amendment"),
        ("before", "amend to what no tool takes", "bad_amendment"),
        // A snapshot cannot be written, and nobody gets at a pack's tables by its name.
        ("before", "remember", "cannot_judge"),
        ("before", "pry", "cannot_judge"),
        // It did not ask for the ledger.
        ("before", "look back", "cannot_judge"),
        ("after", "trap", "crash"),
        ("after", "loop", "deadline"),
        ("after", "sleep", "deadline"),
        ("after", "grow", "memory"),
        ("after", "give up", "cannot_judge"),
        ("after", "pry", "cannot_judge"),
        ("after", "look back", "cannot_judge"),
    ];
    for (phase, deed, cause) in cases {
        let place = Place::with(&policy_faults(&format!("config = {{ {phase} = {deed:?} }}")));
        let session = place.serve(&[]).await;
        // Instances for later calls are made in advance.
        for _ in 0..3 {
            let refused = session.refused("task_create", create()).await;
            assert_eq!(refused["code"], "POLICY_FAILED", "{phase} {deed}: {refused:#}");
            assert_eq!(refused["context"]["cause"], cause, "{phase} {deed}: {refused:#}");
            assert_eq!(refused["context"]["policy"], "policy-faults");
        }
        session.ok("task_list", json!({})).await;
        session.close().await;
        let denied = "task_create write POLICY_FAILED";
        assert_eq!(
            place.ledger(),
            [denied, denied, denied, "task_list read ok"],
            "{phase} {deed}"
        );
        assert_eq!(
            place.sql("SELECT count(*) FROM task_store_tasks"),
            ["0"],
            "{phase} {deed}"
        );
        assert_eq!(
            place.sql("SELECT count(*) FROM policy_task_store_seen"),
            ["0"],
            "{phase} {deed}"
        );
    }
}

#[tokio::test]
async fn no_instance_judges_twice() {
    let config = "config = { before = \"be used twice\", after = \"be used twice\" }";
    let place = Place::with(&policy_faults(config));
    let (one, other) = (place.serve(&[]).await, place.serve(&[]).await);
    let calls = async |session: &Session| {
        for _ in 0..30 {
            let created = session.ok("task_create", create()).await;
            let id = created["task"]["id"].clone();
            session.ok("task_get", json!({"task_id": id})).await;
        }
    };
    tokio::join!(calls(&one), calls(&one), calls(&other));
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn what_it_says_is_made_fit_to_be_read() {
    for settings in [r#"{ before = "deny" }"#, r#"{ after = "deny" }"#] {
        let place = Place::with(&policy_faults(&format!("config = {settings}")));
        let session = place.serve(&[]).await;
        let refused = session.refused("task_get", json!({"task_id": "x"})).await;
        assert_eq!(refused["code"], "DROPTABLE");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.starts_with("policy `policy-faults`: [31mno !!!") && message.len() < 3_000,
            "{message}"
        );
        session.ok("task_list", json!({})).await;
        session.close().await;
    }
}

#[tokio::test]
async fn policies_that_fail_open_or_only_audit_let_calls_through() {
    for (more, verdict) in [
        (
            "fail_open = true\nconfig = { before = \"trap\", after = \"loop\" }",
            "failed",
        ),
        (
            "mode = \"audit\"\nconfig = { before = \"deny\", after = \"deny\" }",
            "deny",
        ),
        (
            "mode = \"audit\"\nconfig = { before = \"amend to no object\", after = \"grow\" }",
            "failed",
        ),
        ("config = { before = \"flood notes\" }", "pass"),
    ] {
        let place = Place::with(&policy_faults(more));
        let session = place.serve(&[]).await;
        session.ok("task_create", create()).await;
        session.close().await;
        let told = place.sql("SELECT verdicts FROM core_operations");
        let told: Value = serde_json::from_str(&told[0]).unwrap();
        let words: Vec<&Value> = told
            .as_array()
            .unwrap()
            .iter()
            .map(|said| &said["verdict"])
            .collect();
        assert_eq!(words[0], verdict, "{more}: {told}");
        assert_eq!(words.len(), 2, "{more}: {told}");
    }
}

#[tokio::test]
async fn what_a_policy_remembers_goes_with_the_call() {
    let denying = format!(
        "{}[policies.zz]\nsource = {:?}\nlimits.time_ms = 10000\ntools = [\"task_create\"]\nconfig = {{ after = \"deny success\" }}\n",
        policy_faults("config = { after = \"remember\" }"),
        guest("policy-faults")
    );
    let place = Place::with(&denying);
    let session = place.serve(&[]).await;
    session.refused("task_create", create()).await;
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM policy_task_store_seen"), ["0"]);
    let place = Place::with(&policy_faults("config = { after = \"remember\" }"));
    let session = place.serve(&[]).await;
    session.ok("task_create", create()).await;
    session.close().await;
    assert_eq!(
        place.sql("SELECT op_id FROM policy_task_store_seen"),
        place.sql("SELECT op_id FROM core_operations")
    );
    // What it wrote is its own, not the pack's: neither in what the call changed nor in the pack's pages.
    let changed = place.sql("SELECT changed_paths FROM core_operations");
    assert!(!changed[0].contains("policy_"), "{changed:?}");
}

#[tokio::test]
async fn one_that_cannot_be_loaded_denies_what_it_would_judge() {
    let nothing = r#"source = "nothing.wasm""#.to_owned();
    let pinned = format!(
        "source = \"builtin:cel\"\nsha256 = \"{}\"\nconfig = {{ when = \"true\", message = \"m\" }}",
        "0".repeat(64)
    );
    let describe_change = format!("source = {:?}", guest("describe-change"));
    let disliked = format!(
        "source = {:?}\nconfig = {{ dislikes = [\"one\", \"two\"] }}",
        guest("policy-faults")
    );
    let pack = format!("source = {:?}", guest("sql-access"));
    let settings = "source = \"builtin:path-guard\"\nconfig = { alow = [], deny = 3 }".to_owned();
    let describe_trap = format!("source = {:?}", guest("describe-trap"));
    let of = |file: &NamedTempFile| format!("source = {:?}", file.path());
    let large = NamedTempFile::new().unwrap();
    large.as_file().set_len(200 << 20).unwrap();
    let newer = altered(
        &std::fs::read(guest("policy-faults")).unwrap(),
        "@0.1.0",
        "@0.9.0",
    );
    let strange = altered(
        &std::fs::read(guest("policy-faults")).unwrap(),
        "wasi:cli/",
        "wasi:xyz/",
    );
    let name_taken = altered(
        tollgate_components::builtin::policy("cel").unwrap(),
        SUMMARY,
        OTHER_SUMMARY,
    );
    for (source, why) in [
        (describe_trap, "it does not describe itself"),
        (of(&large), "it has 209715200 bytes; at most 67108864 are allowed"),
        (of(&newer), "needs host API 0.9.0, but this host has 0.1.0"),
        (of(&strange), "imports interfaces that this host does not provide"),
        (
            format!(
                "{}\nconfig = {{ when = \"true\", message = \"m\" }}",
                of(&name_taken)
            ),
            "the name in its manifest, `cel`, belongs to a built-in policy",
        ),
        (nothing, "cannot read the file"),
        (pinned, "but the pinned one is"),
        (describe_change, "it describes itself differently on each call"),
        (
            disliked,
            "[policies.mine.config].one: is not to its liking; [policies.mine.config].two: is not",
        ),
        (pack, "it exports tollgate:host/pack; configure it under [packs]"),
        (settings, "alow"),
    ] {
        let place = Place::with(&format!("[policies.mine]\ntools = [\"task_get\"]\n{source}\n"));
        let output = place.run(&["policies", "list"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && said.contains(why),
            "{why}: {said}"
        );
        let (code, printed) = place.call("task_get", &json!({"task_id": "x"}));
        assert_eq!(
            (code, &printed["error"]["context"]["cause"]),
            (1, &json!("not_loaded")),
            "{printed:#}"
        );
        assert_eq!(place.call("task_list", &json!({})).0, 0);
    }
}

#[tokio::test]
async fn two_components_of_one_name_do_not_share_their_tables() {
    let other = altered(
        &std::fs::read(guest("policy-faults")).unwrap(),
        "Judges badly.",
        "Judges worse.",
    );
    let config = format!(
        "{}[policies.zz]\nsource = {:?}\ntools = [\"task_list\"]\n\
         [policies.again]\nsource = {:?}\nlimits.time_ms = 10000\ntools = [\"task_get\"]\n",
        policy_faults(""),
        other.path(),
        guest("policy-faults"),
    );
    let place = Place::with(&config);
    let listed = place.run(&["policies", "list"]);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(
        said.contains(
            "the name in its manifest, `task-store`, already belongs to the component of [policies.again]"
        ),
        "{said}"
    );
    let session = place.serve(&[]).await;
    // The same component under two names is one, and both judge.
    session.ok("task_create", create()).await;
    let refused = session.refused("task_list", json!({})).await;
    assert_eq!(refused["context"]["cause"], "not_loaded", "{refused:#}");
    assert_eq!(refused["context"]["policy"], "zz");
    session.close().await;
}

#[test]
fn ten_mistakes_in_policies_are_told_at_once() {
    let place = Place::with(
        "[policies.mine]\n[policies.a]\nsource = \"builtin:none\"\nmode = \"warn\"\nfail_open = 1\n\
         phase = \"later\"\ntools = [\"[\"]\norder = 0\nsha256 = \"12\"\nlimits.time_ms = 0\ncolour = 1\n",
    );
    let output = place.run(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("has 10 problems"), "{said}");
    assert!(!place.data().join("tollgate.db").exists());
}

#[tokio::test]
async fn a_policy_that_denies_everything_can_be_removed() {
    let place = Place::with(
        "[policies.closed]\nsource = \"builtin:cel\"\nlimits.time_ms = 10000\n\
         config = { when = \"true\", code = \"CLOSED\", message = \"no\" }\n",
    );
    let session = place.serve(&[]).await;
    for tool in ["task_list", "envelope_open", "ledger_query"] {
        assert_eq!(session.refused(tool, json!({})).await["code"], "CLOSED", "{tool}");
    }
    assert!(place.run(&["policies", "list"]).status.success());
    assert!(place.run(&["policies", "remove", "closed"]).status.success());
    until(async || {
        let result = session.call_raw("task_list", json!({})).await;
        result.is_error != Some(true)
    })
    .await;
    session.close().await;
}

#[test]
fn a_policy_whose_tables_could_be_anothers_is_refused_naming_both() {
    // `policy_task_store_…` could be tables of both.
    let longer = policy_component("loop-breaker");
    let longer = altered(&std::fs::read(longer).unwrap(), "loop-breaker", "task-store-x");
    let place = Place::with(&format!(
        "[policies.mine]\nsource = {:?}\n[policies.other]\nsource = {:?}\ngrants.ledger = true\n",
        guest("policy-faults"),
        longer.path()
    ));
    let listed = place.run(&["policies", "list"]);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(
        said.contains("`task-store-x`") && said.contains("`task-store` in [policies.mine]"),
        "{said}"
    );
}
