//! What may go from a job's repository, and what to do about it.

use std::fmt::Write as _;

use conductor_repo::hygiene::{self, Action, Suggestion};
use conductor_repo::path::show;
use conductor_repo::stale::Candidate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tool, ToolError};

use super::find_job;
use super::map::word;
use super::repo::root_of;
use crate::error::{GitFault, Reason, Refusals};
use crate::git::Git;
use crate::model::JobId;
use crate::repo::kept::{self, KeptAges};
use crate::repo::knowledge::Knowledge;
use crate::store::part::{self, Kind};
use crate::store::step::{self, Step};

/// List files that may be stale, each with its reasons: never imported, named like something put aside,
/// the same as another, described as deprecated, long untouched in Git. They are hints, not proofs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoFindStaleCandidates {
    /// The job.
    job_id: JobId,
    /// Only from this score, 30 to 100; 30 if left out.
    #[schemars(range(min = 30, max = 100))]
    min_score: Option<u32>,
    /// At most so many, 1 to 200; 50 if left out.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// Leave out so many first.
    #[serde(default)]
    offset: u32,
}

/// Files that may be stale.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StalePage {
    /// The files, the highest score first.
    candidates: Vec<StaleLine>,
    /// How many there are.
    total: usize,
    /// What to give as offset for more, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
    /// The commit up to which Git was asked how long files are untouched.
    #[serde(skip_serializing_if = "Option::is_none")]
    ages_at: Option<String>,
    /// Files that came or changed since the map was updated. While there are any, nothing is called
    /// never imported.
    unread: usize,
    /// What else should be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A file that may be stale.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StaleLine {
    /// The file.
    path: String,
    /// How much speaks for it, to 100.
    score: u32,
    /// What speaks for it, the strongest first.
    reasons: Vec<String>,
    /// The call that shows who would miss it.
    next_call: NextCall,
}

impl StaleLine {
    fn new(job: &JobId, candidate: &Candidate) -> StaleLine {
        StaleLine {
            path: candidate.path.clone(),
            score: candidate.score,
            reasons: candidate.reasons.iter().map(ToString::to_string).collect(),
            next_call: NextCall::new(
                "repo_map_query",
                json!({"job_id": job, "importers_of": candidate.path}),
            ),
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
        let (least, limit) = self.check()?;
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
            Err(fault) => warnings.push(format!("how long files are untouched is not known: {fault}")),
        }
        let stale = knowledge.map().stale;
        let wanted: Vec<&Candidate> = stale.iter().filter(|found| found.score >= least).collect();
        let end = self.offset.saturating_add(limit);
        let shown = wanted.iter().skip(self.offset as usize).take(limit as usize);
        Ok(StalePage {
            candidates: shown
                .map(|candidate| StaleLine::new(&job.id, candidate))
                .collect(),
            total: wanted.len(),
            next_offset: ((end as usize) < wanted.len()).then_some(end),
            unread: knowledge.unread(),
            ages_at: knowledge.ages.map(|ages| ages.commit),
            warnings,
        })
    }
}

impl RepoFindStaleCandidates {
    fn check(&self) -> Result<(u32, u32), ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50);
        let least = self.min_score.unwrap_or(30);
        if !(30..=100).contains(&least) {
            refusals.add(Reason::argument(
                "min_score",
                format!("is {least}, not within 30 to 100"),
            ));
        }
        refusals.finish()?;
        Ok((least, limit))
    }
}

/// When Git last saw files change, if it knows more than is kept.
fn ages(cx: &Cx<'_>, root: &str, known: Option<&KeptAges>) -> Result<Option<KeptAges>, GitFault> {
    match Git::open(cx, Some(root)).and_then(|git| git.ages(known, cx.now().as_ms())) {
        Err(GitFault::NoRepository(_)) => Ok(None),
        result => result,
    }
}

/// Suggest how to tidy the job's repository up: imports to repair, files to delete, merge, move, review or
/// describe, each with reasons and the call that comes next. Changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoHygieneSuggest {
    /// The job.
    job_id: JobId,
    /// At most so many, 1 to 200; 50 if left out.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// A plan for tidying up.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HygienePlan {
    /// What to do, the most pressing first.
    suggestions: Vec<SuggestionLine>,
    /// How many suggestions there are.
    total: usize,
    /// Files that came or changed since the map was updated.
    unread: usize,
    /// Ready to run: keeps the plan in a context block. Absent if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_plan: Option<NextCall>,
    /// Ready to run while steps may be added: a step that cleans up, with criteria. Absent if nothing is
    /// to be deleted or merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    add_step: Option<NextCall>,
}

/// One thing to do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SuggestionLine {
    /// repair, delete, merge, move, review, describe or forget.
    action: String,
    /// With which files.
    paths: Vec<String>,
    /// Where a file should go, or which one stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Why.
    reasons: Vec<String>,
    /// The call that comes next.
    next_call: NextCall,
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
            next_call: NextCall::new(suggestion.next_call.tool.as_str(), arguments),
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
        let limit = refusals.limit(self.limit, 50) as usize;
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        let knowledge = Knowledge::load(&cx.db, &job.id)?;
        let all = hygiene::suggest(&knowledge.map(), &knowledge.undescribed());
        let shown = all.get(..limit.min(all.len())).unwrap_or_default();
        Ok(HygienePlan {
            keep_plan: (!shown.is_empty()).then(|| {
                let block = json!({
                    "job_id": job.id, "block_type": "PLAN", "tags": ["hygiene"], "content": plan(shown),
                });
                NextCall::new("context_add_block", block)
            }),
            add_step: cleanup_step(&job.id, step::all(&cx.db, &job.id)?.last(), shown),
            suggestions: shown
                .iter()
                .map(|suggestion| SuggestionLine::new(&job.id, suggestion))
                .collect(),
            total: all.len(),
            unread: knowledge.unread(),
        })
    }
}

/// The plan as a list.
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

/// A step that deletes or merges what the plan says, at its end.
fn cleanup_step(job: &JobId, last: Option<&Step>, suggestions: &[Suggestion]) -> Option<NextCall> {
    /// Criteria of one step.
    const MOST: usize = 20;
    let goes = suggestions
        .iter()
        .filter_map(|suggestion| match suggestion.action {
            Action::Delete | Action::Merge => suggestion.paths.first(),
            _ => None,
        });
    let goes: Vec<&String> = goes.take(MOST).collect();
    if goes.is_empty() {
        return None;
    }
    let mut criteria: Vec<String> = goes
        .iter()
        .map(|path| {
            format!(
                "{} is gone, or its place in the devlog says why it stays",
                show(path)
            )
        })
        .collect();
    criteria.push("the tests still pass".to_owned());
    let step = json!({
        "title": "Clean up",
        "instruction_prompt": "Look at each file with repo_map_query and importers_of. Delete or merge it if nothing \
            needs it, and say in the devlog why each of the others stays. Change nothing else.",
        "acceptance_criteria": criteria,
        "required_evidence": {"changed_files": "array", "tests_passed": "boolean", "criteria_checklist": "object"},
        "remediation_prompt": "Bring back what was missed, and keep it.",
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
