//! Whether a component does what it says: its surface, and a call of everything, in a place that is thrown
//! away.

mod answer;
mod made_up;
mod pack;
mod place;
mod policy;
mod report;

use std::path::Path;

use serde_json::{Map, Value};

use crate::host::Authority;
use crate::packs::{Grants, Inspection, Said};
use place::Place;

pub use report::{Called, Finding, Report};

/// What a finding is about as long as no name is known.
const ITSELF: &str = "the component";

/// A component that is to be checked.
#[derive(Debug)]
pub struct Subject<'a> {
    /// It.
    pub bytes: &'a [u8],
    /// Its settings; made up if there are none.
    pub config: Option<Map<String, Value>>,
    /// Whether it may run the programs that it asks for.
    pub programs: bool,
}

/// Finds out everything about a component that can be found out without its operator. It is granted what it
/// asks for, in an empty folder that the caller throws away.
pub async fn check(subject: Subject<'_>, folder: &Path, authority: Authority) -> anyhow::Result<Report> {
    let place = Place::make(folder, subject.bytes, authority, subject.programs)?;
    let inspection = place.loader().inspect(subject.bytes).await;
    let mut report = Report {
        sha256: inspection.sha256.clone(),
        bytes: inspection.bytes,
        kind: kind(&inspection),
        ..Report::default()
    };
    let mut grants = Grants::default();
    inspection.grant_all(&mut grants);
    let config = subject.config;
    match &inspection.manifest {
        Some(Said::Pack(manifest)) => pack::check(&place, manifest, grants, config, &mut report).await?,
        Some(Said::Policy(manifest)) => policy::check(&place, manifest, grants, config, &mut report).await?,
        None => report.problems_of(ITSELF, inspection.problems),
    }
    Ok(report)
}

/// What it is by what it exports.
fn kind(inspection: &Inspection) -> Option<&'static str> {
    let exports = &inspection.anatomy.as_ref()?.exports;
    let kinds = [("pack", "pack"), ("judge", "policy")];
    let found = kinds
        .iter()
        .find(|(export, _)| exports.iter().any(|name| name == export));
    found.map(|(_, kind)| *kind)
}
