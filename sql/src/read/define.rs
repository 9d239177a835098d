//! Statements of migrations: tables, columns, indexes, and changes of rows.

use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{
    AlterTable, AlterTableOperation, CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef,
    CreateIndex as ParsedIndex, CreateTable as ParsedTable, CreateTableOptions, Expr as ParsedExpr,
    ForeignKeyConstraint, Ident, IndexColumn, KeyOrIndexDisplay, NullsDistinctOption, ObjectType,
    OrderByExpr, OrderByOptions, PrimaryKeyConstraint, ReferentialAction, RenameTableNameKind, SqlOption,
    Statement as Parsed, TableConstraint, UniqueConstraint, Value, ValueWithSpan,
};
use sqlparser::keywords::Keyword;

use super::expr::{expr, kind, optional};
use super::query::direction;
use super::{Context, DEFINITIONS, column_name, column_names, name, none, width, write};
use crate::refusal::{Refusal, not_allowed};
use crate::tree::{
    Column, Constraint, CreateIndex, CreateTable, Definition, Direction, Name, Reaction, Reference, Rule,
    TableRule, Type,
};

/// First keywords of allowed statements.
pub(super) const STARTS: &[Keyword] = &[
    Keyword::SELECT,
    Keyword::WITH,
    Keyword::VALUES,
    Keyword::INSERT,
    Keyword::UPDATE,
    Keyword::DELETE,
    Keyword::CREATE,
    Keyword::ALTER,
    Keyword::DROP,
];

pub(super) fn definition(parsed: Parsed, context: &mut Context<'_>) -> Result<Definition, Refusal> {
    Ok(match parsed {
        Parsed::CreateTable(parsed) => Definition::CreateTable(create_table(parsed, context)?),
        Parsed::CreateIndex(parsed) => Definition::CreateIndex(create_index(parsed, context)?),
        Parsed::AlterTable(parsed) => alter(parsed, context)?,
        Parsed::Drop {
            object_type,
            if_exists,
            mut names,
            cascade,
            restrict,
            purge,
            temporary,
            table,
        } => {
            let odd = cascade || restrict || purge || temporary || table.is_some() || names.len() != 1;
            context.note(none(
                odd,
                "DROP of several names, or with CASCADE, RESTRICT or TEMPORARY,",
            ))?;
            let Some(dropped) = names.pop() else {
                return not_allowed("DROP takes a name");
            };
            match object_type {
                ObjectType::Table => Definition::DropTable {
                    table: context.changed(dropped, "DROP TABLE")?,
                    if_exists,
                },
                ObjectType::Index => Definition::DropIndex {
                    index: context.own(dropped)?,
                    if_exists,
                },
                other => return not_allowed(format!("DROP {other} is not allowed; {DEFINITIONS}")),
            }
        }
        Parsed::Query(_) | Parsed::Insert(_) | Parsed::Update(_) | Parsed::Delete(_) => {
            let statement = write::statement(parsed, context, DEFINITIONS)?;
            context.finish()?;
            if matches!(statement, crate::tree::Statement::Query(_)) {
                return not_allowed(format!("a query has no effect here; {DEFINITIONS}"));
            }
            Definition::Change(statement)
        }
        _ => return not_allowed(format!("not allowed; {DEFINITIONS}")),
    })
}

