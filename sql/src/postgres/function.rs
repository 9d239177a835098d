//! Functions for PostgreSQL.

use super::Kind;
use super::difference::{Difference, Result, other};
use super::printer::{Form, Printed, Printer};
use super::scope::{each, is_aggregate};
use crate::tree::{Expr, Function};

impl Printer<'_> {
    /// Prints a call of a known function. A function that was added to the list is refused until it is printed here.
    pub(super) fn function(&mut self, tree: &Function) -> Result<Printed> {
        if let Some(window) = &tree.over {
            return self.windowed(tree, window);
        }
        if is_aggregate(tree) {
            return self.aggregate(tree);
        }
        // The other fields are only for aggregates.
        let Function {
            name,
            distinct: _,
            star: _,
            arguments,
            order_by: _,
            filter: _,
            over: _,
        } = tree;
        match *name {
            "coalesce" | "ifnull" | "nullif" | "max" | "min" => self.of_one_kind(name, arguments),
            "iif" => self.iif(arguments),
            "lower" | "upper" | "trim" | "ltrim" | "rtrim" | "replace" => self.of_texts(name, arguments),
            _ => self.plain(name, arguments),
        }
    }

    /// Functions whose arguments and result have the same kind.
    fn of_one_kind(&mut self, name: &'static str, arguments: &[Expr]) -> Result<Printed> {
        let printed = arguments.iter().map(|argument| self.expr(argument));
        let printed = printed.collect::<Result<Vec<_>>>()?;
        let all_nullable = printed.iter().all(|value| value.nullable);
        let common = self.unified(printed, name, false)?;
        Ok(match name {
            "nullif" => Printed::new(format!("NULLIF({})", common.values.join(", ")), common.form, true),
            "max" | "min" => {
                let name = if name == "max" { "most" } else { "least" };
                let nullable = common.nullable;
                let (form, values) = common.into_values();
                let sql = format!("tollgate.{name}(VARIADIC ARRAY[{}])", values.join(", "));
                Printed::new(sql, form, nullable)
            }
            // Also ifnull.
            _ => Printed::new(
                format!("COALESCE({})", common.values.join(", ")),
                common.form,
                all_nullable,
            ),
        })
    }

    /// Functions from text to text.
    fn of_texts(&mut self, name: &'static str, arguments: &[Expr]) -> Result<Printed> {
        let mut nullable = false;
        let mut all = Vec::new();
        for argument in arguments {
            let value = self.expr(argument)?;
            nullable |= value.nullable;
            all.push(self.text(value, name)?);
        }
        let function = match name {
            "trim" => "pg_catalog.btrim",
            "ltrim" => "pg_catalog.ltrim",
            "rtrim" => "pg_catalog.rtrim",
            "lower" => "pg_catalog.lower",
            "upper" => "pg_catalog.upper",
            _ => "tollgate.replace",
        };
        if name.ends_with("trim") && all.len() == 1 {
            all.push("' '".to_owned());
        }
        Ok(Printed::of(
            format!("{function}({})", all.join(", ")),
            Kind::Text,
            nullable,
        ))
    }

    fn iif(&mut self, arguments: &[Expr]) -> Result<Printed> {
        let Some((condition, results)) = arguments.split_first() else {
            return other("iif takes a condition");
        };
        let condition = self.expr(condition)?;
        let condition = self.condition(condition)?;
        let results: Vec<&Expr> = results.iter().collect();
        let common = self.common(&results, "iif", false)?;
        let nullable = common.nullable || results.len() == 1;
        let sql = format!(
            "(CASE WHEN {condition} THEN {} END)",
            common.values.join(" ELSE ")
        );
        Ok(Printed::new(sql, common.form, nullable))
    }

    /// Functions that are printed individually.
    fn plain(&mut self, name: &'static str, arguments: &[Expr]) -> Result<Printed> {
        let printed = arguments.iter().map(|argument| self.expr(argument));
        let printed = printed.collect::<Result<Vec<_>>>()?;
        let nullable = printed.iter().any(|value| value.nullable);
        let mut values = printed.into_iter();
        let Some(first) = values.next() else {
            return other(format!("{name} takes arguments"));
        };
        let kind = self.kind(&first)?;
        match (name, kind) {
            ("substr" | "substring", _) => self.substr(first, values, nullable),
            ("instr", _) => {
                let kind = if kind == Kind::Blob {
                    Kind::Blob
                } else {
                    Kind::Text
                };
                let mut all = Vec::new();
                for value in [first].into_iter().chain(values) {
                    all.push(self.exactly(value, kind, name)?);
                }
                Ok(Printed::of(
                    format!("tollgate.instr({})", all.join(", ")),
                    Kind::Integer,
                    nullable,
                ))
            }
            ("length", Kind::Blob) => {
                let first = self.exactly(first, Kind::Blob, name)?;
                Ok(Printed::of(
                    format!("pg_catalog.octet_length({first})::bigint"),
                    Kind::Integer,
                    nullable,
                ))
            }
            ("length", _) => {
                let first = self.text(first, name)?;
                Ok(Printed::of(
                    format!("pg_catalog.char_length({first})::bigint"),
                    Kind::Integer,
                    nullable,
                ))
            }
            _ => self.number(name, first, kind, values, nullable),
        }
    }

    fn substr(
        &mut self,
        first: Printed,
        rest: impl Iterator<Item = Printed>,
        nullable: bool,
    ) -> Result<Printed> {
        let kind = if first.form == Form::Of(Kind::Blob) {
            Kind::Blob
        } else {
            Kind::Text
        };
        let mut all = vec![match kind {
            Kind::Blob => first.sql,
            _ => self.text(first, "substr")?,
        }];
        for value in rest {
            all.push(self.exactly(value, Kind::Integer, "substr")?);
        }
        Ok(Printed::of(
            format!("tollgate.substr({})", all.join(", ")),
            kind,
            nullable || kind == Kind::Blob,
        ))
    }

    fn number(
        &mut self,
        name: &'static str,
        first: Printed,
        kind: Kind,
        mut rest: impl Iterator<Item = Printed>,
        nullable: bool,
    ) -> Result<Printed> {
        if !matches!(kind, Kind::Integer | Kind::Real) && !matches!(first.form, Form::Null) {
            return Err(Difference::takes(name, "a number", kind));
        }
        match name {
            "abs" => {
                let kind = if kind == Kind::Real {
                    Kind::Real
                } else {
                    Kind::Integer
                };
                let first = self.exactly(first, kind, name)?;
                Ok(Printed::of(format!("pg_catalog.abs({first})"), kind, nullable))
            }
            "sign" => {
                let first = self.real(first, name)?;
                Ok(Printed::of(
                    format!("pg_catalog.sign({first})::bigint"),
                    Kind::Integer,
                    nullable,
                ))
            }
            "round" => {
                if rest.next().is_some_and(|digits| digits.sql != "0::bigint") {
                    return other(
                        "engines round to digits differently; write round(x), or round in the component",
                    );
                }
                let first = self.real(first, name)?;
                Ok(Printed::of(
                    format!("tollgate.round({first})"),
                    Kind::Real,
                    nullable,
                ))
            }
            _ => other(format!("{name} has no counterpart on PostgreSQL")),
        }
    }

    fn aggregate(&mut self, tree: &Function) -> Result<Printed> {
        let Some(level) = self
            .levels
            .last_mut()
            .filter(|level| level.aggregates && !level.free)
        else {
            return other(format!(
                "{} is an aggregate, which cannot be used here",
                tree.name
            ));
        };
        level.free = true;
        let is_here = |level: &super::scope::Level, part: &Expr| match part {
            Expr::Column { table: None, name }
                if level.merged.iter().any(|merged| merged.name == name.folded()) =>
            {
                true
            }
            part => level.place(part).is_some(),
        };
        let (mut columns, mut own) = (false, false);
        for argument in &tree.arguments {
            each(argument, &mut |part| {
                columns |= matches!(part, Expr::Column { .. });
                own |= is_here(level, part);
            });
        }
        if columns && !own {
            return other(format!("{} of columns of the query around it", tree.name));
        }
        let call = self.call(tree, "");
        if let Some(level) = self.levels.last_mut() {
            level.free = false;
        }
        call
    }

    /// An aggregate with its clauses.
    pub(super) fn call(&mut self, tree: &Function, over: &str) -> Result<Printed> {
        let printed = tree.arguments.iter().map(|argument| self.expr(argument));
        let mut printed = printed.collect::<Result<Vec<_>>>()?.into_iter();
        // Only string_agg depends on the order of the rows.
        let order = match tree.name {
            "string_agg" => self.order_inside(&tree.order_by)?,
            _ => {
                self.unsaid(|printer| printer.order_inside(&tree.order_by))?;
                String::new()
            }
        };
        let filter = match &tree.filter {
            None => String::new(),
            Some(condition) => {
                let condition = self.expr(condition)?;
                format!(" FILTER (WHERE {})", self.condition(condition)?)
            }
        };
        let distinct = if tree.distinct { "DISTINCT " } else { "" };
        let around = format!("{filter}{over}");
        let Some(first) = printed.next() else {
            return Ok(Printed::of(
                format!("pg_catalog.count(*){around}"),
                Kind::Integer,
                false,
            ));
        };
        if tree.name == "string_agg" {
            return self.string_agg(tree, (first, printed.next()), &format!("{order}){around}"), over);
        }
        self.of_rows(tree.name, first, distinct, &around)
    }

    /// An aggregate with one argument.
    fn of_rows(
        &mut self,
        name: &'static str,
        first: Printed,
        distinct: &str,
        around: &str,
    ) -> Result<Printed> {
        let kind = self.kind(&first)?;
        Ok(match (name, kind) {
            ("count", _) => {
                let first = self.exactly(first, kind, name)?;
                Printed::of(
                    format!("pg_catalog.count({distinct}{first}){around}"),
                    Kind::Integer,
                    false,
                )
            }
            ("max" | "min", Kind::Blob) => return Err(Difference::takes(name, "numbers and texts", kind)),
            ("max" | "min", _) => {
                let first = self.exactly(first, kind, name)?;
                Printed::of(format!("pg_catalog.{name}({first}){around}"), kind, true)
            }
            (_, Kind::Text | Kind::Blob) => return Err(Difference::takes(name, "numbers", kind)),
            ("sum", Kind::Integer) => {
                let first = self.exactly(first, kind, name)?;
                Printed::of(
                    format!("(pg_catalog.sum({distinct}{first}){around})::bigint"),
                    kind,
                    true,
                )
            }
            ("total", _) => {
                let first = self.real(first, name)?;
                let sum = format!("pg_catalog.sum({distinct}{first}){around}");
                Printed::of(format!("COALESCE({sum}, 0)"), Kind::Real, false)
            }
            ("avg" | "sum", _) => {
                let first = self.real(first, name)?;
                Printed::of(
                    format!("pg_catalog.{name}({distinct}{first}){around}"),
                    Kind::Real,
                    true,
                )
            }
            (_, Kind::Integer | Kind::Real) => {
                return other(format!("{name} has no counterpart on PostgreSQL"));
            }
        })
    }

    fn string_agg(
        &mut self,
        tree: &Function,
        (text, between): (Printed, Option<Printed>),
        end: &str,
        over: &str,
    ) -> Result<Printed> {
        let Some(between) = between.filter(|_| !tree.distinct) else {
            return other("string_agg takes a text and a separator, without DISTINCT");
        };
        if !over.is_empty() && !tree.order_by.is_empty() {
            return other("the order of string_agg with OVER belongs in the window");
        }
        let text = self.text(text, "string_agg")?;
        let between = self.text(between, "string_agg")?;
        Ok(Printed::of(
            format!("tollgate.string_agg({text}, {between}{end}"),
            Kind::Text,
            true,
        ))
    }
}
