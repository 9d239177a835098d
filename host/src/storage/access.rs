//! Which SQL a component may prepare: a pure decision that SQLite's authorizer asks for.

use std::sync::Arc;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The tables a component owns: those that start with its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    pack: Arc<str>,
    prefix: Arc<str>,
    /// Leads every statement of the component, so that its cached statements are its own.
    tag: Arc<str>,
    bounds: Bounds,
}

/// What a component's tables and the SQL that makes them may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the database.
    pub storage: u64,
    /// Bytes of memory of its migrations, beside what SQL may take in every call.
    pub memory: u64,
}

impl Namespace {
    /// The namespace of a pack: `task-store` owns `task_store_…`.
    pub fn of_pack(pack: &str) -> Namespace {
        let prefix = format!("{}_", pack.replace('-', "_"));
        Namespace {
            pack: pack.into(),
            tag: format!("/*{prefix}*/ ").into(),
            prefix: prefix.into(),
            bounds: Bounds {
                storage: 1 << 30,
                memory: 64 << 20,
            },
        }
    }

    /// The same with other bounds than those of [`Limits`](crate::sandbox::Limits) by default.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> Namespace {
        Namespace { bounds, ..self }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The namespace of a policy: `rate-limit` owns `policy_rate_limit_…`, so that no policy gets at a pack's
    /// tables by its name.
    pub fn of_policy(policy: &str) -> Namespace {
        Namespace::of_pack(&format!("{}{policy}", Namespace::POLICIES))
    }

    /// What a policy's namespace is called by, before the policy's name. No pack's name starts like that.
    pub const POLICIES: &str = "policy-";

    /// The pack's name.
    pub fn pack(&self) -> &str {
        &self.pack
    }

    /// What its tables start with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The comment that leads its statements.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    pub(super) fn owns(&self, table: &str) -> bool {
        // SQLite folds the case of table names, so the comparison must as well.
        table
            .get(..self.prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(&self.prefix))
    }

    /// Whether a new table, index or trigger may have this name. Its prefix is written exactly as it is, so that
    /// nothing that compares names can take it for somebody else's.
    pub(super) fn names(&self, object: &str) -> bool {
        object.starts_with(&*self.prefix)
    }
}

/// What names of the host's own tables, indexes and triggers start with.
pub(super) const CORE_PREFIX: &str = "core_";

/// Whose statement is being prepared.
#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// The host's own.
    Host,
    /// A component's, during a call.
    Component(Namespace),
    /// A component's migration.
    Migration(Namespace),
}

/// Functions that SQLite and PostgreSQL share and that neither read state nor allocate freely.
const FUNCTIONS: &[&str] = &[
    "abs",
    "avg",
    "coalesce",
    "count",
    "dense_rank",
    "first_value",
    "ifnull",
    "iif",
    "instr",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "lower",
    "ltrim",
    "max",
    "min",
    "nth_value",
    "ntile",
    "nullif",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "total",
    "trim",
    "upper",
];

/// Allows or denies one action of one statement.
pub(super) fn decide(mode: &Mode, context: &AuthContext<'_>) -> Authorization {
    let allowed = match (mode, &context.action) {
        (Mode::Host, action) => host_may(context.accessor, action),
        // Dropping a column gives its name where other actions give the database's. What a table is renamed to
        // is not told: the names are compared after the migration.
        (
            Mode::Migration(namespace),
            AuthAction::AlterTable {
                database_name,
                table_name,
            },
        ) => *database_name == "main" && namespace.owns(table_name),
        (Mode::Migration(_), action) if context.database_name == Some("temp") => renames_in_temp(action),
        _ if context.database_name.is_some_and(|name| name != "main") => false,
        (Mode::Component(namespace), action) => component_may(namespace, action),
        (Mode::Migration(namespace), action) => migration_may(namespace, action),
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

/// A statement of the host's own has the host's rights, and so would whatever it sets off. SQLite names the
/// trigger or view that an action comes from. What a foreign key sets off has no name, so rows are changed in the
/// host's own tables only.
fn host_may(accessor: Option<&str>, action: &AuthAction<'_>) -> bool {
    if accessor.is_some_and(|name| !name.starts_with(CORE_PREFIX)) {
        return false;
    }
    match action {
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => {
            // The host's migrations write the schema, whose name no table can have.
            table_name.starts_with(CORE_PREFIX) || table_name.starts_with("sqlite_")
        }
        _ => true,
    }
}

fn component_may(namespace: &Namespace, action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. }
        | AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => namespace.owns(table_name),
        AuthAction::Function { function_name } => FUNCTIONS
            .iter()
            .any(|name| name.eq_ignore_ascii_case(function_name)),
        _ => false,
    }
}

