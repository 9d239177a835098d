//! Predicates: true, false or unknown.

use super::difference::{Result, other};
use super::printer::{Form, Printed, Printer, quoted};
use crate::tree::{Expr, Query};

impl Printer<'_> {
    pub(super) fn predicate(&mut self, tree: &Expr) -> Result<Printed> {
        let negation = |not: bool| if not { "NOT " } else { "" };
        Ok(match tree {
            Expr::Not(value) => {
                let value = self.expr(value)?;
                let nullable = value.nullable;
                Printed::truth(format!("(NOT {})", self.condition(value)?), nullable)
            }
            Expr::IsNull { value, not } => {
                let value = self.expr(value)?;
                let sql = match value.form {
                    Form::Null => "NULL::text",
                    _ => &value.sql,
                };
                Printed::truth(format!("({sql} IS {}NULL)", negation(*not)), false)
            }
            Expr::Is { value, truth, not } => {
                let value = self.expr(value)?;
                let value = self.condition(value)?;
                Printed::truth(format!("({value} IS {}{truth})", negation(*not)), false)
            }
            Expr::InQuery { value, query, not } => self.in_query(value, query, negation(*not))?,
            Expr::Like {
                value,
                pattern,
                escape,
                not,
            } => self.like(value, pattern, *escape, negation(*not))?,
            Expr::Exists(query) => {
                let (sql, _) = self.query(query)?;
                Printed::truth(format!("(EXISTS ({sql}))"), false)
            }
            comparison => self.comparison(comparison)?,
        })
    }

    /// Predicates that compare values of one kind.
    fn comparison(&mut self, tree: &Expr) -> Result<Printed> {
        let negation = |not: bool| if not { "NOT " } else { "" };
        Ok(match tree {
            Expr::Distinct { left, right, not } => {
                let values = self.compared(&[left, right], "IS DISTINCT FROM")?.values;
                let sql = values.join(&format!(" IS {}DISTINCT FROM ", negation(*not)));
                Printed::truth(format!("({sql})"), false)
            }
            Expr::In { value, list, not } => {
                if list.is_empty() || matches!(**value, Expr::Row(_)) {
                    return other("IN takes a list of values, and rows a query: (a, b) IN (VALUES (1, 2))");
                }
                let all: Vec<&Expr> = [&**value].into_iter().chain(list).collect();
                let mut common = self.compared(&all, "IN")?;
                let value = common.values.remove(0);
                let sql = format!("({value} {}IN ({}))", negation(*not), common.values.join(", "));
                Printed::truth(sql, common.nullable)
            }
            Expr::Between {
                value,
                low,
                high,
                not,
            } => {
                let common = self.compared(&[value, low, high], "BETWEEN")?;
                let [value, low, high] = &common.values[..] else {
                    return other("BETWEEN takes three values");
                };
                let sql = format!("({value} {}BETWEEN {low} AND {high})", negation(*not));
                Printed::truth(sql, common.nullable)
            }
            // All others are printed elsewhere.
            _ => return other("an expression is not understood"),
        })
    }

    /// Tells upper from lower case of other letters than A to Z, as the "C" collation does.
    fn like(&mut self, value: &Expr, pattern: &Expr, escape: Option<char>, not: &str) -> Result<Printed> {
        if let (Expr::Text(pattern), Some(escape)) = (pattern, escape)
            && ends_in(pattern, escape)
        {
            return other("a pattern of LIKE ends in its ESCAPE character");
        }
        if matches!(escape, Some('%' | '_')) {
            return other("ESCAPE takes another character than % and _");
        }
        let (value, pattern) = (self.expr(value)?, self.expr(pattern)?);
        let nullable = value.nullable || pattern.nullable;
        let (value, pattern) = (self.text(value, "LIKE")?, self.text(pattern, "LIKE")?);
        let escape = escape.map(String::from).unwrap_or_default();
        let sql = format!("({value} {not}ILIKE {pattern} ESCAPE {})", quoted(&escape));
        Ok(Printed::truth(sql, nullable))
    }

    fn in_query(&mut self, value: &Expr, query: &Query, not: &str) -> Result<Printed> {
        let values: Vec<&Expr> = match value {
            Expr::Row(values) => values.iter().collect(),
            value => vec![value],
        };
        let values = values.into_iter().map(|value| self.expr(value));
        let values = values.collect::<Result<Vec<_>>>()?;
        let (sql, columns) = self.query(query)?;
        if columns.len() != values.len() {
            return other("a query after IN has as many columns as values stand before it");
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
        let names: Vec<String> = columns
            .iter()
            .map(|column| format!("\"{}\"", column.sql))
            .collect();
        let query = format!(
            "SELECT {} FROM ({sql}) AS {name} ({})",
            after.join(", "),
            names.join(", ")
        );
        let before = match &before[..] {
            [one] => one.clone(),
            all => format!("ROW({})", all.join(", ")),
        };
        Ok(Printed::truth(format!("({before} {not}IN ({query}))"), nullable))
    }
}

/// True if a pattern's last character is an escape that escapes nothing.
fn ends_in(pattern: &str, escape: char) -> bool {
    let mut escaped = false;
    for letter in pattern.chars() {
        escaped = !escaped && letter == escape;
    }
    escaped
}
