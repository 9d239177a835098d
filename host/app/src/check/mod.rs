//! Check of a component: its manifest, its tools and a call of each, in temporary directories.

mod arbitrary;
mod engines;
mod pack;
mod policy;
mod report;
mod resources;
mod scratch;
mod validate;
mod workspaces;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tollgate_components::catalog::{self, Inspection, Said};
use tollgate_components::grants::Grants;
use tollgate_core::deadline::{Cancel, Deadline};

use crate::host::Authority;

use scratch::ScratchHost;

pub use report::{Called, Finding, Report};

/// Subject of a finding while the name is unknown.
const UNNAMED_COMPONENT: &str = "the component";
/// Time for a check to end after its time limit.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// A component to check.
#[derive(Debug)]
pub struct Subject {
    /// Bytes of the component.
    pub bytes: Vec<u8>,
    /// Settings of the component. Generated if `None`.
    pub config: Option<Map<String, Value>>,
    /// True if the component may run the programs that it requests.
    pub programs: bool,
    /// Directories to copy into the check, by the name of the workspace.
    pub workspaces: Vec<(String, PathBuf)>,
    /// Time limit of the whole check.
    pub time: Duration,
}

/// Checks everything about a component that can be checked without its operator. The component is granted everything
/// that it requests, in an empty folder that the caller deletes. The check ends at its time limit, whatever the
/// component does.
pub async fn check(subject: Subject, folder: &Path, authority: Authority) -> anyhow::Result<Report> {
    let (time, folder) = (subject.time, folder.to_owned());
    let unfinished = catalog::anatomy_of(&subject.bytes);
    let (found, report) = oneshot::channel();
    // On a detached thread, because migrations and other work of the host can block it.
    std::thread::Builder::new()
        .name("check".to_owned())
        .spawn(move || drop(found.send(alone(subject, folder, authority))))
        .context("cannot start a thread")?;
    match tokio::time::timeout(time + END_TIMEOUT, report).await {
        Ok(report) => report.context("the host failed during the check")?,
        Err(_) => {
            let mut report = beginning(&unfinished);
            report.problem(too_long(UNNAMED_COMPONENT, time));
            Ok(report)
        }
    }
}

/// Runs the check on its own runtime.
fn alone(subject: Subject, folder: PathBuf, authority: Authority) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let cancel = Cancel::default();
    let (time, end) = (subject.time, cancel.clone());
    runtime.spawn(async move {
        tokio::time::sleep(time).await;
        end.cancel();
    });
    runtime.block_on(find_out(subject, &folder, authority, &cancel))
}

async fn find_out(
    subject: Subject,
    folder: &Path,
    authority: Authority,
    cancel: &Cancel,
) -> anyhow::Result<Report> {
    let deadline = Deadline::after(subject.time, cancel.clone());
    let umask = authority.umask;
    let host = ScratchHost::make(folder, &subject.bytes, authority, subject.programs)?;
    host.loader().end_by(deadline.end());
    let inspecting = Inspection::of(host.loader(), &subject.bytes);
    let Ok(inspection) = tokio::time::timeout(deadline.remaining(), inspecting).await else {
        let mut report = beginning(&catalog::anatomy_of(&subject.bytes));
        report.problem(too_long(UNNAMED_COMPONENT, subject.time));
        return Ok(report);
    };
    let mut report = beginning(&inspection);
    let mut grants = Grants::default();
    inspection.grant_all(&mut grants);
    let data = scratch::data(folder);
    let given = &subject.workspaces;
    let prepared = workspaces::prepare(&folder.join("workspaces"), &data, umask, given, &inspection)?;
    for (name, count) in &prepared.left_out {
        let why = format!("links and special files that were not copied: {count}");
        report.untried(Finding::new(&format!("workspace {name}"), why));
    }
    match &inspection.manifest {
        Some(Said::Pack(manifest)) => {
            pack::check(&host, manifest, grants, &subject, prepared, cancel, &mut report).await?;
        }
        Some(Said::Policy(manifest)) => {
            let config = subject.config.clone();
            policy::check(&host, manifest, grants, config, prepared, cancel, &mut report).await?;
        }
        None => report.problems_of(UNNAMED_COMPONENT, inspection.problems),
    }
    if cancel.is_cancelled() {
        report.problem(too_long(UNNAMED_COMPONENT, subject.time));
    }
    Ok(report)
}

/// Report of a component before any call.
fn beginning(inspection: &Inspection) -> Report {
    Report {
        sha256: inspection.sha256.clone(),
        bytes: inspection.bytes,
        kind: kind(inspection),
        ..Report::default()
    }
}

fn too_long(about: &str, time: Duration) -> Finding {
    let found = format!(
        "the check stopped after {} s, before everything was tested",
        time.as_secs()
    );
    Finding::new(about, found).remedy("find out what takes so long, or allow more time with --time")
}

/// Kind of a component, by its exports.
fn kind(inspection: &Inspection) -> Option<&'static str> {
    let exports = &inspection.anatomy.as_ref()?.exports;
    let kinds = [("pack", "pack"), ("judge", "policy")];
    let found = kinds
        .iter()
        .find(|(export, _)| exports.iter().any(|name| name == export));
    found.map(|(_, kind)| *kind)
}
