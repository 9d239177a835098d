//! One line about each file: which files need one, and which lines are good.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::language::Role;
use crate::path;
use crate::snapshot::{Content, Diff, FileRecord, Snapshot};

/// Descriptions by path.
pub type Descriptions = BTreeMap<String, String>;

/// Characters of one description.
pub const MAX_DESCRIPTION: usize = 200;

/// Which files lack a description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undescribed {
    /// Files that came since the first snapshot, by path.
    pub new: Vec<String>,
    /// Files that were there before, by path.
    pub old: Vec<String>,
    /// Descriptions of files that are gone.
    pub orphans: Vec<String>,
}

/// The files that need a description and have none. `is_new` says of a file, by its place in the
/// snapshot, whether it came since the first one.
pub fn undescribed(
    snapshot: &Snapshot,
    descriptions: &Descriptions,
    is_new: impl Fn(usize) -> bool,
) -> Undescribed {
    let mut found = Undescribed::default();
    for (place, file) in snapshot.files.iter().enumerate() {
        if !lacks(file, descriptions) {
            continue;
        }
        if is_new(place) {
            &mut found.new
        } else {
            &mut found.old
        }
        .push(file.path.clone());
    }
    let is_gone = |path: &&String| snapshot.file(path).is_none();
    found.orphans = descriptions.keys().filter(is_gone).cloned().collect();
    found
}

/// Whether a file needs a description and has none.
pub fn lacks(file: &FileRecord, descriptions: &Descriptions) -> bool {
    let is_text = matches!(file.content, Content::Text { .. });
    is_text && needs_one(&file.path) && !descriptions.contains_key(&file.path)
}

/// Moves descriptions along with their files.
pub fn follow_renames(descriptions: &mut Descriptions, diff: &Diff) {
    for rename in &diff.renamed {
        if let Some(text) = descriptions.remove(&rename.from) {
            descriptions.entry(rename.to.clone()).or_insert(text);
        }
    }
}

/// What people and programs write by hand needs a word; locks, data of tests and pictures do not.
fn needs_one(path: &str) -> bool {
    match Role::of(path) {
        Role::Source | Role::Script | Role::Docs => !path::name(path).starts_with("LICEN"),
        Role::Test => crate::language::Language::of(path).is_some(),
        Role::Manifest | Role::Generated | Role::Config | Role::Asset => false,
    }
}

/// What is wrong with a description.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// No file of the snapshot has this path.
    #[error("{} is not in the snapshot", path::show(path))]
    UnknownFile {
        /// The path as given.
        path: String,
        /// A file of the same name, if there is only one.
        #[serde(skip_serializing_if = "Option::is_none")]
        meant: Option<String>,
    },
    /// Nothing is said.
    #[error("the description of {} is empty", path::show(path))]
    Empty {
        /// The file.
        path: String,
    },
    /// More than one line.
    #[error("the description of {} has more than one line", path::show(path))]
    Lines {
        /// The file.
        path: String,
    },
    /// Longer than [`MAX_DESCRIPTION`].
    #[error(
        "the description of {} has {length} characters; at most {MAX_DESCRIPTION} are kept",
        path::show(path)
    )]
    TooLong {
        /// The file.
        path: String,
        /// How long it is.
        length: usize,
    },
    /// It says no more than the name.
    #[error("the description of {} only repeats its name", path::show(path))]
    OnlyTheName {
        /// The file.
        path: String,
    },
}

/// Everything that is wrong with some descriptions, by path.
pub fn check(snapshot: &Snapshot, descriptions: &Descriptions) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in descriptions {
        let of = || path.clone();
        if snapshot.file(path).is_none() {
            let meant = same_name(snapshot, path);
            faults.push(Fault::UnknownFile { path: of(), meant });
        }
        let said = text.trim();
        let length = said.chars().count();
        if said.is_empty() {
            faults.push(Fault::Empty { path: of() });
        } else if said.eq_ignore_ascii_case(path::name(path)) || said.eq_ignore_ascii_case(path::stem(path)) {
            faults.push(Fault::OnlyTheName { path: of() });
        }
        if said.contains(['\n', '\r']) {
            faults.push(Fault::Lines { path: of() });
        }
        if length > MAX_DESCRIPTION {
            faults.push(Fault::TooLong { path: of(), length });
        }
    }
    faults
}

fn same_name(snapshot: &Snapshot, path: &str) -> Option<String> {
    let mut same = snapshot
        .files
        .iter()
        .filter(|file| path::name(&file.path) == path::name(path));
    let first = same.next()?;
    same.next().is_none().then(|| first.path.clone())
}
