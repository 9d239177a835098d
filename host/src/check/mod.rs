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
use crate::packs::anatomy_of;
use place::Place;

pub use report::{Called, Finding, Report};

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
    let anatomy = anatomy_of(subject.bytes);
    let exports = anatomy.anatomy.as_ref().map(|anatomy| anatomy.exports.as_slice());
    let exports = |name: &str| exports.is_some_and(|exports| exports.iter().any(|export| export == name));
    let kind = ["pack", "judge"].into_iter().find(|export| exports(export));
    let mut report = Report {
        sha256: anatomy.sha256,
        bytes: anatomy.bytes,
        kind: kind.map(|export| if export == "judge" { "policy" } else { "pack" }),
        ..Report::default()
    };
    let place = Place::make(folder, subject.bytes, authority, subject.programs)?;
    match kind {
        Some("judge") => policy::check(&place, subject.config, &mut report).await?,
        _ => {
            let inspection = place.loader().inspect(subject.bytes).await;
            pack::check(&place, inspection, subject.config, &mut report).await?;
        }
    }
    Ok(report)
}
