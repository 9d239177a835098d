//! Edits of packs and policies in a configuration's text, leaving everything else unchanged.

use thiserror::Error;
use tollgate_components::grants::Grants;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// Reason why a configuration was left unchanged.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// The text cannot be edited without losing something.
    #[error("the configuration cannot be changed: {0}")]
    Unreadable(String),
    /// A component of that name is already configured.
    #[error("[{0}] already exists; --replace changes its source, its hash and its grants")]
    Taken(String),
    /// No component has that name.
    #[error("there is no [{0}]")]
    NotThere(String),
    /// A setting cannot be represented in TOML.
    #[error("the settings contain null, which TOML cannot express")]
    Null,
}

/// Table of the configuration that holds components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// `[packs]`
    Packs,
    /// `[policies]`
    Policies,
}

impl Section {
    const fn name(self) -> &'static str {
        match self {
            Section::Packs => "packs",
            Section::Policies => "policies",
        }
    }

    /// Table of a component in the file, for example `packs.gsd`.
    pub fn table(self, name: &str) -> String {
        format!("{}.{name}", self.name())
    }
}

/// A component as it should be configured.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Table that holds the component.
    pub section: Section,
    /// Its name.
    pub name: String,
    /// Source of the component.
    pub source: String,
    /// Hash that its bytes must have.
    pub sha256: Option<String>,
    /// Grants of the component.
    pub grants: Grants,
    /// Further settings of the component's table.
    pub settings: Vec<(&'static str, serde_json::Value)>,
}

/// Adds a component to a configuration. An existing one is changed only if it may be replaced.
pub fn with(text: &str, entry: &Entry, may_replace: bool) -> Result<String, EditError> {
    let mut whole = parse(text)?;
    let last = positions(whole.as_table()).map(|(position, _)| position).max();
    let components = section(&mut whole, entry.section)?;
    let path = entry.section.table(&entry.name);
    if let Some(there) = components.get_mut(&entry.name) {
        if !may_replace {
            return Err(EditError::Taken(path));
        }
        let is_table = there.as_table_like_mut();
        fill(is_table.ok_or_else(|| no_table(&path))?, entry)?;
        return Ok(whole.to_string());
    }
    let mut table = Table::new();
    fill(&mut table, entry)?;
    table.set_position(Some(last.unwrap_or(0) + 1));
    components.insert(&entry.name, Item::Table(table));
    to_the_end(&mut whole, entry);
    Ok(whole.to_string())
}

/// Removes a component from a configuration. Comments directly above it are removed as well, others stay.
pub fn without(text: &str, from: Section, name: &str) -> Result<String, EditError> {
    let mut whole = parse(text)?;
    let removed = section(&mut whole, from)?
        .remove(name)
        .ok_or_else(|| EditError::NotThere(from.table(name)))?;
    if let Some(table) = removed.as_table() {
        let after = positions(table).map(|(position, _)| position).max();
        let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
        let kept = prefix.unwrap_or_default();
        let kept = kept.rfind("\n\n").map_or("", |end| &kept[..=end]);
        if kept.contains('#') {
            put_after(&mut whole, after.or(table.position()), kept);
        }
    }
    Ok(whole.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse()
        .map_err(|err: toml_edit::TomlError| EditError::Unreadable(err.message().to_owned()))
}

fn section(whole: &mut DocumentMut, section: Section) -> Result<&mut dyn TableLike, EditError> {
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    whole
        .entry(section.name())
        .or_insert(Item::Table(implicit))
        .as_table_like_mut()
        .ok_or_else(|| no_table(section.name()))
}

fn no_table(path: &str) -> EditError {
    EditError::Unreadable(format!("`{path}` is not a table"))
}

/// Writes an entry into its table, keeping other content.
fn fill(table: &mut dyn TableLike, entry: &Entry) -> Result<(), EditError> {
    set(table, "source", entry.source.as_str().into());
    match &entry.sha256 {
        Some(sha256) => set(table, "sha256", sha256.as_str().into()),
        None => drop(table.remove("sha256")),
    }
    for (key, value) in &entry.settings {
        set(table, key, toml(value).ok_or(EditError::Null)?);
    }
    let Grants {
        workspaces,
        process,
        ledger,
        artifacts,
        budgets,
        client,
        charges,
    } = &entry.grants;
    let lists = [
        ("workspaces", workspaces),
        ("process", process),
        ("budgets", budgets),
        ("client", client),
    ];
    let lists = lists
        .into_iter()
        .filter_map(|(key, names)| Some((key, Value::Array(names.as_ref()?.iter().collect::<Array>()))));
    let flags = [("ledger", ledger), ("artifacts", artifacts), ("charges", charges)];
    let flags = flags
        .into_iter()
        .filter_map(|(key, is_granted)| Some((key, Value::from((*is_granted)?))));
    let granted: Vec<(&str, Value)> = lists.chain(flags).collect();
    if granted.is_empty() {
        return Ok(());
    }
    let mut dotted = Table::new();
    dotted.set_dotted(true);
    let grants = table
        .entry("grants")
        .or_insert(Item::Table(dotted))
        .as_table_like_mut()
        .ok_or_else(|| no_table(&format!("{}.grants", entry.section.table(&entry.name))))?;
    for (key, value) in granted {
        set(grants, key, value);
    }
    Ok(())
}

/// Converts JSON to TOML, which has no null.
fn toml(value: &serde_json::Value) -> Option<Value> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(flag) => Value::from(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64()?),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(list) => Value::Array(list.iter().map(toml).collect::<Option<Array>>()?),
        serde_json::Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| Some((key.as_str(), toml(value)?)));
            Value::InlineTable(members.collect::<Option<InlineTable>>()?)
        }
    })
}

