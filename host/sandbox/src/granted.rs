//! Granted use of the ledger, budgets and clients by a component.

/// Granted use of ledger, artifacts, budgets and clients: requested by the component and granted by the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// True if past operations may be queried.
    pub ledger_query: bool,
    /// True if artifacts may be kept.
    pub artifacts: bool,
    /// Budgets it may reserve from, `*` for all.
    pub budgets: Vec<String>,
    /// True if the models of clients may be asked.
    pub model: bool,
    /// True if clients may be asked for their folders.
    pub roots: bool,
    /// True if the costs that its tools declare are trusted.
    pub charges: bool,
}

impl Granted {
    /// True if the component may reserve from a budget.
    pub fn may_reserve(&self, name: &str) -> bool {
        self.budgets.iter().any(|grant| grant == name || grant == "*")
    }
}
