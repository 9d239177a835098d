//! Parsing of a component's text into the tree, or a refusal with the reason.
//!
//! `sqlparser` knows the grammar, and its result is converted field by field. Each pattern names every field of a
//! node, so that a newer version of the parser with more fields does not compile until somebody has decided how to
//! handle them.

mod define;
mod expr;
mod query;
mod said;
mod write;

use std::collections::BTreeSet;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement as Parsed};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::refusal::{Refusal, not_allowed};
use crate::stack;
use crate::token::{Piece, pieces};
use crate::tree::{Definition, Name, Statement};
use crate::{MAX_COLUMNS, MAX_DEPTH, MAX_SORTED};

/// Depth limit of the parser itself.
const RECURSION: usize = 50;
/// List of allowed statements of a call, for messages.
const STATEMENTS: &str = "a statement is SELECT, INSERT (with ON CONFLICT … DO NOTHING or DO UPDATE), UPDATE or \
                          DELETE, with WITH and RETURNING";
/// List of allowed statements of a migration, for messages.
const DEFINITIONS: &str = "a migration has CREATE TABLE, CREATE INDEX, ALTER TABLE (ADD COLUMN, RENAME COLUMN, \
                           RENAME TO, DROP COLUMN, SET (append_only = true)), DROP TABLE, DROP INDEX, INSERT, \
                           UPDATE and DELETE; to keep rows unchanged, use WITH (append_only = true), not \
                           triggers";

/// Owner of the text.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// Prefix of the owner's tables.
    pub prefix: &'a str,
    /// Append-only tables, in lower case.
    pub append_only: &'a BTreeSet<String>,
}

/// Parses the single statement of a text, on a separate stack.
pub fn statement(text: &str, owner: Owner<'_>) -> Result<Statement, Refusal> {
    stack::apart(|| statement_here(text, owner)).unwrap_or_else(|| Err(stack::unread()))
}

/// Parses a statement on the current stack, which must be large.
pub(crate) fn statement_here(text: &str, owner: Owner<'_>) -> Result<Statement, Refusal> {
    statement_and_names(text, owner).map(|(statement, _)| statement)
}

/// Parses a statement, and returns all names that its WITH clauses define, in lower case.
pub(crate) fn statement_and_names(text: &str, owner: Owner<'_>) -> Result<(Statement, Vec<String>), Refusal> {
    let mut pieces = pieces(text)?;
    match (pieces.pop(), pieces.len()) {
        (None, _) => not_allowed(format!("there is no statement; {STATEMENTS}")),
        (Some(piece), 0) => {
            let parsed = parse(piece, STATEMENTS);
            let parsed = parsed.map_err(|refusals| said::together(refusals, STATEMENTS))?;
            change(parsed, owner, STATEMENTS)
        }
        (Some(_), others) => not_allowed(format!("one statement at a time: these are {}", others + 1)),
    }
}

/// Parses one statement of a migration as far as possible, and returns all problems.
pub(crate) fn definition(piece: Piece<'_>, owner: Owner<'_>) -> (Option<Definition>, Vec<Refusal>) {
    let parsed = match parse(piece, DEFINITIONS) {
        Ok(parsed) => parsed,
        Err(refusals) => return (None, refusals),
    };
    let mut context = Context::new(owner);
    context.collects = true;
    let read = define::definition(parsed, &mut context);
    let mut refusals = context.refused;
    match read {
        Ok(definition) => (Some(definition), refusals),
        Err(refusal) => {
            if !refusals.contains(&refusal) {
                refusals.push(refusal);
            }
            (None, refusals)
        }
    }
}

fn change(parsed: Parsed, owner: Owner<'_>, allowed: &str) -> Result<(Statement, Vec<String>), Refusal> {
    let mut context = Context::new(owner);
    let statement = write::statement(parsed, &mut context, allowed)?;
    context.finish()?;
    Ok((statement, context.given))
}

