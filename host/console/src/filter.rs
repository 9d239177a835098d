//! Filter of the ledger page: words such as `tool:test_run failed`, combined with AND.

use tollgate_core::text::is_hidden;
use tollgate_store::storage::{OperationFilter, StoredOperation, claim};

/// Words that a person typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// As typed.
    pub(crate) typed: String,
    /// Filters that the store understands.
    pub(crate) known: OperationFilter,
    /// Only calls of tests that failed, or of any call that failed.
    any_failure: bool,
    /// Parts of names, in lower case.
    parts: Vec<String>,
    /// Names as the column of the caller shows them, in lower case.
    who: Vec<String>,
    /// Parts of ids of envelopes.
    envelopes: Vec<String>,
    /// Words that look like a key, and are searched for literally.
    unknown: Vec<String>,
}

/// Keys that a filter supports, as the page names them.
pub(crate) const KEYS: &str = "tool: pack: who: actor: policy: effect: envelope: code: fingerprint: tests:failed tests:passed failed ok";

impl Filter {
    /// Parses the typed words. A word without a known key is a part of a name.
    pub(crate) fn parse(typed: &str) -> Filter {
        let mut filter = Filter {
            typed: typed.chars().filter(|c| !is_hidden(*c)).take(200).collect(),
            ..Filter::default()
        };
        let words: Vec<String> = filter.typed.split_whitespace().map(str::to_owned).collect();
        for word in words {
            let known = &mut filter.known;
            let value = |value: &str| Some(value.to_owned());
            match word.split_once(':') {
                Some(("tool", tool)) => known.tool = value(&tool.to_lowercase()),
                Some(("pack", pack)) => known.pack = value(pack),
                Some(("who", name)) => filter.who.push(name.to_lowercase()),
                Some(("actor", actor)) => known.actor = value(actor),
                Some(("policy", policy)) => known.policy = value(policy),
                Some(("effect", effect)) => known.effect = value(effect),
                Some(("envelope", id)) if id.starts_with("env_") => known.envelope_id = value(id),
                // Columns show only a part of the id.
                Some(("envelope", part)) => filter.envelopes.push(part.to_lowercase()),
                Some(("code", code)) => known.error_code = value(&code.to_ascii_uppercase()),
                Some(("tests", "failed")) => known.tests_passed = Some(false),
                Some(("tests", "passed")) => known.tests_passed = Some(true),
                Some(("fingerprint", hash)) => known.failure_fingerprint = value(hash),
                None if word == "failed" => filter.any_failure = true,
                None if word == "ok" => known.success = Some(true),
                found => {
                    if found.is_some_and(|(key, value)| is_like_key(key, value)) {
                        filter.unknown.push(word.clone());
                    }
                    filter.parts.push(word.to_lowercase());
                }
            }
        }
        filter
    }

    /// Words that look like a key but are not one, as typed.
    pub(crate) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Returns whether the filter matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.typed.trim().is_empty()
    }

    /// Returns whether matching requires more than the store's own filters.
    pub(crate) fn looks_at_each(&self) -> bool {
        let lists = [&self.parts, &self.who, &self.envelopes];
        self.any_failure || lists.iter().any(|list| !list.is_empty())
    }

    /// Returns whether an operation matches.
    pub(crate) fn fits(&self, operation: &StoredOperation) -> bool {
        let fails = || {
            operation.success == Some(false)
                || operation
                    .outcome
                    .as_ref()
                    .is_some_and(tollgate_store::storage::StoredTestOutcome::is_failure)
        };
        self.known.fits(operation)
            && (!self.any_failure || fails())
            && self.parts.iter().all(|part| has(operation, part))
            && self.who.iter().all(|name| is_by(operation, name))
            && self.envelopes.iter().all(|part| {
                let id = operation.envelope_id.as_deref();
                id.is_some_and(|id| id.to_lowercase().contains(part))
            })
    }

    /// Filter as a query string.
    pub(crate) fn query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("q", &self.typed);
        query.finish()
    }
}

/// Returns whether a word is probably meant as a key. Names of tests also contain colons, mostly two.
fn is_like_key(key: &str, value: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase()) && !value.starts_with(':')
}

/// Returns whether the column of the caller or the ledger has this name.
fn is_by(operation: &StoredOperation, name: &str) -> bool {
    let shown = match operation.actor.as_deref() {
        Some(actor) => claim(actor).or(actor.strip_prefix("token:")),
        None => operation.client.as_deref(),
    };
    let mut names = [shown, operation.actor.as_deref()].into_iter().flatten();
    names.any(|known| known.to_lowercase() == name)
}

fn has(operation: &StoredOperation, part: &str) -> bool {
    let names = [
        Some(&operation.tool),
        Some(&operation.pack),
        operation.actor.as_ref(),
        operation.client.as_ref(),
        operation.error_code.as_ref(),
        operation.envelope_id.as_ref(),
    ];
    let names = names.into_iter().flatten();
    let more = operation.failing_tests.iter().flatten();
    let more = more.chain(operation.changed_paths.iter().flatten());
    let policies = operation.verdicts.iter().map(|said| &said.policy);
    names
        .chain(more)
        .chain(policies)
        .any(|name| name.to_lowercase().contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_like_keys_are_told() {
        let unknown = |typed: &str| Filter::parse(typed).unknown().join(" ");
        assert_eq!(
            unknown("tol:test_run tests:maybe failed who:ada"),
            "tol:test_run tests:maybe"
        );
        assert_eq!(unknown("parser::tests::it_works src/a.rs:7 12:30 :x"), "");
    }

    #[test]
    fn words_are_keys_or_parts_of_names() {
        let operation = StoredOperation {
            tool: "test_run".to_owned(),
            effect: "run".to_owned(),
            actor: Some("claimed:Ada".to_owned()),
            envelope_id: Some("env_01m8qk3v7w2r5".to_owned()),
            success: Some(false),
            error_code: Some("FROZEN".to_owned()),
            changed_paths: Some(vec!["src/Parser.rs".to_owned()]),
            ..StoredOperation::default()
        };
        let fits = |typed: &str| Filter::parse(typed).fits(&operation);
        for typed in [
            "",
            "  ",
            "failed",
            "tool:test_run",
            "ada",
            "parser",
            "code:frozen failed",
            "who:Ada effect:run",
            "who:claimed:ada",
            "tool:Test_Run",
            "envelope:w2r5",
            "envelope:env_01m8qk3v7w2r5",
        ] {
            assert!(fits(typed), "{typed}");
        }
        for typed in [
            "ok",
            "tool:test",
            "ada grace",
            "policy:x",
            "tests:failed",
            "tool:",
            "who:ad",
            "envelope:w2r6",
            "<script>",
        ] {
            assert!(!fits(typed), "{typed}");
        }
        let unnamed = StoredOperation {
            actor: None,
            client: Some("agent".to_owned()),
            ..operation.clone()
        };
        assert!(Filter::parse("who:Agent").fits(&unnamed), "the client is shown");
        assert!(Filter::parse(" ").is_empty());
        assert_eq!(Filter::parse("a&b=\"").query(), "q=a%26b%3D%22");
        assert_eq!(Filter::parse(&"x".repeat(999)).typed.len(), 200);
    }
}
