//! Common parts of adding packs and policies: getting the component, and granting its requests.

use std::path::Path;

use anyhow::{bail, ensure};
use clap::Args;
use tollgate::config::Config;
use tollgate::host::HostContext;
use tollgate_components::builtin;
use tollgate_components::catalog::{Inspection, Wanted};
use tollgate_components::grants::Grants;
use tollgate_components::loading::{self, Fetched};
use tollgate_core::hash::sha256_hex;

use super::flag_help::with_details;
use super::{Global, registry, utf8};

/// A component to be added.
#[derive(Debug, Args)]
pub(super) struct Component {
    /// A path, or an address that starts with https:// or oci://
    pub(super) source: String,
    #[arg(
        long,
        help = with_details("packs.*.sha256", "Required for an https address"),
        value_name = "HEX",
        value_parser = sha256
    )]
    sha256: Option<String>,
    /// Grant to give: workspaces=NAME,… process=NAME,… budgets=NAME,… ledger artifacts, or all that the
    /// component asks for
    #[arg(long = "grant", value_name = "GRANT|all")]
    grants: Vec<String>,
    /// Replace the source, the hash and the grants of an existing entry
    #[arg(long)]
    pub(super) replace: bool,
    /// Do not pin the hash: each start loads the current file, for a component that you are building
    #[arg(long)]
    pub(super) no_pin: bool,
}

impl Component {
    /// Bytes of the component, and its source as written in the configuration.
    pub(super) async fn bytes(
        &self,
        context: &HostContext,
        config: &Config,
    ) -> anyhow::Result<(String, Vec<u8>)> {
        check_scheme(&self.source)?;
        let is_url = self.source.contains("://");
        if !is_url {
            let path = std::path::absolute(&self.source)?;
            let bytes = loading::read(&path)
                .map_err(|why| anyhow::anyhow!("{}: {why}{}", path.display(), builtin_meant(&self.source)))?;
            self.check_hash(&bytes)?;
            return Ok((utf8(&path)?, bytes));
        }
        ensure!(!self.no_pin, "a component from another machine is always pinned");
        if registry::is_reference(&self.source) {
            let mut fetched = registry::fetch(config, &self.source).await?;
            self.check_hash(&fetched.bytes)?;
            registry::judge(&mut fetched)?;
            context.loader().downloads().put_fetched(&fetched);
            return Ok((fetched.pulled.reference.to_string(), fetched.bytes));
        }
        if let Some(sha256) = &self.sha256 {
            let bytes = context
                .loader()
                .downloads()
                .get_or_fetch(&self.source, sha256)
                .await?;
            return Ok((self.source.clone(), bytes));
        }
        let found = sha256_hex(&loading::fetch(&self.source).await?);
        bail!(
            "the component's SHA-256 is {found}; if its author published the same hash, add --sha256 {found} (nothing \
             was changed)"
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
            "the component's SHA-256 is {found}, which differs from --sha256; nothing was changed"
        );
        Ok(())
    }

    /// Hash to pin, if any.
    pub(super) fn pin(&self, inspection: &Inspection) -> Option<String> {
        (!self.no_pin).then(|| inspection.sha256.clone())
    }

    /// Grants from the flags, and from the table in the file.
    pub(super) fn granted(
        &self,
        there: Option<&Grants>,
        name: &str,
        inspection: &Inspection,
        workspaces: &[String],
    ) -> anyhow::Result<Grants> {
        let there = there.filter(|_| self.replace).cloned().unwrap_or_default();
        grants(&self.grants, there, name, inspection, workspaces)
    }

    /// Flags that grant what is missing.
    pub(super) fn again(&self, command: &str, missing: &[Wanted], workspaces: &[String]) -> String {
        let lines: Vec<String> = missing
            .iter()
            .map(|wanted| suggested(&wanted.line, workspaces))
            .collect();
        let flags = lines.iter().map(|line| {
            let flag = line
                .trim_start_matches("grants.")
                .replace([' ', '"', '[', ']'], "");
            format!(" --grant {}", flag.trim_end_matches("=true"))
        });
        let flags: String = flags.collect();
        format!("  tollgate {command} add {}{flags}", self.source)
    }
}

