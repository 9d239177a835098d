//! Snapshots, maps, descriptions and clean-up plans of a job's repository.

use std::os::unix::ffi::OsStrExt as _;

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::GitAccess;
use tollgate_sdk::native::{Session, Workspace};

use crate::harness::{Bench, READY, check, result, step};

/// A small committed project in the repository of a job.
fn shop() -> Bench {
    let bench = Bench::with_repository();
    bench.write_all(&[
        (
            "pyproject.toml",
            "[project]\nname = \"shop\"\n[project.scripts]\nshop = \"shop.main:run\"\n",
        ),
        (".gitignore", "*.log\nbuild/\n"),
        ("shop/__init__.py", ""),
        ("shop/main.py", "from shop import cart\nimport os\n"),
        (
            "shop/cart.py",
            "from shop.money import Euro\nfrom shop.gone import x\n",
        ),
        ("shop/money.py", "class Euro: ...\n"),
        ("shop/old_cart.py", "import os\n"),
        ("trace.log", "ignored"),
        ("build/out.py", "import ignored"),
    ]);
    bench.commit_all("shop");
    bench
}

#[test]
fn a_snapshot_says_what_changed_since_the_last() {
    let bench = shop();
    bench.write("shop/tax.py", "import os\n");
    bench.git(&["mv", "shop/money.py", "shop/coins.py"]);
    let mut log = bench.run(
        r#"
        repo_snapshot {"notes": "before the work"} ? sequence files changes changed notes effort.ignored partial new_without_description key_files file_tree
        "#,
    );
    std::fs::remove_file(bench.dir.as_ref().unwrap().path().join("shop/tax.py")).unwrap();
    bench.write("a.txt", "one\ntwo\nthree\n");
    log += &bench.run("repo_snapshot {} ? sequence changes changed");
    expect![[r#"
        ok sequence=2 files=9 changes={"added":8,"removed":0,"modified":0,"renamed":0,"unchanged":1} changed={"added":[".gitignore","pyproject.toml","shop/__init__.py","shop/cart.py","shop/coins.py","shop/main.py","shop/old_cart.py","shop/tax.py"],"removed":[],"modified":[],"renamed":[]} notes="before the work" effort.ignored=2 partial=false new_without_description=["shop/__init__.py","shop/cart.py","shop/coins.py","shop/main.py","shop/old_cart.py","shop/tax.py"] key_files=["pyproject.toml"]
        shop/ 6
        .gitignore
        a.txt
        pyproject.toml

        ok sequence=3 changes={"added":0,"removed":1,"modified":1,"renamed":0,"unchanged":7} changed={"added":[],"removed":["shop/tax.py"],"modified":["a.txt"],"renamed":[]}
    "#]]
    .assert_eq(&log);
}

#[test]
fn what_git_tracks_counts_although_it_is_ignored() {
    let bench = shop();
    bench.git(&["add", "--force", "trace.log", "build/out.py"]);
    let paths = |bench: &Bench| {
        bench.reply("repo_map_update", json!({}));
        let page = bench.reply("repo_map_query", json!({}));
        let files = page["files"].as_array().unwrap().iter();
        files
            .map(|file| file["path"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let listed = bench.git(&["ls-files", "--cached", "--others", "--exclude-standard"]);
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(paths(&bench), listed);
    assert!(listed.contains(&"build/out.py"));
    // Neither index nor rules changed: what Git said before still holds, and what was changed is seen.
    bench.write("build/out.py", "import other");
    assert_eq!(paths(&bench), listed);
    // What is taken away and brought back without Git's knowing is found again.
    std::fs::remove_dir_all(bench.dir.as_ref().unwrap().path().join("build")).unwrap();
    assert!(!paths(&bench).contains(&"build/out.py".to_owned()));
    bench.write("build/out.py", "import other");
    assert_eq!(paths(&bench), listed);
    bench.git(&["rm", "--cached", "--force", "--quiet", "build/out.py"]);
    assert!(!paths(&bench).contains(&"build/out.py".to_owned()));
}

#[test]
fn a_later_snapshot_says_what_a_first_one_would() {
    let bench = shop();
    let root = bench.dir.as_ref().unwrap().path();
    let steps: [(&str, &dyn Fn()); 9] = [
        ("nothing", &|| ()),
        ("one file is another", &|| {
            bench.write("shop/cart.py", "import os\n");
        }),
        ("directories come", &|| {
            bench.write("docs/deep/er/README.md", "x");
            bench.write("docs/deep/Cargo.toml", "[package]");
            bench.write("docs/deep/x.log", "ignored");
        }),
        ("nothing again", &|| ()),
        ("Git tracks what is ignored", &|| {
            bench.git(&["add", "--force", "docs/deep/x.log", "build/out.py"]);
        }),
        ("that is another, too", &|| {
            bench.write("docs/deep/x.log", "still ignored")
        }),
        ("Git tracks it no more", &|| {
            bench.git(&[
                "rm",
                "--quiet",
                "--cached",
                "--force",
                "docs/deep/x.log",
                "build/out.py",
            ]);
        }),
        ("other rules", &|| bench.write(".gitignore", "deep/\n*.txt\n")),
        ("a directory moves", &|| {
            std::fs::rename(root.join("shop"), root.join("store")).unwrap();
        }),
    ];
    // No file is younger than a second at the time of these snapshots.
    bench.session.advance_ms(100 * 365 * 24 * 3_600_000);
    for (what, step) in steps {
        step();
        let later = bench.reply("repo_snapshot", json!({}));
        let again = bench.reply("repo_snapshot", json!({}));
        assert_eq!(again["effort"]["read"], 0, "{what}");
        assert_eq!(again["changes"]["unchanged"], later["files"], "{what}");
        let init = json!({"title": "Other", "goal": "Look", "repo_root": "main"});
        let other = bench.reply("conductor_init", init);
        let first = &other["snapshot"];
        for field in ["files", "bytes", "key_files", "file_tree"] {
            for snapshot in [&later, &again] {
                assert_eq!(snapshot[field], first[field], "{what}: {field}");
            }
        }
        let map = bench.reply("repo_map_query", json!({}));
        let fresh = bench.reply("repo_map_query", json!({"job_id": other["job_id"]}));
        let paths = |map: &Value| {
            let files = map["files"].as_array().unwrap().iter();
            files.map(|file| file["path"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(paths(&map), paths(&fresh), "{what}");
    }
    let last = bench.reply("repo_snapshot", json!({}));
    let new = last["new_without_description"].as_array().unwrap();
    assert!(
        new.contains(&json!("store/cart.py")) && !new.contains(&json!("a.txt")),
        "{new:?}"
    );
}

#[test]
fn a_map_is_made_asked_and_exported() {
    let bench = shop();
    let log = bench.run(
        r#"
        repo_map_update {} ? files languages entry_points missing_imports stale_candidates without_description
        - repo_file_descriptions_update {"descriptions": {"shop/cart.py": "What a customer wants to buy", "shop/old_cart.py": "Obsolete; see cart.py"}}
        repo_map_query {"importers_of": "shop/money.py", "depth": 2}
        repo_map_query {"text": "customer", "limit": 1} ? files.0.path total
        repo_map_query {"imports_of": "money.py"}
        repo_map_query {"depth": 0, "limit": 500}
        repo_map_export {} ? format part parts unread content
        repo_map_export {"part": 2}
        repo_find_stale_candidates {"min_score": 20}
        repo_find_stale_candidates {} ? candidates total unread warnings
        repo_hygiene_suggest {"limit": 2} ? suggestions total keep_plan.arguments.content
        "#,
    );
    expect![[r#"
        ok files=8 languages=[{"language":"Python","files":5,"resolved":2,"external":2,"missing":1,"unknown":0}] entry_points=[{"kind":"binary","name":"shop","file":"shop/main.py","from":"pyproject.toml"}] missing_imports=["shop/cart.py:2: shop.gone: x"] stale_candidates=1 without_description=6
        ok {"files":[{"path":"shop/cart.py","description":"What a customer wants to buy","role":"source","language":"Python","owner":"shop","size":52,"imports":1,"imported_by":1,"distance":1},{"path":"shop/main.py","role":"source","language":"Python","owner":"shop","size":32,"imports":1,"imported_by":0,"distance":2}],"total":2,"unread":0}
        ok files.0.path="shop/cart.py" total=1
        err NOT_IN_MAP: money.py is not in the map; files of that name: shop/money.py
          - NOT_IN_MAP: money.py is not in the map; files of that name: shop/money.py
        err INVALID_ARGUMENTS: limit is 500, not within 1 to 200; and 1 more reason
          - INVALID_ARGUMENTS (limit): limit is 500, not within 1 to 200
          - INVALID_ARGUMENTS (depth): depth is 0, not within 1 to 100
        ok format="md" part=1 parts=1 unread=0
        # Repository map

        Files: 8, size: 196 bytes.

        | language | files | imports found | outside | missing |
        |---|---|---|---|---|
        | Python | 5 | 2 | 2 | 1 |

        ## Entry points

        - binary `shop`: `shop/main.py`

        ## Files

        ### `shop`

        - `pyproject.toml`
        - `shop/__init__.py`
        - `shop/cart.py`: What a customer wants to buy (imported by 1, imports 1)
        - `shop/main.py` (imports 1)
        - `shop/money.py` (imported by 1)
        - `shop/old_cart.py`: Obsolete; see cart.py
        - top: `.gitignore`, `a.txt`

        ## Conventions

        - Python files are named in snake_case.

        ## Imports without a file

        - `shop/cart.py`:2: `shop.gone: x`

        ## Deprecated or stale

        - `shop/old_cart.py` (100): nothing imports it; described as deprecated: Obsolete; see cart.py; named like a disused file (`old`)

        err INVALID_ARGUMENTS: part is 2, not within 1 to 1
          - INVALID_ARGUMENTS (part): part is 2, not within 1 to 1
        err INVALID_ARGUMENTS: min_score is 20, not within 30 to 100
          - INVALID_ARGUMENTS (min_score): min_score is 20, not within 30 to 100
        ok candidates=[{"path":"shop/old_cart.py","score":100,"reasons":["nothing imports it","described as deprecated: Obsolete; see cart.py","named like a disused file (`old`)"],"next_call":{"tool":"repo_map_query","arguments":{"job_id":"JOB","importers_of":"shop/old_cart.py"}}}] total=1 unread=0 warnings=null
        ok suggestions=[{"action":"repair","paths":["shop/cart.py"],"reasons":["line 2 imports `shop.gone: x`, which does not exist"],"next_call":{"tool":"repo_map_query","arguments":{"imports_of":"shop/cart.py","job_id":"JOB"}}},{"action":"delete","paths":["shop/old_cart.py"],"reasons":["nothing imports it","described as deprecated: Obsolete; see cart.py","named like a disused file (`old`)"],"next_call":{"tool":"repo_map_query","arguments":{"importers_of":"shop/old_cart.py","job_id":"JOB"}}}] total=4
        # Clean-up plan

        - repair shop/cart.py: line 2 imports `shop.gone: x`, which does not exist
        - delete shop/old_cart.py: nothing imports it; described as deprecated: Obsolete; see cart.py; named like a disused file (`old`)

    "#]].assert_eq(&log);
}

#[test]
fn ready_calls_of_a_clean_up_plan_can_be_made() {
    let bench = shop();
    bench.write("notes.txt.bak", "a backup\n");
    bench.reply("repo_map_update", json!({}));
    bench.reply("plan_propose_steps", json!({"steps": [step("Work", json!([]))]}));
    let plan = bench.reply("repo_hygiene_suggest", json!({}));
    assert!(
        plan["keep_plan"].is_object() && plan["add_step"].is_object(),
        "{plan}"
    );
    bench.follow(&plan["keep_plan"]);
    bench.follow(&plan["add_step"]);
    for suggestion in plan["suggestions"].as_array().unwrap() {
        if suggestion["action"] != "describe" {
            bench.follow(&suggestion["next_call"]);
        }
    }
    let steps = bench.reply("job_get", json!({}))["steps"].clone();
    assert_eq!(steps[1]["title"], "Clean up", "{steps}");
}

#[test]
fn descriptions_are_kept_whole_or_not_at_all() {
    let bench = shop();
    bench.run("- repo_map_update {}");
    let mut log = bench.run(
        r#"
        repo_file_descriptions_update {}
        repo_file_descriptions_update {"descriptions": {"shop/cart.py": "A cart", "shop/cort.py": "?", "../x": "y", "shop/main.py": "main.py", "shop/money.py": "<one line>"}}
        repo_file_descriptions_update {"descriptions": {"shop/cart.py": "A cart", "shop/money.py": "Amounts"}} ? stored described new_without_description
        repo_file_descriptions_update {"remove": ["shop/cart.py", "nothing"]} ? removed described
        "#,
    );
    // One that is younger than the last snapshot, one that moves, one that goes.
    bench.write("shop/young.py", "x = 1\n");
    bench.run(r#"- repo_file_descriptions_update {"descriptions": {"shop/young.py": "Came later", "shop/cart.py": "Goes"}}"#);
    bench.git(&["mv", "shop/money.py", "shop/coins.py"]);
    bench.git(&["rm", "--quiet", "shop/cart.py"]);
    log += &bench.run(
        r#"
        repo_map_update {} ? dropped_descriptions
        repo_map_query {"text": "amounts"} ? files.0.path
        "#,
    );
    expect![[r#"
        err INVALID_ARGUMENTS: descriptions is empty, and so is remove; pass at least one of them
          - INVALID_ARGUMENTS (descriptions): descriptions is empty, and so is remove; pass at least one of them
        err DESCRIPTION_REFUSED: ../x is not a file of the repository; and 3 more reasons
          - DESCRIPTION_REFUSED (descriptions): ../x is not a file of the repository
          - DESCRIPTION_REFUSED (descriptions): shop/cort.py is not a file of the repository
          - DESCRIPTION_REFUSED (descriptions): the description of shop/main.py only repeats its name
          - DESCRIPTION_REFUSED (descriptions): the description of shop/money.py is a placeholder
        ok stored=2 described=2 new_without_description=["shop/__init__.py","shop/main.py","shop/old_cart.py"]
        ok removed=1 described=1
        ok dropped_descriptions=["shop/cart.py"]
        ok files.0.path="shop/coins.py"
    "#]]
    .assert_eq(&log);
}

#[test]
fn what_cannot_be_read_is_said() {
    check(
        r#"
        repo_snapshot {}
        repo_map_update {}
        repo_snapshot {"repo_root": "nowhere", "max_depth": 0, "max_entries": 60000}
        repo_snapshot {"repo_root": "../up"}
        repo_snapshot {"repo_root": "nowhere"}
        repo_file_descriptions_update {"descriptions": {"a.py": "A file"}}
        repo_map_query {}
        repo_map_export {}
        repo_find_stale_candidates {}
        repo_hygiene_suggest {}
        "#,
        expect![[r#"
            err REPOSITORY_UNAVAILABLE: the repository cannot be read: the job has no repo_root
              - REPOSITORY_UNAVAILABLE: the repository cannot be read: the job has no repo_root
            err REPOSITORY_UNAVAILABLE: the repository cannot be read: the job has no repo_root
              - REPOSITORY_UNAVAILABLE: the repository cannot be read: the job has no repo_root
            err INVALID_ARGUMENTS: max_entries is 60000, not within 1 to 50000; and 1 more reason
              - INVALID_ARGUMENTS (max_entries): max_entries is 60000, not within 1 to 50000
              - INVALID_ARGUMENTS (max_depth): max_depth is 0, not within 1 to 64
            err INVALID_ARGUMENTS: repo_root must be the name of a workspace, or a path in one without `..` (no workspace is registered for this pack)
              - INVALID_ARGUMENTS (repo_root): repo_root must be the name of a workspace, or a path in one without `..` (no workspace is registered for this pack)
            err REPOSITORY_UNAVAILABLE: the repository cannot be read: workspace `nowhere` does not exist or is not granted to this pack
              - REPOSITORY_UNAVAILABLE: the repository cannot be read: workspace `nowhere` does not exist or is not granted to this pack
            err DESCRIPTION_REFUSED: a.py is not a file of the repository
              - DESCRIPTION_REFUSED (descriptions): a.py is not a file of the repository
            err MAP_MISSING: there is no map of the repository yet
              - MAP_MISSING: there is no map of the repository yet -> repo_map_update {"job_id":"JOB"}
            err MAP_MISSING: there is no map of the repository yet
              - MAP_MISSING: there is no map of the repository yet -> repo_map_update {"job_id":"JOB"}
            err MAP_MISSING: there is no map of the repository yet
              - MAP_MISSING: there is no map of the repository yet -> repo_map_update {"job_id":"JOB"}
            err MAP_MISSING: there is no map of the repository yet
              - MAP_MISSING: there is no map of the repository yet -> repo_map_update {"job_id":"JOB"}
        "#]],
    );
}

#[test]
fn a_root_can_be_given_with_the_first_snapshot() {
    let bench = shop();
    let begun = bench
        .session
        .call(
            "conductor_init",
            r#"{"title": "Another", "goal": "Another goal"}"#,
        )
        .unwrap();
    let begun: Value = serde_json::from_str(&begun.structured).unwrap();
    let other = Bench {
        job: begun["job_id"].as_str().unwrap().to_owned(),
        ..bench
    };
    let log = other.run(
        r#"
        repo_snapshot {"repo_root": "main/shop"} ? sequence files repo_root
        job_get {} ? repo_root
        repo_snapshot {"repo_root": "main"}
        repo_map_update {} ? files languages.0
        "#,
    );
    expect![[r#"
        ok sequence=1 files=5 repo_root="main/shop"
        ok repo_root="main/shop"
        err INVALID_ARGUMENTS: repo_root is main, but the job's repo_root is main/shop; change it with conductor_answer
          - INVALID_ARGUMENTS (repo_root): repo_root is main, but the job's repo_root is main/shop; change it with conductor_answer
        ok files=5 languages.0={"language":"Python","files":5,"resolved":0,"external":5,"missing":0,"unknown":0}
    "#]].assert_eq(&log);
}

#[test]
fn a_baseline_is_asked_for_where_the_policies_do() {
    let bench = Bench::new();
    bench.run(READY);
    bench.reply("plan_propose_steps", json!({"steps": [step("Work", json!([]))]}));
    let log = bench.run(
        r#"
        - job_update_policies {"policies": {"require_repo_snapshot_on_init": true}}
        - conductor_answer {"answers": {"repo_root": "main"}}
        job_set_ready {}
        "#,
    );
    expect![[r#"
        err PLAN_INCOMPLETE: the plan has 1 gap
          - BASELINE_MISSING (repo_root): there is no snapshot of the repository to compare later states with -> repo_snapshot {"job_id":"JOB"}
    "#]].assert_eq(&log);
    let bench = shop();
    bench.run(READY);
    bench.reply("plan_propose_steps", json!({"steps": [step("Work", json!([]))]}));
    bench.run(
        r#"
        - job_update_policies {"policies": {"require_repo_snapshot_on_init": true}}
        - job_set_ready {}
        "#,
    );
}

#[test]
fn new_files_need_a_description_from_either_side() {
    let bench = shop();
    bench.run(READY);
    bench.run(r#"- job_update_policies {"policies": {"require_file_descriptions": true, "max_retries_per_step": 9}}"#);
    bench.reply(
        "plan_propose_steps",
        json!({"steps": [step("One", json!([])), step("Two", json!([]))]}),
    );
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    bench.write("shop/a.py", "x = 1\n");
    bench.write("shop/b.py", "x = 1\n");
    let mut submitted = result("S1");
    submitted["evidence"]["file_descriptions"] = json!({"shop/a.py": "The letter a"});
    let refused = bench.reply("job_submit_step_result", submitted.clone());
    assert_eq!(refused["accepted"], false);
    let reasons = refused["rejection_reasons"].to_string();
    assert!(
        reasons.contains("shop/b.py") && !reasons.contains("shop/a.py"),
        "{reasons}"
    );
    bench.run(r#"- repo_file_descriptions_update {"descriptions": {"shop/b.py": "The letter b"}}"#);
    assert_eq!(bench.reply("job_submit_step_result", submitted)["accepted"], true);
    bench.reply("repo_map_update", json!({}));
    let page = bench.reply("repo_map_query", json!({"text": "letter"}));
    assert_eq!(page["total"], 2, "{page}");
}

#[test]
fn a_map_survives_export_and_import() {
    let bench = shop();
    bench.run("- repo_map_update {}");
    bench.run(r#"- repo_file_descriptions_update {"descriptions": {"shop/cart.py": "A cart"}}"#);
    let bundle = bench.reply("job_export_bundle", json!({"format": "json"}));
    let bundle: Value = serde_json::from_str(bundle["content"].as_str().unwrap()).unwrap();
    assert_eq!(bundle["repository"]["snapshots"].as_array().unwrap().len(), 2);
    let copy = bench.reply("job_import", json!({"bundle": bundle}));
    let read = |job: &Value| {
        let whole = bench.reply("job_export_bundle", json!({"job_id": job}));
        whole["content"].as_str().unwrap().to_owned()
    };
    for text in [read(&json!(bench.job)), read(&copy["job_id"])] {
        assert!(text.contains("`shop/cart.py`: A cart"), "{text}");
        assert!(text.contains("# Repository map"), "{text}");
        assert!(text.contains("SNP-"), "{text}");
    }
    let mut broken = bundle;
    broken["repository"]["descriptions"] = json!({"x": "two\nlines"});
    broken["repository"]["snapshots"][1]["sequence"] = json!(1);
    let refused = bench.call("job_import", json!({"bundle": broken})).unwrap_err();
    assert_eq!(refused.blockers.len(), 2, "{refused:?}");
}

#[test]
fn odd_names_and_other_repositories_are_told_apart() {
    let bench = shop();
    let root = bench.dir.as_ref().unwrap().path();
    bench.write("shop/line\nbreak.py", "import os\n");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff.py");
    std::fs::write(root.join(odd), "import os\n").unwrap();
    bench.write("inner/.git/HEAD", "ref: refs/heads/main\n");
    bench.write("inner/x.py", "import os\n");
    let taken = bench.reply("repo_snapshot", json!({}));
    let problems = taken["problems"].to_string();
    assert!(
        problems.contains("inner: is a repository of its own"),
        "{problems}"
    );
    assert!(problems.contains("not UTF-8"), "{problems}");
    let update = bench.reply("repo_map_update", json!({}));
    assert_eq!(update["files"], taken["files"], "{update}");
    let map = bench.reply("repo_map_export", json!({}));
    let map = map["content"].as_str().unwrap();
    assert!(map.contains(r#"`"shop/line\nbreak.py"`"#), "{map}");
}

#[test]
fn limits_cut_a_snapshot_and_say_so() {
    let bench = shop();
    let taken = bench.reply("repo_snapshot", json!({"max_entries": 3}));
    assert_eq!((&taken["files"], &taken["partial"]), (&json!(3), &json!(true)));
    let deep = bench.reply("repo_snapshot", json!({"max_depth": 1}));
    assert_eq!(deep["partial"], false, "{deep}");
    bench.write("a/b/c.py", "");
    let deep = bench.reply("repo_snapshot", json!({"max_depth": 1}));
    assert_eq!(deep["partial"], true, "{deep}");
}

#[test]
fn without_git_what_it_would_know_is_left_out_with_a_word() {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in [(".gitignore", "*.log\n"), ("a.log", "x"), ("a.py", "import os\n")] {
        std::fs::write(dir.path().join(path), content).unwrap();
    }
    let workspace = |git: Option<GitAccess>| {
        let workspace = Workspace::new("main", dir.path());
        git.map_or(workspace.clone(), |git| workspace.git(git))
    };
    for (git, warned) in [(None, true), (Some(GitAccess::Read), false)] {
        let session = Session::new(&conductor::PACK).workspace(workspace(git));
        let begun = session
            .call(
                "conductor_init",
                r#"{"title": "t", "goal": "g", "repo_root": "main"}"#,
            )
            .unwrap();
        let begun: Value = serde_json::from_str(&begun.structured).unwrap();
        assert_eq!(begun["snapshot"]["files"], 2, "{begun}");
        assert_eq!(begun["warnings"].is_array(), warned, "{begun}");
    }
}
