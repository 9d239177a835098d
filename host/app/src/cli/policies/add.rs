//! `tollgate policies add`

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::{Map, Value, json};
use tollgate::config::edit::{Entry, Section};
use tollgate::config::{Config, PolicyConfig, PolicySource, builtin_policy};
use tollgate::host::{HostContext, PackSelection};
use tollgate_components::builtin;
use tollgate_components::catalog::{Inspection, policy_owner};
use tollgate_components::grants::Grants;
use tollgate_gate::core_tools;

use crate::cli::component::{Component, workspaces};
use crate::cli::config_file::ConfigFile;
use crate::cli::flag_help::{with_default, with_details};
use crate::cli::packs::{accept, tell};
use crate::cli::{self, Global, file, out};

/// A policy asks for grants, and you give them. If a grant is missing or the policy would not load with
/// these settings, nothing is changed. Running servers load the policy by themselves, and the policy then evaluates
/// calls.
#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    #[command(flatten)]
    component: Component,
    /// Name of the policy in the configuration [default: the component's name]
    #[arg(long, value_parser = name)]
    name: Option<String>,
    #[arg(
        long,
        help = with_details("policies.*.config", "JSON, @FILE, or - for standard input"),
        value_name = "JSON|@FILE|-"
    )]
    settings: Option<String>,
    #[arg(long, help = with_default("policies.*.tools"), value_delimiter = ',', value_name = "GLOB,…")]
    tools: Vec<String>,
    #[arg(long, help = with_default("policies.*.order"))]
    order: Option<i64>,
    /// Only record the policy's verdicts, and stop nothing
    #[arg(long)]
    audit: bool,
}

impl Add {
    /// Exit code 1 if it asks for more than it is granted.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let file = ConfigFile::open(global)?;
        let context = cli::context(global, &file.config)?;
        let (source, bytes) = self.bytes(&context, &file.config).await?;
        let inspection = Inspection::of(context.loader(), &bytes).await;
        let name = self.name(&source, &inspection)?;
        let Some(grants) = self.granted(
            &file.config,
            &name,
            &inspection,
            &workspaces(global, &file.config)?,
        )?
        else {
            return Ok(ExitCode::FAILURE);
        };
        let entry = Entry {
            section: Section::Policies,
            name: name.clone(),
            source,
            sha256: self
                .component
                .pin(&inspection)
                .filter(|_| self.builtin().is_none()),
            grants,
            settings: self.keys()?,
        };
        let with = file.with(&entry, self.component.replace)?;
        try_out(global, &context, &with.config, &name).await?;
        file.replace(global, &with)?;
        // The user has just reviewed the component.
        accept(context.database(), &policy_owner(&name))?;
        file.print_added(global, Section::Policies, &name, &inspection.sha256);
        Ok(ExitCode::SUCCESS)
    }

    /// Name of the built-in policy, if it is one. Without `builtin:` a file of that name takes precedence.
    fn builtin(&self) -> Option<&str> {
        match PolicySource::parse(&self.component.source) {
            PolicySource::Builtin(own) => Some(own),
            PolicySource::File(name) => {
                let is_own = builtin::policy(name).is_some() && !Path::new(name).exists();
                is_own.then_some(name)
            }
            _ => None,
        }
    }

    /// Bytes of the component, and its source as written in the configuration.
    async fn bytes(&self, context: &HostContext, config: &Config) -> anyhow::Result<(String, Vec<u8>)> {
        let Some(own) = self.builtin() else {
            return self.component.bytes(context, config).await;
        };
        let bytes = builtin_policy(own).map_err(anyhow::Error::msg)?;
        Ok((format!("builtin:{own}"), bytes.to_vec()))
    }

    /// Grants of the policy. `None` if they do not suffice, which is reported.
    fn granted(
        &self,
        config: &Config,
        name: &str,
        inspection: &Inspection,
        workspaces: &[String],
    ) -> anyhow::Result<Option<Grants>> {
        if self.builtin().is_some() {
            // A built-in policy has everything that it requests.
            return Ok(Some(Grants::default()));
        }
        let there = config.policies.get(name).map(PolicyConfig::grants);
        let grants = self.component.granted(there, name, inspection, workspaces)?;
        let missing = inspection.missing(&grants);
        if missing.is_empty() {
            return Ok(Some(grants));
        }
        out::print(&tell(inspection, workspaces));
        out::warn(&format!(
            "{name} requests more than it is granted, so nothing was changed. To add it with all of these grants:"
        ));
        out::warn(&self.component.again("policies", &missing, workspaces));
        Ok(None)
    }

    /// Operator's name for the policy, if the component can be a policy at all.
    fn name(&self, source: &str, inspection: &Inspection) -> anyhow::Result<String> {
        let is_pack = inspection.problems.is_empty() && !inspection.is_policy();
        ensure!(
            !is_pack,
            "{source} is a pack; add it with: tollgate packs add {source} (nothing was changed)"
        );
        match inspection.name().filter(|_| inspection.problems.is_empty()) {
            Some(own) => Ok(self.name.clone().unwrap_or_else(|| own.to_owned())),
            None => bail!(
                "{source} cannot be used as a policy: {}",
                inspection.problems.join("; ")
            ),
        }
    }

    /// Keys set by flags, in addition to source and grants.
    fn keys(&self) -> anyhow::Result<Vec<(&'static str, Value)>> {
        let settings = self.settings.as_deref().map(file::object).transpose();
        let settings: Option<Map<String, Value>> = settings.context("the settings are not a JSON object")?;
        let tools = (!self.tools.is_empty()).then(|| json!(self.tools));
        let keys = [
            ("tools", tools),
            ("order", self.order.map(Value::from)),
            ("mode", self.audit.then(|| json!("audit"))),
            ("config", settings.map(Value::from)),
        ];
        Ok(keys
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect())
    }
}

/// Loads all policies as the next start will, because they share names and tables. Fails if one would not evaluate
/// calls. Packs are not involved.
pub(in crate::cli) async fn try_out(
    global: &Global,
    context: &HostContext,
    config: &Config,
    name: &str,
) -> anyhow::Result<()> {
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let workspaces = cli::workspaces(global, config, &data_dir)?;
    let pack_selection = PackSelection {
        packs: vec![core_tools::PACK.to_owned()],
        ..PackSelection::default()
    };
    let loaded = context.load(config, workspaces, &pack_selection).await?;
    let mut failures = loaded.catalog.policies().failures();
    match failures.find(|failure| failure.policy == name) {
        Some(failure) => bail!("{failure}; nothing was changed"),
        None => Ok(()),
    }
}

fn name(text: &str) -> Result<String, String> {
    let is_name = tollgate_core::text::is_name(text);
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| "a name consists of letters, digits, `-`, `_` and `.`".to_owned())
}
