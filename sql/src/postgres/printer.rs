//! State of one translation, and the kinds of printed expressions.

use std::collections::BTreeMap;

use super::difference::{Difference, Result};
use super::scope::{Given, Level};
use super::{Catalog, Change, Kind, Parameter, Statement, Verb};
use crate::tree;

/// Form of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// NULL itself.
    Null,
    /// A condition. 0 or 1 where a value is needed.
    Truth,
    /// A parameter whose kind is not known yet.
    Open(u16),
    Of(Kind),
}

/// A printed expression. Its text needs no parentheses in any position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) sql: String,
    pub(super) form: Form,
    pub(super) nullable: bool,
    /// True for an integer literal that is small enough to be a float.
    pub(super) soft: bool,
}

impl Printed {
    pub(super) fn new(sql: String, form: Form, nullable: bool) -> Printed {
        Printed {
            sql,
            form,
            nullable,
            soft: false,
        }
    }

    pub(super) fn of(sql: String, kind: Kind, nullable: bool) -> Printed {
        Printed::new(sql, Form::Of(kind), nullable)
    }

    pub(super) fn truth(sql: String, nullable: bool) -> Printed {
        Printed::new(sql, Form::Truth, nullable)
    }
}

/// Most passes over a statement. Each pass infers the kinds of more parameters.
const MAX_PASSES: usize = 12;

