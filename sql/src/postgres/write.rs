//! INSERT, UPDATE and DELETE for PostgreSQL.

use std::fmt::Write as _;

use super::Kind;
use super::catalog::Field;
use super::difference::{Result, other};
use super::printer::{Form, Printed, Printer};
use super::scope::{Level, Source, has_query};
use super::source::names;
use crate::tree::{Assignment, Body, Conflict, Delete, Expr, Insert, Item, Name, Part, Query, Update};

impl Printer<'_> {
    pub(super) fn insert(&mut self, tree: &Insert) -> Result<(String, Vec<Kind>)> {
        let Insert {
            with,
            table: target,
            alias: said,
            columns,
            rows,
            conflict,
            returning,
        } = tree;
        let mut sql = self.with(with.as_ref())?;
        let table = target.folded();
        let fields = self.fields(&table, columns)?;
        let alias = self.fresh('s');
        let _ = write!(sql, "INSERT INTO {} AS {alias}", self.catalog.name(&table));
        match rows {
            None if !columns.is_empty() => return other("DEFAULT VALUES cannot follow a list of columns"),
            None => sql.push_str(" DEFAULT VALUES"),
            Some(rows) => {
                let columns: Vec<String> = fields.iter().map(|field| format!("\"{}\"", field.name)).collect();
                let rows = self.rows(rows, &fields)?;
                let _ = write!(sql, " ({}) {rows}", columns.join(", "));
            }
        }
        let said = said.as_ref().unwrap_or(target).folded();
        let source = self.own(&table, alias, said)?;
        if let Some(conflict) = conflict {
            sql.push_str(&self.conflict(conflict, &table, source.clone())?);
            // The server locks a row before it updates it, and the lock stays visible.
            let updates = conflict.update.is_some();
            self.is_new = updates.then(|| format!("({}.xmax = 0)", source.sql));
        }
        let columns = self.returning(returning, source, &mut sql)?;
        Ok((sql, columns))
    }

    /// Columns that get values.
    fn fields(&self, table: &str, columns: &[Name]) -> Result<Vec<Field>> {
        let relation = self.catalog.relation(table)?;
        if columns.is_empty() {
            return Ok(relation.fields.clone());
        }
        let fields = columns
            .iter()
            .map(|column| relation.field(&column.folded()).cloned());
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let twice =
            |(place, field): (usize, &Field)| fields[..place].iter().any(|before| before.name == field.name);
        if fields.iter().enumerate().any(twice) {
            return other("a column is set twice");
        }
        Ok(fields)
    }

    fn rows(&mut self, tree: &Query, fields: &[Field]) -> Result<String> {
        let Query {
            with: None,
            body: Body {
                first: Part::Values(rows),
                rest,
            },
            order_by,
            limit: None,
            offset: None,
        } = tree
        else {
            return self.rows_of_query(tree, fields);
        };
        if !rest.is_empty() || !order_by.is_empty() {
            return self.rows_of_query(tree, fields);
        }
        self.levels.push(Level::default());
        self.one_way_of_numbering(rows, fields)?;
        let rows = rows.iter().map(|row| {
            if row.len() != fields.len() {
                return other(format!("{} values are for {} columns", row.len(), fields.len()));
            }
            let values = row
                .iter()
                .zip(fields)
                .map(|(value, field)| self.cell(value, field));
            Ok(format!("({})", values.collect::<Result<Vec<_>>>()?.join(", ")))
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        self.levels.pop();
        Ok(format!("VALUES {}", rows.join(", ")))
    }

    /// Refuses an INSERT in which some rows have explicit numbers and others do not. SQLite continues after the
    /// highest number so far, and PostgreSQL after the last one that it assigned.
    fn one_way_of_numbering(&self, rows: &[Vec<Expr>], fields: &[Field]) -> Result<()> {
        let Some(at) = fields.iter().position(|field| field.numbered) else {
            return Ok(());
        };
        let mut has_none = rows.iter().map(|row| row.get(at) == Some(&Expr::Null));
        let first = has_none.next();
        match has_none.all(|none| Some(none) == first) {
            true => Ok(()),
            false => other(format!(
                "`{}` is given for some rows and NULL for others; insert them with two statements",
                fields[at].name
            )),
        }
    }

    fn cell(&mut self, value: &Expr, field: &Field) -> Result<String> {
        if field.numbered {
            if *value == Expr::Null {
                return Ok("DEFAULT".to_owned());
            }
            self.by_hand(field)?;
        }
        let value = self.expr(value)?;
        self.stored(value, field)
    }

    /// Refuses an explicit number, because PostgreSQL would assign it again.
    fn by_hand(&self, field: &Field) -> Result<()> {
        if self.migration {
            return Ok(());
        }
        other(format!(
            "`{}` numbers the rows, and PostgreSQL would assign a given number again; leave the column out, or number \
             rows in another column",
            field.name
        ))
    }

    fn rows_of_query(&mut self, tree: &Query, fields: &[Field]) -> Result<String> {
        let (sql, columns) = self.query(tree)?;
        if columns.len() != fields.len() {
            return other(format!(
                "{} values are for {} columns",
                columns.len(),
                fields.len()
            ));
        }
        let name = self.fresh('s');
        let mut values = Vec::new();
        for (column, field) in columns.iter().zip(fields) {
            if field.numbered {
                self.by_hand(field)?;
                if column.nullable {
                    return other(format!(
                        "`{}` numbers the rows, and this query may give NULL for it; leave the column out, or take numbers that are NOT NULL",
                        field.name
                    ));
                }
            }
            let value = Printed::new(format!("{name}.\"{}\"", column.sql), column.form, column.nullable);
            values.push(self.stored(value, field)?);
        }
        Ok(format!(
            "SELECT {} FROM ({sql}) AS {name} ({})",
            values.join(", "),
            names(&columns)
        ))
    }

    /// Value as a column stores it: integers become texts and floats.
    pub(super) fn stored(&mut self, value: Printed, field: &Field) -> Result<String> {
        let what = format!("the column `{}`", field.name);
        match field.kind {
            Kind::Text => self.text(value, &what),
            Kind::Real => self.real(value, &what),
            kind => self.exactly(value, kind, &what),
        }
    }

    fn conflict(&mut self, tree: &Conflict, table: &str, target: Source) -> Result<String> {
        let Conflict { columns, update } = tree;
        let columns: Vec<String> = columns.iter().map(Name::folded).collect();
        if !columns.is_empty() && !self.catalog.is_key(table, &columns) {
            return other(format!(
                "ON CONFLICT takes the columns of a key, and `{}` has no key of these columns; add a UNIQUE index",
                table
            ));
        }
        let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let mut sql = " ON CONFLICT".to_owned();
        if !quoted.is_empty() {
            let _ = write!(sql, " ({})", quoted.join(", "));
        }
        let Some((assignments, condition)) = update else {
            sql.push_str(" DO NOTHING");
            return Ok(sql);
        };
        let excluded = Source {
            name: Some("excluded".to_owned()),
            sql: "excluded".to_owned(),
            apart: true,
            ..target.clone()
        };
        self.levels.push(Level {
            sources: vec![target, excluded],
            ..Level::default()
        });
        let set = self.assignments(assignments, table)?;
        let _ = write!(sql, " DO UPDATE SET {set}");
        if let Some(condition) = condition {
            let condition = self.while_unread(table, |printer| printer.expr(condition))?;
            let _ = write!(sql, " WHERE {}", self.condition(condition)?);
        }
        self.levels.pop();
        Ok(sql)
    }

    /// Prints expressions that are computed for each changed row. In SQLite they would see rows that were changed
    /// before.
    fn while_unread<T>(&mut self, table: &str, print: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::take(&mut self.touched);
        let printed = print(self);
        let touched = std::mem::replace(&mut self.touched, before);
        if touched.iter().any(|name| name == table) {
            return other(format!(
                "a subquery in SET reads `{table}`, whose rows are being changed: engines differ in what it sees; read \
                 the value first, with a separate statement"
            ));
        }
        self.touched.extend(touched);
        printed
    }

    fn assignments(&mut self, tree: &[Assignment], table: &str) -> Result<String> {
        let columns: Vec<Name> = tree
            .iter()
            .flat_map(|assignment| assignment.columns.clone())
            .collect();
        let fields = self.fields(table, &columns)?;
        for field in fields.iter().filter(|field| field.numbered) {
            self.by_hand(field)?;
        }
        let mut fields = fields.into_iter();
        let mut set = Vec::new();
        for Assignment { columns, value } in tree {
            let fields: Vec<Field> = fields.by_ref().take(columns.len()).collect();
            set.push(self.while_unread(table, |printer| printer.assignment(value, &fields))?);
        }
        Ok(set.join(", "))
    }

    fn assignment(&mut self, value: &Expr, fields: &[Field]) -> Result<String> {
        let columns: Vec<String> = fields.iter().map(|field| format!("\"{}\"", field.name)).collect();
        match (value, fields) {
            (value, [field]) => {
                let value = self.expr(value)?;
                Ok(format!("{} = {}", columns[0], self.stored(value, field)?))
            }
            (Expr::Row(values), fields) if values.len() == fields.len() => {
                let mut set = Vec::new();
                for ((value, field), column) in values.iter().zip(fields).zip(&columns) {
                    let value = self.expr(value)?;
                    set.push(format!("{column} = {}", self.stored(value, field)?));
                }
                Ok(set.join(", "))
            }
            (Expr::Subquery(query), fields) => {
                let rows = self.rows_of_query(query, fields)?;
                Ok(format!("({}) = ({rows} LIMIT 1)", columns.join(", ")))
            }
            _ => other(
                "set several columns to the same number of values in parentheses, or to a query with that many \
                 columns",
            ),
        }
    }

    /// Table that a statement changes: its printed name, and its source for name resolution.
    fn target(&mut self, table: &Name, said: Option<&Name>) -> Result<(String, Source)> {
        let alias = self.fresh('s');
        let said = said.unwrap_or(table).folded();
        let table = table.folded();
        let place = format!("{} AS {alias}", self.catalog.name(&table));
        Ok((place, self.own(&table, alias, said)?))
    }

    pub(super) fn update(&mut self, tree: &Update) -> Result<(String, Vec<Kind>)> {
        let Update {
            with,
            table,
            alias: said,
            assignments,
            from,
            condition,
            returning,
        } = tree;
        let mut sql = self.with(with.as_ref())?;
        let (place, target) = self.target(table, said.as_ref())?;
        self.levels.push(Level::default());
        // Tables of FROM do not see the changed table.
        let from = self.from(from)?;
        if let Some(level) = self.levels.last_mut() {
            level.sources.push(target.clone());
        }
        let set = self.assignments(assignments, &table.folded())?;
        let _ = write!(sql, "UPDATE {place} SET {set}{from}");
        self.only(condition.as_ref(), &mut sql)?;
        self.levels.pop();
        let columns = self.returning(returning, target, &mut sql)?;
        Ok((sql, columns))
    }

    fn only(&mut self, condition: Option<&Expr>, sql: &mut String) -> Result<()> {
        if let Some(condition) = condition {
            let condition = self.expr(condition)?;
            let _ = write!(sql, " WHERE {}", self.condition(condition)?);
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, tree: &Delete) -> Result<(String, Vec<Kind>)> {
        let Delete {
            with,
            table,
            alias: said,
            condition,
            returning,
        } = tree;
        let mut sql = self.with(with.as_ref())?;
        let (place, target) = self.target(table, said.as_ref())?;
        let _ = write!(sql, "DELETE FROM {place}");
        self.levels.push(Level {
            sources: vec![target.clone()],
            ..Level::default()
        });
        self.only(condition.as_ref(), &mut sql)?;
        self.levels.pop();
        let columns = self.returning(returning, target, &mut sql)?;
        Ok((sql, columns))
    }

    fn returning(&mut self, tree: &[Item], target: Source, sql: &mut String) -> Result<Vec<Kind>> {
        if tree.is_empty() {
            return Ok(Vec::new());
        }
        if tree
            .iter()
            .any(|item| matches!(item, Item::One { value, .. } if has_query(value)))
        {
            return other(
                "a subquery in RETURNING sees other rows on each engine; read them with a separate statement",
            );
        }
        self.levels.push(Level {
            sources: vec![target],
            ..Level::default()
        });
        let items = self.items(tree)?;
        self.levels.pop();
        let mut values = Vec::new();
        let mut kinds = Vec::new();
        for (_, value) in items {
            let kind = self.kind(&value)?;
            let known = if value.form == Form::Truth {
                Kind::Integer
            } else {
                kind
            };
            values.push(match value.form {
                Form::Open(_) => value.sql,
                _ => self.exactly(value, known, "RETURNING")?,
            });
            kinds.push(known);
        }
        let _ = write!(sql, " RETURNING {}", values.join(", "));
        Ok(kinds)
    }
}
