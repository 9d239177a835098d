//! Fair queue for jobs that wait for one of a number of places, with a separate line for each identity, so that no
//! identity's jobs can block another's.
//!
//! The next job comes from the identity that holds the fewest places. A waiting line is overtaken a limited number of
//! times and is then served in turn.

use std::collections::VecDeque;

use tollgate_core::share::{Holdings, Share};

/// Number of times that a line is overtaken by lines that hold less before it is served in turn.
const MOST_PASSED: u32 = 8;
/// Empty lines that are kept for reuse, so that queueing a job costs no allocation.
const MAX_EMPTY_LINES: usize = 16;

/// Lines of jobs that wait for places.
pub(super) struct Turns<T> {
    places: Holdings,
    /// Lines with jobs. The one that was served last is at the end.
    lines: VecDeque<Line<T>>,
    empty_lines: Vec<VecDeque<T>>,
}

struct Line<T> {
    share: Share,
    jobs: VecDeque<T>,
    /// Number of later lines that were served before this one.
    passed: u32,
}

impl<T> Turns<T> {
    /// Turns for this many places, of which a caller that has the process to itself may use `alone`.
    pub(super) fn new(places: u64, alone: u64) -> Turns<T> {
        Turns {
            places: Holdings::new(places, alone),
            lines: VecDeque::new(),
            empty_lines: Vec::new(),
        }
    }

