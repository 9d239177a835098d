//! Secrets in what is stored: found by what they look like, replaced before they are kept.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

/// What stands in a secret's place.
const MARK: &str = "[REDACTED]";

/// What secrets look like. The group `keep` stays.
static SECRETS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Private key blocks, whole, even if the end is missing.
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)",
        r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}",
        r"\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"\bsk-[A-Za-z0-9_-]{12,}",
        r"\b(AKIA|ASIA)[A-Z0-9]{12,}",
    ]
    .into_iter()
    .map(str::to_owned)
    // Names of keys with a value behind them, in double quotes, in single quotes or in none: `"api_key": "…"`,
    // `password = '…'`, `DB_PASSWORD=…`.
    .chain([r#""[^"\n]{4,}"#, r"'[^'\n]{4,}", r#"[^\s"',;}\[\\]{4,}"#].map(named))
    .filter_map(|pattern| Regex::new(&pattern).ok())
    .collect()
});

/// The pattern of a key's name and of a value, whose quote stays.
fn named(value: &str) -> String {
    const KEYS: &str = "password|passwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|credential";
    let (quote, value) = match value.split_at_checked(1) {
        Some((quote @ ("\"" | "'"), rest)) => (quote, rest),
        _ => ("[\"']?", value),
    };
    let between = r#"[A-Za-z0-9_-]*\\*["']?\s*[:=]{1,2}>?\s*\\*"#;
    format!("(?i)(?P<keep>[A-Za-z0-9_-]*({KEYS}){between}{quote}){value}")
}

/// Text without secrets. Adds how many there were.
pub(crate) fn clean(text: &str, found: &mut usize) -> String {
    let mut clean = text.to_owned();
    for secret in SECRETS.iter() {
        if !secret.is_match(&clean) {
            continue;
        }
        clean = secret
            .replace_all(&clean, |captures: &Captures<'_>| {
                *found += 1;
                let keep = captures.name("keep").map_or("", |keep| keep.as_str());
                format!("{keep}{MARK}")
            })
            .into_owned();
    }
    clean
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn secrets_are_replaced_and_the_rest_stays() {
        let mut log = String::new();
        for text in [
            "token ghp_abcdefghijklmnopqrstuvwxyz0123456789 here",
            "sk-proj-abcdefghijklmnop",
            "key AKIAIOSFODNN7EXAMPLE.",
            "Authorization: Bearer abc.def-ghi_jkl",
            "DB_PASSWORD=hunter22 next",
            r#"{"api_key": "value-1234", "name": "x"}"#,
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter",
            "-----BEGIN PRIVATE KEY-----\nMIIE cut off",
            r#"password = "two words, a comma" next"#,
            "secret: 'it is; long' next",
            r#"{\"token\": \"abcd-1234\", \"n\": 1}"#,
            "API_TOKEN := abcd1234",
            "nothing secret: the password field is checked; task-sk- and a ghp_short",
            "risk-free",
        ] {
            let mut found = 0;
            let cleaned = clean(text, &mut found);
            log += &format!("{found} {cleaned:?}\n");
        }
        expect![[r#"
            1 "token [REDACTED] here"
            1 "[REDACTED]"
            1 "key [REDACTED]."
            1 "Authorization: Bearer [REDACTED]"
            1 "DB_PASSWORD=[REDACTED] next"
            1 "{\"api_key\": \"[REDACTED]\", \"name\": \"x\"}"
            1 "[REDACTED]\nafter"
            1 "[REDACTED]"
            1 "password = \"[REDACTED]\" next"
            1 "secret: '[REDACTED]' next"
            1 "{\\\"token\\\": \\\"[REDACTED]\", \\\"n\\\": 1}"
            1 "API_TOKEN := [REDACTED]"
            0 "nothing secret: the password field is checked; task-sk- and a ghp_short"
            0 "risk-free"
        "#]]
        .assert_eq(&log);
    }

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(SECRETS.len(), 9);
    }
}
