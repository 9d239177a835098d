//! Detection of schema objects that differ from what the host created.
//!
//! The expected objects come from the text of the migrations, because the server prints definitions in ways that
//! depend on its version. The server keeps the bodies of functions as written. For columns and constraints, the
//! server prints a reference copy.

use super::schema::CORE;
use super::server::OF_FUNCTIONS;
use super::{Postgres, pristine};
use crate::storage::engine::misplaced::{Cure, Misplaced};
use crate::storage::engine::{Sql, Text};
use crate::storage::error::StoreResult;

/// An object that the migrations create.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Made {
    pub(super) kind: String,
    pub(super) name: String,
    /// Content to compare: the body of a function, the definition of a trigger.
    pub(super) is: String,
}

/// Query for objects in the schema, with every property that could be changed. Keys and objects created implicitly
/// are left out.
const OBJECTS_QUERY: &str = "
    SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
            p.prosrc || ' ' || l.lanname || CASE WHEN p.prosecdef THEN ' as its owner' ELSE '' END
            || CASE WHEN p.proconfig IS NULL THEN ''
                WHEN p.proconfig = ARRAY['search_path=' || current_setting('search_path')] THEN ' in the schema'
                ELSE ' with settings' END
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = CAST(?1 AS text)::regnamespace
    UNION ALL
    SELECT 'operator', o.oprname::text, p.proname::text
        FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode WHERE o.oprnamespace = CAST(?1 AS text)::regnamespace
    UNION ALL
    SELECT 'trigger', c.relname || '.' || t.tgname, CASE WHEN t.tgisinternal THEN 'internal ' ELSE '' END
            || CASE WHEN p.pronamespace = c.relnamespace THEN '' ELSE 'elsewhere ' END
            || p.proname || ' ' || t.tgtype || ' ' || t.tgenabled::text
            || CASE WHEN t.tgqual IS NULL AND t.tgattr::text = '' THEN '' ELSE ' at times' END
            || ' ' || encode(t.tgargs, 'escape')
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
            || CASE relpersistence WHEN 'p' THEN '' ELSE ' without a log' END
        FROM pg_class WHERE relnamespace = CAST(?1 AS text)::regnamespace AND relkind IN ('r', 'v', 'm', 'f', 'p')
    UNION ALL
    SELECT 'child', h.inhrelid::regclass::text, c.relname::text FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace
    UNION ALL
    SELECT 'rule', r.rulename::text, c.relname::text FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = CAST(?1 AS text)::regnamespace AND c.relkind = 'r'";

/// Query for foreign objects in the schemas of components. Tables, indexes and constraints belong to the components.
const COMPONENT_OBJECTS_QUERY: &str = "
    SELECT 'trigger', n.nspname || '.' || c.relname || '.' || t.tgname
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_namespace f ON f.oid = p.pronamespace
        WHERE n.nspname LIKE ?1 AND CASE WHEN t.tgisinternal THEN t.tgenabled <> 'O'
            ELSE (t.tgname, f.nspname, p.proname, t.tgenabled::text, t.tgtype, t.tgqual IS NULL)
                <> ('append_only', ?2, 'append_only', 'O', 58, true) END
    UNION ALL
    SELECT 'rule', n.nspname || '.' || c.relname || '.' || r.rulename
        FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname LIKE ?1 AND c.relkind = 'r'
    UNION ALL
    SELECT 'child', h.inhrelid::regclass::text FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhparent
            JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname LIKE ?1
    UNION ALL
    SELECT CASE c.relkind WHEN 'r' THEN 'row security of' WHEN 'v' THEN 'view' ELSE 'relation' END, n.nspname || '.' || c.relname
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname LIKE ?1 AND (c.relkind IN ('v', 'm', 'f', 'p') OR c.relrowsecurity)
    UNION ALL
    SELECT 'function', p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname LIKE ?1";

impl Postgres {
    /// Objects in the schemas of components that change the effect of their statements.
    fn misplaced_of_components(&self) -> StoreResult<Vec<Misplaced>> {
        let text = Text {
            sql: COMPONENT_OBJECTS_QUERY,
            is_kept: false,
        };
        let schemas = self.server.schemas_of_components();
        let values = [Sql::Text(&schemas), Sql::Text(OF_FUNCTIONS)];
        self.prepare(text)?.all(&values, |row| {
            Ok(Misplaced {
                kind: row.get(0)?,
                name: row.get(1)?,
                why: "is among the tables of a component and was not created by the host".to_owned(),
                concerns_core: true,
                cure: Cure::None,
            })
        })
    }

    /// Objects in the schema that should not exist, or that were changed.
    pub(in crate::storage) fn misplaced(&self) -> StoreResult<Vec<Misplaced>> {
        let schema = super::settings::quoted(&self.server.schema);
        let text = Text {
            sql: OBJECTS_QUERY,
            is_kept: false,
        };
        let found: Vec<Made> = self.prepare(text)?.all(&[Sql::Text(&schema)], |row| {
            Ok(Made {
                kind: row.get(0)?,
                name: row.get(1)?,
                is: row.get(2)?,
            })
        })?;
        let mut wrong = differences(&found, &made());
        wrong.extend(self.misplaced_of_components()?);
        Ok(wrong)
    }