/// Sets a value and keeps its trailing comment.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) => {
            *value.decor_mut() = there.decor().clone();
            *there = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

/// Moves comments at the end of the file before a newly added table, so that the table comes last.
fn to_the_end(whole: &mut DocumentMut, entry: &Entry) {
    let trailing = whole.trailing().as_str().unwrap_or_default().to_owned();
    let is_blank = whole.as_table().len() == 1 && trailing.is_empty();
    let Some(Item::Table(added)) = whole
        .get_mut(entry.section.name())
        .and_then(Item::as_table_like_mut)
        .and_then(|components| components.get_mut(&entry.name))
    else {
        return;
    };
    let gap = if is_blank || trailing.ends_with("\n\n") {
        ""
    } else {
        "\n"
    };
    added.decor_mut().set_prefix(format!("{trailing}{gap}"));
    whole.set_trailing("");
}

/// Inserts comments before whatever follows a position, or at the end.
fn put_after(whole: &mut DocumentMut, place: Option<isize>, comments: &str) {
    let next = positions(whole.as_table())
        .filter(|(position, _)| Some(*position) > place)
        .min()
        .map(|(_, path)| path);
    let next = next.and_then(|path| {
        path.iter().try_fold(whole.as_table_mut(), |table, key| {
            table.get_mut(key).and_then(Item::as_table_mut)
        })
    });
    match next {
        Some(table) => {
            let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
            let prefix = format!("{comments}{}", prefix.unwrap_or_default());
            table.decor_mut().set_prefix(prefix);
        }
        None => {
            let trailing = format!("{comments}{}", whole.trailing().as_str().unwrap_or_default());
            whole.set_trailing(trailing);
        }
    }
}

