//! Tools for context blocks: research, notes, snippets, maps.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, ParseTextError, Tool, ToolError};

use super::find_job;
use crate::arguments::{MAX_BLOCK_BYTES, MAX_CONTEXT_BYTES, MAX_TEXT_CHARS, clip_to, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::model::{BlockType, ContextId, JobId};
use crate::page::{self, Cursor};
use crate::search::{Hit, search};
use crate::state::Status;
use crate::store::context::{self, Block};
use crate::store::job::Job;
use crate::store::{job, short_id};

/// Refuses content that is blank or too large.
fn check_content(refusals: &mut Refusals, content: &str) {
    refusals.text("content", content, MAX_BLOCK_BYTES);
    refusals.at_most("content", content.len(), MAX_BLOCK_BYTES, "bytes");
}

/// Refuses blocks that are together too large to be exported.
fn check_total(cx: &Cx<'_>, job: &JobId, more: usize, less: usize) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    let total = context::total(&cx.db, job)?
        .saturating_sub(less)
        .saturating_add(more);
    refusals.at_most(
        "content",
        total,
        MAX_CONTEXT_BYTES,
        "bytes together with the job's other blocks",
    );
    refusals.finish()
}

/// Store a context block: research, notes, a repository map, a snippet. Steps refer to blocks in context_refs.
/// Bullets of RESEARCH blocks tagged best-practice or process become process rules in the prompts; research is
/// stored while planning.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct ContextAddBlock {
    job_id: JobId,
    /// Kind of content, for example RESEARCH or NOTES.
    #[serde(deserialize_with = "block_type")]
    #[schemars(extend("x-accepts" = super::any_text()))]
    block_type: BlockType,
    /// Text of the block, at most 256 KiB.
    content: String,
    /// Labels that context_search matches, for example api. Default none.
    #[serde(default)]
    tags: Vec<String>,
}

/// Reads the kind of a block. The error names the field and every kind, because the host lets any text through here.
fn block_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BlockType, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|err: ParseTextError| D::Error::custom(format!("block_type: {err}")))
}

/// A block without its content.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BlockLine {
    context_id: ContextId,
    /// Kind of content.
    block_type: BlockType,
    /// Labels of the block.
    tags: Vec<String>,
    /// Length in characters.
    chars: usize,
}

impl From<&Block> for BlockLine {
    fn from(block: &Block) -> BlockLine {
        BlockLine {
            context_id: block.context_id.clone(),
            block_type: block.block_type,
            tags: block.tags.clone(),
            chars: block.content.chars().count(),
        }
    }
}

impl Tool for ContextAddBlock {
    const NAME: &'static str = "context_add_block";
    const TITLE: &'static str = "Store context";
    const EFFECT: Effect = Effect::Write;
    type Output = BlockLine;

    fn run(self, cx: &Cx<'_>) -> Result<BlockLine, ToolError> {
        let mut refusals = Refusals::default();
        check_content(&mut refusals, &self.content);
        refusals.tags("tags", &self.tags);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        check_research(&job, &[self.block_type])?;
        check_total(cx, &job.id, self.content.len(), 0)?;
        let block = Block {
            context_id: short_id(cx, |id| context::exists(&cx.db, id))?,
            block_type: self.block_type,
            tags: tidy_tags(self.tags),
            created_at: cx.now(),
            updated_at: cx.now(),
            changed_at: None,
            content: self.content,
        };
        context::insert(&cx.db, &job.id, &block)?;
        job::touch(&cx.db, &job.id, cx.now())?;
        Ok(BlockLine::from(&block))
    }
}

/// Characters of a block's content in a line of the log.
const MAX_LOGGED_CHARS: usize = 300;

/// Refuses to store or change research while a job is executed: it shapes the prompts, so it belongs to planning.
fn check_research(job: &Job, kinds: &[BlockType]) -> Result<(), ToolError> {
    let runs = matches!(job.status, Status::Executing | Status::Paused);
    match runs && kinds.contains(&BlockType::Research) {
        true => Err(Reason::argument(
            "block_type",
            format!(
                "cannot be RESEARCH while the job is {}: research becomes process rules, so it is stored while planning; \
                 use NOTES",
                job.status
            ),
        )
        .into()),
        false => Ok(()),
    }
}

