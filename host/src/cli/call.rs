//! `tollgate call`

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate::config::protections::{self, Records};
use tollgate::data_dir::DataDir;
use tollgate::deadline::Cancel;
use tollgate::gate::{self, Answers, Caller};
use tollgate::host::Choice;
use tollgate::progress::Progress;
use tollgate::text;

use super::{Global, file, out};

#[derive(Debug, Args)]
pub(super) struct Call {
    /// The tool's name
    tool: String,
    /// Its arguments: JSON, @FILE, or - for standard input
    #[arg(default_value = "{}", value_name = "JSON|@FILE|-")]
    arguments: String,
}

/// Says which policies judged calls on the data directory and do not judge this one. The command line is the operator's
/// own, so the call runs.
fn warn_of_lost_policies(global: &Global, config: &Config) -> anyhow::Result<()> {
    let Ok(path) = Config::file(global.config.as_deref()) else {
        return Ok(());
    };
    let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
    let known = Records::open(&data).and_then(|records| Ok((records.of(&path)?, records.others(&path)?)));
    let (own, others) = match known {
        Ok(known) => known,
        Err(err) => {
            out::warn(&format!(
                "cannot tell whether policies are missing: {}",
                text::chain(&err)
            ));
            return Ok(());
        }
    };
    let has = config.protections();
    let elsewhere = others.iter().filter(|_| config.policies.is_empty());
    for record in own.iter().chain(elsewhere) {
        let lost: BTreeSet<String> = record.protections.difference(&has).cloned().collect();
        let gone: Vec<&str> = protections::policies(&lost).into_iter().collect();
        if !gone.is_empty() {
            out::warn(&format!(
                "this call runs without the policies {}, which judged calls under {}; {} does not have them. Put them back, or \
                 take each away: tollgate policies remove NAME",
                gone.join(", "),
                record.config.display(),
                path.display(),
            ));
        }
    }
    Ok(())
}

impl Call {
    /// Exit code 1 on a tool error, which is printed like a result.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let arguments = file::object(&self.arguments).context("the arguments are not a JSON object")?;
        let config = Config::load(global.config.as_deref())?;
        warn_of_lost_policies(global, &config)?;
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
}
