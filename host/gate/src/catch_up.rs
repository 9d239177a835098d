//! Files left unwritten by a host that was killed after a commit and before it wrote the files that belong to it.

use serde_json::{Map, Value};
use tollgate_components::catalog::ToolEntry;
use tollgate_components::packs::Pack;
use tollgate_core::effect::Effect;
use tollgate_store::liveness::Projection;

use super::{Call, Caller, Gate};

impl Gate {
    /// Has packs rewrite their files where dead hosts may have left them unwritten. Each rewrite is an ordinary call.
    /// Then compares work trees with the state that those hosts left.
    pub async fn catch_up(&self) {
        let taken = self.host.take_over(|left| self.renderer(left).is_some());
        let taken = taken.unwrap_or_else(|err| {
            tracing::warn!(%err, "cannot determine which files a stopped host had not yet written");
            Default::default()
        });
        for left in taken {
            if let Some(tool) = self.renderer(&left) {
                self.render(&tool, &left).await;
            }
        }
        self.reconcile().await;
    }

    /// Tool that rewrites a pack's files, if the pack and the workspace exist.
    fn renderer(&self, left: &Projection) -> Option<String> {
        let is_it = |pack: &&std::sync::Arc<Pack>| pack.manifest.name == left.pack;
        let catalog = self.catalog();
        let pack = catalog.packs().iter().find(is_it)?;
        let reach = pack.access.workspace(&left.workspace).ok()?;
        let tool = pack.manifest.render_tool.as_deref()?;
        // If it is excluded here, its name may belong to another pack's tool.
        let is_own = |found: &std::sync::Arc<ToolEntry>| {
            found.pack_name() == left.pack && found.spec.effect == Effect::Run
        };
        let is_there = !reach.info.write_prefixes.is_empty() && catalog.find(tool).is_some_and(is_own);
        is_there.then(|| tool.to_owned())
    }

    async fn render(&self, tool: &str, left: &Projection) {
        let workspace = Value::String(left.workspace.clone());
        let arguments = Map::from_iter([("workspace".to_owned(), workspace)]);
        let caller = Caller {
            client: Some("tollgate".to_owned()),
            connection: self.new_connection(),
            ..Caller::default()
        };
        let call = Call::new(tool, arguments, caller);
        let refusal = match self.call(call).await {
            Ok(outcome) => outcome.result.err().map(|err| err.to_string()),
            Err(unknown) => Some(unknown.to_string()),
        };
        let workspace = &left.workspace;
        match refusal {
            None => tracing::info!(
                workspace,
                tool,
                "rewrote files that a stopped host may have left stale"
            ),
            Some(why) => {
                self.host.keep_notes();
                tracing::warn!(
                    workspace,
                    tool,
                    why,
                    "rewriting files of a stopped host failed; they may be out of date"
                );
            }
        }
    }
}
