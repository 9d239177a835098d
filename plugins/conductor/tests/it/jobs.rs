//! Six jobs as people plan them, with every prompt in full: one text to read for each job.

use std::fmt::Write as _;

use expect_test::{ExpectFile, expect_file};
use serde_json::{Value, json};
use tollgate_sdk::native::{Session, Workspace};
use tollgate_sdk::{GitAccess, Tier};

use crate::harness::{git, no_faults, repository};

/// Most bytes of a prompt: well under 900 tokens.
const MAX_PROMPT_BYTES: usize = 3_200;

/// A job that is planned, and the files that each of its steps changes.
struct Plan {
    init: Value,
    answers: Value,
    steps: Value,
    /// Path, content and summary for each step. A blank path changes nothing.
    work: &'static [(&'static str, &'static str, &'static str)],
}

/// A job in execution.
struct Play {
    session: Session,
    dir: tempfile::TempDir,
    job: String,
    log: String,
    commits: Vec<String>,
}

impl Play {
    fn new(plan: &Plan, files: &[(&str, &str)]) -> Play {
        let dir = repository();
        for (path, content) in files {
            write(dir.path(), path, content);
        }
        git(dir.path(), &["add", "--all"]);
        git(dir.path(), &["commit", "--quiet", "-m", "second"]);
        let workspace = Workspace::new("shop", dir.path())
            .git(GitAccess::Write)
            .test("default", &["true", "-q"])
            .test("lint", &["true", "--lint"]);
        let session = Session::new(&conductor::PACK).workspace(workspace);
        let mut play = Play {
            session,
            dir,
            job: String::new(),
            log: String::new(),
            commits: Vec::new(),
        };
        let begun = play.call("conductor_init", plan.init.clone());
        play.job = begun["job_id"].as_str().unwrap().to_owned();
        play.call("conductor_answer", json!({"answers": plan.answers}));
        play
    }

    fn call(&self, tool: &str, mut arguments: Value) -> Value {
        if !self.job.is_empty() {
            arguments["job_id"] = json!(self.job);
        }
        let reply = self.session.call(tool, &arguments.to_string());
        let reply = reply.unwrap_or_else(|err| panic!("{tool} {arguments}: {err:?}"));
        serde_json::from_str(&reply.structured).unwrap()
    }

    /// Prompt of the current step, logged.
    fn prompt(&mut self) -> Value {
        let reply = self.call("job_next_step_prompt", json!({}));
        let prompt = reply["prompt"].as_str().unwrap();
        assert!(
            prompt.len() <= MAX_PROMPT_BYTES,
            "{} characters: {prompt}",
            prompt.len()
        );
        assert!(!prompt.contains("None"), "{prompt}");
        self.log += prompt;
        self.log += "\n";
        reply
    }

    /// Submits the current step with its criteria as met, and logs the verdict.
    fn submit(&mut self, prompt: &Value, paths: &[&str], summary: &str, commit: Option<&str>, met: bool) {
        let text = prompt["prompt"].as_str().unwrap();
        let (_, rest) = text.split_once("```json\n").unwrap();
        let mut call: Value = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();
        call["model_claim"] = json!(if met { "MET" } else { "NOT_MET" });
        call["summary"] = json!(summary);
        call["devlog_line"] = json!(summary);
        if let Some(commit) = commit {
            call["commit_hash"] = json!(commit);
        } else {
            call.as_object_mut().unwrap().remove("commit_hash");
        }
        let evidence = call["evidence"].as_object_mut().unwrap();
        for (key, value) in evidence.iter_mut() {
            match key.as_str() {
                "diff_summary" => *value = json!("the files that are named, and nothing else"),
                "changed_files" => *value = json!(paths),
                "tests_run" => *value = json!(["true -q"]),
                "tests_passed" | "lint_run" | "lint_passed" | "invariants_checked" => *value = json!(true),
                "criteria_checklist" => {
                    let entries = value.as_object_mut().unwrap();
                    entries.values_mut().for_each(|met| *met = json!(true));
                }
                "notes" => *value = json!("src/cli.py registers the commands"),
                _ => {}
            }
        }
        let reply = self.call("job_submit_step_result", call);
        let _ = writeln!(
            self.log,
            "=> {} {} {}\n",
            reply["next_action"].as_str().unwrap(),
            reply["rejection_reasons"],
            reply["feedback"].as_str().unwrap()
        );
    }

