//! The frame of every changing call: check, log the change, apply it, audit it and update the files. Refusals
//! are audited too.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Db, DbError, Level, NextCall, Timestamp, Tool, ToolError};

use crate::arguments::{MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_WORKSPACE_CHARS};
use crate::config::Config;
use crate::event_hash::{event_hash, params_of};
use crate::files;
use crate::files::Touched;
use crate::guard::{self, Action, Holder, Scene};
use crate::header::Caller;
use crate::model::{Actor, MilestoneId, Severity, Unit};
use crate::next::{self, Next, Suggestion};
use crate::standing;
use crate::store::log::{self, Entry, Event};
use crate::store::milestone::Milestone;
use crate::store::slice::Slice;
use crate::store::task::{Task, TaskHead};
use crate::store::{claim, milestone, slice, task};
use crate::violation::{Refusals, Violation};

/// Actor name of callers that give none.
pub(crate) const DEFAULT_ACTOR: &str = "agent";

/// Most names of changed units in one record of the ledger.
const MAX_RECORDED_UNITS: usize = 900;

/// A changing call. The call is checked in full before anything is written, so that a refusal leaves only its
/// audit entry.
pub(crate) trait Change: Tool + Serialize {
    /// Name of the command in its events.
    const CMD: &'static str;
    /// True if the reply names what comes next.
    const SUGGESTS: bool = true;
    /// Facts from the check that the change needs.
    type Facts;

    /// Workspace, name and reason of the call.
    fn caller(&self) -> Caller<'_>;
    /// The unit that changes.
    fn unit(&self) -> Unit;
    /// Reads the current state and collects every reason against the change.
    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError>;
    /// Result of a call that changes nothing, and therefore leaves no event.
    fn unchanged(&self, _act: &Act<'_>, _facts: &Self::Facts) -> Result<Option<Applied>, DbError> {
        Ok(None)
    }
    /// Makes the change.
    fn apply(&self, act: &Act<'_>, facts: Self::Facts, event: &Event) -> Result<Applied, ToolError>;
}

/// Result of a change.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// New status of the unit.
    pub status: String,
    /// Other units whose status changed.
    pub also: Vec<UnitStatus>,
    /// Warnings about the change.
    pub warnings: Vec<String>,
    /// Step that comes next, if the change itself decides it.
    pub next: Option<Suggestion>,
    /// Files that the change affects.
    pub touched: Touched,
}

/// A unit and its status.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct UnitStatus {
    /// Key of the unit, for example M01/S01.
    pub unit: String,
    /// New status of the unit.
    pub status: String,
}

/// Result of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changed {
    /// Key of the unit, for example M01/S01/T01.
    pub unit: String,
    /// New status of the unit.
    pub status: String,
    /// Other units whose status changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<UnitStatus>,
    /// Id of the change in the event log, absent if nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<i64>,
    /// Hash of the change's command and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Warnings about the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// True if a file could not be written. The change itself is stored; gsd_render writes the file again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// Next call, ready to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_call: Option<NextCall>,
    /// Next step that needs arguments from you.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Suggestion>,
}

/// A change in progress.
pub(crate) struct Act<'a> {
    pub cx: &'a Cx<'a>,
    pub db: &'a Db<'a>,
    pub config: Config,
    pub caller: Caller<'a>,
    pub unit: Unit,
    pub tool: &'static str,
    pub hash: String,
    now: Timestamp,
    params: Map<String, Json>,
}

/// Checks a change and applies or refuses it. Both are audited. A change is refused without any trace while a
/// log in the workspace has lines that are not stored.
pub(crate) fn change<C: Change>(cx: &Cx<'_>, call: &C) -> Result<Changed, ToolError> {
    let act = Act::new(cx, &cx.db, call, cx.now())?;
    files::refuse_unknown_lines(cx, act.workspace())?;
    let facts = match act.check(call) {
        Ok(facts) => facts,
        Err(refusal) => {
            act.audit_refusal(&refusal);
            return Err(refusal);
        }
    };
    if let Some(applied) = call.unchanged(&act, &facts)? {
        return act.finish::<C>(applied, None);
    }
    let event = log::append_event(act.db(), act.event(C::CMD))?;
    let applied = call.apply(&act, facts, &event)?;
    act.finish::<C>(applied, Some(event))
}

