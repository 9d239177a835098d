//! Queries: WITH, SELECT, VALUES and the operators that combine them.

use sqlparser::ast::{
    Cte as ParsedCte, Distinct, Expr as ParsedExpr, GroupByExpr, Join as ParsedJoin, JoinConstraint,
    JoinOperator, LimitClause, ObjectName, Offset, OrderBy, OrderByExpr, OrderByKind, OrderByOptions,
    OrderBySort, Parens, Query as ParsedQuery, Select as ParsedSelect, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, Values, WildcardAdditionalOptions, With as ParsedWith,
};

use super::expr::{expr, list, optional};
use super::{Context, column_name, column_names, name, none, single, sorted_by, width};
use crate::refusal::{Refusal, not_allowed};
use crate::tree::{
    Body, Compound, Cte, Direction, FromItem, Item, Join, JoinKind, Name, On, Order, Part, Query, Select,
    Source, With,
};
use crate::{MAX_COMPOUND, MAX_JOINED, MAX_QUERIES, MAX_TABLES};

pub(super) fn query(parsed: ParsedQuery, context: &mut Context<'_>) -> Result<Query, Refusal> {
    if context.queries == MAX_QUERIES {
        return not_allowed(format!("queries nest at most {MAX_QUERIES} deep"));
    }
    context.queries += 1;
    let read = context.deeper(|context| {
        let known = context.with.len();
        let query = scoped(parsed, context);
        context.with.truncate(known);
        query
    });
    context.queries -= 1;
    read
}

/// Parts of a query, for statements with a WITH in front.
pub(super) struct Parts {
    pub(super) with: Option<ParsedWith>,
    pub(super) body: SetExpr,
    order_by: Option<OrderBy>,
    limit_clause: Option<LimitClause>,
}

