//! The pack's `config` table, and the check of roles against it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::retry::Policy;
use crate::role::Role;

/// The pack's configuration. Every key has a default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Roles that only the listed callers may claim. A listed caller may not claim any other role.
    pub roles: BTreeMap<Role, Binding>,
    /// Retry policy: attempts, escalation and backoff.
    pub retry: Policy,
}

/// Callers that may claim a role. One match is enough. An empty binding allows nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Binding {
    /// Names of MCP clients. A client can claim any name, except names that begin with `tollgate`.
    pub clients: Vec<String>,
    /// Identities that the transport has authenticated.
    pub identities: Vec<String>,
}

impl Binding {
    fn matches(&self, client: Option<&str>, identity: Option<&str>) -> bool {
        let named =
            |names: &[String], name: Option<&str>| name.is_some_and(|name| names.iter().any(|n| n == name));
        named(&self.clients, client) || named(&self.identities, identity)
    }
}

/// Reason why a caller may not claim a role.
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_claim_of_every_caller() {
        let config: Config = serde_json::from_str(
            r#"{"roles": {
                "human": {"identities": ["ada", "grace"]},
                "gateway": {"clients": ["relay"], "identities": ["ada"]},
                "executor": {}
            }}"#,
        )
        .unwrap();
        let callers = [
            (None, None),
            (Some("relay"), None),
            (Some("relay"), Some("grace")),
            (None, Some("ada")),
            (Some("ada"), None),
        ];
        let mut table = String::new();
        for (client, identity) in callers {
            let claimable: Vec<_> = Role::ALL
                .iter()
                .filter(|&&role| config.claim(role, client, identity).is_ok())
                .map(|role| role.as_str())
                .collect();
            table += &format!(
                "client {client:?}, identity {identity:?}: {}\n",
                claimable.join(" ")
            );
        }
        expect![[r#"
            client None, identity None: orchestrator spec_reviewer quality_reviewer
            client Some("relay"), identity None: gateway
            client Some("relay"), identity Some("grace"): gateway human
            client None, identity Some("ada"): gateway human
            client Some("ada"), identity None: orchestrator spec_reviewer quality_reviewer
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        for config in [
            r#"{"role": {}}"#,
            r#"{"roles": {"humans": {}}}"#,
            r#"{"roles": {"human": {"client": "x"}}}"#,
            r#"{"retry": {"backoff": 1}}"#,
        ] {
            assert!(serde_json::from_str::<Config>(config).is_err(), "{config}");
        }
    }
}