/// Positions of the tables with their own headers in the file, with their paths.
fn positions(table: &Table) -> impl Iterator<Item = (isize, Vec<String>)> {
    let mut found = Vec::new();
    let mut waiting = vec![(table, Vec::new())];
    while let Some((table, path)) = waiting.pop() {
        if let Some(position) = table
            .position()
            .filter(|_| !table.is_implicit() && !table.is_dotted())
        {
            found.push((position, path.clone()));
        }
        for (key, item) in table {
            if let Item::Table(child) = item {
                let mut path = path.clone();
                path.push(key.to_owned());
                waiting.push((child, path));
            }
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::super::Config;
    use super::super::template::template;
    use super::*;

    fn hello() -> Entry {
        Entry {
            section: Section::Packs,
            name: "hello".to_owned(),
            source: "/srv/hello.wasm".to_owned(),
            sha256: Some("0".repeat(64)),
            grants: Grants {
                process: Some(vec!["cargo".to_owned(), "git".to_owned()]),
                ledger: Some(true),
                ..Grants::default()
            },
            settings: Vec::new(),
        }
    }

    fn check(text: &str, wanted: &Expect) {
        Config::parse(text, Path::new("/etc/tollgate.toml")).unwrap();
        wanted.assert_eq(text);
    }

    const MINE: &str = r#"# mine
[server] # how
tier = "full" # all of it

# -- packs --

# says hello
[packs.hello]
source = "old.wasm" # where
grants.process = ["make"] # why
limits.read_ms = 7

# -- the rest --
[packs.hello.config]
a = 1

[ledger]
mirror = true
# the end
"#;

    #[test]
    fn a_pack_is_added_last_and_everything_else_stays() {
        check(
            &with("# only this\n", &hello(), false).unwrap(),
            &expect![[r#"
                # only this

                [packs.hello]
                source = "/srv/hello.wasm"
                sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
                grants.process = ["cargo", "git"]
                grants.ledger = true
            "#]],
        );
        let other = Entry {
            name: "other".to_owned(),
            sha256: None,
            grants: Grants::default(),
            ..hello()
        };
        let added = with(MINE, &other, false).unwrap();
        check(
            added.strip_prefix(MINE.trim_end()).unwrap(),
            &expect![[r#"


                [packs.other]
                source = "/srv/hello.wasm"
            "#]],
        );
        assert_eq!(
            without(&added, Section::Packs, "other").unwrap().trim_end(),
            MINE.trim_end()
        );
    }

    #[test]
    fn one_that_is_there_is_changed_only_on_demand() {
        assert_eq!(
            with(MINE, &hello(), false),
            Err(EditError::Taken("packs.hello".to_owned()))
        );
        check(
            &with(MINE, &hello(), true).unwrap(),
            &expect![[r#"
                # mine
                [server] # how
                tier = "full" # all of it

                # -- packs --

                # says hello
                [packs.hello]
                source = "/srv/hello.wasm" # where
                grants.process = ["cargo", "git"] # why
                grants.ledger = true
                limits.read_ms = 7
                sha256 = "0000000000000000000000000000000000000000000000000000000000000000"

                # -- the rest --
                [packs.hello.config]
                a = 1

                [ledger]
                mirror = true
                # the end
            "#]],
        );
    }

    #[test]
    fn what_is_written_above_others_survives_a_removal() {
        check(
            &without(MINE, Section::Packs, "hello").unwrap(),
            &expect![[r#"
                # mine
                [server] # how
                tier = "full" # all of it

                # -- packs --

                [ledger]
                mirror = true
                # the end
            "#]],
        );
        assert_eq!(
            without(MINE, Section::Packs, "nobody"),
            Err(EditError::NotThere("packs.nobody".to_owned()))
        );
    }

    #[test]
    fn the_template_comes_through_adding_and_removing() {
        let added = with(template(), &hello(), false).unwrap();
        let config = Config::parse(&added, Path::new("/etc/tollgate.toml")).unwrap();
        assert_eq!(config.packs["hello"].source.as_deref(), Some("/srv/hello.wasm"));
        assert!(added.starts_with(template().trim_end()));
        assert_eq!(
            without(&added, Section::Packs, "hello").unwrap().trim_end(),
            template().trim_end()
        );
    }

    #[test]
    fn a_policy_comes_with_its_settings() {
        let limit = Entry {
            section: Section::Policies,
            name: "limit".to_owned(),
            source: "builtin:rate-limit".to_owned(),
            sha256: None,
            grants: Grants::default(),
            settings: vec![
                ("tools", serde_json::json!(["task_*"])),
                ("order", 7.into()),
                (
                    "config",
                    serde_json::json!({"calls": 3, "of": "actor", "x": [1.5, {"y": true}]}),
                ),
            ],
        };
        let added = with(MINE, &limit, false).unwrap();
        check(
            added.strip_prefix(MINE.trim_end()).unwrap(),
            &expect![[r#"


                [policies.limit]
                source = "builtin:rate-limit"
                tools = ["task_*"]
                order = 7
                config = { calls = 3, of = "actor", x = [1.5, { y = true }] }
            "#]],
        );
        let without = without(&added, Section::Policies, "limit").unwrap();
        assert_eq!(without.trim_end(), MINE.trim_end());
        let null = Entry {
            settings: vec![("config", serde_json::json!({"a": null}))],
            ..limit
        };
        assert_eq!(with("", &null, false), Err(EditError::Null));
    }

    #[test]
    fn tables_written_in_one_line_are_changed_too() {
        let text = "packs = { other = { enabled = false } }\n";
        let added = with(text, &hello(), false).unwrap();
        let config = Config::parse(&added, Path::new("/etc/tollgate.toml")).unwrap();
        assert_eq!(config.packs["hello"].grants, hello().grants);
        assert_eq!(config.packs["other"].enabled, Some(false));
        let removed = without(&added, Section::Packs, "hello").unwrap();
        assert_eq!(Config::parse(&removed, Path::new("x")).unwrap().packs.len(), 1);
        assert!(matches!(
            with("packs = 1", &hello(), true),
            Err(EditError::Unreadable(_))
        ));
    }
}
