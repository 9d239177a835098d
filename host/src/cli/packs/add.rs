//! `tollgate packs add`

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use tollgate::builtin;
use tollgate::config::Config;
use tollgate::config::edit::{self, Entry};
use tollgate::hash::sha256_hex;
use tollgate::host::{Choice, Site};
use tollgate::packs::{self, Grants, Inspection};

use super::accept::accept;
use super::inspect;
use crate::cli::{self, Global, file, out};

/// A component asks, you grant. Without the grants that it asks for, and if it would not load, nothing is
/// changed. Servers that run take it over by themselves.
#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    /// A path, or an address that starts with https://
    source: String,
    /// The SHA-256 it must have; needed for an address
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    sha256: Option<String>,
    /// Grant it something: workspaces=NAME,… process=NAME,… budgets=NAME,… ledger artifacts, or all that it
    /// asks for
    #[arg(long = "grant", value_name = "GRANT|all")]
    grants: Vec<String>,
    /// Change the source, the hash and the grants of a pack that is there
    #[arg(long)]
    replace: bool,
    /// Take whatever is in the file at each start, for a component you are building
    #[arg(long)]
    no_pin: bool,
}

impl Add {
    /// Exit code 1 if it asks for more than it is granted.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let path = Config::file(global.config.as_deref())?;
        let text = file::read(&path)?;
        let config = Config::parse(&text, &path)?;
        let site = cli::site(global, &config)?;
        let (source, bytes) = self.bytes(&site).await?;
        let inspection = site.loader().inspect(&bytes).await;
        let Some(manifest) = inspection
            .manifest
            .as_ref()
            .filter(|_| inspection.problems.is_empty())
        else {
            bail!(
                "{source} cannot be a pack here: {}",
                inspection.problems.join("; ")
            );
        };
        let name = manifest.name.clone();
        ensure!(
            builtin::component(&name).is_none(),
            "it calls itself {name}, which is built in; nothing was changed"
        );
        let grants = self.granted(&config, &name, &inspection)?;
        let missing = inspection.missing(&grants);
        if !missing.is_empty() {
            out::print(&inspect::tell(&inspection));
            out::warn(&format!(
                "{name} asks for more than it is granted, so nothing was changed. To add it with all of it:"
            ));
            out::warn(&self.again(&missing));
            return Ok(ExitCode::FAILURE);
        }
        let entry = Entry {
            name: name.clone(),
            source,
            sha256: (!self.no_pin).then(|| inspection.sha256.clone()),
            grants,
        };
        let with = edit::with_pack(&text, &entry, self.replace)?;
        let config =
            Config::parse(&with, &path).context("the result would not load, so nothing was changed")?;
        try_out(global, &site, &config, &name).await?;
        file::replace(&path, &with)?;
        // Whoever adds it has just looked at it.
        accept(site.database(), &name)?;
        if global.json {
            out::print_json(&json!({ "added": name, "sha256": inspection.sha256, "config": path }));
        } else {
            out::print(&format!("added [packs.{name}] to {}", path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The component, and its source as the configuration says it.
    async fn bytes(&self, site: &Site) -> anyhow::Result<(String, Vec<u8>)> {
        let is_url = self.source.contains("://");
        if !is_url {
            let path = std::path::absolute(&self.source)?;
            let bytes = packs::read(&path).map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?;
            self.check_hash(&bytes)?;
            return Ok((cli::utf8(&path)?, bytes));
        }
        ensure!(!self.no_pin, "what comes from another machine is always pinned");
        if let Some(sha256) = &self.sha256 {
            let bytes = site
                .loader()
                .downloads()
                .get_or_fetch(&self.source, sha256)
                .await?;
            return Ok((self.source.clone(), bytes));
        }
        let found = sha256_hex(&packs::fetch(&self.source).await?);
        bail!(
            "its SHA-256 is {found}; if that is what its author published, add --sha256 {found} (nothing was changed)"
        )
    }

    fn check_hash(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let found = sha256_hex(bytes);
        let is_wanted = self
            .sha256
            .as_ref()
            .is_none_or(|pin| pin.eq_ignore_ascii_case(&found));
        ensure!(
            is_wanted,
            "its SHA-256 is {found}, which is not the one you gave; nothing was changed"
        );
        Ok(())
    }

    /// What it is granted: by the flags, and by the table that is there.
    fn granted(&self, config: &Config, name: &str, inspection: &Inspection) -> anyhow::Result<Grants> {
        let there = config.packs.get(name).filter(|_| self.replace);
        let mut grants = there.map(|pack| pack.grants.clone()).unwrap_or_default();
        let mut flags = Grants::default();
        let mut problems = Vec::new();
        for flag in self.grants.iter().filter(|flag| *flag != "all") {
            problems.extend(flags.add(flag).err());
            problems.extend(grants.add(flag).err());
        }
        problems.dedup();
        let unasked = inspection.unasked(&flags);
        problems.extend(
            unasked
                .iter()
                .map(|grant| format!("{name} does not ask for {grant}")),
        );
        ensure!(
            problems.is_empty(),
            "{}; nothing was changed",
            problems.join("; ")
        );
        if self.grants.iter().any(|flag| flag == "all") {
            inspection.grant_all(&mut grants);
        }
        Ok(grants)
    }

    /// The command that grants what is missing too.
    fn again(&self, missing: &[packs::Wanted]) -> String {
        let lines: Vec<&str> = missing.iter().map(|wanted| wanted.line.as_str()).collect();
        let flags = lines.iter().map(|line| {
            let flag = line
                .trim_start_matches("grants.")
                .replace([' ', '"', '[', ']'], "");
            format!(" --grant {}", flag.trim_end_matches("=true"))
        });
        let flags: String = flags.collect();
        format!("  tollgate packs add {}{flags}", self.source)
    }
}

/// Loads everything as the next start will, and refuses what would not be there.
async fn try_out(global: &Global, site: &Site, config: &Config, name: &str) -> anyhow::Result<()> {
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let workspaces = cli::workspaces(global, config, &data_dir)?;
    let loaded = site.load(config, workspaces, &Choice::default()).await?;
    match loaded
        .catalog
        .failures()
        .iter()
        .find(|failure| failure.pack == name)
    {
        Some(failure) => bail!("{failure}; nothing was changed"),
        None => Ok(()),
    }
}

fn sha256(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    is_hash
        .then(|| text.to_ascii_lowercase())
        .ok_or_else(|| "a SHA-256 is 64 hex digits".to_owned())
}