/// Marks and logs a change of a block whose plan is agreed already: prompts of steps that name it are others then.
fn note_change(cx: &Cx<'_>, job: &Job, block: &mut Block, before: &str) -> Result<(), ToolError> {
    let is_agreed = matches!(job.status, Status::Ready | Status::Executing | Status::Paused);
    if !is_agreed || block.content == before {
        return Ok(());
    }
    block.changed_at = Some(cx.now());
    let steps = crate::store::step::all(&cx.db, &job.id)?.into_iter();
    let naming = steps.filter(|step| {
        let open = step.status != crate::model::StepStatus::Done;
        open && step
            .spec
            .context_refs
            .iter()
            .any(|named| named == block.context_id.as_str())
    });
    let naming: Vec<String> = naming.map(|step| step.step_id.to_string()).collect();
    if naming.is_empty() {
        return Ok(());
    }
    let line = format!(
        "plan changed: {}, the context of {}: {:?} becomes {:?}",
        block.context_id,
        naming.join(", "),
        clip_to(before, MAX_LOGGED_CHARS),
        clip_to(&block.content, MAX_LOGGED_CHARS)
    );
    super::lifecycle::note(cx, &cx.db, job, &line)
}

/// Finds the block that a call names.
fn find_block(cx: &Cx<'_>, job: &JobId, id: &ContextId) -> Result<Block, ToolError> {
    find_job(&cx.db, job)?;
    let block = context::get(&cx.db, job, id.as_str())?;
    block.ok_or_else(|| Reason::not_found("context block", id.as_str()).into())
}

/// Read a context block, or a part of a large one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextGetBlock {
    job_id: JobId,
    context_id: ContextId,
    /// next_cursor of the previous part. Default: the beginning.
    cursor: Option<Cursor>,
    /// Old name of cursor: first character to return, from 0.
    #[schemars(extend("deprecated" = true))]
    offset: Option<u32>,
    /// Maximum number of characters, 1 to 200000. Default 20000.
    #[schemars(range(min = 1, max = 200_000))]
    max_chars: Option<u32>,
}

/// A block, or a part of one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BlockPart {
    /// Block without its content.
    #[serde(flatten)]
    line: BlockLine,
    /// Content, or the requested part of it.
    content: String,
    /// Value of `cursor` for the next part, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for ContextGetBlock {
    const NAME: &'static str = "context_get_block";
    const TITLE: &'static str = "Read context";
    const EFFECT: Effect = Effect::Read;
    type Output = BlockPart;

    fn run(self, cx: &Cx<'_>) -> Result<BlockPart, ToolError> {
        let most = self.max_chars.unwrap_or(20_000);
        if !(1..=200_000).contains(&most) {
            return Err(Reason::argument("max_chars", format!("is {most}, not within 1 to 200000")).into());
        }
        let mut refusals = Refusals::default();
        let start = page::skipped(&mut refusals, self.cursor.as_ref(), self.offset);
        refusals.finish()?;
        let block = find_block(cx, &self.job_id, &self.context_id)?;
        let line = BlockLine::from(&block);
        let part = block.content.chars().skip(start as usize).take(most as usize);
        let end = start.saturating_add(most);
        Ok(BlockPart {
            next_cursor: page::after(end, line.chars),
            content: part.collect(),
            line,
        })
    }
}

/// Change a context block; omitted fields keep their values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct ContextUpdateBlock {
    job_id: JobId,
    context_id: ContextId,
    /// New kind of content. Default: unchanged.
    #[schemars(extend("x-accepts" = super::any_text()))]
    block_type: Option<BlockType>,
    /// New text in place of the old. Default: unchanged.
    content: Option<String>,
    /// New labels in place of the old. Default: unchanged.
    tags: Option<Vec<String>>,
}

impl Tool for ContextUpdateBlock {
    const NAME: &'static str = "context_update_block";
    const TITLE: &'static str = "Change context";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = BlockLine;