    /// Like `misplaced`, but also compares columns and constraints with a reference copy that the server creates.
    pub(in crate::storage) fn misplaced_in_full(&self) -> StoreResult<Vec<Misplaced>> {
        let mut wrong = self.misplaced()?;
        let Some(wanted) = pristine::details(&self.server)? else {
            return Ok(wrong);
        };
        let more = differences(&self.details(&self.server.schema)?, &wanted);
        let is_told = |object: &Misplaced| {
            let mut told = wrong.iter();
            told.any(|known| {
                let of_it = object
                    .name
                    .strip_prefix(&known.name)
                    .is_some_and(|rest| rest.starts_with('.'));
                (known.kind == object.kind && known.name == object.name) || (known.kind == "table" && of_it)
            })
        };
        let more: Vec<Misplaced> = more.into_iter().filter(|object| !is_told(object)).collect();
        wrong.extend(more);
        Ok(wrong)
    }

    /// Fault in the append state, if it does not match the end of the chain: rows were cut from the end, or no row
    /// can be appended.
    pub(in crate::storage) fn fault_of_stream(&self, seq: i64, hash: &str) -> StoreResult<Option<String>> {
        let text = Text {
            sql: "SELECT id::bigint, place, hash FROM core_streams ORDER BY id",
            is_kept: false,
        };
        let ends: Vec<(i64, i64, String)> = self
            .prepare(text)?
            .all(&[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let is_the_end = ends == [(0, seq, hash.to_owned())];
        Ok((!is_the_end).then(|| "core_streams does not match the last row of the ledger".to_owned()))
    }
}

fn differences(found: &[Made], made: &[Made]) -> Vec<Misplaced> {
    let is_it = |one: &Made, other: &Made| one.kind == other.kind && one.name == other.name;
    let mut wrong = Vec::new();
    for wanted in made {
        let why = match found.iter().find(|object| is_it(object, wanted)) {
            Some(object) if object.is == wanted.is => continue,
            Some(_) => "was changed or replaced",
            None => "is missing",
        };
        wrong.push(misplaced(
            wanted,
            format!("{why}, so the host's own tables were not protected"),
        ));
    }
    let added = found
        .iter()
        .filter(|object| !made.iter().any(|wanted| is_it(object, wanted)));
    wrong.extend(added.map(|object| {
        misplaced(
            object,
            "is among the host's own objects and was not created by the host".to_owned(),
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

/// Objects that the migrations create, including the table of migrations itself.
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
            if let Some(object) = object(&statement.replacen("CREATE OR REPLACE ", "CREATE ", 1)) {
                made.retain(|before| before.kind != object.kind || before.name != object.name);
                made.push(object);
            }
            rest = statement;
        }
    }
    made
}

/// Object that a statement at the beginning of a text creates.
fn object(sql: &str) -> Option<Made> {
    let mut words = sql.split_ascii_whitespace().skip(1);
    let kind = words.next()?.to_ascii_lowercase();
    let name = match kind.as_str() {
        // Functions with the same name differ in their arguments, and triggers in their tables.
        "function" => sql
            .strip_prefix("CREATE FUNCTION ")?
            .split_inclusive(')')
            .next()?
            .to_owned(),
        "trigger" => format!("{}.{}", after(sql, "ON")?, words.next()?),
        _ => words.next()?.to_owned(),
    };
    let is = match kind.as_str() {
        "table" => String::new(),
        "index" => words.nth(1)?.to_owned(),
        "function" => function(sql)?,
        "operator" => sql.split_once("FUNCTION = ")?.1.split_once(')')?.0.to_owned(),
        "trigger" => trigger(sql)?,
        _ => return None,
    };
    Some(Made { kind, name, is })
}

/// Word after another one.
fn after<'s>(sql: &'s str, word: &str) -> Option<&'s str> {
    let mut words = sql.split_ascii_whitespace();
    words.find(|found| *found == word)?;
    words.next()
}

/// Content of a function: its body between dollars or quotes, its language, and whether its search path is only the
/// host's schema.
fn function(sql: &str) -> Option<String> {
    let (head, rest) = sql.split_once("AS ")?;
    let quote = if rest.starts_with("$$") { "$$" } else { "'" };
    let body = rest.strip_prefix(quote)?.split_once(quote)?.0;
    let language = after(head, "LANGUAGE")?;
    let path = match head.contains("SET search_path FROM CURRENT") {
        true => " in the schema",
        false => "",
    };
    Some(format!("{body} {language}{path}"))
}

/// Content of a trigger: its function, the bits that encode when it runs, and its argument.
fn trigger(sql: &str) -> Option<String> {
    let (statement, _) = sql.split_once(';')?;
    let words: Vec<&str> = statement.split_ascii_whitespace().collect();
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
    let (_, call) = statement.split_once("FUNCTION ")?;
    let (function, arguments) = call.split_once('(')?;
    let argument = arguments.trim_end_matches(')').trim_matches('\'');
    // The server ends each argument with a NUL.
    let end = if argument.is_empty() { "" } else { "\\000" };
    Some(format!("{function} {kind} O {argument}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_migrations_say_what_there_should_be() {
        let made = made();
        let of = |kind: &str| made.iter().filter(|object| object.kind == kind).count();
        assert_eq!((of("table"), of("trigger"), of("function")), (28, 7, 9));
        let is = |name: &str| &made.iter().find(|object| object.name == name).unwrap().is;
        assert_eq!(
            is("core_operations.core_operations_no_update"),
            r"core_refuse 19 O the ledger is append-only\000"
        );
        assert_eq!(is("core_operations.core_operations_in_order"), "core_append 7 O ");
        assert_eq!(
            is("core_anchors.core_anchors_no_truncate"),
            r"core_refuse 34 O anchors are append-only\000"
        );
        assert_eq!(is("->>"), "json_text");
        assert!(is("core_append()").ends_with(" plpgsql in the schema"));
        assert_eq!(is("core_tasks_open"), "core_tasks");
        assert!(is("core_append()").contains("UPDATE core_streams"));
        assert!(is("instr(text, text)").starts_with("SELECT pg_catalog.strpos"));
    }
}
