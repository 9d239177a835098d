//! Comparison of a policy's verdict with the expected one. No I/O.

use serde_json::Value;
use tollgate_components::policies::Cause;

/// Expected behaviour of a policy.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// The policy passes the call or its result.
    Pass,
    /// The policy denies with this code, and its reason or remediation contains these.
    Deny { code: String, texts: Vec<String> },
    /// The call runs with these arguments.
    Amend(Value),
    /// The question contains these texts, and without a yes the call is denied with this code.
    Ask {
        texts: Vec<String>,
        otherwise: Option<String>,
    },
    /// The policy fails to evaluate, for this reason.
    Fail(Cause),
    /// The policy refuses its settings with these messages.
    BadSettings(Vec<String>),
}

/// Behaviour of a policy.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    Pass,
    Amend(Value),
    Deny {
        code: String,
        text: String,
    },
    Ask {
        message: String,
        otherwise: String,
    },
    Failed {
        cause: Cause,
        detail: String,
    },
    BadSettings(Vec<String>),
    /// The policy's manifest excludes this phase.
    NotAsked,
}

impl Expected {
    /// Expected behaviour on one line.
    pub(super) fn line(&self) -> String {
        match self {
            Expected::Pass => "pass".to_owned(),
            Expected::Deny { code, texts } => format!("deny {code}{}", quoted(texts)),
            Expected::Amend(arguments) => format!("amend to {arguments}"),
            Expected::Ask { texts, otherwise } => {
                let otherwise = otherwise.iter().map(|code| format!(", otherwise {code}"));
                format!("ask{}{}", quoted(texts), otherwise.collect::<String>())
            }
            Expected::Fail(cause) => format!("fail: it {}", cause.phrase()),
            Expected::BadSettings(texts) => format!("refuse the settings{}", quoted(texts)),
        }
    }

    /// Differences between expected and actual behaviour, empty if there are none.
    pub(super) fn differences(&self, said: &Said) -> Vec<String> {
        match (self, said) {
            (Expected::Pass, Said::Pass) => Vec::new(),
            (Expected::Deny { code, texts }, Said::Deny { code: found, text }) => {
                other_code("code", code, found)
                    .chain(lacking("its message", texts, text))
                    .collect()
            }
            (Expected::Amend(arguments), Said::Amend(found)) => {
                paths(arguments, found).iter().map(Change::line).collect()
            }
            (
                Expected::Ask { texts, otherwise },
                Said::Ask {
                    message,
                    otherwise: found,
                },
            ) => {
                let code = otherwise
                    .iter()
                    .flat_map(|code| other_code("otherwise", code, found));
                lacking("the question", texts, message).chain(code).collect()
            }
            (Expected::Fail(cause), Said::Failed { cause: found, .. }) if cause == found => Vec::new(),
            (Expected::BadSettings(texts), Said::BadSettings(problems)) => {
                lacking("the message about the settings", texts, &problems.join("; ")).collect()
            }
            (expected, said) => vec![
                format!("expected: {}", expected.line()),
                format!("got:      {}", said.line()),
            ],
        }
    }
}

impl Said {
    /// Actual behaviour on one line.
    pub(super) fn line(&self) -> String {
        match self {
            Said::Pass => "pass".to_owned(),
            Said::Amend(arguments) => format!("amend to {arguments}"),
            Said::Deny { code, text } => format!("deny {code}: {text}"),
            Said::Ask { message, otherwise } => format!("ask {message:?}, otherwise {otherwise}"),
            Said::Failed { cause, detail } => format!("fail: it {} ({detail})", cause.phrase()),
            Said::BadSettings(problems) => format!("refuse the settings: {}", problems.join("; ")),
            Said::NotAsked => "nothing: the policy's manifest excludes this phase".to_owned(),
        }
    }
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    if texts.is_empty() {
        String::new()
    } else {
        format!(" with {}", texts.join(" and "))
    }
}

fn other_code<'a>(what: &'a str, expected: &'a str, found: &'a str) -> impl Iterator<Item = String> + 'a {
    (expected != found)
        .then(|| format!("{what}: expected {expected}, got {found}"))
        .into_iter()
}

