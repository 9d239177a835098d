//! Protections of a configuration, and their records in the data directory. The records ensure that no server loses a
//! protection because a file disappeared, was emptied, or is read while it is being written.
//!
//! A protection is a key whose presence restricts calls: a policy with its settings, `server.read_only`, limits of
//! envelopes, or a disabled pack. Only the operator can remove one, and only explicitly: with SIGHUP after an edit, or
//! with the commands that edit the file.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tollgate_core::hash;
use tollgate_store::data_dir::{DataDir, DataDirError, open_private};
use toml::{Table, Value};

/// Folder of the records.
const FOLDER: &str = "protections";
/// Largest record, in bytes: a configuration has a few hundred keys at most.
const MAX_RECORD: u64 = 4 << 20;

/// Keys whose presence restricts calls. `*` matches any name, and everything below a key counts as well.
const RESTRICTING_KEYS: &[&str] = &[
    "server.read_only",
    "server.auth",
    "server.limits",
    "envelope.require",
    "envelope.max_mutations",
    "envelope.max_test_runs",
    "envelope.max_duration_sec",
    "envelope.max_edits",
    "envelope.budgets.*",
    "envelope.ceiling",
    "envelope.auto",
    "envelope.window",
    "approvals.approvers",
    "packs.*.enabled",
    "packs.*.exclude",
    "packs.*.grants",
    "packs.*.sha256",
    "trust.unsigned",
    "trust.signers.*",
    "packs.*.limits",
    // Only the pack knows the meaning of a setting, so each may restrict calls.
    "packs.*.config",
    "policies.*",
    "workspaces.*.git",
    "workspaces.*.repository",
    "artifacts.max_mib",
    "artifacts.max_artifact_mib",
    "artifacts.ttl_hours",
];
/// Exceptions below these keys, which grant something instead.
const GRANTING_KEYS: &[&str] = &[
    "policies.*.mode",
    "policies.*.fail_open",
    "policies.*.grants",
    "policies.*.phase",
    "policies.*.tools",
];

/// Separator in a key that binds a policy to its whole table, and other keys to their values.
const VALUE_SEPARATOR: &str = " says ";

/// End of the key of a policy that enforces its verdicts.
const ENFORCE_SUFFIX: &str = " mode enforce";

/// End of the key of a policy without which calls are refused.
const FAIL_CLOSED_SUFFIX: &str = " fail_open false";

/// Protections that an earlier version of a file has and a later one lacks. Changes of values are the operator's choice
/// in the same file. Another file must have the same values.
pub fn lost(had: &BTreeSet<String>, has: &BTreeSet<String>) -> BTreeSet<String> {
    let lost = had.difference(has).filter(|key| !key.contains(VALUE_SEPARATOR));
    lost.cloned().collect()
}

/// Protections without their values.
pub fn lasting(protections: BTreeSet<String>) -> impl Iterator<Item = String> {
    protections
        .into_iter()
        .filter(|key| !key.contains(VALUE_SEPARATOR))
}

/// Reason why records of protections cannot be used.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The directory of the records.
    #[error(transparent)]
    Place(#[from] DataDirError),
    /// One record.
    #[error(
        "the record {FOLDER}/{name} in the data directory {path} cannot be used; once you have checked \
         that the configuration is complete, remove this record"
    )]
    Record {
        /// File of the record.
        name: String,
        /// The data directory.
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// Protections of a configuration file, as a server last applied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The configuration file.
    pub config: PathBuf,
    /// Protections of the file, by key.
    pub protections: BTreeSet<String>,
    /// Missing protections of other configurations that the operator accepted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub accepted: BTreeSet<String>,
}

impl Record {
    /// Creates the record of a configuration file without protections.
    fn new(config: &Path) -> Record {
        Record {
            config: canonical(config),
            protections: BTreeSet::new(),
            accepted: BTreeSet::new(),
        }
    }

    /// Returns whether other configurations of the data directory may not protect less. True if this one has policies
    /// or names approvers.
    fn binds_others(&self) -> bool {
        !self.policies().is_empty() || self.protections.contains("approvals/approvers")
    }

