//! Temporary host for one component, in a folder that is deleted afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tollgate_components::catalog::{Catalog, Selection};
use tollgate_components::loading::{Haste, Loader, Origin, Tables};
use tollgate_components::packs;
use tollgate_components::policies;
use tollgate_core::deadline::Cancel;
use tollgate_gate::core_tools;
use tollgate_gate::{Call, Caller, Gate, Generation, Reply};
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_sdk::ToolError;

use crate::config::Config;
use crate::host::{Authority, HostContext};

/// A data directory and a component.
pub(super) struct ScratchHost {
    context: HostContext,
    component: PathBuf,
}

/// Result of a call, and its milliseconds.
pub(super) type Ended = (Result<Reply, ToolError>, f64);

impl ScratchHost {
    /// Creates a scratch host in an empty folder. If programs are disabled, none is started, whatever the component is
    /// granted.
    pub(super) fn make(
        folder: &Path,
        bytes: &[u8],
        authority: Authority,
        programs: bool,
    ) -> anyhow::Result<ScratchHost> {
        let component = folder.join("component.wasm");
        #[allow(clippy::disallowed_methods, reason = "the folder was made for it")]
        std::fs::write(&component, bytes).with_context(|| format!("cannot write {}", component.display()))?;
        let authority = Authority {
            environment: authority.environment.filter(|_| programs),
            // The checked component gets its own database.
            server: None,
            ..authority
        };
        Ok(ScratchHost {
            context: HostContext::open(&data(folder), authority)?,
            component,
        })
    }

    pub(super) fn loader(&self) -> &Loader {
        self.context.loader()
    }

    /// Origin of the component.
    pub(super) fn origin(&self) -> Origin {
        Origin::File(self.component.clone())
    }

    /// Opens a gate with a pack behind it, or with the host's own tools and a policy in front of them. The catalog
    /// lists what did not load.
    pub(super) async fn gate(
        &self,
        pack: Option<packs::Source>,
        policy: Option<policies::Source>,
        workspaces: Workspaces,
    ) -> anyhow::Result<Gate> {
        let selection = Selection {
            core: policy.is_some(),
            ..Selection::default()
        };
        let (packs, policies) = (Vec::from_iter(pack), Vec::from_iter(policy));
        let loader = self.loader();
        let catalog = Catalog::load(
            loader,
            core_tools::TOOLS,
            &workspaces,
            packs,
            policies,
            &selection,
            (Tables::Migrate, Haste::Whole),
        )
        .await;
        let config = Config::default();
        let generation = Generation {
            catalog: Arc::new(catalog),
            envelopes: config.envelope.settings(),
            approvals: config.approvals.settings(&config.server.console),
            workspaces,
        };
        self.context.gate(&config, generation)
    }
}

/// Data directory in a folder.
pub(super) fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// Calls a tool or prompt as a client would, and cancels the call when the check's time is over. `None` if the name is
/// unknown.
pub(super) async fn call(
    gate: &Gate,
    name: &str,
    arguments: Map<String, Value>,
    cancel: &Cancel,
) -> Option<Ended> {
    let caller = Caller {
        client: Some("tollgate packs check".to_owned()),
        connection: gate.new_connection(),
        ..Caller::default()
    };
    let call = Call {
        cancel: cancel.clone(),
        ..Call::new(name, arguments, caller)
    };
    let outcome = match gate.catalog().find_prompt(name) {
        Some(_) => gate.prompt(call).await?,
        None => gate.call(call).await.ok()?,
    };
    Some((outcome.result, outcome.duration.as_secs_f64() * 1_000.0))
}
