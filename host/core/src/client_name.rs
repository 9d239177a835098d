//! Names of clients. Names that begin with `tollgate` are reserved for the host's own callers, such as the command
//! line.

use crate::text;

/// Longest name, in bytes.
const MAX_NAME: usize = 100;
/// Longest version, in bytes.
const MAX_VERSION: usize = 40;
/// Beginning of the host's own names.
const RESERVED: &str = "tollgate";
/// Prefix that marks a reserved name claimed by a client.
const CLAIMED: &str = "claimed:";

/// Name of a client as packs, policies and the ledger get it. A name reserved for the host is marked as claimed, in
/// any spelling, because packs and policies trust reserved names.
#[must_use]
pub fn of_client(said: &str) -> String {
    let name = text::clean(text::cut(said, MAX_NAME));
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    if letters.starts_with(RESERVED) {
        format!("{CLAIMED}{name}")
    } else {
        name
    }
}

/// Version of a client as the ledger gets it: short, visible and without the character that ends a name. Empty if
/// there is none.
#[must_use]
pub fn version(said: &str) -> String {
    let version = text::clean(text::cut(said.trim(), MAX_VERSION));
    let fits = |c: char| if c == '/' || c.is_whitespace() { '_' } else { c };
    version.chars().map(fits).collect()
}

/// Name and version as the ledger stores them: `name/version`, or the name alone.
#[must_use]
pub fn with_version(name: &str, version: Option<&str>) -> String {
    match version.filter(|version| !version.is_empty()) {
        Some(version) => format!("{name}/{version}"),
        // The slash ends the name, so that part of the name is not taken for a version.
        None if name.contains('/') => format!("{name}/"),
        None => name.to_owned(),
    }
}

/// Name part of a recorded client.
#[must_use]
pub fn name_in(recorded: &str) -> &str {
    recorded.rsplit_once('/').map_or(recorded, |(name, _)| name)
}

/// Recorded name and version for use in a sentence: unchanged, or in quotation marks if they contain anything but
/// letters, digits, single blanks, `.`, `/`, `-`, `_` and `@`.
#[must_use]
pub fn shown(recorded: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '/' | '-' | '_' | '@');
    let name = recorded.strip_prefix(CLAIMED).unwrap_or(recorded);
    match !name.trim().is_empty() && !name.contains("  ") && name.chars().all(is_plain) {
        true => recorded.to_owned(),
        false => text::quoted(recorded),
    }
}

/// Caller for use in a sentence: a name, or the words `client NAME` for a caller without a name.
#[must_use]
pub fn caller(actor: &str) -> String {
    match actor.strip_prefix("client ") {
        Some(client) => format!("client {}", shown(client)),
        None => text::named(actor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_quoted_unless_its_name_is_plain() {
        for plain in [
            "claude-code/2.1.0",
            "Visual Studio Code/1.9_a",
            "claimed:tollgate/1",
        ] {
            assert_eq!(shown(plain), plain);
        }
        for (recorded, quoted) in [
            ("wire/1: done; passed 9/9", r#""wire/1: done; passed 9/9""#),
            ("a   b/1", r#""a   b/1""#),
            (r#"a" b/1"#, r#""a\" b/1""#),
            (" ", r#"" ""#),
        ] {
            assert_eq!(shown(recorded), quoted);
        }
    }

    #[test]
    fn no_client_has_a_name_of_the_host() {
        for said in [
            "tollgate terminal",
            "tollgate call",
            " tollgate terminal",
            "Tollgate\u{200b} Terminal",
            "\"tollgate\" terminal",
            "tollgate\nterminal",
        ] {
            let name = of_client(said);
            assert!(name.starts_with(CLAIMED), "{said:?} becomes {name:?}");
        }
        for said in ["claude-code", "claimed:tollgate terminal", "my tollgate", ""] {
            assert_eq!(of_client(said), said);
        }
    }

    #[test]
    fn a_name_is_short_and_visible() {
        assert_eq!(of_client(&"x".repeat(500)).len(), MAX_NAME);
        assert_eq!(of_client("ed\u{1b}itor"), "editor");
    }

    #[test]
    fn a_version_is_told_from_the_name() {
        for (name, said, recorded) in [
            ("wire", "7", "wire/7"),
            ("@scope/agent", "1.0 (beta)/2", "@scope/agent/1.0_(beta)_2"),
            ("@scope/agent", "", "@scope/agent/"),
            ("tollgate call", "", "tollgate call"),
            ("wire", "7\u{1b}[31m", "wire/7[31m"),
        ] {
            let version = version(said);
            assert_eq!(with_version(name, Some(&version)), recorded);
            assert_eq!(name_in(recorded), name);
        }
        assert_eq!(with_version("wire", None), "wire");
        assert_eq!(version(&"1".repeat(500)).len(), MAX_VERSION);
    }
}
