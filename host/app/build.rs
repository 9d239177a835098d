//! Packs the SDK's sources for `tollgate new`, so that a new crate needs no checkout: the SDK, the reader of SQL that its tests
//! use, the pages for authors, and the versions of other crates with which it is tested.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Crates that travel with a new one: folder in the repository, and name.
const CRATES: [(&str, &str); 2] = [("sdk", "tollgate-sdk"), ("sql", "tollgate-sql")];
/// Pages for authors.
const PAGES: [&str; 3] = ["writing-a-pack.md", "writing-a-policy.md", "wit.md"];
/// Files that a new crate begins with.
const PINS: [&str; 2] = ["Cargo.lock", "rust-toolchain.toml"];
/// SDKs of other languages: folder in the repository, and name of the list of their files.
const OTHER_SDKS: [(&str, &str); 3] = [
    ("sdk/c", "c"),
    ("sdk/python", "python"),
    ("sdk/javascript", "javascript"),
];
/// Folders that tools leave in an SDK.
const LEFT_BEHIND: [&str; 3] = ["__pycache__", "node_modules", ".pytest_cache"];
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn main() -> std::io::Result<()> {
    let root = Path::new("../..").canonicalize()?;
    let workspace = std::fs::read_to_string(root.join("Cargo.toml"))?;
    println!("cargo::rerun-if-changed={}", root.join("Cargo.toml").display());
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    for (folder, name) in CRATES {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))?;
        let alone = out.join(format!("{name}.toml"));
        std::fs::write(&alone, standalone(&manifest, &workspace))?;
        files.insert(format!("vendor/{name}/Cargo.toml"), alone);
        sources(&folder.join("src"), &format!("vendor/{name}/src"), &mut files)?;
        files.insert(format!("vendor/{name}/README.md"), folder.join("README.md"));
        for licence in LICENCES {
            files.insert(format!("vendor/{name}/{licence}"), root.join(licence));
        }
    }
    for page in PAGES {
        files.insert(format!("vendor/docs/{page}"), root.join("docs").join(page));
    }
    for pin in PINS {
        files.insert(pin.to_owned(), root.join(pin));
    }
    std::fs::write(out.join("sdk_files.rs"), listed(files, "include_str"))?;
    for (folder, name) in OTHER_SDKS {
        let mut files = BTreeMap::new();
        sources(&root.join(folder), "vendor/tollgate-sdk", &mut files)?;
        let list = listed(files, "include_bytes");
        std::fs::write(out.join(format!("{name}_sdk_files.rs")), list)?;
    }
    Ok(())
}

/// The files as an array of their paths and contents.
fn listed(files: BTreeMap<String, PathBuf>, include: &str) -> String {
    let as_slice = if include == "include_bytes" {
        " as &[u8]"
    } else {
        ""
    };
    let mut list = "[\n".to_owned();
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    for (path, file) in files {
        // What this script writes is newer than its end, and would have it run again each time.
        if !file.starts_with(&out) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        let file = file.display().to_string();
        let _ = writeln!(list, "    ({path:?}, {include}!({file:?}){as_slice}),");
    }
    list + "]\n"
}

#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn sources(folder: &Path, under: &str, files: &mut BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{under}/{name}");
        // The interfaces are a link to the folder that all SDKs have.
        if entry.path().is_dir() {
            if LEFT_BEHIND.contains(&name.as_str()) {
                continue;
            }
            sources(&entry.path(), &path, files)?;
        } else {
            files.insert(path, entry.path());
        }
    }
    Ok(())
}

/// A manifest without what it has of the workspace: each `name.workspace = true` becomes the workspace's own line, and what only
/// the crate's own tests and checks need is left out.
fn standalone(manifest: &str, workspace: &str) -> String {
    let line_of = |name: &str| {
        let start = format!("{name} = ");
        workspace.lines().find(|line| line.starts_with(&start))
    };
    let mut text = String::new();
    let mut is_left_out = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_left_out = matches!(line, "[lints]" | "[dev-dependencies]" | "[[test]]");
        }
        if is_left_out {
            continue;
        }
        let inherited = line.strip_suffix(".workspace = true").map(|name| (name, false));
        let optional = line.strip_suffix(" = { workspace = true, optional = true }");
        let line = match inherited.or(optional.map(|name| (name, true))) {
            None => line.to_owned(),
            Some((name, is_optional)) => {
                let is_beside = CRATES.iter().any(|(_, other)| *other == name);
                let beside = format!("{name} = {{ path = \"../{name}\" }}");
                let line = if is_beside {
                    &beside
                } else {
                    line_of(name).unwrap_or(line)
                };
                match line.strip_suffix(" }") {
                    Some(table) if is_optional => format!("{table}, optional = true }}"),
                    _ => line.to_owned(),
                }
            }
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}
