//! Resuming work: a whole plan or task, or everything that a fresh context needs in one bounded call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, DbError, Effect, Tier, Tool, ToolError};

use super::views::from_zero;
use crate::budget::{self, Bounded, Shrink, View};
use crate::limits::short;
use crate::model::RootKind;
use crate::path::Path;
use crate::record::{Evidence, Note, Record, Root};
use crate::scope::Scope;
use crate::store;
use crate::store::event::{self, Event};
use crate::store::record::{From, of_plan, of_root};
use crate::target::Subject;
use crate::view::radar;
use crate::view::tree::{self, Branch};

/// Steps that tasks_resume shows.
const MAX_STEPS: usize = 100;

/// Load a plan or task: its fields, its first 100 steps and, with `events_limit`, its latest events.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Resume {
    #[serde(flatten)]
    subject: Subject,
    /// Number of latest events, 0 to 100 (default 0).
    #[schemars(range(min = 0, max = 100))]
    events_limit: Option<i64>,
}

/// A plan or task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Loaded {
    /// Id of the plan or task.
    task: String,
    /// Revision, for `expected_revision` of the next write.
    revision: i64,
    /// Fields of the plan or task.
    detail: Map<String, Json>,
    /// Steps and nodes, depth first.
    steps: Vec<Branch>,
    /// True if there are more steps; tasks_mirror shows them by path.
    has_more: bool,
    /// The latest events, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

impl View for Loaded {
    const ORDER: &'static [Shrink] = &[
        Shrink::Start("events"),
        Shrink::End("steps"),
        Shrink::Drop("detail.contract_data"),
        Shrink::Drop("detail.doc"),
        Shrink::Drop("detail.steps"),
        Shrink::Drop("detail.context"),
        Shrink::Drop("detail.contract"),
        Shrink::Drop("detail.description"),
    ];

    fn settle(view: &mut Map<String, Json>, whole: &Map<String, Json>) {
        if budget::is_cut(view, whole, "steps") {
            view.insert("has_more".to_owned(), Json::Bool(true));
        }
    }
}

impl Tool for Resume {
    const NAME: &'static str = "tasks_resume";
    const TITLE: &'static str = "Load a plan or task";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Loaded>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = from_zero("events_limit", self.events_limit, 0, 100)?;
        let (scope, id) = self.subject.open(cx)?;
        let top = Path {
            steps: Vec::new(),
            node: None,
        };
        let (steps, has_more) = tree::below(&scope, &id, &top, MAX_STEPS)?;
        let loaded = Loaded {
            revision: scope.head(&id)?.revision,
            detail: detail(&scope.root(&id)?)?,
            steps,
            has_more,
            events: event::latest(scope.db(), &scope.workspace, Some(&id), limit)?,
            task: id,
        };
        budget::fit(&loaded, None)
    }
}

fn detail(root: &Root) -> Result<Map<String, Json>, DbError> {
    let json = match root {
        Root::Plan(plan) => serde_json::to_value(plan),
        Root::Task(task) => serde_json::to_value(task),
    };
    match json {
        Ok(Json::Object(mut detail)) => {
            detail.shift_remove("number");
            Ok(detail)
        }
        _ => Err(DbError::Internal),
    }
}

/// Load everything that a fresh context needs in one bounded reply: radar, blockers, timeline, decisions and
/// evidence.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResumePack {
    #[serde(flatten)]
    subject: Subject,
    /// Number of latest events, 0 to 100 (default 10).
    #[schemars(range(min = 0, max = 100))]
    events_limit: Option<i64>,
    /// Number of latest decisions, 0 to 50 (default 5).
    #[schemars(range(min = 0, max = 50))]
    decisions_limit: Option<i64>,
    /// Number of latest pieces of evidence, 0 to 50 (default 5).
    #[schemars(range(min = 0, max = 50))]
    evidence_limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

/// Everything that a fresh context needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Fresh {
    /// Current state with its blockers.
    radar: radar::Radar,
    /// Decisions, oldest first.
    decisions: Vec<Note>,
    /// Latest evidence, oldest first.
    evidence: Vec<Shown>,
    /// The latest events, oldest first.
    timeline: Vec<Event>,
    /// Value of `cursor` for tasks_delta.
    next_cursor: i64,
    /// Earlier name of `next_cursor`.
    next_since: i64,
}

/// A piece of evidence with the start of its body.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// The evidence without its body.
    item: Evidence,
    /// Start of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
}

impl View for Fresh {
    const ORDER: &'static [Shrink] = &[
        Shrink::Start("timeline"),
        Shrink::Start("evidence"),
        Shrink::Start("decisions"),
        Shrink::Within("radar", radar::Radar::ORDER),
    ];
}

impl Tool for ResumePack {
    const NAME: &'static str = "tasks_resume_pack";
    const TITLE: &'static str = "Load a fresh context";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Bounded<Fresh>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let events = from_zero("events_limit", self.events_limit, 10, 100)?;
        let decisions = from_zero("decisions_limit", self.decisions_limit, 5, 50)?;
        let evidence = from_zero("evidence_limit", self.evidence_limit, 5, 50)?;
        let (scope, id) = self.subject.open(cx)?;
        let fresh = Fresh {
            radar: radar::of(&scope, &id)?,
            decisions: decisions_of(&scope, &id, decisions)?,
            evidence: shown(&scope, latest(&scope, &id, "", evidence)?)?,
            timeline: event::latest(scope.db(), &scope.workspace, Some(&id), events)?,
            next_cursor: scope.counters.events,
            next_since: scope.counters.events,
        };
        budget::fit(&fresh, self.max_chars)
    }
}

/// The latest decisions of a task, or of a plan and its tasks, oldest first.
pub(super) fn decisions_of(scope: &Scope<'_>, root: &str, limit: usize) -> Result<Vec<Note>, ToolError> {
    latest(scope, root, "decision", limit)
}

/// The latest records of a task, or of a plan and its tasks, oldest first.
fn latest<T: Record>(scope: &Scope<'_>, root: &str, status: &str, limit: usize) -> Result<Vec<T>, ToolError> {
    let (db, workspace) = (scope.db(), &scope.workspace);
    let latest = match RootKind::of(root) {
        Some(RootKind::Plan) => of_plan::<T>(db, workspace, root, status, From::Latest, limit)?,
        _ => of_root::<T>(db, workspace, root, status, From::Latest, limit)?,
    };
    Ok(latest.into_iter().rev().map(|placed| placed.record).collect())
}

fn shown(scope: &Scope<'_>, evidence: Vec<Evidence>) -> Result<Vec<Shown>, ToolError> {
    const START_CHARS: i64 = 400;
    evidence
        .into_iter()
        .map(|item| {
            let start = store::body::start(scope.db(), &scope.workspace, &item.task, &item.id, START_CHARS)?;
            Ok(Shown {
                start: start.map(|start| short(&start.replace(['\n', '\r'], " "), 300)),
                item,
            })
        })
        .collect()
}
