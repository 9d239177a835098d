//! Policies: the strictness of a job. A job stores only the differences from the defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Reason, Refusals};
use crate::model::{EvidenceMode, Exhausted};

/// Default format of commit messages.
pub(crate) const COMMIT_TEMPLATE: &str = "{step_id}: {summary}";

/// Policies in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policies {
    /// Submissions need a devlog line.
    pub require_devlog_per_step: bool,
    /// Submissions need a commit hash, or a batch-commit token if those are allowed.
    pub require_commit_per_step: bool,
    /// Commits may be deferred with a token.
    pub allow_batch_commits: bool,
    /// Number of steps for which a token is valid.
    pub batch_commit_max_steps: u32,
    /// Evidence must contain `tests_run` and `tests_passed`.
    pub require_tests_evidence: bool,
    /// Evidence must contain a `diff_summary`.
    pub require_diff_summary: bool,
    /// A job with a repository needs a baseline snapshot before it is READY.
    pub require_repo_snapshot_on_init: bool,
    /// Every prompt repeats the invariants, not only the first one and those of checkpoints.
    pub inject_invariants_every_step: bool,
    /// Prompts list relevant mistakes.
    pub inject_mistakes_every_step: bool,
    /// `strict` checks the quality of evidence and requires the whole criteria_checklist.
    pub evidence_schema_mode: EvidenceMode,
    /// After a rejection, mistake_record must add a lesson before the next submission.
    pub require_mistake_on_reject: bool,
    /// New files need one line each in the evidence `file_descriptions`.
    pub require_file_descriptions: bool,
    /// Number of steps between inserted checkpoints; 0 for none.
    pub checkpoint_interval_steps: u32,
    /// Number of rejections of a step before `retry_exhausted_action`.
    pub max_retries_per_step: u32,
    /// Action when a step has used up its rejections.
    pub retry_exhausted_action: Exhausted,
    /// Format of messages by git_commit; `{job_id}`, `{step_id}`, `{title}` and `{summary}` are filled in.
    pub commit_message_template: String,
    /// Maximum length of a prompt in characters. Context is shortened first.
    pub prompt_max_chars: u32,
}

impl Default for Policies {
    fn default() -> Policies {
        Policies {
            require_devlog_per_step: true,
            require_commit_per_step: false,
            allow_batch_commits: true,
            batch_commit_max_steps: 3,
            require_tests_evidence: true,
            require_diff_summary: true,
            require_repo_snapshot_on_init: false,
            inject_invariants_every_step: true,
            inject_mistakes_every_step: true,
            evidence_schema_mode: EvidenceMode::Loose,
            require_mistake_on_reject: false,
            require_file_descriptions: false,
            checkpoint_interval_steps: 5,
            max_retries_per_step: 2,
            retry_exhausted_action: Exhausted::PauseForHuman,
            commit_message_template: COMMIT_TEMPLATE.to_owned(),
            prompt_max_chars: 16_000,
        }
    }
}

/// Policies to change; omitted ones keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyChanges {
    /// Submissions need a devlog line. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_devlog_per_step: Option<bool>,
    /// Submissions need a commit hash or batch token. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_commit_per_step: Option<bool>,
    /// Commits may be deferred with a token. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_batch_commits: Option<bool>,
    /// Number of steps a batch token is valid for. Default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub batch_commit_max_steps: Option<u32>,
    /// Evidence must contain tests_run and tests_passed. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_tests_evidence: Option<bool>,
    /// Evidence must contain diff_summary. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_diff_summary: Option<bool>,
    /// The job needs a snapshot before it is READY. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_repo_snapshot_on_init: Option<bool>,
    /// Every prompt repeats the invariants. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject_invariants_every_step: Option<bool>,
    /// Prompts list relevant mistakes. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject_mistakes_every_step: Option<bool>,
    /// `strict` checks the quality of evidence and requires the whole criteria_checklist. Default loose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_schema_mode: Option<EvidenceMode>,
    /// After a rejection, mistake_record must add a lesson before the next submission. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_mistake_on_reject: Option<bool>,
    /// New files need one line each in file_descriptions. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_file_descriptions: Option<bool>,
    /// Steps between inserted checkpoints; 0 for none. Default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub checkpoint_interval_steps: Option<u32>,
    /// Rejections of a step before retry_exhausted_action. Default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub max_retries_per_step: Option<u32>,
    /// Action after too many rejections. Default PAUSE_FOR_HUMAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_exhausted_action: Option<Exhausted>,
    /// Format of commit messages, with {job_id}, {step_id}, {title}, {summary}. Default "{step_id}: {summary}".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub commit_message_template: Option<String>,
    /// Maximum prompt length in characters. Default 16000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2000, max = 100_000))]
    pub prompt_max_chars: Option<u32>,
}

