//! Validated manifest of a policy.

use serde_json::Value;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::tollgate::host::component::Want;
use tollgate_store::storage::MigrationStep;

use super::member::Phase;
use crate::grants::wants;
use crate::names::is_component_name;
use crate::tools::wording::line;

/// A policy's manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name of the policy.
    pub name: String,
    /// Version of the policy.
    pub version: String,
    /// Summary in one line.
    pub summary: String,
    /// Phases that the policy judges.
    pub phase: Phase,
    /// Requests beyond the policy's own tables.
    pub wants: Vec<Want>,
    /// Migrations of its tables.
    pub migrations: Vec<MigrationStep>,
    /// JSON Schema of its `config` table.
    pub config_schema: Option<Value>,
}

impl Manifest {
    /// Validates a policy's manifest. The error lists all problems.
    pub(super) fn check(said: wit::Manifest) -> Result<Manifest, Vec<String>> {
        let mut problems = Vec::new();
        if !is_component_name(&said.name) {
            problems.push(format!(
                "the policy's name {:?} does not match ^[a-z][a-z0-9-]{{0,31}}$",
                tollgate_core::text::cut(&said.name, 64)
            ));
        }
        problems.extend(said.wants.iter().filter_map(refused).map(str::to_owned));
        problems.extend(wants::problems(&said.wants));
        let config_schema = match said.config_schema.as_deref().map(serde_json::from_str) {
            Some(Err(err)) => {
                problems.push(format!("its config schema is not JSON: {err}"));
                None
            }
            Some(Ok(schema)) => Some(schema),
            None => None,
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let steps = said.migrations.into_iter().map(|step| MigrationStep {
            name: line(&step.name),
            sql: step.sql,
        });
        Ok(Manifest {
            version: line(&said.version),
            summary: line(&said.summary),
            phase: match said.phase {
                wit::Phase::Request => Phase::Request,
                wit::Phase::Response => Phase::Response,
                wit::Phase::Both => Phase::Both,
            },
            migrations: steps.collect(),
            name: said.name,
            wants: said.wants,
            config_schema,
        })
    }
}

/// Reason for which no policy may request a capability, if there is one.
fn refused(want: &Want) -> Option<&'static str> {
    match want {
        Want::WorkspaceRead(_) | Want::LedgerQuery | Want::Budget(_) => None,
        Want::WorkspaceWrite(_) => Some("it requests to write files, which no policy may do"),
        Want::Process(_) | Want::Tests | Want::Git(_) => {
            Some("it requests to run programs, which no policy may do")
        }
        Want::Artifacts => Some("it requests to keep artifacts, which no policy may do"),
        Want::Client(_) => Some("it requests to ask clients by itself, which no policy may do"),
    }
}