fn migration_may(namespace: &Namespace, action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::CreateTable { table_name } => namespace.names(table_name),
        AuthAction::DropTable { table_name } => namespace.owns(table_name),
        AuthAction::CreateIndex {
            index_name,
            table_name,
        } => {
            // Indexes of PRIMARY KEY and UNIQUE are named by SQLite itself.
            namespace.owns(table_name)
                && (namespace.names(index_name) || index_name.starts_with("sqlite_autoindex_"))
        }
        AuthAction::DropIndex {
            index_name,
            table_name,
        } => {
            namespace.owns(table_name)
                && (namespace.owns(index_name) || index_name.starts_with("sqlite_autoindex_"))
        }
        AuthAction::CreateTrigger {
            trigger_name,
            table_name,
        } => namespace.owns(table_name) && namespace.names(trigger_name),
        AuthAction::DropTrigger {
            trigger_name,
            table_name,
        } => namespace.owns(table_name) && namespace.owns(trigger_name),
        AuthAction::Reindex { index_name } => {
            let of_key = index_name.strip_prefix("sqlite_autoindex_");
            namespace.owns(of_key.unwrap_or(index_name))
        }
        // A new column of a strict table has SQLite itself look through the rows that are there. It tells no
        // more than that they are sound.
        AuthAction::Read { table_name, .. } if *table_name == "pragma_quick_check" => true,
        AuthAction::Pragma {
            pragma_name,
            pragma_value: Some(table),
        } => *pragma_name == "quick_check" && namespace.owns(table),
        // DDL reads and writes the schema table. Defensive mode keeps a migration from doing so itself.
        AuthAction::Read { table_name, .. }
        | AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => namespace.owns(table_name) || *table_name == "sqlite_master",
        // ALTER TABLE runs functions of SQLite's own.
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        AuthAction::Select => true,
        _ => false,
    }
}

/// Renaming looks for what is temporary and has the old name in it. Nothing is: no component makes temporary
/// things, and no statement of its own may write to a schema.
fn renames_in_temp(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Read { table_name, .. } | AuthAction::Update { table_name, .. } => {
            *table_name == "sqlite_temp_master"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(action: AuthAction<'_>) -> bool {
        component_may(&Namespace::of_pack("task-store"), &action)
    }

    #[test]
    fn a_component_reaches_its_own_tables_in_any_case() {
        assert!(may(AuthAction::Read {
            table_name: "task_store_tasks",
            column_name: "id"
        }));
        assert!(may(AuthAction::Insert {
            table_name: "TASK_STORE_tasks"
        }));
    }

    #[test]
    fn a_component_reaches_nothing_else() {
        for table_name in [
            "core_operations",
            "task_stores",
            "sqlite_master",
            "task_store",
            "tåsk_store_x",
            "",
        ] {
            assert!(
                !may(AuthAction::Read {
                    table_name,
                    column_name: ""
                }),
                "{table_name}"
            );
            assert!(
                !may(AuthAction::Update {
                    table_name,
                    column_name: "a"
                }),
                "{table_name}"
            );
        }
    }

    #[test]
    fn a_component_may_not_change_schema_or_engine() {
        assert!(!may(AuthAction::CreateTable {
            table_name: "task_store_more"
        }));
        assert!(!may(AuthAction::Attach { filename: "x" }));
        assert!(!may(AuthAction::Pragma {
            pragma_name: "user_version",
            pragma_value: None
        }));
        assert!(!may(AuthAction::Function {
            function_name: "load_extension"
        }));
        assert!(!may(AuthAction::Function {
            function_name: "randomblob"
        }));
    }
}
