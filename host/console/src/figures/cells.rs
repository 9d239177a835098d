//! Sums by interval: minutes, hours and days, each kept as long as pages show them.

use std::collections::{BTreeMap, HashMap};

use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Bucket, CountedRow, PolicyTally, Tally};

use super::sums::{Sums, Verdicts};

/// Maximum number of separately counted names per interval and kind. The number is limited because callers choose some
/// of these names.
const MAX_NAMES: usize = 200;

/// Pack and tool, caller, or client. `None` for all names beyond the limit.
type Name = Option<(Option<String>, Option<String>)>;

/// Sums by name.
type Named = HashMap<Name, Sums>;

/// Interval.
#[derive(Default)]
struct Cell {
    all: Sums,
    tools: Named,
    actors: Named,
    clients: Named,
    policies: BTreeMap<(String, String), Verdicts>,
}

impl Cell {
    fn add(&mut self, row: &CountedRow) {
        self.all.add(row);
        count(
            &mut self.tools,
            Some((Some(row.pack.clone()), Some(row.tool.clone()))),
        )
        .add(row);
        count(&mut self.actors, Some((None, row.actor.clone()))).add(row);
        count(&mut self.clients, Some((None, row.client.clone()))).add(row);
        for said in &row.verdicts {
            let key = (said.policy.clone(), said.mode.clone());
            if self.policies.contains_key(&key) || self.policies.len() < MAX_NAMES {
                self.policies.entry(key).or_default().add(said);
            }
        }
    }
}

/// Sums of a name, or of all others if there are too many names.
fn count(named: &mut Named, name: Name) -> &mut Sums {
    let fits = named.len() < MAX_NAMES || named.contains_key(&name);
    named.entry(name.filter(|_| fits)).or_default()
}

/// Calls since a time.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Calls by interval, oldest first. Intervals without calls are missing.
    pub(crate) over_time: Vec<Tally>,
    /// Calls by tool, most frequent first.
    pub(crate) tools: Vec<Tally>,
    /// Calls by caller.
    pub(crate) actors: Vec<Tally>,
    /// Calls by client.
    pub(crate) clients: Vec<Tally>,
}

/// Verdicts of a policy in a mode.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyCounts {
    /// All verdicts.
    pub(crate) all: PolicyTally,
    /// Number of denials by day.
    pub(crate) denied_by_day: BTreeMap<String, i64>,
}

/// Intervals of one width.
pub(super) struct Level {
    bucket: Bucket,
    width_ms: i64,
    /// Number of intervals that are kept.
    kept: i64,
    cells: BTreeMap<i64, Cell>,
}

impl Level {
    pub(super) fn new(bucket: Bucket, kept: i64) -> Level {
        Level {
            bucket,
            width_ms: width_ms(bucket),
            kept,
            cells: BTreeMap::new(),
        }
    }

    /// Counts a row, unless it is too old or its time is in the future because of a wrong clock.
    pub(super) fn add(&mut self, row: &CountedRow, now_ms: i64) {
        let newest = now_ms.div_euclid(self.width_ms);
        let stretch = row.at_ms.div_euclid(self.width_ms);
        if stretch > newest - self.kept && stretch <= newest + 1 {
            self.cells.entry(stretch).or_default().add(row);
        }
    }

    /// Drops intervals that no page shows any more.
    pub(super) fn forget(&mut self, now_ms: i64) {
        let oldest = now_ms.div_euclid(self.width_ms) - self.kept + 1;
        self.cells = self.cells.split_off(&oldest);
    }

    /// Calls since the interval that contains a time.
    pub(super) fn since(&self, time_ms: i64) -> Counts {
        let mut counts = Counts::default();
        let mut named: [Named; 3] = Default::default();
        for (stretch, cell) in self.cells.range(time_ms.div_euclid(self.width_ms)..) {
            counts.over_time.push(Tally {
                bucket: Some(self.label(*stretch)),
                ..cell.all.clone().tally()
            });
            for (sums, more) in named.iter_mut().zip([&cell.tools, &cell.actors, &cell.clients]) {
                for (name, more) in more {
                    match sums.get_mut(name) {
                        Some(sums) => sums.merge(more),
                        None => drop(sums.insert(name.clone(), more.clone())),
                    }
                }
            }
        }
        let [tools, actors, clients] = named;
        counts.tools = sorted(tools, |tally, pack, tool| (tally.pack, tally.tool) = (pack, tool));
        counts.actors = sorted(actors, |tally, _, actor| tally.actor = actor);
        counts.clients = sorted(clients, |tally, _, client| tally.client = client);
        counts
    }

    /// Verdicts since the interval that contains a time, by policy and mode.
    pub(super) fn policies_since(&self, time_ms: i64) -> BTreeMap<(String, String), PolicyCounts> {
        let mut merged: BTreeMap<(String, String), (Verdicts, BTreeMap<String, i64>)> = BTreeMap::new();
        for (stretch, cell) in self.cells.range(time_ms.div_euclid(self.width_ms)..) {
            for (key, verdicts) in &cell.policies {
                let (all, by_day) = merged.entry(key.clone()).or_default();
                all.merge(verdicts);
                by_day.insert(self.label(*stretch), verdicts.denied());
            }
        }
        let finished = merged.into_iter().map(|(key, (all, denied_by_day))| {
            let counts = PolicyCounts {
                all: PolicyTally {
                    policy: key.0.clone(),
                    mode: key.1.clone(),
                    ..all.tally()
                },
                denied_by_day,
            };
            (key, counts)
        });
        finished.collect()
    }

    fn label(&self, stretch: i64) -> String {
        let time = Timestamp::from_ms(stretch * self.width_ms).to_string();
        time[..self.bucket.letters()].to_owned()
    }
}

/// Length of an interval in milliseconds.
pub(crate) fn width_ms(bucket: Bucket) -> i64 {
    match bucket {
        Bucket::Minute => 60_000,
        Bucket::Hour => 3_600_000,
        Bucket::Day => 86_400_000,
    }
}

fn sorted(named: Named, set: fn(&mut Tally, Option<String>, Option<String>)) -> Vec<Tally> {
    let finished = named.into_iter().map(|(name, sums)| {
        let mut tally = sums.tally();
        let (pack, name) = name.unwrap_or((None, Some("all others".to_owned())));
        set(&mut tally, pack, name);
        tally
    });
    let mut tallies: Vec<Tally> = finished.collect();
    let name = |tally: &Tally| (tally.tool.clone(), tally.actor.clone(), tally.client.clone());
    tallies.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| name(a).cmp(&name(b))));
    tallies
}
