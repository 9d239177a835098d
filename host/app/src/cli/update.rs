//! `tollgate packs update` and `tollgate policies update`: the difference first, the configuration afterwards.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::{Entry, Section};
use tollgate::host::HostContext;
use tollgate_components::catalog::Inspection;
use tollgate_components::grants::Grants;
use tollgate_components::loading::Fetched;
use tollgate_registry::change::{Change, changes};
use tollgate_registry::{Reference, versions_after};

use super::component::{grants, workspaces};
use super::config_file::ConfigFile;
use super::{Global, out, packs, policies, registry, terminal};

/// Shows what changes in tools, requests, settings and tables, and asks. Nothing is changed without a yes, or if the
/// component requests more than it is granted. Running servers load the update by themselves.
#[derive(Debug, Args)]
pub(super) struct Update {
    /// Its name in the configuration
    name: String,
    /// Update to this tag [default: the latest version, or the current target of its tag]
    #[arg(long, value_name = "TAG")]
    to: Option<String>,
    /// Further grant to give, or all that the component asks for
    #[arg(long = "grant", value_name = "GRANT|all")]
    grants: Vec<String>,
    /// Change the configuration without asking
    #[arg(long)]
    yes: bool,
}

/// The configured component.
struct Current {
    reference: Reference,
    sha256: String,
    grants: Grants,
}

impl Update {
    /// Exit code 1 if nothing was changed although there is something new.
    pub(super) async fn run(self, global: &Global, section: Section) -> anyhow::Result<ExitCode> {
        let file = ConfigFile::open(global)?;
        let current = current(&file.config, section, &self.name)?;
        let context = super::context(global, &file.config)?;
        let mut fetched = self.fetch(&file.config, &current.reference).await?;
        if Some(&fetched.pulled.digest) == current.reference.digest() {
            say(global, &self.name, &current.reference, &[], "nothing to update");
            return Ok(ExitCode::SUCCESS);
        }
        registry::judge(&mut fetched)?;
        let inspection = Inspection::of(context.loader(), &fetched.bytes).await;
        let changes = self
            .compare(&context, &file.config, &current, &fetched, &inspection)
            .await?;
        let granted = grants(
            &self.grants,
            current.grants,
            &self.name,
            &inspection,
            &workspaces(global, &file.config)?,
        )?;
        let missing = inspection.missing(&granted);
        if !missing.is_empty() {
            // The changes come first, then the reason why the update was refused.
            let how = if global.json {
                "nothing was changed"
            } else {
                "update"
            };
            say(global, &self.name, &fetched.pulled.reference, &changes, how);
            let lines: Vec<&str> = missing.iter().map(|wanted| wanted.line.as_str()).collect();
            out::warn(&format!(
                "{} requests more than it is granted: {}; nothing was changed. Grant single requests with --grant, or \
                 all of them with --grant all",
                self.name,
                lines.join(", ")
            ));
            return Ok(ExitCode::FAILURE);
        }
        if !self.is_agreed(global, &fetched.pulled.reference, &changes)? {
            say(
                global,
                &self.name,
                &fetched.pulled.reference,
                &[],
                "nothing was changed",
            );
            return Ok(ExitCode::FAILURE);
        }
        self.write(global, section, &context, &file, (&fetched, granted))
            .await?;
        let shown: &[Change] = if global.json { &changes } else { &[] };
        say(global, &self.name, &fetched.pulled.reference, shown, "updated");
        Ok(ExitCode::SUCCESS)
    }

    /// Stores the component, and writes its source if it loads.
    async fn write(
        &self,
        global: &Global,
        section: Section,
        context: &HostContext,
        file: &ConfigFile,
        (fetched, granted): (&Fetched, Grants),
    ) -> anyhow::Result<()> {
        context.loader().downloads().put_fetched(fetched);
        let entry = Entry {
            section,
            name: self.name.clone(),
            source: fetched.pulled.reference.to_string(),
            sha256: Some(fetched.sha256.clone()),
            grants: granted,
            settings: Vec::new(),
        };
        let after = file.with(&entry, true)?;
        match section {
            Section::Packs => packs::try_out(global, context, &after.config, &self.name).await?,
            Section::Policies => policies::try_out(global, context, &after.config, &self.name).await?,
        }
        file.replace(global, &after)?;
        // The user has just reviewed the component.
        packs::accept(context.database(), &owner(section, &self.name))?;
        Ok(())
    }