    fn step(&mut self, path: &str, content: &str, summary: &str) {
        let prompt = self.prompt();
        let wants_commit = prompt["prompt"].as_str().unwrap().contains("\"commit_hash\"");
        if path.is_empty() {
            return self.submit(&prompt, &[], summary, None, true);
        }
        write(self.dir.path(), path, content);
        let commit = wants_commit.then(|| {
            git(self.dir.path(), &["add", path]);
            let message = format!("{}: {summary}", prompt["step_id"].as_str().unwrap());
            git(self.dir.path(), &["commit", "--quiet", "-m", &message]);
            git(self.dir.path(), &["rev-parse", "HEAD"])
        });
        self.commits.extend(commit.clone());
        self.submit(&prompt, &[path], summary, commit.as_deref(), true);
    }

    /// Log without what differs from run to run.
    fn finish(self) -> String {
        let mut log = self.log.replace(&self.job, "JOB");
        let place = self.dir.path().canonicalize().unwrap();
        log = log.replace(place.to_str().unwrap(), "/home/ada/shop");
        for (place, commit) in (1..).zip(&self.commits) {
            log = log.replace(&commit[..10], &format!("COMMIT{place:04}"));
        }
        log
    }
}

fn write(dir: &std::path::Path, path: &str, content: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

const PYTHON: &[(&str, &str)] = &[
    (
        "pyproject.toml",
        "[project]\nname = \"shop\"\n\n[project.scripts]\nshop = \"shop.cli:main\"\n",
    ),
    ("shop/__init__.py", ""),
    (
        "shop/cli.py",
        "from .report import rows\n\n\ndef main():\n    print(rows())\n",
    ),
    ("shop/report.py", "def rows():\n    return []\n"),
    ("shop/old_report.py", "def rows():\n    return [1]\n"),
    (
        "tests/test_report.py",
        "from shop.report import rows\n\n\ndef test_rows():\n    assert rows() == []\n",
    ),
];

fn play(plan: &Plan, expected: &ExpectFile, after: impl FnOnce(&mut Play)) {
    let mut play = Play::new(plan, PYTHON);
    if !plan.steps.is_null() {
        play.call("plan_propose_steps", json!({"steps": plan.steps}));
    }
    after(&mut play);
    play.call("job_set_ready", json!({}));
    play.call("job_start", json!({}));
    for (path, content, summary) in plan.work {
        play.step(path, content, summary);
    }
    expected.assert_eq(&play.finish());
}

fn step(title: &str, instruction: &str, criteria: &[&str], gates: Value) -> Value {
    json!({
        "title": title, "instruction_prompt": instruction, "acceptance_criteria": criteria,
        "required_evidence": ["changed_files", "diff_summary", "tests_run", "tests_passed"], "gates": gates,
    })
}

/// Document 6 of the source: a CLI command that exports a report as CSV.
fn csv_export() -> Plan {
    let tests = || json!({"gate": "tests_passed", "command": ["default"]});
    let mut write = step(
        "Implement the CSV export",
        "Write shop/export.py: a function export(rows) that returns CSV text, and call it from the command.",
        &["fields with commas are quoted", "the header is there"],
        json!([tests(), {"gate": "forbid_paths", "paths": ["shop/report.py"]}]),
    );
    write["tags"] = json!(["csv"]);
    write["expected_outputs"] = json!(["shop/export.py"]);
    Plan {
        init: json!({"title": "CSV export", "goal": "A CLI command that exports the report as CSV, with tests", "repo_root": "shop"}),
        answers: json!({
            "out_of_scope": ["other formats", "the web interface"], "target_environment": "Linux, Python 3.12",
            "timeline_priority": "minimal version first", "user_constraints": ["does not read code"],
            "constraints": ["standard library only"], "assumptions": ["rows() returns dictionaries"],
            "unknowns": ["whether reports can be empty"], "architecture": ["shop/export.py next to shop/report.py"],
            "deliverables": ["`shop export`", "tests", "README"], "definition_of_done": ["the suite passes", "README shows the command"],
            "tests_expected": ["unit tests of the export"], "invariants": ["patches only", "no new dependencies"],
            "key_files": ["shop/cli.py", "shop/report.py"], "entrypoints": ["shop/cli.py"],
            "risks": ["Excel reads UTF-8 wrongly"], "failure_modes": ["quoting by hand"], "hidden_dependencies": [],
            "smallest_proof": ["one row with a comma"], "decide_now": ["the delimiter"],
        }),
        steps: json!([
            step(
                "Find where commands are registered",
                "Find where CLI commands are registered, and say so in notes. Change nothing.",
                &["the place is named"],
                json!([])
            ),
            write,
            step(
                "Add unit tests",
                "Add tests/test_export.py.",
                &["the export is covered"],
                json!([tests(), {"gate": "file_exists", "paths": ["tests/test_export.py"]}])
            ),
            step(
                "Document the command",
                "Show `shop export` in README.md.",
                &["README shows the command"],
                json!([])
            ),
        ]),
        work: &[
            ("", "", "commands are registered in shop/cli.py by hand"),
            (
                "shop/export.py",
                "import csv\n",
                "export.py writes CSV with the csv module",
            ),
            (
                "tests/test_export.py",
                "def test_it():\n    pass\n",
                "the quoting of commas is tested",
            ),
            ("README.md", "shop export\n", "README shows the command"),
        ],
    }
}

#[test]
fn csv_export_of_document_6() {
    play(
        &csv_export(),
        &expect_file!["snapshots/jobs/csv_export.md"],
        |play| {
            play.call(
                "decision_record",
                json!({"decision": "Use the csv module", "rationale": "no dependency"}),
            );
            play.call(
                "job_update_policies",
                json!({"policies": {"require_commit_per_step": false}}),
            );
        },
    );
}

#[test]
fn a_bug_fix_with_a_rejection() {
    let mut plan = csv_export();
    plan.init = json!({"title": "Totals", "goal": "Totals of empty reports are 0", "repo_root": "shop"});
    plan.answers = json!({
        "deliverables": ["shop/report.py"], "definition_of_done": ["the suite passes"], "invariants": ["add a test for the bug"],
        "target_environment": "Python 3.12",
    });
    let mut fix = step(
        "Fix the total",
        "Return 0 for an empty report.",
        &["the total of an empty report is 0"],
        json!([{"gate": "changed_files_allowlist", "paths": ["shop/report.py"]}, {"gate": "command_exit_0", "command": ["default"]}]),
    );
    fix["tags"] = json!(["totals"]);
    let mut keep = step(
        "Keep it fixed",
        "Add a test.",
        &["a test fails without the fix"],
        json!([]),
    );
    keep["tags"] = json!(["totals"]);
    plan.steps = json!([fix, keep]);
    plan.work = &[(
        "tests/test_total.py",
        "def test_total():\n    pass\n",
        "an empty report has the total 0 in a test",
    )];
    let expected = expect_file!["snapshots/jobs/bug_fix.md"];
    let mut play = Play::new(&plan, PYTHON);
    play.call("plan_propose_steps", json!({"steps": plan.steps}));
    play.call("job_set_ready", json!({}));
    play.call("job_start", json!({}));
    let prompt = play.prompt();
    write(play.dir.path(), "notes.txt", "junk\n");
    write(play.dir.path(), "shop/report.py", "def rows():\n    return [0]\n");
    play.submit(&prompt, &["shop/report.py"], "returns 0", None, true);
    let prompt = play.prompt();
    play.submit(&prompt, &[], "the notes are still there", None, false);
    std::fs::remove_file(play.dir.path().join("notes.txt")).unwrap();
    let prompt = play.prompt();
    play.submit(
        &prompt,
        &["shop/report.py"],
        "only report.py changed, the notes are gone",
        None,
        true,
    );
    for (path, content, summary) in plan.work {
        play.step(path, content, summary);
    }
    expected.assert_eq(&play.finish());
}

#[test]
fn a_dependency_upgrade_with_commits() {
    let mut plan = csv_export();
    plan.init = json!({"title": "Upgrade", "goal": "Upgrade requests to 3.0", "repo_root": "shop", "policies": {"require_commit_per_step": true, "evidence_schema_mode": "strict"}});
    plan.answers = json!({"deliverables": ["pyproject.toml"], "definition_of_done": ["the suite passes with requests 3.0"], "invariants": [],
        "risks": [{"risk": "sessions are closed earlier", "mitigation": "run the suite twice"}]});
    let mut upgrade = step(
        "Upgrade requests",
        "Set requests to 3.0 in pyproject.toml and adapt the calls that break.",
        &["pyproject.toml names 3.0"],
        json!([{"gate": "tests_passed", "command": ["default"]}, {"gate": "lint_passed", "command": ["lint"]}]),
    );
    upgrade["required_evidence"] =
        json!({"changed_files": "array", "lint_run": "boolean", "lint_passed": "boolean"});
    upgrade["tags"] = json!(["high-risk"]);
    plan.steps = json!([
        step(
            "Read the changelog",
            "Note every breaking change in CHANGES.md.",
            &["CHANGES.md lists them"],
            json!([])
        ),
        upgrade,
    ]);
    plan.work = &[
        (
            "CHANGES.md",
            "sessions\n",
            "CHANGES.md lists two breaking changes",
        ),
        (
            "CHECK.md",
            "reset to the commit before\n",
            "the suite passes and the way back is noted",
        ),
        (
            "pyproject.toml",
            "[project]\nname = \"shop\"\ndependencies = [\"requests==3.0\"]\n",
            "requests is 3.0 and no call broke",
        ),
    ];
    play(
        &plan,
        &expect_file!["snapshots/jobs/dependency_upgrade.md"],
        |_| {},
    );
}

#[test]
fn a_hygiene_cycle() {
    let mut plan = csv_export();
    plan.init = json!({"title": "Hygiene", "goal": "Remove files that nothing uses", "repo_root": "shop"});
    plan.answers = json!({"deliverables": ["a smaller tree"], "definition_of_done": ["the suite passes"], "invariants": ["delete nothing that is imported"]});
    plan.steps = json!([
        step(
            "List candidates",
            "List stale files with repo_find_stale_candidates and say for each in notes why it goes or stays.",
            &["each candidate has a reason"],
            json!([])
        ),
        step(
            "Delete them",
            "Delete shop/old_report.py.",
            &["it is gone"],
            json!([{"gate": "tests_passed", "command": ["default"]}])
        ),
    ]);
    plan.work = &[
        ("", "", "old_report.py is a copy that nothing imports"),
        (
            "shop/report.py",
            "def rows():\n    return []\n\n",
            "old_report.py is gone",
        ),
    ];
    play(&plan, &expect_file!["snapshots/jobs/hygiene.md"], |play| {
        play.call("repo_map_update", json!({}));
    });
}

#[test]
fn a_refactoring_from_a_template() {
    let mut plan = csv_export();
    plan.init = json!({"title": "Refactor", "goal": "Split shop/cli.py", "repo_root": "shop"});
    plan.answers = json!({"deliverables": ["shop/cli.py"], "key_files": ["shop/cli.py"]});
    plan.steps = Value::Null;
    plan.work = &[];
    let expected = expect_file!["snapshots/jobs/refactor.md"];
    let mut play = Play::new(&plan, PYTHON);
    play.call(
        "template_apply",
        json!({"name": "refactor", "variables": {"target": "shop/cli.py"}}),
    );
    play.call(
        "template_apply",
        json!({"name": "pre_merge_checklist", "variables": {"change": "the split"}, "append": true}),
    );
    play.call("conductor_answer", json!({"answers": no_faults()}));
    play.call("job_set_ready", json!({}));
    // Templates may gate steps in ways that this test need not meet: the prompts of all steps are in the export.
    let exported = play.call("job_export_bundle", json!({"format": "json"}));
    let bundle: Value = serde_json::from_str(exported["content"].as_str().unwrap()).unwrap();
    for prompt in bundle["prompts"].as_array().unwrap() {
        let prompt = prompt.as_str().unwrap();
        assert!(
            prompt.len() <= MAX_PROMPT_BYTES,
            "{} characters: {prompt}",
            prompt.len()
        );
        play.log += prompt;
        play.log += "\n";
    }
    expected.assert_eq(&play.finish());
}

#[test]
fn a_feature_without_a_repository() {
    let mut plan = csv_export();
    plan.init = json!({"title": "Letters", "goal": "A text that explains the export to customers"});
    plan.answers = json!({"repo_exists": false, "deliverables": ["letter.md"], "definition_of_done": ["a customer understands it"],
        "invariants": ["no promises"], "target_environment": "e-mail"});
    plan.steps = json!([
        step(
            "Draft the letter",
            "Write a draft of at most 200 words into notes.",
            &["it has at most 200 words"],
            json!([])
        ),
        step(
            "Review the letter",
            "Read it as a customer.",
            &["no word needs an explanation"],
            json!([{"gate": "criteria_checklist_complete"}])
        ),
    ]);
    plan.work = &[
        ("", "", "a draft of 150 words"),
        ("", "", "two words were replaced"),
    ];
    play(&plan, &expect_file!["snapshots/jobs/letter.md"], |play| {
        let rules = "- read aloud before submitting\n";
        play.call(
            "context_add_block",
            json!({"block_type": "RESEARCH", "content": rules, "tags": ["process"]}),
        );
        let subject = json!({"block_type": "RESEARCH", "content": "- use a state machine\n"});
        play.call("context_add_block", subject);
    });
}

/// Tools of the pack in a text that the default list leaves out, but for what only people call.
pub(crate) fn unlisted(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    words
        .filter(|word| {
            let found = conductor::PACK.tools.iter().find(|tool| tool.name == *word);
            *word != "step_approve" && found.is_some_and(|tool| tool.tier != Tier::Core)
        })
        .collect()
}

#[test]
fn no_text_names_a_tool_that_a_client_cannot_call() {
    let play = Play::new(&csv_export(), PYTHON);
    let call = |play: &Play, tool: &str, mut arguments: Value| {
        arguments["job_id"] = json!(play.job);
        let said = match play.session.call(tool, &arguments.to_string()) {
            Ok(reply) => reply.structured,
            Err(err) => format!(
                "{} {} {}",
                err.message,
                err.remediation,
                err.next_call.map(|call| call.tool).unwrap_or_default()
            ),
        };
        assert!(
            unlisted(&said).is_empty() || said.contains("tool_call"),
            "{tool} names {:?}: {said}",
            unlisted(&said)
        );
        said
    };
    for (tool, arguments) in [
        ("job_set_ready", json!({})),
        ("job_start", json!({})),
        ("plan_propose_steps", json!({"steps": csv_export().steps})),
        ("conductor_answer", json!({"answers": {"repo_root": "nowhere"}})),
        ("conductor_answer", json!({"answers": {"repo_root": "shop"}})),
        ("job_set_ready", json!({})),
        ("job_next_step_prompt", json!({})),
        ("job_start", json!({})),
        ("conductor_answer", json!({"answers": {"goal": "another"}})),
        ("plan_propose_steps", json!({"steps": []})),
        ("job_next_step_prompt", json!({})),
        (
            "job_submit_step_result",
            json!({"step_id": "S1", "model_claim": "NOT_MET", "summary": "not yet"}),
        ),
        (
            "job_submit_step_result",
            json!({"step_id": "S1", "model_claim": "NOT_MET", "summary": "not yet"}),
        ),
        ("job_next_step_prompt", json!({})),
        (
            "job_submit_step_result",
            json!({"step_id": "S1", "model_claim": "NOT_MET", "summary": "not yet"}),
        ),
        ("job_next_step_prompt", json!({})),
        ("job_start", json!({})),
    ] {
        call(&play, tool, arguments);
    }
    let job = play.job.clone();
    for (prompt, arguments) in [
        ("plan_job", json!({"goal": "Export"})),
        ("plan_job", json!({"goal": job})),
        ("execute_job", json!({"job_id": job})),
    ] {
        let said = play.session.prompt(prompt, &arguments.to_string()).unwrap();
        assert!(unlisted(&said).is_empty() || said.contains("tool_call"), "{said}");
    }
    let begun = json!({"title": "x", "goal": "y", "repo_root": "shop"});
    let begun = play
        .session
        .call("conductor_init", &begun.to_string())
        .unwrap()
        .structured;
    assert!(
        unlisted(&begun).is_empty() || begun.contains("tool_call"),
        "{begun}"
    );
}
