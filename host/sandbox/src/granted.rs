//! The parts of the ledger, of budgets and of clients that a component may use.

/// Granted use of ledger, artifacts, budgets and clients: the component asked for it, and the operator granted it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// True if past operations may be queried.
    pub ledger_query: bool,
    /// True if artifacts may be kept.
    pub artifacts: bool,
    /// Budgets it may reserve from, `*` being all.
    pub budgets: Vec<String>,
    /// True if clients' models may be asked.
    pub model: bool,
    /// True if clients may be asked for their folders.
    pub roots: bool,
    /// True if the declared costs of tools are believed.
    pub charges: bool,
}

impl Granted {
    /// True if the component may reserve from a budget.
    pub fn may_reserve(&self, name: &str) -> bool {
        self.budgets.iter().any(|grant| grant == name || grant == "*")
    }
}
