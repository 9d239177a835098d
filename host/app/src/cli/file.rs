//! Files of the user's that commands change: read whole, replaced whole.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tollgate::config::Config;
use tollgate::config::protections::Records;
use tollgate_store::data_dir::DataDir;

use super::Global;

/// An example of a JSON object.
const EXAMPLE: &str = "a JSON object looks like this: {\"title\": \"Write the report\"}";

/// A file's text, nothing if there is none.
#[allow(
    clippy::disallowed_methods,
    reason = "the user names the file, or the client whose it is"
)]
pub(super) fn read(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(err) => Err(err).with_context(|| format!("{} cannot be read", file.display())),
    }
}

/// A JSON object that an argument holds, or the file that it names with `@`, or with `-` standard input.
pub(super) fn object(argument: &str) -> anyhow::Result<Map<String, Value>> {
    let text = match argument {
        "-" => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .context("standard input cannot be read")?;
            text
        }
        argument => match argument.strip_prefix('@') {
            #[allow(clippy::disallowed_methods, reason = "the user names the file")]
            Some(file) => std::fs::read_to_string(file).with_context(|| {
                format!("the file {file}, which @{file} names, cannot be read; write @ with the path of a JSON file")
            })?,
            None => argument.to_owned(),
        },
    };
    if text.trim().is_empty() {
        anyhow::bail!("it is empty; {EXAMPLE}, and {{}} is one without anything in it");
    }
    let value: Value = serde_json::from_str(&text).map_err(|err| {
        let quotes = if argument.starts_with(['@', '-']) {
            ""
        } else {
            ", in quotes for the shell"
        };
        anyhow::anyhow!("it is not JSON ({err}); {EXAMPLE}{quotes}")
    })?;
    let what = match value {
        Value::Object(object) => return Ok(object),
        Value::Array(_) => "a list",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "true or false",
        Value::Null => "null",
    };
    anyhow::bail!("it is {what}; {EXAMPLE}")
}

/// Replaces a configuration by what a command made of it. Servers take it over although it may protect less, because
/// that was asked for here; what else the file lacks, they do not.
pub(super) fn reconfigure(
    global: &Global,
    path: &Path,
    before: &Config,
    text: &str,
    after: &Config,
) -> anyhow::Result<()> {
    let (had, has) = (before.protections(), after.protections());
    let gone: BTreeSet<String> = had.difference(&has).cloned().collect();
    if !gone.is_empty() {
        let data = DataDir::open(&before.data_dir(global.data_dir.as_deref())?)?;
        Records::open(&data)?.forget(path, &gone)?;
    }
    // A file with nothing in it is what a writer leaves half way.
    let text = if text.trim().is_empty() {
        "# Nothing is configured.\n"
    } else {
        text
    };
    replace(path, text)
}

/// Replaces a file as a whole, keeping its permissions and, if it may, its owner: a crash leaves the old one or the new one.
pub(super) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    // Behind a link lies the file that is meant, for instance in a folder of dot files.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().context("it has no folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("nothing can be written in {}", folder.display()))?;
    std::io::Write::write_all(&mut temporary, text.as_bytes())?;
    if let Ok(there) = file.metadata() {
        temporary.as_file().set_permissions(there.permissions())?;
        keep_owner(temporary.as_file(), &there)?;
    }
    temporary.as_file().sync_all()?;
    temporary
        .persist(&file)
        .with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(())
}

/// Gives a new file the owner of the one that it replaces, for instance the user of a service. Only root can.
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

/// Makes a file. One that is there stays as it is, a link that leads nowhere too.
pub(super) fn create(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("nothing can be written in {}", folder.display()))?;
    std::io::Write::write_all(&mut temporary, text.as_bytes())?;
    temporary.as_file().sync_all()?;
    match temporary.persist_noclobber(file) {
        Ok(_) => Ok(()),
        Err(err) if err.error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!("{} is there already, and is left as it is", file.display())
        }
        Err(err) => Err(err.error).with_context(|| format!("{} cannot be written", file.display())),
    }
}