fn create_table(parsed: ParsedTable, context: &mut Context<'_>) -> Result<CreateTable, Refusal> {
    // Rebuild the table from the fields that are read and nothing else. If it differs from the parsed one, the text
    // has something more, in this version of the parser or a later one, and is refused.
    let plain = CreateTableBuilder::new(parsed.name.clone())
        .if_not_exists(parsed.if_not_exists)
        .hive_formats(parsed.hive_formats.clone())
        .columns(parsed.columns.clone())
        .constraints(parsed.constraints.clone())
        .table_options(parsed.table_options.clone())
        .build();
    let unformatted = parsed
        .hive_formats
        .as_ref()
        .is_none_or(|formats| *formats == sqlparser::ast::HiveFormat::default());
    context.note(none(
        plain != parsed || !unformatted,
        "this form of CREATE TABLE (TEMPORARY, AS, LIKE, STRICT, WITHOUT ROWID and the like)",
    ))?;
    let table = context.own(parsed.name)?;
    context.note(width(parsed.columns.len()))?;
    let columns = parsed.columns.into_iter().map(|parsed| column(parsed, context));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    if columns.is_empty() {
        context.note(not_allowed("a table must have columns"))?;
    }
    let constraints = parsed.constraints.into_iter().map(|parsed| {
        let read = constraint(parsed, context);
        context.or_else(read, || Constraint {
            name: None,
            rule: TableRule::PrimaryKey(Vec::new()),
        })
    });
    let constraints = constraints.collect::<Result<_, _>>()?;
    let option = match parsed.table_options {
        CreateTableOptions::None => Ok(false),
        CreateTableOptions::With(options) => append_only(options),
        _ => not_allowed("the only option of a table is WITH (append_only = true)"),
    };
    Ok(CreateTable {
        table,
        if_not_exists: parsed.if_not_exists,
        columns,
        constraints,
        append_only: context.or_else(option, || false)?,
    })
}

/// Reads the options. Only `append_only = true` is allowed. It cannot be undone, so `false` is not a value.
fn append_only(options: Vec<SqlOption>) -> Result<bool, Refusal> {
    let mut options = options.into_iter();
    let (Some(SqlOption::KeyValue { key, value }), None) = (options.next(), options.next()) else {
        return not_allowed("the only option of a table is append_only = true");
    };
    let yes = matches!(
        value,
        ParsedExpr::Value(ValueWithSpan {
            value: Value::Boolean(true),
            span: _
        })
    );
    if name(key)?.as_str() != "append_only" || !yes {
        return not_allowed("the only option of a table is append_only = true, which cannot be changed");
    }
    Ok(true)
}

fn column(parsed: ColumnDef, context: &mut Context<'_>) -> Result<Column, Refusal> {
    let ColumnDef {
        name,
        data_type,
        options,
    } = parsed;
    let name = context.or_else(column_name(name), || Name(String::new()))?;
    let kind = context.or_else(kind(&data_type), || Type::Text)?;
    let rules = options.into_iter().map(|option| {
        let ColumnOptionDef { name, option } = option;
        context.note(none(name.is_some(), "a name for the constraint of one column"))?;
        let read = rule(option, context);
        context.or_else(read, || Rule::Null)
    });
    let rules = rules.collect::<Result<_, Refusal>>()?;
    Ok(Column { name, kind, rules })
}

fn rule(parsed: ColumnOption, context: &mut Context<'_>) -> Result<Rule, Refusal> {
    Ok(match parsed {
        ColumnOption::Null => Rule::Null,
        ColumnOption::NotNull => Rule::NotNull,
        ColumnOption::Default(value) => Rule::Default(expr(value, context)?),
        ColumnOption::PrimaryKey(parsed) => {
            none(!primary_key(parsed, context)?.1.is_empty(), "this PRIMARY KEY")?;
            Rule::PrimaryKey
        }
        ColumnOption::Unique(parsed) => {
            none(!unique(parsed, context)?.1.is_empty(), "this UNIQUE")?;
            Rule::Unique
        }
        ColumnOption::Check(parsed) => Rule::Check(check(parsed, context)?.1),
        ColumnOption::ForeignKey(parsed) => Rule::References(foreign_key(parsed, context)?.2),
        _ => {
            return not_allowed(
                "a column may have NOT NULL, DEFAULT, PRIMARY KEY, UNIQUE, CHECK and REFERENCES",
            );
        }
    })
}

