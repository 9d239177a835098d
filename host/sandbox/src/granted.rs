//! The parts of the ledger, of budgets and of clients that a component may use.

/// What a component may use of ledger, artifacts, budgets and clients: what it asks for and was granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// It may query past operations.
    pub ledger_query: bool,
    /// It may keep artifacts.
    pub artifacts: bool,
    /// Budgets it may reserve from, `*` being all.
    pub budgets: Vec<String>,
    /// It may ask clients' models.
    pub model: bool,
    /// It may ask clients for their folders.
    pub roots: bool,
    /// What its tools say that calls cost is believed.
    pub charges: bool,
}

impl Granted {
    /// Whether it may reserve from a budget.
    pub fn may_reserve(&self, name: &str) -> bool {
        self.budgets.iter().any(|grant| grant == name || grant == "*")
    }
}
