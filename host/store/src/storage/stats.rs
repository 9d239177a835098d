//! Statistics of the ledger: call counts, durations and failures, by tool, actor, client, policy and time.

mod counts;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::counts::{Count, Key, Said, VerdictKey, VerdictTally, finish, key, stretch};
use super::engine::{borrowed, sql};
use super::error::StoreResult;
use super::handles::Stats;
use super::value::Value as SqlValue;

/// Number of rows before a time's place in the ledger that are searched too, because rows are in the order in which
/// calls ended.
const SLACK_ROWS: i64 = 1_000;

/// The calls of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStats {
    /// Pack of the tool.
    pub pack: String,
    /// Its name.
    pub tool: String,
    /// Number of calls.
    pub calls: i64,
    /// Number of calls that were refused or failed.
    pub failed: i64,
    /// Number of calls whose tests did not all pass.
    pub tests_failed: i64,
    /// Number of calls with unknown outcome.
    pub unknown: i64,
    /// Median duration in milliseconds.
    pub median_ms: f64,
    /// 95th percentile of the duration in milliseconds.
    pub p95_ms: f64,
    /// Longest duration in milliseconds.
    pub longest_ms: f64,
    /// Number of failures by code.
    pub errors: BTreeMap<String, i64>,
}

/// Property by which calls are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Tool and its pack.
    Tool,
    /// Name of the caller.
    Actor,
    /// Name of the client.
    Client,
    /// Policy. Verdicts are counted instead of calls.
    Policy,
}

/// Length of a time interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bucket {
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days.
    Day,
}

impl Bucket {
    /// Length of the timestamp's prefix that identifies the period.
    pub const fn letters(self) -> usize {
        match self {
            Bucket::Minute => "2026-11-21T06:30".len(),
            Bucket::Hour => "2026-11-21T06".len(),
            Bucket::Day => "2026-11-21".len(),
        }
    }
}

/// Filter and grouping of calls to count.
#[derive(Debug, Clone, Default)]
pub struct TallyQuery {
    /// Earliest time, inclusive.
    pub since: String,
    /// Latest time, exclusive.
    pub until: Option<String>,
    /// Pack.
    pub pack: Option<String>,
    /// Tool.
    pub tool: Option<String>,
    /// Recorded actor.
    pub actor: Option<String>,
    /// Properties to group by. [`By::Policy`] has no effect here.
    pub by: Vec<By>,
    /// Width of the periods to group by.
    pub bucket: Option<Bucket>,
    /// Most rows that are searched, newest first. `None` for all.
    pub most: Option<i64>,
}

/// Counts of one group of calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Tally {
    /// Start of the time interval in UTC, for example `2026-11-21T06`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Pack of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// Name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Name of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Name of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Number of calls.
    pub calls: i64,
    /// Number of calls that were refused or failed.
    pub failed: i64,
    /// Number of calls whose tests did not all pass.
    pub tests_failed: i64,
    /// Number of calls whose outcome is unknown.
    pub unknown: i64,
    /// Median duration in milliseconds.
    pub median_ms: f64,
    /// 95th percentile of the duration in milliseconds.
    pub p95_ms: f64,
    /// Longest duration in milliseconds.
    pub longest_ms: f64,
    /// Number of failures by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, i64>,
}

/// Verdicts of one policy in one mode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PolicyTally {
    /// Start of the time interval in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Name of the policy in the configuration.
    pub policy: String,
    /// `enforce` or `audit`.
    pub mode: String,
    /// Number of verdicts.
    pub judged: i64,
    /// Number of denials, which have no effect in audit mode.
    pub denied: i64,
    /// Number of questions to a user.
    pub asked: i64,
    /// Number of amendments.
    pub amended: i64,
    /// Number of verdicts that the policy failed to give.
    pub failed: i64,
    /// Median duration of a verdict in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_us: Option<i64>,
    /// 99th percentile of the duration of a verdict in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<i64>,
}

/// Counted calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tallied<T> {
    /// The counts.
    pub rows: Vec<T>,
    /// First place in the ledger that was looked at, if there are older rows in the time asked about.
    pub cut_at: Option<i64>,
}

/// Conditions of a statement, with the values of its parameters.
struct Conditions {
    sql: String,
    params: Vec<SqlValue>,
    cut_at: Option<i64>,
}

