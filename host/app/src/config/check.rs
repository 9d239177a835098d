//! Check of a configuration file against the table of keys, reporting every mistake at once.

use std::fmt;

use tollgate_core::text::is_name;
use tollgate_core::{clock, envelope};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Kind, join};
use super::{packs, policies, telemetry};

/// A mistake with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1.
    pub column: usize,
    /// Message that says what is wrong and what would be valid.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl Problem {
    /// A mistake that the TOML parser found.
    pub(crate) fn from_toml(text: &str, err: &toml::de::Error) -> Problem {
        let at = err.span().map_or(0, |span| span.start);
        Problem::at(text, at, err.message().to_owned())
    }

    pub(crate) fn at(text: &str, offset: usize, message: String) -> Problem {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Problem {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

/// Every mistake in a configuration's text, in order.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut checker = Checker {
        text,
        problems: errors.iter().map(|err| Problem::from_toml(text, err)).collect(),
    };
    let broken = checker.problems.clone();
    checker.table("", "", table.get_ref());
    checker.problems.extend(packs::check(text, table.get_ref()));
    checker.problems.extend(policies::check(text, table.get_ref()));
    checker.problems.extend(telemetry::check(text, table.get_ref()));
    checker
        .problems
        .retain(|problem| broken.contains(problem) || !follows_broken_header(text, &broken, problem.line));
    checker
        .problems
        .sort_by_key(|problem| (problem.line, problem.column));
    checker.problems
}

/// Returns whether the table of a line is unknown, because the header above it is malformed.
fn follows_broken_header(text: &str, broken: &[Problem], line: usize) -> bool {
    let above = text.lines().take(line.saturating_sub(1)).enumerate();
    let header = above
        .filter(|(_, line)| line.trim_start().starts_with('['))
        .last();
    header.is_some_and(|(number, _)| broken.iter().any(|problem| problem.line == number + 1))
}

struct Checker<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn report(&mut self, at: usize, message: String) {
        self.problems.push(Problem::at(self.text, at, message));
    }

    /// Checks a table. `pattern` is its path in the table of keys, `path` its path in the file.
    fn table(&mut self, pattern: &str, path: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let at = name.span().start;
            let name = name.get_ref().as_ref();
            let pattern_of_value = join(pattern, name);
            match keys::find(&pattern_of_value) {
                Some(key) => self.value(&pattern_of_value, &join(path, name), key.kind, value),
                None => self.report(at, unknown(pattern, &join(path, name), name)),
            }
        }
    }

    /// Checks a table whose keys are names. The same rules apply below each name.
    fn names(&mut self, pattern: &str, path: &str, table: &DeTable<'_>) {
        let pattern = join(pattern, "*");
        let kind = keys::find(&pattern).map_or(Kind::Free, |key| key.kind);
        for (name, value) in table {
            // The name of a registry is its host, with an optional port.
            let is_host = |host: &str| {
                format!("oci://{host}/x:1")
                    .parse::<tollgate_registry::Reference>()
                    .is_ok()
            };
            let is_registry = pattern == "registries.*" && is_host(name.get_ref());
            if !is_name(name.get_ref()) && !is_registry {
                self.report(
                    name.span().start,
                    format!(
                        "{:?} is not a valid name: use at most 64 letters, digits, `-`, `_` and `.`",
                        name.get_ref()
                    ),
                );
            }
            self.value(&pattern, &join(path, name.get_ref()), kind, value);
        }
    }

    fn budgets(&mut self, path: &str, table: &DeTable<'_>) {
        for (name, units) in table {
            let path = join(path, name.get_ref());
            if let Err(wanted) = envelope::check_budget_name(name.get_ref()) {
                self.report(name.span().start, format!("{path}: {wanted}"));
            }
            let is_units =
                matches!(units.get_ref(), DeValue::Integer(number) if is_whole(number.as_str(), 0, i64::MAX));
            if !is_units {
                self.report(
                    units.span().start,
                    format!("{path} must be a whole number, at least 0"),
                );
            }
        }
    }

    /// Reports required keys that are missing.
    fn required(&mut self, pattern: &str, path: &str, at: usize, table: &DeTable<'_>) {
        for name in keys::needed(pattern) {
            if !table.contains_key(name) {
                self.report(at, format!("{path} needs a {name}"));
            }
        }
    }

    fn value(&mut self, pattern: &str, path: &str, kind: Kind, value: &Spanned<DeValue<'_>>) {
        let at = value.span().start;
        match (kind, value.get_ref()) {
            (Kind::Table, DeValue::Table(table)) => {
                self.required(pattern, path, at, table);
                self.table(pattern, path, table);
            }
            (Kind::Tables, DeValue::Array(tables)) => {
                for (number, table) in tables.iter().enumerate() {
                    let path = format!("{path}[{number}]");
                    self.value(&join(pattern, "*"), &path, Kind::Table, table);
                }
            }
            (Kind::Names, DeValue::Table(table)) => self.names(pattern, path, table),
            (Kind::Budgets, DeValue::Table(table)) => self.budgets(path, table),
            (Kind::Free, DeValue::Table(_)) | (Kind::Bool, DeValue::Boolean(_)) => {}
            (kind, value) => {
                if let Some(wanted) = mismatch(kind, value) {
                    self.report(at, format!("{path} must be {wanted}"));
                }
            }
        }
    }
}

