//! Findings about components: whether they load, their grants, and whether the programs that they may run exist.

use tollgate_components::catalog::Catalog;
use tollgate_components::packs::Pack;
use tollgate_components::policies::Member;
use tollgate_sandbox::process::Environment;
use tollgate_sandbox::workspaces::Registration;
use tollgate_sdk::GitAccess;

use super::Finding;
use crate::config::Config;

/// Checks each component and the grants in its table.
pub fn components(catalog: &Catalog, config: &Config, workspaces: &[Registration]) -> Vec<Finding> {
    let mut found = Vec::new();
    for pack in catalog.packs() {
        found.push(component(pack, config));
        found.extend(dangling(&pack.manifest.name, config, workspaces));
    }
    let changes = catalog.changes().iter();
    found.extend(changes.map(|change| {
        Finding::warning(format!("pack {}", change.pack), change.to_string()).remedy(format!(
            "check the pack with tollgate packs inspect, then run tollgate packs accept {}",
            change.pack
        ))
    }));
    let members = catalog.policies().members().iter();
    found.extend(members.flat_map(|member| policy(member, config)));
    let changes = catalog.policy_changes().iter();
    found.extend(changes.map(|change| {
        Finding::warning(format!("policy {}", change.policy), change.to_string()).remedy(format!(
            "check the policy with tollgate policies inspect, then run tollgate policies accept {}",
            change.policy
        ))
    }));
    for failure in catalog.failures() {
        let problems = failure.problems.iter();
        found.extend(
            problems.map(|problem| Finding::problem(format!("pack {}", failure.pack), problem.clone())),
        );
    }
    found
}

fn component(pack: &Pack, config: &Config) -> Finding {
    let about = format!("pack {}", pack.manifest.name);
    let hash = pack.hash.get(..12).unwrap_or_default();
    let tools = match pack.manifest.tools.len() {
        1 => "1 tool".to_owned(),
        many => format!("{many} tools"),
    };
    let what = format!(
        "{} with {tools}, {hash}, {}; {}",
        pack.manifest.version,
        pack.origin,
        reach(pack)
    );
    let settings = config.packs.get(&pack.manifest.name);
    let is_pinned = settings.is_some_and(|settings| settings.sha256.is_some());
    if pack.is_builtin() || is_pinned {
        return Finding::ok(about, what);
    }
    Finding::warning(about, format!("{what}; its hash is not pinned")).remedy(format!(
        "pin the hash in [packs.{}]: sha256 = \"{}\"",
        pack.manifest.name, pack.hash
    ))
}

fn policy(member: &Member, config: &Config) -> Vec<Finding> {
    let about = format!("policy {}", member.name);
    let policy = match &member.policy {
        Ok(policy) => policy,
        Err(unloaded) => {
            let problems = unloaded.problems.iter();
            return problems
                .map(|problem| Finding::problem(about.clone(), problem.clone()))
                .collect();
        }
    };
    let hash = policy.hash.get(..12).unwrap_or_default();
    let manifest = &policy.manifest;
    let what = format!(
        "{} {}, {hash}, {}",
        manifest.name, manifest.version, policy.origin
    );
    let settings = config.policies.get(&member.name);
    if policy.is_builtin() || settings.is_some_and(|settings| settings.sha256.is_some()) {
        return vec![Finding::ok(about, what)];
    }
    let finding = Finding::warning(about, format!("{what}; its hash is not pinned"));
    vec![finding.remedy(format!(
        "pin the hash in [policies.{}]: sha256 = \"{}\"",
        member.name, policy.hash
    ))]
}

