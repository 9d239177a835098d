//! Runs scripts of tool calls on one job and prints what comes back.
//!
//! A line is `tool {arguments} ? fields`: the job's id is added to the arguments, and of the reply only
//! the named fields are printed, all of them without `?`. A line that starts with `-` has to succeed and
//! is not printed. The job is `JOB` in what is printed. `#` comments are kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_sdk::native::{Session, Workspace};
use tollgate_sdk::{GitAccess, NextCall, Reply, ToolError};

/// A session with one job in it.
pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) job: String,
    /// Goes with the bench.
    pub(crate) dir: Option<tempfile::TempDir>,
}

/// Tools that take no job.
const JOBLESS: &[&str] = &["conductor_init", "job_list", "job_import", "template_list"];

impl Bench {
    /// A session with a job that was just begun.
    pub(crate) fn new() -> Bench {
        Bench::over(
            Session::new(&conductor::PACK),
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
        let session = Session::new(&conductor::PACK).workspace(more(workspace));
        let init = json!({"title": "Export", "goal": "Export reports as CSV", "repo_root": "main"});
        Bench::over(session, &init, Some(dir))
    }

    fn over(session: Session, init: &Value, dir: Option<tempfile::TempDir>) -> Bench {
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
        self.reply("plan_propose_steps", json!({"steps": steps}));
        self.run("- job_set_ready {}\n- job_start {}");
        self
    }

    /// Runs a script and returns its log.
    pub(crate) fn run(&self, script: &str) -> String {
        let mut log = String::new();
        for line in script.lines().map(str::trim) {
            if let Some(line) = line.strip_prefix("- ") {
                let (tool, arguments, _) = parts(line);
                self.reply(tool, arguments);
            } else if line.starts_with('#') {
                let _ = writeln!(log, "{line}");
            } else if !line.is_empty() {
                let (tool, arguments, fields) = parts(line);
                log += &outcome(&self.call(tool, arguments), &fields);
            }
        }
        log.replace(&self.job, "JOB")
    }

    /// Runs a tool.
    pub(crate) fn call(&self, tool: &str, mut arguments: Value) -> Result<Reply, ToolError> {
        if let Value::Object(arguments) = &mut arguments
            && !JOBLESS.contains(&tool)
        {
            arguments.entry("job_id").or_insert_with(|| json!(self.job));
        }
        call(&self.session, tool, &arguments.to_string())
    }

    /// The structured reply of a call that has to succeed.
    pub(crate) fn reply(&self, tool: &str, arguments: Value) -> Value {
        let shown = arguments.to_string();
        let reply = self
            .call(tool, arguments)
            .unwrap_or_else(|err| panic!("{tool} {shown}: {err:#?}"));
        serde_json::from_str(&reply.structured).unwrap()
    }

    /// Runs a call that a refusal or reply names.
    pub(crate) fn follow(&self, next: &Value) -> Value {
        self.reply(next["tool"].as_str().unwrap(), next["arguments"].clone())
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.dir.as_ref().unwrap().path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs git in the repository, as somebody outside of the pack.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(self.dir.as_ref().unwrap().path(), arguments)
    }
}

/// A plan that lacks nothing but steps.
pub(crate) const READY: &str = r#"
    - conductor_answer {"answers": {"deliverables": ["export.py"], "definition_of_done": ["it exports"], "invariants": ["patches only", "no new dependencies"]}}
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

/// What submits a step and is accepted if its gates hold.
pub(crate) fn result(step: &str) -> Value {
    json!({
        "step_id": step,
        "model_claim": "MET",
        "summary": "wrote the exporter",
        "devlog_line": "exporter added",
        "evidence": {"notes": "it went well", "criteria_checklist": {"c1": true, "c2": true}},
    })
}

/// Runs a script on a job that was just begun and compares its log.
pub(crate) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&Bench::new().run(script));
}

/// Runs a tool. Its arguments have to fit the input schema if it succeeds, and its reply the output schema.
fn call(session: &Session, tool: &str, arguments: &str) -> Result<Reply, ToolError> {
    let result = session.call(tool, arguments);
    match &result {
        Ok(reply) => {
            fits(tool, "input", arguments);
            fits(tool, "output", &reply.structured);
        }
        Err(err) => {
            assert!(!err.remediation.is_empty(), "{err:?} says what to do");
            for blocker in &err.blockers {
                assert!(!blocker.message.is_empty(), "{err:?}");
            }
        }
    }
    result
}

thread_local! {
    static VALIDATORS: RefCell<HashMap<String, jsonschema::Validator>> = RefCell::default();
}

fn fits(tool: &str, side: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    VALIDATORS.with_borrow_mut(|validators| {
        let validator = validators.entry(format!("{tool} {side}")).or_insert_with(|| {
            let entry = conductor::PACK.tool(tool).unwrap();
            let schema = match side {
                "input" => (entry.input_schema)(),
                _ => (entry.output_schema)(),
            };
            jsonschema::validator_for(&schema).unwrap()
        });
        let faults: Vec<_> = validator.iter_errors(&value).map(|err| err.to_string()).collect();
        assert!(faults.is_empty(), "{tool} {side} {text}: {faults:?}");
    });
}

fn parts(line: &str) -> (&str, Value, Vec<&str>) {
    let (line, fields) = line.split_once(" ? ").unwrap_or((line, ""));
    let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|err| panic!("{line}: {err}"));
    (tool, arguments, fields.split_whitespace().collect())
}

fn outcome(result: &Result<Reply, ToolError>, fields: &[&str]) -> String {
    let err = match result {
        Ok(reply) => return success(&reply.structured, fields),
        Err(err) => err,
    };
    let mut text = format!("err {}: {}\n", err.code, err.message);
    for blocker in &err.blockers {
        let _ = write!(text, "  - {}", blocker.code);
        if let Some(field) = &blocker.field {
            let _ = write!(text, " ({field})");
        }
        let _ = write!(text, ": {}", blocker.message);
        if let Some(next) = &blocker.next_call {
            let _ = write!(text, " -> {}", line_of(next));
        }
        text.push('\n');
    }
    text
}

fn success(structured: &str, fields: &[&str]) -> String {
    if fields.is_empty() {
        return format!("ok {structured}\n");
    }
    let reply: Value = serde_json::from_str(structured).unwrap();
    let mut text = "ok".to_owned();
    for field in fields {
        let value = field
            .split('.')
            .fold(&reply, |value, name| match name.parse::<usize>() {
                Ok(place) => &value[place],
                Err(_) => &value[name],
            });
        let _ = match value.as_str() {
            Some(value) if value.contains('\n') => write!(text, "\n{value}"),
            _ => write!(text, " {field}={value}"),
        };
    }
    text.push('\n');
    text
}

/// A call as a line of a script.
pub(crate) fn line_of(call: &NextCall) -> String {
    format!("{} {}", call.tool, Value::Object(call.arguments.clone()))
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
