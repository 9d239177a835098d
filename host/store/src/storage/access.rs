//! Namespaces: the tables that a component owns.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate_sql::postgres::{Finding, Translator, Untranslated};
use tollgate_sql::{Problems, Reader, Refusal, Statement};

use super::migrate::{self, Step};

/// The tables a component owns: those that start with its prefix.
#[derive(Debug, Clone)]
pub struct Namespace {
    pack: Arc<str>,
    prefix: Arc<str>,
    /// Leads every statement of the component, so that its cached statements are its own.
    tag: Arc<str>,
    /// Reads its statements. All that share the namespace share what was read.
    reader: Arc<Reader>,
    /// Tables whose rows are neither updated nor deleted, in lower case.
    append_only: Arc<BTreeSet<String>>,
    /// Its migrations, for the engine that translates.
    steps: Arc<[Step]>,
    /// Translators of its statements. All that share the namespace share them.
    translators: Translators,
    bounds: Bounds,
}

/// Translators by the schema where a component's tables are. One process has one or two.
type Translators = Arc<Mutex<Vec<(String, Arc<Translator>)>>>;

/// Bounds of a component's tables and of the SQL that makes them.
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

    /// The same namespace with other bounds than the defaults of a component.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> Namespace {
        Namespace { bounds, ..self }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The same, with what a component's migrations say of its tables. All that is wrong with them is told.
    pub fn with_tables(self, steps: &[Step]) -> Result<Namespace, Problems> {
        let append_only = migrate::read(&self.prefix, steps)?.append_only().clone();
        Ok(Namespace {
            reader: Arc::new(Reader::new(&self.prefix, append_only.clone(), &self.tag)),
            append_only: Arc::new(append_only),
            steps: steps.into(),
            translators: Arc::default(),
            ..self
        })
    }

    /// The same at one point of its migrations.
    pub(super) fn while_append_only(&self, tables: &Arc<BTreeSet<String>>) -> Namespace {
        Namespace {
            append_only: Arc::clone(tables),
            ..self.clone()
        }
    }

    /// A component's statement, read and printed anew behind the comment that leads its statements.
    pub(super) fn read(&self, sql: &str) -> Result<Arc<Statement>, Refusal> {
        self.reader.statement(sql)
    }

    /// Translator of its statements for PostgreSQL, with its tables in a schema of this name.
    pub(super) fn translator(&self, schema: &str) -> Result<Arc<Translator>, Untranslated> {
        // Whatever was pushed is whole.
        let mut known = self.translators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, translator)) = known.iter().find(|(of, _)| of == schema) {
            return Ok(Arc::clone(translator));
        }
        let steps: Vec<_> = self.steps.iter().map(Step::as_read).collect();
        let translator = Arc::new(Translator::new(&self.prefix, schema, &steps)?);
        known.push((schema.to_owned(), Arc::clone(&translator)));
        Ok(translator)
    }

    /// SQL of the component that differs on PostgreSQL: in its migrations, and in the statements that its calls ran so far.
    ///
    /// # Errors
    /// The problems of the migrations, if they cannot be read.
    pub fn differences(&self, steps: &[Step]) -> Result<Vec<Finding>, Problems> {
        let steps: Vec<_> = steps.iter().map(Step::as_read).collect();
        self.reader.differences(&steps)
    }

    /// The namespace of a policy: `rate-limit` owns `policy_rate_limit_…`, so that no policy gets at a pack's
    /// tables by its name.
    pub fn of_policy(policy: &str) -> Namespace {
        Namespace::of_pack(&format!("{}{policy}", Namespace::POLICIES))
    }

    /// Prefix of a policy's namespace, before the policy's name. No pack's name starts like that.
    pub const POLICIES: &str = "policy-";

    /// The pack's name.
    pub fn pack(&self) -> &str {
        &self.pack
    }

    /// Prefix of the tables.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn owns(&self, table: &str) -> bool {
        // SQLite folds the case of table names, so the comparison must as well.
        table
            .get(..self.prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(&self.prefix))
    }

    /// True if a new table, index or trigger may have this name. Its prefix is written exactly as it is, so that
    /// nothing that compares names can take it for somebody else's.
    pub(super) fn names(&self, object: &str) -> bool {
        object.starts_with(&*self.prefix)
    }

    /// True if rows of a table may be updated and deleted. The reader refuses such statements; what SQLite makes
    /// of a statement beyond its words, such as what foreign keys do, is refused here.
    pub(super) fn may_change(&self, table: &str) -> bool {
        self.owns(table) && !self.append_only.contains(&table.to_ascii_lowercase())
    }
}

/// Prefix of the host's own tables, indexes and triggers.
pub(super) const CORE_PREFIX: &str = "core_";
