//! Parsing of the tables in a case file, reporting every mistake at once.

use std::cell::RefCell;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::Problem;

/// Text of a case file, and the mistakes found so far.
pub(super) struct Sheet<'t> {
    text: &'t str,
    problems: RefCell<Vec<Problem>>,
}

/// Table with a second table for absent keys.
#[derive(Clone, Copy)]
pub(super) struct Fields<'s, 'd> {
    sheet: &'s Sheet<'s>,
    /// Name of the table in messages.
    name: &'s str,
    at: usize,
    table: &'d DeTable<'d>,
    default: Option<&'d DeTable<'d>>,
}

type Entry<'d> = &'d Spanned<DeValue<'d>>;

impl<'t> Sheet<'t> {
    pub(super) fn new(text: &'t str, problems: Vec<Problem>) -> Sheet<'t> {
        Sheet {
            text,
            problems: RefCell::new(problems),
        }
    }

    pub(super) fn report(&self, at: usize, message: String) {
        let problem = Problem::at(self.text, at, message);
        self.problems.borrow_mut().push(problem);
    }

    /// All mistakes, in the order of the file.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    }
}

impl<'s, 'd> Fields<'s, 'd> {
    pub(super) fn new(
        sheet: &'s Sheet<'s>,
        name: &'s str,
        at: usize,
        table: &'d DeTable<'d>,
    ) -> Fields<'s, 'd> {
        Fields {
            sheet,
            name,
            at,
            table,
            default: None,
        }
    }

    pub(super) fn or(self, default: Option<&'d DeTable<'d>>) -> Fields<'s, 'd> {
        Fields { default, ..self }
    }

    pub(super) fn sheet(&self) -> &'s Sheet<'s> {
        self.sheet
    }

    /// Reports a mistake in the table as a whole.
    pub(super) fn report(&self, message: &str) {
        self.sheet.report(self.at, format!("{}: {message}", self.name));
    }

    /// Reports every key that is not one of these.
    pub(super) fn only(&self, legal: &[&str]) {
        for name in self.table.keys() {
            let key = name.get_ref().as_ref();
            if legal.contains(&key) {
                continue;
            }
            let near = legal
                .iter()
                .map(|known| (strsim::damerau_levenshtein(known, key), known))
                .min();
            let hint = match near {
                Some((distance, near)) if distance <= 2 => format!("did you mean {near}?"),
                _ => format!("valid keys here: {}", legal.join(", ")),
            };
            let message = format!("{}: there is no key {key:?}; {hint}", self.name);
            self.sheet.report(name.span().start, message);
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Value under a key, and its position.
    pub(super) fn entry(&self, key: &str) -> Option<Entry<'d>> {
        let default = || self.default.and_then(|default| default.get(key));
        self.table.get(key).or_else(default)
    }

    /// Converts an entry with a function, and reports entries that cannot be converted.
    pub(super) fn read<T>(
        &self,
        key: &str,
        wanted: &str,
        reader: impl FnOnce(&'d DeValue<'d>) -> Option<T>,
    ) -> Option<T> {
        let entry = self.entry(key)?;
        let read = reader(entry.get_ref());
        if read.is_none() {
            let message = format!("{}: {key} must be {wanted}", self.name);
            self.sheet.report(entry.span().start, message);
        }
        read
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        let text = |value: &DeValue<'_>| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.read(key, "a string", text)
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.read(key, "true or false", DeValue::as_bool)
    }

    pub(super) fn number(&self, key: &str, legal: Range<i64>) -> Option<i64> {
        let wanted = format!("a whole number from {} to {}", legal.start, legal.end - 1);
        let whole = |value: &DeValue<'_>| whole(value).filter(|number| legal.contains(number));
        self.read(key, &wanted, whole)
    }

    pub(super) fn table(&self, key: &str) -> Option<Map<String, Value>> {
        self.read(key, "a table", |value| match json(value) {
            Value::Object(table) => Some(table),
            _ => None,
        })
    }

    /// A text, or a list of them.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        let texts = |value: &DeValue<'_>| match json(value) {
            Value::String(text) => Some(vec![text]),
            Value::Array(list) => {
                let texts = list.into_iter().map(|text| text.as_str().map(str::to_owned));
                texts.collect()
            }
            _ => None,
        };
        self.read(key, "a string, or a list of strings", texts)
            .unwrap_or_default()
    }

    /// Tables of a list, with their positions.
    pub(super) fn tables(&self, key: &str) -> Vec<(usize, &'d DeTable<'d>)> {
        let list = self.read(key, "a list of tables", |value| value.as_array());
        let tables = list.into_iter().flatten().filter_map(|entry| {
            let at = entry.span().start;
            let table = entry.get_ref().as_table();
            if table.is_none() {
                self.sheet
                    .report(at, format!("{}: {key} must contain only tables", self.name));
            }
            Some((at, table?))
        });
        tables.collect()
    }
}

fn whole(value: &DeValue<'_>) -> Option<i64> {
    let DeValue::Integer(number) = value else {
        return None;
    };
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

/// A TOML value as JSON; dates become text.
pub(super) fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(_) => whole(value).map_or(Value::Null, Value::from),
        DeValue::Float(number) => {
            let number = number.as_str().replace('_', "").parse::<f64>();
            number.map_or(Value::Null, Value::from)
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(list) => list.iter().map(|entry| json(entry.get_ref())).collect(),
        DeValue::Table(table) => {
            let entries = table
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
            Value::Object(entries.collect())
        }
    }
}