fn constraint(parsed: TableConstraint, context: &mut Context<'_>) -> Result<Constraint, Refusal> {
    let (name, rule) = match parsed {
        TableConstraint::PrimaryKey(parsed) => {
            let (name, columns) = primary_key(parsed, context)?;
            (name, TableRule::PrimaryKey(columns))
        }
        TableConstraint::Unique(parsed) => {
            let (name, columns) = unique(parsed, context)?;
            (name, TableRule::Unique(columns))
        }
        TableConstraint::Check(parsed) => {
            let (name, condition) = check(parsed, context)?;
            (name, TableRule::Check(condition))
        }
        TableConstraint::ForeignKey(parsed) => {
            let (name, columns, reference) = foreign_key(parsed, context)?;
            (name, TableRule::ForeignKey { columns, reference })
        }
        _ => return not_allowed("a table may have PRIMARY KEY, UNIQUE, CHECK and FOREIGN KEY"),
    };
    Ok(Constraint {
        name: name.map(self::name).transpose()?,
        rule,
    })
}

fn primary_key(
    parsed: PrimaryKeyConstraint,
    context: &mut Context<'_>,
) -> Result<(Option<Ident>, Vec<Name>), Refusal> {
    let PrimaryKeyConstraint {
        name,
        index_name,
        index_type,
        columns,
        include,
        index_options,
        characteristics,
    } = parsed;
    let more = index_name.is_some()
        || index_type.is_some()
        || !include.is_empty()
        || !index_options.is_empty()
        || characteristics.is_some();
    none(more, "this form of PRIMARY KEY")?;
    Ok((name, key(columns, context)?))
}

fn unique(
    parsed: UniqueConstraint,
    context: &mut Context<'_>,
) -> Result<(Option<Ident>, Vec<Name>), Refusal> {
    let UniqueConstraint {
        name,
        index_name,
        index_type_display,
        index_type,
        columns,
        include,
        index_options,
        characteristics,
        nulls_distinct,
    } = parsed;
    let more = index_name.is_some()
        || index_type_display != KeyOrIndexDisplay::None
        || index_type.is_some()
        || !include.is_empty()
        || !index_options.is_empty()
        || characteristics.is_some()
        || nulls_distinct != NullsDistinctOption::None;
    none(more, "this form of UNIQUE")?;
    Ok((name, key(columns, context)?))
}

/// Columns of a key, which have no order of their own.
fn key(columns: Vec<IndexColumn>, context: &mut Context<'_>) -> Result<Vec<Name>, Refusal> {
    width(columns.len())?;
    let columns = columns
        .into_iter()
        .map(|column| match index_column(column, context)? {
            (name, Direction::Unsaid) => Ok(name),
            _ => not_allowed("columns of a key cannot have ASC or DESC"),
        });
    columns.collect()
}

fn index_column(parsed: IndexColumn, _context: &mut Context<'_>) -> Result<(Name, Direction), Refusal> {
    let IndexColumn {
        column,
        operator_class,
    } = parsed;
    let OrderByExpr {
        expr,
        options,
        with_fill,
    } = column;
    let OrderByOptions { sort, nulls_first } = options;
    none(
        operator_class.is_some() || with_fill.is_some() || nulls_first.is_some(),
        "anything but ASC and DESC after an index's column",
    )?;
    match expr {
        ParsedExpr::Identifier(column) => Ok((column_name(column)?, direction(sort)?)),
        _ => not_allowed("an index takes columns, not expressions"),
    }
}

fn check(
    parsed: CheckConstraint,
    context: &mut Context<'_>,
) -> Result<(Option<Ident>, crate::tree::Expr), Refusal> {
    let CheckConstraint {
        name,
        expr: condition,
        no_inherit,
        enforced,
    } = parsed;
    none(no_inherit || enforced.is_some(), "this form of CHECK")?;
    Ok((name, expr(*condition, context)?))
}