/// Capabilities of a pack as text.
fn reach(pack: &Pack) -> String {
    let mut reach = Vec::new();
    for name in pack.access.names() {
        let Ok(workspace) = pack.access.workspace(&name) else {
            continue;
        };
        let info = &workspace.info;
        let mut may = vec!["reads".to_owned()];
        if !info.write_prefixes.is_empty() {
            may.push(format!("writes {}", info.write_prefixes.join(" ")));
        }
        match info.git {
            Some(GitAccess::Read) => may.push("git read".to_owned()),
            Some(GitAccess::Write) => may.push("git write".to_owned()),
            None => {}
        }
        if !info.tests.is_empty() {
            may.push("tests".to_owned());
        }
        reach.push(format!("workspace {name} ({})", may.join(", ")));
    }
    reach.extend(
        pack.access
            .programs()
            .iter()
            .map(|program| format!("runs {program}")),
    );
    if pack.granted.ledger_query {
        reach.push("queries the ledger".to_owned());
    }
    reach.extend(
        pack.granted
            .budgets
            .iter()
            .map(|budget| format!("budget {budget}")),
    );
    let parts = [("models", pack.granted.model), ("folders", pack.granted.roots)];
    let parts = parts.into_iter().filter(|(_, is_granted)| *is_granted);
    reach.extend(parts.map(|(part, _)| format!("clients' {part}")));
    if reach.is_empty() {
        return "granted nothing".to_owned();
    }
    format!("granted: {}", reach.join(", "))
}

/// Grants that refer to something missing.
fn dangling(name: &str, config: &Config, workspaces: &[Registration]) -> Vec<Finding> {
    let Some(settings) = config.packs.get(name) else {
        return Vec::new();
    };
    let is_there =
        |granted: &str| granted == "*" || workspaces.iter().any(|there| there.info.name == granted);
    let granted = settings.grants.workspaces.iter().flatten();
    let no_workspace = granted.filter(|granted| !is_there(granted)).map(|granted| {
        Finding::warning(
            format!("pack {name}"),
            format!("workspace `{granted}` is granted, but not registered"),
        )
        .remedy(format!(
            "register the workspace: [workspaces.{granted}] with a path, or --workspace {granted}=PATH"
        ))
    });
    let budgets = config.envelope.settings().budgets;
    let granted = settings.grants.budgets.iter().flatten();
    let no_budget = granted
        .filter(|granted| *granted != "*" && !budgets.contains_key(*granted))
        .map(|granted| {
            Finding::warning(
                format!("pack {name}"),
                format!("budget `{granted}` is granted, but not configured"),
            )
            .remedy(format!(
                "set how much each envelope gets: [envelope] budgets = {{ {granted} = 1 }}"
            ))
        });
    no_workspace.chain(no_budget).collect()
}

/// Checks for the programs that packs are granted, for git, and for the programs of test commands.
pub fn programs(config: &Config, workspaces: &[Registration], environment: &Environment) -> Vec<Finding> {
    let mut wanted: Vec<(String, String)> = Vec::new();
    for (name, settings) in &config.packs {
        let granted = settings.grants.process.iter().flatten();
        let programs = granted.filter(|program| !matches!(program.as_str(), "tests" | "*"));
        wanted.extend(programs.map(|program| (program.clone(), format!("[packs.{name}] grants it"))));
    }
    for workspace in workspaces {
        let name = &workspace.info.name;
        if workspace.info.git.is_some() {
            wanted.push(("git".to_owned(), format!("[workspaces.{name}] allows it")));
        }
        for test in &workspace.info.tests {
            let program = test.argv.first().cloned().unwrap_or_default();
            wanted.push((
                program,
                format!("[workspaces.{name}] tests.{} runs it", test.name),
            ));
        }
    }
    wanted.sort();
    wanted.dedup_by(|one, other| one.0 == other.0);
    let found = wanted
        .into_iter()
        .map(|(program, why)| match environment.find(&program) {
            Some(path) => Finding::ok(format!("program {program}"), path),
            None => Finding::warning(
                format!("program {program}"),
                format!("not on the PATH, although {why}"),
            )
            .remedy("install the program, or start hosts with a PATH that contains it"),
        });
    found.collect()
}
