//! Initial configuration, generated from the table of keys: every key, explained and commented out.

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::keys::{self, KEYS, Key, Kind, Unset};

/// Maximum length of a comment line.
const MAX_LINE_BYTES: usize = 110;

const INTRODUCTION: &str = "\
# Tollgate's configuration. Every setting is commented out and shows its default or an example. To set one, remove the `#`
# from its line and from the header of its table. `tollgate doctor` checks the file, and a running server applies changes
# by itself. Relative paths start at the directory of this file. `tollgate config KEY` explains a key.

";

/// Names in the template where the operator chooses a name.
const EXAMPLE_NAMES: &[(&str, &str)] = &[
    ("workspaces.*.tests.*", "default"),
    ("workspaces.*", "main"),
    ("packs.*", "hello"),
    ("policies.*", "quiet-hours"),
    ("registries.*", "\"registry.example\""),
    ("trust.signers.*", "team"),
];

static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
    let mut text = INTRODUCTION.to_owned();
    for key in KEYS {
        write_key(&mut text, key);
    }
    text
});

/// Text that `tollgate init` writes. Lines that start with `#` and no space are settings.
pub fn template() -> &'static str {
    &TEMPLATE
}

fn write_key(text: &mut String, key: &Key) {
    match key.kind {
        Kind::Table | Kind::Tables | Kind::Names => write_table(text, key),
        _ => {
            let default = match key.unset {
                Unset::Is(_) => String::new(),
                Unset::Means(words) => format!(" Default: {words}."),
                Unset::Refused => " Required.".to_owned(),
            };
            write_comment(text, &format!("{}{default}", key.doc));
            let _ = writeln!(text, "#{} = {}", place(key.path).1, key.example);
        }
    }
}

/// Writes the header of a table. A table of names has none, because each of its tables has one. A table below a named
/// table is written with dotted keys.
fn write_table(text: &mut String, key: &Key) {
    let is_below_a_name = key.path.contains(".*.");
    if !is_below_a_name {
        text.push('\n');
    }
    write_comment(text, key.doc);
    let header = match key.kind {
        _ if is_below_a_name => return,
        Kind::Table if key.path.ends_with(".*") && is_list(key.path) => return,
        Kind::Table if key.path.ends_with(".*") => format!("#[{}]", named(key.path)),
        Kind::Table => format!("[{}]", key.path),
        Kind::Tables => format!("#[[{}]]", key.path),
        _ => return,
    };
    text.push_str(&header);
    text.push('\n');
}

/// Returns whether a path is an element of a list of tables.
fn is_list(path: &str) -> bool {
    let list = path.strip_suffix(".*").and_then(keys::find);
    list.is_some_and(|list| list.kind == Kind::Tables)
}

/// The header that a key is written under, and its name there.
fn place(path: &str) -> (&str, String) {
    let under = match path.find(".*.") {
        Some(at) => &path[..at + 2],
        None => path.rsplit_once('.').map_or("", |(table, _)| table),
    };
    let name = path.strip_prefix(under).unwrap_or(path).trim_start_matches('.');
    let name = name.replace('*', "default");
    (under, name)
}

fn named(path: &str) -> String {
    let name = EXAMPLE_NAMES.iter().find(|(of, _)| *of == path);
    name.map_or_else(
        || path.to_owned(),
        |(_, name)| format!("{}.{name}", path.trim_end_matches(".*")),
    )
}

fn write_comment(text: &mut String, comment: &str) {
    let mut line = String::from("#");
    for word in comment.split(' ') {
        if line.len() + word.len() >= MAX_LINE_BYTES {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    use tollgate_components::builtin;
    use tollgate_components::tools::Tier;
    use tollgate_sandbox::Limits;
    use toml::Value;

    use super::super::Config;
    use super::*;

    /// The text with all settings enabled.
    fn switched_on() -> String {
        let lines = template().lines().map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => setting,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn has(value: &Value, path: &[&str]) -> bool {
        match (path, value) {
            ([], _) => true,
            (["*", rest @ ..], Value::Array(list)) => list.iter().any(|value| has(value, rest)),
            (["*", rest @ ..], Value::Table(table)) => table.values().any(|value| has(value, rest)),
            ([key, rest @ ..], Value::Table(table)) => table.get(*key).is_some_and(|value| has(value, rest)),
            _ => false,
        }
    }

    #[test]
    fn as_it_is_written_it_says_what_the_defaults_say() {
        let config = Config::parse(template(), Path::new("tollgate.toml")).unwrap();
        let defaults = Config {
            file: config.file.clone(),
            place: config.place.clone(),
            said: config.said.clone(),
            ..Config::default()
        };
        assert_eq!(config, defaults);
    }

    #[test]
    fn it_has_every_key_and_each_loads() {
        let text = switched_on();
        Config::parse(&text, Path::new("tollgate.toml")).unwrap();
        let whole = Value::Table(text.parse().unwrap());
        let absent: Vec<&str> = KEYS
            .iter()
            .map(|key| key.path)
            .filter(|path| !has(&whole, &path.split('.').collect::<Vec<_>>()))
            .collect();
        assert!(absent.is_empty(), "not in the template: {absent:?}");
    }

    /// The defaults in the table are those of the program.
    #[test]
    fn stated_defaults_hold() {
        let collector = "telemetry.otlp = \"http://127.0.0.1:4318\"\n";
        let stated = KEYS.iter().filter_map(|key| match key.unset {
            Unset::Is(value) if !key.path.contains('*') => Some(format!("{} = {value}\n", key.path)),
            _ => None,
        });
        let stated = stated.collect::<String>() + collector;
        let [stated, absent] =
            [&stated, collector].map(|text| Config::parse(text, Path::new("tollgate.toml")).unwrap());
        assert_eq!(stated.server.tier, Some(Tier::Core));
        assert_eq!(stated.server.limits.caps(), absent.server.limits.caps());
        assert_eq!(stated.envelope, absent.envelope);
        assert_eq!(stated.ledger, absent.ledger);
        assert_eq!(stated.artifacts, absent.artifacts);
        let [stated, absent] = [stated, absent].map(|config| {
            let telemetry = config.telemetry.settings(|_| None).unwrap().unwrap();
            (
                telemetry.interval,
                telemetry.service_name,
                telemetry.traces,
                telemetry.metrics,
            )
        });
        assert_eq!(stated, absent);
    }

    /// The limits that built-in packs declare are those in the table.
    #[test]
    fn stated_limits_of_built_in_packs_hold() {
        type Time = fn(&Limits) -> Duration;
        let times: [(&str, Time); 2] = [
            ("packs.*.limits.write_ms", |limits| limits.write),
            ("packs.*.limits.run_ms", |limits| limits.run),
        ];
        for (path, time) in times {
            let usual = time(&Limits::default());
            let mut declared: BTreeMap<Duration, Vec<String>> = BTreeMap::new();
            for name in builtin::names() {
                let own = time(&builtin::limits(name));
                declared.entry(own).or_default().push(format!("`{name}`"));
            }
            declared.remove(&usual);
            let others = declared
                .iter()
                .map(|(own, names)| format!("; {} for {}", own.as_millis(), names.join(" and ")));
            let defaults = format!("`{}`{}", usual.as_millis(), others.collect::<String>());
            assert_eq!(keys::find(path).unwrap().default(), defaults, "{path}");
        }
    }
}
