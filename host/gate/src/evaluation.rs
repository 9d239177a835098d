//! Input of policies that judge a call or its result.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tollgate_components::catalog::{Catalog, ToolEntry};
use tollgate_components::policies::Phase;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::memory::Memories;

use crate::batch::Member;

/// A call for policies to judge.
pub(super) struct Evaluation {
    pub(super) catalog: Arc<Catalog>,
    pub(super) tool: Arc<ToolEntry>,
    pub(super) arguments: Value,
    pub(super) members: Vec<Member>,
}

impl Evaluation {
    /// Input for judging a call, if a policy judges it or one of its members.
    pub(super) fn of(
        catalog: &Arc<Catalog>,
        tool: &Arc<ToolEntry>,
        arguments: Value,
        members: Vec<Member>,
    ) -> Option<Box<Evaluation>> {
        let chain = catalog.policies();
        let names = || std::iter::once(tool).chain(members.iter().map(|member| &member.tool));
        let is_judged = !chain.is_empty()
            && names().any(|tool| {
                let name = tool.spec.name.as_str();
                chain.judges(Phase::Request, name) || chain.judges(Phase::Response, name)
            });
        is_judged.then(|| {
            Box::new(Evaluation {
                catalog: Arc::clone(catalog),
                tool: Arc::clone(tool),
                arguments,
                members,
            })
        })
    }

    /// Catalog whose policies judge the call.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
}

/// Input for policies that judge results.
pub(super) struct Review {
    pub(super) catalog: Arc<Catalog>,
    /// The call, then its members.
    pub(super) requests: Vec<wit::Request>,
    pub(super) notes: Vec<wit::Note>,
    /// Memory of the policies from before the call.
    pub(super) memories: Memories,
    pub(super) started: Instant,
}

impl Review {
    pub(super) fn new(
        catalog: Arc<Catalog>,
        requests: Vec<wit::Request>,
        (notes, memories): (Vec<wit::Note>, Memories),
        started: Instant,
    ) -> Review {
        Review {
            catalog,
            requests,
            notes,
            memories,
            started,
        }
    }
}