/// Expected type of a value, if the value has another type.
fn mismatch(kind: Kind, value: &DeValue<'_>) -> Option<String> {
    match (kind, value) {
        (Kind::Text, DeValue::String(text)) if !text.is_empty() => None,
        (Kind::Count(max), DeValue::Integer(number)) if is_whole(number.as_str(), 1, max) => None,
        (Kind::Span, DeValue::String(text)) if is_span(text) => None,
        (Kind::Address, DeValue::String(text)) => super::address(text)
            .err()
            .map(|why| format!("{}: {why}", kind.wanted())),
        (Kind::Url, DeValue::String(text)) if is_url(text) => None,
        (Kind::Origins, DeValue::Array(items)) if items.iter().all(is_origin) => None,
        (Kind::Sha256, DeValue::String(text)) if is_sha256(text) => None,
        (Kind::OneOf(options), DeValue::String(text)) if options.contains(&text.as_ref()) => None,
        (Kind::Texts, DeValue::Array(items)) if all_texts(items) => None,
        (Kind::Argv, DeValue::Array(items)) if is_argv(items) => None,
        (Kind::Prefixes, DeValue::Array(items)) if items.iter().all(is_prefix) => None,
        (Kind::Globs, DeValue::Array(items)) if all_texts(items) => items.iter().find_map(|item| {
            let text = item.get_ref().as_str()?;
            globset::Glob::new(text)
                .err()
                .map(|err| format!("a list of globs: {err}"))
        }),
        (kind, _) => Some(kind.wanted().into_owned()),
    }
}

fn is_whole(digits: &str, min: i64, max: i64) -> bool {
    digits
        .replace('_', "")
        .parse::<i64>()
        .is_ok_and(|number| (min..=max).contains(&number))
}

fn is_span(text: &str) -> bool {
    let year_ms = 52 * 7 * 86_400_000;
    clock::span_ms(text).is_some_and(|span_ms| (1_000..=year_ms).contains(&span_ms))
}

pub(super) fn is_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "https" | "http") && url.host_str().is_some() && url.fragment().is_none()
    })
}

