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
use tollgate_kit::secrets::Secrets;
use tollgate_sdk::export_policy;
use tollgate_sdk::policy::{
    CannotJudge, Denial, Outcome, Phase, Policy, PolicyCx, Problem, Request, Review, Verdict,
};

/// Replacement for a removed secret.
const REDACTED: &str = "[redacted]";

/// Keeps secrets out of arguments and results.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretScan {
    /// Action for a secret in arguments: deny or redact. Default deny.
    arguments: OnArguments,
    /// Check results as well. Default true.
    results: bool,
    /// Values after a name such as `password=` or `"api_key":` are secrets as well. Default false, because ordinary text has such
    /// names, too: `max_tokens: 4000`.
    names: bool,
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
            names: false,
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
        let secrets = self.scan()?;
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
        let secrets = self.scan()?;
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

/// Everything that is looked for.
struct Scan {
    secrets: Secrets,
    /// The operator's own patterns.
    own: Vec<Regex>,
}

impl SecretScan {
    fn scan(&self) -> Result<Scan, regex_lite::Error> {
        let own: Result<_, _> = self.patterns.iter().map(|pattern| Regex::new(pattern)).collect();
        Ok(Scan {
            secrets: Secrets::new()?.named(self.names),
            own: own?,
        })
    }
}

/// Cuts secrets out of every string and key, and says where they were.
fn scan(value: &mut Value, at: &str, secrets: &Scan, found: &mut Vec<String>) {
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
fn redacted(text: &str, scan: &Scan) -> Option<(&'static str, String)> {
    let known = scan.secrets.cut_out(text, REDACTED);
    let (mut first, mut clean) = match known {
        Some(known) => (Some(known.kind), Cow::Owned(known.text)),
        None => (None, Cow::Borrowed(text)),
    };
    for pattern in &scan.own {
        if pattern.is_match(&clean) {
            first = first.or(Some("secret"));
            clean = Cow::Owned(pattern.replace_all(&clean, REDACTED).into_owned());
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
            "the bearer presents the password: a word",
            "max_tokens: 4000, token: bucket, DB_PASSWORD=hunter22",
        ] {
            assert!(!secret(text), "{text}");
        }
    }

    #[test]
    fn names_of_secrets_count_only_if_wanted() {
        let request = Request::of("task_create", r#"{"text": "DB_PASSWORD=hunter22"}"#);
        let judge = Judge::<SecretScan>::new(r#"{"names": true}"#).unwrap();
        let Verdict::Deny(denial) = judge.before(&request).verdict else {
            panic!("it passed");
        };
        assert_eq!(
            denial.reason,
            "the arguments contain a password or token at `/text`"
        );
        let judge = Judge::<SecretScan>::new("{}").unwrap();
        assert!(!judge.before(&request).is_denied());
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
            "[redacted] xghp_ gh ghp_short é[redacted],BEARER [redacted] [redacted]"
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
