//! Names of clients. Those that begin with `tollgate` belong to the host's own callers, such as the command line.

use crate::text;

/// Longest name, in bytes.
const MAX_NAME: usize = 100;
/// Beginning of the host's own names.
const RESERVED: &str = "tollgate";
/// Mark of a reserved name that a client claims.
const CLAIMED: &str = "claimed:";

/// Name of a client as packs, policies and the ledger get it. A name of the host's own is marked as claimed, however it
/// is spelled, because packs and policies trust it.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
