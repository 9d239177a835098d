//! `tollgate call`

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};
use tollgate::config::Config;
use tollgate::deadline::Cancel;
use tollgate::gate::{self, Answers, Caller};
use tollgate::host::Choice;
use tollgate::progress::Progress;

use super::{Global, out};

#[derive(Debug, Args)]
pub(super) struct Call {
    /// The tool's name
    tool: String,
    /// Its arguments: JSON, @FILE, or - for standard input
    #[arg(default_value = "{}", value_name = "JSON|@FILE|-")]
    arguments: String,
}

impl Call {
    /// Exit code 1 on a tool error, which is printed like a result.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let arguments = self.read_arguments()?;
        let config = Config::load(global.config.as_deref())?;
        let gate = super::open(global, &config, &Choice::default()).await?;
        let call = gate::Call {
            tool: self.tool,
            arguments,
            malformed: Vec::new(),
            envelope: None,
            caller: Caller {
                client: Some("tollgate call".to_owned()),
                connection: gate.new_connection(),
                ..Caller::default()
            },
            cancel: Cancel::default(),
            progress: Progress::default(),
            answers: Answers::default(),
        };
        let outcome = gate.call(call).await?;
        gate.catch_up().await;
        gate.flush().await;
        match outcome.result {
            Ok(reply) => {
                match reply.text {
                    Some(text) if !global.json => out::print(&text),
                    _ => out::print_json(&Value::Object(reply.structured())),
                }
                Ok(ExitCode::SUCCESS)
            }
            Err(err) => {
                out::print_json(&json!({ "error": err }));
                Ok(ExitCode::FAILURE)
            }
        }
    }

    fn read_arguments(&self) -> anyhow::Result<Map<String, Value>> {
        let text = match self.arguments.as_str() {
            "-" => {
                let mut text = String::new();
                std::io::stdin()
                    .lock()
                    .read_to_string(&mut text)
                    .context("standard input cannot be read")?;
                text
            }
            argument => match argument.strip_prefix('@') {
                #[allow(clippy::disallowed_methods, reason = "the user names the file")]
                Some(file) => {
                    std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?
                }
                None => argument.to_owned(),
            },
        };
        serde_json::from_str(&text).context("the arguments are not a JSON object")
    }
}
