//! Sessions of native tests of the built-in packs and policies, played on both engines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use serde_json::Value as Json;

use crate::both::{Both, Outcome, alike};
use crate::packs::{both, components};

/// Names the folder with the records of native tests: `cargo xtask postgres` sets it.
const RECORDED: &str = "TOLLGATE_TEST_RECORDED";
/// Bytes beyond which one session is as long as another.
const LONG: usize = 400_000;

/// Line of a record: a statement with its values, or where a call begins and ends.
#[derive(Debug)]
struct Line {
    sql: String,
    values: Option<Vec<Value>>,
}

impl Line {
    /// None for half a line, which a test of a full disk leaves.
    fn read(text: &str) -> Option<Line> {
        let line: Vec<Json> = serde_json::from_str(text).ok()?;
        let values = line.get(1);
        Some(Line {
            sql: line[0].as_str().unwrap().to_owned(),
            values: values.map(|values| values.as_array().unwrap().iter().map(value).collect()),
        })
    }
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Number(number) => Value::Integer(number.as_i64().unwrap()),
        Json::String(text) => Value::Text(text.clone()),
        json if json["real"].is_number() => Value::Real(json["real"].as_f64().unwrap()),
        json => {
            let bytes = json["blob"].as_array().unwrap().iter();
            let bytes = bytes.map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap());
            Value::Blob(bytes.collect())
        }
    }
}

/// Sessions of one component that have a statement which no session before them had.
fn sessions(owner: &str) -> Vec<Vec<Line>> {
    let folder = std::env::var_os(RECORDED)
        .unwrap_or_else(|| panic!("{RECORDED} names no folder: run `cargo xtask postgres`"));
    let records = std::fs::read_dir(folder)
        .unwrap()
        .map(|record| record.unwrap().path());
    let start = format!("{owner}.");
    let own = records.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&start));
    let mut own: Vec<_> = own.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // The longest first: few of them have all statements.
    own.sort_by(|one, other| {
        let length = |text: &String| text.len().min(LONG);
        length(other).cmp(&length(one)).then_with(|| one.cmp(other))
    });
    let mut known = BTreeSet::new();
    let mut chosen = Vec::new();
    for text in own {
        let lines: Vec<Line> = text.lines().map_while(Line::read).collect();
        let before = known.len();
        known.extend(lines.iter().map(|line| line.sql.clone()));
        if known.len() > before {
            chosen.push(lines);
        }
    }
    chosen
}

#[test]
fn sessions_of_the_components_go_the_same_way() {
    for (owner, steps) in components() {
        let sessions = sessions(&owner);
        assert!(!sessions.is_empty(), "{owner} has no session");
        for lines in sessions {
            play(both(&owner, &steps), &owner, &lines);
        }
    }
}

fn play(mut both: Both, owner: &str, lines: &[Line]) {
    both.sqlite.execute_batch("BEGIN").unwrap();
    both.postgres.batch_execute("BEGIN").unwrap();
    for Line { sql, values } in lines {
        let Some(values) = values else {
            both.sqlite.execute_batch(sql).unwrap();
            both.postgres.batch_execute(sql).unwrap();
            continue;
        };
        // SQLite keeps what PostgreSQL cannot: it is refused before it is sent.
        if values
            .iter()
            .any(|value| matches!(value, Value::Text(text) if text.contains('\0')))
        {
            continue;
        }
        if sql.trim_start().starts_with("INSERT") {
            both.renumber(sql);
        }
        both.postgres.batch_execute("SAVEPOINT one").unwrap();
        let (one, other) = both.run(sql, values);
        let end = match (&one, &other) {
            // Tests try what no engine takes.
            (Outcome::Constraint(_) | Outcome::Failed(_), Outcome::Refused(_)) => "RELEASE one",
            _ if !alike(sql, &one, &other) => {
                panic!("{owner}: {sql}\n{values:?}\nSQLite: {one:?}\nPostgreSQL: {other:?}")
            }
            (Outcome::Rows(_) | Outcome::Changed(_), _) => "RELEASE one",
            (Outcome::Constraint(_), _) => "ROLLBACK TO one; RELEASE one",
            (Outcome::Failed(_) | Outcome::Refused(_), _) => panic!("{owner}: {sql}: {one:?}"),
        };
        both.postgres.batch_execute(end).unwrap();
    }
}

/// Statements in the source of components: what is fixed in each, around what `format!` fills in.
fn statements_of_sources() -> Vec<(PathBuf, Vec<String>)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.extend(Some(path.clone()).filter(|_| !matches!(name, "tests" | "target")));
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let source = std::fs::read_to_string(&path).unwrap();
                found.extend(literals(&source).map(|literal| (path.clone(), pieces(&literal))));
            }
        }
    }
    found
}

/// Texts of a source that begin as a statement does.
fn literals(source: &str) -> impl Iterator<Item = String> {
    let verbs = [
        "\"SELECT ",
        "\"INSERT INTO ",
        "\"UPDATE ",
        "\"DELETE FROM ",
        "\"WITH ",
    ];
    source.match_indices('"').filter_map(move |(at, _)| {
        let rest = &source[at..];
        let is_statement = verbs.iter().any(|verb| rest.starts_with(verb));
        let end = rest[1..].find('"')?;
        is_statement.then(|| rest[1..=end].replace("\\\n", " "))
    })
}

/// Fixed parts of a text for `format!`, with single spaces.
fn pieces(literal: &str) -> Vec<String> {
    let fixed = literal.split('{').enumerate().map(|(place, piece)| match place {
        0 => piece,
        _ => piece.split_once('}').map_or("", |(_, fixed)| fixed),
    });
    fixed.map(spaced).collect()
}

fn spaced(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// True if a statement has all pieces, one after the other.
fn is_of(statement: &str, pieces: &[String]) -> bool {
    let mut rest = statement;
    pieces.iter().enumerate().all(|(place, piece)| {
        let found = rest.find(piece.as_str()).filter(|at| place > 0 || *at == 0);
        found.is_some_and(|at| {
            rest = &rest[at + piece.len()..];
            true
        })
    })
}

#[test]
fn every_statement_of_the_sources_is_played() {
    let mut played = BTreeSet::new();
    for (owner, _) in components() {
        let lines = sessions(&owner).into_iter().flatten();
        let statements = lines.filter(|line| line.values.is_some());
        played.extend(statements.map(|line| spaced(&line.sql)));
    }
    let sources = statements_of_sources();
    let missing: Vec<_> = sources
        .iter()
        .filter(|(_, pieces)| !played.iter().any(|statement| is_of(statement, pieces)))
        .collect();

    assert!(sources.len() > 180, "{} statements in the sources", sources.len());
    assert!(missing.is_empty(), "{missing:#?}");
}
