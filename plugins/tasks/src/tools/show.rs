//! One plan, task, step or node in full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, NextCall, Tool, ToolError};

use crate::budget::{self, Bounded, Shrink, View};
use crate::error::{Reason, refusal};
use crate::limits::{MAX_NAME_CHARS, json_bytes};
use crate::path::Path;
use crate::record::{Evidence, Note, Root, Step};
use crate::reply::{NodeRef, StepRef};
use crate::scope::{Located, Scope, Selector};
use crate::target::Subject;
use crate::view::show::{self, Cursor, Part};
use crate::work;

/// Bytes of a page without `max_chars`.
const DEFAULT_PAGE_BYTES: usize = 20_000;
/// Bytes of a reply's cursor.
const CURSOR_BYTES: usize = 60;

/// Show everything recorded about a plan, task, step or node: texts, criteria, checkpoints with notes, blockers,
/// reopening reasons, notes and evidence in full. To read on, pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-resources" = addresses()))]
pub(crate) struct Show {
    #[serde(flatten)]
    subject: Subject,
    /// Step or node by path, for example s:0.s:1 or s:0.t:1.
    #[schemars(length(max = MAX_NAME_CHARS))]
    path: Option<String>,
    /// Step by id, for example STEP-8QZ3M0T4. Ids stay the same when paths move.
    #[schemars(length(max = MAX_NAME_CHARS))]
    step_id: Option<String>,
    /// Node by id, for example NODE-8QZ3M0T4. Ids stay the same when paths move.
    #[schemars(length(max = MAX_NAME_CHARS))]
    task_node_id: Option<String>,
    /// Id of a note or piece of evidence, to show only that, for example EVD-8QZ3M0T4.
    #[schemars(length(max = MAX_NAME_CHARS))]
    id: Option<String>,
    /// Cursor: `next_cursor` of the previous page.
    #[schemars(length(max = MAX_NAME_CHARS))]
    cursor: Option<String>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(length(max = MAX_NAME_CHARS), extend("deprecated" = true))]
    after: Option<String>,
    /// Reply size limit in bytes (default 20000). Fails if not even the next part fits, usually below 600.
    max_chars: Option<i64>,
}

fn addresses() -> Json {
    json!([{
        "path": "{workspace}/{task}.json{?cursor}",
        "name": "plan",
        "title": "Plan or task",
        "description": "A plan or task of a workspace with everything recorded about it.",
        "mime_type": "application/json",
    }])
}

/// A page of what is recorded.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// Id of the plan or task.
    task: String,
    /// Revision, for `expected_revision` of the next write.
    revision: i64,
    /// The step that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<StepRef>,
    /// The node that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeRef>,
    /// Parts in order. Every part is on one page, or divided over several.
    parts: Vec<Part>,
    /// True if there are more parts.
    has_more: bool,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Suggested next calls with complete arguments, on the last page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_calls: Vec<NextCall>,
}

impl View for Shown {
    // A page is made to fit. A limit that no page fits is refused.
    const ORDER: &'static [Shrink] = &[Shrink::End("next_calls")];
}

impl Tool for Show {
    const NAME: &'static str = "tasks_show";
    const TITLE: &'static str = "Show all details";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Shown>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let (scope, id) = self.subject.open(cx)?;
        let from = self.from()?;
        let mut shown = Shown {
            revision: scope.head(&id)?.revision,
            task: id,
            step: None,
            node: None,
            parts: Vec::new(),
            has_more: false,
            next_cursor: None,
            next_calls: Vec::new(),
        };
        let root = scope.root(&shown.task)?;
        let mut parts = self.parts(&scope, &root, &mut shown)?;
        if let Some(id) = &self.id {
            if let Some(step) = self.step_with(&scope, id, &shown)? {
                shown.step = Some(StepRef::new(&step.record.id, &step.path));
                parts = show::of_step(&scope, &step)?;
            }
            parts.retain(|part| part.id.as_ref() == Some(id));
            if parts.is_empty() {
                return Err(Reason::unknown("note or evidence", id).into());
            }
        }
        let most = self
            .max_chars
            .and_then(|max| usize::try_from(max).ok())
            .unwrap_or(DEFAULT_PAGE_BYTES);
        let around = json_bytes(&shown) + CURSOR_BYTES;
        let page = show::page(
            &scope,
            &parts,
            from,
            most.min(budget::MAX_BYTES).saturating_sub(around),
        )?;
        if let Some(least) = page.least {
            return Err(self.too_small(&shown, from, around + least));
        }
        shown.parts = page.parts;
        shown.has_more = page.next.is_some();
        shown.next_cursor = page.next.map(|next| next.to_string());
        if !shown.has_more {
            let step = shown.step.as_ref().map(|step| step.step_id.as_str());
            let upcoming = work::at_hand(&scope, &root, step)?;
            shown.next_calls.extend(upcoming);
        }
        budget::fit(&shown, Some(self.max_chars.unwrap_or(DEFAULT_PAGE_BYTES as i64)))
    }
}

