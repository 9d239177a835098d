//! Queries for PostgreSQL.

use std::fmt::Write as _;

use super::Kind;
use super::difference::{Difference, Result, other};
use super::printer::{Form, Printed, Printer};
use super::scope::{Level, Out, has_aggregate, has_query};
use crate::tree::{Body, Compound, Direction, Expr, Item, Order, Part, Query, Select};

/// Part of a query, before the kinds of all parts are known.
#[derive(Clone)]
pub(super) enum Shape {
    Select(Box<Parts>),
    Values(Vec<Vec<Printed>>),
}

/// Printed pieces of a SELECT.
#[derive(Clone)]
pub(super) struct Parts {
    distinct: bool,
    items: Vec<Printed>,
    /// Clauses from FROM to HAVING.
    tail: String,
    order: String,
}

impl Shape {
    pub(super) fn rows(&self) -> Vec<&[Printed]> {
        match self {
            Shape::Select(parts) => vec![&parts.items],
            Shape::Values(rows) => rows.iter().map(|row| &row[..]).collect(),
        }
    }
}

impl Printer<'_> {
    /// Top-level query, with the kinds of its results.
    pub(super) fn top(&mut self, tree: &Query) -> Result<(String, Vec<Kind>)> {
        let (sql, columns) = self.query(tree)?;
        Ok((sql, self.result(&columns)?))
    }

    pub(super) fn result(&mut self, columns: &[Out]) -> Result<Vec<Kind>> {
        let kinds = columns
            .iter()
            .map(|out| self.kind(&Printed::new(String::new(), out.form, true)));
        kinds.collect()
    }

    /// Query with its result columns, which are named `c1`, `c2` and so on.
    pub(super) fn query(&mut self, tree: &Query) -> Result<(String, Vec<Out>)> {
        let Query {
            with,
            body,
            order_by,
            limit,
            offset,
        } = tree;
        let given = self.given.len();
        let mut sql = self.with(with.as_ref())?;
        let last = body.rest.last().map_or(&body.first, |(_, part)| part);
        let bare = order_by.is_empty() && limit.is_none();
        if matches!(last, Part::Values(_)) && !bare {
            return other("ORDER BY and LIMIT come after SELECT, and SQLite takes none after VALUES");
        }
        let (body, columns) = self.body(body, order_by)?;
        sql.push_str(&body);
        if let Some(limit) = limit {
            let limit = self.limit(limit, "LIMIT")?;
            let _ = write!(sql, " LIMIT nullif(greatest({limit}, -1), -1)");
        }
        if let Some(offset) = offset {
            let offset = self.limit(offset, "OFFSET")?;
            let _ = write!(sql, " OFFSET greatest({offset}, 0)");
        }
        self.given.truncate(given);
        Ok((sql, columns))
    }

    /// LIMIT or OFFSET. NULL is an error on SQLite, and no limit on PostgreSQL.
    fn limit(&mut self, tree: &Expr, what: &'static str) -> Result<String> {
        let mut plain = true;
        super::scope::each(tree, &mut |part| {
            plain &= match part {
                Expr::Number(_) | Expr::Parameter(_) | Expr::Negative(_) => true,
                Expr::Binary { operator, .. } => {
                    use crate::tree::Operator::{Minus, Plus, Times};
                    matches!(operator, Plus | Minus | Times)
                }
                _ => false,
            };
        });
        if !plain {
            return other(format!("{what} takes a number, a parameter, or a sum of them"));
        }
        let value = self.requiring(tree, |printer| printer.expr(tree))?;
        self.exactly(value, Kind::Integer, what)
    }

    fn body(&mut self, tree: &Body, order: &[Order]) -> Result<(String, Vec<Out>)> {
        let Body { first, rest } = tree;
        let alone = rest.is_empty();
        let mut names = Vec::new();
        let mut shapes = Vec::new();
        let parts = [first].into_iter().chain(rest.iter().map(|(_, part)| part));
        for (place, part) in parts.enumerate() {
            let (shape, said) = self.part(part, if alone { order } else { &[] })?;
            if place == 0 {
                names = said;
            }
            shapes.push(shape);
        }
        let columns = self.columns(&shapes, names)?;
        let compounds = rest.iter().map(|(compound, _)| *compound);
        let mut sql = self.joined(shapes, compounds, &columns)?;
        if !alone {
            sql.push_str(&self.order_of_columns(order, &columns)?);
        }
        Ok((sql, columns))
    }

    /// Parts of a compound query with their operators.
    pub(super) fn joined(
        &mut self,
        shapes: Vec<Shape>,
        compounds: impl IntoIterator<Item = Compound>,
        columns: &[Out],
    ) -> Result<String> {
        let mut sql = String::new();
        let mut compounds = compounds.into_iter();
        for (place, shape) in shapes.into_iter().enumerate() {
            if place > 0 {
                // Left-associative, as the reader allows: INTERSECT follows only INTERSECT.
                sql.push_str(match compounds.next() {
                    Some(Compound::UnionAll) => " UNION ALL ",
                    Some(Compound::Except) => " EXCEPT ",
                    Some(Compound::Intersect) => " INTERSECT ",
                    Some(Compound::Union) | None => " UNION ",
                });
            }
            let part = self.shaped(shape, columns)?;
            sql.push_str(&part);
        }
        Ok(sql)
    }

    /// Result columns of the parts, with one kind each.
    pub(super) fn columns(&mut self, shapes: &[Shape], names: Vec<Option<String>>) -> Result<Vec<Out>> {
        let rows: Vec<&[Printed]> = shapes.iter().flat_map(Shape::rows).collect();
        let width = rows.first().map_or(0, |row| row.len());
        if rows.iter().any(|row| row.len() != width) {
            return other("combined queries, and rows of VALUES, must have the same number of columns");
        }
        let columns = (0..width).map(|place| {
            let column: Vec<Printed> = rows.iter().map(|row| row[place].clone()).collect();
            let form = match self.unify(&column, "a column of the result", false)? {
                Form::Truth => Form::Of(Kind::Integer),
                Form::Null => Form::Of(Kind::Text),
                form => form,
            };
            Ok(Out {
                name: names.get(place).cloned().flatten(),
                sql: format!("c{}", place + 1),
                form,
                nullable: column.iter().any(|value| value.nullable),
            })
        });
        columns.collect()
    }

    fn shaped(&mut self, shape: Shape, columns: &[Out]) -> Result<String> {
        let mut row = |values: Vec<Printed>| {
            let values = values
                .into_iter()
                .zip(columns)
                .map(|(value, column)| match column.form {
                    Form::Of(kind) => self.exactly(value, kind, "a column of the result"),
                    _ => Ok(value.sql),
                });
            Ok(values.collect::<Result<Vec<_>>>()?.join(", "))
        };
        match shape {
            Shape::Select(parts) => {
                let Parts {
                    distinct,
                    items,
                    tail,
                    order,
                } = *parts;
                let distinct = if distinct { "DISTINCT " } else { "" };
                Ok(format!("SELECT {distinct}{}{tail}{order}", row(items)?))
            }
            Shape::Values(rows) => {
                let rows = rows.into_iter().map(|values| Ok(format!("({})", row(values)?)));
                Ok(format!("VALUES {}", rows.collect::<Result<Vec<_>>>()?.join(", ")))
            }
        }
    }

    /// Part of a query, and the names of its columns.
    pub(super) fn part(&mut self, tree: &Part, order: &[Order]) -> Result<(Shape, Vec<Option<String>>)> {
        self.levels.push(Level::default());
        let printed = match tree {
            Part::Select(select) => self.select(select, order),
            Part::Values(rows) => {
                let rows = rows
                    .iter()
                    .map(|row| row.iter().map(|value| self.expr(value)).collect());
                rows.collect::<Result<_>>()
                    .map(|rows| (Shape::Values(rows), Vec::new()))
            }
        };
        self.levels.pop();
        printed
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn select(&mut self, tree: &Select, order: &[Order]) -> Result<(Shape, Vec<Option<String>>)> {
        let Select {
            distinct,
            results,
            from,
            condition,
            group_by: _,
            having,
        } = tree;
        let aliases: Vec<String> = results.iter().filter_map(alias).collect();
        self.level().aliases.clone_from(&aliases);
        let mut tail = self.from(from)?;
        if let Some(condition) = condition {
            let condition = self.expr(condition)?;
            let _ = write!(tail, " WHERE {}", self.condition(condition)?);
        }
        tail.push_str(&self.group(tree, order)?);
        let level = self.level();
        level.aggregates = true;
        if let Some(having) = having {
            let having = self.expr(having)?;
            let _ = write!(tail, " HAVING {}", self.condition(having)?);
        }
        self.level().windows = true;
        self.level().aliases.clear();
        let (names, items): (Vec<_>, Vec<_>) = self.items(results)?.into_iter().unzip();
        self.level().aliases = aliases;
        let order = self.order_of_select(order, tree, &items)?;
        let parts = Parts {
            distinct: *distinct,
            items,
            tail,
            order,
        };
        Ok((Shape::Select(Box::new(parts)), names))
    }

    /// GROUP BY. From here on, columns next to aggregates must be keys.
    fn group(&mut self, tree: &Select, order: &[Order]) -> Result<String> {
        let items = tree.results.iter().filter_map(|item| match item {
            Item::One { value, .. } => Some(value),
            Item::All | Item::AllOf(_) => None,
        });
        let aggregates = items
            .chain(&tree.having)
            .chain(order.iter().map(|term| &term.value));
        let aggregates = aggregates.map(has_aggregate).fold(false, |all, one| all | one);
        if tree.group_by.is_empty() {
            if aggregates || tree.having.is_some() {
                self.level().keys = Some(Vec::new());
            }
            return Ok(String::new());
        }
        let mut keys = Vec::new();
        let mut printed = Vec::new();
        for key in &tree.group_by {
            let key = self.key(key, &tree.results)?;
            if has_query(&key) {
                return other("GROUP BY cannot contain a subquery; compute its value in a query in FROM");
            }
            let value = self.expr(&key)?;
            self.kind(&value)?;
            if matches!(
                key,
                Expr::Text(_) | Expr::Null | Expr::Boolean(_) | Expr::Parameter(_) | Expr::Blob(_)
            ) {
                return other("GROUP BY takes columns and expressions of them");
            }
            printed.push(value.sql);
            keys.push(key);
        }
        let level = self.level();
        level.key_columns = keys.iter().filter_map(|key| level.place(key)).collect();
        level.keys = Some(keys);
        Ok(format!(" GROUP BY {}", printed.join(", ")))
    }

    /// Key of GROUP BY: the position of a result, a column, an alias, or an expression.
    fn key(&mut self, key: &Expr, results: &[Item]) -> Result<Expr> {
        match key {
            Expr::Number(digits) => match digits
                .parse::<usize>()
                .ok()
                .and_then(|place| results.get(place.wrapping_sub(1)))
            {
                Some(Item::One { value, .. }) => Ok(value.clone()),
                _ => other("a number in GROUP BY must be the position of a result other than *"),
            },
            Expr::Column { table: None, name } if self.column(None, &name.folded()).is_err() => {
                let named = results.iter().find_map(|item| match item {
                    Item::One {
                        value,
                        alias: Some(alias),
                    } if alias.folded() == name.folded() => Some(value),
                    _ => None,
                });
                named
                    .cloned()
                    .ok_or_else(|| Difference::NoColumn(name.as_str().to_owned()))
            }
            key => Ok(key.clone()),
        }
    }

    /// Result columns with their names.
    pub(super) fn items(&mut self, tree: &[Item]) -> Result<Vec<(Option<String>, Printed)>> {
        let mut items = Vec::new();
        for item in tree {
            match item {
                Item::All => items.extend(self.every(None)?),
                Item::AllOf(table) => items.extend(self.every(Some(&table.folded()))?),
                Item::One { value, alias } => {
                    let name = match (alias, value) {
                        (Some(alias), _) | (None, Expr::Column { name: alias, .. }) => Some(alias.folded()),
                        _ => None,
                    };
                    items.push((name, self.expr(value)?));
                }
            }
        }
        if items.len() > crate::MAX_COLUMNS {
            return other(format!("a result has at most {} columns", crate::MAX_COLUMNS));
        }
        Ok(items)
    }

    fn every(&mut self, table: Option<&str>) -> Result<Vec<(Option<String>, Printed)>> {
        let level = self.level();
        if level.keys.is_some() {
            return Err(Difference::Bare("*".to_owned()));
        }
        level.all(table)
    }

    /// ORDER BY of one SELECT: by its results, or by any expression over its tables.
    fn order_of_select(&mut self, order: &[Order], tree: &Select, items: &[Printed]) -> Result<String> {
        let mut terms = Vec::new();
        for term in order {
            let place = match &term.value {
                Expr::Number(digits) => Some(ordinal(digits, items.len())?),
                Expr::Column { table: None, name } => {
                    let named = tree.results.iter().position(|item| match item {
                        Item::One {
                            alias: Some(alias), ..
                        } => alias.folded() == name.folded(),
                        _ => false,
                    });
                    // Positions match the results only if there is no * before them.
                    let plain = tree.results.len() == items.len();
                    match named {
                        Some(_) if !plain => return other("ORDER BY an alias goes without * before it"),
                        named => named,
                    }
                }
                _ => None,
            };
            let value = match place {
                Some(place) => items[place].clone(),
                None => self.expr(&term.value)?,
            };
            self.kind(&value)?;
            let place = place.or_else(|| {
                items
                    .iter()
                    .position(|item| tree.distinct && item.sql == value.sql)
            });
            let sql = match place {
                Some(place) => (place + 1).to_string(),
                None if tree.distinct => {
                    return other("ORDER BY after DISTINCT takes only columns of the result");
                }
                None => sorted_by(&term.value, value.sql)?,
            };
            terms.push(directed(sql, term, value.nullable));
        }
        Ok(by(" ORDER BY ", &terms))
    }

    /// ORDER BY of a compound query: by its columns.
    fn order_of_columns(&mut self, order: &[Order], columns: &[Out]) -> Result<String> {
        let mut terms = Vec::new();
        for term in order {
            let place = match &term.value {
                Expr::Number(digits) => Some(ordinal(digits, columns.len())?),
                Expr::Column { table: None, name } => columns
                    .iter()
                    .position(|column| column.name.as_ref() == Some(&name.folded())),
                _ => None,
            };
            let Some(place) = place else {
                return other("combined queries are ordered by names or positions of their results");
            };
            terms.push(directed((place + 1).to_string(), term, columns[place].nullable));
        }
        Ok(by(" ORDER BY ", &terms))
    }

    /// ORDER BY inside the parentheses of a function or window.
    pub(super) fn order_inside(&mut self, order: &[Order]) -> Result<String> {
        let mut terms = Vec::new();
        for term in order {
            let value = self.expr(&term.value)?;
            self.kind(&value)?;
            let sql = sorted_by(&term.value, value.sql)?;
            terms.push(directed(sql, term, value.nullable));
        }
        Ok(by(" ORDER BY ", &terms))
    }
}