pub(super) fn parts(parsed: ParsedQuery) -> Result<Parts, Refusal> {
    let ParsedQuery {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = parsed;
    none(fetch.is_some(), "FETCH (use LIMIT)")?;
    none(!locks.is_empty() || for_clause.is_some(), "FOR")?;
    none(
        settings.is_some() || format_clause.is_some(),
        "SETTINGS or FORMAT",
    )?;
    none(!pipe_operators.is_empty(), "|>")?;
    Ok(Parts {
        with,
        body: *body,
        order_by,
        limit_clause,
    })
}

fn scoped(parsed: ParsedQuery, context: &mut Context<'_>) -> Result<Query, Refusal> {
    finish(parts(parsed)?, None, context)
}

/// Reads the rest after WITH, which the caller may have read already.
pub(super) fn finish(
    parts: Parts,
    before: Option<With>,
    context: &mut Context<'_>,
) -> Result<Query, Refusal> {
    let Parts {
        with,
        body: parsed,
        order_by,
        limit_clause,
    } = parts;
    let with = match with {
        Some(parsed) => Some(self::with(parsed, context)?),
        None => before,
    };
    let mut queries = Vec::new();
    let first = body(parsed, &mut queries, context)?;
    if queries.len() + 1 > MAX_COMPOUND {
        return not_allowed(format!("at most {MAX_COMPOUND} queries can be combined"));
    }
    let (limit, offset) = limits(limit_clause, context)?;
    Ok(Query {
        with,
        body: Body { first, rest: queries },
        order_by: match order_by {
            None => Vec::new(),
            Some(OrderBy {
                kind: OrderByKind::Expressions(terms),
                interpolate: None,
            }) => order(terms, context)?,
            Some(_) => return not_allowed("ORDER BY takes expressions"),
        },
        limit,
        offset,
    })
}

pub(super) fn with(parsed: ParsedWith, context: &mut Context<'_>) -> Result<With, Refusal> {
    let ParsedWith {
        with_token: _,
        recursive,
        cte_tables,
    } = parsed;
    let tables = cte_tables.into_iter().map(|table| cte(table, recursive, context));
    Ok(With {
        recursive,
        tables: tables.collect::<Result<_, _>>()?,
    })
}

/// One table of WITH. Its name is in scope from here on, and inside its own query if it is recursive.
fn cte(parsed: ParsedCte, recursive: bool, context: &mut Context<'_>) -> Result<Cte, Refusal> {
    let ParsedCte {
        alias,
        query: body,
        from,
        materialized,
        closing_paren_token: _,
    } = parsed;
    none(from.is_some(), "FROM in WITH")?;
    none(materialized.is_some(), "MATERIALIZED")?;
    let (table, columns) = alias_with_columns(alias)?;
    let folded = table.folded();
    if ["sqlite_", "core_", "pg_", "pragma_", "json_", "tg_"]
        .iter()
        .any(|taken| folded.starts_with(taken))
        || folded.starts_with(&context.owner.prefix.to_ascii_lowercase())
    {
        return not_allowed(format!(
            "a name in WITH must not start like a table's: `{}` could be taken for one",
            table.0
        ));
    }
    context.given.push(folded.clone());
    let before = std::mem::take(&mut context.tables);
    let place = context.with.len();
    if recursive {
        context.with.push((folded.clone(), 1));
    }
    let body = query(*body, context)?;
    let stands_for = std::mem::replace(&mut context.tables, before).max(1);
    if stands_for > MAX_TABLES {
        context.tables = stands_for;
    }
    context.with.truncate(place);
    context.with.push((folded, stands_for));
    Ok(Cte {
        name: table,
        columns,
        query: body,
    })
}

fn body(
    parsed: SetExpr,
    rest: &mut Vec<(Compound, Part)>,
    context: &mut Context<'_>,
) -> Result<Part, Refusal> {
    let mut reversed = Vec::new();
    let mut first = parsed;
    while let SetExpr::SetOperation {
        left,
        op,
        set_quantifier,
        right,
    } = first
    {
        reversed.push((compound(op, set_quantifier)?, *right));
        first = *left;
    }
    let first = part(first, context)?;
    for (compound, right) in reversed.into_iter().rev() {
        rest.push((compound, part(right, context)?));
    }
    Ok(first)
}

fn compound(operator: SetOperator, quantifier: SetQuantifier) -> Result<Compound, Refusal> {
    Ok(match (operator, quantifier) {
        (SetOperator::Union, SetQuantifier::All) => Compound::UnionAll,
        (SetOperator::Union, SetQuantifier::None) => Compound::Union,
        (SetOperator::Except, SetQuantifier::None) => Compound::Except,
        (SetOperator::Intersect, SetQuantifier::None) => Compound::Intersect,
        _ => return not_allowed("queries are combined with UNION, UNION ALL, EXCEPT and INTERSECT"),
    })
}

fn part(parsed: SetExpr, context: &mut Context<'_>) -> Result<Part, Refusal> {
    match parsed {
        SetExpr::Select(parsed) => Ok(Part::Select(Box::new(select(*parsed, context)?))),
        SetExpr::Values(Values {
            explicit_row: false,
            value_keyword: false,
            rows,
        }) => {
            let rows = rows.into_iter().map(|row| {
                let Parens {
                    opening_token: _,
                    content,
                    closing_token: _,
                } = row;
                width(content.len())?;
                list(content, context)
            });
            Ok(Part::Values(rows.collect::<Result<_, _>>()?))
        }
        SetExpr::SetOperation { .. } | SetExpr::Query(_) => not_allowed(
            "queries are combined from the left, without parentheses; INTERSECT after UNION or EXCEPT needs \
             a subquery in FROM",
        ),
        _ => not_allowed("a query inside a statement must be SELECT or VALUES"),
    }
}

fn select(parsed: ParsedSelect, context: &mut Context<'_>) -> Result<Select, Refusal> {
    let ParsedSelect {
        select_token: _,
        optimizer_hints,
        distinct,
        select_modifiers,
        top,
        top_before_distinct,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having,
        named_window,
        qualify,
        window_before_qualify,
        value_table_mode,
        flavor,
    } = parsed;
    let foreign = !optimizer_hints.is_empty()
        || select_modifiers.is_some()
        || top.is_some()
        || top_before_distinct
        || exclude.is_some()
        || !lateral_views.is_empty()
        || prewhere.is_some()
        || !connect_by.is_empty()
        || !cluster_by.is_empty()
        || !distribute_by.is_empty()
        || !sort_by.is_empty()
        || qualify.is_some()
        || window_before_qualify
        || value_table_mode.is_some()
        || flavor != SelectFlavor::Standard;
    none(foreign, "this clause of SELECT")?;
    none(into.is_some(), "SELECT INTO")?;
    none(!named_window.is_empty(), "WINDOW")?;
    // FROM is read first, so that refusals mention tables.
    let from = sources(from, context)?;
    Ok(Select {
        distinct: match distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return not_allowed("DISTINCT ON is not allowed"),
        },
        results: items(projection, context)?,
        from,
        condition: optional(selection, context)?,
        group_by: match group_by {
            GroupByExpr::Expressions(terms, modifiers) if modifiers.is_empty() => {
                sorted_by(terms.len())?;
                list(terms, context)?
            }
            GroupByExpr::Expressions(..) | GroupByExpr::All(_) => {
                return not_allowed("GROUP BY takes expressions");
            }
        },
        having: optional(having, context)?,
    })
}

