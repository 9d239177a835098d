//! Detection of objects that neither the host nor a component may have in the database, and of changed objects of the
//! host's own.
//!
//! A trigger, a view or a foreign key on one of the host's tables runs as part of the host's own statements. The
//! authorizer denies its actions; this module finds it by name, before and after.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rusqlite::{ErrorCode, ffi};
use tollgate_core::text;

use crate::storage::access::{CORE_PREFIX, Namespace};
use crate::storage::engine::Engine;
use crate::storage::engine::misplaced::{Cure, Misplaced};
use crate::storage::engine::steps::{self, MigrationError};
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::handles::Maintenance;
use crate::storage::scratch;

/// Most objects that an error names.
const MAX_NAMED: usize = 3;

/// Row of SQLite's schema table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage) struct Object {
    pub(in crate::storage) kind: String,
    pub(in crate::storage) name: String,
    /// Table that it is on. For a table or view, its own name.
    table: String,
    /// Absent for indexes that SQLite creates itself.
    pub(in crate::storage) sql: Option<String>,
}

impl Object {
    /// True if the object belongs to the host, or its name says so.
    fn is_core(&self) -> bool {
        let of_key = self.name.strip_prefix("sqlite_autoindex_");
        is_core(&self.table) || is_core(of_key.unwrap_or(&self.name))
    }

    /// True if SQLite created the object itself.
    fn is_of_engine(&self) -> bool {
        match self.kind.as_str() {
            "index" => self.sql.is_none() && self.name.starts_with("sqlite_autoindex_"),
            "table" => matches!(
                self.name.as_str(),
                "sqlite_sequence" | "sqlite_stat1" | "sqlite_stat3" | "sqlite_stat4"
            ),
            _ => false,
        }
    }

    fn is_same(&self, other: &Object) -> bool {
        let words = |sql: &Option<String>| {
            let words = sql.as_deref().unwrap_or_default().split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        };
        self.table == other.table && words(&self.sql) == words(&other.sql)
    }

    fn misplaced(&self, why: String, concerns_core: bool) -> Misplaced {
        Misplaced {
            kind: self.kind.clone(),
            name: self.name.clone(),
            why,
            concerns_core,
            cure: Cure::Drop,
        }
    }
}

/// True if SQLite treats a name as one with the host's prefix.
fn is_core(name: &str) -> bool {
    name.get(..CORE_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(CORE_PREFIX))
}

/// The host's own objects in an untouched database.
static PRISTINE: OnceLock<Vec<Object>> = OnceLock::new();

/// The host's own objects in an untouched database. If no database was created in this process yet, one is created in
/// memory.
pub(in crate::storage) fn pristine() -> Result<&'static [Object], MigrationError> {
    if let Some(known) = PRISTINE.get() {
        return Ok(known);
    }
    // Creating the database has set them already.
    let objects = scratch(std::iter::empty())?.maintenance().objects()?;
    Ok(PRISTINE.get_or_init(|| objects))
}

/// Records the objects of a database in which the host has just created its tables, in the same transaction in which the
/// database was still empty.
pub(super) fn set_pristine(objects: Vec<Object>) {
    PRISTINE.get_or_init(|| objects);
}

/// Components that have tables here, for finding the owner of a name.
struct Owners(Vec<Namespace>);

impl Owners {
    /// Owner of an object with exactly this name.
    fn of(&self, name: &str) -> Option<&str> {
        let core = name.starts_with(CORE_PREFIX).then_some("core");
        core.or_else(|| self.longest(|owner| owner.names(name)))
    }

    /// Owner of a name with letter case ignored, as in SQLite.
    fn folded(&self, name: &str) -> Option<&str> {
        let core = is_core(name).then_some("core");
        core.or_else(|| self.longest(|owner| owner.owns(name)))
    }

    fn longest(&self, has: impl Fn(&Namespace) -> bool) -> Option<&str> {
        let owners = self.0.iter().filter(|owner| has(owner));
        let owner = owners.max_by_key(|owner| owner.prefix().len())?;
        Some(owner.pack())
    }
}

/// Fault of an object that does not belong to the host. `targets` are the tables that it refers to.
fn fault(object: &Object, owners: &Owners, targets: &[String], core: &[Object]) -> Option<Misplaced> {
    let Object {
        kind, name, table, ..
    } = object;
    let sql = object.sql.as_deref().unwrap_or_default();
    let mentioned = words(sql).find(|word| {
        let mut tables = core.iter().filter(|object| object.kind == "table");
        tables.any(|table| table.name.eq_ignore_ascii_case(word))
    });
    let owner = owners.of(name);
    let stranger = targets
        .iter()
        .find(|target| owner.is_none() || owners.folded(target) != owner);
    let concerns_core = mentioned.is_some() || targets.iter().any(|target| is_core(target));
    let why = match (owner, owners.folded(name)) {
        _ if kind == "view" || kind == "trigger" => format!("is a {kind}, which no component may have"),
        (None, Some(folded)) => format!("has the prefix of {folded}, but in different letter case"),
        (None, None) => "belongs to no component".to_owned(),
        (Some(owner), _) if owners.of(table) != Some(owner) => {
            format!("of {owner} is on {}, which is not its own", plain(table))
        }
        (Some(owner), _) => match (stranger, mentioned) {
            (Some(target), _) => format!("of {owner} refers to {}, which is not its own", plain(target)),
            (None, Some(word)) => format!("of {owner} mentions {}, which is not its own", plain(&word)),
            (None, None) => return None,
        },
    };
    Some(object.misplaced(why, concerns_core))
}

