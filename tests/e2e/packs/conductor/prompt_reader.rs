//! An executor that knows a job's id and nothing else: it reads prompts, does what they say, fills in their form and
//! sends it. The work itself, which an agent would invent, is given to it by the title of the step.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use rmcp::model::GetPromptRequestParams;
use serde_json::{Map, Value, json};

use crate::harness::{Place, Session};

/// Reads one job.
pub(crate) struct Reader {
    pub(crate) session: Session,
    job: String,
    listed: BTreeSet<String>,
    /// Latest prompt of a step.
    pub(crate) prompt: String,
    /// Everything that was refused or rejected.
    pub(crate) refusals: Vec<String>,
}

/// Work on a step: paths that were changed.
pub(crate) type Worked = &'static [(&'static str, &'static str)];

impl Reader {
    /// A client that asks for the prompt `execute_job`, and begins as it says.
    pub(crate) async fn begin(place: &Place, job: &str) -> Reader {
        let session = place.serve(&[]).await;
        let tools = session.client().list_all_tools().await.unwrap();
        let mut reader = Reader {
            session,
            job: job.to_owned(),
            listed: tools.into_iter().map(|tool| tool.name.into_owned()).collect(),
            prompt: String::new(),
            refusals: Vec::new(),
        };
        let mut request = GetPromptRequestParams::new("execute_job");
        request.arguments = json!({"job_id": job}).as_object().cloned();
        let said = reader.session.client().get_prompt(request).await.unwrap();
        let said = serde_json::to_value(&said.messages[0].content).unwrap()["text"].clone();
        let said = said.as_str().unwrap();
        if said.contains("Call job_start, then job_next_step_prompt.") {
            reader.call("job_start", json!({})).await;
        } else {
            assert!(said.contains("Call job_next_step_prompt."), "{said}");
        }
        reader.next().await;
        reader
    }

    /// Makes a call on the job, as the list of tools allows. Notes a refusal.
    pub(crate) async fn call(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["job_id"] = json!(self.job);
        let reply = if self.listed.contains(tool) {
            self.session.call_raw(tool, arguments).await
        } else {
            let told = self.prompt.contains("use tool_call") && self.prompt.contains(tool);
            let known = told || tool.starts_with("context_") || tool.starts_with("job_");
            assert!(known, "nothing says how to call {tool}:\n{}", self.prompt);
            let relayed = json!({"tool": tool, "arguments": arguments});
            self.session.call_raw("tool_call", relayed).await
        };
        let body = reply.structured_content.unwrap();
        if reply.is_error == Some(true) {
            self.refusals.push(format!("{tool}: {}", body["error"]));
        }
        body
    }

    /// Reads the next prompt.
    pub(crate) async fn next(&mut self) {
        let prompt = self.call("job_next_step_prompt", json!({})).await;
        prompt["prompt"].as_str().unwrap().clone_into(&mut self.prompt);
    }

    /// Title of the step, from the first line of its prompt.
    pub(crate) fn title(&self) -> &str {
        let head = self.prompt.lines().next().unwrap();
        head.split_once("): ").unwrap().1
    }

    /// Directory of the repository, as the prompt names it.
    fn root(&self) -> PathBuf {
        let line = self
            .prompt
            .lines()
            .find_map(|line| line.strip_prefix("- Repository: "));
        let (path, _) = line.unwrap().split_once(" (workspace ").unwrap();
        PathBuf::from(path)
    }

    /// Commands that the prompt says will run.
    fn commands(&self) -> Vec<String> {
        let lines = self.prompt.lines().filter(|line| line.starts_with("- "));
        let parts = lines.filter(|line| line.contains("(test ") || line.contains("` succeeds"));
        parts
            .filter_map(|line| line.split('`').nth(1))
            .map(str::to_owned)
            .collect()
    }

