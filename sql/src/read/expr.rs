//! Expressions.

use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, DuplicateTreatment, ExactNumberInfo, Expr as Parsed,
    Function as ParsedFunction, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, UnaryOperator, Value, ValueWithSpan, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowSpec, WindowType,
};

use super::{Context, column_name, name, none, query, single, sorted_by, width};
use crate::MAX_ARGUMENTS;
use crate::functions::{self, Use};
use crate::refusal::{Refusal, not_allowed};
use crate::tree::{Bound, Expr, Frame, Function, Operator, Type, Unit, Window};

/// List of allowed expressions, for messages.
const EXPRESSIONS: &str = "use = <> < <= > >= + - * / % || AND OR NOT IS IN BETWEEN LIKE EXISTS CASE CAST, \
                           subqueries, rows and functions";

pub(super) fn expr(parsed: Parsed, context: &mut Context<'_>) -> Result<Expr, Refusal> {
    let read = context.deeper(|context| convert(parsed, context));
    context.or_else(read, || Expr::Null)
}

pub(super) fn optional(parsed: Option<Parsed>, context: &mut Context<'_>) -> Result<Option<Expr>, Refusal> {
    parsed.map(|parsed| expr(parsed, context)).transpose()
}

pub(super) fn list(parsed: Vec<Parsed>, context: &mut Context<'_>) -> Result<Vec<Expr>, Refusal> {
    parsed.into_iter().map(|parsed| expr(parsed, context)).collect()
}

fn boxed(parsed: Parsed, context: &mut Context<'_>) -> Result<Box<Expr>, Refusal> {
    expr(parsed, context).map(Box::new)
}

fn convert(parsed: Parsed, context: &mut Context<'_>) -> Result<Expr, Refusal> {
    Ok(match parsed {
        Parsed::Identifier(ident) => Expr::Column {
            table: None,
            name: column_name(ident)?,
        },
        Parsed::CompoundIdentifier(parts) => {
            let parts: [_; 2] = parts.try_into().map_err(|_| {
                Refusal::NotAllowed("only the table's name may precede a column's name".to_owned())
            })?;
            let [table, column] = parts;
            Expr::Column {
                table: Some(name(table)?),
                name: column_name(column)?,
            }
        }
        Parsed::Value(value) => literal(value)?,
        Parsed::Nested(inner) => convert(*inner, context)?,
        Parsed::Tuple(parts) if parts.len() >= 2 => {
            width(parts.len())?;
            Expr::Row(list(parts, context)?)
        }
        Parsed::BinaryOp { .. } => chain(parsed, context)?,
        Parsed::UnaryOp { op, expr: inner } => unary(op, *inner, context)?,
        Parsed::Case {
            case_token: _,
            end_token: _,
            operand,
            conditions,
            else_result,
        } => case(operand, conditions, else_result, context)?,
        Parsed::Cast {
            kind: CastKind::Cast,
            expr: inner,
            data_type,
            format: None,
        } => Expr::Cast {
            value: boxed(*inner, context)?,
            kind: match kind(&data_type)? {
                Type::BigInt | Type::Int => Type::Integer,
                other => other,
            },
        },
        Parsed::Exists { subquery, negated } => {
            let exists = Expr::Exists(Box::new(query::query(*subquery, context)?));
            if negated {
                Expr::Not(Box::new(exists))
            } else {
                exists
            }
        }
        Parsed::Subquery(inner) => Expr::Subquery(Box::new(query::query(*inner, context)?)),
        Parsed::Function(call) => Expr::Function(Box::new(function(call, context)?)),
        other => predicate(other, context)?,
    })
}

/// Reads a predicate: true, false or unknown.
fn predicate(parsed: Parsed, context: &mut Context<'_>) -> Result<Expr, Refusal> {
    let is = |value: Box<Parsed>, truth, not, context: &mut Context<'_>| {
        boxed(*value, context).map(|value| Expr::Is { value, truth, not })
    };
    Ok(match parsed {
        Parsed::IsTrue(value) => is(value, true, false, context)?,
        Parsed::IsNotTrue(value) => is(value, true, true, context)?,
        Parsed::IsFalse(value) => is(value, false, false, context)?,
        Parsed::IsNotFalse(value) => is(value, false, true, context)?,
        Parsed::IsNull(value) => Expr::IsNull {
            value: boxed(*value, context)?,
            not: false,
        },
        Parsed::IsNotNull(value) => Expr::IsNull {
            value: boxed(*value, context)?,
            not: true,
        },
        Parsed::IsDistinctFrom(left, right) => Expr::Distinct {
            left: boxed(*left, context)?,
            right: compared(*right, context)?,
            not: false,
        },
        Parsed::IsNotDistinctFrom(left, right) => Expr::Distinct {
            left: boxed(*left, context)?,
            right: compared(*right, context)?,
            not: true,
        },
        Parsed::InList {
            expr: value,
            list: values,
            negated,
        } => Expr::In {
            value: boxed(*value, context)?,
            list: list(values, context)?,
            not: negated,
        },
        Parsed::InSubquery {
            expr: value,
            subquery,
            negated,
        } => Expr::InQuery {
            value: boxed(*value, context)?,
            query: Box::new(query::query(*subquery, context)?),
            not: negated,
        },
        Parsed::Between {
            expr: value,
            negated,
            low,
            high,
        } => Expr::Between {
            value: boxed(*value, context)?,
            low: boxed(*low, context)?,
            high: boxed(*high, context)?,
            not: negated,
        },
        Parsed::Like {
            negated,
            any: false,
            expr: value,
            pattern,
            escape_char,
        } => Expr::Like {
            value: boxed(*value, context)?,
            pattern: boxed(*pattern, context)?,
            escape: escape(escape_char)?,
            not: negated,
        },
        _ => return not_allowed(format!("an expression is not allowed; {EXPRESSIONS}")),
    })
}

