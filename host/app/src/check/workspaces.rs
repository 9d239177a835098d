//! Workspaces of a check: copies of the named directories, and empty ones under names that a pack expects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::Value;
use tollgate_components::catalog::{Inspection, Said};
use tollgate_core::text;
use tollgate_sandbox::workspaces::{Registration, Workspaces, overlap};
use tollgate_sdk::permit::GitTerms;
use tollgate_sdk::{GitAccess, TestCommand, WorkspaceInfo};

/// Name of the workspace for a pack that expects none by name.
const DEFAULT_WORKSPACE: &str = "default";
/// Argument that names a workspace.
const WORKSPACE_ARGUMENT: &str = "workspace";
/// Maximum bytes copied from one directory.
const MAX_BYTES: u64 = 512 << 20;
/// Maximum number of files and directories copied from one directory.
const MAX_ENTRIES: usize = 100_000;
/// Maximum depth of copied directories.
const MAX_DEPTH: usize = 64;

/// Directories to work in.
pub(super) struct Prepared {
    /// All workspaces.
    pub(super) workspaces: Workspaces,
    /// Default workspace for arguments.
    pub(super) first: String,
    /// Number of links and special files that were left out, by workspace.
    pub(super) left_out: Vec<(String, usize)>,
}

/// Creates the workspaces in a folder. A named directory is copied, so that a check changes nothing in it.
pub(super) fn prepare(
    folder: &Path,
    data: &Path,
    umask: u32,
    given: &[(String, PathBuf)],
    inspection: &Inspection,
) -> anyhow::Result<Prepared> {
    let mut names = expected(inspection);
    let given_first = given.first().map(|(name, _)| name.clone());
    let wanted = inspection.workspaces().next().map(str::to_owned);
    let first = given_first
        .or(wanted)
        .unwrap_or_else(|| DEFAULT_WORKSPACE.to_owned());
    names.insert(first.clone());
    let mut left_out = Vec::new();
    let mut registrations = Vec::new();
    for name in names.iter().chain(given.iter().map(|(name, _)| name)) {
        let place = folder.join(name);
        if place.exists() {
            continue;
        }
        std::fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        // A later flag takes precedence, as for a server.
        if let Some((_, from)) = given.iter().rfind(|(given, _)| given == name) {
            let skipped = copy(from, &place).with_context(|| format!("workspace {name}"))?;
            left_out.extend((skipped > 0).then(|| (name.clone(), skipped)));
        }
        registrations.push(registration(name, place));
    }
    let workspaces = Workspaces::open(registrations, umask, data)
        .map_err(|problems| anyhow::anyhow!("{}", problems.join("; ")))?;
    Ok(Prepared {
        workspaces,
        first,
        left_out,
    })
}

/// Names that a component requests, and names in its schemas where a workspace is expected.
fn expected(inspection: &Inspection) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = inspection.workspaces().map(str::to_owned).collect();
    if let Some(Said::Pack(manifest)) = &inspection.manifest {
        for tool in manifest.tools.iter().chain(&manifest.prompts) {
            let properties = tool.input_schema.get("properties");
            let named = properties.and_then(|properties| properties.get(WORKSPACE_ARGUMENT));
            names.extend(named.into_iter().flat_map(values).map(str::to_owned));
        }
    }
    names.retain(|name| text::is_name(name));
    names
}

/// Texts that a schema offers.
fn values(schema: &Value) -> impl Iterator<Item = &str> {
    let single = ["default", "const"].map(|key| schema.get(key));
    let lists = ["enum", "examples"].map(|key| schema.get(key).and_then(Value::as_array));
    let listed = lists.into_iter().flatten().flatten();
    single
        .into_iter()
        .flatten()
        .chain(listed)
        .filter_map(Value::as_str)
}

/// Everything is allowed, because the workspace is used by nothing else.
fn registration(name: &str, path: PathBuf) -> Registration {
    Registration {
        path,
        info: WorkspaceInfo {
            name: name.to_owned(),
            write_prefixes: vec![".".to_owned()],
            git: Some(GitAccess::Write),
            tests: vec![TestCommand {
                name: "default".to_owned(),
                argv: vec!["true".to_owned()],
            }],
        },
        git: GitTerms::default(),
    }
}

/// Copies a directory. Returns the number of omitted links and special files, because a link could lead back into the
/// original.
fn copy(from: &Path, to: &Path) -> anyhow::Result<usize> {
    let shown = from.display();
    ensure!(
        !overlap(from, to),
        "{shown} holds the folder of temporary files, so it cannot be copied; set TMPDIR to another folder"
    );
    let source = Dir::open_ambient_dir(from, ambient_authority());
    let source = source.with_context(|| format!("cannot open {shown}"))?;
    let target = Dir::open_ambient_dir(to, ambient_authority())?;
    let mut copied = Copied::default();
    copied
        .directory(&source, &target, 0)
        .with_context(|| format!("cannot copy {shown}"))?;
    Ok(copied.left_out)
}

/// Size of a copy so far.
#[derive(Default)]
struct Copied {
    entries: usize,
    bytes: u64,
    left_out: usize,
}

impl Copied {
    fn directory(&mut self, from: &Dir, to: &Dir, depth: usize) -> anyhow::Result<()> {
        ensure!(
            depth <= MAX_DEPTH,
            "folders are nested more than {MAX_DEPTH} deep"
        );
        for entry in from.entries()? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            self.entries += 1;
            ensure!(
                self.entries <= MAX_ENTRIES,
                "the directory has more than {MAX_ENTRIES} files and folders; name a smaller directory"
            );
            if kind.is_dir() {
                to.create_dir(&name)?;
                self.directory(&entry.open_dir()?, &to.open_dir(&name)?, depth + 1)?;
            } else if kind.is_file() {
                self.bytes += entry.metadata()?.len();
                ensure!(
                    self.bytes <= MAX_BYTES,
                    "the directory has more than {} MiB; name a smaller directory",
                    MAX_BYTES >> 20
                );
                from.copy(&name, to, &name)?;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests make files")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_has_files_and_folders_and_no_links() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        std::fs::create_dir_all(from.join("src")).unwrap();
        std::fs::create_dir(&to).unwrap();
        std::fs::write(from.join("src/lib.rs"), "fn main() {}").unwrap();
        std::os::unix::fs::symlink(&from, from.join("again")).unwrap();
        assert_eq!(copy(&from, &to).unwrap(), 1);
        assert_eq!(std::fs::read(to.join("src/lib.rs")).unwrap(), b"fn main() {}");
        assert!(!to.join("again").exists());
        // A folder inside the one that is copied would be copied into itself.
        let inside = from.join("inside");
        std::fs::create_dir(&inside).unwrap();
        assert!(copy(&from, &inside).is_err());
        assert!(copy(&place.path().join("nowhere"), &to).is_err());
    }

    #[test]
    fn names_come_from_whatever_a_schema_offers() {
        let schema = json!({"default": "main", "examples": ["main", "docs", 1], "enum": ["a"]});
        assert_eq!(values(&schema).collect::<Vec<_>>(), ["main", "a", "main", "docs"]);
        assert_eq!(values(&json!({"type": "string"})).count(), 0);
    }
}
