//! Check of a policy: its manifest, its settings, and verdicts on calls of the host's own tools.

use serde_json::{Map, Value, json};
use tollgate_components::grants::Grants;
use tollgate_components::policies::{JudgingLimits, Manifest, Mode, Phase, Source};
use tollgate_core::deadline::Cancel;
use tollgate_sdk::ToolError;

use super::arbitrary::Known;
use super::engines;
use super::pack::settings;
use super::report::{Called, Finding, Report};
use super::scratch::{self, Ended, ScratchHost};
use super::workspaces::Prepared;

/// Calls to evaluate: one that reads, and one that changes something.
const SAMPLE_CALLS: &[(&str, &str)] = &[
    ("envelope_list", "{}"),
    ("envelope_open", r#"{"label": "check"}"#),
];
/// Code of a call that a policy could not evaluate, and the context if the policy reported that itself.
const POLICY_FAILED: &str = "POLICY_FAILED";
const CANNOT_JUDGE: &str = "cannot_judge";
/// Outcomes of an evaluated call. A code follows the second.
const LET_THROUGH: &str = "let through";
const DENIED_PREFIX: &str = "denied ";

/// Checks everything about a policy.
pub(super) async fn check(
    host: &ScratchHost,
    manifest: &Manifest,
    grants: Grants,
    config: Option<Map<String, Value>>,
    prepared: Prepared,
    cancel: &Cancel,
    report: &mut Report,
) -> anyhow::Result<()> {
    let name = manifest.name.as_str();
    report.name = Some(name.to_owned());
    report.version = Some(manifest.version.clone());
    report.config_schema.clone_from(&manifest.config_schema);
    let is_made_up = config.is_none();
    report.config = config.unwrap_or_else(|| {
        let known = Known::new(&prepared.first);
        settings(manifest.config_schema.as_ref(), &known)
    });
    let source = source(host, name, grants, report.config.clone());
    let gate = host.gate(None, Some(source), prepared.workspaces).await?;
    let problems: Vec<String> = gate
        .catalog()
        .policies()
        .failures()
        .flat_map(|unloaded| unloaded.problems.clone())
        .collect();
    if problems.is_empty() {
        for (tool, arguments) in SAMPLE_CALLS {
            let arguments: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
            let ended = scratch::call(&gate, tool, arguments.clone(), cancel).await;
            if let Some(ended) = ended.filter(|_| !cancel.is_cancelled()) {
                judged(name, is_made_up, (tool, arguments), ended, report);
            }
        }
    }
    let table = format!("[policies.{name}.config]");
    for problem in problems {
        if is_made_up && problem.starts_with(&table) {
            report.note(without_settings(name, &problem));
        } else {
            report.problem(Finding::new(name, problem));
        }
    }
    if !cancel.is_cancelled() {
        conclude(name, manifest.phase, report);
    }
    for policy in gate
        .catalog()
        .policies()
        .members()
        .iter()
        .filter_map(|member| member.policy.as_ref().ok())
    {
        engines::compare(&policy.namespace, &policy.manifest.migrations, report);
    }
    gate.flush().await;
    Ok(())
}

/// Reports whether the policy evaluated anything, and which phases were not exercised.
fn conclude(name: &str, phase: Phase, report: &mut Report) {
    let judged = report
        .calls
        .iter()
        .filter(|called| !is_failed(&called.outcome))
        .count();
    report.judged = Some(judged);
    if judged == 0 {
        let nothing = Finding::new(
            name,
            "the policy evaluated no call, so its verdicts were not tested",
        );
        let remedy = "use --settings to pass settings under which the policy evaluates at least one call";
        report.problem(nothing.remedy(remedy));
        return;
    }
    let is_let_through = |called: &Called| called.outcome == LET_THROUGH;
    if phase != Phase::Request && !report.calls.iter().any(is_let_through) {
        let none = Finding::new("results", "no call passed the policy, so no result was evaluated");
        let remedy = "use --settings to pass settings under which the policy lets at least one call pass";
        report.untried(none.remedy(remedy));
    }
    let others = Finding::new(
        "other calls",
        "the test calls used only the host's own tools; calls that run programs were not evaluated",
    );
    report.untried(
        others.remedy("write cases for these calls, and run the cases with `tollgate policies test`"),
    );
}

/// Returns whether an outcome means that the policy could not evaluate the call.
fn is_failed(outcome: &str) -> bool {
    outcome.strip_prefix(DENIED_PREFIX) == Some(POLICY_FAILED)
}

/// Configures the policy for every tool, with everything that it requests.
fn source(host: &ScratchHost, name: &str, grants: Grants, config: Map<String, Value>) -> Source {
    Source {
        name: name.to_owned(),
        origin: host.origin(),
        sha256: None,
        mode: Mode::Enforce,
        fail_open: false,
        phase: Phase::Both,
        tools: Vec::new(),
        order: 0,
        grants,
        limits: JudgingLimits::default(),
        config,
    }
}

/// Records the outcome of a call. Any verdict is fine, but there must be one.
fn judged(
    name: &str,
    is_made_up: bool,
    (tool, arguments): (&str, Map<String, Value>),
    (result, duration_ms): Ended,
    report: &mut Report,
) {
    let refusal = result.as_ref().err();
    report.calls.push(Called {
        tool: tool.to_owned(),
        arguments: Value::Object(arguments),
        address: None,
        outcome: refusal.map_or_else(
            || LET_THROUGH.to_owned(),
            |err| format!("{DENIED_PREFIX}{}", err.code),
        ),
        duration_ms,
    });
    let Some(err) = refusal else {
        return;
    };
    let says_so = err.context.get("cause") == Some(&json!(CANNOT_JUDGE));
    match err.code.as_str() {
        POLICY_FAILED if says_so && is_made_up => report.note(without_settings(name, &err.message)),
        POLICY_FAILED => report.problem(failed(name, tool, err)),
        _ if err.remediation.is_empty() => {
            let silent = format!(
                "the denial {} of {tool} does not say what the caller can do",
                err.code
            );
            report.problem(Finding::new(name, silent).remedy("give the denial a remediation"));
        }
        _ => {}
    }
}

fn failed(name: &str, tool: &str, err: &ToolError) -> Finding {
    let failed = Finding::new(
        name,
        format!("the policy did not evaluate {tool}: {}", err.message),
    );
    failed.remedy("`--log tollgate=debug` shows what happened")
}

fn without_settings(name: &str, problem: &str) -> Finding {
    let told = format!("the settings generated from the schema are not sufficient: {problem}");
    Finding::new(name, told).remedy("pass real settings with --settings")
}
