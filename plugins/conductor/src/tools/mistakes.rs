//! Tools for the mistake ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::{find_job, known_step};
use crate::arguments::{ENTRY, TITLE, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, JobId, StepId};
use crate::store::mistake::{self, Mistake};
use crate::store::{attempt, job, short_id};

/// Record a mistake with its lesson. Prompts of later steps that share a tag show it. A rejected submission
/// returns a draft of this call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MistakeRecord {
    job_id: JobId,
    /// Short name of the mistake.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// Description of what happened.
    what_happened: String,
    /// Cause of the mistake: why it happened.
    why: String,
    /// Lesson learned from the mistake.
    lesson: String,
    /// Behaviour to avoid next time.
    avoid_next_time: String,
    /// Tags, for example dependency, tests, architecture, environment or tool-misuse.
    #[serde(default)]
    tags: Vec<String>,
    /// Step in which the mistake happened, for example S1. Default none.
    related_step_id: Option<StepId>,
    /// Rejected submission of this job that the mistake explains. Default none.
    attempt_id: Option<AttemptId>,
}

impl Tool for MistakeRecord {
    const NAME: &'static str = "mistake_record";
    const TITLE: &'static str = "Record a mistake";
    const EFFECT: Effect = Effect::Write;
    type Output = Mistake;

    fn run(self, cx: &Cx<'_>) -> Result<Mistake, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("title", &self.title, TITLE);
        let fields = [
            ("what_happened", &self.what_happened),
            ("why", &self.why),
            ("lesson", &self.lesson),
            ("avoid_next_time", &self.avoid_next_time),
        ];
        for (field, text) in fields {
            refusals.text(field, text, ENTRY / 2);
        }
        refusals.tags("tags", &self.tags);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        known_step(&cx.db, &job.id, self.related_step_id.as_ref())?;
        if let Some(id) = &self.attempt_id
            && !attempt::is_of(&cx.db, &job.id, id)?
        {
            return Err(Reason::not_found("attempt", id.as_str()).into());
        }
        let recorded = Mistake {
            mistake_id: short_id(cx, |id| mistake::exists(&cx.db, id))?,
            related_step_id: self.related_step_id,
            attempt_id: self.attempt_id,
            title: self.title,
            what_happened: self.what_happened,
            why: self.why,
            lesson: self.lesson,
            avoid_next_time: self.avoid_next_time,
            tags: tidy_tags(self.tags),
            at: cx.now(),
        };
        mistake::insert(&cx.db, &job.id, &recorded)?;
        job::touch(&cx.db, &job.id, cx.now())?;
        Ok(recorded)
    }
}

/// List recorded mistakes, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MistakeList {
    job_id: JobId,
    /// Only mistakes with this tag. Default: all tags.
    tag: Option<String>,
    /// Only mistakes of this step. Default: all steps.
    step_id: Option<StepId>,
    /// Maximum number of mistakes, 1 to 200. Default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// Recorded mistakes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Mistakes {
    /// Mistakes, newest first.
    mistakes: Vec<Mistake>,
    /// True if there are more.
    truncated: bool,
}

/// Maximum number of mistakes searched.
const SEARCHED: u32 = 200;

impl Tool for MistakeList {
    const NAME: &'static str = "mistake_list";
    const TITLE: &'static str = "List mistakes";
    const EFFECT: Effect = Effect::Read;
    type Output = Mistakes;

    fn run(self, cx: &Cx<'_>) -> Result<Mistakes, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50) as usize;
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        let tag = self.tag.map(|tag| tag.trim().to_lowercase());
        let mut mistakes = mistake::latest(&cx.db, &job.id, SEARCHED)?;
        mistakes.retain(|mistake| {
            tag.as_ref().is_none_or(|tag| mistake.tags.contains(tag))
                && (self.step_id.is_none() || mistake.related_step_id == self.step_id)
        });
        let truncated = mistakes.len() > limit;
        mistakes.truncate(limit);
        Ok(Mistakes { mistakes, truncated })
    }
}
