//! The policy `secret-scan`: keeps secrets out of arguments and results.
//!
//! A secret in arguments is denied, or replaced with `arguments = "redact"`. A result with a secret is
//! withheld, wherever the secret is: structured part, texts, embedded resources, questions, log lines, files.
//! The changes of the call are rolled back. No message ever repeats a secret.

use std::borrow::Cow;

use regex_lite::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tollgate_sdk::export_policy;
use tollgate_sdk::policy::{
    CannotJudge, Denial, Outcome, Phase, Policy, PolicyCx, Problem, Request, Review, Verdict,
};

/// What stands for a secret that was cut out.
const REDACTED: &str = "[redacted]";

/// A kind of secret.
struct Known {
    name: &'static str,
    /// Each begins with one of these, so that only what follows them is looked at. All have one first letter.
    begins: &'static [&'static str],
    /// It begins where a word does.
    is_word: bool,
    /// Matches the secret alone.
    pattern: &'static str,
}

/// What is looked for.
const KNOWN: &[Known] = &[
    Known {
        name: "GitHub token",
        begins: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        is_word: true,
        pattern: r"^(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    },
    Known {
        name: "AWS access key",
        begins: &["AKIA", "ASIA"],
        is_word: true,
        pattern: r"^(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    },
    Known {
        name: "API key",
        begins: &["sk-"],
        is_word: true,
        pattern: r"^sk-[A-Za-z0-9_-]{20,}",
    },
    Known {
        name: "Slack token",
        begins: &["xox"],
        is_word: true,
        pattern: r"^xox[abprs]-[A-Za-z0-9-]{10,}",
    },
    Known {
        name: "bearer token",
        begins: &["bearer"],
        is_word: true,
        pattern: r"^(?i:bearer)\s+[A-Za-z0-9._~+/-]{20,}=*",
    },
    Known {
        name: "private key",
        begins: &["-----BEGIN "],
        is_word: false,
        pattern: r"^-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    },
];

/// Keeps secrets out of arguments and results.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretScan {
    /// Action for a secret in arguments: deny or redact. Default deny.
    arguments: OnArguments,
    /// Check results as well. Default true.
    results: bool,
    /// Further secrets: regular expressions that match the secret only.
    patterns: Vec<String>,
}

/// Action for a secret in arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnArguments {
    /// The call is denied.
    Deny,
    /// The secret is replaced and the call runs.
    Redact,
}

impl Default for SecretScan {
    fn default() -> SecretScan {
        SecretScan {
            arguments: OnArguments::Deny,
            results: true,
            patterns: Vec::new(),
        }
    }
}

impl Policy for SecretScan {
    const NAME: &'static str = "secret-scan";
    const SUMMARY: &'static str = "Keeps secrets out of arguments and results.";
    const PHASE: Phase = Phase::Both;

    fn problems(&self) -> Vec<Problem> {
        let bad = |text: &String| Some(Problem::new("patterns", Regex::new(text).err()?.to_string()));
        self.patterns.iter().filter_map(bad).collect()
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let secrets = self.secrets()?;
        let mut arguments = Value::Object(request.arguments.clone());
        let mut found = Vec::new();
        scan(&mut arguments, "", &secrets, &mut found);
        if found.is_empty() {
            return Ok(Verdict::Pass);
        }
        Ok(match (self.arguments, arguments) {
            (OnArguments::Redact, Value::Object(arguments)) => Verdict::Amend(arguments),
            _ => Denial::new(
                "SECRET_IN_ARGUMENTS",
                format!("the arguments contain {}", found.join(", ")),
            )
            .remediation("Refer to the secret by name, or omit it.")
            .into(),
        })
    }

    fn after(
        &self,
        _cx: &PolicyCx<'_>,
        _request: &Request,
        outcome: &Outcome,
    ) -> Result<Review, CannotJudge> {
        if !self.results {
            return Ok(Review::Pass);
        }
        let secrets = self.secrets()?;
        let mut found = Vec::new();
        scan(&mut outcome.body.clone(), "", &secrets, &mut found);
        if let Some((kind, _)) = outcome.text.as_deref().and_then(|text| redacted(text, &secrets)) {
            found.push(format!("a {kind} outside of its structured part"));
        }
        if found.is_empty() {
            return Ok(Review::Pass);
        }
        Ok(Denial::new(
            "SECRET_IN_RESULT",
            format!("the result contains {}", found.join(", ")),
        )
        .remediation("Remove the secret where it is stored, or request less.")
        .into())
    }
}
export_policy!(SecretScan);

/// A kind of secret and how it is found.
struct Secret<'a> {
    name: &'a str,
    /// Where to look, if that is known beforehand.
    known: Option<&'static Known>,
    regex: Regex,
}