pub(super) fn by(word: &str, terms: &[String]) -> String {
    if terms.is_empty() {
        return String::new();
    }
    format!("{word}{}", terms.join(", "))
}

fn ordinal(digits: &str, width: usize) -> Result<usize> {
    match digits.parse::<usize>() {
        Ok(place) if (1..=width).contains(&place) => Ok(place - 1),
        _ => other(format!(
            "a number in ORDER BY must be the position of a result, 1 to {width}"
        )),
    }
}

/// Sort expression. A constant sorts nothing, and PostgreSQL refuses some constants.
fn sorted_by(tree: &Expr, sql: String) -> Result<String> {
    let constant = match tree {
        Expr::Negative(value) => matches!(**value, Expr::Number(_)),
        tree => matches!(
            tree,
            Expr::Null | Expr::Boolean(_) | Expr::Number(_) | Expr::Text(_) | Expr::Blob(_)
        ),
    };
    if constant {
        return other("a constant in ORDER BY has no effect; remove it");
    }
    Ok(sql)
}

/// Sort term with its direction. NULL sorts first; PostgreSQL needs that stated if NULL is possible.
fn directed(sql: String, term: &Order, nullable: bool) -> String {
    let Order {
        value: _,
        direction,
        nulls_first,
    } = term;
    let down = match direction {
        Direction::Unsaid | Direction::Up => false,
        Direction::Down => true,
    };
    let direction = if down { " DESC" } else { "" };
    let nulls = match (nulls_first, nullable) {
        (Some(true), _) => " NULLS FIRST",
        (Some(false), _) => " NULLS LAST",
        (None, true) if down => " NULLS LAST",
        (None, true) => " NULLS FIRST",
        (None, false) => "",
    };
    format!("{sql}{direction}{nulls}")
}

/// Alias of a result column, in lower case.
fn alias(item: &Item) -> Option<String> {
    match item {
        Item::One {
            alias: Some(alias), ..
        } => Some(alias.folded()),
        Item::One { alias: None, .. } | Item::All | Item::AllOf(_) => None,
    }
}
