//! Error messages for problems of components.

use serde_json::{Map, Value};
use tollgate_store::storage::{Namespace, Problems};

/// An error with all its causes, as one problem.
pub fn one(err: impl std::error::Error) -> Vec<String> {
    vec![tollgate_core::text::chain(&err)]
}

/// Problems of a component's migrations, one message each.
pub fn migration_problems(read: &Result<Namespace, Problems>) -> Vec<String> {
    let problems = read
        .as_ref()
        .err()
        .map_or(&[][..], |Problems(problems)| problems.as_slice());
    let said = problems
        .iter()
        .map(|problem| format!("cannot run its migrations: {problem}"));
    said.collect()
}

/// Problems of a component's `config` table, checked against the component's own schema.
pub fn config_problems(table: &str, schema: Option<&Value>, config: &Map<String, Value>) -> Vec<String> {
    let Some(schema) = schema else {
        return if config.is_empty() {
            Vec::new()
        } else {
            vec![format!(
                "it does not accept a configuration; remove [{table}.config]"
            )]
        };
    };
    match jsonschema::validator_for(schema) {
        Err(err) => vec![format!("its config schema is not valid JSON Schema: {err}")],
        Ok(validator) => validator
            .iter_errors(&Value::Object(config.clone()))
            .map(|err| {
                let at = err.instance_path().to_string().replace('/', ".");
                format!("[{table}.config]{at}: {err}")
            })
            .collect(),
    }
}
