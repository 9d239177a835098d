//! Tools that find stale files and suggest clean-ups.

use std::fmt::Write as _;

use conductor_repo::hygiene::{self, Action, Suggestion};
use conductor_repo::path::show;
use conductor_repo::stale::Candidate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tool, ToolError};

use super::find_job;
use super::map::replies::word;
use super::repo::root_of;
use crate::error::{GitFault, Reason, Refusals};
use crate::git::Git;
use crate::model::JobId;
use crate::page::{self, Cursor};
use crate::repo::kept::{self, KeptAges};
use crate::repo::knowledge::Knowledge;
use crate::store::part::{self, Kind};
use crate::store::step::{self, Step};

/// List files that may be stale, each with reasons: never imported, named like a backup, duplicate of another
/// file, described as deprecated, long unchanged in Git. Reasons are hints, not proofs. Fails if there is no
/// map.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-charge" = "nothing"))]
pub(crate) struct RepoFindStaleCandidates {
    job_id: JobId,
    /// Minimum score, 30 to 100. Default 30.
    #[schemars(range(min = 30, max = 100))]
    min_score: Option<u32>,
    /// Maximum number of files, 1 to 200. Default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<Cursor>,
    /// Old name of cursor: number of files to skip.
    #[schemars(extend("deprecated" = true))]
    offset: Option<u32>,
}

/// Files that may be stale.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StalePage {
    /// Files, highest score first.
    candidates: Vec<StaleLine>,
    /// Total number of files.
    total: usize,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Commit up to which Git reported the ages of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    ages_at: Option<String>,
    /// Number of files added or changed since the last update of the map. While there are any, no file counts
    /// as never imported.
    unread: usize,
    /// Other warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A file that may be stale.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StaleLine {
    /// Path of the file.
    path: String,
    /// Strength of the reasons together, at most 100.
    score: u32,
    /// Reasons, strongest first.
    reasons: Vec<String>,
    /// Call that shows which files import it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

impl StaleLine {
    fn new(job: &JobId, candidate: &Candidate) -> StaleLine {
        StaleLine {
            path: candidate.path.clone(),
            score: candidate.score,
            reasons: candidate.reasons.iter().map(ToString::to_string).collect(),
            next_call: Some(NextCall::new(
                "repo_map_query",
                json!({"job_id": job, "importers_of": candidate.path}),
            )),
        }
    }
}

impl Tool for RepoFindStaleCandidates {
    const NAME: &'static str = "repo_find_stale_candidates";
    const TITLE: &'static str = "Find stale files";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = StalePage;

    fn run(self, cx: &Cx<'_>) -> Result<StalePage, ToolError> {
        let (least, limit, offset) = self.check()?;
        let (job, mut knowledge) = cx.transaction(|db| {
            let job = find_job(&db, &self.job_id)?;
            let knowledge = Knowledge::load(&db, &job.id)?;
            Ok::<_, ToolError>((job, knowledge))
        })?;
        let mut warnings = Vec::new();
        match ages(cx, root_of(&job)?, knowledge.ages.as_ref()) {
            Ok(Some(ages)) => {
                let after = kept::ages_to(&ages)?;
                cx.transaction(|db| part::put_all(&db, &job.id, Kind::Ages, &after))?;
                knowledge.ages = Some(ages);
            }
            Ok(None) => {}
            Err(fault) => warnings.push(format!("cannot determine the ages of files: {fault}")),
        }
        let stale = knowledge.map().stale;
        let wanted: Vec<&Candidate> = stale.iter().filter(|found| found.score >= least).collect();
        let end = offset.saturating_add(limit);
        let shown = wanted.iter().skip(offset as usize).take(limit as usize);
        Ok(StalePage {
            candidates: shown
                .map(|candidate| StaleLine::new(&job.id, candidate))
                .collect(),
            total: wanted.len(),
            next_cursor: page::after(end, wanted.len()),
            unread: knowledge.unread(),
            ages_at: knowledge.ages.map(|ages| ages.commit),
            warnings,
        })
    }
}

impl RepoFindStaleCandidates {
    fn check(&self) -> Result<(u32, u32, u32), ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50);
        let offset = page::skipped(&mut refusals, self.cursor.as_ref(), self.offset);
        let least = self.min_score.unwrap_or(30);
        if !(30..=100).contains(&least) {
            refusals.add(Reason::argument(
                "min_score",
                format!("is {least}, not within 30 to 100"),
            ));
        }
        refusals.finish()?;
        Ok((least, limit, offset))
    }
}

/// Reads from Git when files last changed, if Git knows more than is stored.
fn ages(cx: &Cx<'_>, root: &str, known: Option<&KeptAges>) -> Result<Option<KeptAges>, GitFault> {
    match Git::open(cx, Some(root)).and_then(|git| git.ages(known, cx.now().as_ms())) {
        Err(GitFault::NoRepository(_)) => Ok(None),
        result => result,
    }
}

/// Suggest clean-ups for the job's repository: imports to repair; files to delete, merge, move, review or
/// describe. Each suggestion has reasons and the next call. Changes nothing. Fails if there is no map.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoHygieneSuggest {
    job_id: JobId,
    /// Maximum number of suggestions, 1 to 200. Default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<Cursor>,
}

