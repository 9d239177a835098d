//! Annotations of a component: information from its publisher. They are untrusted, and only shown.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::text::plain;

/// Name of the component.
pub const TITLE: &str = "org.opencontainers.image.title";
/// Version of the component.
pub const VERSION: &str = "org.opencontainers.image.version";
/// One line about the component.
pub const DESCRIPTION: &str = "org.opencontainers.image.description";
/// Licence, as an SPDX expression.
pub const LICENSES: &str = "org.opencontainers.image.licenses";
/// Address of the source.
pub const SOURCE: &str = "org.opencontainers.image.source";
/// `pack` or `policy`.
pub const KIND: &str = "dev.tollgate.kind";
/// Requested grants, as a JSON array of lines.
pub const GRANTS: &str = "dev.tollgate.grants";
/// Settings that the publisher suggests, as a JSON object.
pub const SETTINGS: &str = "dev.tollgate.settings";
/// Maximum bytes of suggested settings.
pub const SETTINGS_LIMIT: usize = 16 << 10;

/// Annotations that are shown, made safe to show.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Said {
    /// `pack` or `policy`.
    pub kind: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Licence.
    pub licence: Option<String>,
    /// Address of the source.
    pub source: Option<String>,
    /// Requested grants.
    pub grants: Vec<String>,
    /// Suggested settings.
    pub settings: Option<Value>,
}

impl Said {
    /// Parses annotations. Malformed ones are left out.
    pub fn of(annotations: &BTreeMap<String, String>) -> Said {
        let text = |key: &str| annotations.get(key).map(|text| plain(text));
        let grants = annotations
            .get(GRANTS)
            .filter(|text| text.len() <= SETTINGS_LIMIT);
        let grants: Vec<String> = grants
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let settings = annotations
            .get(SETTINGS)
            .filter(|text| text.len() <= SETTINGS_LIMIT);
        Said {
            kind: text(KIND),
            version: text(VERSION),
            description: text(DESCRIPTION),
            licence: text(LICENSES),
            source: text(SOURCE),
            grants: grants.iter().map(|line| plain(line)).collect(),
            settings: settings
                .and_then(|text| serde_json::from_str(text).ok())
                .filter(Value::is_object),
        }
    }

    /// Lines for people, `name: value`.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let grants = (!self.grants.is_empty()).then(|| self.grants.join(", "));
        // JSON escapes non-ASCII text, so nothing in it can move the cursor.
        let settings = self
            .settings
            .as_ref()
            .map(|settings| plain(&settings.to_string()));
        let all = [
            ("kind", self.kind.clone()),
            ("version", self.version.clone()),
            ("description", self.description.clone()),
            ("licence", self.licence.clone()),
            ("source", self.source.clone()),
            ("grants", grants),
            ("settings", settings),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_cannot_draw_on_a_terminal() {
        let annotations = BTreeMap::from([
            (LICENSES.to_owned(), "MIT\u{1b}[2J".to_owned()),
            (GRANTS.to_owned(), r#"["ledger\u001b[31m"]"#.to_owned()),
            (SETTINGS.to_owned(), r#"{"a": "\u001b\n"}"#.to_owned()),
        ]);
        let said = Said::of(&annotations);
        assert_eq!(said.licence.as_deref(), Some("MIT\u{fffd}[2J"));
        assert_eq!(said.grants, ["ledger\u{fffd}[31m"]);
        assert!(
            said.lines()
                .iter()
                .all(|(_, line)| !line.chars().any(char::is_control))
        );
    }

    #[test]
    fn what_is_not_of_the_form_is_left_out() {
        let annotations = BTreeMap::from([
            (GRANTS.to_owned(), "ledger".to_owned()),
            (SETTINGS.to_owned(), "[1]".to_owned()),
        ]);
        assert_eq!(Said::of(&annotations), Said::default());
    }
}