    /// Pulls the version to update to.
    async fn fetch(&self, config: &Config, reference: &Reference) -> anyhow::Result<Fetched> {
        let registries = registry::open(config)?;
        let tag = match (&self.to, reference.tag()) {
            (Some(tag), _) => tag.clone(),
            (None, Some(tag)) => {
                let (client, of) = (std::sync::Arc::clone(&registries), reference.clone());
                let tags =
                    tollgate_components::loading::run_registry(move || client.client.tags(&of)).await?;
                versions_after(tag, &tags)
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| tag.to_owned())
            }
            (None, None) => {
                bail!("{reference} is pinned without a tag; select a tag with --to TAG")
            }
        };
        let taken = registries.fetch(&reference.tagged(&tag)?).await;
        match &self.to {
            Some(_) => Ok(taken?),
            // Anyone with push access can publish an untrusted newer version.
            None => taken.with_context(|| {
                format!("{tag} is the newest version, but cannot be used; select another with --to TAG")
            }),
        }
    }

    /// Differences between the configured and the pulled component. The old bytes come from the data directory, or from
    /// the registry by their digest.
    async fn compare(
        &self,
        context: &HostContext,
        config: &Config,
        current: &Current,
        fetched: &Fetched,
        inspection: &Inspection,
    ) -> anyhow::Result<Vec<Change>> {
        let new = registry::describe(&fetched.pulled.reference.to_string(), inspection)?;
        let kept = context.loader().downloads().get(&current.sha256);
        let old = match kept {
            Some(bytes) => bytes,
            None => registry::open(config)?.fetch(&current.reference).await?.bytes,
        };
        let old = Inspection::of(context.loader(), &old).await;
        let old = registry::describe(&current.reference.to_string(), &old)?;
        ensure!(
            old.kind == new.kind && old.name == new.name,
            "{} is the {} {}, and {} is the {} {}; nothing was changed",
            current.reference,
            old.kind,
            old.name,
            fetched.pulled.reference,
            new.kind,
            new.name
        );
        Ok(changes(&old, &new))
    }

    /// Shows the differences and asks, unless the answer was given as a flag.
    fn is_agreed(&self, global: &Global, to: &Reference, changes: &[Change]) -> anyhow::Result<bool> {
        if !global.json {
            say(global, &self.name, to, changes, "update");
        }
        if self.yes {
            return Ok(true);
        }
        ensure!(
            terminal::is_there(),
            "nothing was changed, because tollgate can ask only in a terminal; read the changes, then add --yes"
        );
        let mut stderr = std::io::stderr();
        write!(stderr, "update {}? [y/N] ", self.name)?;
        stderr.flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok(matches!(line.trim(), "y" | "Y" | "yes"))
    }
}

fn owner(section: Section, name: &str) -> String {
    match section {
        Section::Packs => name.to_owned(),
        Section::Policies => tollgate_components::catalog::policy_owner(name),
    }
}

fn current(config: &Config, section: Section, name: &str) -> anyhow::Result<Current> {
    let (table, found) = match section {
        Section::Packs => {
            let pack = config.packs.get(name);
            (
                "packs",
                pack.map(|pack| (pack.source.clone(), pack.sha256.clone(), pack.grants.clone())),
            )
        }
        Section::Policies => {
            let policy = config.policies.get(name);
            let parts = |policy: &tollgate::config::PolicyConfig| {
                (
                    policy.source.clone(),
                    policy.sha256.clone(),
                    policy.grants().clone(),
                )
            };
            ("policies", policy.map(parts))
        }
    };
    let (source, sha256, grants) = found.with_context(|| format!("there is no [{table}.{name}]"))?;
    let source = source.filter(|source| registry::is_reference(source));
    let source = source.with_context(|| {
        format!("[{table}.{name}] does not come from a registry; change it with `tollgate {table} add SOURCE --replace`")
    })?;
    Ok(Current {
        reference: source.parse()?,
        sha256: sha256.unwrap_or_default(),
        grants,
    })
}

fn say(global: &Global, name: &str, to: &Reference, changes: &[Change], how: &str) {
    if global.json {
        out::print_json(
            &json!({ "name": name, "outcome": how, "source": to.to_string(), "changes": changes }),
        );
        return;
    }
    out::print(&format!("{name}: {how}, {to}"));
    if how == "update" && changes.is_empty() {
        out::print("  no tool, request, setting or table changes");
    }
    for change in changes {
        out::print(&format!("  {}: {}", change.what, change.how));
    }
}
