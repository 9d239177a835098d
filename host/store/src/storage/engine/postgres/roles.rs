//! Roles of components: a second line of defence behind the host's own SQL reader.
//!
//! Each component has a role that may use the component's schema and the functions of translated statements, and
//! nothing else. The role cannot log in. A session of the host takes the role for one statement and gives it back in
//! the same round trip.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tollgate_core::hash::hex;

use super::server::{OF_FUNCTIONS, ServerError};
use super::settings::{lock_key, quoted};
use super::{Postgres, Server};
use crate::storage::engine::steps::CORE_NAME;
use crate::storage::engine::{Sql, Text};
use crate::storage::error::{StoreError, StoreFailure, StoreResult};
use crate::storage::session::Session;

/// Use of roles for components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roles {
    /// Used if the role of the URL may create them.
    #[default]
    Auto,
    /// Nothing starts without them.
    Required,
    /// Not used.
    None,
}

/// Bytes of a role's name that are available for the schema's name.
const MAX_SUFFIX: usize = 45;
/// Comment on roles, for administrators who list them.
const ROLE_COMMENT: &str =
    "may use the tables of one component of Tollgate; a host takes it for statements of the component";

/// Query for a role by the suffix of its name, and for the session's rights on it.
const STATE_QUERY: &str = "
    SELECT n.name, r.oid IS NOT NULL,
        coalesce(r.rolcanlogin OR r.rolsuper OR r.rolinherit OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls
            OR EXISTS (SELECT 1 FROM pg_auth_members AS m WHERE m.member = r.oid), FALSE),
        coalesce(pg_has_role(r.oid, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END), FALSE),
        u.rolsuper OR u.rolcreaterole, current_setting('server_version_num')::int >= 160000
    FROM pg_database AS d
    CROSS JOIN LATERAL (SELECT 'tollgate_' || to_hex(d.oid::bigint) || '_' || CAST(?1 AS text) AS name) AS n
    JOIN pg_roles AS u ON u.rolname = current_user
    LEFT JOIN pg_roles AS r ON r.rolname = n.name
    WHERE d.datname = current_database()";

/// Query for rights that a role lacks, or has without need, on its schema and on functions, and for append-only
/// tables.
const RIGHTS_QUERY: &str = "
    WITH tables AS (
        SELECT n.nspname, c.relname, c.oid, EXISTS (
            SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgfoid = to_regprocedure('tollgate.append_only()')) AS stays
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = CAST(?2 AS text) AND c.relkind IN ('r', 'p'))
    SELECT EXISTS (
            SELECT 1 FROM pg_namespace AS n WHERE n.nspname = CAST(?2 AS text)
                AND (NOT has_schema_privilege(CAST(?1 AS name), n.oid, 'USAGE')
                    OR has_schema_privilege(CAST(?1 AS name), n.oid, 'CREATE')))
        OR EXISTS (
            SELECT 1 FROM tables WHERE NOT has_table_privilege(CAST(?1 AS name), oid, 'SELECT')
                OR NOT has_table_privilege(CAST(?1 AS name), oid, 'INSERT')
                OR has_table_privilege(CAST(?1 AS name), oid, 'UPDATE') = stays
                OR has_table_privilege(CAST(?1 AS name), oid, 'DELETE') = stays
                OR has_table_privilege(CAST(?1 AS name), oid, 'TRUNCATE, REFERENCES, TRIGGER')),
        NOT has_schema_privilege(CAST(?1 AS name), CAST(?3 AS text), 'USAGE') OR EXISTS (
            SELECT 1 FROM pg_proc AS p WHERE p.pronamespace = CAST(?3 AS text)::regnamespace
                AND NOT has_function_privilege(CAST(?1 AS name), p.oid, 'EXECUTE')),
        coalesce((SELECT string_agg(format('%I.%I', nspname, relname), ', ') FROM tables WHERE stays), '')";

/// Roles of one server's components, as far as this process has queried them, and the violations that they stopped.
#[derive(Default)]
pub(super) struct Wall {
    /// Role of each component. `None` for a component without a role.
    known: Mutex<HashMap<String, Option<Arc<str>>>>,
    is_told: AtomicBool,
    breaches: AtomicU64,
}

/// State of a role.
struct State {
    name: String,
    exists: bool,
    is_more: bool,
    may_take: bool,
    may_make: bool,
    /// True if a grant of a role can have options, as of version 16.
    has_options: bool,
}

