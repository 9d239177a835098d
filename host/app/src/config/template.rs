//! A configuration to start from: every key, explained and switched off.

/// The text that `tollgate init` writes. Lines that start with `#` and no space are settings.
pub const TEMPLATE: &str = include_str!("template.toml");

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml::Value;

    use super::super::Config;
    use super::super::keys::KEYS;
    use super::TEMPLATE;

    /// The text with all its settings switched on.
    fn switched_on() -> String {
        let lines = TEMPLATE.lines().map(|line| match line.strip_prefix('#') {
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
        let config = Config::parse(TEMPLATE, Path::new("tollgate.toml")).unwrap();
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
}
