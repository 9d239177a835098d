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

/// Most rows of each kind in a snapshot of a task.
pub(crate) const MAX_SHOWN_ROWS: u32 = 10;

/// Optional conditions of a query.
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

    /// Adds a parameter and returns its placeholder.
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
