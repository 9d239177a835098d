//! Expressions for PostgreSQL.

use std::fmt::Write as _;

use super::Kind;
use super::difference::{Difference, Result, other};
use super::printer::{Form, Printed, Printer, null, quoted};
use crate::tree::{Expr, Operator, Query, Type};

/// Values of one kind.
pub(super) struct Common {
    pub(super) values: Vec<String>,
    pub(super) form: Form,
    pub(super) nullable: bool,
}

impl Common {
    /// Values with a type that PostgreSQL knows, for functions that take any type: neither conditions nor NULL
    /// itself.
    pub(super) fn into_values(self) -> (Form, Vec<String>) {
        let typed = |form, end: &str| {
            let values = self.values.iter().map(|value| format!("{value}{end}"));
            (form, values.collect())
        };
        match self.form {
            Form::Truth => typed(Form::Of(Kind::Integer), "::int::bigint"),
            Form::Null => typed(Form::Of(Kind::Text), "::text COLLATE \"C\""),
            Form::Open(_) | Form::Of(_) => (self.form, self.values),
        }
    }
}

/// Largest integer up to which every integer is exact as a float.
const EXACT: i64 = 1 << 53;
/// Digits of a float that both engines read alike.
const DIGITS: usize = 15;

impl Printer<'_> {
    pub(super) fn expr(&mut self, tree: &Expr) -> Result<Printed> {
        let level = self.levels.len().wrapping_sub(1);
        let is_key = self
            .levels
            .last()
            .is_some_and(|level| !level.free && level.keys.as_ref().is_some_and(|keys| keys.contains(tree)));
        if !is_key {
            return self.whole(tree);
        }
        self.levels[level].free = true;
        let printed = self.whole(tree);
        if let Some(level) = self.levels.get_mut(level) {
            level.free = false;
        }
        printed
    }

    /// Prints any expression. The match is exhaustive, so a new kind of expression does not compile until it is
    /// printed.
    fn whole(&mut self, tree: &Expr) -> Result<Printed> {
        match tree {
            Expr::Null => Ok(Printed::new("NULL".to_owned(), Form::Null, true)),
            Expr::Boolean(truth) => Ok(Printed::truth(truth.to_string(), false)),
            Expr::Number(digits) => number(digits, false),
            Expr::Text(text) => Ok(Printed::of(
                format!("({} COLLATE \"C\")", quoted(text)),
                Kind::Text,
                false,
            )),
            Expr::Blob(bytes) => Ok(blob(bytes)),
            Expr::Parameter(number) => Ok(self.parameter(*number)),
            Expr::Column { table, name } => {
                let table = table.as_ref().map(|table| table.folded());
                self.column(table.as_deref(), &name.folded())
            }
            Expr::Row(_) => other("a row in parentheses can only be compared with another row"),
            Expr::Negative(value) => match &**value {
                Expr::Number(digits) => number(digits, true),
                value => self.negative(value),
            },
            Expr::Not(value) => self.not(value),
            Expr::Binary {
                left,
                operator,
                right,
            } => self.binary(left, *operator, right),
            Expr::IsNull { value, not } => self.is_null(value, *not),
            Expr::Is { value, truth, not } => self.is_truth(value, *truth, *not),
            Expr::Distinct { left, right, not } => self.is_distinct(left, right, *not),
            Expr::In { value, list, not } => self.in_list(value, list, *not),
            Expr::InQuery { value, query, not } => self.in_query(value, query, *not),
            Expr::Between {
                value,
                low,
                high,
                not,
            } => self.between([value, low, high], *not),
            Expr::Like {
                value,
                pattern,
                escape,
                not,
            } => self.like(value, pattern, *escape, *not),
            Expr::Exists(query) => self.exists(query),
            Expr::Case {
                operand,
                branches,
                otherwise,
            } => self.case(operand.as_deref(), branches, otherwise.as_deref()),
            Expr::Cast { value, kind } => self.cast(value, *kind),
            Expr::Subquery(query) => self.scalar(query),
            Expr::Function(function) => self.function(function),
        }
    }

    fn negative(&mut self, value: &Expr) -> Result<Printed> {
        let value = self.expr(value)?;
        let nullable = value.nullable;
        let kind = match self.kind(&value)? {
            Kind::Real => Kind::Real,
            _ => Kind::Integer,
        };
        let value = self.exactly(value, kind, "-")?;
        Ok(Printed::of(format!("(- {value})"), kind, nullable))
    }

    fn binary(&mut self, left: &Expr, operator: Operator, right: &Expr) -> Result<Printed> {
        let sign = operator_sign(operator);
        match operator {
            Operator::And | Operator::Or => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let nullable = left.nullable || right.nullable;
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                Ok(Printed::truth(format!("({left} {sign} {right})"), nullable))
            }
            Operator::Equal
            | Operator::Unequal
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => {
                let common = self.compared(&[left, right], sign)?;
                let sql = format!("({})", common.values.join(&format!(" {sign} ")));
                Ok(Printed::truth(sql, common.nullable))
            }
            Operator::Concat => self.concat(left, right),
            // Division by zero gives NULL.
            Operator::Divide | Operator::Remainder => self.arithmetic(left, sign, right, |left, right| {
                format!("({left} {sign} nullif({right}, 0))")
            }),
            Operator::Plus | Operator::Minus | Operator::Times => {
                self.arithmetic(left, sign, right, |left, right| {
                    format!("({left} {sign} {right})")
                })
            }
        }
    }

    fn concat(&mut self, left: &Expr, right: &Expr) -> Result<Printed> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let nullable = left.nullable || right.nullable;
        let (left, right) = (self.text(left, "||")?, self.text(right, "||")?);
        Ok(Printed::of(
            format!("tollgate.cat({left}, {right})"),
            Kind::Text,
            nullable,
        ))
    }

    fn arithmetic(
        &mut self,
        left: &Expr,
        sign: &str,
        right: &Expr,
        printed: impl Fn(&str, &str) -> String,
    ) -> Result<Printed> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let divides = matches!(sign, "/" | "%");
        let nullable = left.nullable || right.nullable || divides;
        let forms = [left.form, right.form];
        if forms.iter().all(|form| matches!(form, Form::Open(_))) {
            self.kind(&left)?;
            self.kind(&right)?;
        }
        if forms.contains(&Form::Of(Kind::Real)) {
            if sign == "%" {
                return Err(Difference::takes("%", "whole numbers", Kind::Real));
            }
            let (left, right) = (self.real(left, sign)?, self.real(right, sign)?);
            return Ok(Printed::of(printed(&left, &right), Kind::Real, nullable));
        }
        let left = self.exactly(left, Kind::Integer, sign)?;
        let right = self.exactly(right, Kind::Integer, sign)?;
        Ok(Printed::of(printed(&left, &right), Kind::Integer, nullable))
    }

    /// Values to compare. An integer literal next to floats becomes a float.
    pub(super) fn compared(&mut self, trees: &[&Expr], what: &str) -> Result<Common> {
        let rows = trees.iter().filter(|tree| matches!(tree, Expr::Row(_))).count();
        if rows == 0 {
            return self.common(trees, what, true);
        }
        let mut columns: Vec<Vec<&Expr>> = Vec::new();
        for tree in trees {
            let Expr::Row(values) = tree else {
                return other("a row in parentheses can only be compared with another row");
            };
            columns.resize(columns.len().max(values.len()), Vec::new());
            columns
                .iter_mut()
                .zip(values)
                .for_each(|(column, value)| column.push(value));
        }
        let mut rows = vec![Vec::new(); trees.len()];
        let mut nullable = false;
        for column in columns {
            if column.len() != trees.len() {
                return other("compared rows must have the same number of values");
            }
            let common = self.common(&column, what, true)?;
            nullable |= common.nullable;
            rows.iter_mut()
                .zip(common.values)
                .for_each(|(row, value)| row.push(value));
        }
        Ok(Common {
            values: rows
                .iter()
                .map(|row| format!("ROW({})", row.join(", ")))
                .collect(),
            form: Form::Truth,
            nullable,
        })
    }

    /// Values of one common kind, without conversions.
    pub(super) fn common(&mut self, trees: &[&Expr], what: &str, adapts: bool) -> Result<Common> {
        let printed = trees.iter().map(|tree| self.expr(tree));
        let printed = printed.collect::<Result<Vec<_>>>()?;
        self.unified(printed, what, adapts)
    }

    pub(super) fn unified(&mut self, printed: Vec<Printed>, what: &str, adapts: bool) -> Result<Common> {
        let nullable = printed.iter().any(|value| value.nullable);
        let form = self.unify(&printed, what, adapts)?;
        let values = printed.into_iter().map(|value| match form {
            Form::Truth => self.condition(value),
            Form::Of(Kind::Real) if adapts && value.soft => self.real(value, what),
            Form::Of(kind) => self.exactly(value, kind, what),
            Form::Null | Form::Open(_) => Ok(value.sql),
        });
        Ok(Common {
            values: values.collect::<Result<_>>()?,
            form,
            nullable,
        })
    }

    /// Common form of several values.
    pub(super) fn unify(&mut self, printed: &[Printed], what: &str, adapts: bool) -> Result<Form> {
        let mut form = Form::Null;
        for value in printed {
            form = match (form, value.form) {
                (Form::Null, found) | (Form::Open(_), found @ (Form::Of(_) | Form::Truth)) => found,
                (_, Form::Null | Form::Open(_)) => form,
                (Form::Truth, Form::Truth) => form,
                (Form::Truth | Form::Of(Kind::Integer), Form::Truth | Form::Of(Kind::Integer)) => {
                    Form::Of(Kind::Integer)
                }
                (Form::Of(one), Form::Of(found)) if one == found => form,
                (Form::Of(one), Form::Of(found)) => {
                    if !(adapts && are_soft(printed)) {
                        return Err(Difference::kinds(what, one, found));
                    }
                    Form::Of(Kind::Real)
                }
                (Form::Of(kind), Form::Truth) | (Form::Truth, Form::Of(kind)) => {
                    return Err(Difference::kinds(what, kind, Kind::Integer));
                }
            };
        }
        let open = printed.iter().any(|value| matches!(value.form, Form::Open(_)));
        match form {
            // A parameter next to a condition is a number, and so the condition is one too.
            Form::Truth if open => return Ok(Form::Of(Kind::Integer)),
            Form::Open(_) => {
                for value in printed {
                    self.kind(value)?;
                }
            }
            _ => {}
        }
        Ok(form)
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<Printed> {
        let mut sql = "(CASE".to_owned();
        let conditions = match operand {
            Some(operand) => {
                let all = [operand]
                    .into_iter()
                    .chain(branches.iter().map(|(value, _)| value));
                let mut values = self.compared(&all.collect::<Vec<_>>(), "CASE")?.values;
                let _ = write!(sql, " {}", values.remove(0));
                values
            }
            None => {
                let conditions = branches.iter().map(|(condition, _)| {
                    let condition = self.expr(condition)?;
                    self.condition(condition)
                });
                conditions.collect::<Result<_>>()?
            }
        };
        let results = branches.iter().map(|(_, result)| result).chain(otherwise);
        let mut common = self.common(&results.collect::<Vec<_>>(), "CASE", false)?;
        let last = otherwise.and_then(|_| common.values.pop());
        for (condition, result) in conditions.iter().zip(&common.values) {
            let _ = write!(sql, " WHEN {condition} THEN {result}");
        }
        if let Some(last) = &last {
            let _ = write!(sql, " ELSE {last}");
        }
        sql.push_str(" END)");
        Ok(Printed::new(sql, common.form, common.nullable || last.is_none()))
    }

    fn cast(&mut self, value: &Expr, kind: Type) -> Result<Printed> {
        let value = self.expr(value)?;
        let nullable = value.nullable;
        let to = Kind::of(kind);
        let from = match value.form {
            Form::Null => return Ok(Printed::of(null(&value, to), to, true)),
            Form::Open(_) => to,
            _ => self.kind(&value)?,
        };
        let sql = self.exactly(value, from, "CAST")?;
        Ok(Printed::of(
            match (from, to) {
                _ if from == to => sql,
                (Kind::Integer, Kind::Real) => format!("{sql}::double precision"),
                (Kind::Integer, Kind::Text) => format!("({sql}::text COLLATE \"C\")"),
                (Kind::Real | Kind::Text, Kind::Integer) => format!("tollgate.whole({sql})"),
                (Kind::Text, Kind::Blob) => format!("pg_catalog.convert_to({sql}, 'UTF8')"),
                _ => {
                    return Err(Difference::Cast {
                        from: from.said(),
                        to: to.said(),
                    });
                }
            },
            to,
            nullable,
        ))
    }

    /// Value of a subquery, from its first row.
    fn scalar(&mut self, query: &Query) -> Result<Printed> {
        let (sql, columns) = self.query(query)?;
        let [column] = &columns[..] else {
            return other("a subquery used as a value must have one column");
        };
        let single =
            matches!(&query.limit, Some(Expr::Number(digits)) if digits == "1") && query.offset.is_none();
        let sql = match single {
            true => format!("({sql})"),
            false => format!("(SELECT * FROM ({sql}) AS {} LIMIT 1)", self.fresh('s')),
        };
        Ok(Printed::new(sql, column.form, true))
    }
}