impl Secret<'_> {
    /// The text without any of its kind, if there was one.
    fn cut_out(&self, text: &str) -> Option<String> {
        let Some(known) = self.known else {
            let is_there = self.regex.is_match(text);
            return is_there.then(|| self.regex.replace_all(text, REDACTED).into_owned());
        };
        let mut clean = String::new();
        let (mut copied, mut next) = (0, 0);
        while let Some(start) = known.next(text, next) {
            next = start + 1;
            let is_inside = known.is_word && text.as_bytes().get(..start).is_some_and(ends_in_word);
            let rest = text.get(start..).filter(|_| !is_inside);
            if let Some(found) = rest.and_then(|rest| self.regex.find(rest)) {
                clean.push_str(text.get(copied..start).unwrap_or_default());
                clean.push_str(REDACTED);
                copied = start + found.end();
                next = copied;
            }
        }
        if copied == 0 {
            return None;
        }
        clean.push_str(text.get(copied..).unwrap_or_default());
        Some(clean)
    }
}

impl Known {
    /// The next place where one may begin. Texts are long, so that bytes are looked at before anything else.
    fn next(&self, text: &str, mut from: usize) -> Option<usize> {
        let first = self.begins.first()?.bytes().next()?.to_ascii_lowercase();
        loop {
            let rest = text.as_bytes().get(from..)?;
            let place = rest.iter().position(|byte| byte.to_ascii_lowercase() == first)?;
            let rest = rest.get(place..)?;
            if self
                .begins
                .iter()
                .any(|begin| starts_with(rest, begin.as_bytes()))
            {
                return Some(from + place);
            }
            from += place + 1;
        }
    }
}

/// Whether bytes begin with some ASCII, in whatever case.
fn starts_with(bytes: &[u8], ascii: &[u8]) -> bool {
    bytes
        .get(..ascii.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ascii))
}

fn ends_in_word(before: &[u8]) -> bool {
    before
        .last()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

impl SecretScan {
    fn secrets(&self) -> Result<Vec<Secret<'_>>, regex_lite::Error> {
        let known = KNOWN.iter().map(|known| (known.name, Some(known), known.pattern));
        let own = self
            .patterns
            .iter()
            .map(|pattern| ("secret", None, pattern.as_str()));
        known
            .chain(own)
            .map(|(name, known, pattern)| {
                let regex = Regex::new(pattern)?;
                Ok(Secret { name, known, regex })
            })
            .collect()
    }
}

/// Cuts secrets out of every string and key, and says where they were.
fn scan(value: &mut Value, at: &str, secrets: &[Secret<'_>], found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            if let Some((kind, clean)) = redacted(text, secrets) {
                found.push(format!("a {kind} at `{at}`"));
                *text = clean;
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                scan(item, &format!("{at}/{index}"), secrets, found);
            }
        }
        Value::Object(fields) => {
            let mut clean = serde_json::Map::new();
            for (mut key, mut value) in std::mem::take(fields) {
                if let Some((kind, name)) = redacted(&key, secrets) {
                    found.push(format!("a {kind} as a key of `{at}`"));
                    key = name;
                }
                scan(&mut value, &format!("{at}/{key}"), secrets, found);
                clean.insert(key, value);
            }
            *fields = clean;
        }
        _ => {}
    }
}

