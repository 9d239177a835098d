//! Entry points: declared in manifests or recognised in files.

use serde::{Deserialize, Serialize};

use crate::language::{self, Language};
use crate::manifest::{Manifest, Npm};
use crate::path;
use crate::resolve::{Index, Resolution, Resolvers, module_at, source_of};
use crate::targets::{self, TargetKind};

/// Place where a program, or the use of a library, starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryPoint {
    /// Kind of the entry point.
    pub kind: EntryKind,
    /// Name of the program or library.
    pub name: String,
    /// File that it starts in; `None` if the file is not in the tree, such as a build product.
    pub file: Option<String>,
    /// Manifest that declares it, or the file itself.
    pub from: String,
}

/// Kind of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Program.
    Binary,
    /// Library that other packages import.
    Library,
    /// File that an interpreter runs.
    Script,
    /// Named command of a tool such as `make` or `npm run`.
    Command,
    /// Example program.
    Example,
    /// Test program.
    Test,
    /// Benchmark.
    Bench,
    /// Program that is part of the build.
    Build,
}

/// All entry points, by kind, name and file.
pub(crate) fn find(index: &Index<'_>, resolvers: &Resolvers<'_>) -> Vec<EntryPoint> {
    let mut found = Vec::new();
    for (file, manifest) in index.manifests() {
        let finding = Finding {
            index,
            from: index.path(file),
            found: &mut found,
        };
        finding.manifest(file, manifest, resolvers);
    }
    for file in 0..index.len() {
        found.extend(of_file(index, file));
    }
    found.sort();
    found.dedup_by(|a, b| a.file.is_some() && a.file == b.file && a.kind == b.kind);
    found
}