fn plain(name: &str) -> String {
    text::clean(text::cut(name, 100))
}

/// Words and quoted parts of a statement, with any kind of quotes: SQLite takes a string literal as a name where only
/// a name makes sense. Comments are left out.
fn words(sql: &str) -> impl Iterator<Item = String> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
            if let Some(after) = rest.strip_prefix("--") {
                rest = after.split_once('\n').map_or("", |(_, after)| after);
            } else if let Some(after) = rest.strip_prefix("/*") {
                rest = after.split_once("*/").map_or("", |(_, after)| after);
            } else if is_word(first) {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                rest = after;
                return Some(word.to_owned());
            } else if matches!(first, '\'' | '"' | '`' | '[') {
                let close = if first == '[' { ']' } else { first };
                let (quoted, after) = rest[1..].split_once(close).unwrap_or((&rest[1..], ""));
                rest = after;
                return Some(quoted.to_owned());
            } else {
                rest = &rest[first.len_utf8()..];
            }
        }
    })
}

/// Objects of the host that are missing, changed, or unexpected.
fn changed_core(found: &[Object], core: &[Object]) -> Vec<Misplaced> {
    let is_it = |one: &Object, other: &Object| one.kind == other.kind && one.name == other.name;
    let mut wrong = Vec::new();
    for wanted in core {
        let cure = match wanted.kind.as_str() {
            "trigger" | "index" if wanted.sql.is_some() => Cure::Restore,
            _ => Cure::None,
        };
        let why = match found.iter().find(|object| is_it(object, wanted)) {
            None => "is missing",
            Some(object) if !object.is_same(wanted) => "was changed or replaced",
            Some(_) => continue,
        };
        wrong.push(Misplaced {
            cure,
            ..wanted.misplaced(
                format!("{why}, so the host's own tables were not protected"),
                true,
            )
        });
    }
    let known = |object: &Object| core.iter().any(|wanted| is_it(object, wanted));
    let added = found.iter().filter(|object| object.is_core() && !known(object));
    wrong.extend(added.map(|object| {
        let cure = match object.kind.as_str() {
            // The index of a key is part of its table.
            "index" if object.sql.is_none() => Cure::None,
            _ => Cure::Drop,
        };
        let why = "is among the host's own objects and was not created by the host".to_owned();
        Misplaced {
            cure,
            ..object.misplaced(why, true)
        }
    }));
    wrong
}