    /// Adds a job at the end of its line.
    pub(super) fn push(&mut self, share: Share, job: T) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.share == share) {
            return line.jobs.push_back(job);
        }
        let line = self.line(share, job);
        self.lines.push_back(line);
    }

    /// Puts back a job that did not begin, before all others of its line, and the line before all others.
    pub(super) fn put_back(&mut self, share: Share, job: T) {
        let line = self.lines.iter().position(|line| line.share == share);
        let line = match line.and_then(|index| self.lines.remove(index)) {
            Some(mut line) => {
                line.jobs.push_front(job);
                line
            }
            None => self.line(share, job),
        };
        self.lines.push_front(line);
    }

    /// Moves the line of a share that was just served behind all others. A line that is created while that share is
    /// served does not wait for a second turn of any other.
    pub(super) fn move_to_end(&mut self, share: &Share) {
        let line = self.lines.iter().position(|line| line.share == *share);
        if let Some(line) = line.and_then(|index| self.lines.remove(index)) {
            self.lines.push_back(line);
        }
    }

    /// Next job and its share, which takes a place. `None` if no waiting job may have one.
    pub(super) fn next(&mut self) -> Option<(Share, T)> {
        let chosen = self.choose()?;
        for line in self.lines.iter_mut().take(chosen) {
            line.passed += u32::from(self.places.allows(&line.share, 1));
        }
        let mut line = self.lines.remove(chosen)?;
        let job = line.jobs.pop_front()?;
        let share = line.share.clone();
        if line.jobs.is_empty() {
            if self.empty_lines.len() < MAX_EMPTY_LINES {
                self.empty_lines.push(line.jobs);
            }
        } else {
            line.passed = 0;
            self.lines.push_back(line);
        }
        self.places.take(&share, 1);
        Some((share, job))
    }

    /// True if a waiting job may have a place.
    pub(super) fn has_next(&self) -> bool {
        self.lines.iter().any(|line| self.places.allows(&line.share, 1))
    }

    /// True if no job waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Shares whose jobs wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Share> {
        self.lines.iter().map(|line| &line.share)
    }

    /// First job of each line.
    pub(super) fn heads(&self) -> impl Iterator<Item = &T> {
        self.lines.iter().filter_map(|line| line.jobs.front())
    }

    /// True if others hold places and this share holds none.
    pub(super) fn is_newcomer(&self, share: &Share) -> bool {
        !self.places.is_unused() && self.places.held(share) == 0
    }

    /// Releases the place of a finished job.
    pub(super) fn give_back(&mut self, share: &Share) {
        self.places.give_back(share, 1);
    }

    /// Releases all places.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// The first line that was overtaken too often, otherwise the first of the lines that hold the fewest places.
    fn choose(&self) -> Option<usize> {
        let may = |line: &&Line<T>| self.places.allows(&line.share, 1);
        if self.lines.len() == 1 {
            return self.lines.front().filter(may).map(|_| 0);
        }
        let lines = self.lines.iter().enumerate().filter(|(_, line)| may(line));
        let rank = |line: &Line<T>| match line.passed {
            MOST_PASSED.. => None,
            _ => Some(self.places.held(&line.share)),
        };
        // Among equal ones, the first.
        lines.min_by_key(|(_, line)| rank(line)).map(|(index, _)| index)
    }

    fn line(&mut self, share: Share, job: T) -> Line<T> {
        let mut jobs = self.empty_lines.pop().unwrap_or_default();
        jobs.push_back(job);
        Line {
            share,
            jobs,
            passed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(turns: &mut Turns<u32>, count: usize) -> String {
        let served = (0..count).filter_map(|_| turns.next());
        served.map(|(share, job)| format!("{share}{job} ")).collect()
    }

    #[test]
    fn one_that_sends_much_does_not_come_before_one_that_sends_little() {
        let mut turns = Turns::new(8, 8);
        for job in 0..100 {
            turns.push(Share::named("a"), job);
        }
        assert_eq!(names(&mut turns, 8), "a0 a1 a2 a3 ", "half of the places at most");
        turns.push(Share::named("b"), 0);
        turns.push(Share::named("c"), 0);
        assert!(turns.is_newcomer(&Share::named("b")));
        assert_eq!(names(&mut turns, 8), "b0 c0 ");
        turns.give_back(&Share::named("a"));
        turns.give_back(&Share::named("b"));
        turns.give_back(&Share::named("c"));
        assert_eq!(names(&mut turns, 8), "a4 ");
    }

    #[test]
    fn a_caller_that_has_the_process_to_itself_gets_every_place() {
        let mut turns = Turns::new(4, 4);
        for job in 0..5 {
            turns.push(Share::default(), job);
        }
        assert_eq!(names(&mut turns, 9), "0 1 2 3 ");
        assert!(!turns.has_next() && !turns.is_empty());
    }

    #[test]
    fn what_is_put_back_is_next_in_its_order() {
        let mut turns = Turns::new(u64::MAX, u64::MAX);
        for job in 0..4 {
            turns.push(Share::named("a"), job);
        }
        let taken = [turns.next().unwrap(), turns.next().unwrap()];
        for (share, job) in taken.into_iter().rev() {
            turns.put_back(share, job);
        }
        assert_eq!(names(&mut turns, 9), "a0 a1 a2 a3 ");
        turns.clear();
        for (name, job) in [("b", 0), ("a", 5)] {
            turns.push(Share::named(name), job);
        }
        turns.put_back(Share::named("a"), 4);
        assert_eq!(names(&mut turns, 9), "a4 b0 a5 ");
    }

    #[test]
    fn a_line_that_was_just_served_is_behind_all_others() {
        let mut turns = Turns::new(u64::MAX, u64::MAX);
        for (name, job) in [("a", 0), ("b", 0), ("a", 1)] {
            turns.push(Share::named(name), job);
        }
        turns.move_to_end(&Share::named("a"));
        turns.move_to_end(&Share::named("nobody"));
        assert_eq!(names(&mut turns, 9), "b0 a0 a1 ");
    }

    /// Event of the lines.
    #[derive(Debug, Clone)]
    enum Step {
        Push(u8),
        Next,
        GiveBack(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0_u8..12).prop_map(Step::Push),
            3 => Just(Step::Next),
            2 => any::<usize>().prop_map(Step::GiveBack),
        ];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        /// Every line that may have a place gets one within as many turns as there are lines, and a few more; jobs of a
        /// line keep their order; none is lost; and no share has more than half of the places.
        #[test]
        fn every_identity_that_waits_is_served_soon(steps in steps()) {
            let mut turns = Turns::new(6, 6);
            let mut pushed = [0_u32; 12];
            let mut served = [0_u32; 12];
            let mut waited = [0_usize; 12];
            let mut held: Vec<u8> = Vec::new();
            for step in steps {
                match step {
                    Step::Push(who) => {
                        turns.push(Share::named(&who.to_string()), pushed[usize::from(who)]);
                        pushed[usize::from(who)] += 1;
                    }
                    Step::Next => {
                        let may: Vec<bool> = (0..12)
                            .map(|who| {
                                served[who] < pushed[who]
                                    && turns.places.allows(&Share::named(&who.to_string()), 1)
                            })
                            .collect();
                        let Some((share, job)) = turns.next() else {
                            prop_assert!(!may.contains(&true), "somebody could have been served");
                            continue;
                        };
                        let who: u8 = share.as_str().parse().unwrap();
                        prop_assert_eq!(job, served[usize::from(who)]);
                        served[usize::from(who)] += 1;
                        held.push(who);
                        prop_assert!(held.iter().filter(|&&other| other == who).count() <= 3);
                        for other in 0..12 {
                            waited[other] += usize::from(may[other]);
                        }
                        waited[usize::from(who)] = 0;
                        let most = 12 + MOST_PASSED as usize;
                        prop_assert!(waited.iter().all(|&waited| waited <= most), "{:?}", waited);
                    }
                    Step::GiveBack(which) if !held.is_empty() => {
                        let who = held.swap_remove(which % held.len());
                        turns.give_back(&Share::named(&who.to_string()));
                    }
                    Step::GiveBack(_) => {}
                }
            }
            while !turns.is_empty() {
                for who in held.drain(..) {
                    turns.give_back(&Share::named(&who.to_string()));
                }
                let (share, _) = turns.next().unwrap();
                let who: u8 = share.as_str().parse().unwrap();
                served[usize::from(who)] += 1;
                held.push(who);
            }
            prop_assert_eq!(served, pushed);
        }
    }
}
