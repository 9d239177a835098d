//! The `[policies.NAME]` tables, and a check of each table's source.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_components::builtin;
use tollgate_components::grants::Grants;
use tollgate_components::loading::Origin;
use tollgate_components::policies::{self, Mode, Phase};
use tollgate_sandbox::Limits;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::Problem;
use super::packs::unpinned;
use super::{HTTPS, OCI};

/// Prefix of the source of a built-in policy.
const BUILTIN: &str = "builtin:";
/// Default position of a policy.
const ORDER: i64 = 100;

/// One `[policies.NAME]` table.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// `builtin:NAME`, or a path. Default the built-in policy of the same name.
    pub source: Option<String>,
    /// Hash that its bytes must have.
    pub sha256: Option<String>,
    mode: Mode,
    fail_open: bool,
    phase: Phase,
    tools: Vec<String>,
    order: Option<i64>,
    grants: Grants,
    limits: LimitsConfig,
    config: Map<String, Value>,
}

/// One `[policies.NAME.limits]` table. Absent values are the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsConfig {
    memory_mib: Option<usize>,
    storage_mib: Option<u64>,
    time_ms: Option<u64>,
}

/// Every policy whose table does not lead to a component.
pub(super) fn check(text: &str, whole: &DeTable<'_>) -> Vec<Problem> {
    let Some(DeValue::Table(policies)) = whole.get("policies").map(Spanned::get_ref) else {
        return Vec::new();
    };
    let problems = policies.iter().filter_map(|(name, policy)| {
        let DeValue::Table(table) = policy.get_ref() else {
            return None;
        };
        let source = table.get("source");
        let at = source.map_or(name.span().start, |source| source.span().start);
        // The check of values reports anything that is not text.
        let source = match source {
            Some(source) => Some(source.get_ref().as_str()?),
            None => None,
        };
        let problem = misplaced(name.get_ref(), source, table.contains_key("sha256"))?;
        Some(Problem::at(text, at, problem))
    });
    problems.collect()
}

/// Reason why a policy's source is not valid, if it is not.
fn misplaced(name: &str, source: Option<&str>, is_pinned: bool) -> Option<String> {
    let all = || builtin::policies().collect::<Vec<_>>().join(", ");
    let known = |name: &str| builtin::policy(name).is_some();
    match source {
        None if known(name) => None,
        None => Some(format!(
            "policies.{name} names no source and is not built in; add source = \"PATH\", or \"builtin:NAME\" of {}",
            all()
        )),
        Some(url) if url.starts_with("http://") => {
            Some(format!("policies.{name}.source must start with {HTTPS}, or be a path"))
        }
        Some(url) if url.starts_with(HTTPS) => (!is_pinned).then(|| {
            format!(
                "policies.{name} comes from another machine and needs a sha256, which `tollgate policies add {}` prints",
                tollgate_core::text::clean(url)
            )
        }),
        Some(source) if source.starts_with(OCI) => unpinned(&format!("policies.{name}"), source, is_pinned),
        Some(source) => {
            let own = source.strip_prefix(BUILTIN)?;
            (!known(own)).then(|| format!("there is no built-in policy {own}; there are {}", all()))
        }
    }
}

impl PolicyConfig {
    /// Resolves a relative path against the configuration's folder.
    pub(super) fn start_from(&mut self, base: &Path) {
        if let Some(path) = self.path() {
            self.source = Some(base.join(path).display().to_string());
        }
    }

    /// Path of the policy's file, if it comes from one.
    pub(super) fn path(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        let is_path = !source.starts_with(BUILTIN) && !source.starts_with(HTTPS) && !source.starts_with(OCI);
        is_path.then_some(source)
    }

    /// Hash of the policy's component, if it comes from another machine.
    pub fn downloaded(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        self.sha256
            .as_deref()
            .filter(|_| source.starts_with(HTTPS) || source.starts_with(OCI))
    }

    /// Grants of the policy.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Source to load.
    pub fn source(&self, name: &str, origin: Origin) -> policies::Source {
        let default = policies::LIMITS;
        let time = self.limits.time_ms.map_or(default.read, Duration::from_millis);
        policies::Source {
            name: name.to_owned(),
            origin,
            sha256: self.sha256.clone(),
            mode: self.mode,
            fail_open: self.fail_open,
            phase: self.phase,
            tools: self.tools.clone(),
            order: self.order.unwrap_or(ORDER),
            grants: self.grants.clone(),
            limits: Limits {
                memory: self.limits.memory_mib.map_or(default.memory, |mib| mib << 20),
                storage: self.limits.storage_mib.map_or(default.storage, |mib| mib << 20),
                read: time,
                write: time,
                run: time,
            },
            config: self.config.clone(),
        }
    }
}