pub(super) struct Printer<'a> {
    pub(super) catalog: &'a Catalog,
    /// Queries around the current position, innermost last.
    pub(super) levels: Vec<Level>,
    /// Tables of WITH, innermost last.
    pub(super) given: Vec<Given>,
    /// Own tables that were used.
    pub(super) touched: Vec<String>,
    /// True in a migration, where row numbers may be given explicitly.
    pub(super) migration: bool,
    /// SQL that distinguishes inserted rows from updated ones.
    pub(super) is_new: Option<String>,
    /// Number of generated names.
    names: usize,
    kinds: BTreeMap<u16, Kind>,
    /// Parameter numbers in the order of their first use.
    numbers: Vec<u16>,
    required: Vec<u16>,
    learned: bool,
    /// True if a parameter without a kind was needed.
    unsettled: bool,
    /// True in the last pass.
    last: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Printer<'a> {
        Printer {
            catalog,
            levels: Vec::new(),
            given: Vec::new(),
            touched: Vec::new(),
            migration: false,
            is_new: None,
            names: 0,
            kinds: BTreeMap::new(),
            numbers: Vec::new(),
            required: Vec::new(),
            learned: false,
            unsettled: false,
            last: false,
        }
    }

    pub(super) fn statement(
        catalog: &'a Catalog,
        tree: &tree::Statement,
        migration: bool,
    ) -> Result<Statement> {
        let mut printer = Printer::new(catalog);
        printer.migration = migration;
        let (sql, columns) = printer.settle(|printer| match tree {
            tree::Statement::Query(query) => printer.top(query),
            tree::Statement::Insert(insert) => printer.insert(insert),
            tree::Statement::Update(update) => printer.update(update),
            tree::Statement::Delete(delete) => printer.delete(delete),
        })?;
        Ok(Statement {
            sql,
            parameters: printer.parameters(),
            columns,
            changes: change(tree, printer.is_new),
        })
    }

    /// Prints repeatedly, until the kind of each parameter is known.
    pub(super) fn settle<T>(&mut self, mut print: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        for pass in 1..=MAX_PASSES {
            self.levels.clear();
            self.given.clear();
            self.touched.clear();
            self.names = 0;
            (self.learned, self.unsettled) = (false, false);
            self.last |= pass == MAX_PASSES;
            let printed = print(self);
            if self.last
                || (printed.is_err() && !self.unsettled)
                || (printed.is_ok() && !self.unsettled && !self.learned)
            {
                return printed;
            }
            // Nothing more can be inferred, so anything missing in the next pass is an error.
            self.last = !self.learned;
        }
        super::difference::other("the types of its parameters depend on each other")
    }

    /// Prints for the checks only and discards the text, so that its parameters do not count.
    pub(super) fn unsaid<T>(&mut self, print: impl FnOnce(&mut Self) -> Result<T>) -> Result<()> {
        let before = self.numbers.len();
        print(self)?;
        self.numbers.truncate(before);
        Ok(())
    }

    pub(super) fn has_parameters(&self) -> bool {
        !self.numbers.is_empty()
    }

    fn parameters(&self) -> Vec<Parameter> {
        let parameters = self.numbers.iter().map(|number| Parameter {
            number: *number,
            kind: self.kinds.get(number).copied(),
            required: self.required.contains(number),
        });
        parameters.collect()
    }

    /// Generates a unique name.
    pub(super) fn fresh(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    pub(super) fn parameter(&mut self, number: u16) -> Printed {
        let place = self.numbers.iter().position(|known| *known == number);
        let place = place.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        }) + 1;
        match self.kinds.get(&number) {
            Some(Kind::Text) => Printed::of(format!("(${place}::text COLLATE \"C\")"), Kind::Text, true),
            Some(kind) => Printed::of(format!("${place}::{}", kind.sql()), *kind, true),
            None => Printed::new(format!("${place}::text"), Form::Open(number), true),
        }
    }

    /// Marks the parameters that `print` uses as NOT NULL.
    pub(super) fn requiring<T>(&mut self, tree: &tree::Expr, print: impl FnOnce(&mut Self) -> T) -> T {
        super::scope::each(tree, &mut |part| {
            if let tree::Expr::Parameter(number) = part
                && !self.required.contains(number)
            {
                self.required.push(*number);
            }
        });
        print(self)
    }

    /// Records the kind of a parameter.
    fn learn(&mut self, number: u16, kind: Kind) -> Result<()> {
        match self.kinds.insert(number, kind) {
            Some(known) if known != kind => Err(Difference::ParameterKinds {
                number,
                one: known.said(),
                other: kind.said(),
            }),
            Some(_) => Ok(()),
            None => {
                self.learned = true;
                Ok(())
            }
        }
    }

    /// Parameter whose kind is needed but unknown. An error once it cannot be inferred any more.
    fn open(&mut self, number: u16) -> Result<()> {
        self.unsettled = true;
        if self.last {
            return Err(Difference::Parameter(number));
        }
        Ok(())
    }

    /// Kind of a value whose context does not determine it. Uses a guess until the kind is known.
    pub(super) fn kind(&mut self, printed: &Printed) -> Result<Kind> {
        match printed.form {
            Form::Of(kind) => Ok(kind),
            Form::Truth => Ok(Kind::Integer),
            Form::Null => Ok(Kind::Text),
            Form::Open(number) => {
                self.open(number)?;
                Ok(Kind::Text)
            }
        }
    }

    /// Value of exactly this kind, converted only from a condition.
    pub(super) fn exactly(&mut self, printed: Printed, kind: Kind, what: &str) -> Result<String> {
        match printed.form {
            Form::Of(found) if found == kind => Ok(printed.sql),
            Form::Of(found) => Err(Difference::kinds(what, kind, found)),
            Form::Truth if kind == Kind::Integer => Ok(format!("{}::int::bigint", printed.sql)),
            Form::Truth => Err(Difference::kinds(what, kind, Kind::Integer)),
            Form::Null => Ok(null(&printed, kind)),
            Form::Open(number) => {
                self.learn(number, kind)?;
                Ok(printed.sql)
            }
        }
    }

    /// Value as a float, if it is a number.
    pub(super) fn real(&mut self, printed: Printed, what: &str) -> Result<String> {
        match printed.form {
            Form::Of(Kind::Real) => Ok(printed.sql),
            Form::Of(Kind::Integer) | Form::Truth => {
                let whole = self.exactly(printed, Kind::Integer, what)?;
                Ok(format!("{whole}::double precision"))
            }
            _ => self.exactly(printed, Kind::Real, what),
        }
    }

    /// Value as a condition.
    pub(super) fn condition(&mut self, printed: Printed) -> Result<String> {
        match printed.form {
            Form::Truth => Ok(printed.sql),
            Form::Null => Ok(format!("{}::boolean", printed.sql)),
            Form::Of(Kind::Integer | Kind::Real) => Ok(format!("({} <> 0)", printed.sql)),
            Form::Of(kind) => Err(Difference::takes("a condition", "a number", kind)),
            Form::Open(number) => {
                self.learn(number, Kind::Integer)?;
                Ok(format!("({}::bigint <> 0)", printed.sql))
            }
        }
    }

    /// Value as text. Integers have the same digits on both engines.
    pub(super) fn text(&mut self, printed: Printed, what: &str) -> Result<String> {
        match printed.form {
            Form::Of(Kind::Integer) | Form::Truth => {
                let whole = self.exactly(printed, Kind::Integer, what)?;
                Ok(format!("({whole}::text COLLATE \"C\")"))
            }
            _ => self.exactly(printed, Kind::Text, what),
        }
    }
}

fn change(tree: &tree::Statement, is_new: Option<String>) -> Option<Change> {
    let (verb, table) = match tree {
        tree::Statement::Query(_) => return None,
        tree::Statement::Insert(insert) => (Verb::Insert, &insert.table),
        tree::Statement::Update(update) => (Verb::Update, &update.table),
        tree::Statement::Delete(delete) => (Verb::Delete, &delete.table),
    };
    Some(Change {
        verb,
        table: table.folded(),
        is_new,
    })
}

/// NULL as a value of a kind. The whole expression is printed, because it may contain a parameter.
pub(super) fn null(printed: &Printed, kind: Kind) -> String {
    match kind {
        Kind::Text => format!("({}::text COLLATE \"C\")", printed.sql),
        kind => format!("{}::{}", printed.sql, kind.sql()),
    }
}

/// Text literal that does not depend on the server's settings.
pub(super) fn quoted(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}
