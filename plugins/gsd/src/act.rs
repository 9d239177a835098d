//! The frame of every call that changes something: check, log the change, apply it, audit it, and
//! bring the files up to date. A refusal is audited too.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tollgate_sdk::{Cx, Db, DbError, Level, NextCall, Timestamp, Tool, ToolError};

use crate::arguments::{NAME, TEXT, WORKSPACE};
use crate::config::Config;
use crate::event_hash::{event_hash, params_of};
use crate::files;
use crate::files::Touched;
use crate::guard::{self, Action, Holder, Scene};
use crate::model::{Actor, MilestoneId, Severity, Unit};
use crate::store::log::{self, Entry, Event};
use crate::store::milestone::Milestone;
use crate::store::slice::Slice;
use crate::store::task::Task;
use crate::store::{claim, milestone, slice, task};
use crate::violation::Refusals;

/// Who is named when a caller names nobody.
pub(crate) const ANONYMOUS: &str = "agent";

/// What every change says about where it happens and who causes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header<'a> {
    pub workspace: &'a str,
    pub actor_name: Option<&'a str>,
    pub trigger_reason: Option<&'a str>,
}

/// Gives an argument struct its [`Header`], from the fields that all of them have.
macro_rules! header {
    () => {
        fn header(&self) -> $crate::act::Header<'_> {
            $crate::act::Header {
                workspace: &self.workspace,
                actor_name: self.actor_name.as_deref(),
                trigger_reason: self.trigger_reason.as_deref(),
            }
        }
    };
}
pub(crate) use header;

/// A call that changes something. It is checked in full before anything is written, so that a refusal
/// leaves nothing behind but its audit entry.
pub(crate) trait Change: Tool + Serialize {
    /// How its events are called.
    const CMD: &'static str;
    /// What the check found and the change needs.
    type Facts;

    /// Where and by whom.
    fn header(&self) -> Header<'_>;
    /// The unit it is about.
    fn unit(&self) -> Unit;
    /// Reads what is there and gathers every reason against the change.
    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError>;
    /// Makes the change.
    fn apply(&self, act: &Act<'_>, facts: Self::Facts, event: &Event) -> Result<Applied, ToolError>;
}

/// What a change did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// The unit's status now.
    pub status: String,
    /// Other units whose status changed.
    pub also: Vec<UnitStatus>,
    /// What somebody should look at.
    pub warnings: Vec<String>,
    /// What to do next, if that is plain.
    pub next_call: Option<NextCall>,
    /// Whose files show it.
    pub touched: Touched,
}

/// A unit and its status.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct UnitStatus {
    /// The unit, such as M01/S01.
    pub unit: String,
    /// Its status now.
    pub status: String,
}

/// A change that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changed {
    /// The unit, such as M01/S01/T01.
    pub unit: String,
    /// Its status now.
    pub status: String,
    /// Other units whose status changed with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<UnitStatus>,
    /// The change's place in the event log.
    pub event_id: i64,
    /// The change's hash.
    pub hash: String,
    /// What somebody should look at.
    pub warnings: Vec<String>,
    /// A file could not be brought up to date; the change itself is stored. gsd_render writes it again.
    pub stale: bool,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_call: Option<NextCall>,
}

/// A change under way.
pub(crate) struct Act<'a> {
    pub cx: &'a Cx<'a>,
    pub config: Config,
    pub header: Header<'a>,
    pub unit: Unit,
    pub tool: &'static str,
    pub hash: String,
    params: Map<String, Json>,
}

/// Checks a change and makes it, or refuses it. Either way the audit log says so.
pub(crate) fn change<C: Change>(cx: &Cx<'_>, call: &C) -> Result<Changed, ToolError> {
    let params = params_of(call)?;
    let act = Act {
        cx,
        config: cx.config()?,
        header: call.header(),
        unit: call.unit(),
        tool: C::NAME,
        hash: event_hash(C::CMD, &params),
        params,
    };
    let facts = match act.check(call) {
        Ok(facts) => facts,
        Err(refusal) => {
            act.audit_refusal(&refusal);
            return Err(refusal);
        }
    };
    let event = act.log_event(C::CMD)?;
    let applied = call.apply(&act, facts, &event)?;
    act.finish(applied, event)
}