fn escape(parsed: Option<Box<Parsed>>) -> Result<Option<char>, Refusal> {
    let Some(parsed) = parsed else {
        return Ok(None);
    };
    if let Parsed::Value(ValueWithSpan {
        value: Value::SingleQuotedString(text),
        span: _,
    }) = *parsed
    {
        let mut letters = text.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            return Ok(Some(letter));
        }
    }
    not_allowed("ESCAPE takes one character in quotes")
}

fn literal(value: ValueWithSpan) -> Result<Expr, Refusal> {
    let ValueWithSpan { value, span: _ } = value;
    Ok(match value {
        Value::Null => Expr::Null,
        Value::Boolean(truth) => Expr::Boolean(truth),
        Value::Number(digits, false) => Expr::Number(number(digits, false)?),
        Value::SingleQuotedString(text) => Expr::Text(text),
        Value::HexStringLiteral(digits) => Expr::Blob(bytes(&digits)?),
        Value::Placeholder(place) => {
            let number = place.strip_prefix('?').and_then(|number| number.parse().ok());
            let Some(number) = number else {
                return not_allowed("parameters are numbered, as in ?1");
            };
            Expr::Parameter(number)
        }
        _ => return not_allowed("a value is NULL, TRUE, FALSE, a number, a 'text', x'00' or ?1"),
    })
}

fn bytes(digits: &str) -> Result<Vec<u8>, Refusal> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    bytes
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| Refusal::NotAllowed("a blob must consist of pairs of hexadecimal digits".to_owned()))
}

/// Number that both engines read as written.
fn number(digits: String, negative: bool) -> Result<String, Refusal> {
    let whole = digits.bytes().all(|digit| digit.is_ascii_digit());
    let fits = if whole {
        let most = u64::from(negative) + i64::MAX.unsigned_abs();
        digits.parse::<u64>().is_ok_and(|number| number <= most)
    } else {
        digits.parse::<f64>().is_ok_and(f64::is_finite)
    };
    if !fits {
        return not_allowed(format!(
            "the number {} is larger than a column holds",
            digits.chars().take(40).collect::<String>()
        ));
    }
    Ok(digits)
}

fn unary(operator: UnaryOperator, inner: Parsed, context: &mut Context<'_>) -> Result<Expr, Refusal> {
    match (operator, inner) {
        (UnaryOperator::Not, inner) => Ok(Expr::Not(boxed(inner, context)?)),
        (
            UnaryOperator::Minus,
            Parsed::Value(ValueWithSpan {
                value: Value::Number(digits, false),
                span: _,
            }),
        ) => Ok(Expr::Negative(Box::new(Expr::Number(number(digits, true)?)))),
        // The engines disagree on the operand of such a minus.
        (
            UnaryOperator::Minus,
            Parsed::BinaryOp {
                op: BinaryOperator::StringConcat,
                ..
            },
        ) => not_allowed("- before || needs parentheses"),
        (UnaryOperator::Minus, inner) => Ok(Expr::Negative(boxed(inner, context)?)),
        _ => not_allowed(format!("a sign before a value is not allowed; {EXPRESSIONS}")),
    }
}

/// Reads a chain of left-associative operators iteratively, so that its length does not matter.
fn chain(parsed: Parsed, context: &mut Context<'_>) -> Result<Expr, Refusal> {
    let mut rest = Vec::new();
    let mut first = parsed;
    while let Parsed::BinaryOp { left, op, right } = first {
        let operator = operator(&op)?;
        if binds_tighter(operator) && is_said(&left) {
            return not_allowed("IS before an operator that binds tighter needs parentheses");
        }
        rest.push((operator, *right));
        first = *left;
    }
    if rest.len() + context.depth > crate::MAX_DEPTH {
        return not_allowed(format!(
            "at most {} operators are allowed in a row",
            crate::MAX_DEPTH
        ));
    }
    // The tree is as deep as the chain is long, in any position.
    let row = rest.len();
    context.depth += row;
    let mut left = expr(first, context)?;
    while let Some((operator, right)) = rest.pop() {
        left = Expr::Binary {
            left: Box::new(left),
            operator,
            right: boxed(right, context)?,
        };
    }
    context.depth -= row;
    Ok(left)
}