pub(super) fn items(parsed: Vec<SelectItem>, context: &mut Context<'_>) -> Result<Vec<Item>, Refusal> {
    width(parsed.len())?;
    parsed.into_iter().map(|parsed| item(parsed, context)).collect()
}

fn item(parsed: SelectItem, context: &mut Context<'_>) -> Result<Item, Refusal> {
    Ok(match parsed {
        SelectItem::UnnamedExpr(value) => Item::One {
            value: expr(value, context)?,
            alias: None,
        },
        SelectItem::ExprWithAlias { expr: value, alias } => Item::One {
            value: expr(value, context)?,
            alias: Some(column_name(alias)?),
        },
        SelectItem::Wildcard(options) => {
            bare(options)?;
            Item::All
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
            bare(options)?;
            Item::AllOf(single(table)?)
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _)
        | SelectItem::ExprWithAliases { .. } => {
            return not_allowed("a result is an expression with or without an alias, * or a table's *");
        }
    })
}

fn bare(options: WildcardAdditionalOptions) -> Result<(), Refusal> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let more = opt_ilike.is_some()
        || opt_exclude.is_some()
        || opt_except.is_some()
        || opt_replace.is_some()
        || opt_rename.is_some()
        || opt_alias.is_some();
    none(more, "anything after *")
}

pub(super) fn sources(
    parsed: Vec<TableWithJoins>,
    context: &mut Context<'_>,
) -> Result<Vec<Source>, Refusal> {
    let joined: usize = parsed.iter().map(|source| 1 + source.joins.len()).sum();
    if joined > MAX_JOINED {
        return not_allowed(format!("a FROM names at most {MAX_JOINED} tables"));
    }
    let sources = parsed.into_iter().map(|parsed| {
        let TableWithJoins { relation, joins } = parsed;
        Ok(Source {
            first: place(relation, context)?,
            joins: joins
                .into_iter()
                .map(|parsed| join(parsed, context))
                .collect::<Result<_, Refusal>>()?,
        })
    });
    sources.collect()
}

fn join(parsed: ParsedJoin, context: &mut Context<'_>) -> Result<Join, Refusal> {
    let ParsedJoin {
        relation,
        global,
        join_operator,
    } = parsed;
    none(global, "GLOBAL")?;
    let (kind, constraint) = match join_operator {
        JoinOperator::Join(on) | JoinOperator::Inner(on) => (JoinKind::Inner, on),
        JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (JoinKind::Left, on),
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (JoinKind::Right, on),
        JoinOperator::FullOuter(on) => (JoinKind::Full, on),
        JoinOperator::CrossJoin(on) => (JoinKind::Cross, on),
        _ => return not_allowed("joins are JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN and CROSS JOIN"),
    };
    let place = place(relation, context)?;
    let on = match constraint {
        JoinConstraint::None => On::Nothing,
        JoinConstraint::On(condition) => On::Condition(expr(condition, context)?),
        JoinConstraint::Using(columns) => {
            width(columns.len())?;
            On::Columns(columns.into_iter().map(column).collect::<Result<_, _>>()?)
        }
        JoinConstraint::Natural => return not_allowed("NATURAL is not allowed"),
    };
    if (kind == JoinKind::Cross) && on != On::Nothing {
        return not_allowed("CROSS JOIN cannot have a condition");
    }
    Ok(Join { kind, place, on })
}

