//! The projector: writes to workspaces what `write` calls wanted there, after their commit and in its
//! order, off the writer's thread and before the reply leaves.

use std::collections::BTreeSet;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use serde_json::Value;
use tokio::sync::oneshot;
use tollgate_components::catalog::Body;
use tollgate_sdk::stale;
use tollgate_store::liveness::{Host, Projection};

use super::ended::Ended;
use super::guest_call::GuestCall;
use super::judged::Waiting;
use super::reply::Reply;
use super::settled::Settled;

/// Queued work.
pub(super) enum Work {
    /// A committed call with files, and who waits for it.
    Files {
        guest: Box<GuestCall>,
        settled: Box<Settled>,
        reply: Waiting,
    },
    /// Tell when everything before is done.
    Flush(oneshot::Sender<()>),
}

/// Starts the projector. It ends when nobody can send it work any more.
pub(super) fn start() -> (Sender<Work>, JoinHandle<()>) {
    let (sender, work) = crossbeam_channel::unbounded();
    let thread = std::thread::Builder::new()
        .name("projector".to_owned())
        .spawn(move || project(&work))
        .expect("a thread can be started");
    (sender, thread)
}

fn project(work: &Receiver<Work>) {
    while let Ok(work) = work.recv() {
        match work {
            Work::Files {
                guest,
                mut settled,
                reply,
            } => {
                apply(&guest, &mut settled);
                reply.tell(*settled);
            }
            Work::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// Notes where a call's files will be, before the commit they follow: if this process is killed in
/// between, the next one has the pack write them.
pub(super) fn announce(host: &Host, guest: &GuestCall, ended: &Ended) {
    let (Body::Guest(pack), Ok(reply)) = (&guest.body, &ended.result) else {
        return;
    };
    if pack.manifest.render_tool.is_none() {
        return;
    }
    let workspaces: BTreeSet<&str> = reply
        .deferred_writes
        .iter()
        .map(|held| held.workspace.info.name.as_str())
        .collect();
    for workspace in workspaces {
        let projection = Projection {
            pack: pack.manifest.name.clone(),
            workspace: workspace.to_owned(),
        };
        if let Err(err) = host.note(projection) {
            tracing::warn!(%err, workspace, "if this process is killed, files may stay stale");
        }
    }
}

/// Writes a call's files. What cannot be written makes the reply stale, not the call a failure: its
/// rows are committed.
fn apply(guest: &GuestCall, settled: &mut Settled) {
    let Ok(reply) = &mut settled.result else { return };
    for held in reply.deferred_writes.iter() {
        if let Err(err) = held.workspace.tree.apply(&held.change) {
            let name = &held.workspace.info.name;
            tracing::warn!(workspace = name, path = held.change.path, %err, "a file is stale");
            settled.stale.push(format!("workspace {name}: {err}"));
        }
    }
    if !settled.stale.is_empty() {
        tell(guest, reply, &settled.stale);
    }
}

/// Says in the reply itself that files are stale, where its schema has a place for it.
fn tell(guest: &GuestCall, reply: &mut Reply, reasons: &[String]) {
    let Body::Guest(pack) = &guest.body else { return };
    let Some(spec) = pack.manifest.tools.iter().find(|tool| tool.name == guest.tool) else {
        return;
    };
    let schema = Value::Object(spec.output_schema.clone());
    let mut structured = reply.structured();
    if stale::mark(&mut structured, &schema, reasons) {
        reply.json = Value::Object(structured).to_string();
    }
    if let Some(text) = &mut reply.text {
        text.push_str(&format!("\nStale files: {}", reasons.join("; ")));
    }
}
