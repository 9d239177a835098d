//! Loops in a sequence of calls. Pure.

use tollgate_sdk::policy::Request;

use crate::LoopBreaker;

/// Compared fields of a past call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) tool: &'a str,
    pub(crate) args_hash: &'a str,
    pub(crate) outcome: &'a str,
    /// True if the outcome belongs to the call itself, and is known. The outcome of a call inside another is
    /// that of the outer call.
    pub(crate) is_own: bool,
}

impl Seen<'_> {
    pub(crate) fn is_same_call(&self, other: &Seen<'_>) -> bool {
        self.tool == other.tool && self.args_hash == other.args_hash
    }

    fn is_call(&self, request: &Request) -> bool {
        self.tool == request.tool && self.args_hash == request.args_hash
    }

    /// Checks for the same call with the same outcome.
    fn repeats(&self, other: &Seen<'_>) -> bool {
        self.is_same_call(other) && self.outcome == other.outcome
    }

    /// Checks for the same outcome of the same tool, whatever the arguments.
    fn answers_as(&self, other: &Seen<'_>) -> bool {
        self.repeats(other)
            || (self.is_own && other.is_own && self.tool == other.tool && self.outcome == other.outcome)
    }
}

/// Kind of loop that a call continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Circle {
    /// Number of times that the same call had the same outcome in a row.
    Repeats(usize),
    /// Turns of the call and others, each with the same outcome.
    Turns { times: u32, others: Vec<String> },
    /// Number of times that the tool had the same outcome, whatever the arguments.
    Results(u32),
    /// Number of calls with few different outcomes, whatever the arguments.
    FewResults { calls: usize, results: usize },
    /// So many denials that other failures of the caller are out of sight.
    Flood,
}

impl Circle {
    pub(crate) fn reason(&self) -> String {
        match self {
            Circle::Repeats(times) => format!("this call had the same outcome {times} times in a row"),
            Circle::Turns { times, others } => format!(
                "this call and {} alternated {times} times, each with the same outcome",
                others.join(" and ")
            ),
            Circle::Results(times) => {
                format!("this tool had the same outcome {times} times in a row, with any arguments")
            }
            Circle::FewResults { calls, results } => {
                format!("the last {calls} calls had at most {results} different outcomes, with any arguments")
            }
            Circle::Flood => {
                "this call was repeatedly denied as a loop, without another call in between".to_owned()
            }
        }
    }
}

/// Loop that a call continues, if any. `past` begins with the newest call.
pub(crate) fn find(policy: &LoopBreaker, past: &[Seen<'_>], request: &Request) -> Option<Circle> {
    let newest = past.first()?;
    let repeats = past.iter().take_while(|seen| seen.repeats(newest)).count();
    if policy.repeats > 0 && newest.is_call(request) && reaches(repeats, policy.repeats) {
        return Some(Circle::Repeats(repeats));
    }
    (1..=policy.rotation).find_map(|calls| {
        let by_turns = || turns(policy, past, request, calls);
        by_turns().or_else(|| results(policy, past, request, calls))
    })
}

/// Checks for the call and a limited number of others, each with one outcome, in any order.
fn turns(policy: &LoopBreaker, past: &[Seen<'_>], request: &Request, calls: u32) -> Option<Circle> {
    if policy.turns == 0 || calls < 2 {
        return None;
    }
    let distinct = distinct(past, calls, policy.turns, Seen::repeats)?;
    if !distinct.iter().any(|seen| seen.is_call(request)) {
        return None;
    }
    let others = distinct.iter().filter(|seen| !seen.is_call(request));
    Some(Circle::Turns {
        times: policy.turns,
        others: others.map(|seen| seen.tool.to_owned()).collect(),
    })
}

/// Checks for a limited number of outcomes, one of which is of the call's tool.
fn results(policy: &LoopBreaker, past: &[Seen<'_>], request: &Request, calls: u32) -> Option<Circle> {
    let times = policy.results();
    if times == 0 {
        return None;
    }
    let distinct = distinct(past, calls, times, Seen::answers_as)?;
    let is_same_tool = |seen: &&Seen<'_>| seen.tool == request.tool && seen.is_own;
    match (distinct.as_slice(), distinct.iter().any(is_same_tool)) {
        (_, false) => None,
        ([_], true) => Some(Circle::Results(times)),
        (several, true) => Some(Circle::FewResults {
            calls: usize::try_from(calls * times).unwrap_or(usize::MAX),
            results: several.len(),
        }),
    }
}

/// Different calls among the newest `calls * times`, if there are at most `calls`.
fn distinct<'a, 'b>(
    past: &'b [Seen<'a>],
    calls: u32,
    times: u32,
    is_same: impl Fn(&Seen<'a>, &Seen<'a>) -> bool,
) -> Option<Vec<&'b Seen<'a>>> {
    let looked_at = past.get(..usize::try_from(calls.checked_mul(times)?).ok()?)?;
    let most = usize::try_from(calls).ok()?;
    let mut distinct: Vec<&Seen<'a>> = Vec::new();
    for seen in looked_at {
        if distinct.iter().any(|other| is_same(seen, other)) {
            continue;
        }
        if distinct.len() == most {
            return None;
        }
        distinct.push(seen);
    }
    Some(distinct)
}

fn reaches(count: usize, limit: u32) -> bool {
    u32::try_from(count).is_ok_and(|count| count >= limit)
}
