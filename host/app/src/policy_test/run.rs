//! Evaluation of cases with a policy: each has its own settings, ledger and tables.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tollgate_components::policies::{Cause, Described, Fault, Phase, Policy, Source};
use tollgate_core::text;
use tollgate_gate::{CallServices, Trial};
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::workspaces::Workspaces;

use super::cases::Case;
use super::compare::Said;
use super::{End, aside, at_leisure};
use crate::host::HostContext;

/// Result of a case.
#[derive(Debug, Clone, Serialize)]
pub struct Ran {
    /// Name of the case.
    pub name: String,
    /// True if the verdict was the expected one.
    pub passed: bool,
    /// Expected verdict.
    pub expected: String,
    /// Actual verdict.
    pub said: String,
    /// Differences between them, empty if there are none.
    pub differences: Vec<String>,
    /// Duration of the evaluation, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us: Option<u64>,
}

/// Evaluates cases with a policy, within a time limit.
pub async fn run(
    context: &HostContext,
    source: Source,
    cases: &[Case],
    time: Duration,
) -> anyhow::Result<Vec<Ran>> {
    let end = End::after(time);
    let described = Described::of(context.loader(), &source.origin, source.sha256.as_deref()).await;
    let described = described.map_err(|problems| anyhow::anyhow!("{}", problems.join("; ")))?;
    let source = at_leisure(source, &described);
    let one = |case: &Case| try_case(context, &source, &described, case, end);
    aside(|| cases.iter().map(one).collect())
}

fn try_case(
    context: &HostContext,
    source: &Source,
    described: &Described,
    case: &Case,
    end: End,
) -> anyhow::Result<Ran> {
    end.look()?;
    let (said, took) = ask(context, source, described, case, end)?;
    let differences = case.expected.differences(&said);
    Ok(Ran {
        name: case.name.clone(),
        passed: differences.is_empty(),
        expected: case.expected.line(),
        said: said.line(),
        differences,
        us: took.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
    })
}

fn ask(
    context: &HostContext,
    source: &Source,
    described: &Described,
    case: &Case,
    end: End,
) -> anyhow::Result<(Said, Option<Duration>)> {
    let source = Source {
        config: case.settings.clone(),
        phase: Phase::Both,
        ..source.clone()
    };
    let policy = match described.with(context.loader(), &Workspaces::default(), &source) {
        Ok(policy) => policy,
        Err(problems) => return Ok((Said::BadSettings(problems), None)),
    };
    if policy.phase != Phase::Both && policy.phase != case.phase {
        return Ok((Said::NotAsked, None));
    }
    let mut trial = with_history(context.services(), &policy, case, end)?;
    Ok(if case.phase == Phase::Response {
        let answer = trial.after(&policy, &case.request, &case.outcome)?;
        let said = match answer.said {
            Ok((wit::Review::Pass, _)) => Said::Pass,
            Ok((wit::Review::Deny(denial), _)) => denied(&denial),
            Err(fault) => failed(fault),
        };
        (said, Some(answer.took))
    } else {
        let answer = trial.before(&policy, &case.request)?;
        let said = match answer.said {
            Ok((verdict, _)) => verdict_said(verdict),
            Err(fault) => failed(fault),
        };
        (said, Some(answer.took))
    })
}

/// Prepares an evaluation with the case's history. The policy evaluates the results in it.
fn with_history(services: CallServices, policy: &Policy, case: &Case, end: End) -> anyhow::Result<Trial> {
    let mut trial = Trial::of(services, std::iter::once(policy))?;
    trial.set_input_schema(case.input_schema.as_deref());
    trial.remember_of(policy, case.request.at, &case.memory)?;
    for past in &case.history {
        end.look()?;
        let seen = past.outcome.as_ref().filter(|_| policy.phase != Phase::Request);
        if let Some(outcome) = seen {
            let answer = trial.after(policy, &past.request, outcome)?;
            if let Err(fault) = answer.said {
                let tool = &past.request.tool;
                anyhow::bail!(
                    "case {:?}: the policy could not evaluate the call of {tool} in `history`: {}",
                    case.name,
                    fault.detail
                );
            }
        }
        trial.record(std::slice::from_ref(&past.operation))?;
    }
    Ok(trial)
}

fn verdict_said(verdict: wit::Verdict) -> Said {
    match verdict {
        wit::Verdict::Pass => Said::Pass,
        wit::Verdict::Deny(denial) => denied(&denial),
        wit::Verdict::Ask(question) => Said::Ask {
            message: text::clean(&question.message),
            otherwise: text::code(&question.otherwise.code),
        },
        wit::Verdict::Amend(json) => match serde_json::from_str(&json) {
            Ok(arguments @ Value::Object(_)) => Said::Amend(arguments),
            _ => failed(Fault {
                cause: Cause::BadAmendment,
                detail: "the amendment is not a JSON object".to_owned(),
            }),
        },
    }
}

fn denied(denial: &wit::Denial) -> Said {
    let told = format!("{} {}", denial.reason, denial.remediation);
    Said::Deny {
        code: text::code(&denial.code),
        text: text::clean(told.trim_end()),
    }
}

fn failed(fault: Fault) -> Said {
    Said::Failed {
        cause: fault.cause,
        detail: fault.detail,
    }
}
