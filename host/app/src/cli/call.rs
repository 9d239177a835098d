//! `tollgate call`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};
use tollgate::config::Config;
use tollgate_gate::{self, Answers, CallOutcome, Caller, Gate};
use tollgate_sdk::TERMINAL;
use tollgate_store::data_dir::DataDir;

use super::terminal::{self, Person};
use super::{Filters, Global, file, out};

/// Maximum number of rounds of questions in one call.
const MAX_ROUNDS: usize = 10;

#[derive(Debug, Args)]
pub(super) struct Call {
    /// The tool's name
    tool: String,
    /// The tool's arguments: JSON, @FILE, or - for standard input
    #[arg(default_value = "{}", value_name = "JSON|@FILE|-")]
    arguments: String,
    #[command(flatten)]
    filters: Filters,
}

impl Call {
    /// Exit code 1 on a tool error, which is printed like a result.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let arguments = file::object(&self.arguments).context("the arguments are not a JSON object")?;
        let called = (self.tool, arguments);
        call(global, &self.filters, called).await
    }
}

/// Calls a tool, and repeats the call with a person's answers as often as it asks.
pub(super) async fn through(
    gate: &Gate,
    tool: &str,
    arguments: &Map<String, Value>,
) -> anyhow::Result<CallOutcome> {
    let mut person = Person::at_terminal();
    let client = if person.is_some() {
        TERMINAL
    } else {
        "tollgate call"
    };
    let caller = Caller {
        client: Some(client.to_owned()),
        connection: gate.new_connection(),
        ..Caller::default()
    };
    let mut answers = Answers::default();
    for _ in 0..MAX_ROUNDS {
        let call = tollgate_gate::Call {
            answers,
            ..tollgate_gate::Call::new(tool, arguments.clone(), caller.clone())
        };
        let mut outcome = gate.call(call).await.map_err(|unknown| match unknown.nearest {
            Some(_) => anyhow::Error::new(unknown),
            None => anyhow::anyhow!("{unknown}; `tollgate tools` lists the tools"),
        })?;
        let Some(asked) = outcome.asked.take() else {
            return Ok(outcome);
        };
        let Some(person) = &mut person else {
            terminal::say_missing(&asked);
            return Ok(outcome);
        };
        if outcome.has_effects {
            person.forget_agreement();
        }
        match person.answer(asked)? {
            Some(given) => answers = given,
            None => return Ok(outcome),
        }
    }
    anyhow::bail!("{tool} asked for input {MAX_ROUNDS} times, so the call was aborted")
}

/// Calls a tool over its own gate, and prints the result.
pub(super) async fn call(
    global: &Global,
    filters: &Filters,
    (tool, arguments): (String, Map<String, Value>),
) -> anyhow::Result<ExitCode> {
    let gate = open(global, filters).await?;
    let outcome = through(&gate, &tool, &arguments).await?;
    gate.catch_up().await;
    gate.flush().await;
    // The signed head proves that the ledger contained this call, whatever happens to the database later.
    gate.sign_head();
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

/// Opens a gate beside those of running servers.
pub(super) async fn open(global: &Global, filters: &Filters) -> anyhow::Result<Gate> {
    let config = Config::load(global.config.as_deref())?;
    let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
    super::reload::check_start(global, &data, &config)?;
    // Tools that a server of this configuration does not offer cannot be called here either.
    let pack_selection = filters.pack_selection(&config)?;
    super::open(global, &config, &pack_selection).await
}
