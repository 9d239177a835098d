//! Everything that is stored about a unit, as one text.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use tollgate_sdk::{Db, DbError, Timestamp};

use crate::event_hash::without_nothing;
use crate::model::{MilestoneId, SliceId, Status, TaskId, Unit};
use crate::store::history::{self, Assessed, Replanned};
use crate::store::log::{self, Event};
use crate::store::milestone::Milestone;
use crate::store::slice::Slice;
use crate::store::task::Task;
use crate::store::{Reopen, claim, milestone, slice, task};

/// Most events of a unit's history.
const MAX_EVENTS: u32 = 50;

/// A unit with its text.
#[derive(Debug)]
pub(crate) struct Described {
    pub title: String,
    pub status: String,
    pub content: String,
}

/// Describes a unit. `None` if it does not exist.
pub(crate) fn describe(
    db: &Db<'_>,
    workspace: &str,
    unit: &Unit,
    now: Timestamp,
) -> Result<Option<Described>, DbError> {
    let view = View {
        db,
        workspace,
        unit,
        now,
    };
    match (&unit.slice, &unit.task) {
        (Some(slice_id), Some(task_id)) => view.task(&unit.milestone, slice_id, task_id),
        (Some(slice_id), None) => view.slice(&unit.milestone, slice_id),
        (None, _) => view.milestone(&unit.milestone),
    }
}

/// A text of named parts. Parts without content are left out.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, "# {text}");
    }

    fn part(&mut self, name: &str, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let _ = match text.contains('\n') {
            true => writeln!(self.0, "{name}:\n  {}", text.replace('\n', "\n  ")),
            false => writeln!(self.0, "{name}: {text}"),
        };
    }

    fn list<T: ToString>(&mut self, name: &str, entries: &[T]) {
        if entries.is_empty() {
            return;
        }
        let _ = writeln!(self.0, "{name}:");
        for entry in entries {
            let _ = writeln!(self.0, "- {}", entry.to_string().replace('\n', "\n  "));
        }
    }

    fn reopened(&mut self, of: &str, reopen: Option<&Reopen>) {
        if let Some(Reopen { reason, by, at }) = reopen {
            self.part(&format!("reopened{of} by {by} at {at}"), reason);
        }
    }

    /// Statements that later ones replaced, or that a reopening took back.
    fn earlier(&mut self, events: &[&Event]) {
        let statements: Vec<String> = events.iter().map(|event| statement(event)).collect();
        self.list("earlier", &statements);
    }

    /// A summary, member by member.
    fn summary(&mut self, summary: Option<&Json>) {
        for (name, value) in summary.and_then(Json::as_object).into_iter().flatten() {
            match value {
                Json::String(text) => self.part(name, text),
                Json::Array(entries) => {
                    let entries: Vec<String> = entries.iter().map(plain).collect();
                    self.list(name, &entries);
                }
                other => self.part(name, &plain(other)),
            }
        }
    }

    fn assessments(&mut self, assessments: &[Assessed]) {
        for one in assessments {
            let name = format!(
                "assessment after {} at {}: {}",
                one.completed_slice, one.at, one.verdict
            );
            self.part(&name, &one.assessment);
            let changes = without_nothing(one.slice_changes.clone());
            if changes.as_object().is_some_and(|changes| !changes.is_empty()) {
                self.part("slice_changes", &changes.to_string());
            }
        }
    }

    fn replans(&mut self, replans: &[Replanned]) {
        for one in replans {
            let name = format!(
                "replan of {} at {}, blocker {}",
                one.slice, one.at, one.blocker_task
            );
            self.part(&name, &one.blocker_description);
            self.part("what_changed", &one.what_changed);
        }
    }
}

/// A text as it is, and any other value as JSON without members that say nothing.
fn plain(value: &Json) -> String {
    let json = || without_nothing(value.clone()).to_string();
    value.as_str().map_or_else(json, str::to_owned)
}

/// The unit to describe, and where.
struct View<'a> {
    db: &'a Db<'a>,
    workspace: &'a str,
    unit: &'a Unit,
    now: Timestamp,
}

