//! Facts about the host that only the surrounding program knows.

/// Facts about a host that cost nothing to find.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Its version.
    pub version: String,
    /// Id of the host process.
    pub host_id: String,
    /// Its data directory.
    pub data_dir: String,
    /// The configuration file, if there is one.
    pub configuration: Option<String>,
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Ids of the hosts that work on the data directory.
    pub hosts: Vec<String>,
    /// Names and paths of the registered workspaces.
    pub workspaces: Vec<(String, String)>,
    /// The packs.
    pub packs: Vec<PackRow>,
    /// Policies, in order of evaluation.
    pub policies: Vec<PolicyRow>,
    /// Problems of packs and policies.
    pub findings: Vec<Finding>,
}

/// A pack.
#[derive(Debug, Clone, Default)]
pub struct PackRow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Number of tools.
    pub tools: usize,
    /// Origin of its code.
    pub source: String,
    /// SHA-256 of its code.
    pub sha256: String,
    /// Description that the pack gives of itself.
    pub summary: String,
}

/// A policy of the configuration.
#[derive(Debug, Clone, Default)]
pub struct PolicyRow {
    /// Its name in the configuration.
    pub name: String,
    /// Place in the order.
    pub order: i64,
    /// `enforce` or `audit`.
    pub mode: String,
    /// True if calls that the policy cannot evaluate are admitted.
    pub fail_open: bool,
    /// Tools that the policy evaluates.
    pub judges: String,
    /// Description that the policy gives of itself, or a note that it is not loaded.
    pub summary: String,
    /// False if the policy denies everything because its code is missing.
    pub is_loaded: bool,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Works, but not permanently or not for everyone.
    Warning,
    /// Something does not work.
    Problem,
}

/// Finding about one thing.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Subject of the finding, such as a tool or a table.
    pub about: String,
    /// Description.
    pub what: String,
    /// Remedy.
    pub remedy: Option<String>,
}

/// Source of facts about the host.
pub trait HostView: Send + Sync + 'static {
    /// Facts that cost nothing.
    fn facts(&self) -> HostFacts;
    /// Checks the database and verifies the whole chain of the ledger, which takes time.
    fn check(&self) -> Vec<Finding>;
}
