//! Name resolution of columns.

use super::difference::{Difference, Result, other};
use super::printer::{Form, Printed, Printer};
use crate::functions::{self, Use};
use crate::tree::{Expr, Function};

/// A result column of a table in FROM.
#[derive(Debug, Clone)]
pub(super) struct Out {
    /// Name in lower case. `None` if it cannot be referred to.
    pub(super) name: Option<String>,
    /// Printed name.
    pub(super) sql: String,
    pub(super) form: Form,
    pub(super) nullable: bool,
}

/// A table in FROM.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Alias or name, in lower case.
    pub(super) name: Option<String>,
    /// Printed name.
    pub(super) sql: String,
    pub(super) columns: Vec<Out>,
    /// True if its columns need a qualifier: `excluded`.
    pub(super) apart: bool,
    /// Positions of its primary key, if it is an own table.
    pub(super) key: Vec<usize>,
}

impl Source {
    fn find(&self, column: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|out| out.name.as_deref() == Some(column))
    }
}

/// A column that USING merges from two.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) name: String,
    pub(super) value: Printed,
    /// Tables that it comes from.
    pub(super) sources: Vec<usize>,
}

/// A query, as seen from the expressions in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    pub(super) sources: Vec<Source>,
    pub(super) merged: Vec<Merged>,
    /// GROUP BY keys, if rows are grouped.
    pub(super) keys: Option<Vec<Expr>>,
    /// Columns that are keys, by table and position.
    pub(super) key_columns: Vec<(usize, usize)>,
    /// True inside an aggregate or a key, where any column may be used.
    pub(super) free: bool,
    /// True if aggregates are allowed here.
    pub(super) aggregates: bool,
    /// True if window functions are allowed here.
    pub(super) windows: bool,
    /// Aliases of results, in lower case. SQLite resolves a name to an alias before it searches enclosing queries;
    /// PostgreSQL does not. Empty while the results themselves are printed.
    pub(super) aliases: Vec<String>,
    /// Tables of FROM that follow, while a join condition is printed. SQLite finds columns in them, too.
    pub(super) later: Vec<Later>,
}

/// A table of FROM that is not printed yet.
#[derive(Debug, Clone)]
pub(super) struct Later {
    /// Alias or name, in lower case.
    pub(super) name: Option<String>,
    /// Names of its columns. `None` if they are not known yet.
    pub(super) columns: Option<Vec<String>>,
}

impl Later {
    fn may_have(&self, table: Option<&str>, column: &str) -> bool {
        let has = |columns: &Vec<String>| columns.iter().any(|name| name == column);
        match table {
            Some(table) => self.name.as_deref() == Some(table),
            None => self.columns.as_ref().is_none_or(has),
        }
    }
}

/// A table of WITH.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) sql: String,
    pub(super) columns: Vec<Out>,
    /// Own tables that it reads.
    pub(super) reads: Vec<String>,
    /// State of a recursive table while it is printed: how often it is named, and where it may be.
    pub(super) recursion: Option<Recursion>,
}

/// State of a recursive table of WITH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Recursion {
    pub(super) named: usize,
    /// Level of the query whose FROM may name it. `None` where it must not be named.
    pub(super) level: Option<usize>,
}

impl Printer<'_> {
    /// Column with a name, from the innermost query that has one.
    pub(super) fn column(&mut self, table: Option<&str>, name: &str) -> Result<Printed> {
        let mut is_shadowed = false;
        for level in (0..self.levels.len()).rev() {
            if let Some(found) = self.column_of(level, table, name)? {
                // The engines would resolve it to different columns.
                return match is_shadowed {
                    true => Err(Difference::Ambiguous(name.to_owned())),
                    false => Ok(found),
                };
            }
            is_shadowed |= self.levels[level].shadows(table, name);
        }
        Err(Difference::NoColumn(match table {
            Some(table) => format!("{table}.{name}"),
            None => name.to_owned(),
        }))
    }

    fn column_of(&self, at: usize, table: Option<&str>, name: &str) -> Result<Option<Printed>> {
        let level = &self.levels[at];
        let merged = level.merged.iter().rev().find(|merged| merged.name == name);
        if let (None, Some(merged)) = (table, merged) {
            if level.keys.is_some() && !level.free {
                return Err(Difference::Bare(name.to_owned()));
            }
            return Ok(Some(merged.value.clone()));
        }
        let named = |source: &Source| match table {
            Some(table) => source.name.as_deref() == Some(table),
            None => !source.apart,
        };
        let sources = level
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| named(source));
        let mut found = sources.filter_map(|(place, source)| Some((place, source.find(name)?)));
        let Some((source, column)) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            return Err(Difference::Ambiguous(name.to_owned()));
        }
        if !level.stands(source, column) {
            return Err(Difference::Bare(name.to_owned()));
        }
        Ok(Some(level.value(source, column)))
    }
}

impl Level {
    /// True if SQLite resolves the name here, but not to a column of the tables so far.
    fn shadows(&self, table: Option<&str>, name: &str) -> bool {
        let is_alias = table.is_none() && self.aliases.iter().any(|alias| alias == name);
        is_alias || self.later.iter().any(|later| later.may_have(table, name))
    }

    /// True if a column has a single value in each result row.
    fn stands(&self, source: usize, column: usize) -> bool {
        if self.keys.is_none() || self.free || self.key_columns.contains(&(source, column)) {
            return true;
        }
        let key = &self.sources[source].key;
        !key.is_empty()
            && key
                .iter()
                .all(|place| self.key_columns.contains(&(source, *place)))
    }

