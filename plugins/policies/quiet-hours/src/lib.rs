//! The policy `quiet-hours`: denies changes during certain hours of the day.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, export_policy};

const MINUTE_MS: i64 = 60_000;
const DAY_MINUTES: i64 = 24 * 60;

/// Denies changes during certain hours.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// Start of the quiet hours, `HH:MM`, for example 22:00.
    from: String,
    /// End of the quiet hours, `HH:MM`. A time before `from` means the next day.
    to: String,
    /// Offset of the local time from UTC in minutes, for example 120 or -300. Default 0.
    #[serde(default)]
    utc_offset_minutes: i64,
    /// Days on which quiet hours begin, for example `["sat", "sun"]`. Default: every day.
    #[serde(default)]
    days: Vec<Day>,
    /// Effects of the tools that are denied. Default: write and run.
    #[serde(default = "changes")]
    effects: Vec<Effect>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// Days from Thursday, the day of 1970-01-01.
const WEEK: [Day; 7] = [
    Day::Thu,
    Day::Fri,
    Day::Sat,
    Day::Sun,
    Day::Mon,
    Day::Tue,
    Day::Wed,
];

fn changes() -> Vec<Effect> {
    vec![Effect::Write, Effect::Run]
}

impl Policy for QuietHours {
    const NAME: &'static str = "quiet-hours";
    const SUMMARY: &'static str = "Denies changes during certain hours.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, text) in [("from", &self.from), ("to", &self.to)] {
            if minutes(text).is_none() {
                problems.push(Problem::new(
                    key,
                    format!("`{text}` is not a time of day; use HH:MM"),
                ));
            }
        }
        if minutes(&self.from) == minutes(&self.to) {
            problems.push(Problem::new(
                "to",
                "is the same as `from`, so there are no quiet hours",
            ));
        }
        if self.utc_offset_minutes.abs() > 18 * 60 {
            problems.push(Problem::new("utc_offset_minutes", "is more than 18 hours"));
        }
        problems
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        if !self.effects.contains(&request.effect) || !self.is_quiet(request.at) {
            return Ok(Verdict::Pass);
        }
        let reason = format!("changes are denied between {} and {}", self.from, self.to);
        Ok(Denial::new("QUIET_HOURS", reason)
            .remediation(format!(
                "Call again after {}. Read calls are permitted at any time.",
                self.to
            ))
            .into())
    }
}
export_policy!(QuietHours);

impl QuietHours {
    fn is_quiet(&self, at_ms: i64) -> bool {
        let (Some(from), Some(to)) = (minutes(&self.from), minutes(&self.to)) else {
            return false;
        };
        let local = at_ms.div_euclid(MINUTE_MS) + self.utc_offset_minutes;
        let (day, minute) = (local.div_euclid(DAY_MINUTES), local.rem_euclid(DAY_MINUTES));
        if from < to {
            (from..to).contains(&minute) && self.begins_on(day)
        } else {
            (minute >= from && self.begins_on(day)) || (minute < to && self.begins_on(day - 1))
        }
    }

    fn begins_on(&self, day: i64) -> bool {
        let weekday = usize::try_from(day.rem_euclid(7))
            .ok()
            .and_then(|day| WEEK.get(day));
        self.days.is_empty() || weekday.is_some_and(|weekday| self.days.contains(weekday))
    }
}

/// Parses `HH:MM` to minutes since midnight.
fn minutes(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let two_digits = |text: &str| (text.len() == 2).then(|| text.parse::<u8>().ok()).flatten();
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    (hours < 24 && minutes < 60).then_some(i64::from(hours) * 60 + i64::from(minutes))
}

#[cfg(test)]
mod tests {
    use tollgate_sdk::native::Judge;

    use super::*;

    /// Thursday, 2026-01-01.
    const THURSDAY: i64 = tollgate_sdk::native::EPOCH_MS;
    const HOUR: i64 = 60 * MINUTE_MS;

    fn quiet(settings: &str, at: i64) -> bool {
        let judge = Judge::<QuietHours>::new(settings).unwrap();
        judge
            .before(&Request {
                at,
                ..Request::of("task_create", "{}")
            })
            .is_denied()
    }

    #[test]
    fn a_night_reaches_into_the_next_day() {
        let night = r#"{"from": "22:00", "to": "07:00"}"#;
        for (hour, expected) in [
            (0, true),
            (6, true),
            (7, false),
            (21, false),
            (22, true),
            (30, true),
            (31, false),
        ] {
            assert_eq!(quiet(night, THURSDAY + hour * HOUR), expected, "hour {hour}");
        }
    }

    #[test]
    fn days_are_those_on_which_it_begins() {
        let weekend = r#"{"from": "22:00", "to": "07:00", "days": ["thu"]}"#;
        assert!(!quiet(weekend, THURSDAY + HOUR), "began on Wednesday");
        assert!(quiet(weekend, THURSDAY + 23 * HOUR));
        assert!(quiet(weekend, THURSDAY + 25 * HOUR), "began on Thursday");
        assert!(!quiet(weekend, THURSDAY + 47 * HOUR));
    }

    #[test]
    fn hours_are_those_of_the_place() {
        let lunch = r#"{"from": "12:00", "to": "13:00", "utc_offset_minutes": 120}"#;
        assert!(quiet(lunch, THURSDAY + 10 * HOUR));
        assert!(!quiet(lunch, THURSDAY + 12 * HOUR));
    }

    #[test]
    fn reading_goes_on() {
        let judge = Judge::<QuietHours>::new(r#"{"from": "00:00", "to": "23:59"}"#).unwrap();
        let request = Request {
            effect: Effect::Read,
            at: THURSDAY,
            ..Request::of("task_get", "{}")
        };
        assert_eq!(judge.before(&request).verdict, Verdict::Pass);
    }

    #[test]
    fn every_mistake_is_named() {
        let settings = r#"{"from": "25:00", "to": "7", "utc_offset_minutes": 5000}"#;
        let problems = Judge::<QuietHours>::new(settings).err().unwrap();
        let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["from", "to", "to", "utc_offset_minutes"]);
    }
}