    /// Policies of the configuration.
    pub fn policies(&self) -> BTreeSet<&str> {
        policies(&self.protections)
    }
}

/// Names of policies among protections.
pub fn policies(protections: &BTreeSet<String>) -> BTreeSet<&str> {
    let names = protections.iter().filter_map(|key| key.strip_prefix("policies/"));
    names.filter(|name| !name.contains(['/', ' '])).collect()
}

/// Protections as text for people, without those implied by another one.
pub fn describe<'a>(protections: impl IntoIterator<Item = &'a String>) -> String {
    let all: BTreeSet<&String> = protections.into_iter().collect();
    let is_part = |key: &str| {
        let ends = key.char_indices().filter(|(_, c)| matches!(c, '/' | ' '));
        ends.map(|(end, _)| &key[..end])
            .any(|whole| all.iter().any(|other| *other == whole))
    };
    let told = all
        .iter()
        .filter(|key| !is_part(key))
        .map(|key| match key.split_once(VALUE_SEPARATOR) {
            Some((said, _)) => format!("{} with the same value", said.replace('/', ".")),
            None => key
                .replace('/', ".")
                .replace(ENFORCE_SUFFIX, ".mode = \"enforce\"")
                .replace(FAIL_CLOSED_SUFFIX, ".fail_open = false"),
        });
    told.collect::<Vec<_>>().join(", ")
}

/// All protections in a configuration's text, by key.
pub(super) fn find(said: &Table) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(said, &mut Vec::new(), &mut found);
    for (name, policy) in tables(said.get("policies")) {
        if policy.get("mode").and_then(Value::as_str) != Some("audit") {
            found.insert(format!("policies/{name}{ENFORCE_SUFFIX}"));
        }
        if policy.get("fail_open").and_then(Value::as_bool) != Some(true) {
            found.insert(format!("policies/{name}{FAIL_CLOSED_SUFFIX}"));
        }
        found.insert(saying(&format!("policies/{name}"), &policy.to_string()));
    }
    // These values grant: a server that is not read-only, and an enabled pack.
    if said.get("server").and_then(|server| server.get("read_only")) == Some(&Value::Boolean(false)) {
        retain_without(&mut found, "server/read_only");
    }
    for (name, pack) in tables(said.get("packs")) {
        if pack.get("enabled") == Some(&Value::Boolean(true)) {
            retain_without(&mut found, &format!("packs/{name}/enabled"));
        }
    }
    // Built-in packs have all grants unless the table lists some. Grants of other packs only add.
    for (name, pack) in tables(said.get("packs")) {
        if pack.contains_key("source") {
            let grants = format!("packs/{name}/grants");
            found.retain(|key| !key.starts_with(&grants));
        }
    }
    // Without any workspace, the current directory becomes one.
    if tables(said.get("workspaces")).next().is_some() {
        found.insert("workspaces".to_owned());
    }
    found
}

/// Key that binds another key to its value.
fn saying(key: &str, says: &str) -> String {
    format!(
        "{key}{VALUE_SEPARATOR}{}",
        &hash::sha256_hex(says.as_bytes())[..16]
    )
}

/// Removes a key and its value.
fn retain_without(found: &mut BTreeSet<String>, key: &str) {
    found.retain(|other| other.split(VALUE_SEPARATOR).next() != Some(key));
}

fn tables(value: Option<&Value>) -> impl Iterator<Item = (&String, &Table)> {
    let members = value.and_then(Value::as_table).into_iter().flatten();
    members.filter_map(|(name, value)| Some((name, value.as_table()?)))
}

fn walk<'a>(table: &'a Table, path: &mut Vec<&'a str>, found: &mut BTreeSet<String>) {
    for (name, value) in table {
        path.push(name);
        // An empty table has no effect, except that of a policy, which then uses its defaults.
        let is_said =
            value.as_table().is_none_or(|table| !table.is_empty()) || matches!(path[..], ["policies", _]);
        if is_said && is_below(path, RESTRICTING_KEYS) && !is_below(path, GRANTING_KEYS) {
            let key = path.join("/");
            // A policy is bound to its whole table.
            if path[0] != "policies" && !value.is_table() {
                found.insert(saying(&key, &value.to_string()));
            }
            found.insert(key);
        }
        match value {
            Value::Table(table) => walk(table, path, found),
            // Tables in a list have no names, so they are identified by their content.
            Value::Array(tables) if is_below(path, RESTRICTING_KEYS) => {
                let said = tables.iter().filter_map(Value::as_table);
                found.extend(said.map(|table| format!("{}/{}", path.join("/"), in_one_line(table))));
            }
            _ => {}
        }
        path.pop();
    }
}

