//! `ledger_stats`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_components::tools::Tier;
use tollgate_core::effect::Effect;
use tollgate_store::storage::{Bucket, By, PolicyTally, Tally, TallyQuery};

use super::operations::times;
use super::{CoreCx, CoreError, Tool, storage};

/// Most rows that one call counts, newest first.
const MAX_ROWS: i64 = 200_000;
/// Most counts in one reply.
const MAX_LIMIT: u32 = 500;

/// Count calls in the ledger: number, failures with their reasons, and durations, grouped by tool, actor, client or
/// policy and by time. Counts at most the newest 200,000 rows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stats {
    /// Earliest time: RFC 3339, or a time ago such as `30m`, `24h` or `7d`. Default `24h`.
    #[serde(default = "default_since")]
    since: String,
    /// Latest time, exclusive, written like `since`. Default now.
    until: Option<String>,
    /// Properties to group calls by, for example `["tool", "actor"]`. `policy` also counts verdicts of policies.
    /// Default `["tool"]`.
    #[serde(default = "default_by")]
    #[schemars(length(max = 4))]
    by: Vec<By>,
    /// Length of the time intervals to group by, for example `hour`. Default: one interval.
    bucket: Option<Bucket>,
    /// Pack of the tools, for example `convergence`.
    pack: Option<String>,
    /// Tool name, for example `test_run`.
    tool: Option<String>,
    /// Actor as operations show it, for example `claimed:ada`.
    actor: Option<String>,
    /// Maximum number of counts, 1 to 500. Default 100.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: u32,
}

fn default_since() -> String {
    "24h".to_owned()
}

fn default_by() -> Vec<By> {
    vec![By::Tool]
}

fn default_limit() -> u32 {
    100
}

/// Counted calls.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Counted {
    /// Start of the counted time.
    since: String,
    /// Counts of calls, newest time interval first, then most calls first.
    calls: Vec<Tally>,
    /// Counts of verdicts by policy and mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policies: Vec<PolicyTally>,
    /// Sequence number of the first counted row, if there are more rows since `since`.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_from_seq: Option<i64>,
    /// Number of further counts that `limit` omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

impl Tool for Stats {
    const NAME: &'static str = "ledger_stats";
    const TITLE: &'static str = "Count calls";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Counted;

    fn run(self, cx: &CoreCx<'_>) -> Result<Counted, CoreError> {
        let (since, until) = times(cx, Some(&self.since), self.until.as_deref())?;
        let since = since.unwrap_or_default();
        let actor = match (cx.looks_at(), self.actor) {
            // An identity sees only its own operations.
            (Some(me), Some(actor)) if actor != me.as_str() => {
                return Ok(Counted {
                    since,
                    ..Counted::default()
                });
            }
            (Some(me), _) => Some(me.as_str().to_owned()),
            (None, actor) => actor,
        };
        let query = TallyQuery {
            since: since.clone(),
            until,
            pack: self.pack,
            tool: self.tool,
            actor,
            by: self.by.clone(),
            bucket: self.bucket,
            most: Some(MAX_ROWS),
        };
        let limit = self.limit.clamp(1, MAX_LIMIT) as usize;
        let tallied = cx.session.stats().tallies(&query).map_err(storage)?;
        let mut calls = tallied.rows;
        calls.sort_by(|one, other| (&other.bucket, other.calls).cmp(&(&one.bucket, one.calls)));
        let mut policies = match self.by.contains(&By::Policy) {
            true => cx.session.stats().policy_tallies(&query).map_err(storage)?.rows,
            false => Vec::new(),
        };
        policies.reverse();
        let left_out = calls.len().saturating_sub(limit) + policies.len().saturating_sub(limit);
        calls.truncate(limit);
        policies.truncate(limit);
        Ok(Counted {
            since,
            calls,
            policies,
            counted_from_seq: tallied.cut_at,
            left_out: (left_out > 0).then_some(left_out),
        })
    }
}
