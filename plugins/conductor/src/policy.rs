//! How strict a job is. A job stores what differs from the defaults; everything else follows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Reason, Refusals};
use crate::model::{EvidenceMode, Exhausted};

/// What a commit message looks like unless the job says otherwise.
pub(crate) const COMMIT_TEMPLATE: &str = "{step_id}: {summary}";

/// The policies in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policies {
    /// A submission needs a devlog line.
    pub require_devlog_per_step: bool,
    /// A submission needs a commit hash, or a batch-commit token if those are allowed.
    pub require_commit_per_step: bool,
    /// Commits may be put off with a token.
    pub allow_batch_commits: bool,
    /// How many steps a token is good for.
    pub batch_commit_max_steps: u32,
    /// Evidence has `tests_run` and `tests_passed`.
    pub require_tests_evidence: bool,
    /// Evidence has a `diff_summary`.
    pub require_diff_summary: bool,
    /// A job with a repository needs a baseline of it before it is ready.
    pub require_repo_snapshot_on_init: bool,
    /// Every prompt repeats the invariants, not only the first and the checkpoints.
    pub inject_invariants_every_step: bool,
    /// Prompts remind of relevant mistakes.
    pub inject_mistakes_every_step: bool,
    /// `strict` looks at the quality of evidence and wants the whole criteria_checklist.
    pub evidence_schema_mode: EvidenceMode,
    /// After a rejection a mistake has to be recorded before the next submission.
    pub require_mistake_on_reject: bool,
    /// New files need a line each in the evidence `file_descriptions`.
    pub require_file_descriptions: bool,
    /// A checkpoint step after so many steps; 0 for none.
    pub checkpoint_interval_steps: u32,
    /// How many rejections a step may have before `retry_exhausted_action`.
    pub max_retries_per_step: u32,
    /// What happens when a step was rejected too often.
    pub retry_exhausted_action: Exhausted,
    /// How git_commit writes messages: `{job_id}`, `{step_id}`, `{title}` and `{summary}` are filled in.
    pub commit_message_template: String,
    /// Longest prompt, in characters. Context gives way first.
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

/// Policies to change; those left out stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyChanges {
    /// A submission needs a devlog line. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_devlog_per_step: Option<bool>,
    /// A submission needs a commit hash or batch token. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_commit_per_step: Option<bool>,
    /// Commits may be put off with a token. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_batch_commits: Option<bool>,
    /// Steps a batch token is good for. Default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub batch_commit_max_steps: Option<u32>,
    /// Evidence has tests_run and tests_passed. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_tests_evidence: Option<bool>,
    /// Evidence has a diff_summary. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_diff_summary: Option<bool>,
    /// A baseline of the repository is needed before the job is ready. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_repo_snapshot_on_init: Option<bool>,
    /// Every prompt repeats the invariants. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject_invariants_every_step: Option<bool>,
    /// Prompts remind of relevant mistakes. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject_mistakes_every_step: Option<bool>,
    /// `strict` looks at the quality of evidence and wants the whole criteria_checklist. Default loose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_schema_mode: Option<EvidenceMode>,
    /// A rejection wants a recorded mistake. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_mistake_on_reject: Option<bool>,
    /// New files need a line each in the evidence file_descriptions. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_file_descriptions: Option<bool>,
    /// A checkpoint step after so many steps, 0 for none. Default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub checkpoint_interval_steps: Option<u32>,
    /// Rejections a step may have before retry_exhausted_action. Default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub max_retries_per_step: Option<u32>,
    /// What happens then. Default PAUSE_FOR_HUMAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_exhausted_action: Option<Exhausted>,
    /// How git_commit writes messages, with {job_id}, {step_id}, {title}, {summary}.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub commit_message_template: Option<String>,
    /// Longest prompt in characters. Default 16000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2000, max = 100_000))]
    pub prompt_max_chars: Option<u32>,
}

/// Names every field once for the three things done with all of them.
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
    /// The policies after these changes.
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

    /// These changes and later ones together.
    pub(crate) fn merged(self, later: PolicyChanges) -> PolicyChanges {
        macro_rules! merge {
            ($($field:ident),+) => {
                PolicyChanges { $($field: later.$field.or(self.$field)),+ }
            };
        }
        each_policy!(merge)
    }

    /// The names of the policies that are changed.
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

    /// Wants values that can be worked with.
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
                "has to contain {summary}",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn the_changes_know_every_policy() {
        let policies = serde_json::to_value(Policies::default()).unwrap();
        let changes: PolicyChanges = serde_json::from_value(policies.clone()).unwrap();
        assert_eq!(changes.names().len(), policies.as_object().unwrap().len());
    }
}