/// A clean-up plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HygienePlan {
    /// Suggestions, most urgent first.
    suggestions: Vec<SuggestionLine>,
    /// Total number of suggestions.
    total: usize,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Number of files added or changed since the last update of the map.
    unread: usize,
    /// Call that stores the plan in a context block, ready to run. Absent if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_plan: Option<NextCall>,
    /// Call that adds a clean-up step with criteria, ready to run while steps may be added. Absent if there is
    /// nothing to delete or merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    add_step: Option<NextCall>,
}

/// A suggestion.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SuggestionLine {
    /// Action: repair, delete, merge, move, review, describe or forget.
    action: String,
    /// Paths of the files.
    paths: Vec<String>,
    /// New path of the file, or the file to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Reasons for the suggestion.
    reasons: Vec<String>,
    /// Call to make next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

impl SuggestionLine {
    fn new(job: &JobId, suggestion: &Suggestion) -> SuggestionLine {
        let mut arguments = suggestion.next_call.arguments.clone();
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("job_id".to_owned(), json!(job));
        }
        SuggestionLine {
            action: word(&suggestion.action),
            paths: suggestion.paths.clone(),
            target: suggestion.target.clone(),
            reasons: suggestion.reasons.clone(),
            next_call: Some(NextCall::new(suggestion.next_call.tool.as_str(), arguments)),
        }
    }
}

impl Tool for RepoHygieneSuggest {
    const NAME: &'static str = "repo_hygiene_suggest";
    const TITLE: &'static str = "Suggest a clean-up";
    const EFFECT: Effect = Effect::Read;
    type Output = HygienePlan;

    fn run(self, cx: &Cx<'_>) -> Result<HygienePlan, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50);
        let skipped = page::skipped(&mut refusals, self.cursor.as_ref(), None);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        let knowledge = Knowledge::load(&cx.db, &job.id)?;
        let all = hygiene::suggest(&knowledge.map(), &knowledge.undescribed());
        let end = skipped.saturating_add(limit);
        let shown = all
            .get(skipped as usize..(end as usize).min(all.len()))
            .unwrap_or_default();
        Ok(HygienePlan {
            keep_plan: (!shown.is_empty()).then(|| {
                let block = json!({
                    "job_id": job.id, "block_type": "PLAN", "tags": ["hygiene"], "content": plan(shown),
                });
                NextCall::new("context_add_block", block)
            }),
            add_step: cleanup_step(
                &job.id,
                step::all(&cx.db, &job.id)?.last(),
                shown,
                crate::access::has_tests(cx, job.repo_root.as_deref()),
            ),
            suggestions: shown
                .iter()
                .map(|suggestion| SuggestionLine::new(&job.id, suggestion))
                .collect(),
            total: all.len(),
            next_cursor: page::after(end, all.len()),
            unread: knowledge.unread(),
        })
    }
}

/// Plan as a Markdown list.
fn plan(suggestions: &[Suggestion]) -> String {
    let mut text = String::from("# Clean-up plan\n\n");
    for suggestion in suggestions {
        let paths: Vec<String> = suggestion
            .paths
            .iter()
            .map(|path| show(path).into_owned())
            .collect();
        let target = suggestion
            .target
            .as_ref()
            .map(|target| format!(" -> {}", show(target)));
        let _ = writeln!(
            text,
            "- {} {}{}: {}",
            word(&suggestion.action),
            paths.join(", "),
            target.unwrap_or_default(),
            suggestion.reasons.join("; ")
        );
    }
    text
}

/// Step that deletes or merges the suggested files, at the end of the chain.
fn cleanup_step(
    job: &JobId,
    last: Option<&Step>,
    suggestions: &[Suggestion],
    has_tests: bool,
) -> Option<NextCall> {
    /// Maximum number of criteria of one step.
    const MAX_CRITERIA: usize = 20;
    let goes = suggestions
        .iter()
        .filter_map(|suggestion| match suggestion.action {
            Action::Delete | Action::Merge => suggestion.paths.first(),
            _ => None,
        });
    let goes: Vec<&String> = goes.take(MAX_CRITERIA).collect();
    if goes.is_empty() {
        return None;
    }
    let mut criteria: Vec<String> = goes
        .iter()
        .map(|path| format!("{} is deleted", show(path)))
        .collect();
    criteria.push("the tests still pass".to_owned());
    let mut gates = vec![json!({"gate": "file_not_exists", "paths": goes})];
    if has_tests {
        gates.push(json!({"gate": "tests_passed"}));
    }
    let step = json!({
        "title": "Clean up",
        "instruction_prompt": "Before you delete or merge a file, find its importers with repo_map_query and \
            importers_of. If something needs a file, let a person remove the file from the step's gates with \
            plan_refine_steps. Change nothing else.",
        "acceptance_criteria": criteria,
        "required_evidence": {"changed_files": "array", "tests_passed": "boolean", "criteria_checklist": "object"},
        "remediation_prompt": "Restore the files that are still needed, and keep them.",
        "gates": gates,
        "tags": ["hygiene"],
    });
    let mut edit = json!({"op": "insert", "step": step});
    if let (Some(edit), Some(last)) = (edit.as_object_mut(), last) {
        edit.insert("after".to_owned(), json!(last.step_id));
    }
    Some(NextCall::new(
        "plan_refine_steps",
        json!({"job_id": job, "edits": [edit]}),
    ))
}
