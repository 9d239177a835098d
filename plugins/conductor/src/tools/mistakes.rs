//! Tools for the mistake ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::{find_job, known_step};
use crate::arguments::{MAX_ENTRY_CHARS, MAX_TITLE_CHARS, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, JobId, MistakeId, StepId};
use crate::page::{self, Cursor};
use crate::store::mistake::{self, Mistake};
use crate::store::{attempt, job, short_id};

/// Record a mistake with its lesson. Prompts of later steps that share a tag show it, in all jobs with the same
/// repository. A rejection records a mistake by itself: pass its attempt_id and the lesson to complete it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct MistakeRecord {
    job_id: JobId,
    /// Lesson learned: what to do instead next time.
    lesson: String,
    /// Short name of the mistake. Required without attempt_id.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: Option<String>,
    /// Description of what happened. Required without attempt_id.
    what_happened: Option<String>,
    /// Cause of the mistake: why it happened. Required without attempt_id.
    why: Option<String>,
    /// Behaviour to avoid next time. Required without attempt_id.
    avoid_next_time: Option<String>,
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
        self.check()?;
        let job = find_job(&cx.db, &self.job_id)?;
        known_step(&cx.db, &job.id, self.related_step_id.as_ref())?;
        let known = match &self.attempt_id {
            Some(id) if !attempt::is_of(&cx.db, &job.id, id)? => {
                return Err(Reason::not_found("attempt", id.as_str()).into());
            }
            Some(id) => mistake::of_attempt(&cx.db, &job.id, id)?.filter(|known| known.automatic),
            None => None,
        };
        job::touch(&cx.db, &job.id, cx.now())?;
        match known {
            Some(known) => {
                let completed = self.over(known);
                mistake::update(&cx.db, &completed)?;
                Ok(completed)
            }
            None => self.insert(cx),
        }
    }
}

impl MistakeRecord {
    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("lesson", &self.lesson, MAX_ENTRY_CHARS / 2);
        for (field, text, most) in [
            ("title", &self.title, MAX_TITLE_CHARS),
            ("what_happened", &self.what_happened, MAX_ENTRY_CHARS / 2),
            ("why", &self.why, MAX_ENTRY_CHARS / 2),
            ("avoid_next_time", &self.avoid_next_time, MAX_ENTRY_CHARS / 2),
        ] {
            match text {
                Some(text) => refusals.text(field, text, most),
                None if self.attempt_id.is_none() => {
                    refusals.add(Reason::argument(
                        field,
                        "is missing; it is optional only with attempt_id",
                    ));
                }
                None => {}
            }
        }
        refusals.tags("tags", &self.tags);
        refusals.finish()
    }

    /// Recorded mistake of a rejection, completed with what the caller knows.
    fn over(self, known: Mistake) -> Mistake {
        let mut tags = known.tags;
        tags.extend(self.tags);
        Mistake {
            related_step_id: self.related_step_id.or(known.related_step_id),
            title: self.title.unwrap_or(known.title),
            what_happened: self.what_happened.unwrap_or(known.what_happened),
            why: self.why.unwrap_or(known.why),
            lesson: self.lesson,
            avoid_next_time: self.avoid_next_time.unwrap_or(known.avoid_next_time),
            tags: tidy_tags(tags),
            automatic: false,
            ..known
        }
    }

    fn insert(self, cx: &Cx<'_>) -> Result<Mistake, ToolError> {
        let job = self.job_id.clone();
        let empty = Mistake {
            mistake_id: short_id(cx, |id| mistake::exists(&cx.db, id))?,
            job_id: None,
            related_step_id: None,
            attempt_id: self.attempt_id.clone(),
            title: String::new(),
            what_happened: String::new(),
            why: String::new(),
            lesson: String::new(),
            avoid_next_time: String::new(),
            tags: Vec::new(),
            at: cx.now(),
            automatic: false,
        };
        let recorded = self.over(empty);
        mistake::insert(&cx.db, &job, &recorded)?;
        Ok(recorded)
    }
}

/// List recorded mistakes, newest first, with those of other jobs on the same repository.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-feed" = true))]
pub(crate) struct MistakeList {
    job_id: JobId,
    /// Only mistakes with this tag. Default: all tags.
    tag: Option<String>,
    /// Only mistakes of this step. Default: all steps.
    step_id: Option<StepId>,
    /// Maximum number of mistakes, 1 to 200. Default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<Cursor>,
}

/// Recorded mistakes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Mistakes {
    /// Mistakes, newest first.
    mistakes: Vec<Mistake>,
    /// True if there are more.
    truncated: bool,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Number of mistakes that are searched at a time.
const BATCH_MISTAKES: u32 = 200;

impl Tool for MistakeList {
    const NAME: &'static str = "mistake_list";
    const TITLE: &'static str = "List mistakes";
    const EFFECT: Effect = Effect::Read;
    type Output = Mistakes;

    fn run(self, cx: &Cx<'_>) -> Result<Mistakes, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50) as usize;
        let job = find_job(&cx.db, &self.job_id)?;
        let mut before = self.cursor.map(Cursor::id::<MistakeId>);
        if let Some(before) = &before
            && !mistake::exists(&cx.db, before)?
        {
            page::unknown(&mut refusals);
        }
        refusals.finish()?;
        let tag = self.tag.map(|tag| tag.trim().to_lowercase());
        let mut mistakes = Vec::new();
        while mistakes.len() <= limit {
            let found = mistake::before(&cx.db, &job.id, before.as_ref(), BATCH_MISTAKES)?;
            let is_end = found.len() < BATCH_MISTAKES as usize;
            before = found.last().map(|last| last.mistake_id.clone());
            mistakes.extend(found.into_iter().filter(|mistake| {
                tag.as_ref().is_none_or(|tag| mistake.tags.contains(tag))
                    && (self.step_id.is_none() || mistake.related_step_id == self.step_id)
            }));
            if is_end {
                break;
            }
        }
        let truncated = mistakes.len() > limit;
        mistakes.truncate(limit);
        let last = mistakes.last().filter(|_| truncated);
        Ok(Mistakes {
            next_cursor: last.map(|last| last.mistake_id.to_string()),
            mistakes,
            truncated,
        })
    }
}
