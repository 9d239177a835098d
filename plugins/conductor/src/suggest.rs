//! Answers that the repository and its workspace suggest, so that a planner confirms them instead of asking.

use std::collections::BTreeMap;

use conductor_repo::language::Role;
use conductor_repo::map::{MapFile, RepoMap};
use conductor_repo::path;
use tollgate_sdk::{Cx, Db, DbError};

use crate::interview::Interview;
use crate::repo::knowledge::Knowledge;
use crate::store::job::Job;
use crate::store::{snapshot, workspace};
use crate::workspaces;

/// Maximum entries of a suggestion.
const MAX_ENTRIES: usize = 10;
/// Maximum introductions and manifests, and maximum entry points, among the files to read first.
const MAX_INTRODUCTIONS: usize = 4;
const MAX_ENTRY_POINTS: usize = 3;
/// Maximum number of files for which a map is built to suggest entry points.
const MAX_MAPPED_FILES: u32 = 3_000;

/// Invariants that most jobs want, offered to choose from.
pub(crate) const INVARIANTS: &[&str] = &[
    "Patch files; never overwrite a whole file.",
    "Add no dependency without approval.",
    "Do not change or remove existing tests.",
    "Change no public interface without its documentation and tests.",
    "Add a test for every fixed bug.",
    "Keep results deterministic.",
];

/// Manifests and the languages that they stand for.
const LANGUAGES: &[(&str, &str)] = &[
    ("Cargo.toml", "Rust"),
    ("pyproject.toml", "Python"),
    ("setup.py", "Python"),
    ("requirements.txt", "Python"),
    ("package.json", "JavaScript or TypeScript"),
    ("go.mod", "Go"),
    ("pom.xml", "Java"),
    ("build.gradle", "Java"),
    ("CMakeLists.txt", "C or C++"),
];

/// Adds suggestions to the open questions of a job.
pub(crate) fn add(cx: &Cx<'_>, db: &Db<'_>, job: &Job, interview: &mut Interview) -> Result<(), DbError> {
    let taken = snapshot::latest(db, &job.id)?;
    let line = workspaces::of(cx, job.repo_root.as_deref(), &workspace::paths(db)?);
    let tests = line.map(|line| line.tests).unwrap_or_default();
    let key_files: &[String] = taken.as_ref().map_or(&[], |taken| &taken.key_files);
    let small = taken
        .as_ref()
        .is_some_and(|taken| taken.files <= MAX_MAPPED_FILES);
    let is_asked = |key| interview.questions.iter().any(|question| question.key == key);
    let known = match small && (is_asked("key_files") || is_asked("entrypoints")) {
        true => Knowledge::find(db, &job.id)?,
        false => None,
    };
    let map = known.map(|known| known.map());
    for question in &mut interview.questions {
        let mut found = match question.key {
            "repo_root" => cx.workspaces(),
            "key_files" => first_files(key_files, map.as_ref()),
            "entrypoints" => map.as_ref().map(entry_points).unwrap_or_default(),
            "target_environment" => environment(key_files),
            "tests_expected" => tests
                .iter()
                .map(|test| format!("the registered test passes: {test}"))
                .collect(),
            "invariants" => INVARIANTS.iter().map(|&text| text.to_owned()).collect(),
            _ => Vec::new(),
        };
        found.truncate(MAX_ENTRIES);
        question.suggestion = found;
    }
    Ok(())
}

/// Files to read first: introductions and manifests, then files in which programs start, then those that most others
/// import.
fn first_files(key_files: &[String], map: Option<&RepoMap>) -> Vec<String> {
    let introductions = key_files.iter().take(MAX_INTRODUCTIONS).cloned();
    let mut files: Vec<String> = introductions.collect();
    let Some(map) = map else {
        return files;
    };
    let sources = map.files.iter().filter(|file| file.role == Role::Source);
    let mut hubs: Vec<&MapFile> = sources.filter(|file| file.imported_by > 0).collect();
    hubs.sort_by(|one, other| {
        other
            .imported_by
            .cmp(&one.imported_by)
            .then_with(|| one.path.cmp(&other.path))
    });
    let hubs = hubs.into_iter().map(|file| file.path.clone());
    let mut add = |path: String| {
        if !files.contains(&path) {
            files.push(path);
        }
    };
    entry_points(map)
        .into_iter()
        .take(MAX_ENTRY_POINTS)
        .for_each(&mut add);
    hubs.take(MAX_ENTRIES).for_each(&mut add);
    files
}

/// Files in which programs start.
fn entry_points(map: &RepoMap) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for file in map.entry_points.iter().filter_map(|entry| entry.file.as_ref()) {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    files
}

/// Languages of the manifests, in one text.
fn environment(key_files: &[String]) -> Vec<String> {
    let languages: BTreeMap<&str, ()> = key_files
        .iter()
        .filter_map(|file| LANGUAGES.iter().find(|(name, _)| *name == path::name(file)))
        .map(|(_, language)| (*language, ()))
        .collect();
    let languages: Vec<&str> = languages.into_keys().collect();
    match languages.is_empty() {
        true => Vec::new(),
        false => vec![languages.join(", ")],
    }
}
