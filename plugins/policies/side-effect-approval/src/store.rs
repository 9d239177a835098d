//! Stored answers and requesters.

use tollgate_sdk::{Db, DbError, params};

use crate::another::Person;

/// Answer to a request for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// First digits of the arguments' hash.
    pub(crate) args_hash: String,
    /// Number of the request for these arguments.
    pub(crate) round: i64,
    /// Status: `approved`, or how it was rejected.
    pub(crate) status: String,
    /// Name of the approver.
    pub(crate) resolved_by: String,
    /// Time of the answer in milliseconds since 1970 UTC.
    pub(crate) answered_at: i64,
}

/// Last answer for a tool with these arguments.
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

/// Stores an answer. Repeating the same one changes nothing.
pub(crate) fn remember(db: &Db<'_>, kind: &str, answer: &Answer) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO policy_side_effect_approval_answers (kind, args_hash, round, status, resolved_by, answered_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (kind, args_hash, round) DO NOTHING",
        params![kind, answer.args_hash, answer.round, answer.status, answer.resolved_by, answer.answered_at],
    )
    .map(drop)
}

/// Stores the requester of an approval. A repeated request does not change the requester.
pub(crate) fn note(db: &Db<'_>, approval: &str, asked: &Person) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO policy_side_effect_approval_requests (approval_id, name, identity)
         VALUES (?1, ?2, ?3) ON CONFLICT (approval_id) DO NOTHING",
        params![approval, asked.name, asked.identity],
    )
    .map(drop)
}

/// Requester, if this policy evaluated the request.
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
