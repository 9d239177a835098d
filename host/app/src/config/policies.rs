//! The `[policies.NAME]` tables, and a check of each table's source.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_components::grants::Grants;
use tollgate_components::loading::Origin;
use tollgate_components::policies::{self, JudgingLimits, Mode, Phase};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::Problem;
use super::packs::sha256;
use super::policy_source::PolicySource;

/// Default position of a policy.
const DEFAULT_ORDER: i64 = 100;

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
            Some(source) => PolicySource::parse(source.get_ref().as_str()?),
            None => PolicySource::Unnamed,
        };
        let problem = source.origin(name.get_ref(), sha256(table)).err()?;
        Some(Problem::at(text, at, problem))
    });
    problems.collect()
}

impl LimitsConfig {
    /// The limits, with defaults for absent keys.
    fn limits(&self) -> JudgingLimits {
        let default = JudgingLimits::default();
        JudgingLimits {
            memory: self.memory_mib.map_or(default.memory, |mib| mib << 20),
            time: self.time_ms.map_or(default.time, Duration::from_millis),
            storage: self.storage_mib.map_or(default.storage, |mib| mib << 20),
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
        match self.place() {
            PolicySource::File(path) => Some(path),
            _ => None,
        }
    }

    /// Hash of the policy's component, if it comes from another machine.
    pub fn downloaded(&self) -> Option<&str> {
        let is_elsewhere = matches!(self.place(), PolicySource::Https(_) | PolicySource::Oci(_));
        self.sha256.as_deref().filter(|_| is_elsewhere)
    }

    /// Origin of the policy's bytes. Fails with the reason why there is none, which the check of the file has reported.
    pub fn origin(&self, name: &str) -> Result<Origin, String> {
        self.place().origin(name, self.sha256.as_deref())
    }

    /// Grants of the policy.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Source to load.
    pub fn source(&self, name: &str, origin: Origin) -> policies::Source {
        policies::Source {
            name: name.to_owned(),
            origin,
            sha256: self.sha256.clone(),
            mode: self.mode,
            fail_open: self.fail_open,
            phase: self.phase,
            tools: self.tools.clone(),
            order: self.order.unwrap_or(DEFAULT_ORDER),
            grants: self.grants.clone(),
            limits: self.limits.limits(),
            config: self.config.clone(),
        }
    }

    /// Place that the policy comes from.
    fn place(&self) -> PolicySource<'_> {
        let source = self.source.as_deref();
        source.map_or(PolicySource::Unnamed, PolicySource::parse)
    }
}
