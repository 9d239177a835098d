//! `tollgate ledger` and `tollgate envelopes`: looking into the ledger, without leaving a row in it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;
use tollgate::config::Config;
use tollgate::data_dir::DataDir;
use tollgate::envelope::State;
use tollgate::storage::{Database, EnvelopeFilter, Head, OperationFilter, Session, StoredOperation};

use super::{Global, out};

/// Operations that are read at once.
const PAGE: u32 = 500;
/// How often `tail -f` looks for new rows.
const FOLLOW: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(super) enum Ledger {
    /// Show the last operations
    Tail {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: u32,
        /// Go on with new ones as they come
        #[arg(short, long)]
        follow: bool,
    },
    /// Show the operations that fit, newest first
    Query(Query),
    /// Check that no row was changed, removed, inserted or replaced
    Verify {
        /// A head that `ledger export` printed before, as SEQ:HASH; it must be on the chain
        #[arg(long, value_name = "SEQ:HASH")]
        head: Option<String>,
    },
    /// Print every operation as a line of JSON, and the head of the chain last
    Export,
}

#[derive(Debug, Args)]
pub(super) struct Query {
    #[arg(long, value_name = "ID")]
    envelope: Option<String>,
    #[arg(long)]
    pack: Option<String>,
    #[arg(long)]
    tool: Option<String>,
    #[arg(long)]
    actor: Option<String>,
    /// Only those that were refused or failed
    #[arg(long)]
    failed: bool,
    /// RFC 3339
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// RFC 3339
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: u32,
}

impl Ledger {
    /// Exit code 1 if verifying finds something wrong.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let session = open(global)?;
        match self {
            Ledger::Tail { lines, follow } => tail(&session, global, lines, follow).await?,
            Ledger::Query(query) => {
                let operations = session.operations(&query.filter(), query.limit)?;
                print(&operations, global);
            }
            Ledger::Verify { head } => return verify(&session, global, head.as_deref()),
            Ledger::Export => export(&session)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Query {
    fn filter(&self) -> OperationFilter {
        OperationFilter {
            envelope_id: self.envelope.clone(),
            pack: self.pack.clone(),
            tool: self.tool.clone(),
            actor: self.actor.clone(),
            success: self.failed.then_some(false),
            since: self.since.clone(),
            until: self.until.clone(),
            ..OperationFilter::default()
        }
    }
}

/// Show the envelopes, newest first
#[derive(Debug, Args)]
pub(super) struct Envelopes {
    /// Only those that are open
    #[arg(long)]
    open: bool,
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
}

impl Envelopes {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let filter = EnvelopeFilter {
            state: self.open.then_some(State::Open),
            ..EnvelopeFilter::default()
        };
        let envelopes = open(global)?.envelopes(&filter, self.limit)?;
        let of = |used: i64, limit: Option<i64>| {
            limit.map_or_else(|| used.to_string(), |limit| format!("{used}/{limit}"))
        };
        let rows: Vec<Vec<String>> = envelopes
            .iter()
            .map(|envelope| {
                vec![
                    envelope.id.clone(),
                    envelope.standing.state.as_str().to_owned(),
                    of(
                        envelope.standing.mutations,
                        envelope.standing.limits.max_mutations,
                    ),
                    of(
                        envelope.standing.test_runs,
                        envelope.standing.limits.max_test_runs,
                    ),
                    envelope.opened_at.clone(),
                    envelope.label.clone().unwrap_or_default(),
                ]
            })
            .collect();
        if global.json {
            let keys = ["id", "state", "mutations", "test_runs", "opened_at", "label"];
            let objects: Vec<serde_json::Map<String, serde_json::Value>> = rows
                .iter()
                .map(|row| {
                    keys.iter()
                        .zip(row)
                        .map(|(key, cell)| ((*key).to_owned(), cell.as_str().into()))
                        .collect()
                })
                .collect();
            out::print_json(&json!(objects));
        } else {
            out::print(&out::table(
                &["ENVELOPE", "STATE", "MUTATIONS", "TEST RUNS", "OPENED", "LABEL"],
                &rows,
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn open(global: &Global) -> anyhow::Result<Session> {
    let config = Config::load(global.config.as_deref())?;
    let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
    let database = Database::open(&data.database()).context("the database cannot be used")?;
    Ok(database.read_session()?)
}

async fn tail(session: &Session, global: &Global, lines: u32, follow: bool) -> anyhow::Result<()> {
    let mut operations = session.operations(&OperationFilter::default(), lines)?;
    operations.reverse();
    print(&operations, global);
    if follow {
        follow_after(
            session,
            global,
            operations.last().map_or(0, |operation| operation.seq),
        )
        .await?;
    }
    Ok(())
}

/// Shows new operations as they come, until the process is ended.
async fn follow_after(session: &Session, global: &Global, mut last: i64) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(FOLLOW).await;
        let filter = OperationFilter {
            after: Some(last),
            ..OperationFilter::default()
        };
        for operation in session.operations(&filter, PAGE)? {
            last = operation.seq;
            out::print(&line(&operation, global));
        }
    }
}

fn verify(session: &Session, global: &Global, head: Option<&str>) -> anyhow::Result<ExitCode> {
    let head = head.map(parse_head).transpose()?;
    let verified = session.verify(head.as_ref())?;
    if global.json {
        out::print_json(&json!(verified));
    } else {
        match &verified.broken {
            None => out::print(&format!(
                "{} rows hold together; the head is {}:{}",
                verified.rows, verified.head.seq, verified.head.hash
            )),
            Some(broken) => out::print(&format!("row {}: {}", broken.seq, broken.what)),
        }
    }
    Ok(if verified.broken.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn parse_head(text: &str) -> anyhow::Result<Head> {
    let (seq, hash) = text.split_once(':').context("a head is SEQ:HASH")?;
    Ok(Head {
        seq: seq.parse().context("a head is SEQ:HASH")?,
        hash: hash.to_owned(),
    })
}

fn export(session: &Session) -> anyhow::Result<()> {
    let mut filter = OperationFilter {
        after: Some(0),
        ..OperationFilter::default()
    };
    loop {
        let page = session.operations(&filter, PAGE)?;
        for operation in &page {
            out::print(&json!(operation).to_string());
        }
        let Some(last) = page.last() else {
            break;
        };
        filter.after = Some(last.seq);
    }
    out::print(&json!({ "head": session.head()? }).to_string());
    Ok(())
}

fn print(operations: &[StoredOperation], global: &Global) {
    if global.json {
        operations
            .iter()
            .for_each(|operation| out::print(&line(operation, global)));
        return;
    }
    let rows: Vec<Vec<String>> = operations.iter().map(cells).collect();
    out::print(&out::table(
        &["SEQ", "TIME", "TOOL", "ACTOR", "OUTCOME", "MS", "ENVELOPE"],
        &rows,
    ));
}

fn line(operation: &StoredOperation, global: &Global) -> String {
    if global.json {
        json!(operation).to_string()
    } else {
        cells(operation).join("  ")
    }
}

fn cells(operation: &StoredOperation) -> Vec<String> {
    let outcome = match (operation.success, &operation.error_code) {
        (Some(true), _) => "ok",
        (Some(false), Some(code)) => code,
        (Some(false), None) => "failed",
        (None, _) => "unknown",
    };
    vec![
        operation.seq.to_string(),
        operation.timestamp.clone(),
        operation.tool.clone(),
        operation.actor.clone().unwrap_or_default(),
        outcome.to_owned(),
        format!("{:.3}", operation.duration_ms),
        operation.envelope_id.clone().unwrap_or_default(),
    ]
}
