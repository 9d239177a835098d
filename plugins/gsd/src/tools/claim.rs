//! Claims on units: claiming, releasing and listing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError, ToolError};

use super::status::require_known;
use super::{change_tool, read_tool};
use crate::act::{Act, Applied, Change};
use crate::arguments::{MAX_LINE_CHARS, MAX_TEXT_CHARS, MAX_TTL_SEC, MAX_WORKSPACE_CHARS};
use crate::files::Touched;
use crate::guard::{Action, Holder};
use crate::header::{ClaimKey, Header, header};
use crate::model::{MilestoneId, Unit};
use crate::store::claim::{self, Claim};
use crate::store::log::Event;
use crate::store::task::{self, TaskHead};
use crate::violation::{Refusals, Violation};

/// Most warnings about work that is taken over.
const MAX_WARNINGS: usize = 20;
/// Most claims of one reply.
const MAX_LISTED_CLAIMS: u32 = 200;
/// Characters of a cursor: a workspace and a key.
const MAX_CURSOR_CHARS: usize = MAX_WORKSPACE_CHARS + 20;

/// Claim a slice or task, so that only you may start, complete, skip or reopen it. A slice's claim covers its
/// unclaimed tasks. Claiming again renews the claim. Fails if another actor has claimed or started it. `force` with
/// a `reason` takes the claim and the started tasks over.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ClaimUnit {
    #[serde(flatten)]
    at: ClaimKey,
    /// Lifetime of the claim in seconds. Default: until released.
    #[schemars(range(min = 1, max = MAX_TTL_SEC))]
    ttl_sec: Option<u32>,
    /// Take claimed or started work over. Requires `reason`.
    force: Option<bool>,
    /// Reason for taking over. Required with `force`.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: Option<String>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(
    ClaimUnit,
    "gsd_claim",
    "Claim a slice or a task",
    Standard,
    IDEMPOTENT
);

impl Change for ClaimUnit {
    const CMD: &'static str = "claim-unit";
    /// Other actors who hold the unit or have started its tasks, from whom the claim takes these.
    type Facts = Vec<Holder>;

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        let found = act.scene(Action::Claim, &act.unit, refusals)?;
        let holder = act.holder(&act.unit)?;
        let is_renewal = holder
            .as_ref()
            .is_some_and(|holder| holder.unit == act.unit && Some(holder.owner.as_str()) == act.caller.actor);
        let mut others: Vec<Holder> = holder
            .into_iter()
            .filter(|holder| Some(holder.owner.as_str()) != act.caller.actor)
            .collect();
        let is_held = !others.is_empty();
        let started = match is_renewal {
            true => Vec::new(),
            false => self.started_by_others(act, found.task.map(|task| task.head))?,
        };
        named(act, refusals);
        if let Some(reason) = &self.reason {
            refusals.text("reason", reason);
        }
        if let Some(ttl) = self.ttl_sec.filter(|ttl| !(1..=MAX_TTL_SEC).contains(ttl)) {
            let fault = format!("is {ttl}, but must be within 1 to {MAX_TTL_SEC}");
            refusals.add(Violation::argument("ttl_sec", fault));
        }
        if is_held && act.caller.actor.is_some() && !self.force.unwrap_or_default() {
            act.ownership(&act.unit, refusals)?;
        }
        for (unit, head, violation) in started {
            if !self.force.unwrap_or_default() {
                refusals.add(violation);
            }
            let by = Holder {
                unit,
                owner: head.started_by.unwrap_or_default(),
            };
            if !others.contains(&by) {
                others.push(by);
            }
        }
        if self.force.unwrap_or_default() && self.reason.is_none() && !others.is_empty() {
            let fault = match is_held {
                true => "is required to take a claim over",
                false => "is required to take started work over",
            };
            refusals.add(Violation::argument("reason", fault));
        }
        Ok(Some(others))
    }

    fn unchanged(&self, act: &Act<'_>, _: &Self::Facts) -> Result<Option<Applied>, DbError> {
        let claim = claim::get(act.db(), act.workspace(), &act.unit, act.now())?;
        let is_same = claim.is_some_and(|claim| {
            claim.owner == act.actor() && claim.expires_at.is_none() && self.ttl_sec.is_none()
        });
        Ok(is_same.then(|| Applied {
            status: format!("held by {}", act.actor()),
            ..Applied::default()
        }))
    }

    fn apply(&self, act: &Act<'_>, before: Self::Facts, _event: &Event) -> Result<Applied, ToolError> {
        let ttl_ms = self.ttl_sec.map(|seconds| i64::from(seconds) * 1000);
        let claim = Claim {
            workspace: self.header.workspace.clone(),
            unit: act.unit.to_string(),
            owner: act.actor().to_owned(),
            claimed_at: act.now(),
            expires_at: ttl_ms.map(|ttl_ms| act.now().plus_ms(ttl_ms)),
        };
        claim::put(act.db(), &claim)?;
        let reason: String = self
            .reason
            .iter()
            .flat_map(|reason| reason.chars())
            .take(MAX_LINE_CHARS)
            .collect();
        let taken = before
            .iter()
            .map(|from| format!("{} was taken over from {}: {reason}", from.unit, from.owner));
        Ok(Applied {
            status: format!("held by {}", act.actor()),
            warnings: taken.take(MAX_WARNINGS).collect(),
            touched: Touched::claims(),
            ..Applied::default()
        })
    }
}

