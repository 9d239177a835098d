//! Replies of the tools about a map.

use conductor_repo::entry::EntryPoint;
use conductor_repo::graph::Counts;
use conductor_repo::language::Language;
use conductor_repo::map::{Found, MapFile};
use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::NextCall;

use crate::model::{JobId, SnapshotId};

/// Summary of a map.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MapSummary {
    pub(super) job_id: JobId,
    /// Snapshot that the map is made of.
    pub(super) snapshot_id: SnapshotId,
    /// Number of files.
    pub(super) files: usize,
    /// Number of files read for this update.
    pub(super) read: u64,
    /// Import counts of each language.
    pub(super) languages: Vec<LanguageLine>,
    /// Entry points of programs, at most 50.
    pub(super) entry_points: Vec<EntryLine>,
    /// Total number of entry points.
    pub(super) entry_points_total: usize,
    /// Conventions that the repository follows.
    pub(super) conventions: Vec<String>,
    /// Imports whose file does not exist, at most 50, as path:line: import.
    pub(super) missing_imports: Vec<String>,
    /// Number of files that may be stale; repo_find_stale_candidates lists them.
    pub(super) stale_candidates: usize,
    /// Number of files without a description.
    pub(super) without_description: usize,
    /// Descriptions that were dropped because their file no longer exists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) dropped_descriptions: Vec<String>,
    /// Paths that could not be read, or only in part, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
    /// Other warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// Call that exports the map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_call: Option<NextCall>,
}

/// Import counts of one language.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LanguageLine {
    /// Name of the language.
    language: &'static str,
    /// Number of its files.
    files: usize,
    /// Imports that resolve to files of the repository.
    resolved: usize,
    /// Imports of something outside the repository.
    external: usize,
    /// Imports whose file should exist and does not.
    missing: usize,
    /// Imports that cannot be resolved.
    unknown: usize,
}

impl LanguageLine {
    pub(super) fn new(language: Language, counts: &Counts) -> LanguageLine {
        LanguageLine {
            language: language.name(),
            files: counts.files,
            resolved: counts.resolved,
            external: counts.external,
            missing: counts.missing,
            unknown: counts.unknown,
        }
    }
}

/// Place where a program, or the use of a library, starts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EntryLine {
    /// Kind, for example binary, library, command or test.
    kind: String,
    /// Name of the program or library.
    name: String,
    /// File that it starts in, if that is part of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// File that declares it.
    from: String,
}

impl EntryLine {
    pub(super) fn new(entry: &EntryPoint) -> EntryLine {
        EntryLine {
            kind: word(&entry.kind),
            name: entry.name.clone(),
            file: entry.file.clone(),
            from: entry.from.clone(),
        }
    }
}

/// A page of files of the map.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MapPage {
    /// Files, sorted by path.
    pub(super) files: Vec<FileLine>,
    /// Total number of matching files.
    pub(super) total: usize,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
    /// Number of files added or changed since the last update of the map; their imports are not known.
    pub(super) unread: usize,
}

/// A file of the map.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileLine {
    /// Path of the file.
    path: String,
    /// Purpose of the file, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Role of the file: source, test, manifest, generated, docs, config, script or asset.
    role: String,
    /// Programming language.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// Package of the file, or its first directory.
    owner: String,
    /// Size in bytes.
    size: u64,
    /// Number of files that it imports.
    imports: usize,
    /// Number of files that import it.
    imported_by: usize,
    /// Levels of imports between it and the file in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<usize>,
}

impl FileLine {
    pub(super) fn new(found: &Found<'_>) -> FileLine {
        let MapFile {
            path,
            description,
            role,
            language,
            owner,
            size,
            imports,
            imported_by,
        } = found.file.clone();
        FileLine {
            path,
            description,
            role: word(&role),
            language: language.map(Language::name),
            owner,
            size,
            imports,
            imported_by,
            distance: found.distance,
        }
    }
}

/// Name of an enum value as it is serialized.
pub(in crate::tools) fn word(kind: &impl Serialize) -> String {
    let written = serde_json::to_value(kind).unwrap_or_default();
    written.as_str().unwrap_or_default().to_owned()
}