impl<'a> Act<'a> {
    /// A change that calls made at `now`.
    pub(crate) fn new<C: Change>(
        cx: &'a Cx<'a>,
        db: &'a Db<'a>,
        call: &'a C,
        now: Timestamp,
    ) -> Result<Act<'a>, ToolError> {
        let params = params_of(call)?;
        Ok(Act {
            cx,
            db,
            config: cx.config()?,
            caller: call.caller(),
            unit: call.unit(),
            tool: C::NAME,
            hash: event_hash(C::CMD, &params),
            now,
            params,
        })
    }

    pub(crate) fn db(&self) -> &Db<'a> {
        self.db
    }

    pub(crate) fn workspace(&self) -> &str {
        self.caller.workspace
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The caller's name, or the default.
    pub(crate) fn actor(&self) -> &str {
        self.caller.actor.unwrap_or(DEFAULT_ACTOR)
    }

    /// Arguments of a call in this workspace, by this actor if there is a name.
    pub(crate) fn arguments(&self, rest: Json) -> Map<String, Json> {
        next::arguments(self.workspace(), self.caller.actor, rest)
    }

    fn check<C: Change>(&self, call: &C) -> Result<C::Facts, ToolError> {
        let mut refusals = Refusals::default();
        refusals.line("workspace", self.caller.workspace, MAX_WORKSPACE_CHARS);
        if let Some(name) = self.caller.actor {
            refusals.line("actor", name, MAX_NAME_CHARS);
        }
        if self.caller.is_ambiguous {
            refusals.fault("actor", "differs from actor_name; pass one of them");
        }
        if let Some(reason) = self.caller.trigger_reason {
            refusals.prose("trigger_reason", reason);
        }
        let facts = call.check(self, &mut refusals)?;
        refusals.finish_in(self.cx, self.workspace(), &self.unit)?;
        facts.ok_or_else(|| DbError::Internal.into())
    }

    /// The event of the change, without an id.
    fn event(&self, cmd: &str) -> Event {
        Event {
            id: 0,
            workspace: self.workspace().to_owned(),
            cmd: cmd.to_owned(),
            unit: self.unit.to_string(),
            params: self.params.clone(),
            ts: self.now(),
            hash: self.hash.clone(),
            actor: Actor::Agent,
            actor_name: self.actor().to_owned(),
            trigger_reason: self.caller.trigger_reason.map(str::to_owned),
            session_id: self.cx.session_id().to_owned(),
            version: log::VERSION,
            skipped: false,
        }
    }

    /// Audits the change, records it in the ledger and updates the files.
    fn finish<C: Change>(&self, applied: Applied, event: Option<Event>) -> Result<Changed, ToolError> {
        let Applied {
            status,
            also,
            mut warnings,
            next,
            mut touched,
        } = applied;
        let done = format!("{} is {status}", self.unit);
        self.audit(Severity::Info, None, &done)?;
        for warning in &warnings {
            self.audit(Severity::Warn, None, warning)?;
        }
        if let Some(event) = &event {
            self.record(C::CMD, &also)?;
            touched.claims |= claim::purge(self.db(), self.workspace(), self.now())?;
            // The first change writes every file that a full rendering writes.
            touched.claims |= log::first_event(self.db(), self.workspace())? == event.id;
        }
        let tree = standing::load(self.db(), self.workspace(), None, self.now())?;
        let outlook = standing::outlook(&self.config, &tree, None);
        let problems = files::project(self, &touched, Some((&tree, &outlook)));
        let stale = !problems.is_empty();
        if stale {
            let warning = format!("files are out of date: {}", problems.join("; "));
            self.audit(Severity::Warn, Some("STALE"), &warning)?;
            warnings.push(warning);
        }
        let found = || next::after(self.workspace(), self.caller.actor, &self.unit, &tree, &outlook);
        let (next_call, next) = match next.map(Next::Step).or_else(|| found().filter(|_| C::SUGGESTS)) {
            Some(Next::Call(call)) => (Some(call), None),
            Some(Next::Step(step)) => (None, Some(step)),
            None => (None, None),
        };
        Ok(Changed {
            unit: self.unit.to_string(),
            status,
            also,
            event_id: event.as_ref().map(|event| event.id),
            hash: event.map(|event| event.hash),
            warnings,
            stale,
            next_call,
            next,
        })
    }

    /// Names the changed units in the ledger.
    fn record(&self, cmd: &str, also: &[UnitStatus]) -> Result<(), ToolError> {
        let name = |unit: &str| format!("gsd/{unit}");
        let units = also.iter().take(MAX_RECORDED_UNITS).map(|also| name(&also.unit));
        let event = tollgate_sdk::Event::new(&format!("gsd.{}", cmd.replace('-', "_")))
            .changed(std::iter::once(name(&self.unit.to_string())).chain(units));
        Ok(self.cx.ledger().append(&event)?)
    }

    /// Audits a refusal. The entry is kept although the call fails. An error here must not hide the reason of
    /// the refusal.
    fn audit_refusal(&self, refusal: &ToolError) {
        let messages: Vec<&str> = match refusal.blockers.as_slice() {
            [] => vec![refusal.message.as_str()],
            blockers => blockers.iter().map(|blocker| blocker.message.as_str()).collect(),
        };
        let message: String = messages.join("; ").chars().take(MAX_TEXT_CHARS).collect();
        if let Err(err) = self.audit(Severity::Error, Some(&refusal.code), &message) {
            let line = format!("writing a refusal to the audit log failed: {err}");
            return self.cx.log(Level::Warn, &line);
        }
        self.cx.keep_rows();
        for problem in files::project(self, &Touched::default(), None) {
            self.cx
                .log(Level::Warn, &format!("a file is out of date: {problem}"));
        }
    }

    fn audit(&self, severity: Severity, code: Option<&str>, message: &str) -> Result<Entry, DbError> {
        let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        let entry = Entry {
            id: 0,
            workspace: cut(self.workspace(), MAX_WORKSPACE_CHARS),
            ts: self.now(),
            severity,
            tool: self.tool.to_owned(),
            unit: self.unit.to_string(),
            code: code.map(str::to_owned),
            message: message.to_owned(),
            actor_name: cut(self.actor(), MAX_NAME_CHARS),
            trigger_reason: self
                .caller
                .trigger_reason
                .map(|reason| cut(reason, MAX_TEXT_CHARS)),
            session_id: self.cx.session_id().to_owned(),
            op_id: self.cx.op_id().to_owned(),
        };
        log::append_entry(self.db(), entry)
    }
}

