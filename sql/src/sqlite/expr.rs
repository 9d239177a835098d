//! Expressions for SQLite.

use std::fmt::Write as _;

use super::Printer;
use crate::tree::{Bound, Expr, Function, Operator, Type, Unit, Window};

impl Printer {
    pub(super) fn expr(&mut self, tree: &Expr) {
        match tree {
            Expr::Null => self.say("NULL"),
            Expr::Boolean(truth) => self.say(if *truth { "TRUE" } else { "FALSE" }),
            Expr::Number(digits) => self.say(digits),
            Expr::Text(text) => self.text(text),
            Expr::Blob(bytes) => self.blob(bytes),
            Expr::Parameter(number) => {
                let _ = write!(self.out, "?{number}");
            }
            Expr::Column { table, name } => {
                if let Some(table) = table {
                    self.name(table);
                    self.say(".");
                }
                self.name(name);
            }
            Expr::Row(values) => self.inside("", values),
            Expr::Not(value) => {
                self.say("NOT ");
                self.operand(value);
            }
            Expr::Negative(value) => {
                self.say("-");
                self.operand(value);
            }
            Expr::Binary {
                left,
                operator,
                right,
            } => self.binary(left, *operator, right),
            Expr::Case {
                operand,
                branches,
                otherwise,
            } => self.case(operand.as_deref(), branches, otherwise.as_deref()),
            Expr::Cast { value, kind } => {
                self.say("CAST(");
                self.expr(value);
                self.say(" AS ");
                self.kind(*kind);
                self.say(")");
            }
            Expr::Exists(query) => {
                self.say("EXISTS (");
                self.query(query);
                self.say(")");
            }
            Expr::Subquery(query) => {
                self.say("(");
                self.query(query);
                self.say(")");
            }
            Expr::Function(function) => self.function(function),
            predicate => self.predicate(predicate),
        }
    }

    /// Prints a predicate.
    fn predicate(&mut self, tree: &Expr) {
        let negation = |not: bool| if not { " NOT" } else { "" };
        match tree {
            Expr::IsNull { value, not } => {
                self.operand(value);
                self.say(if *not { " IS NOT NULL" } else { " IS NULL" });
            }
            Expr::Is { value, truth, not } => {
                self.operand(value);
                let truth = if *truth { "TRUE" } else { "FALSE" };
                let _ = write!(self.out, " IS{} {truth}", negation(*not));
            }
            Expr::Distinct { left, right, not } => {
                self.operand(left);
                let _ = write!(self.out, " IS{} DISTINCT FROM ", negation(*not));
                self.operand(right);
            }
            Expr::In { value, list, not } => {
                self.operand(value);
                self.inside(if *not { " NOT IN " } else { " IN " }, list);
            }
            Expr::InQuery { value, query, not } => {
                self.operand(value);
                self.say(if *not { " NOT IN (" } else { " IN (" });
                self.query(query);
                self.say(")");
            }
            Expr::Between {
                value,
                low,
                high,
                not,
            } => {
                self.operand(value);
                let _ = write!(self.out, "{} BETWEEN ", negation(*not));
                self.operand(low);
                self.say(" AND ");
                self.operand(high);
            }
            Expr::Like {
                value,
                pattern,
                escape,
                not,
            } => {
                self.operand(value);
                let _ = write!(self.out, "{} LIKE ", negation(*not));
                self.operand(pattern);
                if let Some(escape) = escape {
                    self.say(" ESCAPE ");
                    self.text(escape.encode_utf8(&mut [0; 4]));
                }
            }
            // All others are printed above, and never get here.
            _ => {}
        }
    }

    /// Prints an operand, in parentheses unless it is atomic.
    pub(super) fn operand(&mut self, tree: &Expr) {
        let whole = matches!(
            tree,
            Expr::Null
                | Expr::Boolean(_)
                | Expr::Number(_)
                | Expr::Text(_)
                | Expr::Blob(_)
                | Expr::Parameter(_)
                | Expr::Column { .. }
                | Expr::Row(_)
                | Expr::Case { .. }
                | Expr::Cast { .. }
                | Expr::Exists(_)
                | Expr::Subquery(_)
                | Expr::Function(_)
        );
        if whole {
            self.expr(tree);
        } else {
            self.say("(");
            self.expr(tree);
            self.say(")");
        }
    }

