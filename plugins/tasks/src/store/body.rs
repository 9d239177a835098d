//! Bodies of evidence.

use tollgate_sdk::{Db, DbError, params};

use crate::model::Workspace;

/// Keeps a body.
pub(crate) fn insert(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    evidence: &str,
    body: &str,
) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO tasks_bodies (workspace, root, evidence, body) VALUES (?1, ?2, ?3, ?4)",
        params![workspace, root, evidence, body],
    )
    .map(drop)
}

/// The start of a body, at most `most` characters.
pub(crate) fn start(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    evidence: &str,
    most: i64,
) -> Result<Option<String>, DbError> {
    db.query_row(
        "SELECT substr(body, 1, ?4) FROM tasks_bodies WHERE workspace = ?1 AND root = ?2 AND evidence = ?3",
        params![workspace, root, evidence, most],
    )?
    .map(|row| row.get(0))
    .transpose()
}

/// A piece of a body, by the place of its first character and the number of characters.
pub(crate) fn slice(
    db: &Db<'_>,
    workspace: &Workspace,
    (root, evidence): (&str, &str),
    from: usize,
    most: usize,
) -> Result<Option<String>, DbError> {
    let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    db.query_row(
        "SELECT substr(body, ?4, ?5) FROM tasks_bodies WHERE workspace = ?1 AND root = ?2 AND evidence = ?3",
        params![
            workspace,
            root,
            evidence,
            whole(from.saturating_add(1)),
            whole(most)
        ],
    )?
    .map(|row| row.get(0))
    .transpose()
}

/// Deletes the bodies of a deleted root. Undone evidence keeps its body until then, because the capture can
/// be redone.
pub(crate) fn remove_of_root(db: &Db<'_>, workspace: &Workspace, root: &str) -> Result<(), DbError> {
    db.execute(
        "DELETE FROM tasks_bodies WHERE workspace = ?1 AND root = ?2",
        params![workspace, root],
    )
    .map(drop)
}