fn operator_sign(operator: Operator) -> &'static str {
    match operator {
        Operator::And => "AND",
        Operator::Or => "OR",
        Operator::Equal => "=",
        Operator::Unequal => "<>",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Plus => "+",
        Operator::Minus => "-",
        Operator::Times => "*",
        Operator::Divide => "/",
        Operator::Remainder => "%",
        Operator::Concat => "||",
    }
}

/// True if all values are numbers, and the integers among them are literals, so that they can be floats.
fn are_soft(printed: &[Printed]) -> bool {
    printed.iter().all(|value| match value.form {
        Form::Of(Kind::Integer) => value.soft,
        Form::Of(Kind::Text | Kind::Blob) | Form::Truth => false,
        Form::Of(Kind::Real) | Form::Null | Form::Open(_) => true,
    })
}

fn number(digits: &str, negative: bool) -> Result<Printed> {
    let sign = if negative { "-" } else { "" };
    let said = format!("{sign}{digits}");
    if let Ok(number) = said.parse::<i64>() {
        let mut printed = Printed::of(format!("'{number}'::bigint"), Kind::Integer, false);
        if !negative && number <= i64::from(i32::MAX) {
            printed.sql = format!("{number}::bigint");
        }
        printed.soft = number.abs_diff(0) <= EXACT.unsigned_abs();
        return Ok(printed);
    }
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let significant = mantissa.replace('.', "");
    if significant.trim_matches('0').len() > DIGITS {
        return other(format!(
            "the number {said} has more than {DIGITS} digits, which engines round differently; write fewer digits"
        ));
    }
    let value: f64 = said
        .parse()
        .map_err(|_| Difference::Other(format!("{said} is not a number")))?;
    if value.is_infinite() {
        return other(format!("the number {said} is too large"));
    }
    Ok(Printed::of(
        format!("'{value:e}'::double precision"),
        Kind::Real,
        false,
    ))
}

fn blob(bytes: &[u8]) -> Printed {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    Printed::of(format!("pg_catalog.decode('{digits}', 'hex')"), Kind::Blob, false)
}
