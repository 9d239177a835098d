//! Prints the tree for SQLite.
//!
//! Names are quoted, operands are parenthesized, parameters have their numbers, and number literals keep their
//! digits. So SQLite can parse the text in one way only.

mod define;
mod expr;

use std::fmt::Write as _;

use crate::tree::{
    Assignment, Compound, Definition, Delete, Direction, FromItem, Insert, Item, JoinKind, Name, On, Order,
    Part, Query, Select, Source, Statement, Update, With,
};

/// Text of a statement of a call.
#[must_use]
pub fn statement(tree: &Statement) -> String {
    let mut printer = Printer::default();
    printer.statement(tree);
    printer.out
}

/// Text of a statement of a migration. `None` if there is nothing to run.
#[must_use]
pub fn definition(tree: &Definition) -> Option<String> {
    let mut printer = Printer::default();
    printer.definition(tree);
    Some(printer.out).filter(|out| !out.is_empty())
}

#[derive(Default)]
struct Printer {
    out: String,
}

impl Printer {
    fn say(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn name(&mut self, name: &Name) {
        // Names contain no quotes.
        let _ = write!(self.out, "\"{}\"", name.as_str());
    }

    fn names(&mut self, names: &[Name]) {
        self.say("(");
        self.list(names, Printer::name);
        self.say(")");
    }

    fn list<T>(&mut self, items: &[T], print: impl Fn(&mut Printer, &T)) {
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.say(", ");
            }
            print(self, item);
        }
    }

    fn alias(&mut self, alias: Option<&Name>) {
        if let Some(alias) = alias {
            self.say(" AS ");
            self.name(alias);
        }
    }

    fn statement(&mut self, tree: &Statement) {
        match tree {
            Statement::Query(tree) => self.query(tree),
            Statement::Insert(tree) => self.insert(tree),
            Statement::Update(tree) => self.update(tree),
            Statement::Delete(tree) => self.delete(tree),
        }
    }

    fn with(&mut self, with: Option<&With>) {
        let Some(With { recursive, tables }) = with else {
            return;
        };
        self.say(if *recursive { "WITH RECURSIVE " } else { "WITH " });
        self.list(tables, |printer, table| {
            printer.name(&table.name);
            if !table.columns.is_empty() {
                printer.names(&table.columns);
            }
            printer.say(" AS (");
            printer.query(&table.query);
            printer.say(")");
        });
        self.say(" ");
    }

    fn query(&mut self, tree: &Query) {
        let Query {
            with,
            body,
            order_by,
            limit,
            offset,
        } = tree;
        self.with(with.as_ref());
        self.part(&body.first);
        for (compound, part) in &body.rest {
            self.say(match compound {
                Compound::Union => " UNION ",
                Compound::UnionAll => " UNION ALL ",
                Compound::Except => " EXCEPT ",
                Compound::Intersect => " INTERSECT ",
            });
            self.part(part);
        }
        self.order(order_by);
        if let Some(limit) = limit {
            self.say(" LIMIT ");
            self.operand(limit);
        }
        if let Some(offset) = offset {
            self.say(" OFFSET ");
            self.operand(offset);
        }
    }

    fn part(&mut self, tree: &Part) {
        match tree {
            Part::Select(tree) => self.select(tree),
            Part::Values(rows) => {
                self.say("VALUES ");
                self.list(rows, |printer, row| {
                    printer.say("(");
                    printer.list(row, Printer::expr);
                    printer.say(")");
                });
            }
        }
    }

    fn select(&mut self, tree: &Select) {
        let Select {
            distinct,
            results,
            from,
            condition,
            group_by,
            having,
        } = tree;
        self.say(if *distinct { "SELECT DISTINCT " } else { "SELECT " });
        self.list(results, Printer::item);
        self.from(from);
        self.condition(" WHERE ", condition.as_ref());
        if !group_by.is_empty() {
            self.say(" GROUP BY ");
            self.list(group_by, Printer::expr);
        }
        self.condition(" HAVING ", having.as_ref());
    }

    fn condition(&mut self, word: &str, condition: Option<&crate::tree::Expr>) {
        if let Some(condition) = condition {
            self.say(word);
            self.expr(condition);
        }
    }

    fn item(&mut self, tree: &Item) {
        match tree {
            Item::All => self.say("*"),
            Item::AllOf(table) => {
                self.name(table);
                self.say(".*");
            }
            Item::One { value, alias } => {
                self.expr(value);
                self.alias(alias.as_ref());
            }
        }
    }

    fn from(&mut self, sources: &[Source]) {
        if sources.is_empty() {
            return;
        }
        self.say(" FROM ");
        self.list(sources, |printer, source| {
            printer.place(&source.first);
            for join in &source.joins {
                printer.say(match join.kind {
                    JoinKind::Inner => " JOIN ",
                    JoinKind::Left => " LEFT JOIN ",
                    JoinKind::Right => " RIGHT JOIN ",
                    JoinKind::Full => " FULL JOIN ",
                    JoinKind::Cross => " CROSS JOIN ",
                });
                printer.place(&join.place);
                match &join.on {
                    On::Nothing => {}
                    On::Condition(condition) => {
                        printer.say(" ON ");
                        printer.expr(condition);
                    }
                    On::Columns(columns) => {
                        printer.say(" USING ");
                        printer.names(columns);
                    }
                }
            }
        });
    }

    fn place(&mut self, tree: &FromItem) {
        match tree {
            FromItem::Table { name, alias } => {
                self.name(name);
                self.alias(alias.as_ref());
            }
            FromItem::Query { query, alias } => {
                self.say("(");
                self.query(query);
                self.say(")");
                self.alias(alias.as_ref());
            }
        }
    }

    fn order(&mut self, terms: &[Order]) {
        if terms.is_empty() {
            return;
        }
        self.say(" ORDER BY ");
        self.list(terms, |printer, term| {
            printer.expr(&term.value);
            printer.direction(term.direction);
            printer.say(match term.nulls_first {
                None => "",
                Some(true) => " NULLS FIRST",
                Some(false) => " NULLS LAST",
            });
        });
    }

    fn direction(&mut self, direction: Direction) {
        self.say(match direction {
            Direction::Unsaid => "",
            Direction::Up => " ASC",
            Direction::Down => " DESC",
        });
    }

    fn insert(&mut self, tree: &Insert) {
        let Insert {
            with,
            table,
            alias,
            columns,
            rows,
            conflict,
            returning,
        } = tree;
        self.with(with.as_ref());
        self.say("INSERT INTO ");
        self.name(table);
        self.alias(alias.as_ref());
        if !columns.is_empty() {
            self.say(" ");
            self.names(columns);
        }
        match rows {
            None => self.say(" DEFAULT VALUES"),
            Some(rows) => {
                self.say(" ");
                self.query(rows);
            }
        }
        if let Some(conflict) = conflict {
            self.say(" ON CONFLICT");
            if !conflict.columns.is_empty() {
                self.say(" ");
                self.names(&conflict.columns);
            }
            match &conflict.update {
                None => self.say(" DO NOTHING"),
                Some((assignments, condition)) => {
                    self.say(" DO UPDATE");
                    self.assignments(assignments);
                    self.condition(" WHERE ", condition.as_ref());
                }
            }
        }
        self.returning(returning);
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        self.say(" SET ");
        self.list(assignments, |printer, assignment| {
            match &assignment.columns[..] {
                [column] => printer.name(column),
                columns => printer.names(columns),
            }
            printer.say(" = ");
            printer.expr(&assignment.value);
        });
    }

    fn returning(&mut self, items: &[Item]) {
        if !items.is_empty() {
            self.say(" RETURNING ");
            self.list(items, Printer::item);
        }
    }

    fn update(&mut self, tree: &Update) {
        let Update {
            with,
            table,
            alias,
            assignments,
            from,
            condition,
            returning,
        } = tree;
        self.with(with.as_ref());
        self.say("UPDATE ");
        self.name(table);
        self.alias(alias.as_ref());
        self.assignments(assignments);
        self.from(from);
        self.condition(" WHERE ", condition.as_ref());
        self.returning(returning);
    }

    fn delete(&mut self, tree: &Delete) {
        let Delete {
            with,
            table,
            alias,
            condition,
            returning,
        } = tree;
        self.with(with.as_ref());
        self.say("DELETE FROM ");
        self.name(table);
        self.alias(alias.as_ref());
        self.condition(" WHERE ", condition.as_ref());
        self.returning(returning);
    }
}
