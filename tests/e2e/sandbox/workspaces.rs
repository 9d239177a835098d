//! Files through the whole host: granted access, refused access, and writes after a commit.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::collections::HashMap;
use std::os::unix::fs::symlink;

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Place, guest};
use crate::workspace_access::{Meddling, result};

#[tokio::test]
async fn a_component_sees_what_the_operator_offers_and_no_more() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let seen = result(&session, "workspace_access_describe", json!({})).await;
    expect![[r#"main write=[".git/", "out/"] git=Some(Read) tests=["default=sh -c echo tested"]"#]]
        .assert_eq(&seen);
    let refusal = session
        .refused(
            "workspace_access_look",
            json!({"how": "stat", "paths": ["."], "workspace": "other"}),
        )
        .await;
    assert_eq!(refusal["code"], "WORKSPACE_UNKNOWN");
}

#[tokio::test]
async fn no_path_leads_out_and_no_write_outside_a_prefix() {
    let meddling = Meddling::new();
    let main = meddling.main();
    std::fs::write(meddling.place.path().join("outside/secret"), "secret").unwrap();
    symlink("../outside", main.join("up")).unwrap();
    symlink("../../outside", main.join("out")).unwrap();
    std::fs::write(main.join("a\nb"), "odd").unwrap();
    let session = meddling.serve().await;
    let looks = json!([
        "../outside/secret",
        "/etc/passwd",
        "up/secret",
        "x\u{2400}y",
        "a\nb",
        "missing"
    ]);
    let mut log = result(
        &session,
        "workspace_access_look",
        json!({"how": "read", "paths": looks}),
    )
    .await;
    log += "\n";
    log += &result(
        &session,
        "workspace_access_look",
        json!({"how": "list", "paths": ["."]}),
    )
    .await;
    let ahead = json!({"how": "read", "paths": looks, "ahead": true});
    let mut seen = result(&session, "workspace_access_look", ahead).await;
    let ahead = json!({"how": "list", "paths": [".", "../outside"], "ahead": true});
    seen += "\n";
    seen += &result(&session, "workspace_access_look", ahead).await;
    let escaped = "access refused: `../outside` contains `..`";
    assert_eq!(seen, format!("{log}\n{escaped}"), "a hint opens nothing");
    for ahead in [false, true] {
        let paths = json!([".", "../outside", "up", "missing", "a\nb"]);
        let twice = json!({"how": "unless", "paths": paths, "ahead": ahead});
        expect![[r#"
            "a\nb" File, "out" Symlink, "up" Symlink; the same
            access refused: `../outside` contains `..`
            access refused: `up` leaves the workspace
            `missing` does not exist
            `a\nb` is, or goes through, a path that is not a directory"#]]
        .assert_eq(&result(&session, "workspace_access_look", twice).await);
    }
    let paths = [
        "out/x",
        "elsewhere",
        "../outside/x",
        "/tmp/x",
        "up/x",
        ".git/hooks/post-commit",
        "outx/y",
    ];
    let files: Vec<Value> = paths
        .iter()
        .map(|path| json!({"path": path, "content": "x"}))
        .collect();
    for file in files {
        log += "\n";
        log += &result(
            &session,
            "workspace_access_run",
            json!({"program": "echo", "files": [file]}),
        )
        .await;
    }
    log += "\n";
    log += &result(
        &session,
        "workspace_access_write_reading",
        json!({"files": [{"path": "out/x", "content": "x"}]}),
    )
    .await;
    expect![[r#"
        access refused: `../outside/secret` contains `..`
        access refused: `/etc/passwd` is absolute; paths start at the workspace's root
        access refused: `up/secret` leaves the workspace
        access refused: `x\0y` contains a NUL
        odd
        `missing` does not exist
        "a\nb" File, "out" Symlink, "up" Symlink
        access refused: `out/x` goes through a link or a path that is not a directory; writes do not follow links; Exited(0) 1 0 [
        ] []
        access refused: `elsewhere` may not be written; to allow it, set `write = ["out/", ".git/", "elsewhere"]` in [workspaces.main]; Exited(0) 1 0 [
        ] []
        access refused: `../outside/x` contains `..`; Exited(0) 1 0 [
        ] []
        access refused: `/tmp/x` is absolute; paths start at the workspace's root; Exited(0) 1 0 [
        ] []
        access refused: `up/x` may not be written; to allow it, set `write = ["out/", ".git/", "up/"]` in [workspaces.main]; Exited(0) 1 0 [
        ] []
        access refused: `.git/hooks/post-commit` belongs to git; Exited(0) 1 0 [
        ] []
        access refused: `outx/y` may not be written; to allow it, set `write = ["out/", ".git/", "outx/"]` in [workspaces.main]; Exited(0) 1 0 [
        ] []
        access refused: this tool is read-only; not allowed: only `run` tools start processes"#]].assert_eq(&log);
    let left: Vec<_> = std::fs::read_dir(meddling.place.path().join("outside"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn what_was_read_ahead_is_not_what_it_was_before_a_change() {
    let meddling = Meddling::new();
    std::fs::create_dir(meddling.main().join("out")).unwrap();
    std::fs::write(meddling.main().join("out/x"), "old").unwrap();
    let session = meddling.serve().await;
    for round in 0..20 {
        std::fs::write(meddling.main().join("out/x"), "old").unwrap();
        let ran = result(
            &session,
            "workspace_access_run",
            json!({"program": "sh", "arguments": ["-c", "printf newest > out/x"], "reads": "out/x",
                   "files": [{"path": "out/x", "content": "newer"}]}),
        )
        .await;
        assert_eq!(
            ran, "old; ok; newer; Exited(0) 0 0 [] []; newest",
            "round {round}"
        );
    }
}

#[tokio::test]
async fn files_of_a_write_call_follow_its_commit() {
    let meddling = Meddling::new();
    let out = meddling.main().join("out");
    let session = meddling.serve().await;
    session
        .refused(
            "workspace_access_write",
            json!({"files": [{"path": "out/never", "content": "x"}], "fail": true}),
        )
        .await;
    assert!(!out.exists(), "a call that was rolled back writes nothing");
    let calls = (0..20).map(async |number| {
        let file = json!({"path": "out/log", "content": format!("{number}\n"), "append": true});
        let reply = session
            .call_raw("workspace_access_write", json!({"files": [file]}))
            .await;
        let op_id = reply.meta.unwrap().0["tollgate/op_id"]
            .as_str()
            .unwrap()
            .to_owned();
        (op_id, number.to_string())
    });
    let calls: HashMap<String, String> = futures::future::join_all(calls).await.into_iter().collect();
    let text = std::fs::read_to_string(out.join("log")).unwrap();
    let committed = meddling
        .place
        .sql("SELECT op_id FROM core_operations WHERE success = 1 ORDER BY seq");
    let expected: Vec<&str> = committed.iter().map(|op_id| calls[op_id].as_str()).collect();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        expected,
        "each is written, in the order of the commits"
    );
    session.close().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_written_makes_the_reply_stale() {
    let meddling = Meddling::new();
    std::fs::create_dir_all(meddling.main().join("out/taken")).unwrap();
    let session = meddling.serve().await;
    let files = json!([{"path": "out/taken", "content": "x"}, {"path": "out/free", "content": "x"}]);
    let reply = session
        .call_raw("workspace_access_write", json!({"files": files}))
        .await;
    let body = reply.structured_content.unwrap();
    expect![[r#"{"results":["ok","ok"],"stale":true,"warnings":["workspace main: `out/taken` exists and is not a regular file"]}"#]].assert_eq(&serde_json::to_string(&body).unwrap());
    let meta = Value::Object(reply.meta.unwrap().0);
    assert_eq!(meta["tollgate/stale"]["reasons"].as_array().unwrap().len(), 1);
    assert!(meddling.main().join("out/free").exists());
    assert_eq!(meddling.place.ledger(), ["workspace_access_write write ok"]);
}

#[tokio::test]
async fn an_envelope_remembers_the_commit_of_its_workspace() {
    let meddling = Meddling::new();
    let main = meddling.main();
    let commit = || {
        let script = "git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git rev-parse HEAD";
        let done = std::process::Command::new("sh")
            .args(["-c", script])
            .current_dir(&main)
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let first = commit();
    let session = meddling.serve().await;
    let opened = session.ok("envelope_open", json!({"workspace": "main"})).await;
    assert_eq!(opened["repo_snapshot"]["git_head"], first.as_str());
    let second = commit();
    let closed = session
        .ok(
            "envelope_close",
            json!({"envelope_id": opened["id"], "outcome": "success", "report": true}),
        )
        .await;
    assert_eq!(
        closed["envelope"]["repo_snapshot"]["closed_git_head"],
        second.as_str()
    );
    let text = closed["report"]["text"].as_str().unwrap();
    assert!(
        text.contains(&format!("at {first} before, and at {second} after")),
        "{text}"
    );
    let label = session
        .ok("envelope_open", json!({"workspace": "only a label"}))
        .await;
    assert_eq!(label["repo_snapshot"], json!({}));
}

#[tokio::test]
async fn a_component_that_was_granted_nothing_is_told_how_to_be() {
    let place = Place::with_guests(&["workspace-access"]);
    let output = place.run(&["packs", "list"]);
    let told = String::from_utf8(output.stderr).unwrap();
    for line in [
        "`grants.workspaces = [\"default\"]` in [packs.workspace-access]",
        "`grants.process = [\"sh\", \"echo\", \"no-such-program\", \"tests\", \"git\"]` in [packs.workspace-access]",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[tokio::test]
async fn read_only_leaves_nothing_that_writes_or_runs() {
    let meddling = Meddling::new();
    let session = meddling.place.serve(&["--tier", "full", "--read-only"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool.name.as_ref())
        .filter(|name| name.starts_with("workspace_access"))
        .collect();
    assert_eq!(
        names,
        [
            "workspace_access_describe",
            "workspace_access_look",
            "workspace_access_write_reading"
        ]
    );
}

#[tokio::test]
async fn a_flag_names_a_workspace_and_the_current_directory_is_the_default() {
    let place = Place::with_guests(&[]);
    let config = format!(
        "[packs.workspace-access]\nsource = {:?}\ngrants = {{ workspaces = [\"*\"], process = [\"*\"] }}\n",
        guest("workspace-access")
    );
    std::fs::write(place.config(), config).unwrap();
    let (_, seen) = place.call("workspace_access_describe", &json!({}));
    assert_eq!(seen["result"], "default write=[] git=Some(Read) tests=[]");
    std::fs::create_dir(place.path().join("here")).unwrap();
    let here = format!("here={}", place.path().join("here").display());
    let output = place.run(&[
        "--json",
        "--workspace",
        &here,
        "call",
        "workspace_access_describe",
    ]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["result"], "here write=[] git=Some(Read) tests=[]");
    let around = format!("c={}", place.path().display());
    let named = [
        "--workspace",
        "a=/no/such",
        "--workspace",
        "b=/none",
        "--workspace",
        &around,
    ];
    let output = place.run(&[&named[..], &["call", "workspace_access_describe"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("overlap, so packs"), "{told}");
    assert!(told.contains("/no/such") && told.contains("/none"), "{told}");
}

#[tokio::test]
async fn workspaces_are_listed_with_what_a_call_needs_to_know() {
    let place = Place::with(
        "[workspaces.default]\npath = \"work\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n\
         tests.slow = [\"sleep\", \"1\"]\n[workspaces.notes]\npath = \"notes\"\ngit = \"none\"\nwrite = [\"docs\"]\n",
    );
    for folder in ["work", "notes"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    crate::envelopes::observed_edits::write(&place, "run.sh", "exit 0\n");
    for arguments in [
        ["init", "-q"].as_slice(),
        &["add", "-A"],
        &["commit", "-qm", "first"],
    ] {
        crate::envelopes::observed_edits::git(&place, arguments);
    }
    let session = place.serve(&["--tier", "full"]).await;
    let listed = session.ok("workspace_list", json!({})).await;
    let [work, notes] = listed["workspaces"].as_array().unwrap().as_slice() else {
        panic!("{listed:#}");
    };
    assert_eq!(
        work["tests"],
        json!({"default": ["sh", "run.sh"], "slow": ["sleep", "1"]})
    );
    assert_eq!(
        (&work["workspace"], &work["git"]),
        (&json!("default"), &json!("read"))
    );
    assert_eq!(work["path"], place.path().join("work").to_str().unwrap());
    assert_eq!(work["git_head"].as_str().map(str::len), Some(40), "{work:#}");
    assert_eq!(
        (&notes["workspace"], &notes["git"]),
        (&json!("notes"), &json!("none"))
    );
    assert_eq!(notes["write"], json!(["docs"]));
    assert_eq!(notes.get("git_head"), None);
    // A wrong name leads to it.
    let refusal = session.refused("test_run", json!({"workspace": "wrk"})).await;
    assert_eq!(refusal["code"], "WORKSPACE_UNKNOWN", "{refusal:#}");
    assert!(refusal.to_string().contains("workspace_list"), "{refusal:#}");
    session.close().await;
}