impl<'a> Act<'a> {
    pub(crate) fn db(&self) -> &Db<'a> {
        &self.cx.db
    }

    pub(crate) fn workspace(&self) -> &str {
        self.header.workspace
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cx.now()
    }

    /// The caller's name, or the name for those who give none.
    pub(crate) fn actor(&self) -> &str {
        self.header.actor_name.unwrap_or(ANONYMOUS)
    }

    fn check<C: Change>(&self, call: &C) -> Result<C::Facts, ToolError> {
        let mut refusals = Refusals::default();
        refusals.line("workspace", self.header.workspace, WORKSPACE);
        if let Some(name) = self.header.actor_name {
            refusals.line("actor_name", name, NAME);
        }
        if let Some(reason) = self.header.trigger_reason {
            refusals.prose("trigger_reason", reason);
        }
        let facts = call.check(self, &mut refusals)?;
        refusals.finish_in(Some(self.workspace()))?;
        facts.ok_or_else(|| DbError::Internal.into())
    }

    /// Logs the change.
    fn log_event(&self, cmd: &str) -> Result<Event, DbError> {
        let event = Event {
            id: 0,
            workspace: self.workspace().to_owned(),
            cmd: cmd.to_owned(),
            unit: self.unit.to_string(),
            params: self.params.clone(),
            ts: self.now(),
            hash: self.hash.clone(),
            actor: Actor::Agent,
            actor_name: self.actor().to_owned(),
            trigger_reason: self.header.trigger_reason.map(str::to_owned),
            session_id: self.cx.session_id().to_owned(),
        };
        log::append_event(self.db(), event)
    }

    /// Audits the change and brings the files up to date.
    fn finish(&self, applied: Applied, event: Event) -> Result<Changed, ToolError> {
        let Applied {
            status,
            also,
            mut warnings,
            next_call,
            touched,
        } = applied;
        let done = format!("{} is {status}", self.unit);
        self.audit(Severity::Info, None, &done)?;
        for warning in &warnings {
            self.audit(Severity::Warn, None, warning)?;
        }
        let problems = files::project(self, &touched);
        let stale = !problems.is_empty();
        if stale {
            let warning = format!("files are out of date: {}", problems.join("; "));
            self.audit(Severity::Warn, Some("STALE"), &warning)?;
            warnings.push(warning);
        }
        Ok(Changed {
            unit: event.unit,
            status,
            also,
            event_id: event.id,
            hash: event.hash,
            warnings,
            stale,
            next_call,
        })
    }

    /// Audits a refusal, which is kept though the call is one. Whatever fails here must not hide why
    /// the call was refused.
    fn audit_refusal(&self, refusal: &ToolError) {
        let messages: Vec<&str> = match refusal.blockers.as_slice() {
            [] => vec![refusal.message.as_str()],
            blockers => blockers.iter().map(|blocker| blocker.message.as_str()).collect(),
        };
        let message: String = messages.join("; ").chars().take(TEXT).collect();
        if let Err(err) = self.audit(Severity::Error, Some(&refusal.code), &message) {
            let line = format!("a refusal is not in the audit log: {err}");
            return self.cx.log(Level::Warn, &line);
        }
        self.cx.keep_rows();
        for problem in files::project(self, &Touched::default()) {
            self.cx
                .log(Level::Warn, &format!("a file is out of date: {problem}"));
        }
    }

    fn audit(&self, severity: Severity, code: Option<&str>, message: &str) -> Result<Entry, DbError> {
        let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        let entry = Entry {
            id: 0,
            workspace: cut(self.workspace(), WORKSPACE),
            ts: self.now(),
            severity,
            tool: self.tool.to_owned(),
            unit: self.unit.to_string(),
            code: code.map(str::to_owned),
            message: message.to_owned(),
            actor_name: cut(self.actor(), NAME),
            trigger_reason: self.header.trigger_reason.map(|reason| cut(reason, TEXT)),
            session_id: self.cx.session_id().to_owned(),
            op_id: self.cx.op_id().to_owned(),
        };
        log::append_entry(self.db(), entry)
    }
}

/// What is there on the way to a unit.
pub(crate) struct Found {
    pub milestone: Option<Milestone>,
    pub slice: Option<Slice>,
    pub task: Option<Task>,
}

impl Act<'_> {
    /// Reads the units on the way to one and checks their statuses for an action.
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
            found.slice = slice::get(db, workspace, &unit.milestone, slice_id)?;
            if let Some(task_id) = &unit.task {
                found.task = task::get(db, workspace, &unit.milestone, slice_id, task_id)?;
            }
        }
        refusals.extend(guard::statuses(
            action,
            &Scene {
                unit,
                milestone: found.milestone.as_ref().map(|milestone| milestone.status),
                slice: found.slice.as_ref().map(|slice| slice.status),
                task: found.task.as_ref().map(|task| task.head.status),
            },
        ));
        Ok(found)
    }

    /// Checks that the milestones a milestone depends on let an action through.
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
            let known = slice::get(self.db(), self.workspace(), &self.unit.milestone, id)?;
            statuses.push((id.clone(), known.map(|slice| slice.status)));
        }
        refusals.extend(guard::slice_dependencies(&self.unit, &statuses));
        Ok(())
    }

    /// Who holds a unit: by a claim on it or, for a task without one, by the claim on its slice.
    pub(crate) fn holder(&self, unit: &Unit) -> Result<Option<Holder>, DbError> {
        for unit in [Some(unit.clone()), unit.parent_slice()].into_iter().flatten() {
            if let Some(claim) = claim::get(self.db(), self.workspace(), &unit.to_string(), self.now())? {
                return Ok(Some(Holder {
                    unit,
                    owner: claim.owner,
                }));
            }
        }
        Ok(None)
    }

    /// Checks that the caller may act on a unit that somebody may hold.
    pub(crate) fn ownership(&self, unit: &Unit, refusals: &mut Refusals) -> Result<Option<Holder>, DbError> {
        let holder = self.holder(unit)?;
        refusals.extend(guard::ownership(holder.as_slice(), self.header.actor_name));
        Ok(holder)
    }
}