/// Name of a column where the parser expects any name.
pub(super) fn column(parsed: ObjectName) -> Result<Name, Refusal> {
    let name = single(parsed)?;
    column_name(sqlparser::ast::Ident::new(name.0))
}

fn place(parsed: TableFactor, context: &mut Context<'_>) -> Result<FromItem, Refusal> {
    match parsed {
        TableFactor::Table {
            name: table,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            none(args.is_some(), "a function as a table")?;
            let more = !with_hints.is_empty()
                || version.is_some()
                || with_ordinality
                || !partitions.is_empty()
                || json_path.is_some()
                || sample.is_some()
                || !index_hints.is_empty();
            none(more, "anything but an alias after a table")?;
            let name = known(table, context)?;
            Ok(FromItem::Table {
                name,
                alias: alias.map(self::alias).transpose()?,
            })
        }
        TableFactor::Derived {
            lateral: false,
            subquery,
            alias,
            sample: None,
        } => {
            let query = Box::new(query(*subquery, context)?);
            Ok(FromItem::Query {
                query,
                alias: alias.map(self::alias).transpose()?,
            })
        }
        _ => not_allowed("FROM has tables and subqueries"),
    }
}

/// Table that is read: a table of WITH, or the component's own.
fn known(table: ObjectName, context: &mut Context<'_>) -> Result<Name, Refusal> {
    let name = single(table.clone())?;
    let folded = name.folded();
    let given = context.with.iter().rev().find(|(given, _)| *given == folded);
    let (name, stands_for) = match given {
        Some((_, stands_for)) => (name, *stands_for),
        None => (context.own(table)?, 1),
    };
    context.tables = context.tables.saturating_add(stands_for);
    if context.tables > MAX_TABLES {
        context.finish()?;
    }
    Ok(name)
}

pub(super) fn alias(parsed: TableAlias) -> Result<Name, Refusal> {
    let (name, columns) = alias_with_columns(parsed)?;
    none(!columns.is_empty(), "an alias that names columns")?;
    Ok(name)
}

fn alias_with_columns(parsed: TableAlias) -> Result<(Name, Vec<Name>), Refusal> {
    let TableAlias {
        explicit: _,
        name: alias,
        columns,
        at,
    } = parsed;
    none(at.is_some(), "AT")?;
    let columns = columns.into_iter().map(|column| {
        let TableAliasColumnDef { name, data_type } = column;
        none(data_type.is_some(), "a type in a list of names")?;
        Ok(name)
    });
    Ok((
        name(alias)?,
        column_names(columns.collect::<Result<_, Refusal>>()?)?,
    ))
}

pub(super) fn order(parsed: Vec<OrderByExpr>, context: &mut Context<'_>) -> Result<Vec<Order>, Refusal> {
    sorted_by(parsed.len())?;
    let terms = parsed.into_iter().map(|term| {
        let OrderByExpr {
            expr: value,
            options,
            with_fill,
        } = term;
        none(with_fill.is_some(), "WITH FILL")?;
        let OrderByOptions { sort, nulls_first } = options;
        Ok(Order {
            value: expr(value, context)?,
            direction: direction(sort)?,
            nulls_first,
        })
    });
    terms.collect()
}

pub(super) fn direction(sort: Option<OrderBySort>) -> Result<Direction, Refusal> {
    Ok(match sort {
        None => Direction::Unsaid,
        Some(OrderBySort::Asc) => Direction::Up,
        Some(OrderBySort::Desc) => Direction::Down,
        Some(OrderBySort::Using(_)) => return not_allowed("an order is ASC or DESC"),
    })
}

type Limits = (Option<crate::tree::Expr>, Option<crate::tree::Expr>);

fn limits(parsed: Option<LimitClause>, context: &mut Context<'_>) -> Result<Limits, Refusal> {
    match parsed {
        None => Ok((None, None)),
        Some(LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        }) if limit_by.is_empty() => {
            let offset: Option<ParsedExpr> = offset.map(|Offset { value, rows: _ }| value);
            if limit.is_none() && offset.is_some() {
                return not_allowed("OFFSET needs a LIMIT before it");
            }
            Ok((optional(limit, context)?, optional(offset, context)?))
        }
        Some(_) => not_allowed("LIMIT is written LIMIT n OFFSET m"),
    }
}
