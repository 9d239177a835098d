//! Check of a whole component: everything that PostgreSQL would refuse or read differently.

use std::fmt;

use super::define::translate_steps;
use super::difference::Difference;
use super::translator::findings as findings_of;
use crate::read::{Owner, statement_here};
use crate::refusal::Problems;
use crate::schema::{self, Schema, Step};
use crate::stack;

/// Characters of a statement that are shown in a message.
const SHOWN: usize = 120;

/// SQL of a component that differs on PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Position of the SQL in the component.
    pub place: Place,
    /// Difference, and the SQL to use instead.
    pub difference: Difference,
}

/// Position of SQL in a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A statement of a migration.
    Migration {
        /// Name of the step.
        step: String,
        /// Number of the statement in its step, from 1.
        statement: usize,
        /// First words of the statement.
        words: String,
    },
    /// The text of a statement that a call ran.
    Call(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.difference)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Migration {
                step,
                statement,
                words,
            } => write!(f, "step {step}, statement {statement} (`{words}`)"),
            Place::Call(text) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let text = words.join(" ");
                let shown: String = text.chars().take(SHOWN).collect();
                let cut = if shown.len() < text.len() { "…" } else { "" };
                write!(f, "`{shown}{cut}`")
            }
        }
    }
}

/// Finds the SQL of a component that differs on PostgreSQL: in its migrations, and in the statements that its calls
/// ran.
///
/// A text that the reader refuses is skipped, because no engine gets it. After a migration that differs, missing tables
/// and columns are not reported, because that migration would have created them.
///
/// # Errors
/// The problems of the migrations, if the reader refuses them.
pub fn differences<'a>(
    prefix: &str,
    steps: &[Step<'_>],
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Finding>, Problems> {
    let schema = schema::read(prefix, steps.iter().copied())?;
    let texts: Vec<&str> = texts.into_iter().collect();
    let found = stack::apart(|| find(prefix, steps, &schema, &texts));
    Ok(found.unwrap_or_else(|| {
        let difference = Difference::Other("the statements could not be translated".to_owned());
        vec![Finding {
            place: Place::Call(String::new()),
            difference,
        }]
    }))
}

fn find(prefix: &str, steps: &[Step<'_>], schema: &Schema, texts: &[&str]) -> Vec<Finding> {
    let (migrated, unfit) = translate_steps(prefix, schema);
    let is_complete = unfit.is_empty();
    let mut findings = Vec::new();
    for finding in findings_of(unfit, schema, steps) {
        if findings.is_empty() || !follows(&finding.difference) {
            findings.push(finding);
        }
    }
    let owner = Owner {
        prefix,
        append_only: schema.append_only(),
    };
    for text in texts {
        let Ok(tree) = statement_here(text, owner) else {
            continue;
        };
        match migrated.catalog.statement_here(&tree) {
            Err(difference) if !is_complete && follows(&difference) => {}
            Err(difference) => findings.push(Finding {
                place: Place::Call((*text).to_owned()),
                difference,
            }),
            Ok(_) => {}
        }
    }
    findings
}

/// True if another difference can be the cause: it left out a table or a column.
fn follows(difference: &Difference) -> bool {
    matches!(difference, Difference::NoTable(_) | Difference::NoColumn(_))
}