fn parse(piece: Piece<'_>, allowed: &str) -> Result<Parsed, Vec<Refusal>> {
    let refused = |reason: String| vec![Refusal::NotAllowed(reason)];
    if let Some(first) = piece.tokens.first()
        && !define::STARTS.contains(&crate::token::keyword_of(&first.token))
    {
        let word: String = first.token.to_string().chars().take(60).collect();
        return Err(refused(format!("`{word}` is not allowed; {allowed}")));
    }
    if !piece.refused.is_empty() {
        return Err(piece.refused);
    }
    let words = named(&piece);
    let dialect = Portable;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(RECURSION)
        .with_tokens_with_locations(piece.tokens);
    let parsed = parser.parse_statement().and_then(|statement| {
        parser.expect_token(&Token::EOF)?;
        Ok(statement)
    });
    parsed.map_err(|err| match err {
        ParserError::RecursionLimitExceeded => refused("it is nested too deeply".to_owned()),
        ParserError::ParserError(_) | ParserError::TokenizerError(_) if !words.is_empty() => words
            .iter()
            .map(|word| Refusal::NotAllowed(format!("`{word}` is not allowed; {allowed}")))
            .collect(),
        ParserError::ParserError(reason) | ParserError::TokenizerError(reason) => {
            refused(format!("{}; {allowed}", said::plainly(&reason)))
        }
    })
}

/// SQL keywords outside the subset.
const OUTSIDE: &[&str] = &[
    "TRIGGER",
    "VIEW",
    "TEMP",
    "TEMPORARY",
    "VIRTUAL",
    "GENERATED",
    "WITHOUT",
    "GLOB",
    "REGEXP",
    "MATCH",
    "MATERIALIZED",
    "NATURAL",
    "LATERAL",
];

/// Keywords that are the most likely reason for a syntax error.
fn named(piece: &Piece<'_>) -> Vec<String> {
    let words = || {
        piece.tokens.iter().filter_map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        })
    };
    let mut named = Vec::new();
    let mut first = words();
    if let (Some(verb), Some(or)) = (first.next(), first.next())
        && or == "OR"
    {
        named.push(format!("{verb} OR"));
    }
    for word in words().filter(|word| OUTSIDE.contains(&word.as_str())) {
        if !named.contains(&word) {
            named.push(word);
        }
    }
    named
}

/// State of parsing one statement.
pub(crate) struct Context<'a> {
    owner: Owner<'a>,
    /// Names in scope from WITH, in lower case, each with the number of tables that it stands for.
    with: Vec<(String, usize)>,
    /// All names that WITH clauses defined so far.
    given: Vec<String>,
    /// Number of tables that were named so far.
    tables: usize,
    depth: usize,
    /// Number of enclosing queries.
    queries: usize,
    /// True if parsing continues after a refusal, so that all problems are reported.
    collects: bool,
    /// Refusals so far, if parsing continues.
    refused: Vec<Refusal>,
}

/// Most refusals in one statement, after which parsing ends.
const MAX_REFUSALS: usize = 20;

