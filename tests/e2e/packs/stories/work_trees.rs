//! Stories of work trees that move: Git changes them in every way, or there are several in one envelope.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::envelopes::observed_edits::{FAILING, git, place, write};
use crate::harness::Place;

/// Change of the work tree, and true if it is in another state then.
type Change = (&'static str, fn(&Place), bool);

const CHANGES: [Change; 13] = [
    ("edit", |place| write(place, "value", "1"), true),
    ("stash", |place| git(place, &["stash", "-q"]), true),
    ("pop", |place| git(place, &["stash", "pop", "-q"]), true),
    ("stage", |place| git(place, &["add", "-A"]), false),
    ("commit", |place| git(place, &["commit", "-qm", "second"]), false),
    (
        "amend",
        |place| git(place, &["commit", "-q", "--amend", "-m", "other words"]),
        false,
    ),
    ("branch", |place| git(place, &["switch", "-qc", "side"]), false),
    (
        "mode",
        |place| {
            let file = place.path().join("work/value");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        },
        true,
    ),
    (
        "link",
        |place| std::os::unix::fs::symlink("value", place.path().join("work/link")).unwrap(),
        true,
    ),
    (
        "link elsewhere",
        |place| {
            std::fs::remove_file(place.path().join("work/link")).unwrap();
            std::os::unix::fs::symlink("run.sh", place.path().join("work/link")).unwrap();
        },
        true,
    ),
    (
        "nested repository",
        |place| git(place, &["init", "-q", "nested"]),
        true,
    ),
    (
        "edit and commit",
        |place| {
            write(place, "value", "5");
            git(place, &["commit", "-qam", "third"]);
        },
        true,
    ),
    (
        "back to the first branch",
        |place| git(place, &["reset", "-q", "--hard", "HEAD~1"]),
        true,
    ),
];

#[tokio::test]
async fn git_moves_under_an_envelope_and_only_edits_count() {
    let place = place("");
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session.ok("envelope_open", json!({"workspace": "default"})).await;
    let envelope = json!({"envelope_id": opened["envelope_id"]});
    let mut expected = 0;
    for (what, change, is_edit) in CHANGES {
        change(&place);
        expected += i64::from(is_edit);
        let ran = session.ok("test_run", envelope.clone()).await;
        assert_eq!(ran["observed_edits"], expected, "{what}: {ran:#}");
    }
    let recorded = session.ok("mutation_record", envelope.clone()).await;
    assert_eq!(
        recorded["changed_paths"],
        json!(["link", "nested/", "value"]),
        "{recorded:#}"
    );
    // What was committed before it is recorded is still told.
    write(&place, "value", "6\n7\n");
    git(&place, &["commit", "-qam", "fourth"]);
    let recorded = session.ok("mutation_record", envelope.clone()).await;
    assert_eq!(recorded["changed_paths"], json!(["value"]), "{recorded:#}");
    assert_eq!(recorded["diff_stats"]["files_changed"], 1);
    let message = recorded["message"].as_str().unwrap();
    assert!(message.starts_with("1 file changed, +2 -1"), "{message}");
    let report = session.ok("ledger_report", envelope).await;
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("1 file changed, +2 -1"), "{text}");
    session.close().await;
}

#[tokio::test]
async fn three_workspaces_in_one_envelope_do_not_answer_for_each_other() {
    let place = Place::with(
        &["default", "py", "js"]
            .map(|name| {
                format!("[workspaces.{name}]\npath = \"work/{name}\"\nrepository = \"work\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n")
            })
            .concat(),
    );
    for name in ["default", "py", "js"] {
        std::fs::create_dir_all(place.path().join("work").join(name)).unwrap();
        write(&place, &format!("{name}/value"), "-1");
        write(&place, &format!("{name}/run.sh"), FAILING);
    }
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session.ok("envelope_open", json!({})).await;
    let run = async |name: &str| session.ok("test_run", json!({"workspace": name})).await;
    let flags = async || {
        let envelope = json!({"envelope_id": opened["envelope_id"]});
        session.ok("envelope_get", envelope).await["flags"].clone()
    };
    for name in ["py", "js"] {
        assert_eq!(run(name).await["non_progress"], false);
    }
    // An edit in one says nothing about the other.
    write(&place, "py/value", "2");
    assert_eq!(run("py").await["non_progress"], true);
    assert_eq!(run("js").await["non_progress"], false);
    write(&place, "js/value", "2");
    assert_eq!(run("js").await["non_progress"], true);
    // One passes, and the other still fails: both views say so.
    write(&place, "py/run.sh", "exit 0\n");
    assert_eq!(run("py").await["passed"], true);
    for (name, expected) in [("py", false), ("js", true)] {
        let status: Value = session.ok("convergence_status", json!({"workspace": name})).await;
        assert_eq!(status["non_progress"], expected, "{name}: {status:#}");
    }
    assert_eq!(flags().await["non_progress"], true);
    write(&place, "js/run.sh", "exit 0\n");
    run("js").await;
    assert_eq!(flags().await["non_progress"], false);
    session.close().await;
}