/// Keys and texts of a table in a list, on one line.
fn in_one_line(table: &Table) -> String {
    let one = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        _ => name.clone(),
    };
    table.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Returns whether a path is one of these keys or below one.
fn is_below(path: &[&str], keys: &[&str]) -> bool {
    keys.iter().any(|key| {
        let mut names = path.iter();
        key.split('.')
            .all(|part| names.next().is_some_and(|name| part == "*" || part == *name))
    })
}

/// Records of a data directory, one for each configuration file, because several hosts may use the directory with their
/// own configurations.
#[derive(Debug)]
pub struct Records<'a> {
    data: &'a DataDir,
    dir: Dir,
}

impl<'a> Records<'a> {
    /// Opens the records of a data directory.
    pub fn open(data: &'a DataDir) -> Result<Records<'a>, RecordError> {
        Ok(Records {
            dir: data.private_dir(FOLDER)?,
            data,
        })
    }

    /// Record of a configuration file, however its path is written.
    pub fn of(&self, config: &Path) -> Result<Option<Record>, RecordError> {
        let own = self
            .all()?
            .into_iter()
            .filter(|(_, record)| is_of(record, config));
        Ok(own.map(|(_, record)| record).reduce(|mut whole, record| {
            whole.protections.extend(record.protections);
            whole.accepted.extend(record.accepted);
            whole
        }))
    }

    /// Records of all other files.
    pub fn others(&self, config: Option<&Path>) -> Result<Vec<Record>, RecordError> {
        let all = self.all()?.into_iter().map(|(_, record)| record);
        Ok(all
            .filter(|record| config.is_none_or(|config| !is_of(record, config)))
            .collect())
    }

    /// Protections of other configurations with policies or approvers that a configuration lacks and that were not
    /// accepted. Contains the configurations that have them.
    pub fn missing(
        &self,
        config: Option<&Path>,
        has: &BTreeSet<String>,
    ) -> Result<Option<Missing>, RecordError> {
        let own = config.map(|config| self.of(config)).transpose()?.flatten();
        let accepted = own.map(|record| record.accepted).unwrap_or_default();
        let mut missing = Missing::default();
        for other in self.others(config)? {
            let lacking: BTreeSet<String> = other
                .protections
                .iter()
                .filter(|key| !has.contains(*key) && !accepted.contains(*key))
                .cloned()
                .collect();
            if !lacking.is_empty() && other.binds_others() {
                missing.protections.extend(lacking);
                missing.configs.insert(other.config);
            }
        }
        Ok((!missing.protections.is_empty()).then_some(missing))
    }

    /// Records the current protections of a configuration file. Protections that it had before and now lacks are
    /// accepted, because the operator removed them.
    pub fn remember(&self, config: &Path, protections: BTreeSet<String>) -> Result<(), RecordError> {
        let mut record = self.of(config)?.unwrap_or_else(|| Record::new(config));
        let gone = record.protections.difference(&protections).cloned();
        record.accepted.extend(gone);
        record.accepted.retain(|key| !protections.contains(key));
        record.protections = protections;
        self.write(config, record)
    }

    /// Removes these protections from the record of a configuration file, because its operator removes them or accepts
    /// their absence. Returns those that were recorded.
    pub fn forget(&self, config: &Path, gone: &BTreeSet<String>) -> Result<BTreeSet<String>, RecordError> {
        let mut record = self.of(config)?.unwrap_or_else(|| Record::new(config));
        let protections = std::mem::take(&mut record.protections).into_iter();
        let (forgotten, left) = protections.partition(|key| gone.contains(key));
        record.protections = left;
        record.accepted.extend(gone.iter().cloned());
        self.write(config, record)?;
        Ok(forgotten)
    }

    fn write(&self, config: &Path, record: Record) -> Result<(), RecordError> {
        let record = Record {
            config: canonical(config),
            ..record
        };
        let name = name(config);
        // A damaged record stays until an operator has looked at it.
        if self.read(&name)?.as_ref() == Some(&record) {
            return self.remove_others_of(config, &name);
        }
        // Atomically, because another host may read the record at the same time.
        let draft = format!("{name}.{}", std::process::id());
        let written = serde_json::to_vec(&record)
            .map_err(std::io::Error::other)
            .and_then(|json| {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o600);
                let mut file = self.dir.open_with(&draft, &options)?;
                file.write_all(&json)?;
                file.sync_all()?;
                self.dir.rename(&draft, &self.dir, &name)
            });
        written.map_err(|source| self.failed(&name, source))?;
        self.remove_others_of(config, &name)
    }