impl State {
    /// Reason for which it cannot be used in its present form.
    fn fault(&self) -> Option<&'static str> {
        match (self.exists, self.is_more, self.may_take) {
            (false, ..) => Some("does not exist"),
            (true, true, _) => Some(
                "has LOGIN, INHERIT, another attribute or a membership in another role, which roles of components must \
                 not have",
            ),
            (true, false, false) => Some("is not granted to the role of the URL"),
            (true, false, true) => None,
        }
    }
}

impl Wall {
    /// Clears the cache of roles, because they may have changed.
    pub(super) fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Counts a statement that the host printed and the server refused for its content. The checker should have
    /// refused it.
    pub(super) fn breached(&self, failure: &super::Failure) {
        let times = self.breaches.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::error!(
            times,
            "the server refused a statement that the checker should have refused: {failure}"
        );
    }

    /// Number of such statements.
    #[cfg(test)]
    pub(super) fn breaches(&self) -> u64 {
        self.breaches.load(Ordering::Relaxed)
    }
}

impl Server {
    /// The server with another use of roles for components.
    #[must_use]
    pub fn with_roles(self, roles: Roles) -> Server {
        Server { roles, ..self }
    }

    /// Clears the cache of components' roles.
    pub(in crate::storage) fn forget_roles(&self) {
        self.wall.forget();
    }
}

/// Suffix of a role's name, after the name of the database.
fn suffix(schema: &str) -> String {
    match schema.len() {
        ..=MAX_SUFFIX => schema.to_owned(),
        // The server would truncate the name, so that two names could become equal.
        _ => hex(&Sha256::digest(schema))[..32].to_owned(),
    }
}

impl Postgres {
    /// Role for a component's statements. `None` if they run as the host's role.
    pub(super) fn role_of(&self, pack: &str) -> StoreResult<Option<Arc<str>>> {
        if self.server.roles == Roles::None {
            return Ok(None);
        }
        let known = || {
            self.server
                .wall
                .known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let found = known().get(pack).cloned();
        let role = match found {
            Some(role) => role,
            None => {
                let state = self.role_state(pack)?;
                let role = state.fault().is_none().then(|| Arc::from(state.name.as_str()));
                known().insert(pack.to_owned(), role.clone());
                role
            }
        };
        match (role, self.server.roles) {
            (None, Roles::Required) => Err(no_role(&self.role_state(pack)?).into()),
            (role, _) => Ok(role),
        }
    }

    fn role_state(&self, pack: &str) -> StoreResult<State> {
        let suffix = suffix(&self.server.schema_of(pack));
        let text = Text {
            sql: STATE_QUERY,
            is_kept: false,
        };
        let state = self.prepare(text)?.maybe(&[Sql::Text(&suffix)], |row| {
            Ok(State {
                name: row.get(0)?,
                exists: row.get(1)?,
                is_more: row.get(2)?,
                may_take: row.get(3)?,
                may_make: row.get(4)?,
                has_options: row.get(5)?,
            })
        })?;
        state.ok_or_else(StoreError::no_row)
    }

    fn rights_of(&self, role: &str, pack: &str) -> StoreResult<Rights> {
        let text = Text {
            sql: RIGHTS_QUERY,
            is_kept: false,
        };
        let schema = self.server.schema_of(pack);
        let values = [Sql::Text(role), Sql::Text(&schema), Sql::Text(OF_FUNCTIONS)];
        let rights = self.prepare(text)?.maybe(&values, |row| {
            Ok(Rights {
                in_schema: row.get(0)?,
                of_functions: row.get(1)?,
                append_only: row.get(2)?,
            })
        })?;
        rights.ok_or_else(StoreError::no_row)
    }

    /// True if the role of the URL may create roles.
    pub(in crate::storage) fn may_make_roles(&self) -> StoreResult<bool> {
        Ok(self.role_state(CORE_NAME)?.may_make)
    }

    /// Components with tables whose statements run as the host's role.
    pub(in crate::storage) fn without_roles(&self) -> StoreResult<Vec<String>> {
        let text = Text {
            sql: "SELECT DISTINCT pack FROM core_migrations WHERE pack <> 'core' ORDER BY pack",
            is_kept: false,
        };
        let packs: Vec<String> = self.prepare(text)?.all(&[], |row| row.get(0))?;
        if self.server.roles == Roles::None {
            return Ok(packs);
        }
        let mut without = Vec::new();
        for pack in packs {
            if self.role_state(&pack)?.fault().is_some() {
                without.push(pack);
            }
        }
        Ok(without)
    }
}

/// Rights to grant or revoke.
struct Rights {
    in_schema: bool,
    of_functions: bool,
    /// Append-only tables, quoted.
    append_only: String,
}

/// Creates a component's role, unless it exists, and grants it the rights that it lacks.
pub(super) fn make(session: &Session, postgres: &Postgres, pack: &str) -> StoreResult<()> {
    let server = &postgres.server;
    if server.roles == Roles::None || is_made(postgres, pack)? {
        return Ok(());
    }
    if server.roles == Roles::Required {
        return match make_one(postgres, pack)? {
            None => Ok(()),
            Some(err) => Err(err.into()),
        };
    }
    // A failed attempt must not abort the rest of the transaction.
    session.savepoint()?;
    let err: StoreError = match make_one(postgres, pack) {
        Ok(None) => return session.release(),
        Ok(Some(err)) => err.into(),
        Err(err) if err.failure() == StoreFailure::NotWritable => err,
        Err(err) => return Err(err),
    };
    session.undo()?;
    if !server.wall.is_told.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "components run as the role of the database's URL, so only the host's SQL checker isolates them: \
             {err}"
        );
    }
    Ok(())
}

