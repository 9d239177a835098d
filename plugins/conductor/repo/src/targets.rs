//! Cargo's targets of a package: explicit ones and those discovered in its folders.

use crate::manifest::Cargo;
use crate::path;
use crate::resolve::Index;

/// A kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Library,
    Binary,
    Example,
    Test,
    Bench,
    Build,
}

/// Root of one crate.
pub(crate) struct CargoTarget {
    pub(crate) kind: TargetKind,
    pub(crate) name: String,
    pub(crate) file: usize,
}

const TARGET_FOLDERS: [(TargetKind, &str, &str); 4] = [
    (TargetKind::Binary, "bin", "src/bin"),
    (TargetKind::Example, "example", "examples"),
    (TargetKind::Test, "test", "tests"),
    (TargetKind::Bench, "bench", "benches"),
];

/// Targets of the package in a directory, each file once.
pub(crate) fn cargo(index: &Index<'_>, directory: &str, cargo: &Cargo) -> Vec<CargoTarget> {
    let package = cargo.package.as_deref().unwrap_or_default();
    let library = cargo.library.as_ref();
    let mut wanted = Vec::new();
    let library_path = library
        .and_then(|library| library.path.as_deref())
        .unwrap_or("src/lib.rs");
    let library_name = library
        .and_then(|library| library.name.as_deref())
        .unwrap_or(package);
    wanted.push((
        TargetKind::Library,
        library_name.to_owned(),
        library_path.to_owned(),
    ));
    wanted.push((
        TargetKind::Build,
        package.to_owned(),
        cargo.build.clone().unwrap_or("build.rs".to_owned()),
    ));
    for (kind, key, folder) in TARGET_FOLDERS {
        for target in cargo.targets.get(key).into_iter().flatten() {
            let name = target.name.clone().unwrap_or_default();
            let guesses = [
                format!("{folder}/{name}.rs"),
                format!("{folder}/{name}/main.rs"),
                "src/main.rs".to_owned(),
            ];
            let places = target.path.clone().map_or(guesses.to_vec(), |path| vec![path]);
            let found = places
                .into_iter()
                .find(|path| find(index, directory, path).is_some());
            wanted.extend(found.map(|path| (kind, name.clone(), path)));
        }
        if !cargo.searched_not.iter().any(|not| not == key) {
            if kind == TargetKind::Binary {
                wanted.push((kind, package.to_owned(), "src/main.rs".to_owned()));
            }
            wanted.extend(
                searched(index, directory, folder)
                    .into_iter()
                    .map(|(name, path)| (kind, name, path)),
            );
        }
    }
    let mut targets: Vec<CargoTarget> = Vec::new();
    for (kind, name, path) in wanted {
        if let Some(file) = find(index, directory, &path)
            && !targets.iter().any(|target| target.file == file)
        {
            targets.push(CargoTarget { kind, name, file });
        }
    }
    targets
}

fn find(index: &Index<'_>, directory: &str, path: &str) -> Option<usize> {
    index.find(&path::join(directory, path)?)
}

/// Targets discovered as `folder/name.rs` and `folder/name/main.rs`, with paths relative to the package.
fn searched(index: &Index<'_>, directory: &str, folder: &str) -> Vec<(String, String)> {
    let inside = path::below(directory, folder);
    let alone = index.in_directory(&inside).iter().filter_map(|file| {
        let path = index.path(*file);
        let relative = format!("{folder}/{}", path::name(path));
        (path::extension(path) == "rs").then(|| (path::stem(path).to_owned(), relative))
    });
    let folders = index.directories_in(&inside).iter().map(|found| {
        let name = path::name(found);
        (name.to_owned(), format!("{folder}/{name}/main.rs"))
    });
    alone.chain(folders).collect()
}
