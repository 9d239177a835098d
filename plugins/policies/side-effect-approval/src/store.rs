//! The answers that were given, and who asked.

use tollgate_sdk::{Db, DbError, params};

use crate::another::Person;

/// An answer to a request for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The first digits of the arguments' hash.
    pub(crate) args_hash: String,
    /// Which time it was asked.
    pub(crate) round: i64,
    /// `approved`, or how it was not.
    pub(crate) status: String,
    /// Who answered.
    pub(crate) resolved_by: String,
    /// Milliseconds since 1970 UTC.
    pub(crate) answered_at: i64,
}

/// The last answer for a tool with these arguments.
pub(crate) fn last(db: &Db<'_>, kind: &str, args_hash: &str) -> Result<Option<Answer>, DbError> {
    let rows = db.query(
        "SELECT round, status, resolved_by, answered_at FROM policy_side_effect_approval_answers
         WHERE kind = ?1 AND args_hash = ?2 ORDER BY round DESC LIMIT 1",
        params![kind, args_hash],
    )?;
    rows.first()
        .map(|row| {
            Ok(Answer {
                args_hash: args_hash.to_owned(),
                round: row.get(0)?,
                status: row.get(1)?,
                resolved_by: row.get(2)?,
                answered_at: row.get(3)?,
            })
        })
        .transpose()
}

/// Remembers an answer. The same one again changes nothing.
pub(crate) fn remember(db: &Db<'_>, kind: &str, answer: &Answer) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO policy_side_effect_approval_answers (kind, args_hash, round, status, resolved_by, answered_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (kind, args_hash, round) DO NOTHING",
        params![kind, answer.args_hash, answer.round, answer.status, answer.resolved_by, answer.answered_at],
    )
    .map(drop)
}

/// Remembers who asked. Whoever asks for the same again asked nothing.
pub(crate) fn note(db: &Db<'_>, approval: &str, asked: &Person) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO policy_side_effect_approval_requests (approval_id, name, identity)
         VALUES (?1, ?2, ?3) ON CONFLICT (approval_id) DO NOTHING",
        params![approval, asked.name, asked.identity],
    )
    .map(drop)
}

/// Who asked, if this policy judged it.
pub(crate) fn asked(db: &Db<'_>, approval: &str) -> Result<Option<Person>, DbError> {
    let rows = db.query(
        "SELECT name, identity FROM policy_side_effect_approval_requests WHERE approval_id = ?1",
        params![approval],
    )?;
    rows.first()
        .map(|row| {
            Ok(Person {
                name: row.get(0)?,
                identity: row.get(1)?,
            })
        })
        .transpose()
}