fn lacking<'a>(what: &'a str, texts: &'a [String], found: &'a str) -> impl Iterator<Item = String> + 'a {
    let absent = texts.iter().filter(move |text| !found.contains(text.as_str()));
    absent.map(move |text| format!("{what} does not contain {text:?}: {found:?}"))
}

/// Path at which two values differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// Dotted path, with indices of lists.
    pub(super) path: String,
    expected: Option<Value>,
    found: Option<Value>,
}

impl Change {
    fn line(&self) -> String {
        let told = |value: &Option<Value>| {
            let value = value.as_ref();
            value.map_or_else(|| "nothing".to_owned(), Value::to_string)
        };
        let (expected, found) = (told(&self.expected), told(&self.found));
        format!("{}: expected {expected}, got {found}", self.path)
    }
}

/// Every path at which two values differ.
pub(super) fn paths(expected: &Value, found: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk("arguments", Some(expected), Some(found), &mut changes);
    changes
}

fn walk(path: &str, expected: Option<&Value>, found: Option<&Value>, changes: &mut Vec<Change>) {
    match (expected, found) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                walk(&format!("{path}.{key}"), one.get(key), other.get(key), changes);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for place in 0..one.len().max(other.len()) {
                walk(
                    &format!("{path}[{place}]"),
                    one.get(place),
                    other.get(place),
                    changes,
                );
            }
        }
        (one, other) if one == other => {}
        (one, other) => changes.push(Change {
            path: path.to_owned(),
            expected: one.cloned(),
            found: other.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn every_expectation_against_everything_that_may_be_said() {
        let expectations = [
            Expected::Pass,
            Expected::Deny {
                code: "A".to_owned(),
                texts: texts(&["no", "wait"]),
            },
            Expected::Amend(json!({"a": 1, "b": [1, 2], "c": {"d": true}})),
            Expected::Ask {
                texts: texts(&["Really"]),
                otherwise: Some("A".to_owned()),
            },
            Expected::Fail(Cause::Crash),
            Expected::BadSettings(texts(&["calls"])),
        ];
        let said = [
            Said::Pass,
            Said::Deny {
                code: "B".to_owned(),
                text: "no; go".to_owned(),
            },
            Said::Amend(json!({"a": 2, "b": [1], "e": null, "c": {"d": true}})),
            Said::Ask {
                message: "Sure?".to_owned(),
                otherwise: "A".to_owned(),
            },
            Said::Failed {
                cause: Cause::Deadline,
                detail: "spun".to_owned(),
            },
            Said::BadSettings(texts(&["seconds: must be at least 1"])),
        ];
        let mut table = String::new();
        for (expected, said) in expectations.iter().zip(&said) {
            table += &format!("{} / {}\n", expected.line(), said.line());
            for line in expected.differences(said) {
                table += &format!("    {line}\n");
            }
            let others = expectations.iter().filter(|other| *other != expected);
            assert!(
                others
                    .map(|other| other.differences(said))
                    .all(|found| found.len() == 2)
            );
        }
        expect![[r#"
            pass / pass
            deny A with "no" and "wait" / deny B: no; go
                code: expected A, got B
                its message does not contain "wait": "no; go"
            amend to {"a":1,"b":[1,2],"c":{"d":true}} / amend to {"a":2,"b":[1],"e":null,"c":{"d":true}}
                arguments.a: expected 1, got 2
                arguments.b[1]: expected 2, got nothing
                arguments.e: expected nothing, got null
            ask with "Really", otherwise A / ask "Sure?", otherwise A
                the question does not contain "Really": "Sure?"
            fail: it crashed / fail: it ran out of time (spun)
                expected: fail: it crashed
                got:      fail: it ran out of time (spun)
            refuse the settings with "calls" / refuse the settings: seconds: must be at least 1
                the message about the settings does not contain "calls": "seconds: must be at least 1"
        "#]]
        .assert_eq(&table);
    }
}
