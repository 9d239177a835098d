//! Links that lead out of a workspace. Their targets count by sizes and times, so that work behind a link shows.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::nested::{Folders, Outlined};
use super::status::Difference;
use super::{LINK_MODE, Look};
use crate::looked::{File, Stamp};

/// Most links that are followed.
const MAX_LINKS: usize = 100;

impl Look<'_> {
    /// Differences for the targets of links that lead out of the workspace.
    pub(super) fn behind_links(
        &self,
        links: &BTreeSet<Vec<u8>>,
        folders: &mut Folders<'_>,
    ) -> Result<Vec<Difference>, String> {
        let dir = self.workspace.tree.dir();
        let leads_out = |path: &&Vec<u8>| {
            let place = Path::new(OsStr::from_bytes(path));
            let target = dir.read_link_contents(place);
            target.is_ok_and(|target| leads_out(place, &target))
        };
        let mut found = Vec::new();
        for path in links.iter().filter(leads_out).take(MAX_LINKS) {
            let Some(hash) = self.behind_link(path, folders)? else {
                continue;
            };
            found.push(Difference {
                path: [path.as_slice(), b"/"].concat(),
                before: None,
                now: Some(File {
                    mode: LINK_MODE.to_owned(),
                    hash: Some(hash),
                }),
                is_untracked: true,
            });
        }
        Ok(found)
    }

    fn behind_link(&self, path: &[u8], folders: &mut Folders<'_>) -> Result<Option<String>, String> {
        let root = PathBuf::from(format!("/proc/self/fd/{}", self.workspace.tree.dir().as_raw_fd()));
        let real = |path: &Path| path.canonicalize().ok();
        let (Some(top), Some(place)) = (real(&root), real(&root.join(OsStr::from_bytes(path)))) else {
            return Ok(None);
        };
        if place.starts_with(&top) || top.starts_with(&place) {
            return Ok(None);
        }
        if let Ok(dir) = Dir::open_ambient_dir(&place, ambient_authority()) {
            let name = String::from_utf8_lossy(path);
            let outline = folders.outline(&dir, path, Outlined::Linked);
            return outline.map(Some).map_err(|why| {
                let name = tollgate_core::text::clean(tollgate_core::text::cut(&name, 200));
                format!("link {name} of workspace {} {why}", self.workspace.info.name)
            });
        }
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Ok(None);
        };
        let metadata = Dir::open_ambient_dir(parent, ambient_authority())
            .and_then(|parent| parent.symlink_metadata(name))
            .ok();
        let file = metadata.filter(cap_std::fs::Metadata::is_file);
        Ok(file.map(|metadata| Stamp::of(&metadata).to_string()))
    }
}

/// True if a link at a place below the workspace may lead out of it. Targets of other links are covered anyway.
fn leads_out(place: &Path, target: &Path) -> bool {
    let mut depth = place.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_stay_are_not_followed() {
        for (place, target, expected) in [
            ("link", "src", false),
            ("a/link", "../src", false),
            ("a/link", "./b/../c", false),
            ("link", "../src", true),
            ("a/link", "../../src", true),
            ("a/link", "b/../../../a", true),
            ("link", "/tmp", true),
        ] {
            assert_eq!(
                leads_out(Path::new(place), Path::new(target)),
                expected,
                "{place} {target}"
            );
        }
    }
}