impl Show {
    /// The step of the task that a note or piece of evidence belongs to, if the call names no part of the task.
    fn step_with(
        &self,
        scope: &Scope<'_>,
        id: &str,
        shown: &Shown,
    ) -> Result<Option<Located<Step>>, ToolError> {
        if shown.step.is_some() || shown.node.is_some() {
            return Ok(None);
        }
        let note = scope.get::<Note>(id)?.map(|note| (note.task, note.step));
        let found = match note {
            Some(note) => Some(note),
            None => scope
                .get::<Evidence>(id)?
                .map(|evidence| (evidence.task, evidence.step)),
        };
        match found {
            Some((task, Some(step))) if task == shown.task => scope.step_named(&task, &step).map(Some),
            _ => Ok(None),
        }
    }

    /// Refusal of a limit that the next part does not fit into, not even divided. Without it, reading would not
    /// advance.
    fn too_small(&self, shown: &Shown, from: Cursor, least: usize) -> ToolError {
        let given = self.max_chars.unwrap_or(DEFAULT_PAGE_BYTES as i64);
        let mut arguments =
            json!({"workspace": self.subject.workspace(), "task": shown.task, "max_chars": least});
        if let Some(step) = &shown.step {
            arguments["step_id"] = json!(step.step_id);
        }
        if let Some(node) = &shown.node {
            arguments["task_node_id"] = json!(node.task_node_id);
        }
        if let Some(id) = &self.id {
            arguments["id"] = json!(id);
        }
        if from != Cursor::default() {
            arguments["cursor"] = json!(from.to_string());
        }
        refusal(
            Reason::PageTooSmall { given, least },
            Some(NextCall::new(Self::NAME, arguments)),
        )
    }

    fn from(&self) -> Result<Cursor, ToolError> {
        let (field, cursor) = match (&self.cursor, &self.after) {
            (Some(cursor), _) => ("cursor", cursor),
            (None, Some(after)) => ("after", after),
            (None, None) => return Ok(Cursor::default()),
        };
        cursor.parse().map_err(|_| {
            let fault = "is not a next_cursor; pass next_cursor of the previous page";
            refusal(Reason::input(field, fault), None)
        })
    }

    /// The parts of the target, which the reply then names.
    fn parts(&self, scope: &Scope<'_>, root: &Root, shown: &mut Shown) -> Result<Vec<Part>, ToolError> {
        let task = &root.meta().id;
        let path = self.path.as_deref();
        let is_node = self.task_node_id.is_some()
            || path.is_some_and(|path| Path::parse(path).is_ok_and(|path| path.node.is_some()));
        if is_node {
            if self.step_id.is_some() {
                return Err(Reason::input("step_id", "cannot be combined with a node").into());
            }
            let selector = Selector {
                path,
                id: self.task_node_id.as_deref(),
                expected: None,
            };
            let node = scope.node(task, &selector)?;
            shown.node = Some(NodeRef::new(&node.record.id, &node.path));
            return Ok(show::of_node(&node));
        }
        let selector = Selector {
            path,
            id: self.step_id.as_deref(),
            expected: None,
        };
        match selector.step_of(scope, task)? {
            Some(step) => {
                shown.step = Some(StepRef::new(&step.record.id, &step.path));
                show::of_step(scope, &step)
            }
            None => show::of_root(scope, root),
        }
    }
}