/// Grants from flags, added to the existing ones.
pub(super) fn grants(
    wanted: &[String],
    there: Grants,
    name: &str,
    inspection: &Inspection,
    workspaces: &[String],
) -> anyhow::Result<Grants> {
    let mut grants = there;
    let mut flags = Grants::default();
    let mut problems = Vec::new();
    for flag in wanted.iter().filter(|flag| *flag != "all") {
        problems.extend(flags.add(flag).err());
        problems.extend(grants.add(flag).err());
    }
    problems.dedup();
    problems.extend(unknown(&flags, workspaces));
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
    if wanted.iter().any(|flag| flag == "all") {
        inspection.grant_all(&mut grants);
    }
    Ok(grants)
}

/// Names of the workspaces that a server would have.
pub(super) fn workspaces(global: &Global, config: &Config) -> anyhow::Result<Vec<String>> {
    let registered = super::registrations(global, config)?;
    Ok(registered
        .into_iter()
        .map(|workspace| workspace.info.name)
        .collect())
}

/// Granted workspaces that no server would have.
fn unknown(flags: &Grants, workspaces: &[String]) -> Vec<String> {
    let named = flags.workspaces.iter().flatten();
    let unknown = named.filter(|name| *name != "*" && !workspaces.contains(name));
    unknown
        .map(|name| {
            format!(
                "there is no workspace {name}{}; add [workspaces.{name}] to the configuration, or --workspace {name}=DIR",
                super::there_are(name, workspaces.iter())
            )
        })
        .collect()
}

/// Flag that grants a request. Names the existing workspaces where any would do.
pub(super) fn suggested(line: &str, workspaces: &[String]) -> String {
    const QUOTED_DEFAULT: &str = "\"default\"";
    if !line.starts_with("grants.workspaces") || workspaces.is_empty() {
        return line.to_owned();
    }
    let quoted: Vec<String> = workspaces.iter().map(|name| format!("{name:?}")).collect();
    match quoted.iter().any(|name| name == QUOTED_DEFAULT) {
        true => line.to_owned(),
        false => line.replace(QUOTED_DEFAULT, &quoted.join(", ")),
    }
}

/// Fetches a component for inspection: a file, an address, a registry reference, or a built-in one by name. Nothing is
/// stored.
pub(super) async fn look_at(global: &Global, source: &str) -> anyhow::Result<(Vec<u8>, Option<Fetched>)> {
    check_scheme(source)?;
    if registry::is_reference(source) {
        let fetched = registry::fetch(&Config::load(global.config.as_deref())?, source).await?;
        return Ok((fetched.bytes.clone(), Some(fetched)));
    }
    if source.contains("://") {
        return Ok((loading::fetch(source).await?, None));
    }
    let own = source.strip_prefix("builtin:").unwrap_or(source);
    match loading::read(Path::new(source)) {
        Ok(bytes) => Ok((bytes, None)),
        Err(why) => match builtin::policy(own).or_else(|| builtin::component(own)) {
            Some(bytes) => Ok((bytes.to_vec(), None)),
            None => bail!(
                "{source}: {why}, and no built-in component has this name{}",
                builtin_meant(own)
            ),
        },
    }
}

/// Refuses addresses with unsupported schemes.
pub(super) fn check_scheme(source: &str) -> anyhow::Result<()> {
    let Some((scheme, rest)) = source.split_once("://") else {
        return Ok(());
    };
    ensure!(
        matches!(scheme, "https" | "oci"),
        "{source} cannot be downloaded: components come over https or from an OCI registry; write https://{rest} or \
         oci://{rest}, or download the component and pass its path"
    );
    Ok(())
}

/// Built-in component that may have been meant, as the end of a sentence.
pub(super) fn builtin_meant(name: &str) -> String {
    let all = || builtin::policies().chain(builtin::names());
    match tollgate_core::text::nearest(name, all()) {
        Some(near) => format!("; did you mean the built-in {near}?"),
        None => String::new(),
    }
}

fn sha256(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    is_hash
        .then(|| text.to_ascii_lowercase())
        .ok_or_else(|| "a SHA-256 is 64 hex digits".to_owned())
}