fn is_made(postgres: &Postgres, pack: &str) -> StoreResult<bool> {
    let state = postgres.role_state(pack)?;
    if state.fault().is_some() {
        return Ok(false);
    }
    let rights = postgres.rights_of(&state.name, pack)?;
    Ok(!rights.in_schema && !rights.of_functions)
}

/// Creates a component's role and its rights, or returns why that is not allowed.
fn make_one(postgres: &Postgres, pack: &str) -> StoreResult<Option<ServerError>> {
    let state = postgres.role_state(pack)?;
    let role = quoted(&state.name);
    if !state.exists && state.may_make {
        postgres.script(&format!(
            "CREATE ROLE {role} NOLOGIN NOINHERIT; COMMENT ON ROLE {role} IS '{ROLE_COMMENT}'"
        ))?;
    } else if state.is_more || !state.exists {
        return Ok(Some(no_role(&state)));
    }
    let state = postgres.role_state(pack)?;
    if !state.may_take {
        if !state.may_make {
            return Ok(Some(no_role(&state)));
        }
        let options = if state.has_options {
            " WITH INHERIT FALSE, SET TRUE"
        } else {
            ""
        };
        postgres.script(&format!("GRANT {role} TO CURRENT_USER{options}"))?;
    }
    let rights = postgres.rights_of(&state.name, pack)?;
    if rights.in_schema {
        postgres.script(&grants(
            &role,
            &quoted(&postgres.server.schema_of(pack)),
            &rights.append_only,
        ))?;
    }
    if rights.of_functions {
        // Hosts with other schemas grant the same rights to their roles, and concurrent grants would conflict.
        postgres.script(&format!(
            "SELECT pg_advisory_xact_lock({});
             GRANT USAGE ON SCHEMA {OF_FUNCTIONS} TO {role}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {OF_FUNCTIONS} TO {role}",
            lock_key(OF_FUNCTIONS, "functions")
        ))?;
    }
    Ok(None)
}

/// Statements that grant a role its rights in its schema, and revoke all others there.
fn grants(role: &str, schema: &str, append_only: &str) -> String {
    let mut grants = format!(
        "REVOKE ALL ON SCHEMA {schema} FROM {role}; GRANT USAGE ON SCHEMA {schema} TO {role};
         REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
    );
    if !append_only.is_empty() {
        grants.push_str(&format!("; REVOKE UPDATE, DELETE ON {append_only} FROM {role}"));
    }
    grants
}

fn no_role(state: &State) -> ServerError {
    ServerError::NoRole {
        role: state.name.clone(),
        why: state.fault().unwrap_or("cannot be used"),
        remedy: match (state.exists, state.is_more) {
            (false, _) if state.may_make => "start a host, which creates it",
            (false, _) => "give the role of the URL CREATEROLE, and start a host again",
            (true, true) => "revoke that, or drop the role and start a host again",
            (true, false) => "grant it to that role",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_schemas_have_one_role() {
        let long = ["x".repeat(60), format!("{}y", "x".repeat(59))].map(|name| suffix(&name));
        assert!(long[0] != long[1] && long.iter().all(|name| name.len() <= MAX_SUFFIX));
        assert_eq!(suffix("tollgate_host/task-store"), "tollgate_host/task-store");
        assert!("tollgate_ffffffff_".len() + MAX_SUFFIX <= tollgate_sql::MAX_NAME);
    }
}
