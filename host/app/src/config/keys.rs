//! Every key of the configuration in one table, which checks files and explains itself.

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A table of the keys that follow it.
    Table,
    /// A list of tables, each with the keys that follow.
    Tables,
    /// A table whose keys are names the operator chooses.
    Names,
    /// A table with any content, checked by whom it is for.
    Free,
    Bool,
    /// A length of time such as `30m` or `24h`, of a second to a year.
    Span,
    /// A whole number from 1 to the given one.
    Count(i64),
    /// A table of whole numbers from 0, under names the operator chooses.
    Budgets,
    /// Text, not empty.
    Text,
    /// `ADDRESS:PORT`.
    Address,
    /// An https address, or an http one.
    Url,
    /// `https://HOST:PORT` of a web page.
    Origins,
    /// 64 hex digits.
    Sha256,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of globs.
    Globs,
    /// A list of relative paths, directories ending with a slash.
    Prefixes,
    /// A program and its arguments.
    Argv,
}

/// One key. `*` stands for a name the operator chooses.
pub(super) struct Key {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
}

const fn key(path: &'static str, kind: Kind) -> Key {
    Key { path, kind }
}

/// All keys.
pub(super) const KEYS: &[Key] = &[
    key("data_dir", Kind::Text),
    key("cache_dir", Kind::Text),
    key("server", Kind::Table),
    key("server.http", Kind::Address),
    key("server.allowed_hosts", Kind::Texts),
    key("server.allowed_origins", Kind::Origins),
    key("server.auth", Kind::Table),
    key("server.auth.token_file", Kind::Text),
    key("server.auth.issuer", Kind::Url),
    key("server.auth.resource", Kind::Url),
    key("server.auth.audience", Kind::Texts),
    key("server.auth.scopes", Kind::Texts),
    key("server.auth.jwks", Kind::Text),
    key("server.limits", Kind::Table),
    key("server.limits.max_connections", Kind::Count(100_000)),
    key("server.limits.max_connections_per_peer", Kind::Count(100_000)),
    key("server.limits.max_sessions", Kind::Count(100_000)),
    key("server.limits.max_in_flight", Kind::Count(100_000)),
    key("server.limits.max_in_flight_per_client", Kind::Count(100_000)),
    key("server.limits.requests_per_sec", Kind::Count(1_000_000)),
    key("server.limits.body_kib", Kind::Count(16 << 10)),
    key("server.limits.header_kib", Kind::Count(1 << 10)),
    key("server.limits.request_sec", Kind::Count(3600)),
    key("server.limits.idle_session_sec", Kind::Count(7 * 86_400)),
    key("server.limits.drain_sec", Kind::Count(86_400)),
    key("server.tier", Kind::OneOf(&["core", "standard", "full"])),
    key("server.read_only", Kind::Bool),
    key("server.compact", Kind::Bool),
    key("server.output_schemas", Kind::Bool),
    key("envelope", Kind::Table),
    key("envelope.require", Kind::OneOf(&["never", "writes", "always"])),
    key("envelope.auto", Kind::Bool),
    key("envelope.max_mutations", Kind::Count(i64::MAX)),
    key("envelope.max_test_runs", Kind::Count(i64::MAX)),
    key("envelope.max_duration_sec", Kind::Count(i64::MAX)),
    key("envelope.max_edits", Kind::Count(i64::MAX)),
    key("envelope.budgets", Kind::Budgets),
    key("envelope.ceiling", Kind::Table),
    key("envelope.ceiling.max_mutations", Kind::Count(i64::MAX)),
    key("envelope.ceiling.max_test_runs", Kind::Count(i64::MAX)),
    key("envelope.ceiling.max_duration_sec", Kind::Count(i64::MAX)),
    key("envelope.ceiling.max_edits", Kind::Count(i64::MAX)),
    key("envelope.window", Kind::Tables),
    key("envelope.window.*", Kind::Table),
    key(
        "envelope.window.*.by",
        Kind::OneOf(&["workspace", "actor", "client", "everyone"]),
    ),
    key("envelope.window.*.per", Kind::Span),
    key("envelope.window.*.max_mutations", Kind::Count(100_000)),
    key("envelope.window.*.max_test_runs", Kind::Count(100_000)),
    key("envelope.window.*.max_envelopes", Kind::Count(100_000)),
    key("ledger", Kind::Table),
    key("ledger.retention_days", Kind::Count(36_500)),
    key("ledger.retention_envelopes", Kind::Count(1_000_000)),
    key("ledger.mirror", Kind::Bool),
    key("ledger.reads", Kind::Bool),
    key("artifacts", Kind::Table),
    key("artifacts.enabled", Kind::Bool),
    key("artifacts.ttl_hours", Kind::Count(87_600)),
    key("artifacts.max_mib", Kind::Count(1 << 20)),
    key("artifacts.max_artifact_mib", Kind::Count(1 << 10)),
    key("artifacts.logs", Kind::Bool),
    key("artifacts.diffs", Kind::Bool),
    key("artifacts.arguments", Kind::Bool),
    key("artifacts.results", Kind::Bool),
    key("telemetry", Kind::Table),
    key("telemetry.otlp", Kind::Url),
    key("telemetry.headers", Kind::Free),
    key("telemetry.interval_sec", Kind::Count(3600)),
    key("telemetry.service_name", Kind::Text),
    key("telemetry.traces", Kind::Bool),
    key("telemetry.metrics", Kind::Bool),
    key("workspaces", Kind::Names),
    key("workspaces.*", Kind::Table),
    key("workspaces.*.path", Kind::Text),
    key("workspaces.*.write", Kind::Prefixes),
    key("workspaces.*.git", Kind::OneOf(&["none", "read", "write"])),
    key("workspaces.*.repository", Kind::Text),
    key("workspaces.*.git_config", Kind::Texts),
    key("workspaces.*.tests", Kind::Names),
    key("workspaces.*.tests.*", Kind::Argv),
    key("packs", Kind::Names),
    key("packs.*", Kind::Table),
    key("packs.*.enabled", Kind::Bool),
    key("packs.*.source", Kind::Text),
    key("packs.*.sha256", Kind::Sha256),
    key("packs.*.exclude", Kind::Globs),
    key("packs.*.grants", Kind::Table),
    key("packs.*.grants.workspaces", Kind::Texts),
    key("packs.*.grants.process", Kind::Texts),
    key("packs.*.grants.ledger", Kind::Bool),
    key("packs.*.grants.artifacts", Kind::Bool),
    key("packs.*.grants.charges", Kind::Bool),
    key("packs.*.grants.budgets", Kind::Texts),
    key("packs.*.grants.client", Kind::Texts),
    key("packs.*.limits", Kind::Table),
    key("packs.*.limits.memory_mib", Kind::Count(4096)),
    key("packs.*.limits.storage_mib", Kind::Count(1 << 20)),
    key("packs.*.limits.read_ms", Kind::Count(600_000)),
    key("packs.*.limits.write_ms", Kind::Count(600_000)),
    key("packs.*.limits.run_ms", Kind::Count(86_400_000)),
    key("packs.*.config", Kind::Free),
    key("policies", Kind::Names),
    key("policies.*", Kind::Table),
    key("policies.*.source", Kind::Text),
    key("policies.*.sha256", Kind::Sha256),
    key("policies.*.mode", Kind::OneOf(&["enforce", "audit"])),
    key("policies.*.fail_open", Kind::Bool),
    key("policies.*.phase", Kind::OneOf(&["request", "response", "both"])),
    key("policies.*.tools", Kind::Globs),
    key("policies.*.order", Kind::Count(1_000_000)),
    key("policies.*.grants", Kind::Table),
    key("policies.*.grants.workspaces", Kind::Texts),
    key("policies.*.grants.ledger", Kind::Bool),
    key("policies.*.limits", Kind::Table),
    key("policies.*.limits.memory_mib", Kind::Count(4096)),
    key("policies.*.limits.storage_mib", Kind::Count(1 << 20)),
    key("policies.*.limits.time_ms", Kind::Count(10_000)),
    key("policies.*.config", Kind::Free),
];

/// What a table must have.
pub(super) const REQUIRED: &[(&str, &str)] = &[("workspaces.*", "path"), ("envelope.window.*", "per")];

/// The key of a path, if there is one.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The keys directly in a table, without its path.
pub(super) fn children(path: &str) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |key| {
        let rest = match path {
            "" => key.path,
            _ => key.path.strip_prefix(path)?.strip_prefix('.')?,
        };
        (!rest.contains('.')).then_some(rest)
    })
}