/// The first kind that was found, and the text without any.
fn redacted<'a>(text: &str, secrets: &[Secret<'a>]) -> Option<(&'a str, String)> {
    let mut first = None;
    let mut clean = Cow::Borrowed(text);
    for secret in secrets {
        if let Some(without) = secret.cut_out(&clean) {
            first = first.or(Some(secret.name));
            clean = Cow::Owned(without);
        }
    }
    first.map(|kind| (kind, clean.into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sdk::native::Judge;

    use super::*;

    const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

    #[test]
    fn a_secret_is_denied_and_not_repeated() {
        let judge = Judge::<SecretScan>::new("{}").unwrap();
        let arguments = json!({"notes": [{"text": format!("use {TOKEN} now")}]}).to_string();
        let Verdict::Deny(denial) = judge.before(&Request::of("task_create", &arguments)).verdict else {
            panic!("it passed");
        };
        assert_eq!(
            denial.reason,
            "the arguments contain a GitHub token at `/notes/0/text`"
        );
    }

    #[test]
    fn redacting_keeps_the_rest() {
        let judge = Judge::<SecretScan>::new(r#"{"arguments": "redact"}"#).unwrap();
        let arguments = json!({"a": format!("x {TOKEN} y"), TOKEN: 1, "n": 3}).to_string();
        let Verdict::Amend(amended) = judge.before(&Request::of("task_create", &arguments)).verdict else {
            panic!("not amended");
        };
        assert_eq!(
            Value::Object(amended),
            json!({"a": "x [redacted] y", "[redacted]": 1, "n": 3})
        );
    }

    #[test]
    fn each_kind_is_found_and_ordinary_text_is_not() {
        let judge = Judge::<SecretScan>::new(r#"{"patterns": ["tk_[0-9]{4}"]}"#).unwrap();
        let secret = |text: &str| {
            let arguments = json!({ "text": text }).to_string();
            judge.before(&Request::of("task_create", &arguments)).is_denied()
        };
        for text in [
            TOKEN,
            "AKIAIOSFODNN7EXAMPLE",
            "sk-abcdefghijklmnopqrstuvwx",
            "xoxb-1234567890-abcdef",
            "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "tk_1234",
        ] {
            assert!(secret(text), "{text}");
        }
        for text in [
            "the bearer of news",
            "sk-short",
            "desk-lamp-with-a-very-long-name-indeed",
            "AKIA",
        ] {
            assert!(!secret(text), "{text}");
        }
    }

    #[test]
    fn all_secrets_of_a_kind_are_cut_out() {
        let judge = Judge::<SecretScan>::new(r#"{"arguments": "redact"}"#).unwrap();
        let text = format!("{TOKEN} xghp_ gh ghp_short é{TOKEN},BEARER abcdefghijklmnopqrst {TOKEN}");
        let arguments = json!({ "text": text }).to_string();
        let Verdict::Amend(amended) = judge.before(&Request::of("task_create", &arguments)).verdict else {
            panic!("not amended");
        };
        assert_eq!(
            amended["text"],
            "[redacted] xghp_ gh ghp_short é[redacted],[redacted] [redacted]"
        );
    }

    #[test]
    fn results_are_looked_at_too() {
        let judge = Judge::<SecretScan>::new("{}").unwrap();
        let request = Request::of("task_get", "{}");
        let outcome = |body: &str, text: &str| Outcome {
            success: true,
            error_code: None,
            body: json!({ "text": body }),
            text: Some(text.to_owned()),
            duration_ms: 1,
        };
        assert_eq!(
            judge.after(&request, &outcome("fine", "too")).verdict,
            Review::Pass
        );
        assert_ne!(
            judge.after(&request, &outcome(TOKEN, "too")).verdict,
            Review::Pass
        );
        assert_ne!(
            judge.after(&request, &outcome("fine", TOKEN)).verdict,
            Review::Pass
        );
    }

    #[test]
    fn a_pattern_that_is_none_is_named() {
        assert!(Judge::<SecretScan>::new(r#"{"patterns": ["("]}"#).is_err());
    }
}