impl<'a> Context<'a> {
    fn new(owner: Owner<'a>) -> Context<'a> {
        Context {
            owner,
            with: Vec::new(),
            given: Vec::new(),
            tables: 0,
            depth: 0,
            queries: 0,
            collects: false,
            refused: Vec::new(),
        }
    }

    /// Result, or a stand-in if parsing continues after a refusal.
    fn or_else<T>(&mut self, read: Result<T, Refusal>, instead: impl FnOnce() -> T) -> Result<T, Refusal> {
        match read {
            Err(refusal) if self.collects && self.refused.len() < MAX_REFUSALS => {
                if !self.refused.contains(&refusal) {
                    self.refused.push(refusal);
                }
                Ok(instead())
            }
            read => read,
        }
    }

    /// Records a refusal from a check without a result.
    fn note(&mut self, read: Result<(), Refusal>) -> Result<(), Refusal> {
        self.or_else(read, || ())
    }

    /// Runs `body` one level deeper.
    fn deeper<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self.depth == MAX_DEPTH {
            return not_allowed(format!("expressions and queries nest at most {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    /// Name of an own table or index of the component.
    fn own(&mut self, name: ObjectName) -> Result<Name, Refusal> {
        let name = single(name)?;
        if name.0.len() > self.owner.prefix.len() && name.0.starts_with(self.owner.prefix) {
            return Ok(name);
        }
        let foreign = Refusal::Foreign {
            name: name.0.clone(),
            prefix: self.owner.prefix.to_owned(),
        };
        self.or_else(Err(foreign), || name)
    }

    /// Name of an own table whose rows will be changed.
    fn changed(&mut self, name: ObjectName, verb: &'static str) -> Result<Name, Refusal> {
        let name = self.own(name)?;
        self.may_change(&name, verb)?;
        Ok(name)
    }

    fn may_change(&mut self, table: &Name, verb: &'static str) -> Result<(), Refusal> {
        if self.owner.append_only.contains(&table.folded()) {
            return self.note(Err(Refusal::AppendOnly {
                table: table.0.clone(),
                verb,
            }));
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Refusal> {
        if self.tables > crate::MAX_TABLES {
            return not_allowed(format!(
                "a statement names at most {} tables, including those that WITH stands for",
                crate::MAX_TABLES
            ));
        }
        Ok(())
    }
}

/// Unqualified name, without a schema or database.
fn single(name: ObjectName) -> Result<Name, Refusal> {
    let ObjectName(parts) = name;
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next()) {
        (Some(ObjectNamePart::Identifier(part)), None) => self::name(part),
        _ => not_allowed("a name has one part, without a schema or database prefix"),
    }
}

/// Name chosen by the component.
fn name(ident: Ident) -> Result<Name, Refusal> {
    let Ident {
        value,
        quote_style,
        span: _,
    } = ident;
    let fits = value
        .bytes()
        .all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        && value.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if !fits || value.len() > crate::MAX_NAME || !matches!(quote_style, None | Some('"')) {
        return not_allowed("names consist of at most 63 ASCII letters, digits and `_`");
    }
    Ok(Name(value))
}

/// Name of a column.
fn column_name(ident: Ident) -> Result<Name, Refusal> {
    let name = name(ident)?;
    if ["rowid", "oid", "_rowid_"].contains(&name.folded().as_str()) {
        return not_allowed(format!(
            "`{}` is not one of your columns; an INTEGER PRIMARY KEY numbers rows",
            name.0
        ));
    }
    Ok(name)
}

fn column_names(idents: Vec<Ident>) -> Result<Vec<Name>, Refusal> {
    width(idents.len())?;
    idents.into_iter().map(column_name).collect()
}

fn width(columns: usize) -> Result<(), Refusal> {
    if columns > MAX_COLUMNS {
        return not_allowed(format!(
            "at most {MAX_COLUMNS} columns are allowed in one column list"
        ));
    }
    Ok(())
}

fn sorted_by(terms: usize) -> Result<(), Refusal> {
    if terms > MAX_SORTED {
        return not_allowed(format!(
            "rows are sorted or grouped by at most {MAX_SORTED} terms"
        ));
    }
    Ok(())
}

/// Refuses a clause that is present but not allowed.
fn none(present: bool, what: &str) -> Result<(), Refusal> {
    if present {
        return not_allowed(format!("{what} is not allowed"));
    }
    Ok(())
}

/// Grammar of the parser: SQL without the extensions of any engine, and with SQLite's operator precedence.
#[derive(Debug)]
struct Portable;

/// Precedence of comparisons.
const ORDER: u8 = 25;
/// Precedence of `||`.
const CONCAT: u8 = 45;

impl Dialect for Portable {
    fn is_identifier_start(&self, letter: char) -> bool {
        letter.is_ascii_alphabetic() || letter == '_'
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        letter.is_ascii_alphanumeric() || letter == '_'
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        false
    }

    fn is_column_alias(&self, word: &Keyword, _: &mut Parser<'_>) -> bool {
        !RESERVED_FOR_COLUMN_ALIAS.contains(word) && !matches!(word, Keyword::ON | Keyword::RETURNING)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Lt | Token::LtEq | Token::Gt | Token::GtEq => Some(Ok(ORDER)),
            Token::StringConcat => Some(Ok(CONCAT)),
            _ => None,
        }
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 50,
            Precedence::AtTz => 41,
            Precedence::MulDivModOp => 40,
            Precedence::PlusMinus => 30,
            Precedence::Xor
            | Precedence::Ampersand
            | Precedence::Caret
            | Precedence::Pipe
            | Precedence::Colon
            | Precedence::PgOther => 28,
            Precedence::Between | Precedence::Eq | Precedence::Like | Precedence::Is => 20,
            Precedence::UnaryNot => 15,
            Precedence::And => 10,
            Precedence::Or => 5,
        }
    }
}
