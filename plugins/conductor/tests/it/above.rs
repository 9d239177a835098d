//! Repositories of jobs below the top of Git's: the ignore files above them.

use serde_json::{Value, json};
use tollgate_sdk::GitAccess;
use tollgate_sdk::native::{Session, Workspace};

use crate::harness::{git, repository};

/// A monorepo with a package of TypeScript, whose ignore files are above the package.
fn monorepo() -> tempfile::TempDir {
    let dir = repository();
    for (path, content) in [
        (".gitignore", "*.log\n/apps/shop/out/\nmade/\n"),
        ("apps/.gitignore", "!keep.log\n"),
        (
            "apps/shop/package.json",
            "{\"name\": \"shop\", \"main\": \"main.ts\"}",
        ),
        ("apps/shop/main.ts", "import './made/api';\nimport './gone';\n"),
        ("apps/shop/keep.log", "kept"),
        ("apps/shop/x.log", "ignored"),
        ("apps/shop/out/old_main.ts", "ignored"),
        ("apps/shop/made/api.ts", "ignored"),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::write(dir.path().join(".git/info/exclude"), "secret.txt\n").unwrap();
    std::fs::write(dir.path().join("apps/shop/secret.txt"), "ignored").unwrap();
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "--quiet", "-m", "shop"]);
    dir
}

/// Files and imports that are missing, of a job with this repository.
fn seen(workspace: Workspace, repo_root: &str) -> (Vec<String>, Vec<String>) {
    let session = Session::new(&conductor::PACK).workspace(workspace);
    let reply = |tool: &str, arguments: Value| -> Value {
        let reply = session.call(tool, &arguments.to_string());
        serde_json::from_str(&reply.unwrap_or_else(|err| panic!("{tool}: {err:?}")).structured).unwrap()
    };
    let begun = reply(
        "conductor_init",
        json!({"title": "t", "goal": "g", "repo_root": repo_root}),
    );
    let job = json!({"job_id": begun["job_id"]});
    // The second time from what is stored.
    for _ in 0..2 {
        reply("repo_map_update", job.clone());
    }
    let texts = |value: &Value, key: &str| -> Vec<String> {
        let rows = value.as_array().unwrap().iter();
        rows.map(|row| row[key].as_str().unwrap().to_owned()).collect()
    };
    let mut all = job.clone();
    all["path"] = json!("**");
    let exported = reply(
        "repo_map_export",
        json!({"job_id": begun["job_id"], "format": "json"}),
    );
    let map: Value = serde_json::from_str(exported["content"].as_str().unwrap()).unwrap();
    (
        texts(&reply("repo_map_query", all)["files"], "path"),
        texts(&map["missing"], "import"),
    )
}

const FILES: [&str; 3] = ["keep.log", "main.ts", "package.json"];

#[test]
fn a_directory_of_a_workspace_obeys_the_ignore_files_above_it() {
    let dir = monorepo();
    let workspace = Workspace::new("main", dir.path()).git(GitAccess::Read);
    assert_eq!(
        seen(workspace, "main/apps/shop"),
        (FILES.map(str::to_owned).to_vec(), vec!["./gone".to_owned()])
    );
    // They are files of the workspace, so that Git need not run for them.
    let workspace = Workspace::new("main", dir.path());
    assert_eq!(seen(workspace, "main/apps/shop").0, FILES);
}

#[test]
fn what_is_above_a_workspace_is_gits_to_tell() {
    let dir = monorepo();
    let shop = dir.path().join("apps/shop");
    let workspace = || Workspace::new("shop", &shop).repository(dir.path());
    // The rule of `.git/info/exclude` is nothing that Git shows.
    let (files, missing) = seen(workspace().git(GitAccess::Read), "shop");
    assert_eq!(files, ["keep.log", "main.ts", "package.json", "secret.txt"]);
    assert_eq!(missing, ["./gone"]);
    // Without access to Git nothing above the workspace is read.
    let (files, _) = seen(workspace(), "shop");
    assert!(files.contains(&"x.log".to_owned()), "{files:?}");
}

#[test]
fn a_repository_of_its_own_has_rules_of_its_own() {
    let dir = monorepo();
    git(
        &dir.path().join("apps/shop"),
        &["init", "--quiet", "--initial-branch=main"],
    );
    let workspace = Workspace::new("main", dir.path()).git(GitAccess::Read);
    let (files, _) = seen(workspace, "main/apps/shop");
    assert!(
        files.contains(&"x.log".to_owned()) && files.contains(&"secret.txt".to_owned()),
        "{files:?}"
    );
}

#[test]
fn a_plan_whose_gates_need_a_repository_that_is_not_there_is_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("sub/inner")).unwrap();
    let warned = |repo_root: &str| {
        let workspace = Workspace::new("main", dir.path()).git(GitAccess::Write);
        let session = Session::new(&conductor::PACK).workspace(workspace);
        let reply = |tool: &str, arguments: Value| -> Value {
            let reply = session.call(tool, &arguments.to_string());
            serde_json::from_str(&reply.unwrap_or_else(|err| panic!("{tool}: {err:?}")).structured).unwrap()
        };
        let begun = json!({"title": "t", "goal": "g", "repo_root": repo_root});
        let job = reply("conductor_init", begun)["job_id"].clone();
        let answers = json!({"deliverables": ["d"], "definition_of_done": ["d"], "invariants": []});
        reply("conductor_answer", json!({"job_id": job, "answers": answers}));
        let gates = json!([{"gate": "changed_files_minimum", "min": 1}]);
        let steps = json!([crate::harness::step("one", gates)]);
        reply("plan_propose_steps", json!({"job_id": job, "steps": steps}));
        reply("job_set_ready", json!({"job_id": job}))["warnings"].to_string()
    };
    for root in ["main", "main/sub/inner"] {
        let warnings = warned(root);
        let expected = format!("gate changed_files_minimum will fail: {root} is not in a Git repository");
        assert!(warnings.contains(&expected), "{warnings}");
    }
    git(&dir.path().join("sub"), &["init", "--quiet"]);
    assert!(warned("main").contains("not in a Git repository"));
    assert!(!warned("main/sub").contains("not in a Git repository"));
    assert!(!warned("main/sub/inner").contains("not in a Git repository"));
}
