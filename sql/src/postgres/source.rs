//! FROM for PostgreSQL.

use super::catalog::Relation;
use super::difference::{Difference, Result, other};
use super::printer::{Printed, Printer};
use super::scope::{Later, Level, Merged, Out, Source};
use crate::tree::{self, Expr, FromItem, Join, JoinKind, Name, On, Operator};

impl Printer<'_> {
    /// FROM, whose tables are added to the innermost query. A comma is a join like any other: from the left.
    pub(super) fn from(&mut self, sources: &[tree::Source]) -> Result<String> {
        let mut sql = String::new();
        let mut later: Vec<Later> = sources
            .iter()
            .flat_map(|source| {
                std::iter::once(&source.first).chain(source.joins.iter().map(|join| &join.place))
            })
            .map(|place| self.later(place))
            .collect();
        later.reverse();
        for source in sources {
            let tree::Source { first, joins } = source;
            later.pop();
            sql.push_str(if sql.is_empty() { " FROM " } else { " CROSS JOIN " });
            let (place, first) = self.place(first)?;
            sql.push_str(&place);
            self.add(first);
            for join in joins {
                later.pop();
                sql.push_str(&self.join(join, &later)?);
            }
        }
        Ok(sql)
    }

    fn add(&mut self, source: Source) {
        if let Some(level) = self.levels.last_mut() {
            level.sources.push(source);
        }
    }

    /// A table of FROM, before it is printed.
    fn later(&self, place: &FromItem) -> Later {
        match place {
            FromItem::Table { name, alias } => {
                let said = alias.as_ref().unwrap_or(name).folded();
                let is_given = self.given.iter().any(|given| given.name == name.folded());
                let own = self.catalog.relation(&name.folded()).ok().filter(|_| !is_given);
                let names = |own: &Relation| own.fields.iter().map(|field| field.name.clone()).collect();
                Later {
                    name: Some(said),
                    columns: own.map(names),
                }
            }
            FromItem::Query { alias, .. } => Later {
                name: alias.as_ref().map(Name::folded),
                columns: None,
            },
        }
    }

    fn join(&mut self, tree: &Join, later: &[Later]) -> Result<String> {
        let Join { kind, place, on } = tree;
        let (place, mut source) = self.place(place)?;
        let nothing = *on == On::Nothing;
        let word = match kind {
            JoinKind::Inner if nothing => "CROSS JOIN",
            JoinKind::Inner => "JOIN",
            JoinKind::Left => "LEFT JOIN",
            JoinKind::Right => "RIGHT JOIN",
            JoinKind::Full => "FULL JOIN",
            JoinKind::Cross => "CROSS JOIN",
        };
        let reaches_back = matches!(kind, JoinKind::Right | JoinKind::Full);
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            source.columns.iter_mut().for_each(|out| out.nullable = true);
        }
        if reaches_back && let Some(level) = self.levels.last_mut() {
            let columns = level.sources.iter_mut().flat_map(|source| &mut source.columns);
            columns.for_each(|out| out.nullable = true);
            level
                .merged
                .iter_mut()
                .for_each(|merged| merged.value.nullable = true);
        }
        self.add(source);
        let on = match on {
            On::Nothing if word == "CROSS JOIN" => String::new(),
            On::Nothing => " ON true".to_owned(),
            On::Condition(condition) => {
                if *kind == JoinKind::Full && !self.is_of_equalities(condition) {
                    return other("FULL JOIN takes ON a.x = b.x, with AND between several");
                }
                if let Some(level) = self.levels.last_mut() {
                    level.later = later.to_vec();
                }
                let condition = self.expr(condition)?;
                if let Some(level) = self.levels.last_mut() {
                    level.later.clear();
                }
                format!(" ON {}", self.condition(condition)?)
            }
            On::Columns(columns) => self.using(columns, *kind)?,
        };
        Ok(format!(" {word} {place}{on}"))
    }

    /// True if a condition compares columns of the last table with columns of earlier tables.
    fn is_of_equalities(&self, condition: &Expr) -> bool {
        let Some(level) = self.levels.last() else {
            return false;
        };
        match condition {
            Expr::Binary {
                left,
                operator: Operator::And,
                right,
            } => self.is_of_equalities(left) && self.is_of_equalities(right),
            Expr::Binary {
                left,
                operator: Operator::Equal,
                right,
            } => match (level.place(left), level.place(right)) {
                (Some((one, _)), Some((two, _))) => one != two && one.max(two) + 1 == level.sources.len(),
                _ => false,
            },
            _ => false,
        }
    }

    /// USING: merges equal columns into one.
    fn using(&mut self, columns: &[Name], kind: JoinKind) -> Result<String> {
        let mut conditions = Vec::new();
        for name in columns {
            let name = name.folded();
            let Some(level) = self.levels.last() else { continue };
            let (left, mut sources) = level.before(&name)?;
            let last = level.sources.len() - 1;
            let column = level.sources[last]
                .columns
                .iter()
                .position(|out| out.name.as_ref() == Some(&name));
            let right = level.value(last, column.ok_or_else(|| Difference::NoColumn(name.clone()))?);
            let nullable = left.nullable || right.nullable;
            let mut values = self
                .unified(vec![left.clone(), right.clone()], "USING", false)?
                .values;
            let (Some(second), Some(first)) = (values.pop(), values.pop()) else {
                continue;
            };
            conditions.push(format!("{first} = {second}"));
            let value = match kind {
                JoinKind::Right => right,
                JoinKind::Full => Printed::new(format!("COALESCE({first}, {second})"), left.form, nullable),
                JoinKind::Inner | JoinKind::Left | JoinKind::Cross => left,
            };
            sources.push(last);
            if let Some(level) = self.levels.last_mut() {
                level.merged.push(Merged { name, value, sources });
            }
        }
        Ok(format!(" ON ({})", conditions.join(" AND ")))
    }

    fn place(&mut self, tree: &FromItem) -> Result<(String, Source)> {
        match tree {
            FromItem::Table { name, alias } => {
                let said = alias.as_ref().unwrap_or(name).folded();
                self.table(&name.folded(), said)
            }
            FromItem::Query { query, alias } => {
                // A subquery in FROM does not see the tables next to it.
                let level = self.levels.last_mut().map(std::mem::take);
                let printed = self.query(query);
                if let (Some(last), Some(level)) = (self.levels.last_mut(), level) {
                    *last = level;
                }
                let (sql, columns) = printed?;
                let name = self.fresh('s');
                let place = format!("({sql}) AS {name} ({})", names(&columns));
                Ok((place, source(name, alias.as_ref().map(Name::folded), columns)))
            }
        }
    }

    /// A table of WITH, or an own table.
    fn table(&mut self, name: &str, said: String) -> Result<(String, Source)> {
        let alias = self.fresh('s');
        if let Some(at) = self.given.iter().rposition(|given| given.name == name) {
            let depth = self.levels.len();
            let given = &mut self.given[at];
            if let Some(recursion) = &mut given.recursion {
                recursion.named += 1;
                if recursion.level != Some(depth) || recursion.named > 1 {
                    return other(
                        "a table of WITH RECURSIVE must name itself once, in the FROM of its second query",
                    );
                }
            }
            let place = format!("{} AS {alias}", given.sql);
            let columns = given.columns.clone();
            let reads = given.reads.clone();
            self.touched.extend(reads);
            return Ok((place, source(alias, Some(said), columns)));
        }
        let place = format!("{} AS {alias}", self.catalog.name(name));
        Ok((place, self.own(name, alias, said)?))
    }

    /// Own table as a source, with its printed name.
    pub(super) fn own(&mut self, name: &str, alias: String, said: String) -> Result<Source> {
        let relation = self.catalog.relation(name)?;
        self.touched.push(name.to_owned());
        let key = relation.key.iter().filter_map(|column| relation.place(column));
        Ok(Source {
            name: Some(said),
            sql: alias,
            columns: relation.columns(),
            apart: false,
            key: key.collect(),
        })
    }
}