/// True if an operator binds tighter than IS.
fn binds_tighter(operator: Operator) -> bool {
    !matches!(
        operator,
        Operator::And | Operator::Or | Operator::Equal | Operator::Unequal
    )
}

/// True if an expression ends in an IS predicate. SQLite parses a following operator as part of the predicate.
fn is_said(parsed: &Parsed) -> bool {
    matches!(
        parsed,
        Parsed::IsTrue(_)
            | Parsed::IsNotTrue(_)
            | Parsed::IsFalse(_)
            | Parsed::IsNotFalse(_)
            | Parsed::IsNull(_)
            | Parsed::IsNotNull(_)
            | Parsed::IsDistinctFrom(..)
            | Parsed::IsNotDistinctFrom(..)
    )
}

/// Right side of IS DISTINCT FROM. The parser includes everything that follows, SQLite only operators that bind
/// tighter.
fn compared(parsed: Parsed, context: &mut Context<'_>) -> Result<Box<Expr>, Refusal> {
    let torn = match &parsed {
        Parsed::BinaryOp { op, .. } => !binds_tighter(operator(op)?),
        Parsed::UnaryOp {
            op: UnaryOperator::Not,
            ..
        }
        | Parsed::InList { .. }
        | Parsed::InSubquery { .. }
        | Parsed::Between { .. }
        | Parsed::Like { .. } => true,
        other => is_said(other),
    };
    if torn {
        return not_allowed("the operand after IS DISTINCT FROM needs parentheses");
    }
    boxed(parsed, context)
}

fn operator(parsed: &BinaryOperator) -> Result<Operator, Refusal> {
    Ok(match parsed {
        BinaryOperator::And => Operator::And,
        BinaryOperator::Or => Operator::Or,
        BinaryOperator::Eq => Operator::Equal,
        BinaryOperator::NotEq => Operator::Unequal,
        BinaryOperator::Lt => Operator::Less,
        BinaryOperator::LtEq => Operator::LessOrEqual,
        BinaryOperator::Gt => Operator::Greater,
        BinaryOperator::GtEq => Operator::GreaterOrEqual,
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Times,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Remainder,
        BinaryOperator::StringConcat => Operator::Concat,
        other => return not_allowed(format!("the operator {other} is not allowed; {EXPRESSIONS}")),
    })
}

fn case(
    operand: Option<Box<Parsed>>,
    conditions: Vec<CaseWhen>,
    otherwise: Option<Box<Parsed>>,
    context: &mut Context<'_>,
) -> Result<Expr, Refusal> {
    let operand = optional(operand.map(|operand| *operand), context)?;
    let branches = conditions
        .into_iter()
        .map(|CaseWhen { condition, result }| Ok((expr(condition, context)?, expr(result, context)?)));
    let branches = branches.collect::<Result<Vec<_>, Refusal>>()?;
    let otherwise = optional(otherwise.map(|otherwise| *otherwise), context)?;
    Ok(Expr::Case {
        operand: operand.map(Box::new),
        branches,
        otherwise: otherwise.map(Box::new),
    })
}

/// Types of columns and casts.
pub(super) fn kind(parsed: &DataType) -> Result<Type, Refusal> {
    Ok(match parsed {
        DataType::Text => Type::Text,
        DataType::BigInt(None) => Type::BigInt,
        DataType::Integer(None) => Type::Integer,
        DataType::Int(None) => Type::Int,
        DataType::Double(ExactNumberInfo::None) | DataType::DoublePrecision | DataType::Real => Type::Double,
        DataType::Blob(None) => Type::Blob,
        other => {
            return not_allowed(format!(
                "the type {other} is not allowed; types are TEXT, BIGINT, INTEGER, DOUBLE and BLOB"
            ));
        }
    })
}