impl ClaimUnit {
    /// Tasks that others have started and that the claim would cover, with the reason against it. `task` is the claimed
    /// task, unless a slice is claimed.
    fn started_by_others(
        &self,
        act: &Act<'_>,
        task: Option<TaskHead>,
    ) -> Result<Vec<(Unit, TaskHead, Violation)>, DbError> {
        let (milestone, slice) = (&self.at.milestone_id, &self.at.slice_id);
        let tasks = match self.at.task_id {
            Some(_) => task.into_iter().collect(),
            None => task::heads(act.db(), act.workspace(), milestone.slice(slice))?,
        };
        let mut started = Vec::new();
        for head in tasks {
            let unit = Unit::task(milestone, slice, &head.id);
            // A claim on a slice does not cover tasks that have a claim of their own.
            let is_covered = || -> Result<bool, DbError> {
                let own = claim::get(act.db(), act.workspace(), &unit, act.now())?;
                Ok(self.at.task_id.is_some() || own.is_none())
            };
            if let Some(violation) = act.under_way(&unit, &head, None)?
                && is_covered()?
            {
                started.push((unit, head, violation));
            }
        }
        Ok(started)
    }
}

/// Requires a name, which owns the claim.
fn named(act: &Act<'_>, refusals: &mut Refusals) {
    if act.caller.actor.is_none() {
        refusals.fault("actor", "is required, because it owns the claim");
    }
}

/// Release your claim on a slice or task. Fails if another actor holds it; does nothing if nobody does.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReleaseUnit {
    #[serde(flatten)]
    at: ClaimKey,
    #[serde(flatten)]
    header: Header,
}
change_tool!(
    ReleaseUnit,
    "gsd_release",
    "Release a slice or a task",
    Standard,
    IDEMPOTENT
);

impl Change for ReleaseUnit {
    const CMD: &'static str = "release-unit";
    const SUGGESTS: bool = false;
    type Facts = ();

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        act.scene(Action::Release, &act.unit, refusals)?;
        named(act, refusals);
        if act.caller.actor.is_some() {
            act.ownership(&act.unit, refusals)?;
        }
        Ok(Some(()))
    }

    fn unchanged(&self, act: &Act<'_>, (): &()) -> Result<Option<Applied>, DbError> {
        let own = claim::get(act.db(), act.workspace(), &act.unit, act.now())?;
        Ok(match own {
            Some(_) => None,
            None => Some(Applied {
                status: uncovered(act, "not held")?,
                ..Applied::default()
            }),
        })
    }

    fn apply(&self, act: &Act<'_>, (): (), _event: &Event) -> Result<Applied, ToolError> {
        claim::release(act.db(), act.workspace(), &act.unit)?;
        Ok(Applied {
            status: uncovered(act, "released")?,
            touched: Touched::claims(),
            ..Applied::default()
        })
    }
}

/// Status of a unit without a claim of its own, which a claim on its slice may cover.
fn uncovered(act: &Act<'_>, status: &str) -> Result<String, DbError> {
    Ok(match act.holder(&act.unit)? {
        Some(holder) => format!("covered by the claim of {} on {}", holder.owner, holder.unit),
        None => status.to_owned(),
    })
}

/// List the claims on slices and tasks with owner and expiry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListClaims {
    /// Name of the workspace. Default: all.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    workspace: Option<String>,
    /// Milestone id, for example M01. Default: all.
    milestone_id: Option<MilestoneId>,
    /// Cursor: `next_cursor` of the previous page.
    #[schemars(length(max = MAX_CURSOR_CHARS))]
    cursor: Option<String>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(length(max = MAX_CURSOR_CHARS), extend("deprecated" = true))]
    after: Option<String>,
}

/// List of claims.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Claims {
    /// Unexpired claims.
    claims: Vec<Claim>,
    /// Value of `cursor` for the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// True if there are more.
    has_more: bool,
    /// The same as `has_more`.
    more: bool,
}

read_tool!(ListClaims => Claims, "gsd_claims", "List claims");

impl ListClaims {
    fn read(self, cx: &Cx<'_>) -> Result<Claims, ToolError> {
        let prefix = self.milestone_id.map_or_else(String::new, |id| format!("{id}/"));
        let workspace = self.workspace.as_deref();
        let cursor = self.cursor.or(self.after).unwrap_or_default();
        let (of, unit) = cursor.rsplit_once(' ').unwrap_or_default();
        let mut claims = claim::list(
            &cx.db,
            workspace,
            &prefix,
            cx.now(),
            (of, unit),
            MAX_LISTED_CLAIMS + 1,
        )?;
        if let Some(workspace) = workspace.filter(|_| claims.is_empty()) {
            require_known(cx, workspace)?;
        }
        let most = usize::try_from(MAX_LISTED_CLAIMS).unwrap_or(usize::MAX);
        let has_more = claims.len() > most;
        claims.truncate(most);
        let last = claims.last().filter(|_| has_more);
        Ok(Claims {
            next_cursor: last.map(|claim| format!("{} {}", claim.workspace, claim.unit)),
            has_more,
            more: has_more,
            claims,
        })
    }
}