    pub(super) fn value(&self, source: usize, column: usize) -> Printed {
        let source = &self.sources[source];
        let out = &source.columns[column];
        let sql = match source.sql.is_empty() {
            true => format!("\"{}\"", out.sql),
            false => format!("{}.\"{}\"", source.sql, out.sql),
        };
        Printed::new(sql, out.form, out.nullable)
    }

    /// Table and position of the column that an expression is, in this query alone.
    pub(super) fn place(&self, tree: &Expr) -> Option<(usize, usize)> {
        let Expr::Column { table, name } = tree else {
            return None;
        };
        let table = table.as_ref().map(|table| table.folded());
        let merged = self
            .merged
            .iter()
            .rev()
            .find(|merged| merged.name == name.folded());
        if let (None, Some(merged)) = (&table, merged) {
            // A merged column is printed as one of the two columns, unless it is computed from both.
            return merged.sources.iter().find_map(|&place| {
                let column = self.sources.get(place)?.find(&merged.name)?;
                (self.value(place, column).sql == merged.value.sql).then_some((place, column))
            });
        }
        let sources = self.sources.iter().enumerate();
        let mut named = sources.filter(|(_, source)| match &table {
            Some(table) => source.name.as_ref() == Some(table),
            None => !source.apart,
        });
        named.find_map(|(place, source)| Some((place, source.find(&name.folded())?)))
    }

    /// All columns of `*` or of a table's `*`, with their names.
    pub(super) fn all(&self, table: Option<&str>) -> Result<Vec<(Option<String>, Printed)>> {
        let mut all = Vec::new();
        for (place, source) in self.sources.iter().enumerate() {
            let named = table.is_none_or(|table| source.name.as_deref() == Some(table));
            if source.apart || !named {
                continue;
            }
            for column in 0..source.columns.len() {
                let name = source.columns[column].name.clone();
                let merged = self.merged.iter().rev().find(|merged| {
                    table.is_none() && Some(&merged.name) == name.as_ref() && merged.sources.contains(&place)
                });
                match merged {
                    None => all.push((name, self.value(place, column))),
                    // Shown once, at the position of its first table.
                    Some(merged) if merged.sources[0] == place => all.push((name, merged.value.clone())),
                    Some(_) => {}
                }
            }
        }
        match table {
            Some(table) if all.is_empty() => Err(Difference::NoTable(table.to_owned())),
            _ if all.is_empty() => other("* needs a table"),
            _ => Ok(all),
        }
    }
}

/// Visits the parts of an expression, without those of its subqueries.
pub(super) fn each(tree: &Expr, look: &mut dyn FnMut(&Expr)) {
    look(tree);
    for part in parts(tree) {
        each(part, look);
    }
}

fn parts(tree: &Expr) -> Vec<&Expr> {
    match tree {
        Expr::Null
        | Expr::Boolean(_)
        | Expr::Number(_)
        | Expr::Text(_)
        | Expr::Blob(_)
        | Expr::Parameter(_)
        | Expr::Column { .. }
        | Expr::Exists(_)
        | Expr::Subquery(_) => Vec::new(),
        Expr::Row(values) => values.iter().collect(),
        Expr::Not(value)
        | Expr::Negative(value)
        | Expr::IsNull { value, .. }
        | Expr::Is { value, .. }
        | Expr::InQuery { value, .. }
        | Expr::Cast { value, .. } => vec![value],
        Expr::Binary { left, right, .. } | Expr::Distinct { left, right, .. } => vec![left, right],
        Expr::In { value, list, .. } => [&**value].into_iter().chain(list).collect(),
        Expr::Between { value, low, high, .. } => vec![value, low, high],
        Expr::Like { value, pattern, .. } => vec![value, pattern],
        Expr::Case {
            operand,
            branches,
            otherwise,
        } => {
            let pairs = branches
                .iter()
                .flat_map(|(condition, result)| [condition, result]);
            let around = operand.iter().chain(otherwise).map(|part| &**part);
            around.chain(pairs).collect()
        }
        Expr::Function(function) => function_parts(function),
    }
}

fn function_parts(function: &Function) -> Vec<&Expr> {
    let mut parts: Vec<&Expr> = function.arguments.iter().collect();
    parts.extend(function.order_by.iter().map(|term| &term.value));
    parts.extend(&function.filter);
    if let Some(window) = &function.over {
        parts.extend(&window.partition_by);
        parts.extend(window.order_by.iter().map(|term| &term.value));
    }
    parts
}

/// True if a function is an aggregate.
pub(super) fn is_aggregate(function: &Function) -> bool {
    let used = functions::find(function.name).map(|entry| entry.used);
    function.over.is_none()
        && (used == Some(Use::Aggregate) || used == Some(Use::Both) && function.arguments.len() == 1)
}

/// True if an expression has an aggregate of its own query.
pub(super) fn has_aggregate(tree: &Expr) -> bool {
    let mut found = false;
    each(tree, &mut |part| {
        found |= matches!(part, Expr::Function(function) if is_aggregate(function));
    });
    found
}

/// True if an expression has a subquery.
pub(super) fn has_query(tree: &Expr) -> bool {
    let mut found = false;
    each(tree, &mut |part| {
        found |= matches!(part, Expr::Exists(_) | Expr::Subquery(_) | Expr::InQuery { .. });
    });
    found
}
