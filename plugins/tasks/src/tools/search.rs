//! Search in texts and tags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, NextCall, Tool, ToolError, text_enum};

use super::views::bounded;
use crate::budget::{self, Bounded, Shrink, View};
use crate::error::{Reason, Refusals};
use crate::limits::{MAX_ENTRIES, MAX_NAME_CHARS, short};
use crate::model::Workspace;
use crate::scope::Scope;
use crate::store::Kind;
use crate::store::search::{Found, Wanted, find};

/// Characters of a query.
const MAX_QUERY_CHARS: usize = 500;
/// Most words of a query.
const MAX_WORDS: usize = 8;
/// Most records that one call ranks, the latest first.
const MAX_RANKED: usize = 1_000;
/// Characters of text shown around a match.
const CONTEXT_CHARS: usize = 60;

text_enum! {
    /// Kind of record that a search covers.
    pub(crate) enum Searched {
        Plan = "plan",
        Task = "task",
        Step = "step",
        Node = "node",
        Note = "note",
        Evidence = "evidence",
    }
}

/// Search the text and tags of a workspace's plans, tasks, steps, nodes, notes and evidence. Every word and tag must
/// match. Best matches first: title, then tags, then other text. tasks_show shows a match in full.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    workspace: Workspace,
    /// Words to find, at most 8, for example retry timeout. Letter case does not matter.
    #[schemars(length(min = 1, max = MAX_QUERY_CHARS))]
    query: Option<String>,
    /// Tags that a match must have, for example backend. Letter case does not matter.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    tags: Vec<String>,
    /// Kind of record to search (default all).
    kind: Option<Searched>,
    /// Plan or task id, to search only it and, for a plan, its tasks.
    #[schemars(length(max = MAX_NAME_CHARS))]
    task: Option<String>,
    /// Maximum number of matches, 1 to 50 (default 10).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

/// Matches of a search.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Matches {
    /// Matches, best first.
    matches: Vec<Match>,
    /// True if there are more matches.
    has_more: bool,
    /// The call that shows the first match in full.
    next_calls: Vec<NextCall>,
}

/// A record that matches.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Match {
    /// Kind of the record.
    kind: Kind,
    /// Id of the record.
    id: String,
    /// Id of its plan or task.
    task: String,
    /// Id of its step, for a node, note or piece of evidence of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    /// Status of a plan, task, step or node.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Title in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    /// Text around the first match outside of the title.
    #[serde(skip_serializing_if = "String::is_empty")]
    snippet: String,
}

impl View for Matches {
    const ORDER: &'static [Shrink] = &[Shrink::End("next_calls"), Shrink::End("matches")];

    fn settle(view: &mut Map<String, Json>, whole: &Map<String, Json>) {
        if budget::is_cut(view, whole, "matches") {
            view.insert("has_more".to_owned(), json!(true));
        }
    }
}

impl Tool for Search {
    const NAME: &'static str = "tasks_search";
    const TITLE: &'static str = "Search plans and tasks";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<Matches>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 10, 50)?;
        let words = self.words()?;
        let scope = Scope::known(cx, &self.workspace)?;
        if let Some(task) = &self.task {
            scope.head(task)?;
        }
        let tags: Vec<String> = self.tags.iter().map(|tag| tag.to_lowercase()).collect();
        let terms: Vec<&String> = words.iter().chain(&tags).collect();
        let wanted = Wanted {
            kinds: kinds(self.kind),
            root: self.task.as_deref(),
            terms: &terms,
            limit: MAX_RANKED + 1,
        };
        let mut found = find(scope.db(), &scope.workspace, &wanted)?;
        let mut has_more = found.len() > MAX_RANKED;
        found.truncate(MAX_RANKED);
        let mut ranked: Vec<(u32, &Found)> = found
            .iter()
            .filter_map(|found| score(found, &words, &tags).map(|score| (score, found)))
            .collect();
        // Equal matches stay in the order of the query, the latest first.
        ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        has_more |= ranked.len() > limit;
        ranked.truncate(limit);
        let matches: Vec<Match> = ranked
            .into_iter()
            .map(|(_, found)| shown(found, &words))
            .collect();
        let next_calls = matches
            .first()
            .map(|first| show(&scope, first))
            .into_iter()
            .collect();
        let matches = Matches {
            matches,
            has_more,
            next_calls,
        };
        budget::fit(&matches, self.max_chars)
    }
}

