//! Predicates: true, false or unknown.

use super::Kind;
use super::difference::{Result, other};
use super::printer::{Form, Printed, Printer, null, quoted};
use crate::tree::{Expr, Query};

impl Printer<'_> {
    pub(super) fn not(&mut self, value: &Expr) -> Result<Printed> {
        let value = self.expr(value)?;
        let nullable = value.nullable;
        Ok(Printed::truth(
            format!("(NOT {})", self.condition(value)?),
            nullable,
        ))
    }

    pub(super) fn is_null(&mut self, value: &Expr, not: bool) -> Result<Printed> {
        let value = self.expr(value)?;
        let sql = match value.form {
            Form::Null => null(&value, Kind::Text),
            Form::Truth | Form::Open(_) | Form::Of(_) => value.sql,
        };
        Ok(Printed::truth(format!("({sql} IS {}NULL)", negation(not)), false))
    }

    pub(super) fn is_truth(&mut self, value: &Expr, truth: bool, not: bool) -> Result<Printed> {
        let value = self.expr(value)?;
        let value = self.condition(value)?;
        Ok(Printed::truth(
            format!("({value} IS {}{truth})", negation(not)),
            false,
        ))
    }

    pub(super) fn is_distinct(&mut self, left: &Expr, right: &Expr, not: bool) -> Result<Printed> {
        // On the right side, SQLite takes TRUE and FALSE as a truth test, not as the numbers 1 and 0.
        if let Expr::Boolean(truth) = right {
            return self.is_truth(left, *truth, !not);
        }
        let values = self.compared(&[left, right], "IS DISTINCT FROM")?.values;
        let sql = values.join(&format!(" IS {}DISTINCT FROM ", negation(not)));
        Ok(Printed::truth(format!("({sql})"), false))
    }

    pub(super) fn in_list(&mut self, value: &Expr, list: &[Expr], not: bool) -> Result<Printed> {
        if list.is_empty() || matches!(value, Expr::Row(_)) {
            return other("IN takes a list of values; compare rows with a query: (a, b) IN (VALUES (1, 2))");
        }
        let all: Vec<&Expr> = [value].into_iter().chain(list).collect();
        let mut common = self.compared(&all, "IN")?;
        let value = common.values.remove(0);
        let sql = format!("({value} {}IN ({}))", negation(not), common.values.join(", "));
        Ok(Printed::truth(sql, common.nullable))
    }

    /// BETWEEN: a value, a lower and an upper bound.
    pub(super) fn between(&mut self, values: [&Expr; 3], not: bool) -> Result<Printed> {
        let common = self.compared(&values, "BETWEEN")?;
        let [value, low, high] = &common.values[..] else {
            return other("BETWEEN takes three values");
        };
        let sql = format!("({value} {}BETWEEN {low} AND {high})", negation(not));
        Ok(Printed::truth(sql, common.nullable))
    }

    pub(super) fn exists(&mut self, query: &Query) -> Result<Printed> {
        let (sql, _) = self.query(query)?;
        Ok(Printed::truth(format!("(EXISTS ({sql}))"), false))
    }

    /// LIKE: case-sensitive except for A to Z, like the "C" collation.
    pub(super) fn like(
        &mut self,
        value: &Expr,
        pattern: &Expr,
        escape: Option<char>,
        not: bool,
    ) -> Result<Printed> {
        if let (Expr::Text(pattern), Some(escape)) = (pattern, escape)
            && ends_in(pattern, escape)
        {
            return other("a LIKE pattern cannot end with its ESCAPE character");
        }
        if matches!(escape, Some('%' | '_')) {
            return other("ESCAPE takes a character other than % and _");
        }
        let (value, pattern) = (self.expr(value)?, self.expr(pattern)?);
        let nullable = value.nullable || pattern.nullable;
        let (value, pattern) = (self.text(value, "LIKE")?, self.text(pattern, "LIKE")?);
        let escape = escape.map(String::from).unwrap_or_default();
        let not = negation(not);
        let sql = format!("({value} {not}ILIKE {pattern} ESCAPE {})", quoted(&escape));
        Ok(Printed::truth(sql, nullable))
    }

    pub(super) fn in_query(&mut self, value: &Expr, query: &Query, not: bool) -> Result<Printed> {
        let values: Vec<&Expr> = match value {
            Expr::Row(values) => values.iter().collect(),
            value => vec![value],
        };
        let values = values.into_iter().map(|value| self.expr(value));
        let values = values.collect::<Result<Vec<_>>>()?;
        let (sql, columns) = self.query(query)?;
        if columns.len() != values.len() {
            return other("a query after IN must have as many columns as there are values before it");
        }
        let mut nullable = false;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let name = self.fresh('s');
        for (value, column) in values.into_iter().zip(&columns) {
            nullable |= value.nullable || column.nullable;
            let column = Printed::new(format!("{name}.\"{}\"", column.sql), column.form, column.nullable);
            let mut both = self.unified(vec![value, column], "IN", true)?.values;
            after.extend(both.pop());
            before.extend(both.pop());
        }
        let query = format!(
            "SELECT {} FROM ({sql}) AS {name} ({})",
            after.join(", "),
            super::source::names(&columns)
        );
        let before = match &before[..] {
            [one] => one.clone(),
            all => format!("ROW({})", all.join(", ")),
        };
        Ok(Printed::truth(
            format!("({before} {}IN ({query}))", negation(not)),
            nullable,
        ))
    }
}

fn negation(not: bool) -> &'static str {
    if not { "NOT " } else { "" }
}

/// True if a pattern ends with an escape character that escapes nothing.
fn ends_in(pattern: &str, escape: char) -> bool {
    let mut escaped = false;
    for letter in pattern.chars() {
        escaped = !escaped && letter == escape;
    }
    escaped
}