/// Checks whether tools find a file without an import: tests, and settings that are programs.
pub(crate) fn is_found_by_tools(path: &str) -> bool {
    let (name, stem) = (path::name(path), path::stem(path));
    language::is_test(path)
        || language::is_manifest(name)
        || language::is_settings(name)
        || stem.ends_with(".conf")
        || path
            .split('/')
            .any(|part| part.starts_with('.') && part.len() > 1)
        || matches!(
            name,
            "noxfile.py"
                | "tasks.py"
                | "manage.py"
                | "__main__.py"
                | "wsgi.py"
                | "asgi.py"
                | "fabfile.py"
                | "dodo.py"
        )
        || matches!(
            name,
            "versioneer.py" | "pavement.py" | "locustfile.py" | "sitecustomize.py" | "SConstruct"
        )
        || matches!(name, "package-info.java" | "module-info.java" | "doc.go")
        || matches!(stem, "gulpfile" | "Gruntfile" | "webpack.mix")
        || [".d.ts", ".d.mts", ".d.cts"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Checks whether a program needs nothing that names it: tools know its name, or people start what is in its directory.
pub fn is_conventional(path: &str) -> bool {
    is_found_by_tools(path) || is_in_started(path)
}

/// Directories of examples.
pub(crate) const EXAMPLE_FOLDERS: [&str; 6] = ["example", "examples", "sample", "samples", "demo", "demos"];

/// Directories besides examples of programs that people start: an interpreter needs no declaration of them.
const STARTED_FOLDERS: [&str; 10] = [
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "scripts",
    "bin",
    "docs",
    "notebooks",
    "public",
    "static",
];

/// Checks whether people or browsers start a file: one in a directory of scripts, examples or static files.
pub(crate) fn is_started_by_people(index: &Index<'_>, file: usize) -> bool {
    let is_interpreted = matches!(
        index.language(file),
        Some(Language::Python | Language::JavaScript)
    );
    is_interpreted && is_in_started(index.path(file))
}

fn is_in_started(path: &str) -> bool {
    path::is_below_any(path, &EXAMPLE_FOLDERS) || path::is_below_any(path, &STARTED_FOLDERS)
}

struct Finding<'a, 'f> {
    index: &'a Index<'a>,
    from: &'a str,
    found: &'f mut Vec<EntryPoint>,
}

impl Finding<'_, '_> {
    fn manifest(mut self, file: usize, manifest: &Manifest, resolvers: &Resolvers<'_>) {
        let directory = path::parent(self.from);
        match manifest {
            Manifest::Cargo(cargo) => {
                for target in targets::cargo(self.index, directory, cargo) {
                    self.push(kind(target.kind), &target.name, Some(target.file));
                }
            }
            Manifest::Npm(npm) => self.npm(directory, npm),
            Manifest::Python(project) => {
                for (name, target) in &project.scripts {
                    let module = target.split([':', ' ', '[']).next().unwrap_or_default();
                    let start = match resolvers.python_module(file, module) {
                        Resolution::Files(files) => files.first().copied(),
                        _ => None,
                    };
                    self.push(EntryKind::Binary, name, start);
                }
            }
            Manifest::Make(make) => make
                .targets
                .iter()
                .for_each(|name| self.push(EntryKind::Command, name, None)),
            Manifest::Maven(maven) => {
                for class in &maven.main_classes {
                    let start = match resolvers.java_type(class) {
                        Resolution::Files(files) => files.first().copied(),
                        _ => None,
                    };
                    self.push(EntryKind::Binary, class, start);
                }
            }
            Manifest::TsConfig(_) | Manifest::Go(_) | Manifest::Ignored(_) | Manifest::Settings(_) => {}
        }
    }

    fn npm(&mut self, directory: &str, npm: &Npm) {
        let mut has_file = false;
        for (field, target) in &npm.entries {
            let kind = if field == "bin" {
                EntryKind::Binary
            } else {
                EntryKind::Library
            };
            let file = source_of(self.index, directory, target);
            has_file |= file.is_some();
            let name = npm.name.as_deref().unwrap_or(target);
            self.push(kind, name, file);
        }
        for (name, command) in &npm.scripts {
            self.push(EntryKind::Command, name, None);
            for word in command.split([' ', '\t', '"', '\'', ';', '&', '=', '(', ')']) {
                if let Some(file) = self.script(directory, word) {
                    has_file |= !language::is_settings(path::name(self.index.path(file)));
                    self.push(EntryKind::Script, name, Some(file));
                }
            }
        }
        if !has_file {
            self.implied(directory, npm);
        }
    }

    /// Program that a word of a command names: its path, or that of what is built from it.
    fn script(&self, directory: &str, word: &str) -> Option<usize> {
        let is_path = word.contains('/') || Language::of(word).is_some();
        let is_option = word.starts_with('-') || word.contains(['*', '$', ':']);
        if !is_path || is_option || word.starts_with('/') {
            return None;
        }
        let found = source_of(self.index, directory, word)?;
        self.index.language(found).map(|_| found)
    }

    /// Entry of a package that names none: Node takes `index`, and a source is often in `src/`.
    fn implied(&mut self, directory: &str, npm: &Npm) {
        let places =
            ["index", "src/index", "src/main", "lib/index"].map(|place| path::below(directory, place));
        if let Some(found) = places.iter().find_map(|place| module_at(self.index, place)) {
            let name = npm.name.as_deref().unwrap_or("index");
            self.push(EntryKind::Library, name, Some(found));
        }
    }

    fn push(&mut self, kind: EntryKind, name: &str, file: Option<usize>) {
        self.found.push(EntryPoint {
            kind,
            name: name.to_owned(),
            file: file.map(|file| self.index.path(file).to_owned()),
            from: self.from.to_owned(),
        });
    }
}

/// Entry point of a file that can be run by itself. Those of Rust come from manifests.
fn of_file(index: &Index<'_>, file: usize) -> Option<EntryPoint> {
    let path = index.path(file);
    let runs = index.facts(file)?.runs || path::name(path) == "__main__.py";
    if !runs {
        return None;
    }
    let kind = match index.language(file) {
        Some(Language::Rust) => return None,
        Some(Language::Python | Language::JavaScript) | None => EntryKind::Script,
        Some(Language::Go | Language::Java | Language::C) => EntryKind::Binary,
    };
    let name = match index.language(file) {
        Some(Language::Go) => path::name(path::parent(path)),
        _ => path::stem(path),
    };
    (!language::is_test(path)).then(|| EntryPoint {
        kind,
        name: if name.is_empty() { "main" } else { name }.to_owned(),
        file: Some(path.to_owned()),
        from: path.to_owned(),
    })
}

fn kind(kind: TargetKind) -> EntryKind {
    match kind {
        TargetKind::Library => EntryKind::Library,
        TargetKind::Binary => EntryKind::Binary,
        TargetKind::Example => EntryKind::Example,
        TargetKind::Test => EntryKind::Test,
        TargetKind::Bench => EntryKind::Bench,
        TargetKind::Build => EntryKind::Build,
    }
}
