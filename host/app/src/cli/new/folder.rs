//! Creation of a folder with all of its files, or not at all.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thiserror::Error;
use tollgate::scaffold::File;

/// Error for a name that is already taken.
#[derive(Debug, Error)]
#[error("{} already exists; name another folder with --path", .0.display())]
pub(super) struct Taken(PathBuf);

/// Fails if a folder cannot be created. A dangling link is an obstacle too.
pub(super) fn check_free(folder: &Path) -> Result<(), Taken> {
    match folder.symlink_metadata() {
        Ok(_) => Err(Taken(folder.to_owned())),
        Err(_) => Ok(()),
    }
}

/// Creates a folder with files, which are private to the user except as far as the umask permits. The files are written
/// to a temporary folder, which is renamed when complete. Only an empty folder is replaced, so existing files are never
/// lost.
pub(super) fn make(folder: &Path, files: &[File], umask: u32) -> anyhow::Result<()> {
    let folder = std::path::absolute(folder)?;
    let parent = folder.parent().context("cannot create the root directory")?;
    std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let made = tempfile::Builder::new()
        .prefix(".tollgate-new-")
        .tempdir_in(parent)
        .with_context(|| format!("cannot write to {}", parent.display()))?;
    for File { path, content } in files {
        write(made.path(), path, content, umask).with_context(|| format!("cannot write {path}"))?;
    }
    let shared = std::fs::Permissions::from_mode(0o777 & !umask);
    std::fs::set_permissions(made.path(), shared)?;
    std::fs::rename(made.path(), &folder)
        .with_context(|| format!("cannot create {}; nothing was changed", folder.display()))?;
    // The folder was renamed, so there is nothing to delete under the temporary name.
    let _ = made.keep();
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the folder is this command's own")]
fn write(root: &Path, path: &str, content: &[u8], umask: u32) -> anyhow::Result<()> {
    let file = root.join(path);
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != root);
    let folders: Vec<&Path> = folders.collect();
    for folder in folders.into_iter().rev().filter(|folder| !folder.is_dir()) {
        std::fs::create_dir(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777 & !umask))?;
    }
    std::fs::write(&file, content)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666 & !umask))?;
    Ok(())
}