    fn run(self, cx: &Cx<'_>) -> Result<BlockLine, ToolError> {
        let mut refusals = Refusals::default();
        if let Some(content) = &self.content {
            check_content(&mut refusals, content);
        }
        refusals.tags("tags", self.tags.as_deref().unwrap_or_default());
        if self.content.is_none() && self.tags.is_none() && self.block_type.is_none() {
            refusals.add(Reason::argument(
                "content",
                "is missing; pass block_type, content or tags",
            ));
        }
        refusals.finish()?;
        let mut block = find_block(cx, &self.job_id, &self.context_id)?;
        let kinds = [block.block_type, self.block_type.unwrap_or(block.block_type)];
        let job = find_job(&cx.db, &self.job_id)?;
        check_research(&job, &kinds)?;
        let size = self.content.as_ref().map_or(0, String::len);
        check_total(cx, &self.job_id, size, block.content.len())?;
        let before = block.content.clone();
        block.block_type = self.block_type.unwrap_or(block.block_type);
        block.content = self.content.unwrap_or(block.content);
        block.tags = self.tags.map_or(block.tags, tidy_tags);
        block.updated_at = cx.now();
        note_change(cx, &job, &mut block, &before)?;
        context::update(&cx.db, &self.job_id, &block)?;
        job::touch(&cx.db, &self.job_id, cx.now())?;
        Ok(BlockLine::from(&block))
    }
}

/// Delete a context block. Fails if a step that is not done refers to the block.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct ContextDeleteBlock {
    job_id: JobId,
    context_id: ContextId,
}

/// A deleted block.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Deleted {
    /// Id of the deleted block.
    deleted: ContextId,
}

impl Tool for ContextDeleteBlock {
    const NAME: &'static str = "context_delete_block";
    const TITLE: &'static str = "Delete context";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Deleted;

    fn run(self, cx: &Cx<'_>) -> Result<Deleted, ToolError> {
        let block = find_block(cx, &self.job_id, &self.context_id)?;
        check_research(&find_job(&cx.db, &self.job_id)?, &[block.block_type])?;
        let id = block.context_id.as_str();
        let mut refusals = Refusals::default();
        for step in crate::store::step::all(&cx.db, &self.job_id)? {
            let open = step.status != crate::model::StepStatus::Done;
            if open && step.spec.context_refs.iter().any(|named| named == id) {
                let fault = format!("is used by step {}", step.step_id);
                refusals.add(Reason::argument("context_id", fault));
            }
        }
        refusals.finish()?;
        context::delete(&cx.db, &self.job_id, &block.context_id)?;
        job::touch(&cx.db, &self.job_id, cx.now())?;
        Ok(Deleted {
            deleted: block.context_id,
        })
    }
}

/// Search the context blocks of a job by keywords. Returns excerpts, best match first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextSearch {
    job_id: JobId,
    /// Keywords; a block matches if its text or tags contain at least one.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    query: String,
    /// Only blocks of this type. Default: all types.
    #[schemars(extend("x-accepts" = super::any_text()))]
    block_type: Option<BlockType>,
    /// Maximum number of matches, 1 to 200. Default 10.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<Cursor>,
}

/// Search results.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Matching blocks, best first.
    matches: Vec<Hit>,
    /// Total number of matching blocks.
    total: usize,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for ContextSearch {
    const NAME: &'static str = "context_search";
    const TITLE: &'static str = "Search context";
    const EFFECT: Effect = Effect::Read;
    type Output = Found;

    fn run(self, cx: &Cx<'_>) -> Result<Found, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("query", &self.query, MAX_TEXT_CHARS);
        let limit = refusals.limit(self.limit, 10);
        let skipped = page::skipped(&mut refusals, self.cursor.as_ref(), None);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        let mut matches = search(&self.query, |visit| {
            context::each(&cx.db, &job.id, |block| {
                if self.block_type.is_none_or(|wanted| wanted == block.block_type) {
                    visit(&block);
                }
            })
        })?;
        let total = matches.len();
        let shown = matches.into_iter().skip(skipped as usize).take(limit as usize);
        matches = shown.collect();
        Ok(Found {
            next_cursor: page::after(skipped.saturating_add(limit), total),
            matches,
            total,
        })
    }
}
