//! Statements of a call: queries, and changes of rows.

use sqlparser::ast::{
    Assignment as ParsedAssignment, AssignmentTarget, ConflictTarget, Delete as ParsedDelete, DoUpdate,
    FromTable, Insert as ParsedInsert, ObjectName, OnConflict, OnConflictAction, OnInsert,
    Query as ParsedQuery, SetExpr, Statement as Parsed, TableAliasWithoutColumns, TableFactor, TableObject,
    TableWithJoins, Update as ParsedUpdate, UpdateTableFromKind,
};

use super::expr::{expr, optional};
use super::query::{self, alias, column, items, sources};
use super::{Context, column_names, name, none, width};
use crate::refusal::{Refusal, not_allowed};
use crate::tree::{
    Assignment, Body, Conflict, Delete, Expr, Insert, Name, Part, Query, Select, Statement, Update, With,
};

pub(super) fn statement(
    parsed: Parsed,
    context: &mut Context<'_>,
    allowed: &str,
) -> Result<Statement, Refusal> {
    match parsed {
        Parsed::Query(parsed) => with_before(*parsed, context, allowed),
        other => change(other, None, context, allowed),
    }
}

/// Reads a WITH in front of a query or a change.
fn with_before(parsed: ParsedQuery, context: &mut Context<'_>, allowed: &str) -> Result<Statement, Refusal> {
    let mut parts = query::parts(parsed)?;
    let with = parts
        .with
        .take()
        .map(|with| query::with(with, context))
        .transpose()?;
    match parts.body {
        SetExpr::Insert(parsed) | SetExpr::Update(parsed) | SetExpr::Delete(parsed) => {
            change(parsed, with, context, allowed)
        }
        _ => Ok(Statement::Query(query::finish(parts, with, context)?)),
    }
}

fn change(
    parsed: Parsed,
    with: Option<With>,
    context: &mut Context<'_>,
    allowed: &str,
) -> Result<Statement, Refusal> {
    Ok(match parsed {
        Parsed::Insert(parsed) => Statement::Insert(Box::new(insert(parsed, with, context)?)),
        Parsed::Update(parsed) => Statement::Update(Box::new(update(parsed, with, context)?)),
        Parsed::Delete(parsed) => Statement::Delete(Box::new(delete(parsed, with, context)?)),
        _ => return not_allowed(format!("not allowed; {allowed}")),
    })
}

