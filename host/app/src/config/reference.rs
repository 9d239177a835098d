//! Explanations of all keys, for `tollgate config` and for `docs/configuration.md`.

use serde::Serialize;
use tollgate_core::text;

use super::keys::{KEYS, Key};

/// Explanation of one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Path of the key, with `NAME` for names that the operator chooses.
    pub key: String,
    /// Type of the value, as text.
    pub holds: String,
    /// Value that applies if the file does not set the key.
    pub default: String,
    /// A value as a file would write it.
    pub example: String,
    /// Meaning in one or two sentences.
    pub description: &'static str,
}

impl Entry {
    fn of(key: &Key) -> Entry {
        Entry {
            key: key.shown(),
            holds: key.kind.wanted().into_owned(),
            default: key.default(),
            example: key.example.to_owned(),
            description: key.doc,
        }
    }
}

/// The keys at and below a path, or all keys. The path may contain a name of the operator where the table has any name.
///
/// # Errors
///
/// Fails with a message that names the nearest key, if there is none at the path.
pub fn entries(path: Option<&str>) -> Result<Vec<Entry>, String> {
    let path = path.map(|path| path.trim_matches(|c: char| c == '[' || c == ']' || c == '.'));
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Ok(KEYS
            .iter()
            .filter(|key| !key.kind.is_table())
            .map(Entry::of)
            .collect());
    };
    let found: Vec<&Key> = KEYS
        .iter()
        .filter(|key| is_at_or_below(&key.shown(), path))
        .collect();
    if found.is_empty() {
        let shown: Vec<String> = KEYS.iter().map(Key::shown).collect();
        return Err(match text::nearest(path, shown.iter().map(String::as_str)) {
            Some(near) => format!("there is no key {path}; did you mean {near}?"),
            None => format!("there is no key {path}; `tollgate config` lists all keys"),
        });
    }
    let values = found.iter().filter(|key| !key.kind.is_table());
    Ok(values.map(|key| Entry::of(key)).collect())
}

fn is_at_or_below(key: &str, path: &str) -> bool {
    let mut parts = key.split('.');
    path.split('.')
        .all(|name| parts.next().is_some_and(|part| part == name || part == "NAME"))
}

/// The table of `docs/configuration.md`.
pub fn page() -> String {
    let rows = KEYS.iter().filter(|key| !key.kind.is_table()).map(|key| {
        let cell = |text: &str| text.replace('|', "\\|");
        format!(
            "| `{}` | {} | {} | {} |\n",
            key.shown(),
            cell(key.doc),
            cell(&key.kind.wanted()),
            cell(&key.default())
        )
    });
    let head = "| key | meaning | type | default |\n|---|---|---|---|\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const START: &str = "<!-- keys: written from host/app/src/config/keys/table.rs -->\n";
    const END: &str = "<!-- end of keys -->\n";

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the page is a file of this repository")]
    fn the_page_has_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(START).unwrap();
        let (table, after) = rest.split_once(END).unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, format!("{before}{START}{}{END}{after}", page())).unwrap();
            return;
        }
        assert_eq!(table, page(), "write it anew with UPDATE_EXPECT=1");
    }

    /// Mark above a table of another page. The column `default` of that table is compared.
    const DEFAULTS_MARK: &str = "<!-- defaults: compared with host/app/src/config/keys/table.rs -->\n";
    /// Pages with such a table, each with the path in front of the keys there.
    const PAGES: [(&str, &str, &str); 3] = [
        (
            "http.md",
            include_str!("../../../../docs/http.md"),
            "server.limits.",
        ),
        ("ledger.md", include_str!("../../../../docs/ledger.md"), ""),
        (
            "policies.md",
            include_str!("../../../../docs/policies.md"),
            "policies.NAME.",
        ),
    ];

    fn cells(row: &str) -> Vec<&str> {
        row.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn other_pages_have_the_defaults_of_the_table() {
        for (page, text, above) in PAGES {
            let (_, table) = text.split_once(DEFAULTS_MARK).unwrap();
            let mut rows = table.lines().take_while(|line| line.starts_with('|'));
            let head = cells(rows.next().unwrap());
            let column = head.iter().position(|cell| *cell == "default").unwrap();
            // The next line separates the head from the rows.
            let rows: Vec<Vec<&str>> = rows.skip(1).map(cells).collect();
            assert!(!rows.is_empty(), "{page}");
            for row in rows {
                let path = format!("{above}{}", row[0].trim_matches('`'));
                let key = KEYS.iter().find(|key| key.shown() == path);
                let key = key.unwrap_or_else(|| panic!("{page}: there is no key {path}"));
                assert_eq!(row[column], key.default(), "{page}: {path}");
            }
        }
    }

    #[test]
    fn keys_are_found_by_pattern_table_and_name() {
        let keys = |path| -> Vec<String> {
            let entries = entries(Some(path)).unwrap();
            entries.into_iter().map(|entry| entry.key).collect()
        };
        assert_eq!(keys("server.tier"), ["server.tier"]);
        assert_eq!(keys("packs.gsd.enabled"), ["packs.NAME.enabled"]);
        assert_eq!(keys("packs.NAME.enabled"), ["packs.NAME.enabled"]);
        assert_eq!(keys("[envelope.ceiling]").len(), 4);
        assert_eq!(keys("envelope.window.per"), ["envelope.window.per"]);
        assert_eq!(
            entries(Some("server.teir")).unwrap_err(),
            "there is no key server.teir; did you mean server.tier?"
        );
        assert!(entries(None).unwrap().len() > 90);
    }

    #[test]
    fn every_key_is_explained() {
        for entry in entries(None).unwrap() {
            let Entry {
                key,
                description,
                example,
                ..
            } = &entry;
            assert!(
                description.len() >= 12 && description.ends_with('.'),
                "{key}: {description}"
            );
            assert!(!example.is_empty(), "{key} has no example");
            let opening = description.split(' ').next().unwrap();
            assert!(
                !["What", "Who", "How", "Where", "Whether", "That"].contains(&opening),
                "{key}: {description}"
            );
        }
    }
}
