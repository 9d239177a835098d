//! Request ids that a session has used. Each id may be used once. A repeated id is refused, so that neither a faulty
//! client nor a replayed recording runs anything a second time.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::BuildHasher as _;

use rmcp::model::RequestId;

/// Maximum number of separate runs of consecutive numbers. Clients that count use one.
const MAX_RUNS: usize = 1024;
/// Maximum number of remembered texts, and of numbers outside any run. The latest are kept.
const MAX_TEXTS: usize = 16 << 10;
/// Runs up to this length are stored as single numbers once there are too many runs.
const SHORT_RUN_LIMIT: i64 = 16;

/// Ids of one session, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// First and last number of each run. Runs neither overlap nor adjoin.
    runs: BTreeMap<i64, i64>,
    texts: HashSet<u64>,
    /// Hashes of single ids in order of arrival.
    order: VecDeque<u64>,
    hasher: RandomState,
}

impl Seen {
    /// Records an id. Returns false if the id was used before. If a client uses numbers from more runs than can be
    /// stored, only the latest are remembered.
    pub(super) fn is_first(&mut self, id: &RequestId) -> bool {
        match id {
            RequestId::Number(number) => self.is_first_number(*number),
            RequestId::String(text) => self.is_first_text(text),
        }
    }

    fn is_first_number(&mut self, number: i64) -> bool {
        let before = self
            .runs
            .range(..=number)
            .next_back()
            .map(|(start, end)| (*start, *end));
        if before.is_some_and(|(_, end)| number <= end) || self.texts.contains(&self.hasher.hash_one(number))
        {
            return false;
        }
        let mut start = number;
        if let Some((run, end)) = before
            && end.checked_add(1) == Some(number)
        {
            start = run;
        }
        let follows = number.checked_add(1).and_then(|next| self.runs.remove(&next));
        self.runs.insert(start, follows.unwrap_or(number));
        if self.runs.len() > MAX_RUNS {
            self.scatter();
        }
        true
    }

    /// Makes room for a run by storing the lowest short run as single numbers. If there is none, forgets the lowest
    /// run.
    fn scatter(&mut self) {
        let is_short = |(start, end): &(i64, i64)| end.saturating_sub(*start) < SHORT_RUN_LIMIT;
        let mut runs = self.runs.iter().map(|(start, end)| (*start, *end));
        let lowest = runs.clone().next();
        let Some((start, end)) = runs.find(is_short).or(lowest) else {
            return;
        };
        self.runs.remove(&start);
        if is_short(&(start, end)) {
            for number in start..=end {
                self.keep(self.hasher.hash_one(number));
            }
        }
    }

    fn is_first_text(&mut self, text: &str) -> bool {
        // The hash key belongs to this session, so that collisions cannot be prepared.
        self.keep(self.hasher.hash_one(text))
    }

    /// Remembers a hash as one of the latest. Returns false if it is already remembered.
    fn keep(&mut self, hash: u64) -> bool {
        if !self.texts.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_TEXTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(seen: &mut Seen, number: i64) -> bool {
        seen.is_first(&RequestId::Number(number))
    }

    fn text(seen: &mut Seen, text: &str) -> bool {
        seen.is_first(&RequestId::String(text.into()))
    }

    #[test]
    fn each_id_is_first_once_and_a_number_is_no_text() {
        let mut seen = Seen::default();
        assert!(number(&mut seen, 1) && text(&mut seen, "1"));
        assert!(!number(&mut seen, 1) && !text(&mut seen, "1"));
        assert!(text(&mut seen, "") && !text(&mut seen, "") && text(&mut seen, "01"));
        for extreme in [i64::MIN, i64::MAX, i64::MAX - 1, i64::MIN + 1, -1, 0] {
            assert!(number(&mut seen, extreme), "{extreme}");
            assert!(!number(&mut seen, extreme), "{extreme}");
        }
    }

    #[test]
    fn who_counts_is_remembered_for_ever_in_one_run() {
        let mut seen = Seen::default();
        assert!((0..200_000).all(|id| number(&mut seen, id)));
        assert!((0..200_000).step_by(997).all(|id| !number(&mut seen, id)));
        assert_eq!(seen.runs.len(), 1);
        // In any order, the numbers form one run.
        let mut seen = Seen::default();
        assert!(
            (0..1000)
                .rev()
                .step_by(2)
                .chain((0..1000).step_by(2))
                .all(|id| number(&mut seen, id))
        );
        assert_eq!(seen.runs, BTreeMap::from([(0, 999)]));
    }

    #[test]
    fn memory_is_bounded_and_no_number_runs_again() {
        let mut seen = Seen::default();
        assert!((0..5000).all(|id| number(&mut seen, id * 10)));
        assert_eq!(seen.runs.len(), MAX_RUNS);
        assert!((0..5000).all(|id| !number(&mut seen, id * 10)));
        // An unused number never counts as used.
        assert!((0..5000).all(|id| number(&mut seen, id * 10 + 5)));
        let mut seen = Seen::default();
        let many = i64::try_from(MAX_TEXTS).unwrap() + 10;
        assert!((0..many).all(|id| text(&mut seen, &id.to_string())));
        assert_eq!((seen.texts.len(), seen.order.len()), (MAX_TEXTS, MAX_TEXTS));
        assert!((20..many).all(|id| !text(&mut seen, &id.to_string())));
    }
}
