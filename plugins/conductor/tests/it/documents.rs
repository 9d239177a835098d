//! Documents that are written into a repository.

use std::os::unix::fs::symlink;

use serde_json::json;
use tollgate_sdk::native::Workspace;

use crate::harness::{Bench, READY, result, step};

const DOCUMENTS: [&str; 3] = ["REPO_MAP.md", "DEPRECATED.md", "DEVLOG.md"];

/// A repository of more files than the short map shows, whose map was made.
fn mapped(more: impl FnOnce(Workspace) -> Workspace) -> Bench {
    let bench = Bench::with_repository_and(more);
    bench.write(
        "pyproject.toml",
        "[project]\nname = \"shop\"\n[project.scripts]\nshop = \"shop.main:run\"\n",
    );
    bench.write("shop/__init__.py", "");
    bench.write("shop/main.py", "from shop import cart\n");
    bench.write("shop/cart.py", "import os\n");
    bench.write("shop/old_cart.py", "import os\n");
    for number in 0..40 {
        bench.write(&format!("`test_part{number}.py`"), "import shop.cart\n");
    }
    bench.commit_all("shop");
    bench
}

fn granted(workspace: Workspace) -> Workspace {
    DOCUMENTS
        .iter()
        .fold(workspace, |workspace, name| workspace.write(name))
}

fn read(bench: &Bench, path: &str) -> String {
    std::fs::read_to_string(bench.path(path)).unwrap()
}

/// A job that ran the test `say` in its only step.
fn run_to_the_end(bench: &Bench) {
    bench.run(READY);
    let gates = json!([{"gate": "tests_passed", "command": ["say"]}]);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", gates)]}));
    bench.run("- repo_map_update {}\n- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    let mut arguments = result("S1");
    arguments["evidence"]["tests_run"] = json!(["say"]);
    arguments["evidence"]["tests_passed"] = json!(true);
    let reply = bench.reply("job_submit_step_result", arguments);
    assert_eq!(reply["status"], json!("COMPLETE"), "{reply}");
}

#[test]
fn every_document_is_whole_and_says_what_it_is_for() {
    let bench = mapped(granted);
    run_to_the_end(&bench);
    let reply = bench.reply("repo_documents_write", json!({}));
    assert_eq!(reply["written"], json!(DOCUMENTS));
    assert_eq!(reply.get("skipped"), None, "{reply}");

    let map = read(&bench, "REPO_MAP.md");
    for number in 0..40 {
        assert!(
            map.contains(&format!("`test_part{number}.py`")),
            "{number} of {map}"
        );
    }
    assert!(!map.contains(" more"), "{map}");
    let deprecated = read(&bench, "DEPRECATED.md");
    assert!(deprecated.starts_with("# Deprecated files\n"), "{deprecated}");
    let line = deprecated
        .lines()
        .find(|line| line.contains("shop/old_cart.py"))
        .unwrap();
    assert!(
        line.contains("nothing imports it") && line.contains("named like a disused file"),
        "{line}"
    );
    assert!(!deprecated.contains("shop/cart.py"), "{deprecated}");
    let devlog = read(&bench, "DEVLOG.md");
    for part in [
        "# Devlog",
        "exporter added",
        "[tests: say: exit code 0; claimed say: passed]",
    ] {
        assert!(devlog.contains(part), "{part}: {devlog}");
    }
    // The same state gives the same bytes, and Git shows the files to whoever works on the next step.
    bench.reply("repo_documents_write", json!({"documents": ["DEPRECATED.md"]}));
    assert_eq!(read(&bench, "DEPRECATED.md"), deprecated);
    let status = bench.git(&["status", "--porcelain"]);
    assert!(DOCUMENTS.iter().all(|name| status.contains(name)), "{status}");
}

#[test]
fn the_reply_says_how_old_the_map_is() {
    let bench = mapped(granted);
    // The map that conductor_init made, before there was more than one file.
    let old = bench.reply("repo_documents_write", json!({"documents": ["REPO_MAP.md"]}));
    assert!(!read(&bench, "REPO_MAP.md").contains("shop/cart.py"));
    bench.run("- repo_map_update {}");
    let new = bench.reply("repo_documents_write", json!({"documents": ["REPO_MAP.md"]}));
    assert!(
        old["map_of"].as_str().unwrap() < new["map_of"].as_str().unwrap(),
        "{old} {new}"
    );
    assert!(read(&bench, "REPO_MAP.md").contains("shop/cart.py"));
}

#[test]
fn nothing_is_written_where_one_document_is_not_allowed() {
    let bench = mapped(|workspace| workspace.write("DEVLOG.md"));
    bench.run("- repo_map_update {}");
    let refused = bench.call("repo_documents_write", json!({})).unwrap_err();
    let paths: Vec<String> = refused
        .blockers
        .iter()
        .map(|blocker| format!("{} {}", blocker.code, blocker.message))
        .collect();
    assert_eq!(paths.len(), 2, "{refused:?}");
    assert!(
        paths[0].contains("WRITE_DENIED") && paths[0].contains("REPO_MAP.md"),
        "{paths:?}"
    );
    assert!(paths[1].contains("DEPRECATED.md"), "{paths:?}");
    assert!(DOCUMENTS.iter().all(|name| !bench.path(name).exists()));
    bench.reply("repo_documents_write", json!({"documents": ["DEVLOG.md"]}));
    assert!(bench.path("DEVLOG.md").exists());
}

#[test]
fn a_root_below_the_top_gets_no_documents_and_the_refusal_says_so() {
    let bench = mapped(|workspace| workspace.write("."));
    bench.reply("conductor_answer", json!({"answers": {"repo_root": "main/shop"}}));
    let refused = bench
        .call("repo_documents_write", json!({"documents": ["DEVLOG.md"]}))
        .unwrap_err();
    assert_eq!(refused.code, "WRITE_DENIED", "{refused:?}");
    assert!(refused.message.contains("shop/DEVLOG.md"), "{refused:?}");
    assert!(
        refused.remediation.contains("top of the workspace"),
        "{refused:?}"
    );
    assert!(!bench.path("shop/DEVLOG.md").exists() && !bench.path("DEVLOG.md").exists());
}

#[test]
fn links_and_directories_in_the_place_of_a_document_are_not_written_through() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "mine").unwrap();
    let bench = mapped(granted);
    bench.run("- repo_map_update {}");
    symlink(&secret, bench.path("DEVLOG.md")).unwrap();
    symlink("shop/cart.py", bench.path("DEPRECATED.md")).unwrap();
    std::fs::create_dir(bench.path("REPO_MAP.md")).unwrap();
    for name in DOCUMENTS {
        let refused = bench
            .call("repo_documents_write", json!({"documents": [name]}))
            .unwrap_err();
        assert!(
            refused.message.contains("is not a regular file"),
            "{name}: {refused:?}"
        );
    }
    assert!(bench.path("REPO_MAP.md").is_dir());
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "mine");
    assert_eq!(read(&bench, "shop/cart.py"), "import os\n");
    for name in [
        "../DEVLOG.md",
        "/etc/passwd",
        "src/DEVLOG.md",
        "devlog.md",
        "DEVLOG.md/..",
    ] {
        let refused = bench
            .call("repo_documents_write", json!({"documents": [name]}))
            .unwrap_err();
        assert_eq!(refused.code, "INVALID_ARGUMENTS", "{name}");
    }
}
