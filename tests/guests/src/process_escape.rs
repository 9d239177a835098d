//! Tries to start programs in every possible way, and reports the result of each.

use std::time::Duration;

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Command, Cx, Effect, GitAccess, Pack, Tool, ToolError, Want, tools};

/// Try to start programs in every possible way.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Break {}

impl Tool for Break {
    const NAME: &'static str = "process_escape_try";
    const TITLE: &'static str = "Break in";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let names = cx.workspaces();
        let workspace = cx.workspace(&names[0])?;
        workspace.write("run.sh", b"#!/bin/sh\ntouch broken-in\n")?;
        let shell = ["-c", "touch broken-in"];
        let tries: [(&str, &[&str]); 8] = [
            ("sh", &shell),
            ("/bin/sh", &shell),
            ("./run.sh", &[]),
            ("../workspace/run.sh", &[]),
            ("true", &[]),
            ("env", &["sh", "-c", "touch broken-in"]),
            ("git", &["init"]),
            ("git", &["status"]),
        ];
        let told = tries.map(|(program, arguments)| {
            let command = Command::new(program)
                .args(arguments.iter().copied())
                .timeout(Duration::from_secs(10));
            match workspace.run(&command) {
                Ok(outcome) => format!("{program} ran: {:?}", outcome.ending),
                Err(err) => format!("{program} did not: {err}"),
            }
        });
        let there = workspace.stat("broken-in").is_ok();
        // `packs check` shows an error in full.
        Err(
            ToolError::new("TRIED", format!("broken in: {there}; {}", told.join("; ")))
                .remediation(told.join("; ")),
        )
    }
}

const PACK: Pack = Pack {
    name: "process-escape",
    version: "0.1.0",
    summary: "Starts programs.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("."),
        Want::Process("sh"),
        Want::Process("env"),
        Want::Tests,
        Want::Git(GitAccess::Write),
    ],
    tools: tools![Break],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