fn is_origin(item: &Spanned<DeValue<'_>>) -> bool {
    item.get_ref().as_str().is_some_and(is_url)
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_argv(items: &[Spanned<DeValue<'_>>]) -> bool {
    let program = items.first().and_then(|item| item.get_ref().as_str());
    program.is_some_and(|program| !program.is_empty()) && all_texts(items)
}

fn is_prefix(item: &Spanned<DeValue<'_>>) -> bool {
    item.get_ref()
        .as_str()
        .is_some_and(|text| !text.is_empty() && tollgate_sdk::tree::path(text).is_ok())
}

fn all_texts(items: &[Spanned<DeValue<'_>>]) -> bool {
    items.iter().all(|item| item.get_ref().is_str())
}

fn unknown(pattern: &str, path: &str, name: &str) -> String {
    match tollgate_core::text::nearest(name, keys::children(pattern)) {
        Some(near) => format!("there is no key {path}; did you mean {near}?"),
        None => {
            let legal: Vec<&str> = keys::children(pattern).collect();
            format!("there is no key {path}; valid keys here: {}", legal.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect;
    use tollgate_sandbox::Limits;

    use super::super::Config;
    use super::*;

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        let text = r#"data_dir = 3
[server]
teir = "core"
http = "localhost:80"
auth = { issuer = "id.example", scopes = "all", tokens = "x" }
allowed_origins = ["app.example"]
limits = { max_sessions = 0 }
tier = "all"
[envelope]
budgets = { approvals = -1, Test = 1, mutations = 2 }
[packs.mine]
source = ""
exclude = ["["]
colour = "red"
[packs.mine.limits]
memory_mib = 0
read_ms = "fast"
[packs.mine.grants]
process = "cargo"
[workspaces."a b"]
path = "/srv"
[workspaces.main]
write = [".gsd/", "../x"]
git = "push"
tests.default = []
tests.lint = "cargo clippy"
"#;
        let found: Vec<String> = check(text).iter().map(ToString::to_string).collect();
        expect![[r#"
            1:12: data_dir must be a non-empty string
            3:1: there is no key server.teir; did you mean tier?
            5:19: server.auth.issuer must be an address that starts with https:// or http://
            5:42: server.auth.scopes must be a list of strings
            5:49: there is no key server.auth.tokens; valid keys here: token_file, issuer, resource, audience, scopes, jwks
            6:19: server.allowed_origins must be a list of origins, such as ["https://app.example:443"]
            7:27: server.limits.max_sessions must be a whole number from 1 to 100000
            8:8: server.tier must be one of core, standard, full
            10:25: envelope.budgets.approvals must be a whole number, at least 0
            10:29: envelope.budgets.Test: a budget's name matches ^[a-z][a-z0-9_]{0,39}$
            10:39: envelope.budgets.mutations: `mutations` cannot be a budget name; set envelope.max_mutations instead
            12:10: packs.mine.source must be a non-empty string
            13:11: packs.mine.exclude must be a list of globs: error parsing glob '[': unclosed character class; missing ']'
            14:1: there is no key packs.mine.colour; valid keys here: enabled, source, sha256, exclude, full_schemas, resume, grants, limits, config
            16:14: packs.mine.limits.memory_mib must be a whole number from 1 to 4096
            17:11: packs.mine.limits.read_ms must be a whole number from 1 to 600000
            19:11: packs.mine.grants.process must be a list of strings
            20:13: "a b" is not a valid name: use at most 64 letters, digits, `-`, `_` and `.`
            22:1: workspaces.main needs a path
            23:9: workspaces.main.write must be a list of relative paths without `..`, directories ending with a slash, such as [".gsd/"]
            24:7: workspaces.main.git must be one of none, read, write
            25:17: workspaces.main.tests.default must be a program and its arguments, such as ["cargo", "test"]
            26:14: workspaces.main.tests.lint must be a program and its arguments, such as ["cargo", "test"]"#]].assert_eq(&found.join("\n"));
    }

    #[test]
    fn every_component_must_be_findable() {
        let text = r#"[packs.task-stoer]
exclude = []
[packs.gsd]
enabled = false
[packs.tasks]
source = "builtin"
[packs.mine]
source = "builtin"
[packs.clear]
source = "http://example.org/a.wasm"
[packs.loose]
source = "https://example.org/a.wasm"
[packs.off]
enabled = false
[policies.mine]
order = 1
[policies.nights]
source = "builtin:quiet-ours"
[policies.clear]
source = "http://example.org/a.wasm"
[policies.loose]
source = "https://example.org/a.wasm"
[policies.cel]
[policies.own]
source = "own.wasm"
"#;
        let found: Vec<String> = check(text).iter().map(ToString::to_string).collect();
        expect![[r#"
            1:8: packs.task-stoer needs a source, a path or an address that starts with https://, as it is not built in; did you mean task-store?
            8:10: there is no built-in pack mine (built in: task-store, tasks, gsd, conductor, convergence)
            10:10: packs.clear.source must start with https://, or be a path
            12:10: packs.loose comes from another machine and needs a sha256, which `tollgate packs add https://example.org/a.wasm` prints
            15:11: policies.mine has no source and is not built in; add source = "PATH", or "builtin:NAME" with one of cel, loop-breaker, path-guard, quiet-hours, rate-limit, read-only-roles, require-actor, secret-scan, side-effect-approval
            18:10: there is no built-in policy quiet-ours; the built-in policies are cel, loop-breaker, path-guard, quiet-hours, rate-limit, read-only-roles, require-actor, secret-scan, side-effect-approval
            20:10: policies.clear.source must start with https://, or be a path
            22:10: policies.loose comes from another machine and needs a sha256, which `tollgate policies add https://example.org/a.wasm` prints"#]].assert_eq(&found.join("\n"));
    }

    #[test]
    fn text_that_is_no_toml_is_one_problem_with_its_place() {
        let found = check("[server\nhttp = 1");
        assert_eq!((found.len(), found[0].line), (1, 1), "{found:?}");
    }

    #[test]
    fn keys_below_a_broken_header_are_not_blamed_and_others_are() {
        let text = "[server\nhttp = 1\ntier = 2\n[ledger]\nmirrer = true\n";
        let lines: Vec<usize> = check(text).iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 5]);
    }

    #[test]
    fn every_key_is_accepted_by_the_check_and_by_serde() {
        let text = r#"
            data_dir = "data"
            [server]
            http = "127.0.0.1:8765"
            allowed_hosts = ["tollgate.example"]
            allowed_origins = ["https://app.example:443"]
            tier = "full"
            read_only = true
            [server.auth]
            token_file = "token"
            issuer = "https://id.example/"
            resource = "https://tollgate.example/mcp"
            audience = ["tollgate"]
            scopes = ["tools"]
            jwks = "keys.json"
            [server.limits]
            max_connections = 1
            max_connections_per_peer = 1
            max_sessions = 1
            max_in_flight = 1
            max_in_flight_per_client = 1
            requests_per_sec = 1
            body_kib = 1
            header_kib = 8
            request_sec = 1
            idle_session_sec = 1
            shutdown_delay_sec = 1
            drain_sec = 1
            [envelope]
            require = "writes"
            max_mutations = 1
            max_test_runs = 1
            max_duration_sec = 1
            max_edits = 1
            budgets = { approvals = 5, retries = 0 }
            ceiling = { max_mutations = 1, max_test_runs = 1, max_duration_sec = 1, max_edits = 1 }
            [ledger]
            retention_days = 1
            retention_envelopes = 1
            mirror = true
            reads = false
            [artifacts]
            enabled = true
            store = "files"
            ttl_hours = 1
            max_mib = 1
            max_artifact_mib = 1
            logs = false
            diffs = false
            arguments = true
            results = true
            [telemetry]
            otlp = "http://127.0.0.1:4318"
            headers = { authorization = "file:otlp.token", x-tenant = "env:TENANT" }
            interval_sec = 1
            service_name = "gate"
            traces = false
            metrics = false
            [workspaces.main]
            path = "."
            write = [".gsd/", "."]
            git = "write"
            tests = { default = ["cargo", "test"], lint = ["cargo", "clippy"] }
            [packs.mine]
            enabled = true
            source = "mine.wasm"
            sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
            exclude = ["a_*"]
            grants = { workspaces = ["*"], process = ["cargo"], ledger = true, budgets = ["b"] }
            limits = { memory_mib = 1, storage_mib = 1, read_ms = 1, write_ms = 1, run_ms = 1 }
            config = { anything = [1, { goes = true }] }
            [policies.nights]
            source = "builtin:quiet-hours"
            sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
            mode = "audit"
            fail_open = true
            phase = "request"
            tools = ["task_*"]
            order = 1
            grants = { workspaces = ["*"], ledger = true }
            limits = { memory_mib = 1, storage_mib = 1, time_ms = 1 }
            config = { from = "22:00" }
            [policies.mine]
            source = "mine.wasm"
        "#;
        let config = Config::parse(text, Path::new("/etc/tollgate.toml")).unwrap();
        assert_eq!(config.packs["mine"].source.as_deref(), Some("/etc/mine.wasm"));
        assert_eq!(config.policies["mine"].source.as_deref(), Some("/etc/mine.wasm"));
        assert_eq!(
            config.policies["nights"].source.as_deref(),
            Some("builtin:quiet-hours")
        );
        assert_eq!(
            config.server.auth.token_file.as_deref(),
            Some(Path::new("/etc/token"))
        );
        assert_eq!(config.server.auth.jwks.as_deref(), Some("/etc/keys.json"));
        assert_eq!(config.server.limits.caps().sessions, 1);
        assert_eq!(
            config.packs["mine"].limits.limits(&Limits::default()).memory,
            1 << 20
        );
    }
}