impl View<'_> {
    fn milestone(&self, id: &MilestoneId) -> Result<Option<Described>, DbError> {
        let Some(milestone) = milestone::get(self.db, self.workspace, id)? else {
            return Ok(None);
        };
        let Milestone {
            status,
            plan,
            summary,
            reopen,
            validation,
            ..
        } = &milestone;
        let mut text = Text::default();
        text.heading(&format!("{id}: {} ({status})", plan.title));
        text.reopened("", reopen.as_ref());
        text.part("vision", &plan.vision);
        text.list("depends_on", &plan.depends_on);
        text.list("success_criteria", &plan.success_criteria);
        text.list("key_risks", &plan.key_risks);
        text.list("definition_of_done", &plan.definition_of_done);
        let slices = slice::all(self.db, self.workspace, id)?;
        let slices: Vec<String> = slices
            .iter()
            .map(|slice| format!("{} {} ({})", slice.id, slice.plan.title, slice.status))
            .collect();
        text.list("slices", &slices);
        if let Some((verdict, at)) = validation.verdict {
            let age = if at < validation.changed {
                ", older than the last change"
            } else {
                ""
            };
            text.part("validation", &format!("{verdict}{age}"));
            let params = log::event(self.db, at)?.map(|event| event.params);
            let of = |name: &str| member(params.as_ref().and_then(|params| params.get(name)));
            text.part("rationale", &of("rationale"));
            text.part("criteria", &of("criteria"));
        }
        text.summary(summary.as_ref());
        text.assessments(&history::assessments(self.db, self.workspace, id, None)?);
        text.replans(&history::replans(self.db, self.workspace, self.unit)?);
        self.finish(plan.title.clone(), status.to_string(), text)
    }

    fn slice(&self, milestone: &MilestoneId, id: &SliceId) -> Result<Option<Described>, DbError> {
        let Some(slice) = slice::get(self.db, self.workspace, milestone.slice(id))? else {
            return Ok(None);
        };
        let Slice {
            status,
            plan,
            summary,
            reopen,
            ..
        } = &slice;
        let mut text = Text::default();
        text.heading(&format!("{}: {} ({status})", self.unit, plan.title));
        text.reopened("", reopen.as_ref());
        self.claim(&mut text)?;
        text.part("goal", &plan.goal);
        text.part("demo", &plan.demo);
        text.part("risk", plan.risk.as_str());
        text.list("depends", &plan.depends);
        let tasks = task::heads(self.db, self.workspace, milestone.slice(id))?;
        let tasks: Vec<String> = tasks
            .iter()
            .map(|task| format!("{} {} ({})", task.id, task.title, task.status))
            .collect();
        text.list("tasks", &tasks);
        text.summary(summary.as_ref());
        let assessments = history::assessments(self.db, self.workspace, milestone, Some(id))?;
        text.assessments(&assessments);
        text.replans(&history::replans(self.db, self.workspace, self.unit)?);
        self.finish(plan.title.clone(), status.to_string(), text)
    }

    fn task(
        &self,
        milestone_id: &MilestoneId,
        slice_id: &SliceId,
        id: &TaskId,
    ) -> Result<Option<Described>, DbError> {
        let Some(task) = task::get(self.db, self.workspace, milestone_id.slice(slice_id).task(id))? else {
            return Ok(None);
        };
        let Task { head, plan, summary } = &task;
        let mut text = Text::default();
        text.heading(&format!("{}: {} ({})", self.unit, plan.title, head.status));
        text.reopened("", head.reopen.as_ref());
        let slice = slice::get(self.db, self.workspace, milestone_id.slice(slice_id))?;
        let milestone = milestone::get(self.db, self.workspace, milestone_id)?;
        text.reopened(
            " with its slice",
            slice.as_ref().and_then(|slice| slice.reopen.as_ref()),
        );
        let reopen = milestone.as_ref().and_then(|milestone| milestone.reopen.as_ref());
        text.reopened(" with its milestone", reopen);
        self.claim(&mut text)?;
        text.part("started_by", head.started_by.as_deref().unwrap_or_default());
        text.part("description", &plan.description);
        text.part("estimate", &plan.estimate);
        text.list("files", &plan.files);
        text.part("verify", &plan.verify);
        text.list("inputs", &plan.inputs);
        text.list("expected_output", &plan.expected_output);
        text.part(
            "slice_goal",
            slice.as_ref().map_or("", |slice| slice.plan.goal.as_str()),
        );
        text.summary(summary.as_ref());
        text.replans(&history::replans(self.db, self.workspace, self.unit)?);
        self.finish(plan.title.clone(), head.status.to_string(), text)
    }

    /// The claim on the unit, or on its slice.
    fn claim(&self, text: &mut Text) -> Result<(), DbError> {
        if let Some((unit, claim)) = claim::covering(self.db, self.workspace, self.unit, self.now)? {
            let until = claim
                .expires_at
                .map_or_else(String::new, |until| format!(" until {until}"));
            text.part("held", &format!("by {}, claim on {unit}{until}", claim.owner));
        }
        Ok(())
    }

    /// Adds the history: what happened to the unit, by whom and why.
    fn finish(&self, title: String, status: String, mut text: Text) -> Result<Option<Described>, DbError> {
        let events = log::of_unit(self.db, self.workspace, self.unit, MAX_EVENTS)?;
        text.earlier(&replaced(&events, status == Status::Complete.as_str()));
        let events: Vec<String> = events.iter().map(told).collect();
        text.list("history", &events);
        Ok(Some(Described {
            title,
            status,
            content: text.0,
        }))
    }
}