fn foreign_key(
    parsed: ForeignKeyConstraint,
    context: &mut Context<'_>,
) -> Result<(Option<Ident>, Vec<Name>, Reference), Refusal> {
    let ForeignKeyConstraint {
        name,
        index_name,
        columns,
        foreign_table,
        referred_columns,
        on_delete,
        on_update,
        match_kind,
        characteristics,
    } = parsed;
    none(
        index_name.is_some() || match_kind.is_some() || characteristics.is_some(),
        "this form of a foreign key (MATCH, DEFERRABLE)",
    )?;
    let reference = Reference {
        table: context.own(foreign_table)?,
        columns: column_names(referred_columns)?,
        on_delete: on_delete.map(reaction),
        on_update: on_update.map(reaction),
    };
    Ok((name, column_names(columns)?, reference))
}

fn reaction(parsed: ReferentialAction) -> Reaction {
    match parsed {
        ReferentialAction::Restrict => Reaction::Restrict,
        ReferentialAction::Cascade => Reaction::Cascade,
        ReferentialAction::SetNull => Reaction::SetNull,
        ReferentialAction::NoAction => Reaction::NoAction,
        ReferentialAction::SetDefault => Reaction::SetDefault,
    }
}

fn create_index(parsed: ParsedIndex, context: &mut Context<'_>) -> Result<CreateIndex, Refusal> {
    let ParsedIndex {
        name,
        table_name,
        using,
        columns,
        unique,
        concurrently,
        r#async,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = parsed;
    let more = using.is_some()
        || concurrently
        || r#async
        || !include.is_empty()
        || nulls_distinct.is_some()
        || !with.is_empty()
        || !index_options.is_empty()
        || !alter_options.is_empty();
    context.note(none(more, "this form of CREATE INDEX"))?;
    let table = context.own(table_name)?;
    let index = match name {
        Some(name) => context.own(name),
        None => not_allowed("an index must have a name"),
    };
    let index = context.or_else(index, || Name(String::new()))?;
    context.note(width(columns.len()))?;
    let columns = columns.into_iter().map(|column| {
        let read = index_column(column, context);
        context.or_else(read, || (Name(String::new()), Direction::Unsaid))
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(CreateIndex {
        table,
        index,
        unique,
        if_not_exists,
        columns,
        condition: optional(predicate, context)?,
    })
}

fn alter(parsed: AlterTable, context: &mut Context<'_>) -> Result<Definition, Refusal> {
    let AlterTable {
        name: table,
        if_exists,
        only,
        operations,
        location,
        on_cluster,
        table_type,
        end_token: _,
    } = parsed;
    let more = if_exists || only || location.is_some() || on_cluster.is_some() || table_type.is_some();
    context.note(none(more, "this form of ALTER TABLE"))?;
    let [operation] = <[AlterTableOperation; 1]>::try_from(operations)
        .map_err(|_| Refusal::NotAllowed("ALTER TABLE says one thing at a time".to_owned()))?;
    let owned = context.own(table)?;
    Ok(match operation {
        AlterTableOperation::AddColumn {
            column_keyword: _,
            if_not_exists: false,
            column_def,
            column_position: None,
        } => Definition::AddColumn {
            table: owned,
            column: column(column_def, context)?,
        },
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        } => {
            // The meaning of a row depends on the names of its columns.
            context.may_change(&owned, "RENAME COLUMN")?;
            let from = context.or_else(column_name(old_column_name), || Name(String::new()))?;
            Definition::RenameColumn {
                table: owned,
                from,
                to: column_name(new_column_name)?,
            }
        }
        AlterTableOperation::DropColumn {
            has_column_keyword: _,
            mut column_names,
            if_exists: false,
            drop_behavior: None,
        } if column_names.len() == 1 => {
            context.may_change(&owned, "DROP COLUMN")?;
            Definition::DropColumn {
                table: owned,
                column: column_name(column_names.remove(0))?,
            }
        }
        AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::To(to),
        } => Definition::RenameTable {
            table: owned,
            to: context.own(to)?,
        },
        AlterTableOperation::SetOptionsParens { options } => {
            append_only(options)?;
            Definition::AppendOnly { table: owned }
        }
        _ => return not_allowed(format!("this ALTER TABLE is not allowed; {DEFINITIONS}")),
    })
}
