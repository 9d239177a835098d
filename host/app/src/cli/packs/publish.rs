//! `tollgate packs publish`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate_components::catalog::Inspection;
use tollgate_components::loading;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_registry::{Publication, Reference, SigningKey};
use tollgate_sdk::Timestamp;

use crate::cli::{self, Global, file, out, registry};

/// Publishes a pack or a policy in an OCI registry, in the layout of the CNCF, which `wkg` and `oras` read. The
/// published grants are those that the component asks for. An existing tag is not moved.
#[derive(Debug, Args)]
pub(in crate::cli) struct Publish {
    /// The component's file
    file: PathBuf,
    /// Address of the version: oci://HOST/NAME:TAG
    reference: String,
    /// Licence, as an SPDX expression such as MIT OR Apache-2.0
    #[arg(long, value_name = "SPDX", visible_alias = "license")]
    licence: Option<String>,
    /// Address of the source
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Settings to suggest: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    settings: Option<String>,
    /// Sign with this private key: P-256 or Ed25519, in PEM without a password
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// Move the tag if it exists
    #[arg(long)]
    overwrite: bool,
}

impl Publish {
    /// Exit code 1 if the component would not be taken by a host like this one.
    pub(in crate::cli) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let reference: Reference = self.reference.parse()?;
        let bytes =
            loading::read(&self.file).map_err(|why| anyhow::anyhow!("{}: {why}", self.file.display()))?;
        let config = Config::load(global.config.as_deref())?;
        let inspection = Inspection::of(cli::context(global, &config)?.loader(), &bytes).await;
        let publication = self.publication(&inspection)?;
        let key = self.sign_key.as_deref().map(|path| {
            let pem = file::read(path)?;
            ensure!(!pem.is_empty(), "{} is missing or empty", path.display());
            Ok(SigningKey::from_pem(&path.display().to_string(), &pem)?)
        });
        let key = key.transpose()?;
        let registries = registry::open(&config)?;
        let client = Arc::clone(&registries);
        let published = loading::run_registry(move || {
            client
                .client
                .publish(&reference, &bytes, &publication, key.as_ref())
        })
        .await?;
        let pinned = published.reference.to_string();
        if global.json {
            out::print_json(&json!({
                "published": pinned,
                "sha256": inspection.sha256,
                "signed": published.is_signed,
                "was_there": published.is_same,
            }));
        } else {
            let how = if published.is_same {
                "already published"
            } else {
                "published"
            };
            let signed = if published.is_signed {
                ", signed by this key"
            } else {
                ""
            };
            out::print(&format!("{how}: {pinned}{signed}"));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn publication(&self, inspection: &Inspection) -> anyhow::Result<Publication> {
        let shown = self.file.display().to_string();
        let (Some(anatomy), true) = (&inspection.anatomy, inspection.problems.is_empty()) else {
            bail!("{shown} is not published: {}", inspection.problems.join("; "));
        };
        let described = registry::describe(&shown, inspection)?;
        let settings = self.settings.as_deref().map(file::object).transpose();
        let settings = settings.context("the suggested settings are not a JSON object")?;
        let imports = anatomy.capabilities.iter().chain(&anatomy.other_imports);
        Ok(Publication {
            kind: described.kind,
            name: described.name,
            version: described.version,
            description: registry::summary(inspection),
            exports: anatomy.exports.clone(),
            imports: imports.cloned().collect(),
            grants: described.wants,
            settings: settings.map(Value::Object),
            licence: self.licence.clone(),
            source: self.source.clone(),
            created: Timestamp::from_ms(SystemClock.now_ms()).to_string(),
            overwrite: self.overwrite,
        })
    }
}