fn function(parsed: ParsedFunction, context: &mut Context<'_>) -> Result<Function, Refusal> {
    let ParsedFunction {
        name,
        uses_odbc_syntax,
        parameters,
        args,
        within_group,
        filter,
        null_treatment,
        over,
    } = parsed;
    let said = single(name)?;
    let Some(entry) = functions::find(said.as_str()) else {
        return not_allowed(format!(
            "the function {} is not allowed; the functions are {}",
            said.as_str(),
            functions::names()
        ));
    };
    let plain = !uses_odbc_syntax
        && parameters == FunctionArguments::None
        && within_group.is_empty()
        && null_treatment.is_none();
    let FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment,
        args,
        clauses,
    }) = args
    else {
        return not_allowed(format!("{} takes its arguments in parentheses", entry.name));
    };
    none(!plain, "this call of a function")?;
    let star = matches!(args[..], [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
    let arguments = if star {
        Vec::new()
    } else {
        arguments(args, context)?
    };
    let function = Function {
        name: entry.name,
        distinct: matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct)),
        star,
        arguments,
        order_by: clause_order(clauses, context)?,
        filter: optional(filter.map(|filter| *filter), context)?,
        over: over.map(|over| window(over, context)).transpose()?,
    };
    fits(entry, &function)?;
    Ok(function)
}

fn arguments(parsed: Vec<FunctionArg>, context: &mut Context<'_>) -> Result<Vec<Expr>, Refusal> {
    if parsed.len() > MAX_ARGUMENTS {
        return not_allowed(format!("a function takes at most {MAX_ARGUMENTS} arguments"));
    }
    let arguments = parsed.into_iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => expr(value, context),
        FunctionArg::Unnamed(
            FunctionArgExpr::Wildcard
            | FunctionArgExpr::QualifiedWildcard(_)
            | FunctionArgExpr::WildcardWithOptions(_),
        )
        | FunctionArg::Named { .. }
        | FunctionArg::ExprNamed { .. } => {
            not_allowed("arguments of functions are values; only count accepts *")
        }
    });
    arguments.collect()
}

fn clause_order(
    clauses: Vec<FunctionArgumentClause>,
    context: &mut Context<'_>,
) -> Result<Vec<crate::tree::Order>, Refusal> {
    let mut order = Vec::new();
    for clause in clauses {
        match clause {
            FunctionArgumentClause::OrderBy(terms) if order.is_empty() => {
                order = query::order(terms, context)?
            }
            _ => {
                return not_allowed(
                    "a function's parentheses may contain only values, DISTINCT and ORDER BY",
                );
            }
        }
    }
    Ok(order)
}

/// Checks that a function is used according to its kind.
fn fits(entry: &functions::Entry, function: &Function) -> Result<(), Refusal> {
    let count = function.arguments.len();
    let counted = (entry.least..=entry.most).contains(&count) && (!function.star || entry.name == "count");
    if !counted || (entry.name == "count" && count == 0 && !function.star) {
        return not_allowed(format!(
            "{} takes {} to {} arguments",
            entry.name,
            entry.least.max(usize::from(entry.name == "count")),
            entry.most
        ));
    }
    let aggregate = entry.used == Use::Aggregate || (entry.used == Use::Both && count == 1);
    let over = function.over.is_some();
    if over && !aggregate && entry.used != Use::Window {
        return not_allowed(format!("{} cannot have OVER", entry.name));
    }
    if !over && entry.used == Use::Window {
        return not_allowed(format!("{} needs OVER", entry.name));
    }
    let extra = function.distinct || function.filter.is_some() || !function.order_by.is_empty();
    if extra && !aggregate || function.distinct && (over || function.star) {
        return not_allowed(format!(
            "DISTINCT, FILTER and ORDER BY belong to aggregates, not to {}",
            entry.name
        ));
    }
    Ok(())
}

fn window(parsed: WindowType, context: &mut Context<'_>) -> Result<Window, Refusal> {
    let WindowType::WindowSpec(WindowSpec {
        window_name: None,
        partition_by,
        order_by,
        window_frame,
    }) = parsed
    else {
        return not_allowed("named windows are not allowed; put the window in parentheses after OVER");
    };
    sorted_by(partition_by.len())?;
    Ok(Window {
        partition_by: list(partition_by, context)?,
        order_by: query::order(order_by, context)?,
        frame: window_frame.map(|parsed| frame(parsed, context)).transpose()?,
    })
}

fn frame(parsed: WindowFrame, context: &mut Context<'_>) -> Result<Frame, Refusal> {
    let WindowFrame {
        units,
        start_bound,
        end_bound,
    } = parsed;
    Ok(Frame {
        unit: match units {
            WindowFrameUnits::Rows => Unit::Rows,
            WindowFrameUnits::Range => Unit::Range,
            WindowFrameUnits::Groups => Unit::Groups,
        },
        start: bound(start_bound, context)?,
        end: end_bound.map(|parsed| bound(parsed, context)).transpose()?,
    })
}

fn bound(parsed: WindowFrameBound, context: &mut Context<'_>) -> Result<Bound, Refusal> {
    Ok(match parsed {
        WindowFrameBound::CurrentRow => Bound::Current,
        WindowFrameBound::Preceding(value) => Bound::Preceding(optional(value.map(|value| *value), context)?),
        WindowFrameBound::Following(value) => Bound::Following(optional(value.map(|value| *value), context)?),
    })
}
