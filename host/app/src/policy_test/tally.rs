//! Counts of a policy's verdicts on recorded calls. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::recorded::Missing;

/// Hypothetical verdict of a policy on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub(super) enum HypotheticalVerdict {
    Pass,
    /// Denied with this code and message.
    Deny {
        code: String,
        message: String,
    },
    /// Amended at these paths.
    Amend {
        places: Vec<String>,
    },
    /// Asked with this question.
    Ask {
        message: String,
    },
    /// The policy failed to evaluate, for this reason.
    Fail {
        cause: String,
    },
}

/// A call that the policy would not simply have passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Id of the operation in the ledger.
    pub op_id: String,
    /// Time of the call.
    pub timestamp: String,
    /// Hypothetical verdict.
    #[serde(flatten)]
    pub(super) hypothetical: HypotheticalVerdict,
}

impl Example {
    /// Hypothetical verdict in one line.
    pub fn line(&self) -> String {
        match &self.hypothetical {
            HypotheticalVerdict::Pass => "pass".to_owned(),
            HypotheticalVerdict::Deny { code, message } => format!("deny {code}: {message}"),
            HypotheticalVerdict::Amend { places } => format!("amend {}", places.join(", ")),
            HypotheticalVerdict::Ask { message } => format!("ask: {message}"),
            HypotheticalVerdict::Fail { cause } => format!("fail: {cause}"),
        }
    }
}

/// Hypothetical verdicts on the calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolTally {
    /// The tool.
    pub tool: String,
    /// Number of calls that the policy evaluated.
    pub calls: u64,
    /// Number of calls that would have been denied.
    pub denied: u64,
    /// Number of calls that would have run with other arguments.
    pub amended: u64,
    /// Number of calls that the client's user would have been asked about.
    pub asked: u64,
    /// Number of calls that the policy failed to evaluate, which would have been denied.
    pub failed: u64,
    /// Number of calls that exceeded the policy's timeout, which would have been denied.
    pub too_slow: u64,
    /// Median time of a verdict, in microseconds.
    pub median_us: u64,
    /// 99th percentile of the time of a verdict, in microseconds.
    pub p99_us: u64,
    /// Examples of calls that would not have passed.
    pub examples: Vec<Example>,
}

/// All counts so far.
pub(super) struct Tally {
    /// Maximum number of examples per tool.
    pub(super) examples: usize,
    /// Time limit of a verdict.
    pub(super) limit: Duration,
    tools: BTreeMap<String, (ToolTally, Vec<u64>)>,
    /// Calls that could not be replayed.
    pub(super) missing: BTreeMap<Missing, u64>,
    /// Calls whose result the policy would have evaluated, but was not stored.
    pub(super) without_result: u64,
}

impl Tally {
    pub(super) fn new(examples: usize, limit: Duration) -> Tally {
        Tally {
            examples,
            limit,
            tools: BTreeMap::new(),
            missing: BTreeMap::new(),
            without_result: 0,
        }
    }

    pub(super) fn miss(&mut self, missing: Missing) {
        *self.missing.entry(missing).or_default() += 1;
    }

    pub(super) fn count(&mut self, tool: &str, took: Duration, example: Example) {
        let (tally, times) = self.tools.entry(tool.to_owned()).or_default();
        tally.calls += 1;
        tally.too_slow += u64::from(took > self.limit);
        times.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        match example.hypothetical {
            HypotheticalVerdict::Pass => return,
            HypotheticalVerdict::Deny { .. } => tally.denied += 1,
            HypotheticalVerdict::Amend { .. } => tally.amended += 1,
            HypotheticalVerdict::Ask { .. } => tally.asked += 1,
            HypotheticalVerdict::Fail { .. } => tally.failed += 1,
        }
        if tally.examples.len() < self.examples {
            tally.examples.push(example);
        }
    }

    /// Counts by tool name.
    pub(super) fn tools(self) -> Vec<ToolTally> {
        let tools = self.tools.into_iter().map(|(tool, (tally, mut times))| {
            times.sort_unstable();
            ToolTally {
                tool,
                median_us: at(&times, 50),
                p99_us: at(&times, 99),
                ..tally
            }
        });
        tools.collect()
    }
}

/// Percentile of sorted numbers.
fn at(sorted: &[u64], percent: usize) -> u64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_tool_has_its_counts_and_its_first_examples() {
        let mut tally = Tally::new(2, Duration::from_micros(50));
        let said = |code: &str| match code {
            "pass" => HypotheticalVerdict::Pass,
            "amend" => HypotheticalVerdict::Amend {
                places: vec!["arguments.a".to_owned()],
            },
            "ask" => HypotheticalVerdict::Ask {
                message: "Really?".to_owned(),
            },
            "fail" => HypotheticalVerdict::Fail {
                cause: "crash".to_owned(),
            },
            code => HypotheticalVerdict::Deny {
                code: code.to_owned(),
                message: "no".to_owned(),
            },
        };
        for (number, code) in ["pass", "A", "amend", "ask", "fail", "B"].iter().enumerate() {
            let example = Example {
                op_id: format!("op_{number}"),
                timestamp: "t".to_owned(),
                hypothetical: said(code),
            };
            let took = Duration::from_micros(10 * (number as u64 + 1));
            tally.count(if *code == "B" { "other" } else { "one" }, took, example);
        }
        let mut table = String::new();
        for tool in tally.tools() {
            table += &format!(
                "{}: {} calls, {} denied, {} amended, {} asked, {} failed, {} slow, {} and {} us\n",
                tool.tool,
                tool.calls,
                tool.denied,
                tool.amended,
                tool.asked,
                tool.failed,
                tool.too_slow,
                tool.median_us,
                tool.p99_us,
            );
            let examples = tool
                .examples
                .iter()
                .map(|example| format!("  {} {}\n", example.op_id, example.line()));
            table += &examples.collect::<String>();
        }
        expect![[r#"
            one: 5 calls, 1 denied, 1 amended, 1 asked, 1 failed, 0 slow, 30 and 50 us
              op_1 deny A: no
              op_2 amend arguments.a
            other: 1 calls, 1 denied, 0 amended, 0 asked, 0 failed, 1 slow, 60 and 60 us
              op_5 deny B: no
        "#]]
        .assert_eq(&table);
        assert_eq!((at(&[], 50), at(&[1, 2], 50), at(&[1, 2], 99)), (0, 1, 2));
    }
}
