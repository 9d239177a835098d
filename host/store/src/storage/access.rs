//! Namespaces: the tables that a component owns.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate_sql::postgres::{Finding, Translator, Untranslated};
use tollgate_sql::{Problems, Reader, Refusal, Statement};

use super::engine::steps::{self, MigrationStep};

/// Tables that a component owns: those whose names start with its prefix.
#[derive(Debug, Clone)]
pub struct Namespace {
    pack: Arc<str>,
    prefix: Arc<str>,
    /// Comment in front of every statement of the component, so that its cached statements are not shared.
    tag: Arc<str>,
    /// Reader of its statements. All users of the namespace share its cache.
    reader: Arc<Reader>,
    /// Append-only tables, in lower case.
    append_only: Arc<BTreeSet<String>>,
    /// Its migrations, for the engine that translates.
    steps: Arc<[MigrationStep]>,
    /// Translators of its statements, which all users of the namespace share.
    translators: Translators,
    bounds: Bounds,
}

/// Translators by the schema that contains a component's tables. One process has one or two.
type Translators = Arc<Mutex<Vec<(String, Arc<Translator>)>>>;

/// Limits on a component's tables and on the SQL that creates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes of the database.
    pub storage: u64,
    /// Memory limit of its migrations in bytes, in addition to what the SQL of every call may use.
    pub memory: u64,
}

impl Namespace {
    /// Namespace of a pack: `task-store` owns `task_store_…`.
    pub fn of_pack(pack: &str) -> Namespace {
        let prefix = format!("{}_", pack.replace('-', "_"));
        let tag = format!("/*{prefix}*/ ");
        Namespace {
            pack: pack.into(),
            reader: Arc::new(Reader::new(&prefix, BTreeSet::new(), &tag)),
            append_only: Arc::default(),
            tag: tag.into(),
            prefix: prefix.into(),
            steps: [].into(),
            translators: Arc::default(),
            bounds: Bounds {
                storage: 1 << 30,
                memory: 64 << 20,
            },
        }
    }

    /// The namespace with other limits than the defaults of a component.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> Namespace {
        Namespace { bounds, ..self }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The namespace with the tables of a component's migrations. The error lists all problems.
    pub fn with_tables(self, steps: &[MigrationStep]) -> Result<Namespace, Problems> {
        let append_only = steps::read(&self.prefix, steps)?.append_only().clone();
        Ok(Namespace {
            reader: Arc::new(Reader::new(&self.prefix, append_only.clone(), &self.tag)),
            append_only: Arc::new(append_only),
            steps: steps.into(),
            translators: Arc::default(),
            ..self
        })
    }

    /// The namespace at one point of its migrations.
    pub(super) fn while_append_only(&self, tables: &Arc<BTreeSet<String>>) -> Namespace {
        Namespace {
            append_only: Arc::clone(tables),
            ..self.clone()
        }
    }

    /// Parses a component's statement and prints it anew, after the component's comment.
    pub(super) fn read(&self, sql: &str) -> Result<Arc<Statement>, Refusal> {
        self.reader.statement(sql)
    }

    /// Translator of its statements for PostgreSQL, with its tables in a schema of this name.
    pub(super) fn translator(&self, schema: &str) -> Result<Arc<Translator>, Untranslated> {
        // Every pushed entry is complete, even after a panic.
        let mut known = self.translators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, translator)) = known.iter().find(|(of, _)| of == schema) {
            return Ok(Arc::clone(translator));
        }
        let steps: Vec<_> = self.steps.iter().map(MigrationStep::as_read).collect();
        let translator = Arc::new(Translator::new(&self.prefix, schema, &steps)?);
        known.push((schema.to_owned(), Arc::clone(&translator)));
        Ok(translator)
    }

    /// SQL of the component that differs on PostgreSQL: in its migrations, and in the statements that its calls have
    /// run so far.
    ///
    /// # Errors
    ///
    /// The problems of the migrations, if they cannot be read.
    pub fn differences(&self, steps: &[MigrationStep]) -> Result<Vec<Finding>, Problems> {
        let steps: Vec<_> = steps.iter().map(MigrationStep::as_read).collect();
        self.reader.differences(&steps)
    }

    /// Namespace of a policy: `rate-limit` owns `policy_rate_limit_…`, so that no policy can reach a pack's tables
    /// through its name.
    pub fn of_policy(policy: &str) -> Namespace {
        Namespace::of_pack(&format!("{}{policy}", Namespace::POLICIES))
    }

    /// Prefix of a policy's namespace, before the policy's name. Names of packs never start with it.
    pub const POLICIES: &str = "policy-";

    /// Name of the pack.
    pub fn pack(&self) -> &str {
        &self.pack
    }

    /// Prefix of the tables.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn owns(&self, table: &str) -> bool {
        // SQLite ignores the case of table names, so the comparison must as well.
        table
            .get(..self.prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(&self.prefix))
    }

    /// True if a new table, index or trigger may have this name. The prefix must match exactly, so that no comparison
    /// of names can take it for another component's.
    pub(super) fn names(&self, object: &str) -> bool {
        object.starts_with(&*self.prefix)
    }

    /// True if rows of a table may be updated and deleted. The reader refuses such statements. Changes that SQLite
    /// makes beyond a statement's text, such as those of foreign keys, are refused here.
    pub(super) fn may_change(&self, table: &str) -> bool {
        self.owns(table) && !self.append_only.contains(&table.to_ascii_lowercase())
    }
}

/// Prefix of the host's own tables, indexes and triggers.
pub(super) const CORE_PREFIX: &str = "core_";