    /// Removes records of the same file under other spellings of its path, which earlier versions stored.
    fn remove_others_of(&self, config: &Path, name: &str) -> Result<(), RecordError> {
        for (other, record) in self.all()? {
            if other != name && is_of(&record, config) {
                let removed = self.dir.remove_file(&other);
                removed.map_err(|source| self.failed(&other, source))?;
            }
        }
        Ok(())
    }

    /// All records, with the names of their files.
    fn all(&self) -> Result<Vec<(String, Record)>, RecordError> {
        let failed = |source| self.failed(".", source);
        let mut all = Vec::new();
        for entry in self.dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?.file_name();
            let entry = entry.to_string_lossy();
            if entry.ends_with(".json")
                && let Some(record) = self.read(&entry)?
            {
                all.push((entry.into_owned(), record));
            }
        }
        Ok(all)
    }

    fn read(&self, name: &str) -> Result<Option<Record>, RecordError> {
        let failed = |source| self.failed(name, source);
        let file = match open_private(&self.dir, name) {
            Ok(Some(file)) => file,
            Ok(None) => return Err(failed(std::io::ErrorKind::PermissionDenied.into())),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(failed(err)),
        };
        let mut json = Vec::new();
        file.take(MAX_RECORD).read_to_end(&mut json).map_err(failed)?;
        serde_json::from_slice(&json)
            .map(Some)
            .map_err(|err| failed(err.into()))
    }

    fn failed(&self, name: &str, source: std::io::Error) -> RecordError {
        RecordError::Record {
            name: name.to_owned(),
            path: self.data.path().display().to_string(),
            source,
        }
    }
}

/// Protections of other configurations that a configuration lacks.
#[derive(Debug, Default)]
pub struct Missing {
    /// The missing protections, by key.
    pub protections: BTreeSet<String>,
    /// The configurations that have it.
    pub configs: BTreeSet<PathBuf>,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let configs: Vec<String> = self
            .configs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let lacking = describe(&self.protections);
        write!(
            f,
            "lacks protections that are set for the same data directory in {}: {lacking}",
            configs.join(", ")
        )
    }
}

/// Returns whether a record belongs to a configuration file.
fn is_of(record: &Record, config: &Path) -> bool {
    record.config == config || canonical(&record.config) == canonical(config)
}

/// File name of a configuration's record.
fn name(config: &Path) -> String {
    let path = canonical(config);
    format!(
        "{}.json",
        &hash::sha256_hex(path.as_os_str().as_encoded_bytes())[..32]
    )
}

/// Canonical path of a file, whatever links and `..` lead to it. For a missing file, the path that it would have.
#[allow(clippy::disallowed_methods, reason = "the operator names the file")]
pub fn canonical(config: &Path) -> PathBuf {
    let path = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
    let known = path.ancestors().find_map(|above| {
        let known = std::fs::canonicalize(above).ok()?;
        Some((known, path.strip_prefix(above).ok()?))
    });
    match known {
        // Joining an empty path would append a slash.
        Some((known, rest)) if rest.as_os_str().is_empty() => known,
        Some((known, rest)) => rest.components().fold(known, |mut path, part| {
            match part {
                std::path::Component::ParentDir => drop(path.pop()),
                part => path.push(part),
            }
            path
        }),
        None => path,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests make files as others could")]
mod tests;