impl Level {
    /// Column with a name in the tables before the last, and the tables that it comes from.
    fn before(&self, name: &str) -> Result<(Printed, Vec<usize>)> {
        if let Some(merged) = self.merged.iter().rev().find(|merged| merged.name == name) {
            return Ok((merged.value.clone(), merged.sources.clone()));
        }
        let last = self.sources.len() - 1;
        let sources = self.sources[..last].iter().enumerate();
        let mut found = sources.filter_map(|(place, source)| {
            let column = source
                .columns
                .iter()
                .position(|out| out.name.as_deref() == Some(name))?;
            Some((place, column))
        });
        match (found.next(), found.next()) {
            (Some((source, column)), None) => Ok((self.value(source, column), vec![source])),
            (Some(_), Some(_)) => Err(Difference::Ambiguous(name.to_owned())),
            (None, _) => Err(Difference::NoColumn(name.to_owned())),
        }
    }
}

pub(super) fn names(columns: &[Out]) -> String {
    let names: Vec<String> = columns.iter().map(|out| format!("\"{}\"", out.sql)).collect();
    names.join(", ")
}

fn source(sql: String, name: Option<String>, columns: Vec<Out>) -> Source {
    Source {
        name,
        sql,
        columns,
        apart: false,
        key: Vec::new(),
    }
}
