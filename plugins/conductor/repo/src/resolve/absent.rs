//! Files that an import may name although they are not in the tree: the build makes them.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::javascript::is_output;
use super::{Index, python};
use crate::facts::{Import, What};
use crate::ignore::Rules;
use crate::language::Role;
use crate::manifest::Manifest;
use crate::path;

/// Endings of templates, from which a build makes a file of the same name without them.
const TEMPLATE_EXTENSIONS: [&str; 5] = [".in", ".cmake", ".tmpl", ".template", ".erb"];

/// Knowledge about files that are made rather than kept.
pub(crate) struct Absent<'a> {
    index: &'a Index<'a>,
    rules: Rules,
    /// Names of files that manifests and build scripts mention.
    mentioned: HashSet<&'a str, FixedState>,
    /// Names of files without the ending of a template, and of classes that a `.proto` becomes.
    made: HashSet<String, FixedState>,
}

impl<'a> Absent<'a> {
    pub(crate) fn new(index: &'a Index<'a>) -> Absent<'a> {
        let mut ignored: Vec<(&str, &str)> = Vec::new();
        for (file, manifest) in index.manifests() {
            if let Manifest::Ignored(found) = manifest {
                ignored.push((index.path(file), &found.rules));
            }
        }
        // Rules of inner directories override those of outer ones.
        ignored.sort_by_key(|(path, _)| (path.matches('/').count(), *path));
        let mut rules = Rules::above(index.above());
        for (path, text) in ignored {
            rules.enter(path, text.as_bytes());
        }
        let (mut mentioned, mut made) = (HashSet::default(), HashSet::default());
        for file in 0..index.len() {
            let name = path::name(index.path(file));
            if is_build_file(name, index.role(file)) {
                let mentions = index.facts(file).into_iter().flat_map(|facts| &facts.mentions);
                mentioned.extend(mentions.map(|word| path::name(word)));
            }
            let template = TEMPLATE_EXTENSIONS
                .iter()
                .find_map(|ending| name.strip_suffix(ending));
            made.extend(template.map(str::to_owned));
            if let Some(stem) = name.strip_suffix(".proto") {
                let class = camel(stem);
                made.extend([format!("{class}OuterClass"), format!("{class}Proto"), class]);
            }
        }
        Absent {
            index,
            rules,
            mentioned,
            made,
        }
    }

    /// Checks whether a file at a path, with or without its extension, is made by the build: ignored, below a
    /// directory of build output, or named in a build file.
    pub(crate) fn is_expected(&self, path: &str) -> bool {
        let name = path::name(path);
        let is_made = is_output(&path::below(path, "x")) && !self.index.has_directory(path::parent(path));
        is_made
            || (self.mentioned.contains(name) && name.contains('.'))
            || self.made.contains(name)
            || self.is_ignored(path)
    }

    fn is_ignored(&self, path: &str) -> bool {
        let above = path::ancestors(path).filter(|directory| !directory.is_empty());
        let is_excluded = |path: &str, is_directory| self.rules.excludes(path, is_directory);
        let endings = ["", ".ts", ".js", ".py", ".json", ".d.ts", ".rs", ".go"];
        is_excluded(path, true)
            || above.into_iter().any(|directory| is_excluded(directory, true))
            || endings
                .iter()
                .any(|ending| is_excluded(&format!("{path}{ending}"), false))
    }

    /// Checks whether the missing file of an import is made by the build. JavaScript's resolver asks by itself.
    pub(crate) fn explains(&self, file: usize, import: &Import, roots: &python::Roots<'_>) -> bool {
        let from = self.index.path(file);
        let directory = path::parent(from);
        let beside = |relative: &str| path::join(directory, relative);
        match &import.what {
            What::RustMod {
                name, file: named, ..
            } => {
                let own = named.clone().unwrap_or_else(|| format!("{name}.rs"));
                let inside = format!("{}/{name}.rs", path::stem(from));
                [own, inside]
                    .iter()
                    .filter_map(|path| beside(path))
                    .any(|path| self.is_expected(&path))
            }
            What::RustInclude { file: named, .. } => {
                beside(named).is_some_and(|path| self.is_expected(&path))
            }
            What::Python { module, level, names } => {
                let mut bases = roots.bases(file, module, *level).into_iter();
                bases.any(|base| {
                    let below = |name: &String| self.is_expected(&path::below(&base, name));
                    self.is_expected(&base) || self.names_module(&base) || names.iter().any(below)
                })
            }
            // The directory of the module is not part of its path.
            What::Go { path } => {
                let mut starts = path.match_indices('/').filter_map(|(at, _)| path.get(at + 1..));
                starts.any(|inside| self.is_expected(inside))
            }
            What::Java { path, .. } => path
                .split('.')
                .any(|part| self.made.contains(part) || matches!(part, "generated" | "jooq")),
            What::C { path, .. } => {
                self.is_expected(path) || beside(path).is_some_and(|path| self.is_expected(&path))
            }
            _ => false,
        }
    }

    /// Checks whether a build file mentions a Python module.
    fn names_module(&self, base: &str) -> bool {
        let name = format!("{}.py", path::name(base));
        self.mentioned.contains(name.as_str()) && !matches!(path::name(base), "__init__" | "setup" | "main")
    }
}

fn is_build_file(name: &str, role: Role) -> bool {
    let endings = [
        ".mk", ".cmake", ".am", ".ac", ".bazel", ".bzl", ".gn", ".gyp", ".gradle", ".ninja",
    ];
    let names = [
        "BUILD",
        "SConstruct",
        "SConscript",
        "justfile",
        "Rakefile",
        "Taskfile.yml",
        "wscript",
        "configure",
    ];
    matches!(role, Role::Manifest | Role::Script)
        || names.contains(&name)
        || endings.iter().any(|ending| name.ends_with(ending))
}

/// Name of the class that a compiler makes of a file: `user_data` becomes `UserData`.
fn camel(stem: &str) -> String {
    let parts = stem.split(['_', '-', '.']);
    let capital = |part: &str| {
        let mut chars = part.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    };
    parts.map(capital).collect()
}