fn insert(parsed: ParsedInsert, with: Option<With>, context: &mut Context<'_>) -> Result<Insert, Refusal> {
    let ParsedInsert {
        insert_token: _,
        optimizer_hints,
        or,
        ignore,
        into,
        table,
        table_alias,
        columns,
        overwrite,
        source,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on,
        returning,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = parsed;
    let replaces = or.is_some() || ignore || replace_into || overwrite;
    none(replaces, "INSERT OR (use ON CONFLICT … DO NOTHING or DO UPDATE)")?;
    let more = !optimizer_hints.is_empty()
        || !into
        || !assignments.is_empty()
        || partitioned.is_some()
        || !after_columns.is_empty()
        || has_table_keyword
        || output.is_some()
        || priority.is_some()
        || insert_alias.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    none(more, "this form of INSERT")?;
    let TableObject::TableName(table) = table else {
        return not_allowed("INSERT INTO takes a table");
    };
    let table = context.own(table)?;
    let conflict = on.map(|on| conflict(on, &table, context)).transpose()?;
    let rows = source.map(|source| query::query(*source, context)).transpose()?;
    Ok(Insert {
        with,
        alias: table_alias.map(insert_as).transpose()?,
        columns: names(columns)?,
        rows: rows.map(|rows| {
            if conflict.is_some() {
                unambiguous(rows)
            } else {
                rows
            }
        }),
        conflict,
        returning: items(returning.unwrap_or_default(), context)?,
        table,
    })
}

fn insert_as(parsed: TableAliasWithoutColumns) -> Result<Name, Refusal> {
    let TableAliasWithoutColumns { explicit: _, alias } = parsed;
    name(alias)
}

/// Without a WHERE in the SELECT, SQLite takes the ON of ON CONFLICT for a join condition.
fn unambiguous(mut rows: Query) -> Query {
    let Body { first, rest } = &mut rows.body;
    let last = rest.last_mut().map_or(first, |(_, part)| part);
    if let Part::Select(select) = last {
        let Select { from, condition, .. } = select.as_mut();
        if !from.is_empty() && condition.is_none() {
            *condition = Some(Expr::Boolean(true));
        }
    }
    rows
}

fn conflict(parsed: OnInsert, table: &Name, context: &mut Context<'_>) -> Result<Conflict, Refusal> {
    let OnInsert::OnConflict(OnConflict {
        conflict_target,
        action,
    }) = parsed
    else {
        return not_allowed("ON DUPLICATE KEY is not allowed; use ON CONFLICT (…) DO UPDATE");
    };
    let columns = match conflict_target {
        None => Vec::new(),
        Some(ConflictTarget::Columns(columns)) => column_names(columns)?,
        Some(ConflictTarget::OnConstraint(_)) => return not_allowed("ON CONFLICT takes columns"),
    };
    let update = match action {
        OnConflictAction::DoNothing => None,
        OnConflictAction::DoUpdate(DoUpdate {
            assignments,
            selection,
        }) => {
            context.may_change(table, "DO UPDATE")?;
            if columns.is_empty() {
                return not_allowed("DO UPDATE needs the columns of the conflict: ON CONFLICT (…) DO UPDATE");
            }
            Some((
                self::assignments(assignments, context)?,
                optional(selection, context)?,
            ))
        }
    };
    Ok(Conflict { columns, update })
}

fn assignments(parsed: Vec<ParsedAssignment>, context: &mut Context<'_>) -> Result<Vec<Assignment>, Refusal> {
    width(parsed.len())?;
    let assignments = parsed.into_iter().map(|parsed| {
        let ParsedAssignment { target, value } = parsed;
        let columns = match target {
            AssignmentTarget::ColumnName(column) => names(vec![column])?,
            AssignmentTarget::Tuple(columns) => names(columns)?,
        };
        Ok(Assignment {
            columns,
            value: expr(value, context)?,
        })
    });
    assignments.collect()
}

fn names(parsed: Vec<ObjectName>) -> Result<Vec<Name>, Refusal> {
    width(parsed.len())?;
    parsed.into_iter().map(column).collect()
}

fn update(parsed: ParsedUpdate, with: Option<With>, context: &mut Context<'_>) -> Result<Update, Refusal> {
    let ParsedUpdate {
        update_token: _,
        optimizer_hints,
        table,
        assignments: parsed,
        from,
        selection,
        returning,
        output,
        or,
        order_by,
        limit,
    } = parsed;
    let more = !optimizer_hints.is_empty()
        || output.is_some()
        || or.is_some()
        || !order_by.is_empty()
        || limit.is_some();
    none(more, "this form of UPDATE (OR, ORDER BY, LIMIT)")?;
    let (table, alias) = target(table, "UPDATE", context)?;
    let from = match from {
        None => Vec::new(),
        Some(UpdateTableFromKind::AfterSet(from)) => sources(from, context)?,
        Some(UpdateTableFromKind::BeforeSet(_)) => return not_allowed("FROM comes after SET"),
    };
    Ok(Update {
        with,
        table,
        alias,
        assignments: assignments(parsed, context)?,
        from,
        condition: optional(selection, context)?,
        returning: items(returning.unwrap_or_default(), context)?,
    })
}

fn delete(parsed: ParsedDelete, with: Option<With>, context: &mut Context<'_>) -> Result<Delete, Refusal> {
    let ParsedDelete {
        delete_token: _,
        optimizer_hints,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        order_by,
        limit,
    } = parsed;
    let more = !optimizer_hints.is_empty()
        || !tables.is_empty()
        || using.is_some()
        || output.is_some()
        || !order_by.is_empty()
        || limit.is_some();
    none(more, "this form of DELETE (USING, ORDER BY, LIMIT)")?;
    let FromTable::WithFromKeyword(from) = from else {
        return not_allowed("DELETE needs FROM");
    };
    let [table] = <[TableWithJoins; 1]>::try_from(from)
        .map_err(|_| Refusal::NotAllowed("DELETE FROM takes one table".to_owned()))?;
    let (table, alias) = target(table, "DELETE", context)?;
    Ok(Delete {
        with,
        table,
        alias,
        condition: optional(selection, context)?,
        returning: items(returning.unwrap_or_default(), context)?,
    })
}

/// Table whose rows UPDATE or DELETE changes.
fn target(
    parsed: TableWithJoins,
    verb: &'static str,
    context: &mut Context<'_>,
) -> Result<(Name, Option<Name>), Refusal> {
    let TableWithJoins { relation, joins } = parsed;
    none(!joins.is_empty(), "a join here")?;
    let TableFactor::Table {
        name: table,
        alias: said,
        args,
        with_hints,
        version,
        with_ordinality,
        partitions,
        json_path,
        sample,
        index_hints,
    } = relation
    else {
        return not_allowed(format!("{verb} takes a table"));
    };
    let more = args.is_some()
        || !with_hints.is_empty()
        || version.is_some()
        || with_ordinality
        || !partitions.is_empty()
        || json_path.is_some()
        || sample.is_some()
        || !index_hints.is_empty();
    none(more, "anything but an alias after a table")?;
    Ok((context.changed(table, verb)?, said.map(alias).transpose()?))
}