impl Maintenance<'_> {
    /// All objects in the schema.
    pub(in crate::storage) fn objects(self) -> StoreResult<Vec<Object>> {
        Ok(self
            .0
            .sqlite()?
            .db
            .prepare("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")?
            .query_map([], |row| {
                Ok(Object {
                    kind: row.get(0)?,
                    name: row.get(1)?,
                    table: row.get(2)?,
                    sql: row.get(3)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// True if nothing was ever created in this database.
    pub(in crate::storage) fn is_empty(self) -> StoreResult<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)";
        Ok(self.0.sqlite()?.db.query_row(sql, [], |row| row.get(0))?)
    }

    /// True if a host has used this database.
    pub(in crate::storage) fn has_migrations(self) -> StoreResult<bool> {
        let mut found = self
            .0
            .sqlite()?
            .db
            .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'core_migrations'")?;
        Ok(found.exists([])?)
    }

    /// Objects in the database that should not exist, or that were changed, starting with those of the host.
    pub fn misplaced(self) -> Result<Vec<Misplaced>, MigrationError> {
        match &self.0.engine {
            Engine::Postgres(postgres) => Ok(postgres.misplaced_in_full()?),
            Engine::Sqlite(_) => self.misplaced_at_a_glance(),
        }
    }

    /// Quick version of `misplaced` for each start: on a server without columns and constraints, for which it must
    /// create tables.
    pub(in crate::storage) fn misplaced_at_a_glance(self) -> Result<Vec<Misplaced>, MigrationError> {
        if let Engine::Postgres(postgres) = &self.0.engine {
            return Ok(postgres.misplaced()?);
        }
        let core = pristine()?;
        let found = self.objects()?;
        let mut wrong = changed_core(&found, core);
        wrong.extend(self.strangers(&found, core, None, |_| true)?);
        Ok(wrong)
    }

    /// Faults of a component's objects.
    pub(in crate::storage) fn misplaced_of(
        self,
        namespace: &Namespace,
    ) -> Result<Vec<Misplaced>, MigrationError> {
        let is_its = |object: &Object| namespace.owns(&object.name) || namespace.owns(&object.table);
        self.strangers(&self.objects()?, pristine()?, Some(namespace), is_its)
    }

    fn strangers(
        self,
        found: &[Object],
        core: &[Object],
        also: Option<&Namespace>,
        looked_at: impl Fn(&Object) -> bool,
    ) -> Result<Vec<Misplaced>, MigrationError> {
        let known = steps::packs(self.0)?;
        let known = known.iter().map(|pack| Namespace::of_pack(pack));
        let owners = Owners(known.chain(also.cloned()).collect());
        let targets = self.references()?;
        let others = found
            .iter()
            .filter(|object| !object.is_core() && !object.is_of_engine() && looked_at(object));
        let wrong = others.filter_map(|object| {
            let of_table = targets.get(&object.name).filter(|_| object.kind == "table");
            fault(object, &owners, of_table.map_or(&[][..], Vec::as_slice), core)
        });
        Ok(wrong.collect())
    }

    /// Tables that the foreign keys of each table refer to.
    fn references(self) -> StoreResult<BTreeMap<String, Vec<String>>> {
        let mut references: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut statement = self.0.sqlite()?.db.prepare(
            "SELECT tables.name, keys.\"table\"
             FROM sqlite_master AS tables, pragma_foreign_key_list(tables.name) AS keys
             WHERE tables.type = 'table'",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            references.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        Ok(references)
    }

    /// Checks that every statement of the host on its own tables can be prepared, and that the ledger accepts a row.
    /// Runs in the caller's transaction and keeps nothing.
    pub(in crate::storage) fn probe(self) -> StoreResult<()> {
        let tables: Vec<String> = self
            .objects()?
            .into_iter()
            .filter(|object| object.kind == "table" && object.is_core())
            .map(|object| object.name)
            .collect();
        for name in tables {
            let table = quoted(&name);
            let mut columns = self
                .0
                .sqlite()?
                .db
                .prepare("SELECT name FROM pragma_table_info(?1)")?;
            let columns: Vec<String> = columns
                .query_map([&name], |row| {
                    let column = quoted(&row.get::<_, String>(0)?);
                    Ok(format!("{column} = {column}"))
                })?
                .collect::<rusqlite::Result<_>>()?;
            // The effects of foreign keys and triggers are compiled into a statement.
            for sql in [
                format!("INSERT INTO {table} SELECT * FROM {table} WHERE 0"),
                format!("UPDATE {table} SET {} WHERE 0", columns.join(", ")),
                format!("DELETE FROM {table} WHERE 0"),
            ] {
                self.0.sqlite()?.db.prepare(&sql)?;
            }
        }
        self.0.sqlite()?.host_statement("SAVEPOINT probe")?;
        let recorded = self.0.ledger().record_probe();
        self.0.known_head.set(None);
        self.0.sqlite()?.host_statement("ROLLBACK TO probe")?;
        self.0.sqlite()?.host_statement("RELEASE probe")?;
        recorded
    }

    /// Adds to an error the objects that block the host's own statements, if there are any.
    pub fn explain(self, err: StoreError) -> StoreError {
        let could_be = match err.sqlite() {
            None => err.is_miscount(),
            Some(failure) => matches!(
                failure.0.sqlite_error_code(),
                Some(
                    ErrorCode::AuthorizationForStatementDenied
                        | ErrorCode::ConstraintViolation
                        | ErrorCode::Unknown
                )
            ),
        };
        let Some(Ok(found)) = could_be.then(|| self.misplaced()) else {
            return err;
        };
        let mut named: Vec<String> = found
            .iter()
            .filter(|object| object.concerns_core)
            .map(ToString::to_string)
            .collect();
        if named.is_empty() {
            return err;
        }
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        let mut message = format!("{IN_THE_WAY}: {}", named.join("; "));
        if more > 0 {
            message.push_str(&format!("; and {more} more"));
        }
        rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_AUTH), Some(message)).into()
    }
}

/// Prefix of an error that [`Maintenance::explain`] has explained.
const IN_THE_WAY: &str = "an object in the database blocks the host's own statements";

/// Blocking object, if an error names one.
pub(in crate::storage) fn obstacle(err: &rusqlite::Error) -> Option<&str> {
    match err {
        rusqlite::Error::SqliteFailure(_, Some(message)) if message.starts_with(IN_THE_WAY) => Some(message),
        _ => None,
    }
}

/// Quoted name.
pub(in crate::storage) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
