//! Whatever of the SDK its users see has an example, which is compiled and run like every other.
#![allow(clippy::disallowed_methods, reason = "the test reads the sources")]

use std::path::Path;

/// Sources of what only hosts and the native backend use, or that wit-bindgen and the component's side need.
const HIDDEN: &[&str] = &[
    "capture.rs",
    "guest.rs",
    "permit.rs",
    "sql.rs",
    "stale.rs",
    "surface.rs",
    "tree.rs",
];
/// Folders of the same.
const HIDDEN_FOLDERS: &[&str] = &["guest", "permit"];
/// Beginnings of public items.
const ITEMS: &[&str] = &[
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub fn ",
    "pub const ",
    "pub type ",
    "macro_rules! ",
];

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !HIDDEN_FOLDERS.contains(&name) {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !HIDDEN.contains(&name) {
            found.push(path);
        }
    }
}

/// The items at the top of a source, each with the lines of comments and attributes before it.
fn items(text: &str) -> Vec<(String, String)> {
    let mut items = Vec::new();
    let mut before = String::new();
    for line in text.lines() {
        if line.starts_with("///") || line.starts_with("#[") {
            before.push_str(line);
            before.push('\n');
            continue;
        }
        if ITEMS.iter().any(|item| line.starts_with(item)) {
            items.push((line.to_owned(), before.clone()));
        }
        before.clear();
    }
    items
}

#[test]
fn every_item_has_an_example() {
    let mut all = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    let (mut without, mut count) = (Vec::new(), 0);
    for source in all {
        for (item, before) in items(&std::fs::read_to_string(&source).unwrap()) {
            // A macro without #[macro_export] is the source's own.
            if before.contains("#[doc(hidden)]")
                || item.starts_with("macro_rules!") && !before.contains("#[macro_export]")
            {
                continue;
            }
            count += 1;
            if !before.contains("/// ```") {
                without.push(format!("{}: {item}", source.display()));
            }
        }
    }
    assert!(without.is_empty(), "without an example:\n{}", without.join("\n"));
    assert!(count > 80, "only {count} items were found");
}
