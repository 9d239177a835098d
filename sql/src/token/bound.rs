//! Limits of a statement, counted token by token.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Piece, keyword_of};
use crate::refusal::{Refusal, not_allowed};
use crate::{MAX_COMPOUND, MAX_NESTING};

/// Most tokens in a row without a comma at one depth, which limits trees that lean to one side.
const MAX_RUN: usize = 800;
/// Most unreadable tokens that are reported for one statement.
const MAX_REFUSED: usize = 20;
const TOO_LONG: &str = "an expression or a clause is too long";
/// Compound operators in one statement, including its subqueries.
const MAX_COMPOUNDS: usize = 10 * MAX_COMPOUND;

/// The statement that is being collected, and its nesting.
#[derive(Default)]
pub(super) struct Current {
    tokens: Vec<TokenWithSpan>,
    start: usize,
    end: usize,
    levels: Vec<Level>,
    base: Level,
    compounds: usize,
    /// True if the last token opened parentheses in the place of a table.
    place_opened: bool,
    /// Problems: every unreadable token, but only the first exceeded limit.
    refused: Vec<Refusal>,
}

/// State at one depth of parentheses.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Tokens since the last comma, including those inside nested parentheses. No tree of them is deeper.
    run: usize,
    /// Longest earlier run.
    longest: usize,
    /// True among the tables of FROM.
    tables: bool,
    is_case: bool,
}

impl Current {
    pub(super) fn push(&mut self, token: TokenWithSpan, start: usize, end: usize) {
        self.reach(start, end);
        if self.refused.is_empty() {
            let passed = self.bound(&token.token).err();
            self.refused.extend(passed);
        }
        self.tokens.push(token);
    }

    pub(super) fn refuse(&mut self, refusal: Refusal, start: usize, end: usize) {
        self.reach(start, end);
        if self.refused.len() < MAX_REFUSED && !self.refused.contains(&refusal) {
            self.refused.push(refusal);
        }
    }

    fn reach(&mut self, start: usize, end: usize) {
        if self.tokens.is_empty() && self.refused.is_empty() {
            self.start = start;
        }
        self.end = end;
    }

    fn bound(&mut self, token: &Token) -> Result<(), Refusal> {
        let keyword = keyword_of(token);
        let is_place = self.in_place();
        if std::mem::take(&mut self.place_opened)
            && !matches!(keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES)
        {
            // A query or a join: the parser would try both.
            return not_allowed("tables in parentheses are not allowed; write the joins one after the other");
        }
        let level = self.level();
        level.run += 1;
        if level.run > MAX_RUN {
            return not_allowed(TOO_LONG);
        }
        match token {
            Token::Comma => {
                level.longest = level.longest.max(level.run);
                level.run = 0;
            }
            Token::LParen => {
                self.place_opened = is_place;
                self.open(false)?;
            }
            Token::RParen => while self.close()? {},
            _ => self.keyword(keyword)?,
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: Keyword) -> Result<(), Refusal> {
        match keyword {
            Keyword::CASE => self.open(true)?,
            Keyword::END if self.level().is_case => {
                self.close()?;
            }
            // `IS DISTINCT FROM` is not followed by tables.
            Keyword::FROM => self.level().tables = self.last_keyword() != Keyword::DISTINCT,
            Keyword::JOIN => self.level().tables = true,
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => {
                self.level().tables = false;
                self.compounds += 1;
                if self.compounds > MAX_COMPOUNDS {
                    return not_allowed(format!("at most {MAX_COMPOUND} queries can be combined"));
                }
            }
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::SET
            | Keyword::SELECT
            | Keyword::RETURNING
            | Keyword::VALUES => self.level().tables = false,
            _ => {}
        }
        Ok(())
    }

    /// Leaves a level, and returns whether it was a CASE.
    fn close(&mut self) -> Result<bool, Refusal> {
        let Some(Level {
            run,
            longest,
            is_case,
            ..
        }) = self.levels.pop()
        else {
            return Ok(false);
        };
        let level = self.level();
        level.run += run.max(longest);
        if level.run > MAX_RUN {
            return not_allowed(TOO_LONG);
        }
        Ok(is_case)
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap_or(&mut self.base)
    }

    fn open(&mut self, is_case: bool) -> Result<(), Refusal> {
        if self.levels.len() == MAX_NESTING {
            return not_allowed(format!("parentheses and CASE nest at most {MAX_NESTING} deep"));
        }
        self.levels.push(Level {
            is_case,
            ..Level::default()
        });
        Ok(())
    }

    /// True if a table or a subquery comes next.
    fn in_place(&self) -> bool {
        let level = self.levels.last().unwrap_or(&self.base);
        level.tables
            && self.tokens.last().is_some_and(|last| {
                last.token == Token::Comma || matches!(keyword_of(&last.token), Keyword::FROM | Keyword::JOIN)
            })
    }

    fn last_keyword(&self) -> Keyword {
        self.tokens
            .last()
            .map_or(Keyword::NoKeyword, |last| keyword_of(&last.token))
    }

    /// True inside a trigger, which has its own statements up to its END. A trigger is refused as one statement.
    pub(super) fn is_open_trigger(&self) -> bool {
        let mut words = self.tokens.iter().map_while(|token| match &token.token {
            Token::Word(word) => Some(word.value.to_ascii_lowercase()),
            _ => None,
        });
        words.next().is_some_and(|word| word == "create")
            && words.take(2).any(|word| word == "trigger")
            && self.last_keyword() != Keyword::END
    }

    pub(super) fn finish<'a>(&mut self, text: &'a str, pieces: &mut Vec<Piece<'a>>) {
        let current = std::mem::take(self);
        if !current.tokens.is_empty() || !current.refused.is_empty() {
            pieces.push(Piece {
                tokens: current.tokens,
                refused: current.refused,
                text: text.get(current.start..current.end).unwrap_or_default(),
            });
        }
    }
}
