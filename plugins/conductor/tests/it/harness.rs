//! Scripts of the pack's calls on one job. Lines leave out the job's id, which is printed as `JOB`.

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_sdk::native::{Script, Session, Workspace};
use tollgate_sdk::{Action, Answer, GitAccess, Question, Reply, TERMINAL, ToolError};

/// A session with one job in it.
pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) job: String,
    /// Goes with the bench.
    pub(crate) dir: Option<tempfile::TempDir>,
}

impl Bench {
    /// A session with a job that was just begun.
    pub(crate) fn new() -> Bench {
        Bench::over(
            Session::new(&conductor::PACK).portable(),
            &json!({"title": "Export", "goal": "Export reports as CSV"}),
            None,
        )
    }

    /// A session whose job has a repository: one commit with `a.txt`, and tests `pass`, `fail` and `say`.
    pub(crate) fn with_repository() -> Bench {
        Bench::with_repository_and(|workspace| workspace)
    }

    /// The same, with more about the workspace.
    pub(crate) fn with_repository_and(more: impl FnOnce(Workspace) -> Workspace) -> Bench {
        let dir = repository();
        let workspace = Workspace::new("main", dir.path())
            .git(GitAccess::Write)
            .test("pass", &["true"])
            .test("fail", &["sh", "-c", "echo 1 failed; exit 3"])
            .test("say", &["echo", "12 passed"]);
        let session = Session::new(&conductor::PACK)
            .portable()
            .workspace(more(workspace));
        let init = json!({"title": "Export", "goal": "Export reports as CSV", "repo_root": "main"});
        Bench::over(session, &init, Some(dir))
    }

    fn over(session: Session, init: &Value, dir: Option<tempfile::TempDir>) -> Bench {
        // A person, who may change a running job; tests of what a client may do take another.
        session.set_client(TERMINAL);
        session.answer_with(allow);
        let begun = session.call("conductor_init", &init.to_string()).unwrap();
        let begun: Value = serde_json::from_str(&begun.structured).unwrap();
        Bench {
            session,
            job: begun["job_id"].as_str().unwrap().to_owned(),
            dir,
        }
    }

    /// Fills the plan, with these steps, makes the job ready and starts it.
    pub(crate) fn started(self, steps: Value) -> Bench {
        self.run(READY);
        if steps.as_array().is_some_and(|steps| steps.len() > 3) {
            self.reply("conductor_answer", json!({"answers": no_faults()}));
        }
        self.reply("plan_propose_steps", json!({"steps": steps}));
        self.run("- job_set_ready {}\n- job_start {}");
        self
    }

    /// Makes the calls that follow without a person.
    pub(crate) fn as_agent(&self) {
        self.session.set_client("agent");
        self.session.answer_nothing();
    }

    /// Makes the calls that follow as a person at a terminal, who allows everything.
    pub(crate) fn as_person(&self) {
        self.session.set_client(TERMINAL);
        self.session.answer_with(allow);
    }

    fn script(&self) -> Script<'_> {
        tollgate_kit_test::script(&self.session).default_argument("job_id", json!(self.job))
    }

    /// Runs a script and returns its log.
    pub(crate) fn run(&self, lines: &str) -> String {
        self.script().run(lines).replace(&self.job, "JOB")
    }

    /// Runs a tool.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<Reply, ToolError> {
        self.script().call_tool(tool, checked(tool, arguments))
    }

    /// The structured reply of a call that has to succeed.
    pub(crate) fn reply(&self, tool: &str, arguments: Value) -> Value {
        let arguments = checked(tool, arguments);
        self.script().reply(&format!("{tool} {arguments}"))
    }

    /// Runs a call that a refusal or reply names.
    pub(crate) fn follow(&self, next: &Value) -> Value {
        self.reply(next["tool"].as_str().unwrap(), next["arguments"].clone())
    }

    /// Completes the mistake of a rejection by its draft.
    pub(crate) fn learn(&self, rejected: &Value, lesson: &str) -> Value {
        let draft = &rejected["mistake_draft"];
        let mut arguments = draft["arguments"].clone();
        arguments["lesson"] = json!(lesson);
        self.reply(draft["tool"].as_str().unwrap(), arguments)
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.dir.as_ref().unwrap().path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes files of the repository.
    pub(crate) fn write_all(&self, files: &[(&str, &str)]) {
        for (path, content) in files {
            self.write(path, content);
        }
    }

    /// Path of the repository's.
    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.as_ref().unwrap().path().join(path)
    }

    /// Runs git in the repository, as somebody outside of the pack.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(self.dir.as_ref().unwrap().path(), arguments)
    }

    /// Commits all files of the repository, as somebody outside of the pack.
    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    /// Changes of the job's plan since it was agreed, oldest first.
    pub(crate) fn plan_changes(&self) -> Vec<String> {
        let view = self.reply("job_get", json!({}));
        let changes = view["plan_changes"].as_array().unwrap();
        changes
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }
}

/// Yes to any question of the pack.
#[allow(clippy::unnecessary_wraps, reason = "others leave questions open")]
fn allow(question: &Question) -> Option<Answer> {
    Some(Answer {
        key: question.key.clone(),
        action: Action::Accept,
        content: json!({"allow": true}),
    })
}

/// Answers that say that a plan has no faults.
pub(crate) fn no_faults() -> Value {
    json!({"failure_modes": [], "hidden_dependencies": [], "smallest_proof": [], "decide_now": []})
}

/// Arguments of a call; a submission says that the invariants were checked.
fn checked(tool: &str, mut arguments: Value) -> Value {
    if tool == "job_submit_step_result"
        && let Some(evidence) = arguments["evidence"].as_object_mut()
    {
        evidence.entry("invariants_checked").or_insert(json!(true));
    }
    arguments
}

/// A plan that lacks nothing but steps.
pub(crate) const READY: &str = r#"
    - conductor_answer {"answers": {"deliverables": ["the exporter"], "definition_of_done": ["it exports"], "invariants": ["patches only", "no new dependencies"]}}
    - job_update_policies {"policies": {"checkpoint_interval_steps": 0, "require_tests_evidence": false, "require_diff_summary": false}}
"#;

/// A step with two criteria and some gates.
pub(crate) fn step(title: &str, gates: Value) -> Value {
    json!({
        "title": title,
        "instruction_prompt": format!("Do this: {title}."),
        "acceptance_criteria": ["it works", "it is tested"],
        "required_evidence": {"notes": "string"},
        "remediation_prompt": "Make it smaller.",
        "gates": gates,
    })
}

/// Arguments that submit a step, accepted if its gates hold.
pub(crate) fn result(step: &str) -> Value {
    json!({
        "step_id": step,
        "model_claim": "MET",
        "summary": "wrote the exporter",
        "devlog_line": "exporter added",
        "evidence": {"notes": "it went well", "invariants_checked": true, "criteria_checklist": {"c1": true, "c2": true}},
    })
}

/// Runs a script on a job that was just begun and compares its log.
pub(crate) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&Bench::new().run(script));
}

/// A repository with one commit.
pub(crate) fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "--quiet", "--initial-branch=main"]);
    git(dir.path(), &["config", "user.name", "Ada"]);
    git(dir.path(), &["config", "user.email", "ada@example.org"]);
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    git(dir.path(), &["add", "a.txt"]);
    git(dir.path(), &["commit", "--quiet", "-m", "first"]);
    dir
}

/// Runs git, which has to succeed.
pub(crate) fn git(dir: &std::path::Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