impl Search {
    /// The words of the query in lower case.
    fn words(&self) -> Result<Vec<String>, ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("query", self.query.as_deref(), MAX_QUERY_CHARS);
        refusals.texts("tags", &self.tags, MAX_ENTRIES, MAX_NAME_CHARS);
        if self.query.is_none() && self.tags.is_empty() {
            refusals.add(Reason::input("query", "or tags is required"));
        }
        let query = self.query.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        refusals.at_most("query", words.len(), MAX_WORDS, "words");
        refusals.finish()?;
        Ok(words)
    }
}

fn kinds(kind: Option<Searched>) -> &'static [Kind] {
    match kind {
        None => &[
            Kind::Plan,
            Kind::Task,
            Kind::Step,
            Kind::Node,
            Kind::Note,
            Kind::Evidence,
        ],
        Some(Searched::Plan) => &[Kind::Plan],
        Some(Searched::Task) => &[Kind::Task],
        Some(Searched::Step) => &[Kind::Step],
        Some(Searched::Node) => &[Kind::Node],
        Some(Searched::Note) => &[Kind::Note],
        Some(Searched::Evidence) => &[Kind::Evidence],
    }
}

/// Fields that hold text, the title's first.
const TEXT_FIELDS: &[&str] = &[
    "title",
    "text",
    "description",
    "context",
    "contract",
    "doc",
    "domain",
    "success_criteria",
    "tests",
    "blockers",
    "block_reason",
    "forced",
    "steps",
    "uri",
    "id",
];

/// All texts of a field: one, or those of a list.
fn texts<'a>(found: &'a Found, field: &str) -> impl Iterator<Item = &'a str> {
    let value = found.record.get(field);
    let one = value.and_then(Json::as_str);
    let many = value.and_then(Json::as_array).into_iter().flatten();
    one.into_iter().chain(many.filter_map(Json::as_str))
}

/// Score of a record's match. `None` if a word or tag is missing.
fn score(found: &Found, words: &[String], tags: &[String]) -> Option<u32> {
    let own: Vec<String> = texts(found, "tags").map(str::to_lowercase).collect();
    if !tags.iter().all(|tag| own.contains(tag)) {
        return None;
    }
    let mut score = 0;
    for word in words {
        let is_in = |field: &str| texts(found, field).any(|text| text.to_lowercase().contains(word));
        score += match () {
            () if is_in("title") => 4,
            () if own.iter().any(|tag| tag.contains(word)) => 3,
            () if TEXT_FIELDS.iter().any(|field| is_in(field)) => 1,
            () => return None,
        };
    }
    Some(score)
}

fn shown(found: &Found, words: &[String]) -> Match {
    let text = |field: &str| texts(found, field).next().map(str::to_owned);
    Match {
        kind: found.kind,
        id: found.id.clone(),
        task: found.root.clone(),
        step_id: text("step"),
        status: match found.kind {
            Kind::Step => Some(found.status.clone()),
            _ => text("status"),
        },
        title: short(&text("title").unwrap_or_default(), 200),
        snippet: snippet(found, words),
    }
}

/// Text around the first word that is found outside of the title.
fn snippet(found: &Found, words: &[String]) -> String {
    for field in TEXT_FIELDS
        .iter()
        .filter(|field| !matches!(**field, "title" | "id"))
    {
        for text in texts(found, field) {
            let lower = text.to_lowercase();
            if let Some(at) = words.iter().find_map(|word| lower.find(word.as_str())) {
                let before = lower.get(..at).map_or(0, |before| before.chars().count());
                let start = before.saturating_sub(CONTEXT_CHARS);
                let piece: String = text.chars().skip(start).take(3 * CONTEXT_CHARS).collect();
                let mark = if start > 0 { "…" } else { "" };
                return short(
                    &format!("{mark}{}", piece.replace(['\n', '\r'], " ")),
                    3 * CONTEXT_CHARS,
                );
            }
        }
    }
    String::new()
}

fn show(scope: &Scope<'_>, found: &Match) -> NextCall {
    let mut arguments = json!({"workspace": scope.workspace, "task": found.task});
    match found.kind {
        Kind::Step => arguments["step_id"] = json!(found.id),
        Kind::Node => arguments["task_node_id"] = json!(found.id),
        Kind::Note | Kind::Evidence => {
            if let Some(step) = &found.step_id {
                arguments["step_id"] = json!(step);
            }
            arguments["id"] = json!(found.id);
        }
        _ => {}
    }
    NextCall::new("tasks_show", arguments)
}
