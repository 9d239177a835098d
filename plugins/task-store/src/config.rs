//! The pack's `config` table, and which caller may claim which role under it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::retry::Policy;
use crate::role::Role;

/// The pack's configuration. Everything has a default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Roles that only certain callers may claim. A caller named here may claim no other role.
    pub roles: BTreeMap<Role, Binding>,
    /// How often a task is tried.
    pub retry: Policy,
}

/// Who may claim a role. One match is enough; without any entry nobody may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Binding {
    /// Names of MCP clients, which a client chooses itself: a safeguard against mistakes only.
    pub clients: Vec<String>,
    /// Identities that the transport proved.
    pub identities: Vec<String>,
}

impl Binding {
    fn matches(&self, client: Option<&str>, identity: Option<&str>) -> bool {
        let named =
            |names: &[String], name: Option<&str>| name.is_some_and(|name| names.iter().any(|n| n == name));
        named(&self.clients, client) || named(&self.identities, identity)
    }
}

/// Why a caller may not claim a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misclaim {
    /// The caller is bound to other roles.
    CallerBound(Vec<Role>),
    /// The role is bound to other callers.
    RoleBound(Binding),
}

impl Config {
    /// Checks a claimed role against the bindings.
    pub(crate) fn claim(
        &self,
        role: Role,
        client: Option<&str>,
        identity: Option<&str>,
    ) -> Result<(), Misclaim> {
        let own: Vec<Role> = self
            .roles
            .iter()
            .filter(|(_, binding)| binding.matches(client, identity))
            .map(|(&role, _)| role)
            .collect();
        if own.contains(&role) {
            Ok(())
        } else if !own.is_empty() {
            Err(Misclaim::CallerBound(own))
        } else {
            match self.roles.get(&role) {
                Some(binding) => Err(Misclaim::RoleBound(binding.clone())),
                None => Ok(()),
            }
        }
    }
}
