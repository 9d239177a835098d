//! Facts of a call that capabilities go by.

use std::sync::Arc;

use tollgate_store::liveness::Host;
use tollgate_store::storage::{AskedBy, Sighting};

use crate::counted_programs::CountPrograms;
use crate::granted::Granted;
use crate::judged::Judged;
use crate::memory::Memory;
use crate::sitting::Sitting;

/// Which call it is, and what its component may use of ledger and budgets. The default is a component
/// that describes itself.
#[derive(Clone, Default)]
pub struct Facts {
    /// The operation's id.
    pub op_id: String,
    /// The envelope around it.
    pub envelope_id: Option<String>,
    /// Granted capabilities of the component.
    pub granted: Arc<Granted>,
    /// This host process, which knows who else is alive.
    pub host: Option<Arc<Host>>,
    /// Connection of the call, if later calls come over it.
    pub connection: Option<String>,
    /// Identity of the caller, if the caller sees only its own operations.
    pub looks_at: Option<String>,
    /// True if a policy judges the call. Its answer is recorded as a verdict only.
    pub is_policy: bool,
    /// Earlier judgements on the request, if a policy judges a call before the call runs.
    pub sitting: Option<Sitting>,
    /// Memory of the policy that judges, if a policy judges a call.
    pub memory: Option<Memory>,
    /// The call that a policy judges.
    pub judged: Option<Judged>,
    /// Counts the programs that it starts.
    pub programs: Option<Arc<dyn CountPrograms>>,
    /// The work tree before the call, if it was seen.
    pub seen: Option<Arc<Sighting>>,
    /// The call as requests for approval name it.
    pub asked_by: AskedBy,
    /// Why the work tree was not seen before the call, if somebody looked.
    pub unseen: Option<String>,
}

impl Facts {
    /// This host process's id.
    pub fn host_id(&self) -> &str {
        self.host.as_ref().map_or("", |host| host.id())
    }
}

/// Relation of a call's statements to transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transactions {
    /// The whole call is one; the gate began it.
    WholeCall,
    /// The guest begins and commits; none is open now.
    None,
    /// The guest has one open.
    Open,
}
