//! Runs the operator's program for each new request for approval.
//!
//! No call waits for the program. Requests are rows, and this task polls for those without a notification, whichever
//! host or command stored them. Each is announced once. If the program fails, the failure is logged.

use std::process::Stdio;
use std::sync::Weak;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tollgate_core::text;
use tollgate_gate::Gate;
use tollgate_sandbox::process::children;
use tollgate_sdk::Timestamp;
use tollgate_store::storage::StoredApproval;

/// Polling interval for new requests.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of one run of the program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of requests taken at a time.
const BATCH_APPROVALS: u32 = 10;
/// Maximum bytes of the program's standard error that are logged.
const MAX_ERRORS: u64 = 2_000;

/// Starts the notifications, which end with the gate.
pub fn start(program: Vec<String>, gate: Weak<Gate>) -> Option<JoinHandle<()>> {
    if program.is_empty() {
        return None;
    }
    Some(tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let Some(gate) = gate.upgrade() else { return };
            let unheard = gate.unheard_approvals(BATCH_APPROVALS).await;
            drop(gate);
            for asked in unheard {
                if let Err(err) = tell(&program, &asked).await {
                    let id = asked.approval.id.as_str();
                    tracing::error!(approval = id, "approvals.notify failed: {err:#}");
                }
            }
        }
    }))
}

/// A request in the form that the program reads.
fn described(asked: &StoredApproval) -> Value {
    let time = |ms: i64| Timestamp::from_ms(ms).to_string();
    json!({
        "approval_id": asked.approval.id,
        "title": asked.title,
        "component": asked.component,
        "detail": asked.detail,
        "requested_by": asked.approval.requested_by,
        "identity": asked.approval.requester,
        "tool": asked.by.tool,
        "op_id": asked.by.op_id,
        "envelope_id": asked.by.envelope_id,
        "asked_at": time(asked.approval.asked_at_ms),
        "until": asked.until_ms.map(time),
    })
}

/// Runs the program with one request on its standard input.
async fn tell(program: &[String], asked: &StoredApproval) -> anyhow::Result<()> {
    let (name, arguments) = program.split_first().context("approvals.notify is empty")?;
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env_remove("TOLLGATE_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let (mut child, _started) =
        children::start(|| command.spawn(), Child::id).with_context(|| format!("cannot start {name}"))?;
    let said = text::escape_json(&described(asked).to_string()).into_owned();
    let ended = tokio::time::timeout(PROGRAM_TIMEOUT, talk(&mut child, said + "\n")).await;
    let (status, errors) = ended
        .with_context(|| format!("{name} did not end within {} s", PROGRAM_TIMEOUT.as_secs()))?
        .with_context(|| format!("{name} failed"))?;
    ensure!(status.success(), "{name}: {status} {errors}");
    Ok(())
}

/// Writes the program's input and reads its standard error.
async fn talk(child: &mut Child, input: String) -> std::io::Result<(std::process::ExitStatus, String)> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let give = async move {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input still counts as notified.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let take = async move {
        let mut said = Vec::new();
        if let Some(stderr) = stderr {
            let mut first = stderr.take(MAX_ERRORS);
            first.read_to_end(&mut said).await?;
            // The rest is read and discarded, so that the program does not block.
            tokio::io::copy(&mut first.into_inner(), &mut tokio::io::sink()).await?;
        }
        Ok::<_, std::io::Error>(text::clean(String::from_utf8_lossy(&said).trim()))
    };
    let ((), said, status) = tokio::join!(give, take, child.wait());
    Ok((status?, said?))
}
