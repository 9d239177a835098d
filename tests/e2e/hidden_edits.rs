//! Edits in places that Git does not look into by itself, and limits of edits where Git was broken.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use serde_json::json;

use crate::observed::{git, place, write};

#[tokio::test]
async fn breaking_git_is_no_way_around_a_limit_of_edits() {
    let place = place("[envelope]\nauto = true\nmax_edits = 4\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    let git_folder = place.path().join("work/.git");
    let aside = place.path().join("aside");
    std::fs::rename(&git_folder, &aside).unwrap();
    write(&place, "value", "1");
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("workspace default is not a Git repository; nothing was run"),
        "{message}"
    );
    let next = &refusal["next_call"];
    session
        .ok(next["tool"].as_str().unwrap(), next["arguments"].clone())
        .await;
    std::fs::rename(&aside, &git_folder).unwrap();
    // A program in the repository's own configuration, which the host does not run.
    git(&place, &["config", "filter.x.clean", "cat"]);
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    git(&place, &["config", "--unset", "filter.x.clean"]);
    let ran = session.ok("test_run", json!({})).await;
    assert_eq!(
        (&ran["observed_edits"], &ran["failure_seen"]),
        (&json!(1), &json!(2))
    );
    session.close().await;
    let place = crate::observed::place("[[envelope.window]]\nper = \"1h\"\nmax_edits = 4\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("envelope_open", json!({"workspace": "default"})).await;
    std::fs::rename(place.path().join("work/.git"), place.path().join("aside")).unwrap();
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    session.close().await;
}

#[tokio::test]
async fn edits_in_a_repository_of_its_own_and_in_flagged_files_count() {
    let place = place("[envelope]\nauto = true\n");
    for name in ["assumed", "skipped", "absent"] {
        write(&place, name, "before");
    }
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "second"]);
    std::fs::create_dir(place.path().join("work/sub")).unwrap();
    git(&place, &["init", "-q", "sub"]);
    write(&place, "sub/x.py", "1");
    git(&place, &["update-index", "--assume-unchanged", "assumed"]);
    git(&place, &["update-index", "--skip-worktree", "skipped", "absent"]);
    std::fs::remove_file(place.path().join("work/absent")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    let edits = async || session.ok("test_run", json!({})).await["observed_edits"].clone();
    assert_eq!(edits().await, 0, "nothing was changed");
    for (count, (file, content)) in [
        ("sub/x.py", "2"),
        ("sub/deeper.py", "2"),
        ("assumed", "after"),
        ("skipped", "after"),
        ("absent", "after"),
        ("skipped", "before"),
    ]
    .iter()
    .enumerate()
    {
        write(&place, file, content);
        assert_eq!(edits().await, count + 1, "{file}");
    }
    // A commit in it changes none of its files.
    git(&place, &["-C", "sub", "add", "-A"]);
    git(&place, &["-C", "sub", "commit", "-qm", "first"]);
    assert_eq!(edits().await, 6);
    write(&place, "sub/x.py", "1");
    assert_eq!(edits().await, 7);
    git(&place, &["update-index", "--no-assume-unchanged", "assumed"]);
    assert_eq!(edits().await, 7, "a flag is no edit");
    session.close().await;
}
