//! `tollgate backup` and `tollgate restore`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::protections::canonical;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::text::counted;
use tollgate_store::backup;
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::ledger::key::PublicKey;

use super::{Global, out};

/// Hosts may keep running: the database is copied as of one moment, checked, and signed.
#[derive(Debug, Args)]
pub(super) struct Backup {
    /// Folder to create for the backup
    dir: PathBuf,
}

/// The backup is checked as a whole before anything is changed.
#[derive(Debug, Args)]
pub(super) struct Restore {
    /// Folder that `tollgate backup` created
    dir: PathBuf,
    /// Replace the existing data directory, which is kept beside the new one under another name
    #[arg(long)]
    force: bool,
    /// The public key that must have signed the backup, as `tollgate backup` printed it; can be given more than once
    /// [default: the one in the backup]
    #[arg(long, value_name = "KEY")]
    public_key: Vec<PublicKey>,
}

impl Backup {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let data = DataDir::existing(&config.data_dir(global.data_dir.as_deref())?)?;
        global.only_file(&config, "back the server up with its own tools, such as pg_dump")?;
        ensure!(
            data.has(DATABASE),
            "there is no ledger in {}; no host has ever used this directory",
            data.path().display()
        );
        self.check_place(global, &config)?;
        let made = backup::backup(&data, &self.dir, SystemClock.now_ms())?;
        if global.json {
            out::print_json(&json!(made));
            return Ok(ExitCode::SUCCESS);
        }
        let key = made
            .head
            .seal
            .as_ref()
            .map_or("", |seal| seal.public_key.as_str());
        out::print(&format!(
            "backed up {} ({} KiB) to {}; {} verified; the head is {}:{}\nsigned with the public key \
             {key}; keep this key in another place, for `tollgate restore --public-key`",
            counted(made.files, "file"),
            made.bytes.div_ceil(1024),
            made.path.display(),
            counted(made.rows, "ledger row"),
            made.head.head.seq,
            made.head.head.hash,
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl Backup {
    /// A backup contains the keys of the ledger, so it must not be in a workspace, where packs could read it.
    fn check_place(&self, global: &Global, config: &Config) -> anyhow::Result<()> {
        let target = canonical(&self.dir);
        // If no workspace is named, the next server's current directory becomes one, wherever it starts.
        if config.workspaces.is_empty() && global.workspaces.is_empty() {
            return Ok(());
        }
        for workspace in super::registrations(global, config)? {
            ensure!(
                !target.starts_with(canonical(&workspace.path)),
                "{} is in the workspace {}, which packs may read; choose a folder outside all workspaces",
                self.dir.display(),
                workspace.info.name,
            );
        }
        Ok(())
    }
}

impl Restore {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        global.only_file(&config, "restore a backup of the server with its own tools")?;
        let target = config.data_dir(global.data_dir.as_deref())?;
        let now = SystemClock.now_ms();
        let restored = backup::restore(&self.dir, &target, &self.public_key, self.force, now)?;
        if global.json {
            out::print_json(&json!(restored));
            return Ok(ExitCode::SUCCESS);
        }
        out::print(&format!(
            "restored {} from the backup of {}; {} verified; the head is {}:{}",
            restored.path.display(),
            restored.made_at,
            counted(restored.rows, "ledger row"),
            restored.head.head.seq,
            restored.head.head.hash,
        ));
        if let Some(before) = &restored.before {
            out::print(&format!(
                "the previous data directory is now {}",
                before.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
