//! Source files of a workspace, read to tell assertions apart.

use std::collections::BTreeMap;

use tollgate_sdk::Workspace;

use crate::report::TestReport;

/// Longest source file that is read, in bytes.
const MAX_SOURCE: usize = 1 << 20;
/// Most source files that are read of one run.
const MAX_SOURCES: usize = 50;

/// Reads the source of the assertions that failed. `root` is the folder of the repository.
pub(super) fn read(report: &mut TestReport, workspace: &Workspace<'_>, root: Option<&str>) {
    let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
    report.read_sources(|path| {
        if !known.contains_key(path) && known.len() < MAX_SOURCES {
            known.insert(path.to_owned(), source(workspace, root, path));
        }
        known.get(path).cloned().flatten()
    });
}

/// Text of a file of a workspace, whose path may be absolute. Of that, folders above the workspace are left out.
fn source(workspace: &Workspace<'_>, root: Option<&str>, path: &str) -> Option<String> {
    let read = |path: &str| {
        let bytes = workspace.read(path, MAX_SOURCE).ok()?;
        String::from_utf8(bytes).ok()
    };
    if !path.starts_with('/') {
        return read(path.trim_start_matches("./"));
    }
    let mut below = path.strip_prefix(root?)?.trim_start_matches('/');
    loop {
        if let Some(found) = read(below) {
            return Some(found);
        }
        below = below.split_once('/')?.1;
    }
}
