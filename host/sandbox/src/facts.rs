//! Facts about a call that capabilities depend on.

use std::sync::Arc;

use tollgate_store::liveness::Host;
use tollgate_store::storage::{AskedBy, Sighting};

use crate::counted_programs::CountPrograms;
use crate::granted::Granted;
use crate::judged::JudgedCall;
use crate::memory::Memory;
use crate::sitting::Sitting;

/// Facts about a call, and what its component may use of ledger and budgets. The default is for a component that
/// describes itself.
#[derive(Clone, Default)]
pub struct Facts {
    /// Id of the operation.
    pub op_id: String,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// Capabilities that the component was granted.
    pub granted: Arc<Granted>,
    /// This host process, which knows the live hosts.
    pub host: Option<Arc<Host>>,
    /// Connection of the call, if it lasts beyond the call.
    pub connection: Option<String>,
    /// Identity of a caller that sees only its own operations.
    pub looks_at: Option<String>,
    /// True if the component is a policy that judges the call. Its answer is recorded only as a verdict.
    pub is_policy: bool,
    /// Earlier judgements on the request, if a policy judges a call before the call runs.
    pub sitting: Option<Sitting>,
    /// Memory of the policy that judges, if a policy judges a call.
    pub memory: Option<Memory>,
    /// The call that a policy judges.
    pub judged: Option<JudgedCall>,
    /// Counts the programs that the call starts.
    pub programs: Option<Arc<dyn CountPrograms>>,
    /// Work tree before the call, if it was scanned.
    pub seen: Option<Arc<Sighting>>,
    /// The call as requests for approval name it.
    pub asked_by: AskedBy,
    /// Reason for which the scan of the work tree before the call failed.
    pub unseen: Option<String>,
}

impl Facts {
    /// Id of this host process.
    pub fn host_id(&self) -> &str {
        self.host.as_ref().map_or("", |host| host.id())
    }
}

/// Transactions around a call's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transactions {
    /// One transaction for the whole call, which the gate began.
    WholeCall,
    /// The guest begins and commits transactions. None is open now.
    None,
    /// The guest has an open transaction.
    Open,
}
