//! Secrets in what is stored, replaced before they are kept.

use std::sync::LazyLock;

use tollgate_kit::secrets::Secrets;

/// Mark in the place of a secret.
const MARK: &str = "[REDACTED]";

static SECRETS: LazyLock<Option<Secrets>> = LazyLock::new(|| Secrets::new().ok());

/// Text without secrets. Adds the number of secrets that it held.
pub(crate) fn clean(text: &str, found: &mut usize) -> String {
    match SECRETS.as_ref().and_then(|secrets| secrets.cut_out(text, MARK)) {
        Some(clean) => {
            *found += clean.count;
            clean.text
        }
        None => text.to_owned(),
    }
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
            "xoxb-1234567890-abcdef",
            "the bearer presents",
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
            1 "[REDACTED]"
            0 "the bearer presents"
        "#]]
        .assert_eq(&log);
    }
}