    fn binary(&mut self, left: &Expr, operator: Operator, right: &Expr) {
        // Operator chains are left-associative without parentheses.
        match left {
            Expr::Binary { operator: before, .. } if *before == operator => self.expr(left),
            _ => self.operand(left),
        }
        self.say(match operator {
            Operator::And => " AND ",
            Operator::Or => " OR ",
            Operator::Equal => " = ",
            Operator::Unequal => " <> ",
            Operator::Less => " < ",
            Operator::LessOrEqual => " <= ",
            Operator::Greater => " > ",
            Operator::GreaterOrEqual => " >= ",
            Operator::Plus => " + ",
            Operator::Minus => " - ",
            Operator::Times => " * ",
            Operator::Divide => " / ",
            Operator::Remainder => " % ",
            Operator::Concat => " || ",
        });
        self.operand(right);
    }

    fn text(&mut self, text: &str) {
        self.say("'");
        self.say(&text.replace('\'', "''"));
        self.say("'");
    }

    fn blob(&mut self, bytes: &[u8]) {
        self.say("x'");
        for byte in bytes {
            let _ = write!(self.out, "{byte:02x}");
        }
        self.say("'");
    }

    fn inside(&mut self, word: &str, values: &[Expr]) {
        self.say(word);
        self.say("(");
        self.list(values, Printer::expr);
        self.say(")");
    }

    fn case(&mut self, operand: Option<&Expr>, branches: &[(Expr, Expr)], otherwise: Option<&Expr>) {
        self.say("CASE");
        if let Some(operand) = operand {
            self.say(" ");
            self.expr(operand);
        }
        for (condition, result) in branches {
            self.say(" WHEN ");
            self.expr(condition);
            self.say(" THEN ");
            self.expr(result);
        }
        if let Some(otherwise) = otherwise {
            self.say(" ELSE ");
            self.expr(otherwise);
        }
        self.say(" END");
    }

    pub(super) fn kind(&mut self, kind: Type) {
        self.say(match kind {
            Type::Text => "TEXT",
            Type::BigInt | Type::Integer => "INTEGER",
            Type::Int => "INT",
            Type::Double => "REAL",
            Type::Blob => "BLOB",
        });
    }

    fn function(&mut self, function: &Function) {
        self.say(function.name);
        self.say("(");
        if function.distinct {
            self.say("DISTINCT ");
        }
        if function.star {
            self.say("*");
        }
        self.list(&function.arguments, Printer::expr);
        self.order(&function.order_by);
        self.say(")");
        if let Some(filter) = &function.filter {
            self.say(" FILTER (WHERE ");
            self.expr(filter);
            self.say(")");
        }
        if let Some(window) = &function.over {
            self.window(window);
        }
    }

    fn window(&mut self, window: &Window) {
        self.say(" OVER (");
        if !window.partition_by.is_empty() {
            self.say("PARTITION BY ");
            self.list(&window.partition_by, Printer::expr);
        }
        self.order(&window.order_by);
        if let Some(frame) = &window.frame {
            self.say(match frame.unit {
                Unit::Rows => " ROWS ",
                Unit::Range => " RANGE ",
                Unit::Groups => " GROUPS ",
            });
            match &frame.end {
                None => self.bound(&frame.start),
                Some(end) => {
                    self.say("BETWEEN ");
                    self.bound(&frame.start);
                    self.say(" AND ");
                    self.bound(end);
                }
            }
        }
        self.say(")");
    }

    fn bound(&mut self, bound: &Bound) {
        let (value, side) = match bound {
            Bound::Current => return self.say("CURRENT ROW"),
            Bound::Preceding(value) => (value, " PRECEDING"),
            Bound::Following(value) => (value, " FOLLOWING"),
        };
        match value {
            None => self.say("UNBOUNDED"),
            Some(value) => self.operand(value),
        }
        self.say(side);
    }
}
