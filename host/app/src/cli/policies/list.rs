//! `tollgate policies list`

use std::process::ExitCode;

use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate::host::PackSelection;
use tollgate_components::builtin;
use tollgate_components::catalog::Catalog;
use tollgate_components::policies::{Member, Mode, Phase};

use crate::cli::{self, Global, out};

/// Maximum number of tools named on a line of the table.
const MAX_NAMED_TOOLS: usize = 4;

/// Exit code 1 if a policy did not load.
pub(super) async fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let config = Config::load(global.config.as_deref())?;
    let gate = cli::open_quietly(global, &config, &PackSelection::default()).await?;
    let catalog = &gate.catalog();
    let members = catalog.policies().members();
    if global.json {
        let policies: Vec<Value> = members.iter().map(|member| as_json(member, catalog)).collect();
        out::print_json(&json!({ "policies": policies, "changes": catalog.policy_changes() }));
    } else {
        let rows: Vec<Vec<String>> = members.iter().map(|member| row(member, catalog)).collect();
        if rows.is_empty() {
            let all: Vec<&str> = builtin::policies().collect();
            out::print(&format!(
                "no policy is configured; {} are built in ({}). To add one, run tollgate policies add {}",
                all.len(),
                all.join(", "),
                all.last().unwrap_or(&"NAME")
            ));
            return Ok(ExitCode::SUCCESS);
        }
        out::print(&out::table(
            &[
                "POLICY",
                "ORDER",
                "MODE",
                "PHASE",
                "EVALUATES",
                "SOURCE",
                "SHA-256",
                "SUMMARY",
            ],
            &rows,
        ));
        for unloaded in catalog.policies().failures() {
            out::warn(&unloaded.to_string());
        }
        for change in catalog.policy_changes() {
            out::warn(&format!(
                "{change}; run `tollgate policies accept {}` if the change is intended",
                change.policy
            ));
        }
    }
    let is_whole = catalog.policies().failures().next().is_none();
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tools and prompts that a policy evaluates, by name.
fn judged<'a>(member: &Member, catalog: &'a Catalog) -> Vec<&'a str> {
    let all = catalog.all().chain(catalog.prompts());
    let names = all.map(|tool| tool.spec.name.as_str());
    names.filter(|name| member.judges(name)).collect()
}

fn row(member: &Member, catalog: &Catalog) -> Vec<String> {
    let judged = judged(member, catalog);
    let judges = match (member.tools.is_none(), judged.len()) {
        (true, _) => "everything".to_owned(),
        (false, 0) => "no existing tool".to_owned(),
        (false, 1..=MAX_NAMED_TOOLS) => judged.join(", "),
        (false, many) => format!("{} ({many} tools)", member.patterns.join(", ")),
    };
    let (source, hash, summary) = match &member.policy {
        Ok(policy) => (
            policy.origin.clone(),
            policy.hash[..12].to_owned(),
            policy.manifest.summary.clone(),
        ),
        Err(unloaded) => (unloaded.origin.clone(), String::new(), "not loaded".to_owned()),
    };
    let mode = match (mode(member.mode), member.fail_open) {
        (mode, false) => mode.to_owned(),
        (mode, true) => format!("{mode}, fails open"),
    };
    vec![
        member.name.clone(),
        member.order.to_string(),
        mode,
        phase(member.phase).to_owned(),
        judges,
        source,
        hash,
        summary,
    ]
}

fn as_json(member: &Member, catalog: &Catalog) -> Value {
    let mut told = json!({
        "name": member.name,
        "order": member.order,
        "mode": mode(member.mode),
        "fail_open": member.fail_open,
        "phase": phase(member.phase),
        "tools": member.patterns,
        "judges": judged(member, catalog),
        "loaded": member.policy.is_ok(),
    });
    let more = match &member.policy {
        Ok(policy) => json!({
            "policy": policy.manifest.name,
            "version": policy.manifest.version,
            "summary": policy.manifest.summary,
            "source": policy.origin,
            "sha256": policy.hash,
            "bytes": policy.size,
        }),
        Err(unloaded) => json!({ "source": unloaded.origin, "problems": unloaded.problems }),
    };
    if let (Value::Object(told), Value::Object(more)) = (&mut told, more) {
        told.extend(more);
    }
    told
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Audit => "audit",
    }
}

pub(super) const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Request => "request",
        Phase::Response => "response",
        Phase::Both => "both",
    }
}
