//! Files that another host left unwritten: it was killed after a commit, before the files that follow it.

use serde_json::{Map, Value};
use tollgate_components::catalog::ToolEntry;
use tollgate_components::packs::Pack;
use tollgate_core::deadline::Cancel;
use tollgate_core::effect::Effect;
use tollgate_sandbox::progress::Progress;
use tollgate_store::liveness::Projection;

use super::{Call, Caller, Gate, Tasking};

impl Gate {
    /// Has packs write their files anew where hosts that are gone may not have written them. Each is a call
    /// like every other. Then compares work trees with what those hosts left.
    pub async fn catch_up(&self) {
        let taken = self.host.take_over(|left| self.renderer(left).is_some());
        let taken = taken.unwrap_or_else(|err| {
            tracing::warn!(%err, "what hosts that are gone left unwritten is not known");
            Default::default()
        });
        for left in taken {
            if let Some(tool) = self.renderer(&left) {
                self.render(&tool, &left).await;
            }
        }
        self.reconcile().await;
    }

    /// The tool that writes a pack's files anew, if pack and workspace are there.
    fn renderer(&self, left: &Projection) -> Option<String> {
        let is_it = |pack: &&std::sync::Arc<Pack>| pack.manifest.name == left.pack;
        let catalog = self.catalog();
        let pack = catalog.packs().iter().find(is_it)?;
        let reach = pack.access.workspace(&left.workspace).ok()?;
        let tool = pack.manifest.render_tool.as_deref()?;
        // Excluded here, its name may be that of another pack's tool.
        let is_own = |found: &std::sync::Arc<ToolEntry>| {
            found.pack_name() == left.pack && found.spec.effect == Effect::Run
        };
        let is_there = !reach.info.write_prefixes.is_empty() && catalog.find(tool).is_some_and(is_own);
        is_there.then(|| tool.to_owned())
    }

    async fn render(&self, tool: &str, left: &Projection) {
        let workspace = Value::String(left.workspace.clone());
        let call = Call {
            tool: tool.to_owned(),
            arguments: Map::from_iter([("workspace".to_owned(), workspace)]),
            malformed: Vec::new(),
            envelope: None,
            caller: Caller {
                client: Some("tollgate".to_owned()),
                connection: self.new_connection(),
                ..Caller::default()
            },
            cancel: Cancel::default(),
            progress: Progress::default(),
            answers: Default::default(),
            task: Tasking::default(),
        };
        let refusal = match self.call(call).await {
            Ok(outcome) => outcome.result.err().map(|err| err.to_string()),
            Err(unknown) => Some(unknown.to_string()),
        };
        let workspace = &left.workspace;
        match refusal {
            None => tracing::info!(
                workspace,
                tool,
                "wrote files anew that a host which is gone may have left"
            ),
            Some(why) => {
                self.host.keep_notes();
                tracing::warn!(workspace, tool, why, "files may be stale");
            }
        }
    }
}
