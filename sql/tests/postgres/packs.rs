//! Migrations and statements of the built-in packs and policies.

use std::path::Path;

use tollgate_sql::Step;

use crate::both::Both;
use crate::server::database;

/// Components with tables: the name of each, which is the folder of its migrations, and its steps.
pub(crate) fn components() -> Vec<(String, Vec<(String, String)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut components: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        // The host's own.
        if name == "core" || name == "core-postgres" {
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

pub(crate) fn both(name: &str, steps: &[(String, String)]) -> Both {
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