impl Stats<'_> {
    /// Calls of each tool since a time, for one pack or all.
    pub fn of_tools(self, since: &str, pack: Option<&str>) -> StoreResult<Vec<ToolStats>> {
        let tallied = self.tallies(&TallyQuery {
            since: since.to_owned(),
            pack: pack.map(str::to_owned),
            by: vec![By::Tool],
            ..TallyQuery::default()
        })?;
        let tools = tallied.rows.into_iter().map(|tally| ToolStats {
            pack: tally.pack.unwrap_or_default(),
            tool: tally.tool.unwrap_or_default(),
            calls: tally.calls,
            failed: tally.failed,
            tests_failed: tally.tests_failed,
            unknown: tally.unknown,
            median_ms: tally.median_ms,
            p95_ms: tally.p95_ms,
            longest_ms: tally.longest_ms,
            errors: tally.errors,
        });
        Ok(tools.collect())
    }

    /// Counts calls.
    pub fn tallies(self, query: &TallyQuery) -> StoreResult<Tallied<Tally>> {
        let groupings = [(query.by.as_slice(), query.bucket)];
        let (mut counted, cut_at) = self.tallies_of(query, &groupings)?;
        Ok(Tallied {
            rows: counted.pop().unwrap_or_default(),
            cut_at,
        })
    }

    /// Counts the same calls in several ways in one pass. Also returns the first place that was searched, if there
    /// are older rows.
    pub fn tallies_of(
        self,
        query: &TallyQuery,
        groupings: &[(&[By], Option<Bucket>)],
    ) -> StoreResult<(Vec<Vec<Tally>>, Option<i64>)> {
        let conditions = self.conditions(query)?;
        let mut counts: Vec<BTreeMap<Key, Count>> = vec![BTreeMap::new(); groupings.len()];
        let sql = format!(
            "SELECT timestamp, pack, tool, actor, client, success, outcome ->> 'result', duration_ms, error_code
             FROM core_operations WHERE {}",
            conditions.sql
        );
        self.0.engine.each(&sql, &borrowed(&conditions.params), |row| {
            for ((by, bucket), counts) in groupings.iter().zip(&mut counts) {
                let count = counts.entry(key(row, by, *bucket)?).or_default();
                count.add(row)?;
            }
            Ok(())
        })?;
        let finished = counts
            .into_iter()
            .map(|counts| counts.into_iter().map(finish).collect());
        Ok((finished.collect(), conditions.cut_at))
    }

    /// Counts verdicts of policies.
    pub fn policy_tallies(self, query: &TallyQuery) -> StoreResult<Tallied<PolicyTally>> {
        let (mut counted, cut_at) = self.policy_tallies_of(query, &[query.bucket])?;
        Ok(Tallied {
            rows: counted.pop().unwrap_or_default(),
            cut_at,
        })
    }

    /// Counts the same verdicts by several widths of periods in one pass.
    pub fn policy_tallies_of(
        self,
        query: &TallyQuery,
        buckets: &[Option<Bucket>],
    ) -> StoreResult<(Vec<Vec<PolicyTally>>, Option<i64>)> {
        let conditions = self.conditions(query)?;
        let mut verdict_tallies: Vec<BTreeMap<VerdictKey, VerdictTally>> =
            vec![BTreeMap::new(); buckets.len()];
        let sql = format!(
            "SELECT timestamp, verdicts FROM core_operations WHERE {} AND verdicts IS NOT NULL",
            conditions.sql
        );
        self.0.engine.each(&sql, &borrowed(&conditions.params), |row| {
            let verdicts: String = row.get(1)?;
            let verdicts: Vec<Said> = serde_json::from_str(&verdicts).unwrap_or_default();
            for (bucket, verdict_tallies) in buckets.iter().zip(&mut verdict_tallies) {
                for said in &verdicts {
                    let key = (stretch(row, *bucket)?, said.policy.clone(), said.mode.clone());
                    verdict_tallies.entry(key).or_default().add(said);
                }
            }
            Ok(())
        })?;
        let finished = verdict_tallies
            .into_iter()
            .map(|verdict_tallies| verdict_tallies.into_iter().map(VerdictTally::finish).collect());
        Ok((finished.collect(), conditions.cut_at))
    }

    /// Place in the ledger before all rows of calls since a time, found without reading them.
    pub fn first_place_since(self, time: &str) -> StoreResult<i64> {
        let sql = "SELECT timestamp FROM core_operations WHERE seq >= ?1 ORDER BY seq LIMIT 1";
        let mut from = self.0.engine.prepare(sql)?;
        let mut low = self.0.operations().oldest()?.unwrap_or(1);
        let mut high = self.0.ledger().head()?.seq.saturating_add(1);
        while low < high {
            let middle = low + (high - low) / 2;
            let found: Option<String> = from.maybe(sql![middle], |row| row.get(0))?;
            if found.is_some_and(|found| found.as_str() < time) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(SLACK_ROWS).max(1))
    }

    fn conditions(self, query: &TallyQuery) -> StoreResult<Conditions> {
        let since = self.first_place_since(&query.since)?;
        let bound = query.most.map_or(0, |most| self.head_place() - most + 1);
        let text = |text: &Option<String>| text.clone().map(SqlValue::Text);
        let mut params = vec![
            SqlValue::Integer(since.max(bound)),
            SqlValue::Text(query.since.clone()),
        ];
        let mut sql = "seq >= ?1 AND timestamp >= ?2".to_owned();
        for (condition, value) in [
            ("timestamp <", text(&query.until)),
            ("pack =", text(&query.pack)),
            ("tool =", text(&query.tool)),
            ("actor =", text(&query.actor)),
        ] {
            if let Some(value) = value {
                params.push(value);
                sql.push_str(&format!(" AND {condition} ?{}", params.len()));
            }
        }
        Ok(Conditions {
            sql,
            params,
            cut_at: (bound > since + SLACK_ROWS).then_some(bound),
        })
    }

    fn head_place(self) -> i64 {
        self.0.ledger().head().map_or(0, |head| head.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, operation};
    use super::*;

    #[test]
    fn calls_are_counted_apart_by_what_is_asked_for_and_by_hours() {
        let (_place, session) = fixture::ledger("");
        session.begin_write().unwrap();
        for number in 0_usize..12 {
            let mut row = operation(number, None, &format!("2026-03-01T0{}:00:00.000Z", number % 2));
            row.tool = ["a", "b", "c"][number % 3].to_owned();
            row.actor = Some("token:ada".to_owned());
            row.duration_ms = f64::from(u32::try_from(number).unwrap());
            row.success = Some(number != 4);
            row.error_code = (number == 4).then(|| "FROZEN".to_owned());
            row.verdicts = Some(
                r#"[{"policy":"freeze","phase":"request","mode":"audit","verdict":"deny","code":"X","us":40,"times":2}]"#
                    .to_owned(),
            );
            session.ledger().record(&row).unwrap();
        }
        session.commit().unwrap();
        let query = TallyQuery {
            since: "2026-03-01T00:00:00.000Z".to_owned(),
            by: vec![By::Tool],
            ..TallyQuery::default()
        };
        let tools = session.stats().tallies(&query).unwrap().rows;
        let told: Vec<_> = tools
            .iter()
            .map(|tally| {
                (
                    tally.tool.as_deref().unwrap(),
                    tally.calls,
                    tally.failed,
                    tally.median_ms,
                )
            })
            .collect();
        assert_eq!(told, [("a", 4, 0, 3.0), ("b", 4, 1, 4.0), ("c", 4, 0, 5.0)]);
        assert_eq!(tools[1].errors, BTreeMap::from([("FROZEN".to_owned(), 1)]));
        let hours = TallyQuery {
            by: Vec::new(),
            bucket: Some(Bucket::Hour),
            most: Some(6),
            ..query.clone()
        };
        let tallied = session.stats().tallies(&hours).unwrap();
        let told: Vec<_> = tallied
            .rows
            .iter()
            .map(|tally| (tally.bucket.as_deref().unwrap(), tally.calls))
            .collect();
        assert_eq!(told, [("2026-03-01T00", 3), ("2026-03-01T01", 3)]);
        let policies = session.stats().policy_tallies(&query).unwrap().rows;
        assert_eq!(policies.len(), 1);
        assert_eq!(
            (policies[0].judged, policies[0].denied, policies[0].p99_us),
            (24, 24, Some(40))
        );
        let later = TallyQuery {
            since: "2026-03-01T00:30:00.000Z".to_owned(),
            ..query
        };
        let calls: i64 = session
            .stats()
            .tallies(&later)
            .unwrap()
            .rows
            .iter()
            .map(|tally| tally.calls)
            .sum();
        assert_eq!(calls, 6);
    }

    #[test]
    fn a_time_is_found_in_a_long_ledger_and_none_of_its_rows_is_before() {
        let (_place, session) = fixture::ledger(&("o".repeat(2_500) + &"y".repeat(300)));
        let place = session.stats().first_place_since(fixture::YOUNG).unwrap();
        assert!((1_000..=2_501).contains(&place), "{place}");
        assert_eq!(session.stats().first_place_since(fixture::OLD).unwrap(), 1);
        assert_eq!(
            session.stats().of_tools(fixture::YOUNG, None).unwrap()[0].calls,
            300
        );
    }
}