/// The units on the path to a unit, as far as they exist.
pub(crate) struct Found {
    pub milestone: Option<Milestone>,
    pub slice: Option<Slice>,
    pub task: Option<Task>,
}

impl Act<'_> {
    /// Reads the units on the path to a unit and checks their statuses for an action.
    pub(crate) fn scene(
        &self,
        action: Action,
        unit: &Unit,
        refusals: &mut Refusals,
    ) -> Result<Found, DbError> {
        let (db, workspace) = (self.db(), self.workspace());
        let mut found = Found {
            milestone: milestone::get(db, workspace, &unit.milestone)?,
            slice: None,
            task: None,
        };
        if let Some(slice_id) = &unit.slice {
            found.slice = slice::get(db, workspace, unit.milestone.slice(slice_id))?;
            if let Some(task_id) = &unit.task {
                found.task = task::get(db, workspace, unit.milestone.slice(slice_id).task(task_id))?;
            }
        }
        let scene = Scene {
            unit,
            milestone: found.milestone.as_ref().map(|milestone| milestone.status),
            slice: found.slice.as_ref().map(|slice| slice.status),
            task: found.task.as_ref().map(|task| task.head.status),
        };
        for violation in guard::statuses(action, &scene) {
            refusals.add(match violation {
                Violation::NotFound(unit) => Violation::missing(db, workspace, unit)?,
                other => other,
            });
        }
        Ok(found)
    }

    /// Like [`Act::scene`], and checks that the milestone's dependencies permit the action.
    pub(crate) fn unblocked_scene(
        &self,
        action: Action,
        unit: &Unit,
        refusals: &mut Refusals,
    ) -> Result<Found, DbError> {
        let found = self.scene(action, unit, refusals)?;
        if let Some(milestone) = &found.milestone {
            self.dependencies(action, &milestone.plan.depends_on, refusals)?;
        }
        Ok(found)
    }

    /// Reads the task of the call and its parents, and checks that the caller may work on it.
    pub(crate) fn task_scene(&self, action: Action, refusals: &mut Refusals) -> Result<Found, DbError> {
        let found = self.unblocked_scene(action, &self.unit, refusals)?;
        if let Some(slice) = &found.slice {
            self.slice_dependencies(slice, refusals)?;
        }
        let holder = self.ownership(&self.unit, refusals)?;
        if let Some(task) = &found.task {
            refusals.extend(self.under_way(&self.unit, &task.head, holder.as_ref())?);
        }
        Ok(found)
    }

    /// Checks that a milestone's dependencies permit an action.
    pub(crate) fn dependencies(
        &self,
        action: Action,
        on: &[MilestoneId],
        refusals: &mut Refusals,
    ) -> Result<(), DbError> {
        let mut statuses = Vec::new();
        for id in on {
            let known = milestone::get(self.db(), self.workspace(), id)?;
            statuses.push((id.clone(), known.map(|milestone| milestone.status)));
        }
        refusals.extend(guard::dependencies(&self.config, action, &self.unit, &statuses));
        Ok(())
    }

    /// Checks that everything a slice depends on is closed.
    pub(crate) fn slice_dependencies(&self, slice: &Slice, refusals: &mut Refusals) -> Result<(), DbError> {
        let mut statuses = Vec::new();
        for id in &slice.plan.depends {
            let known = slice::get(self.db(), self.workspace(), self.unit.milestone.slice(id))?;
            statuses.push((id.clone(), known.map(|slice| slice.status)));
        }
        refusals.extend(guard::slice_dependencies(&self.unit, &statuses));
        Ok(())
    }

    /// Owner of a unit, by a claim on it or on its slice.
    pub(crate) fn holder(&self, unit: &Unit) -> Result<Option<Holder>, DbError> {
        let claim = claim::covering(self.db(), self.workspace(), unit, self.now())?;
        Ok(claim.map(|(unit, claim)| Holder {
            unit,
            owner: claim.owner,
        }))
    }

    /// Checks that the caller may act on a unit that may be claimed.
    pub(crate) fn ownership(&self, unit: &Unit, refusals: &mut Refusals) -> Result<Option<Holder>, DbError> {
        let holder = self.holder(unit)?;
        refusals.extend(guard::ownership(holder.as_slice(), self.caller.actor));
        Ok(holder)
    }

    /// Checks that the caller may act on tasks of the unit's slice.
    pub(crate) fn ownership_of_all(
        &self,
        tasks: &[TaskHead],
        refusals: &mut Refusals,
    ) -> Result<(), DbError> {
        for task in tasks {
            let unit = Unit::task(&self.unit.milestone, &task.slice, &task.id);
            self.ownership(&unit, refusals)?;
        }
        Ok(())
    }

    /// Refuses an actor who neither started a task in progress nor holds a claim that covers the task.
    pub(crate) fn under_way(
        &self,
        unit: &Unit,
        head: &TaskHead,
        holder: Option<&Holder>,
    ) -> Result<Option<Violation>, DbError> {
        let holds = holder.is_some_and(|holder| self.caller.actor == Some(holder.owner.as_str()));
        let by = head.started_by.as_deref();
        let violation = |since| {
            let started = by.map(|by| (by, since));
            guard::under_way(unit, head.status, started, self.actor(), holds)
        };
        match violation(None) {
            None => Ok(None),
            Some(_) => Ok(violation(log::started_at(self.db(), self.workspace(), unit)?)),
        }
    }
}
