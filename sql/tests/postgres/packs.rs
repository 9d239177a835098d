//! Migrations and statements of the built-in packs and policies.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::types::Value;
use serde_json::Value as Json;
use tollgate_sql::Step;

use crate::both::{Both, Came};
use crate::server::database;

/// Components with tables, by the folder of their migrations.
fn components() -> Vec<(String, Vec<(String, String)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut components: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        // The host's own.
        if name == "core" {
            continue;
        }
        let mut steps: Vec<(String, String)> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|step| step.unwrap().path())
            .map(|path| {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read_to_string(&path).unwrap())
            })
            .collect();
        steps.sort();
        components.push((name, steps));
    }
    components.sort();
    components
}

fn both(name: &str, steps: &[(String, String)]) -> Both {
    let prefix = format!("{}_", name.replace('-', "_"));
    let steps: Vec<Step<'_>> = steps.iter().map(|(name, sql)| Step { name, sql }).collect();
    Both::on(database(), &format!("tg_{prefix}"), &prefix, &steps)
}

#[test]
fn migrations_of_all_components_apply() {
    let components = components();
    assert!(components.len() >= 6, "{components:?}");
    for (name, steps) in components {
        let mut both = both(&name, &steps);
        for (table, relation) in both.catalog.clone().tables() {
            let columns: Vec<String> = relation.fields.iter().map(|field| field.name.clone()).collect();
            both.same(&format!("SELECT {} FROM {table}", columns.join(", ")), &[]);
        }
    }
}

/// Tables of earlier migrations, which a later one dropped.
const DROPPED: [&str; 2] = ["conductor_descriptions", "conductor_mistakes"];

#[test]
fn known_statements_are_translated_and_prepared() {
    let mut count = 0;
    for (name, steps) in components() {
        let mut both = both(&name, &steps);
        let prefix = format!(" {}_", name.replace('-', "_"));
        let known = include_str!("../statements.txt").lines();
        for text in known.filter(|line| line.contains(&prefix)) {
            if DROPPED.iter().any(|table| text.contains(table)) {
                continue;
            }
            let translated = both
                .translate(text)
                .1
                .unwrap_or_else(|difference| panic!("{text}: {difference}"));
            let prepared = both.postgres.prepare(&translated.sql);
            prepared.unwrap_or_else(|err| panic!("{}: {err:?}", translated.sql));
            count += 1;
        }
    }
    assert!(count > 180, "{count} statements");
}

/// Names the folder with what sessions of native tests said: `cargo xtask postgres-test` sets it.
const RECORDED: &str = "TOLLGATE_TEST_RECORDED";
/// Statements of one session that are played.
const MAX_PLAYED: usize = 1_500;
/// Components whose statements are played.
const PLAYED: [&str; 6] = [
    "conductor",
    "convergence",
    "gsd",
    "policy-side-effect-approval",
    "task-store",
    "tasks",
];

/// A line of a record: a statement with its values, or where a call begins and ends.
fn line(text: &str) -> (String, Option<Vec<Value>>) {
    let line: Vec<Json> = serde_json::from_str(text).unwrap();
    let sql = line[0].as_str().unwrap().to_owned();
    let values = line
        .get(1)
        .map(|values| values.as_array().unwrap().iter().map(value).collect());
    (sql, values)
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Number(number) => Value::Integer(number.as_i64().unwrap()),
        Json::String(text) => Value::Text(text.clone()),
        json if json["real"].is_number() => Value::Real(json["real"].as_f64().unwrap()),
        json => {
            let bytes = json["blob"].as_array().unwrap().iter();
            Value::Blob(
                bytes
                    .map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap())
                    .collect(),
            )
        }
    }
}

/// Sessions of one component that say something no session before them said.
fn sessions(folder: &Path, owner: &str) -> Vec<Vec<(String, Option<Vec<Value>>)>> {
    let records = std::fs::read_dir(folder)
        .unwrap()
        .map(|record| record.unwrap().path());
    let start = format!("{owner}.");
    let own = records.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&start));
    let mut own: Vec<_> = own.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // The longest first: few of them say it all.
    own.sort_by_key(|text| (usize::MAX - text.len().min(400_000), text.clone()));
    let mut known = BTreeSet::new();
    let mut chosen = Vec::new();
    for text in own {
        let lines: Vec<_> = text.lines().take(MAX_PLAYED).map(line).collect();
        let before = known.len();
        known.extend(lines.iter().map(|(sql, _)| sql.clone()));
        if known.len() > before {
            chosen.push(lines);
        }
    }
    chosen
}

#[test]
fn sessions_of_the_packs_go_the_same_way() {
    let folder = std::env::var_os(RECORDED)
        .unwrap_or_else(|| panic!("{RECORDED} names no folder: run `cargo xtask postgres-test`"));
    let components = components();
    for owner in PLAYED {
        let (_, steps) = components.iter().find(|(name, _)| name == owner).unwrap();
        let sessions = sessions(Path::new(&folder), owner);
        assert!(!sessions.is_empty(), "{owner} has no session");
        for lines in sessions {
            play(both(owner, steps), owner, &lines);
        }
    }
}

fn play(mut both: Both, owner: &str, lines: &[(String, Option<Vec<Value>>)]) {
    both.sqlite.execute_batch("BEGIN").unwrap();
    both.postgres.batch_execute("BEGIN").unwrap();
    for (sql, values) in lines {
        let Some(values) = values else {
            both.sqlite.execute_batch(sql).unwrap();
            both.postgres.batch_execute(sql).unwrap();
            continue;
        };
        if sql.trim_start().starts_with("INSERT") {
            both.renumber();
        }
        both.postgres.batch_execute("SAVEPOINT one").unwrap();
        let came = both.same(sql, values);
        let end = match came {
            Came::Rows(_) | Came::Changed(_) => "RELEASE one",
            _ => "ROLLBACK TO one; RELEASE one",
        };
        both.postgres.batch_execute(end).unwrap();
        assert!(
            !matches!(came, Came::Failed(_) | Came::Refused(_)),
            "{owner}: {sql}: {came:?}"
        );
    }
}