    /// Test files among them.
    fn tests(&self) -> Vec<String> {
        let about = ["tests_passed is", "failed before this step"];
        let lines = self
            .prompt
            .lines()
            .filter(|line| about.iter().any(|about| line.contains(about)));
        lines
            .filter_map(|line| line.split('`').nth(1))
            .map(str::to_owned)
            .collect()
    }

    /// Runs a command of the prompt as a person pastes it.
    fn run(&self, command: &str) -> bool {
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.root())
            .output();
        output.unwrap().status.success()
    }

    /// Form of the prompt, which has to be valid JSON.
    pub(crate) fn form(&self) -> Value {
        let (_, rest) = self.prompt.split_once("```json\n").unwrap();
        let (form, _) = rest.split_once("\n```").unwrap();
        serde_json::from_str(form).unwrap_or_else(|err| panic!("{err}: {form}"))
    }

    /// Writes files, runs what the prompt names, and fills in the form as it is found. Files with the content `-` are
    /// deleted.
    pub(crate) async fn work(&mut self, files: Worked, about: &str) -> Value {
        for (path, content) in files {
            let path = self.root().join(path);
            if *content == "-" {
                std::fs::remove_file(path).unwrap();
            } else {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
        }
        let commands = self.commands();
        let tests = self.tests();
        let passed: Vec<bool> = tests.iter().map(|command| self.run(command)).collect();
        let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
        let mut form = self.form();
        if form.get("commit_hash").is_some() {
            if paths.is_empty() {
                form.as_object_mut().unwrap().remove("commit_hash");
            } else {
                let commit = json!({"summary": about, "paths": paths});
                form["commit_hash"] = self.call("git_commit", commit).await["commit_hash"].clone();
            }
        }
        form["model_claim"] = json!("MET");
        form["summary"] = json!(about);
        if form.get("devlog_line").is_some() {
            form["devlog_line"] = json!(about);
        }
        let passed = (!tests.is_empty()).then(|| passed.iter().all(|passed| *passed));
        let evidence = form["evidence"].as_object_mut().unwrap();
        fill_in(evidence, about, (&paths, &commands), (&tests, passed));
        form
    }

    /// Sends a form. An accepted one leads to the next prompt.
    pub(crate) async fn submit(&mut self, form: Value) -> Value {
        let reply = self.call("job_submit_step_result", form).await;
        if reply["accepted"] != true {
            self.refusals
                .push(format!("{}: {}", self.title(), reply["rejection_reasons"]));
        } else if reply["status"] == "EXECUTING" {
            self.next().await;
        }
        reply
    }

    /// Works on the current step and sends its form, which has to be accepted.
    pub(crate) async fn step(&mut self, files: Worked, about: &str) -> Value {
        let form = self.work(files, about).await;
        let reply = self.submit(form).await;
        assert_eq!(reply["accepted"], true, "{reply:#}\n{}", self.prompt);
        reply
    }
}

/// Fills in the evidence: every key that the form has, and only those.
fn fill_in(
    evidence: &mut Map<String, Value>,
    about: &str,
    (paths, commands): (&[&str], &[String]),
    (tests, passed): (&[String], Option<bool>),
) {
    for (key, value) in evidence.iter_mut() {
        match key.as_str() {
            "changed_files" => *value = json!(paths),
            "diff_summary" | "notes" => *value = json!(format!("{about}: {}", paths.join(", "))),
            "commands_run" => *value = json!(commands),
            "tests_run" => *value = json!(tests),
            "tests_passed" => *value = json!(passed),
            "invariants_checked" => *value = json!(true),
            "file_descriptions" => {
                *value = paths
                    .iter()
                    .map(|path| ((*path).to_owned(), json!(about)))
                    .collect();
            }
            "criteria_checklist" => {
                for criterion in value.as_object_mut().unwrap().values_mut() {
                    *criterion = json!(true);
                }
            }
            other => panic!("the form asks for {other}, and nothing says what that is"),
        }
    }
}
