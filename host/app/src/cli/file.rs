//! User files that commands change: read and replaced as a whole.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};

/// An example of a JSON object.
const EXAMPLE: &str = "write a JSON object such as {\"title\": \"Write the report\"}";

/// Text of a file, or empty text if the file does not exist.
#[allow(
    clippy::disallowed_methods,
    reason = "the user names the file, or the client whose it is"
)]
pub(super) fn read(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(err) => Err(err).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Parses a JSON object from an argument: inline, from a file with `@`, or from standard input with `-`.
pub(super) fn object(argument: &str) -> anyhow::Result<Map<String, Value>> {
    let text = match argument {
        "-" => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            text
        }
        argument => match argument.strip_prefix('@') {
            #[allow(clippy::disallowed_methods, reason = "the user names the file")]
            Some(file) => std::fs::read_to_string(file).with_context(|| {
                format!(
                    "cannot read the file {file}, which @{file} names; write @ and the path of a JSON file"
                )
            })?,
            None => argument.to_owned(),
        },
    };
    if text.trim().is_empty() {
        anyhow::bail!("the input is empty; {EXAMPLE}, or {{}} for an empty object");
    }
    let value: Value = serde_json::from_str(&text).map_err(|err| {
        let quotes = if argument.starts_with(['@', '-']) {
            ""
        } else {
            ", in quotes for the shell"
        };
        anyhow::anyhow!("the input is not JSON ({err}); {EXAMPLE}{quotes}")
    })?;
    let what = match value {
        Value::Object(object) => return Ok(object),
        Value::Array(_) => "a list",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
    };
    anyhow::bail!("the input is {what}; {EXAMPLE}")
}

/// Replaces a file atomically, and keeps its permissions and, if permitted, its owner. A crash leaves the old or the
/// new file.
pub(super) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    // A link is resolved to the real file, for example in a folder of dot files.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().context("the path has no folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    std::io::Write::write_all(&mut temporary, text.as_bytes())?;
    if let Ok(there) = file.metadata() {
        temporary.as_file().set_permissions(there.permissions())?;
        keep_owner(temporary.as_file(), &there)?;
    }
    temporary.as_file().sync_all()?;
    temporary
        .persist(&file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// Gives a new file the owner of the old one, for example the user of a service. Only root can do this.
fn keep_owner(new: &File, there: &Metadata) -> std::io::Result<()> {
    let made = new.metadata()?;
    if (made.uid(), made.gid()) == (there.uid(), there.gid()) {
        return Ok(());
    }
    match fchown(new, Some(there.uid()), Some(there.gid())) {
        Err(err) if err.kind() != ErrorKind::PermissionDenied => Err(err),
        _ => Ok(()),
    }
}

/// Creates a file. An existing file is unchanged, and so is a dangling link.
pub(super) fn create(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    std::io::Write::write_all(&mut temporary, text.as_bytes())?;
    temporary.as_file().sync_all()?;
    match temporary.persist_noclobber(file) {
        Ok(_) => Ok(()),
        Err(err) if err.error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!("{} already exists and was not changed", file.display())
        }
        Err(err) => Err(err.error).with_context(|| format!("cannot write {}", file.display())),
    }
}
