//! The host's own migrations, adapted for SQLite.
//!
//! The migrations write column types as TEXT, BIGINT, DOUBLE and BLOB. Every table becomes `STRICT`, which has fewer
//! type names: BIGINT becomes INTEGER and DOUBLE becomes REAL, also in columns that are added later. Nothing else is
//! rewritten. Migrations of components do not pass through here: `tollgate-sql` reads and prints them.

/// Text of a migration for SQLite.
pub(in crate::storage) fn for_sqlite(migration: &str) -> String {
    let mut out = String::with_capacity(migration.len() + 64);
    let mut statement = Statement::Start;
    let mut depth = 0_usize;
    for token in tokens(migration) {
        statement = match (statement, token) {
            (Statement::Start, Token::Word(word)) if word.eq_ignore_ascii_case("create") => Statement::Create,
            (Statement::Start, Token::Word(word)) if word.eq_ignore_ascii_case("alter") => Statement::Alter,
            (Statement::Alter, Token::Word(word)) if word.eq_ignore_ascii_case("add") => Statement::Column,
            (Statement::Start | Statement::Create, Token::Word(word)) => {
                if statement == Statement::Create && word.eq_ignore_ascii_case("table") {
                    Statement::Table
                } else {
                    Statement::Other
                }
            }
            (Statement::Table, Token::Symbol(";")) if depth == 0 => {
                out.push_str(" STRICT");
                Statement::Start
            }
            (_, Token::Symbol(";")) => Statement::Start,
            (same, _) => same,
        };
        match token {
            Token::Symbol("(") => depth += 1,
            Token::Symbol(")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        match token {
            Token::Word(word) if matches!(statement, Statement::Table | Statement::Column) => {
                out.push_str(column_type(word));
            }
            Token::Word(text) | Token::Symbol(text) | Token::Other(text) => out.push_str(text),
        }
    }
    if statement == Statement::Table {
        out.push_str(" STRICT");
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Statement {
    Start,
    Create,
    Table,
    Alter,
    /// A column added to a table.
    Column,
    Other,
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    /// White space, comments and quoted text, which stay unchanged.
    Other(&'a str),
}

fn column_type(word: &str) -> &str {
    if word.eq_ignore_ascii_case("bigint") {
        "INTEGER"
    } else if word.eq_ignore_ascii_case("double") {
        "REAL"
    } else {
        word
    }
}

fn tokens(sql: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = match first {
            'a'..='z' | 'A'..='Z' | '_' => word_length(rest),
            '\'' | '"' => quoted_length(rest, first),
            '-' if rest.starts_with("--") => rest.find('\n').map_or(rest.len(), |at| at + 1),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            other => other.len_utf8(),
        };
        let (text, tail) = rest.split_at(length);
        rest = tail;
        Some(match first {
            'a'..='z' | 'A'..='Z' | '_' => Token::Word(text),
            '(' | ')' | ';' => Token::Symbol(text),
            _ => Token::Other(text),
        })
    })
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

fn quoted_length(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::for_sqlite;

    #[test]
    fn tables_become_strict_and_nothing_else_changes() {
        let adapted = for_sqlite(
            "-- BIGINT; in a comment\n\
             CREATE TABLE a_b (id INTEGER PRIMARY KEY, size BIGINT NOT NULL DEFAULT (1), name TEXT DEFAULT 'x;BIGINT', r DOUBLE);\n\
             CREATE INDEX a_i ON a_b (size);\n\
             CREATE TRIGGER a_t BEFORE UPDATE ON a_b BEGIN SELECT RAISE(ABORT, 'no'); END;\n\
             ALTER TABLE a_b RENAME COLUMN bigint TO count;\n\
             alter table a_b add column weight DOUBLE DEFAULT 0 CHECK (weight >= 0);\n\
             ALTER TABLE a_b ADD length BIGINT;\n\
             CREATE TABLE a_c (x TEXT)",
        );
        expect![[r#"
            -- BIGINT; in a comment
            CREATE TABLE a_b (id INTEGER PRIMARY KEY, size INTEGER NOT NULL DEFAULT (1), name TEXT DEFAULT 'x;BIGINT', r REAL) STRICT;
            CREATE INDEX a_i ON a_b (size);
            CREATE TRIGGER a_t BEFORE UPDATE ON a_b BEGIN SELECT RAISE(ABORT, 'no'); END;
            ALTER TABLE a_b RENAME COLUMN bigint TO count;
            alter table a_b add column weight REAL DEFAULT 0 CHECK (weight >= 0);
            ALTER TABLE a_b ADD length INTEGER;
            CREATE TABLE a_c (x TEXT) STRICT"#]]
        .assert_eq(&adapted);
    }
}
