//! Window functions for PostgreSQL.

use std::fmt::Write as _;

use super::Kind;
use super::difference::{Result, other};
use super::printer::{Printed, Printer};
use super::query::by;
use crate::functions::{self, Use};
use crate::tree::{Bound, Expr, Frame, Function, Unit, Window};

impl Printer<'_> {
    pub(super) fn windowed(&mut self, tree: &Function, window: &Window) -> Result<Printed> {
        if !self.levels.last().is_some_and(|level| level.windows) {
            return other(format!("{} with OVER cannot be used here", tree.name));
        }
        // Windows cannot be nested.
        self.allow_windows(false);
        let printed =
            self.over(window)
                .and_then(|over| match functions::find(tree.name).map(|entry| entry.used) {
                    Some(Use::Window) => self.of_window(tree, &over),
                    _ if !tree.order_by.is_empty() => {
                        other("the order of an aggregate with OVER belongs in the window")
                    }
                    _ => self.call(tree, &over),
                });
        self.allow_windows(true);
        printed
    }

    fn allow_windows(&mut self, windows: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.windows = windows;
        }
    }

    fn over(&mut self, window: &Window) -> Result<String> {
        let Window {
            partition_by,
            order_by,
            frame,
        } = window;
        let keys = partition_by.iter().map(|key| {
            let key = self.expr(key)?;
            self.kind(&key)?;
            Ok(key.sql)
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let mut sql = format!(
            " OVER ({}{}",
            by("PARTITION BY ", &keys),
            self.order_inside(order_by)?
        );
        if let Some(frame) = frame {
            if frame.unit == Unit::Groups && order_by.is_empty() {
                return other("GROUPS needs an ORDER BY in the window");
            }
            sql.push_str(&frame_of(frame)?);
        }
        sql.push(')');
        Ok(sql)
    }

    fn of_window(&mut self, tree: &Function, over: &str) -> Result<Printed> {
        let name = tree.name;
        let whole = |sql: String| Printed::of(sql, Kind::Integer, false);
        match name {
            "row_number" | "rank" | "dense_rank" => Ok(whole(format!("pg_catalog.{name}(){over}"))),
            "ntile" => {
                let groups = number(tree, 0, 1)?.unwrap_or(1);
                Ok(whole(format!("(pg_catalog.ntile({groups}){over})::bigint")))
            }
            "first_value" | "last_value" | "nth_value" | "lag" | "lead" => self.of_row(tree, over),
            _ => other(format!("{name} has no counterpart on PostgreSQL")),
        }
    }

    /// Value from another row.
    fn of_row(&mut self, tree: &Function, over: &str) -> Result<Printed> {
        let name = tree.name;
        let values = [tree.arguments.first(), tree.arguments.get(2)];
        let values: Vec<&Expr> = values.into_iter().flatten().collect();
        let common = self.common(&values, name, false)?;
        let (form, mut values) = common.into_values();
        let place = number(tree, 1, if name == "nth_value" { 1 } else { 0 })?;
        if let Some(place) = place {
            values.insert(1, place.to_string());
        }
        let sql = format!("pg_catalog.{name}({}){over}", values.join(", "));
        Ok(Printed::new(sql, form, true))
    }
}

/// Argument that counts rows.
fn number(tree: &Function, place: usize, least: i32) -> Result<Option<i32>> {
    let name = tree.name;
    match tree.arguments.get(place) {
        None => Ok(None),
        Some(Expr::Number(digits)) => match digits.parse::<i32>() {
            Ok(number) if number >= least => Ok(Some(number)),
            _ => other(format!("{name} takes a number from {least}")),
        },
        Some(_) => other(format!("{name} takes a literal number, from {least}")),
    }
}

fn frame_of(frame: &Frame) -> Result<String> {
    let Frame { unit, start, end } = frame;
    let mut sql = match unit {
        Unit::Rows => " ROWS ",
        Unit::Range => " RANGE ",
        Unit::Groups => " GROUPS ",
    }
    .to_owned();
    let range = *unit == Unit::Range;
    let start = bound(start, range)?;
    match end {
        None => sql.push_str(&start),
        Some(end) => {
            let _ = write!(sql, "BETWEEN {start} AND {}", bound(end, range)?);
        }
    }
    Ok(sql)
}

fn bound(bound: &Bound, range: bool) -> Result<String> {
    let (value, side) = match bound {
        Bound::Current => return Ok("CURRENT ROW".to_owned()),
        Bound::Preceding(value) => (value, "PRECEDING"),
        Bound::Following(value) => (value, "FOLLOWING"),
    };
    match value {
        None => Ok(format!("UNBOUNDED {side}")),
        Some(_) if range => other("RANGE cannot take a number of rows; write ROWS or GROUPS"),
        Some(Expr::Number(digits)) if digits.parse::<i64>().is_ok() => Ok(format!("{digits} {side}")),
        Some(_) => other("a frame's bounds must be literal numbers"),
    }
}
