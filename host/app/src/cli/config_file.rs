//! The configuration file that a command edits. An edited version is written only if it loads.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::{self, Entry, Section};
use tollgate::config::protections::Records;
use tollgate_store::data_dir::DataDir;

use super::{Global, file, out};

/// A configuration file, with the text that the edits start from.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    text: String,
    pub(super) config: Config,
}

/// Edited text of a configuration file, with the configuration in it.
pub(super) struct Edited {
    text: String,
    pub(super) config: Config,
}

impl ConfigFile {
    /// Reads the configuration file. A file that does not exist counts as empty.
    pub(super) fn open(global: &Global) -> anyhow::Result<ConfigFile> {
        let path = Config::file(global.config.as_deref())?;
        let text = file::read(&path)?;
        let config = Config::parse(&text, &path)?;
        Ok(ConfigFile { path, text, config })
    }

    /// Adds a component. A configured component of the same name is replaced only if `replace` is true.
    pub(super) fn with(&self, entry: &Entry, replace: bool) -> anyhow::Result<Edited> {
        let text = edit::with(&self.text, entry, replace)?;
        let config = Config::parse(&text, &self.path)
            .context("the new configuration would not load, so nothing was changed")?;
        Ok(Edited { text, config })
    }

    /// Removes a component.
    pub(super) fn without(&self, section: Section, name: &str) -> anyhow::Result<Edited> {
        let text = edit::without(&self.text, section, name)?;
        let config = Config::parse(&text, &self.path)
            .context("the remaining configuration would not load, so nothing was changed")?;
        Ok(Edited { text, config })
    }

    /// Replaces the file with an edited version. Servers accept the removal of protections that the command made.
    /// Other missing protections are still refused.
    pub(super) fn replace(&self, global: &Global, edited: &Edited) -> anyhow::Result<()> {
        let (had, has) = (self.config.protections(), edited.config.protections());
        let gone: BTreeSet<String> = had.difference(&has).cloned().collect();
        if !gone.is_empty() {
            let data = DataDir::open(&self.config.data_dir(global.data_dir.as_deref())?)?;
            Records::open(&data)?.forget(&self.path, &gone)?;
        }
        // An empty file would look like a partially written one.
        let text = if edited.text.trim().is_empty() {
            "# Nothing is configured.\n"
        } else {
            &edited.text
        };
        file::replace(&self.path, text)
    }

    /// Prints that a component was added.
    pub(super) fn print_added(&self, global: &Global, section: Section, name: &str, sha256: &str) {
        if global.json {
            out::print_json(&json!({ "added": name, "sha256": sha256, "config": self.path }));
        } else {
            out::print(&format!(
                "added [{}] to {}",
                section.table(name),
                self.path.display()
            ));
        }
    }

    /// Prints that a component was removed.
    pub(super) fn print_removed(&self, global: &Global, section: Section, name: &str) {
        if global.json {
            out::print_json(&json!({ "removed": name, "config": self.path }));
        } else {
            out::print(&format!(
                "removed [{}] from {}; its tables stay in the database",
                section.table(name),
                self.path.display()
            ));
        }
    }
}
