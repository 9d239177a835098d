//! Libraries of JavaScript, Go and Java: what they publish is used outside of the tree.

use std::collections::{BTreeMap, BTreeSet};

use super::Run;
use crate::language::Language;
use crate::manifest::Manifest;
use crate::path;
use crate::resolve::{Index, sources_of};

/// Files that make a directory a module of Java.
const JAVA_MODULES: [&str; 3] = ["pom.xml", "build.gradle", "build.gradle.kts"];

/// Adds the public files of libraries: modules without a program.
pub(super) fn find(index: &Index<'_>, run: &mut Run) {
    npm(index, run);
    go(index, run);
    java(index, run);
}

/// Files that a package of JavaScript exports by a pattern.
fn npm(index: &Index<'_>, run: &mut Run) {
    for (file, manifest) in index.manifests() {
        let Manifest::Npm(npm) = manifest else {
            continue;
        };
        let directory = path::parent(index.path(file));
        let patterns = npm.patterns.iter();
        for found in patterns.flat_map(|pattern| sources_of(index, directory, pattern)) {
            if index.language(found) == Some(Language::JavaScript) {
                run.entry(found).or_insert("users of the library");
            }
        }
    }
}

/// A module of Go whose root is a package is a library. Only `internal` is not public.
fn go(index: &Index<'_>, run: &mut Run) {
    let modules: BTreeSet<&str> = (0..index.len())
        .map(|file| index.path(file))
        .filter(|path| path::name(path) == "go.mod")
        .map(path::parent)
        .collect();
    let is_package = |directory: &&str| {
        let mut files = index
            .in_directory(directory)
            .iter()
            .filter(|file| !index.path(**file).ends_with("_test.go"));
        files.any(|file| {
            let facts = index
                .facts(*file)
                .filter(|_| index.language(*file) == Some(Language::Go));
            facts.is_some_and(|facts| !facts.runs && facts.package.is_some())
        })
    };
    let libraries: BTreeSet<&str> = modules.iter().copied().filter(is_package).collect();
    if libraries.is_empty() {
        return;
    }
    for file in (0..index.len()).filter(|file| index.language(*file) == Some(Language::Go)) {
        let path = index.path(file);
        let module = path::ancestors(path).find(|directory| modules.contains(directory));
        let is_public = !path::parent(path).split('/').any(|part| part == "internal");
        if is_public && module.is_some_and(|at| libraries.contains(at)) {
            run.entry(file).or_insert("users of the library");
        }
    }
}

/// A module of Java without a program is a library.
fn java(index: &Index<'_>, run: &mut Run) {
    let modules: BTreeSet<&str> = (0..index.len())
        .map(|file| index.path(file))
        .filter(|path| JAVA_MODULES.contains(&path::name(path)))
        .map(path::parent)
        .collect();
    let module = |path: &str| {
        path::ancestors(path)
            .find(|directory| modules.contains(directory))
            .map(str::to_owned)
    };
    let java: Vec<usize> = (0..index.len())
        .filter(|file| index.language(*file) == Some(Language::Java))
        .collect();
    let mut programs: BTreeMap<Option<String>, bool> = BTreeMap::new();
    for file in &java {
        let starts = index
            .facts(*file)
            .is_some_and(|facts| facts.runs || facts.registers);
        *programs.entry(module(index.path(*file))).or_default() |= starts;
    }
    for file in java {
        if programs.get(&module(index.path(file))) == Some(&false) {
            run.entry(file).or_insert("users of the library");
        }
    }
}
