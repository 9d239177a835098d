//! Descriptions of files, one line each: the files that need one, and the checks of a line.

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

/// Files without a description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undescribed {
    /// Files added since the first snapshot, by path.
    pub new: Vec<String>,
    /// Older files, by path.
    pub old: Vec<String>,
    /// Descriptions of files that no longer exist.
    pub orphans: Vec<String>,
}

/// Files that need a description and have none. `is_new` tells, for the index of a file in the snapshot,
/// whether the file was added since the first one.
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

/// Checks whether a file needs a description and has none.
pub fn lacks(file: &FileRecord, descriptions: &Descriptions) -> bool {
    let is_text = matches!(file.content, Content::Text { .. });
    is_text && needs_one(&file.path) && !descriptions.contains_key(&file.path)
}

/// Moves the descriptions of renamed files.
pub fn follow_renames(descriptions: &mut Descriptions, diff: &Diff) {
    for rename in &diff.renamed {
        if let Some(text) = descriptions.remove(&rename.from) {
            descriptions.entry(rename.to.clone()).or_insert(text);
        }
    }
}

/// Checks whether a file needs a description: files that are edited by hand do; lock files, test data and
/// pictures do not.
fn needs_one(path: &str) -> bool {
    match Role::of(path) {
        Role::Source | Role::Script | Role::Docs => !path::name(path).starts_with("LICEN"),
        Role::Test => crate::language::Language::of(path).is_some(),
        Role::Manifest | Role::Generated | Role::Config | Role::Asset => false,
    }
}

/// An error in a description.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// No file of the snapshot has this path.
    #[error("{} is not in the snapshot", path::show(path))]
    UnknownFile {
        /// The path as given.
        path: String,
        /// File of the same name, if there is only one.
        #[serde(skip_serializing_if = "Option::is_none")]
        meant: Option<String>,
    },
    /// Empty description.
    #[error("the description of {} is empty", path::show(path))]
    Empty {
        /// Path of the file.
        path: String,
    },
    /// More than one line.
    #[error("the description of {} has more than one line", path::show(path))]
    Lines {
        /// Path of the file.
        path: String,
    },
    /// Longer than [`MAX_DESCRIPTION`].
    #[error(
        "the description of {} has {length} characters; at most {MAX_DESCRIPTION} are allowed",
        path::show(path)
    )]
    TooLong {
        /// Path of the file.
        path: String,
        /// Length in characters.
        length: usize,
    },
    /// Description that only repeats the name.
    #[error("the description of {} only repeats its name", path::show(path))]
    OnlyTheName {
        /// Path of the file.
        path: String,
    },
}

/// All errors in the given descriptions, by path.
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
