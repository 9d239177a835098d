//! Answers that the repository and its workspace suggest, so that a planner confirms them instead of asking.

use std::collections::BTreeMap;

use conductor_repo::path;
use tollgate_sdk::{Cx, Db, DbError};

use crate::interview::Interview;
use crate::repo::knowledge::Knowledge;
use crate::store::job::Job;
use crate::store::{snapshot, workspace};
use crate::workspaces;

/// Maximum entries of a suggestion.
const ENTRIES: usize = 10;
/// Maximum number of files for which a map is built to suggest entry points.
const FILES: u32 = 3_000;

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
    let small = taken.as_ref().is_some_and(|taken| taken.files <= FILES);
    for question in &mut interview.questions {
        let mut found = match question.key {
            "repo_root" => cx.workspaces(),
            "key_files" => key_files.to_vec(),
            "entrypoints" if small => entry_points(db, job)?,
            "target_environment" => environment(key_files),
            "tests_expected" => tests
                .iter()
                .map(|test| format!("the registered test passes: {test}"))
                .collect(),
            "invariants" => INVARIANTS.iter().map(|&text| text.to_owned()).collect(),
            _ => Vec::new(),
        };
        found.truncate(ENTRIES);
        question.suggestion = found;
    }
    Ok(())
}

/// Files in which programs start, according to the map.
fn entry_points(db: &Db<'_>, job: &Job) -> Result<Vec<String>, DbError> {
    let Some(knowledge) = Knowledge::find(db, &job.id)? else {
        return Ok(Vec::new());
    };
    let mut files: Vec<String> = Vec::new();
    for entry in knowledge.map().entry_points {
        if let Some(file) = entry.file.filter(|file| !files.contains(file)) {
            files.push(file);
        }
    }
    Ok(files)
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
