//! Stories of jobs that somebody tries to cut short, forgets a part of, or uses without any preparation.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::gate::person;
use crate::packs::conductor::project::{Project, step};
use crate::packs::conductor::prompt_reader::Reader;
use crate::packs::conductor::stories::ready;

const SHOP: &[(&str, &str)] = &[
    ("package.json", "{\"name\": \"shop\", \"private\": true}\n"),
    (
        "tsconfig.json",
        "{\"compilerOptions\": {\"baseUrl\": \".\", \"paths\": {\"@/*\": [\"src/*\"]}}}\n",
    ),
    (
        "src/index.ts",
        "import { cart } from '@/cart';\nimport './pages/tax';\ncart();\n",
    ),
    (
        "src/cart.ts",
        "import { euro } from '@/util/money';\nexport const cart = () => euro(1);\n",
    ),
    (
        "src/pages/tax.ts",
        "import { euro } from '@/util/money';\neuro(2);\n",
    ),
    ("src/util/money.ts", "export const euro = (n: number) => n;\n"),
];

/// Stands for a compiler: fails while a file imports the module that is gone.
const TYPES: &str = "tests.types = [\"sh\", \"-c\", \"! grep -rn '@/util/money' src\"]\n";

#[tokio::test]
async fn a_module_moves_with_all_its_importers_and_a_description() {
    let project = Project::of("app", SHOP, TYPES);
    let session = project.place.serve(&["--tier", "full"]).await;
    let mut moved = step(
        "Move src/util/money.ts to src/lib/money.ts",
        &["every importer names the new place"],
        json!([{"gate": "command_exit_0", "command": ["types"]}, {"gate": "file_not_exists", "paths": ["src/util/money.ts"]},
            {"gate": "reachable", "paths": ["src/lib/money.ts"]}]),
    );
    moved["required_evidence"] = json!(["changed_files"]);
    let job = ready(
        &session,
        "Move money",
        ("plan_propose_steps", json!({"steps": [moved]})),
    )
    .await;
    let strict = json!({"job_id": job, "policies": {"require_file_descriptions": true}});
    session.ok("job_update_policies", strict).await;
    session.ok("job_set_ready", json!({"job_id": job})).await;
    session.ok("repo_map_update", json!({"job_id": job})).await;
    let importers = json!({"job_id": job, "importers_of": "src/util/money.ts"});
    let importers = session.ok("repo_map_query", importers).await;
    let paths: Vec<&str> = importers["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    assert_eq!(paths, ["src/cart.ts", "src/pages/tax.ts"], "{importers:#}");
    // A package that does not say where it starts: no file is called stale for want of an importer.
    let stale = session
        .ok("repo_find_stale_candidates", json!({"job_id": job}))
        .await;
    assert_eq!(stale["candidates"], json!([]), "{stale:#}");

    let mut reader = Reader::begin(&project.place, &job).await;
    let form = reader
        .work(
            &[
                ("src/util/money.ts", "-"),
                ("src/lib/money.ts", "export const euro = (n: number) => n;\n"),
                (
                    "src/cart.ts",
                    "import { euro } from '@/lib/money';\nexport const cart = () => euro(1);\n",
                ),
            ],
            "move the module and its importers",
        )
        .await;
    let mut silent = form.clone();
    silent["evidence"]["file_descriptions"] = json!({});
    let reply = reader.submit(silent).await;
    let reasons = reply["rejection_reasons"].to_string();
    assert!(reasons.contains("src/lib/money.ts"), "{reasons}");
    let reply = reader.submit(form).await;
    let reasons = reply["rejection_reasons"].to_string();
    assert!(
        reasons.contains("gate command_exit_0") && reasons.contains("src/pages/tax.ts"),
        "{reasons}"
    );
    reader.next().await;
    project.write(
        "src/pages/tax.ts",
        "import { euro } from '@/lib/money';\neuro(2);\n",
    );
    let mut form = reader.work(&[], "move the module and its importers").await;
    form["evidence"]["changed_files"] = json!([
        "src/util/money.ts",
        "src/lib/money.ts",
        "src/cart.ts",
        "src/pages/tax.ts"
    ]);
    form["evidence"]["file_descriptions"] = json!({"src/lib/money.ts": "Amounts of money"});
    let done = reader.submit(form).await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    reader.session.close().await;
    session.close().await;
}

#[tokio::test]
async fn planted_files_are_found_planned_and_gone() {
    let project = Project::new();
    let planted = [
        "report/data_copy.py",
        "report/data.py.bak",
        "report/old_cli.py",
        "report/unused.py",
    ];
    let data = std::fs::read_to_string(project.root.join("report/data.py")).unwrap();
    for path in planted {
        project.write(
            path,
            if path.contains("data") {
                &data
            } else {
                "import os\n\n\nPLACE = os.sep\n"
            },
        );
    }
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "-m", "planted"]);
    let session = project.place.serve(&["--tier", "full"]).await;
    let look = step("Look", &["looked"], json!([]));
    let job = ready(&session, "Tidy", ("plan_propose_steps", json!({"steps": [look]}))).await;
    let of_job = json!({"job_id": job});
    let mut reader = Reader::begin(&project.place, &job).await;
    session.ok("repo_map_update", of_job.clone()).await;
    let stale = session.ok("repo_find_stale_candidates", of_job.clone()).await;
    let found: BTreeSet<&str> = stale["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|found| found["path"].as_str())
        .collect();
    assert_eq!(found, BTreeSet::from(planted), "{stale:#}");
    let plan = session.ok("repo_hygiene_suggest", of_job.clone()).await;
    for next in ["keep_plan", "add_step"] {
        session.follow(&plan[next]).await;
    }
    reader.next().await;
    reader.step(&[], "looked at the whole repository").await;
    // The step that was added is checked: the files have to be gone, and the tests to pass.
    for line in ["these do not exist: ", "(test default) succeeds"] {
        assert!(reader.prompt.contains(line), "{line}\n{}", reader.prompt);
    }
    let form = reader.work(&[], "deleted the planted files").await;
    let reply = reader.submit(form).await;
    assert!(
        reply["rejection_reasons"]
            .to_string()
            .contains("gate file_not_exists"),
        "{reply:#}"
    );
    for path in planted {
        std::fs::remove_file(project.root.join(path)).unwrap();
    }
    let mut form = reader.work(&[], "deleted the planted files").await;
    if let Some(files) = form["evidence"].get_mut("changed_files") {
        *files = json!(planted);
    }
    let done = reader.submit(form).await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    session.ok("repo_map_update", of_job.clone()).await;
    let stale = session.ok("repo_find_stale_candidates", of_job).await;
    assert_eq!(stale["candidates"], json!([]), "{stale:#}");
    session.close().await;
    reader.session.close().await;
}

/// A running job with one step: a change of report/cli.py, checked by tests that must not change.
async fn guarded(project: &Project) -> Reader {
    let session = project.place.serve(&["--tier", "full"]).await;
    let gates = json!([{"gate": "tests_passed"}, {"gate": "forbid_paths", "paths": ["tests/**"]},
        {"gate": "changed_files_minimum", "min": 1}, {"gate": "human_approval"}]);
    let chain = json!({"steps": [step("Change report/cli.py", &["it is better"], gates)]});
    let job = ready(&session, "Change", ("plan_propose_steps", chain)).await;
    let patient = json!({"job_id": job, "policies": {"max_retries_per_step": 20}});
    session.ok("job_update_policies", patient).await;
    session.ok("job_set_ready", json!({"job_id": job})).await;
    session.close().await;
    Reader::begin(&project.place, &job).await
}

#[tokio::test]
async fn a_lazy_agent_gets_nowhere() {
    let project = Project::new();
    let mut reader = guarded(&project).await;
    let head = project.git(&["rev-parse", "HEAD"]);
    let mut log = String::new();
    let mut claim = async |reader: &mut Reader, what: &str, wanted: &str| {
        let mut form = reader.work(&[], "it is all done as asked").await;
        form["evidence"]["tests_passed"] = json!(true);
        let reply = reader.submit(form).await;
        let reasons = reply["rejection_reasons"].to_string();
        assert!(reasons.contains(wanted), "{what}: {reasons}");
        log += &format!("{what}\n");
    };
    claim(
        &mut reader,
        "nothing done",
        "gate changed_files_minimum: 0 files changed",
    )
    .await;
    project.write("tests/test_cli.py", "def test_count():\n    assert True\n");
    project.git(&["update-index", "--skip-worktree", "tests/test_cli.py"]);
    claim(
        &mut reader,
        "a gutted test behind a flag of the index",
        "tests/test_cli.py",
    )
    .await;
    project.git(&["update-index", "--no-skip-worktree", "tests/test_cli.py"]);
    project.git(&["commit", "--quiet", "--no-verify", "--all", "-m", "tests"]);
    claim(
        &mut reader,
        "a gutted test that is committed",
        "gate forbid_paths: these must not change: tests/test_cli.py",
    )
    .await;
    project.git(&["reset", "--quiet", "--hard", &head]);
    project.write("tests/conftest.py", "collect_ignore_glob = [\"*\"]\n");
    std::fs::write(project.root.join(".git/info/exclude"), "tests/conftest.py\n").unwrap();
    claim(
        &mut reader,
        "tests switched off by a hidden file",
        "tests/conftest.py",
    )
    .await;
    std::fs::remove_file(project.root.join("tests/conftest.py")).unwrap();
    std::fs::remove_file(project.root.join("tests/test_cli.py")).unwrap();
    claim(&mut reader, "no tests", "gate tests_passed").await;
    project.git(&["checkout", "--quiet", "--", "tests"]);

    // What would change the rules needs a person.
    let lone = [
        (
            "plan_refine_steps",
            json!({"edits": [{"op": "update", "step_id": "S1", "set": {"gates": []}}]}),
        ),
        (
            "job_update_policies",
            json!({"policies": {"require_tests_evidence": false}}),
        ),
        ("step_approve", json!({"step_id": "S1", "approved_by": "Ada"})),
    ];
    for (tool, mut arguments) in lone {
        arguments["job_id"] = reader.form()["job_id"].clone();
        let relayed = json!({"tool": tool, "arguments": arguments});
        let refused = reader.session.refused("tool_call", relayed).await;
        assert_eq!(refused["code"], "PERSON_REQUIRED", "{tool}: {refused:#}");
        let (exit, said) = project.place.call(tool, &arguments);
        assert!(
            exit == 1 && said["error"]["code"] == "PERSON_REQUIRED",
            "{tool}: {said:#}"
        );
    }
    // Honest work is accepted in the end, once a person has approved it.
    let improved = "def main(argv):\n    from .data import ROWS\n    return str(len(ROWS)) if argv == [\"count\"] else \"usage: report count\"\n";
    project.write("report/cli.py", improved);
    let mut form = reader.work(&[], "shortened main of report/cli.py").await;
    form["evidence"]["changed_files"] = json!(["report/cli.py"]);
    let approval = json!({"job_id": form["job_id"], "step_id": "S1", "approved_by": "Ada"});
    person::allows(&project.place, "step_approve", &approval);
    let done = reader.submit(form).await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    assert_eq!(log.lines().count(), 5);
    reader.session.close().await;
}

/// Names of tools in a text that no list has, unless the text says how to call them.
fn unheard(text: &str, all: &BTreeSet<String>, listed: &BTreeSet<String>) -> Vec<String> {
    if text.contains("tool_call") {
        return Vec::new();
    }
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let named = words.filter(|word| all.contains(*word) && !listed.contains(*word));
    // A person's command in a terminal is no call of the client.
    let is_command = |name: &str| name == "step_approve" || text.contains(&format!("tollgate call {name}"));
    named
        .filter(|name| !is_command(name))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn an_installation_without_preparation_leads_on_from_every_reply() {
    let files = &[("README.md", "# notes\n")];
    let project = Project::of(
        "default",
        files,
        "tests.default = [\"sh\", \"-c\", \"echo 1 passed\"]\n",
    );
    let session = project.place.serve(&["--tier", "full"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let all: BTreeSet<String> = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
    session.close().await;
    let session = project.place.serve(&[]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let listed: BTreeSet<String> = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
    let said = async |tool: &str, arguments: Value| {
        let (tool, arguments) = match listed.contains(tool) {
            true => (tool, arguments),
            false => ("tool_call", json!({"tool": tool, "arguments": arguments})),
        };
        let body = session
            .call_raw(tool, arguments)
            .await
            .structured_content
            .unwrap();
        assert_eq!(
            unheard(&body.to_string(), &all, &listed),
            Vec::<String>::new(),
            "{body:#}"
        );
        body
    };
    let begun = said(
        "conductor_init",
        json!({"title": "Notes", "goal": "Write notes", "repo_root": "default"}),
    )
    .await;
    let job = begun["job_id"].clone();
    said("job_set_ready", json!({"job_id": job})).await;
    let answers =
        json!({"deliverables": ["README.md"], "definition_of_done": ["it is there"], "invariants": []});
    said("conductor_answer", json!({"job_id": job, "answers": answers})).await;
    let steps = json!([step(
        "Write README.md",
        &["it has a line"],
        json!([{"gate": "tests_passed"}])
    )]);
    said("plan_propose_steps", json!({"job_id": job, "steps": steps})).await;
    said("job_set_ready", json!({"job_id": job})).await;

    let mut reader = Reader::begin(&project.place, job.as_str().unwrap()).await;
    for left in [2, 1, 0] {
        let mut form = reader.work(&[], "tried it and found no line").await;
        form["model_claim"] = json!("NOT_MET");
        let reply = said("job_submit_step_result", form).await;
        assert_eq!(reply["attempts_left"], left, "{reply:#}");
        said("job_next_step_prompt", json!({"job_id": job})).await;
    }
    let form = reader.work(&[], "tried it once more").await;
    let refused = said("job_submit_step_result", form).await;
    assert_eq!(refused["error"]["code"], "WRONG_STATUS", "{refused:#}");
    // A person is needed, and the refusal says so.
    let refused = said("job_resume", json!({"job_id": job})).await;
    assert_eq!(refused["error"]["code"], "PERSON_REQUIRED", "{refused:#}");
    person::allows(&project.place, "job_resume", &json!({"job_id": job}));
    reader.next().await;
    let done = reader
        .step(
            &[("README.md", "# notes\n\nA line.\n")],
            "added a line to README.md",
        )
        .await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    said("job_get", json!({"job_id": job})).await;
    reader.session.close().await;
    session.close().await;
}
