//! Objects of the schema that are not as the host made them.
//!
//! The migrations' own text says what there should be, because the server prints definitions in ways that change with its
//! version. Bodies of functions it keeps as they were written.

use super::Postgres;
use super::schema::CORE;
use crate::storage::engine::sqlite::schema::{Cure, Misplaced};
use crate::storage::engine::{Sql, Text};
use crate::storage::error::StoreResult;

/// An object that the migrations make.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    kind: String,
    name: String,
    /// Content that must be as it was made: the body of a function, the work of a trigger.
    is: String,
}

/// Objects of the schema, each with what could be changed about it. Keys and what the server makes by itself are left out.
const FOUND: &str = "
    SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', p.prosrc::text FROM pg_proc p WHERE p.pronamespace = CAST(?1 AS text)::regnamespace
    UNION ALL
    SELECT 'trigger', t.tgname::text, CASE WHEN t.tgisinternal THEN 'internal ' ELSE '' END || c.relname || ' '
            || p.proname || ' ' || t.tgtype || ' ' || t.tgenabled::text
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace AND (NOT t.tgisinternal OR t.tgenabled <> 'O')
    UNION ALL
    SELECT 'index', i.relname::text, t.relname::text || CASE WHEN x.indisvalid THEN '' ELSE ' invalid' END
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
        WHERE t.relnamespace = CAST(?1 AS text)::regnamespace
            AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u'))
    UNION ALL
    SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE 'relation' END, relname::text,
            CASE WHEN relrowsecurity THEN 'row security' ELSE '' END
        FROM pg_class WHERE relnamespace = CAST(?1 AS text)::regnamespace AND relkind IN ('r', 'v', 'm', 'f', 'p')
    UNION ALL
    SELECT 'rule', r.rulename::text, c.relname::text FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace AND c.relkind = 'r'";

impl Postgres {
    /// Objects in the schema that should not exist, or differ from what they should be.
    pub(in crate::storage) fn misplaced(&self) -> StoreResult<Vec<Misplaced>> {
        let schema = super::settings::quoted(&self.server.schema);
        let text = Text {
            sql: FOUND,
            is_kept: false,
        };
        let found: Vec<Made> = self.prepare(text)?.all(&[Sql::Text(&schema)], |row| {
            Ok(Made {
                kind: row.get(0)?,
                name: row.get(1)?,
                is: row.get(2)?,
            })
        })?;
        Ok(differences(&found, &made()))
    }
}

fn differences(found: &[Made], made: &[Made]) -> Vec<Misplaced> {
    let is_it = |one: &Made, other: &Made| one.kind == other.kind && one.name == other.name;
    let mut wrong = Vec::new();
    for wanted in made {
        let why = match found.iter().find(|object| is_it(object, wanted)) {
            Some(object) if object.is == wanted.is => continue,
            Some(_) => "is gone and another one is in its place",
            None => "is gone",
        };
        wrong.push(misplaced(
            wanted,
            format!("{why}: the host's own tables were open to changes"),
        ));
    }
    let added = found
        .iter()
        .filter(|object| !made.iter().any(|wanted| is_it(object, wanted)));
    wrong.extend(added.map(|object| {
        misplaced(
            object,
            "is none that the host made, among the host's own".to_owned(),
        )
    }));
    wrong
}

fn misplaced(object: &Made, why: String) -> Misplaced {
    Misplaced {
        kind: object.kind.clone(),
        name: object.name.clone(),
        why,
        concerns_core: true,
        cure: Cure::None,
    }
}

/// Objects that the migrations make, and the table of migrations itself.
fn made() -> Vec<Made> {
    let of_migrations = Made {
        kind: "table".to_owned(),
        name: "core_migrations".to_owned(),
        is: String::new(),
    };
    let mut made = vec![of_migrations];
    for (_, sql) in CORE {
        let mut rest = *sql;
        while let Some(at) = rest.find("\nCREATE ") {
            let statement = &rest[at + 1..];
            made.extend(object(statement));
            rest = statement;
        }
    }
    made
}

/// The object that a statement at the beginning of a text makes.
fn object(sql: &str) -> Option<Made> {
    let mut words = sql.split_ascii_whitespace().skip(1);
    let kind = words.next()?.to_ascii_lowercase();
    let name = match kind.as_str() {
        // Functions of one name differ in what they take.
        "function" => sql
            .strip_prefix("CREATE FUNCTION ")?
            .split_inclusive(')')
            .next()?,
        _ => words.next()?,
    };
    let name = name.to_owned();
    let is = match kind.as_str() {
        "table" => String::new(),
        "index" => words.nth(1)?.to_owned(),
        "function" => body(sql)?.to_owned(),
        "trigger" => trigger(sql)?,
        _ => return None,
    };
    Some(Made { kind, name, is })
}

/// The body of a function, between dollars or quotes.
fn body(sql: &str) -> Option<&str> {
    let (_, rest) = sql.split_once("AS ")?;
    let quote = if rest.starts_with("$$") { "$$" } else { "'" };
    Some(rest.strip_prefix(quote)?.split_once(quote)?.0)
}

/// Work of a trigger: its table, its function, and the bits by which the server writes down when it runs.
fn trigger(sql: &str) -> Option<String> {
    let (statement, _) = sql.split_once(';')?;
    let words: Vec<&str> = statement.split_ascii_whitespace().collect();
    let after = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1).copied()
    };
    let bits = [
        ("ROW", 1),
        ("BEFORE", 2),
        ("INSERT", 4),
        ("DELETE", 8),
        ("UPDATE", 16),
        ("TRUNCATE", 32),
    ];
    let kind: u32 = bits
        .iter()
        .filter(|(word, _)| words.contains(word))
        .map(|(_, bit)| bit)
        .sum();
    let function = after("FUNCTION")?.split('(').next()?;
    Some(format!("{} {function} {kind} O", after("ON")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_migrations_say_what_there_should_be() {
        let made = made();
        let of = |kind: &str| made.iter().filter(|object| object.kind == kind).count();
        assert_eq!((of("table"), of("trigger"), of("function")), (23, 7, 7));
        let is = |name: &str| &made.iter().find(|object| object.name == name).unwrap().is;
        assert_eq!(
            is("core_operations_no_update"),
            "core_operations core_refuse 19 O"
        );
        assert_eq!(is("core_anchors_no_truncate"), "core_anchors core_refuse 34 O");
        assert_eq!(is("core_tasks_open"), "core_tasks");
        assert!(is("core_append()").contains("UPDATE core_streams"));
        assert!(is("instr(text, text)").starts_with("SELECT pg_catalog.strpos"));
    }
}
