//! Host facts for the console: packs, policies and their problems.

use std::sync::Arc;

use tokio::sync::watch;
use tollgate_components::catalog::Catalog;
use tollgate_components::policies::{Member, Mode};
use tollgate_console::{
    ConsoleDependencies, ConsoleSettings, Finding, HostFacts, HostView, PackRow, PolicyRow, Reader, Severity,
};
use tollgate_gate::Gate;
use tollgate_store::consoles::Consoles;
use tollgate_store::liveness;
use tollgate_store::storage::OpenError;

use crate::config::Config;
use crate::doctor::{self, State};
use crate::host::HostContext;

mod answers;
mod packs;

/// Client name of the console. Names that begin with `tollgate` are reserved for the host.
const CLIENT_NAME: &str = "tollgate console";

/// Maximum number of a policy's tools that are named individually.
const MAX_NAMED_PATTERNS: usize = 3;

/// A running host.
struct Running {
    gate: Arc<Gate>,
    context: Arc<HostContext>,
    config: Config,
}

/// Dependencies of a console for a running host.
pub fn dependencies(
    gate: &Arc<Gate>,
    context: &Arc<HostContext>,
    config: &Config,
    settings: watch::Receiver<ConsoleSettings>,
) -> anyhow::Result<ConsoleDependencies> {
    let running = Running {
        gate: Arc::clone(gate),
        context: Arc::clone(context),
        config: config.clone(),
    };
    Ok(ConsoleDependencies {
        reader: Reader::new(context.database().clone(), context.artifacts()?),
        answering: Arc::new(answers::Through::new(gate, context)),
        packs: Arc::new(packs::Packs::new(gate)),
        host: Arc::new(running),
        consoles: Consoles::open(context.data())?,
        clock: context.clock(),
        settings,
    })
}

impl HostView for Running {
    fn facts(&self) -> HostFacts {
        let catalog = self.gate.catalog();
        let data = self.context.data();
        let workspaces = self.config.workspaces.iter();
        HostFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host_id: self.gate.host_id().to_owned(),
            data_dir: data.path().display().to_string(),
            configuration: self.config.place().map(|path| path.display().to_string()),
            database_bytes: data.bytes("tollgate.db") + data.bytes("tollgate.db-wal"),
            hosts: self.hosts(),
            workspaces: workspaces
                .map(|(name, workspace)| (name.clone(), workspace.path.display().to_string()))
                .collect(),
            packs: packs(&catalog),
            policies: catalog.policies().members().iter().map(policy).collect(),
            findings: self.findings(&catalog),
        }
    }

    fn check(&self) -> Vec<Finding> {
        let found = doctor::store(self.context.data(), self.context.database());
        found.into_iter().map(finding).collect()
    }
}

impl Running {
    /// Active hosts of the data directory, or of a server's database with their machines.
    fn hosts(&self) -> Vec<String> {
        let database = self.context.database();
        if !database.is_on_server() {
            return liveness::hosts_alive(self.context.data()).unwrap_or_default();
        }
        let members = database
            .read_session()
            .map_err(OpenError::into_cause)
            .and_then(|session| session.roster().all());
        let alive = members
            .unwrap_or_default()
            .into_iter()
            .filter(|member| member.is_alive);
        alive
            .map(|member| format!("{} on {}", member.id, member.machine))
            .collect()
    }

    /// Findings about a refused configuration, and about components with problems.
    fn findings(&self, catalog: &Catalog) -> Vec<Finding> {
        let found = doctor::components(catalog, &self.config, &[]);
        let worth = found.into_iter().filter(|finding| finding.state > State::Note);
        let refused = self.context.refused().map(|why| Finding {
            severity: Severity::Problem,
            about: "configuration".to_owned(),
            what: format!(
                "the changed file was not loaded, and the previous configuration stays in effect: {why}"
            ),
            remedy: Some("correct the file; `tollgate doctor` shows whether it loads".to_owned()),
        });
        refused.into_iter().chain(worth.map(finding)).collect()
    }
}

fn packs(catalog: &Catalog) -> Vec<PackRow> {
    let packs = catalog.packs().iter().map(|pack| PackRow {
        name: pack.manifest.name.clone(),
        version: pack.manifest.version.clone(),
        tools: pack.manifest.tools.len(),
        source: pack.origin.clone(),
        sha256: pack.hash.clone(),
        summary: pack.manifest.summary.clone(),
    });
    packs.collect()
}

fn policy(member: &Member) -> PolicyRow {
    let patterns = member.patterns.len();
    PolicyRow {
        name: member.name.clone(),
        order: member.order,
        mode: match member.mode {
            Mode::Enforce => "enforce".to_owned(),
            Mode::Audit => "audit".to_owned(),
        },
        fail_open: member.fail_open,
        judges: match patterns {
            0 => "everything".to_owned(),
            1..=MAX_NAMED_PATTERNS => member.patterns.join(", "),
            many => format!("{many} patterns"),
        },
        summary: match &member.policy {
            Ok(policy) => policy.manifest.summary.clone(),
            Err(_) => {
                "not loaded; until it loads, the calls that it evaluates are refused (with fail_open = true they pass)"
                    .to_owned()
            }
        },
        is_loaded: member.policy.is_ok(),
    }
}

fn finding(found: doctor::Finding) -> Finding {
    Finding {
        severity: match found.state {
            State::Ok => Severity::Ok,
            State::Note => Severity::Note,
            State::Warning => Severity::Warning,
            State::Problem => Severity::Problem,
        },
        about: found.about,
        what: found.what,
        remedy: found.remedy,
    }
}
