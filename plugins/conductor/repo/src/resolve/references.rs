//! Uses of files that are no imports: names and paths in settings, scripts and strings.
//!
//! A reference keeps its file in use, but is no edge of the import graph.

use super::{Index, Resolution, Resolvers, java, python};
use crate::language::{self, Language};
use crate::path;

/// Files that a file refers to, in no order.
pub(super) fn of(index: &Index<'_>, resolvers: &Resolvers<'_>, file: usize) -> Vec<usize> {
    let Some(facts) = index.facts(file) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for name in &facts.names {
        found.extend(named(&resolvers.python, &resolvers.java, index, file, name));
    }
    if launches(index.path(file)) {
        let directory = path::parent(index.path(file));
        found.extend(
            facts
                .mentions
                .iter()
                .filter_map(|word| at(index, directory, word)),
        );
    }
    found.retain(|found| *found != file);
    found
}

/// Files of a dotted name: a module of Python, or a class of Java.
fn named(
    python: &python::Roots<'_>,
    java: &java::Packages<'_>,
    index: &Index<'_>,
    file: usize,
    name: &str,
) -> Vec<usize> {
    let is_java = index.language(file) == Some(Language::Java);
    let mut found = if is_java {
        Vec::new()
    } else {
        python.named(file, name)
    };
    if found.is_empty()
        && let Resolution::Files(files) = java.resolve(name, false)
    {
        found = files;
    }
    found
}

/// Checks whether the paths in a file are those of files that are run or read: settings, scripts, pages. Prose
/// and lists of what to ignore are not.
fn launches(path: &str) -> bool {
    let name = path::name(path);
    if language::is_settings(name) {
        return true;
    }
    let is_prose = matches!(path::extension(name), "md" | "rst" | "txt" | "adoc" | "org");
    let lists = name.ends_with("ignore") || name.ends_with("ignore-revs") || name == "CODEOWNERS";
    Language::of(path).is_none() && !is_prose && !lists && !language::is_generated(name)
}

/// File of a path as written: from the directory of the file or from one above it.
fn at(index: &Index<'_>, directory: &str, word: &str) -> Option<usize> {
    let word = word.trim_start_matches('/');
    let above = path::with_ancestors(directory);
    above
        .into_iter()
        .find_map(|directory| index.find(&path::join(directory, word)?))
}
