//! Verdicts of policies in a report: denials, questions, amendments, and the same in audit mode.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_core::text::named;

use super::text::times;
use crate::storage::StoredOperation;

/// Verdicts of one policy other than passes, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judged {
    /// Name of the policy in the configuration.
    pub policy: String,
    /// Verdict: `amend`, `deny`, `ask` or `failed`.
    pub verdict: String,
    /// True in audit mode, in which verdicts have no effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub audit: bool,
    /// Number of verdicts.
    pub count: i64,
    /// Tools of the calls.
    pub tools: BTreeSet<String>,
    /// Codes that the policy gave.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub codes: BTreeSet<String>,
    /// Sequence number of the last call in the ledger.
    pub last_seq: i64,
}

/// Verdicts of the operations so far.
#[derive(Default)]
pub(super) struct Verdicts(BTreeMap<(String, String, bool), Judged>);

impl Verdicts {
    pub(super) fn hear(&mut self, operation: &StoredOperation) {
        for said in operation.verdicts.iter().filter(|said| said.verdict != "pass") {
            let audit = said.mode == "audit";
            let key = (said.policy.clone(), said.verdict.clone(), audit);
            let judged = self.0.entry(key).or_insert_with(|| Judged {
                policy: said.policy.clone(),
                verdict: said.verdict.clone(),
                audit,
                count: 0,
                tools: BTreeSet::new(),
                codes: BTreeSet::new(),
                last_seq: operation.seq,
            });
            judged.count += 1;
            judged.last_seq = operation.seq;
            judged.tools.insert(operation.tool.clone());
            judged.codes.extend(said.code.clone());
        }
    }

    /// Verdicts, most frequent first.
    pub(super) fn finish(self) -> Vec<Judged> {
        let mut all: Vec<Judged> = self.0.into_values().collect();
        all.sort_by_key(|judged| -judged.count);
        all
    }
}

/// Line about the verdicts of a policy.
pub(super) fn tell(judged: &Judged) -> String {
    let list = |names: &BTreeSet<String>| {
        let names: Vec<String> = names.iter().map(|name| named(name)).collect();
        names.join(", ")
    };
    let did = match (judged.verdict.as_str(), judged.audit) {
        ("deny", false) => "denied",
        ("deny", true) => "would have denied",
        ("ask", false) => "asked about",
        ("ask", true) => "would have asked about",
        ("amend", false) => "changed",
        ("amend", true) => "would have changed",
        _ => "could not evaluate",
    };
    let codes = match judged.codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", list(&judged.codes)),
    };
    format!(
        "{} {did} {} {}{codes}, the last at #{}",
        named(&judged.policy),
        list(&judged.tools),
        times(judged.count),
        judged.last_seq
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::SaidByPolicy;

    #[test]
    fn verdicts_are_counted_by_policy_and_mode() {
        let said = |verdict: &str, mode: &str, code: Option<&str>| SaidByPolicy {
            policy: "guard".to_owned(),
            verdict: verdict.to_owned(),
            mode: mode.to_owned(),
            code: code.map(str::to_owned),
            ..SaidByPolicy::default()
        };
        let mut verdicts = Verdicts::default();
        for (seq, tool, said) in [
            (1, "task_get", said("pass", "enforce", None)),
            (2, "task_create", said("deny", "enforce", Some("TOO_LATE"))),
            (3, "test_run", said("deny", "enforce", Some("TOO_LATE"))),
            (4, "test_run", said("ask", "audit", None)),
        ] {
            verdicts.hear(&StoredOperation {
                seq,
                tool: tool.to_owned(),
                verdicts: vec![said],
                ..StoredOperation::default()
            });
        }
        let told: Vec<String> = verdicts.finish().iter().map(tell).collect();
        assert_eq!(
            told,
            [
                "guard denied task_create, test_run 2 times (TOO_LATE), the last at #3",
                "guard would have asked about test_run once, the last at #4",
            ]
        );
    }
}
