//! WITH for PostgreSQL.

use super::difference::{Result, other};
use super::printer::Printer;
use super::scope::{Given, Out, Recursion, has_aggregate};
use super::source::names;
use crate::tree::{Compound, Cte, Expr, Item, JoinKind, Part, Query, Select, With};

impl Printer<'_> {
    /// WITH, whose names are in scope from here on.
    pub(super) fn with(&mut self, with: Option<&With>) -> Result<String> {
        let Some(With { recursive, tables }) = with else {
            return Ok(String::new());
        };
        let mut printed = Vec::new();
        for table in tables {
            let Cte {
                name: said,
                columns: _,
                query: _,
            } = table;
            let before = std::mem::take(&mut self.touched);
            let name = self.fresh('w');
            let made = self.cte(table, *recursive, &name);
            let reads = std::mem::replace(&mut self.touched, before);
            let (sql, mut columns) = made?;
            rename(&mut columns, table)?;
            printed.push(format!("{name} ({}) AS ({sql})", names(&columns)));
            self.given.push(Given {
                name: said.folded(),
                sql: name,
                columns,
                reads,
                recursion: None,
            });
        }
        let word = if *recursive { "WITH RECURSIVE" } else { "WITH" };
        Ok(format!("{word} {} ", printed.join(", ")))
    }

    fn cte(&mut self, table: &Cte, recursive: bool, name: &str) -> Result<(String, Vec<Out>)> {
        // Queries in WITH do not see the enclosing query.
        let levels = std::mem::take(&mut self.levels);
        let printed = match (recursive, &table.query.body.rest[..]) {
            (true, [(compound, Part::Select(second))]) if mentions(second, &table.name.folded()) => {
                self.recursion(table, name, *compound, second)
            }
            (true, _) => {
                // Its own name is not in scope then.
                self.hidden(table, |printer| printer.query(&table.query))
            }
            (false, _) => self.query(&table.query),
        };
        self.levels = levels;
        printed
    }

    /// Prints `body` while the table's own name must not be used.
    fn hidden<T>(&mut self, table: &Cte, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.given.push(Given {
            name: table.name.folded(),
            sql: String::new(),
            columns: Vec::new(),
            reads: Vec::new(),
            recursion: Some(Recursion::default()),
        });
        let printed = body(self);
        self.given.pop();
        printed
    }

    fn recursion(
        &mut self,
        table: &Cte,
        name: &str,
        compound: Compound,
        second: &Select,
    ) -> Result<(String, Vec<Out>)> {
        if !steps(&table.query, compound, second) {
            return other(
                "WITH RECURSIVE takes a query, UNION or UNION ALL, and a second query that names the table, without \
                 ORDER BY, LIMIT, WITH, DISTINCT, aggregates, GROUP BY, LEFT, RIGHT and FULL JOIN",
            );
        }
        let body = &table.query.body;
        let (first, said) = self.hidden(table, |printer| printer.part(&body.first, &[]))?;
        let mut columns = self.columns(std::slice::from_ref(&first), said)?;
        rename(&mut columns, table)?;
        // A column of a recursive table may be NULL in later steps.
        columns.iter_mut().for_each(|out| out.nullable = true);
        self.given.push(Given {
            name: table.name.folded(),
            sql: name.to_owned(),
            columns: columns.clone(),
            reads: Vec::new(),
            recursion: Some(Recursion {
                named: 0,
                level: Some(self.levels.len() + 1),
            }),
        });
        let second = self.part(&Part::Select(Box::new(second.clone())), &[]);
        self.given.pop();
        let (second, _) = second?;
        let shapes = vec![first, second];
        let together = self.columns(&shapes, Vec::new())?;
        if together
            .iter()
            .zip(&columns)
            .any(|(one, other)| one.form != other.form)
        {
            return other(
                "the first query of WITH RECURSIVE determines the types of its columns; for an empty column write CAST(NULL AS TEXT)",
            );
        }
        Ok((self.joined(shapes, [compound], &columns)?, columns))
    }
}

fn rename(columns: &mut [Out], table: &Cte) -> Result<()> {
    if table.columns.is_empty() {
        return Ok(());
    }
    if table.columns.len() != columns.len() {
        return other("a table of WITH must have as many names as columns");
    }
    for (column, name) in columns.iter_mut().zip(&table.columns) {
        column.name = Some(name.folded());
    }
    Ok(())
}

/// True if the FROM contains a table with this name.
fn mentions(select: &Select, name: &str) -> bool {
    let places = select.from.iter().flat_map(|source| {
        let joined = source.joins.iter().map(|join| &join.place);
        [&source.first].into_iter().chain(joined)
    });
    places.into_iter().any(
        |place| matches!(place, crate::tree::FromItem::Table { name: found, .. } if found.folded() == name),
    )
}

/// True if both engines compute a recursive table in the same steps.
fn steps(query: &Query, compound: Compound, second: &Select) -> bool {
    let Query {
        with,
        body: _,
        order_by,
        limit,
        offset,
    } = query;
    let plain = with.is_none() && order_by.is_empty() && limit.is_none() && offset.is_none();
    plain && matches!(compound, Compound::Union | Compound::UnionAll) && is_plain(second)
}

/// True if each result row comes from a single row.
fn is_plain(select: &Select) -> bool {
    let Select {
        distinct,
        results,
        from,
        condition: _,
        group_by,
        having,
    } = select;
    let values = results.iter().filter_map(|item| match item {
        Item::One { value, .. } => Some(value),
        Item::All | Item::AllOf(_) => None,
    });
    let one_by_one = |value: &Expr| {
        let mut over = false;
        super::scope::each(value, &mut |part| {
            over |= matches!(part, Expr::Function(function) if function.over.is_some());
        });
        !over && !has_aggregate(value)
    };
    let joins = from.iter().flat_map(|source| &source.joins);
    !distinct
        && group_by.is_empty()
        && having.is_none()
        && values.into_iter().all(one_by_one)
        && joins
            .into_iter()
            .all(|join| matches!(join.kind, JoinKind::Inner | JoinKind::Cross))
}