/// Ids of the units in a list of an event's arguments.
fn ids(params: &Map<String, Json>, path: &str) -> Vec<String> {
    let mut names = path.split('/');
    let first = names.next().and_then(|name| params.get(name));
    let list = names.fold(first, |value, name| value.and_then(|value| value.get(name)));
    let id = |entry: &Json| {
        let id = entry.get("task_id").or_else(|| entry.get("slice_id"));
        id.unwrap_or(entry).as_str().map(str::to_owned)
    };
    let entries = list.and_then(Json::as_array).into_iter().flatten();
    entries.filter_map(id).collect()
}

/// A member as text, empty if there is none.
fn member(value: Option<&Json>) -> String {
    value.map_or_else(String::new, plain)
}

/// Events with statements that are not shown elsewhere: completions before a reopening, and validations, assessments
/// and replans that later ones replaced.
fn replaced(events: &[Event], is_complete: bool) -> Vec<&Event> {
    let subject = |event: &Event| {
        let blocker = member(event.params.get("blocker_task_id"));
        (event.cmd.clone(), blocker)
    };
    let completes = |event: &Event| event.cmd.starts_with("complete-");
    let states = |event: &Event| {
        let others = ["validate-milestone", "reassess-roadmap", "replan-slice"];
        !event.skipped && (completes(event) || others.contains(&event.cmd.as_str()))
    };
    let stated: Vec<&Event> = events.iter().filter(|event| states(event)).collect();
    let is_last = |place: usize, event: &Event| {
        let later = stated.iter().skip(place + 1);
        !later.into_iter().any(|other| subject(other) == subject(event))
    };
    let shown = |place: usize, event: &Event| is_last(place, event) && (is_complete || !completes(event));
    let places = stated.iter().enumerate();
    places
        .filter(|(place, event)| !shown(*place, event))
        .map(|(_, event)| *event)
        .collect()
}

/// Everything that an event states, member by member.
fn statement(event: &Event) -> String {
    let mut text = format!("{} {} by {}", event.ts, event.cmd, event.actor_name);
    let keys = ["milestone_id", "slice_id", "completed_slice_id", "task_id"];
    for (name, value) in event
        .params
        .iter()
        .filter(|(name, _)| !keys.contains(&name.as_str()))
    {
        let _ = write!(text, "\n{name}: {}", plain(value));
    }
    text
}

/// An event in one entry: time, command, actor and the reason given.
fn told(event: &Event) -> String {
    let mut told = format!("{} {} by {}", event.ts, event.cmd, event.actor_name);
    for name in ["reason", "one_liner", "verdict"] {
        let text = member(event.params.get(name));
        if !text.is_empty() {
            let _ = write!(told, ", {name}: {text}");
        }
    }
    for (name, entries) in [
        ("planned", "updated_tasks"),
        ("removed", "removed_task_ids"),
        ("added", "slice_changes/added"),
        ("modified", "slice_changes/modified"),
        ("removed", "slice_changes/removed"),
    ] {
        let ids = ids(&event.params, entries);
        if !ids.is_empty() {
            let _ = write!(told, ", {name}: {}", ids.join(" "));
        }
    }
    if let Some(reason) = &event.trigger_reason {
        let _ = write!(told, ", trigger: {reason}");
    }
    if event.skipped {
        told.push_str(", not applied");
    }
    told
}
