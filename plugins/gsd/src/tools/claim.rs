//! Claims on units: claiming, releasing and listing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError, Effect, Tool, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change};
use crate::arguments::{LINE, TEXT, TTL_SEC, WORKSPACE};
use crate::files::Touched;
use crate::guard::{Action, Holder};
use crate::header::{ClaimKey, OwnerHeader, header};
use crate::model::MilestoneId;
use crate::store::claim::{self, Claim};
use crate::store::log::Event;
use crate::violation::{Refusals, Violation};

/// Most claims of one reply.
const LISTED: u32 = 200;

/// Claim a slice or task, so that only you may start, complete, skip or reopen it. The first claim wins. A
/// slice's claim covers its unclaimed tasks. Claiming again renews the claim; `force` with a `reason` takes
/// it over.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ClaimUnit {
    #[serde(flatten)]
    at: ClaimKey,
    /// Lifetime of the claim in seconds. Default: until released.
    #[schemars(range(min = 1, max = TTL_SEC))]
    ttl_sec: Option<u32>,
    /// Take the claim over from its owner. Requires `reason`.
    force: Option<bool>,
    /// Reason for taking over. Required with `force`.
    #[schemars(length(min = 1, max = TEXT))]
    reason: Option<String>,
    #[serde(flatten)]
    header: OwnerHeader,
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
    /// The previous owner.
    type Facts = Option<Holder>;

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        act.scene(Action::Claim, &act.unit, refusals)?;
        let holder = act
            .holder(&act.unit)?
            .filter(|holder| holder.owner != self.header.actor_name);
        if let Some(reason) = &self.reason {
            refusals.text("reason", reason);
        }
        if let Some(ttl) = self.ttl_sec.filter(|ttl| !(1..=TTL_SEC).contains(ttl)) {
            let fault = format!("is {ttl}, but must be within 1 to {TTL_SEC}");
            refusals.add(Violation::argument("ttl_sec", fault));
        }
        match (&holder, self.force.unwrap_or_default(), &self.reason) {
            (Some(_), true, None) => {
                refusals.add(Violation::argument("reason", "is required to take a claim over"));
            }
            (Some(_), false, _) => {
                act.ownership(&act.unit, refusals)?;
            }
            _ => {}
        }
        Ok(Some(holder))
    }

    fn apply(&self, act: &Act<'_>, before: Self::Facts, _event: &Event) -> Result<Applied, ToolError> {
        let ttl_ms = self.ttl_sec.map(|seconds| i64::from(seconds) * 1000);
        let claim = Claim {
            workspace: self.header.workspace.clone(),
            unit: act.unit.to_string(),
            owner: self.header.actor_name.clone(),
            claimed_at: act.now(),
            expires_at: ttl_ms.map(|ttl_ms| act.now().plus_ms(ttl_ms)),
        };
        claim::put(act.db(), &claim)?;
        let taken = before.map(|holder| {
            let reason: String = self
                .reason
                .iter()
                .flat_map(|reason| reason.chars())
                .take(LINE)
                .collect();
            format!("{} was taken over from {}: {reason}", holder.unit, holder.owner)
        });
        Ok(Applied {
            status: format!("held by {}", self.header.actor_name),
            warnings: taken.into_iter().collect(),
            touched: Touched::claims(),
            ..Applied::default()
        })
    }
}

/// Release your claim on a slice or task. Fails if another actor holds it; does nothing if nobody does.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReleaseUnit {
    #[serde(flatten)]
    at: ClaimKey,
    #[serde(flatten)]
    header: OwnerHeader,
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
    type Facts = ();

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        act.scene(Action::Release, &act.unit, refusals)?;
        act.ownership(&act.unit, refusals)?;
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), _event: &Event) -> Result<Applied, ToolError> {
        let released = claim::release(act.db(), act.workspace(), &act.unit.to_string())?;
        let left = act.holder(&act.unit)?;
        Ok(Applied {
            status: match left {
                Some(holder) => format!("covered by the claim of {} on {}", holder.owner, holder.unit),
                None if released => "released".to_owned(),
                None => "not held".to_owned(),
            },
            touched: Touched::claims(),
            ..Applied::default()
        })
    }
}

/// List the claims on slices and tasks with owner and expiry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListClaims {
    /// Name of the workspace. Default: all.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: Option<String>,
    /// Milestone id, for example M01. Default: all.
    milestone_id: Option<MilestoneId>,
}

/// List of claims.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Claims {
    /// Unexpired claims.
    claims: Vec<Claim>,
    /// True if there are more claims.
    more: bool,
}

impl Tool for ListClaims {
    const NAME: &'static str = "gsd_claims";
    const TITLE: &'static str = "List claims";
    const EFFECT: Effect = Effect::Read;
    type Output = Claims;

    fn run(self, cx: &Cx<'_>) -> Result<Claims, ToolError> {
        let prefix = self.milestone_id.map_or_else(String::new, |id| format!("{id}/"));
        let workspace = self.workspace.as_deref();
        let mut claims = claim::list(&cx.db, workspace, &prefix, cx.now(), LISTED + 1)?;
        let most = usize::try_from(LISTED).unwrap_or(usize::MAX);
        let more = claims.len() > most;
        claims.truncate(most);
        Ok(Claims { claims, more })
    }
}
