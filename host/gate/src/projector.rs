//! The projector: writes the files that `write` calls requested to workspaces, after their commit and in commit
//! order, off the writer's thread and before the reply is sent.

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
use super::reader_outcome::Waiting;
use super::reply::Reply;
use super::settled::Settled;

/// Work of the projector.
pub(super) enum Work {
    /// A committed call with files, and the receiver of its outcome.
    Files {
        guest: Box<GuestCall>,
        settled: Box<Settled>,
        reply: Waiting,
    },
    /// Reports when all earlier work is done.
    Flush(oneshot::Sender<()>),
}

/// Starts the projector. It ends when no sender is left.
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
                reply.tell(settled);
            }
            Work::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// Records where a call's files will be written, before the commit that they follow. If this process is killed in
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
            tracing::warn!(%err, workspace, "cannot record which files are unwritten; if this process is killed, they may stay out of date");
        }
    }
}

/// Writes a call's files. A failed write marks the reply as stale, but the call does not fail, because its rows are
/// committed.
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

/// Marks the reply as stale, if its schema has a field for that.
fn tell(guest: &GuestCall, reply: &mut Reply, reasons: &[String]) {
    let Body::Guest(pack) = &guest.body else { return };
    let Some(spec) = pack.manifest.tools.iter().find(|tool| tool.name == guest.tool) else {
        return;
    };
    let schema = Value::Object(spec.output_schema.as_ref().clone());
    let mut structured = reply.structured();
    if stale::mark(&mut structured, &schema, reasons) {
        reply.json = Value::Object(structured).to_string();
    }
    if let Some(text) = &mut reply.text {
        text.push_str(&format!("\nStale files: {}", reasons.join("; ")));
    }
}