/// Lists every field once, for the three operations on all of them.
macro_rules! each_policy {
    ($each:ident) => {
        $each!(
            require_devlog_per_step,
            require_commit_per_step,
            allow_batch_commits,
            batch_commit_max_steps,
            require_tests_evidence,
            require_diff_summary,
            require_repo_snapshot_on_init,
            inject_invariants_every_step,
            inject_mistakes_every_step,
            evidence_schema_mode,
            require_mistake_on_reject,
            require_file_descriptions,
            checkpoint_interval_steps,
            max_retries_per_step,
            retry_exhausted_action,
            commit_message_template,
            prompt_max_chars
        )
    };
}

impl PolicyChanges {
    /// Policies after these changes.
    pub(crate) fn over(&self, base: &Policies) -> Policies {
        let mut policies = base.clone();
        macro_rules! apply {
            ($($field:ident),+) => {
                $(if let Some(value) = &self.$field {
                    policies.$field = value.clone();
                })+
            };
        }
        each_policy!(apply);
        policies
    }

    /// Combines these changes with later ones.
    pub(crate) fn merged(self, later: PolicyChanges) -> PolicyChanges {
        macro_rules! merge {
            ($($field:ident),+) => {
                PolicyChanges { $($field: later.$field.or(self.$field)),+ }
            };
        }
        each_policy!(merge)
    }

    /// Names of the changed policies.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        macro_rules! name {
            ($($field:ident),+) => {
                $(if self.$field.is_some() {
                    names.push(stringify!($field));
                })+
            };
        }
        each_policy!(name);
        names
    }

    /// Refuses values out of range.
    pub(crate) fn check(&self, field: &str, refusals: &mut Refusals) {
        let mut range = |name: &str, value: Option<u32>, least: u32, most: u32| {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                refusals.add(Reason::argument(
                    format!("{field}.{name}"),
                    format!("is {value}, not within {least} to {most}"),
                ));
            }
        };
        range("batch_commit_max_steps", self.batch_commit_max_steps, 1, 20);
        range(
            "checkpoint_interval_steps",
            self.checkpoint_interval_steps,
            0,
            100,
        );
        range("max_retries_per_step", self.max_retries_per_step, 0, 100);
        range("prompt_max_chars", self.prompt_max_chars, 2_000, 100_000);
        if let Some(template) = &self.commit_message_template
            && (template.trim().is_empty() || !template.contains("{summary}"))
        {
            refusals.add(Reason::argument(
                format!("{field}.commit_message_template"),
                "must contain {summary}",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn later_changes_win_and_the_rest_stays() {
        let changes: PolicyChanges =
            serde_json::from_value(json!({"max_retries_per_step": 5, "require_commit_per_step": true}))
                .unwrap();
        let later = serde_json::from_value(json!({"max_retries_per_step": 1})).unwrap();
        let merged = changes.merged(later);
        assert_eq!(
            merged.names(),
            ["require_commit_per_step", "max_retries_per_step"]
        );
        let policies = merged.over(&Policies::default());
        assert_eq!(policies.max_retries_per_step, 1);
        assert!(policies.require_commit_per_step && policies.require_devlog_per_step);
    }

    #[test]
    fn the_page_states_the_defaults() {
        let page = include_str!("../../../docs/conductor.md");
        let (_, table) = page.split_once("| policy | default |\n|---|---|\n").unwrap();
        let quoted = |cell: &str| -> Vec<String> {
            let pieces = cell.split('`').skip(1).step_by(2);
            pieces.map(str::to_owned).collect()
        };
        let mut stated = BTreeMap::new();
        for row in table.lines().take_while(|line| line.starts_with('|')) {
            let cells: Vec<Vec<String>> = row.split('|').map(quoted).collect();
            let (names, default) = (&cells[1], &cells[2][0]);
            stated.extend(names.iter().map(|name| (name.clone(), default.clone())));
        }
        let policies = serde_json::to_value(Policies::default()).unwrap();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let policies = policies.as_object().unwrap().iter();
        let defaults: BTreeMap<String, String> = policies
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        assert_eq!(stated, defaults);
    }

    #[test]
    fn the_changes_know_every_policy() {
        let policies = serde_json::to_value(Policies::default()).unwrap();
        let changes: PolicyChanges = serde_json::from_value(policies.clone()).unwrap();
        assert_eq!(changes.names().len(), policies.as_object().unwrap().len());
    }
}
