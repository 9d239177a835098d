//! All SQL of the pack: one file per table, each with the record that its rows are read as.

pub(crate) mod approval;
pub(crate) mod artifact;
pub(crate) mod attempt;
pub(crate) mod event;
pub(crate) mod queue;
pub(crate) mod review;
pub(crate) mod standing;
pub(crate) mod task;

use tollgate_sdk::{ToValue, Value};

/// How many rows of each kind a snapshot of a task shows.
pub(crate) const SHOWN: u32 = 10;

/// The conditions of a query that depend on what was asked for.
struct Where {
    sql: String,
    params: Vec<Value>,
}

impl Where {
    /// Starts with a condition without parameters.
    fn new(condition: &str) -> Where {
        Where {
            sql: condition.to_owned(),
            params: Vec::new(),
        }
    }

    /// Adds a parameter and returns how the statement names it.
    fn param(&mut self, value: &impl ToValue) -> String {
        self.params.push(value.to_value());
        format!("?{}", self.params.len())
    }

    /// Adds `AND comparison ?n`.
    fn and(&mut self, comparison: &str, value: &impl ToValue) {
        let param = self.param(value);
        self.sql.push_str(&format!(" AND {comparison} {param}"));
    }

    /// Adds `AND comparison ?n` if there is a value.
    fn and_if(&mut self, comparison: &str, value: Option<&impl ToValue>) {
        if let Some(value) = value {
            self.and(comparison, value);
        }
    }
}
