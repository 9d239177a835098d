//! Records: JSON by workspace, kind and identifier, in the order of their siblings.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Row, params};

use super::{Columns, Kind, rows};
use crate::model::Workspace;
use crate::record::Record;

/// A record with its index among its siblings.
#[derive(Debug, Clone)]
pub(crate) struct Placed<T> {
    pub record: T,
    pub ordinal: i64,
}

/// Parent and index of a record.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub parent: String,
    pub ordinal: i64,
}

impl<T: Record> TryFrom<Row> for Placed<T> {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Placed<T>, DbError> {
        Ok(Placed {
            record: row.json(0)?,
            ordinal: row.get(1)?,
        })
    }
}

from_row! {
    Place { parent, ordinal }
}

/// The JSON of a record.
pub(crate) fn body(
    db: &Db<'_>,
    workspace: &Workspace,
    kind: Kind,
    id: &str,
) -> Result<Option<String>, DbError> {
    db.query_row(
        "SELECT body FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND id = ?3",
        params![workspace, kind, id],
    )?
    .map(|row| row.get(0))
    .transpose()
}

/// A record.
pub(crate) fn get<T: Record>(db: &Db<'_>, workspace: &Workspace, id: &str) -> Result<Option<T>, DbError> {
    db.query_row(
        "SELECT body FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND id = ?3",
        params![workspace, T::KIND, id],
    )?
    .map(|row| row.json(0))
    .transpose()
}

/// Parent and index of a record.
pub(crate) fn place(
    db: &Db<'_>,
    workspace: &Workspace,
    kind: Kind,
    id: &str,
) -> Result<Option<Place>, DbError> {
    db.query_one(
        "SELECT parent, ordinal FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND id = ?3",
        params![workspace, kind, id],
    )
}

/// The record at an index under a parent.
pub(crate) fn at<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    parent: &str,
    ordinal: i64,
) -> Result<Option<T>, DbError> {
    db.query_row(
        "SELECT body FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 AND ordinal = ?4",
        params![workspace, T::KIND, parent, ordinal],
    )?
    .map(|row| row.json(0))
    .transpose()
}

/// At most `limit` children of a parent, in order.
pub(crate) fn children<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    parent: &str,
    limit: usize,
) -> Result<Vec<Placed<T>>, DbError> {
    siblings(db, workspace, parent, From::Oldest, limit)
}

/// At most `limit` children of a parent, the latest first.
pub(crate) fn latest_children<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    parent: &str,
    limit: usize,
) -> Result<Vec<Placed<T>>, DbError> {
    siblings(db, workspace, parent, From::Latest, limit)
}

fn siblings<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    parent: &str,
    from: From,
    limit: usize,
) -> Result<Vec<Placed<T>>, DbError> {
    let order = from.order("ordinal");
    db.query_as(
        &format!(
            "SELECT body, ordinal FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 \
             ORDER BY {order} LIMIT ?4"
        ),
        params![workspace, T::KIND, parent, rows(limit)],
    )
}

/// Like [`children`], of one status only.
pub(crate) fn children_with<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    parent: &str,
    status: &str,
    limit: usize,
) -> Result<Vec<Placed<T>>, DbError> {
    db.query_as(
        "SELECT body, ordinal FROM tasks_records \
         WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 AND status = ?4 ORDER BY ordinal LIMIT ?5",
        params![workspace, T::KIND, parent, status, rows(limit)],
    )
}

/// Returns whether a parent has a child with a status.
pub(crate) fn has_child(
    db: &Db<'_>,
    workspace: &Workspace,
    kind: Kind,
    parent: &str,
    status: &str,
) -> Result<bool, DbError> {
    let row = db.query_row(
        "SELECT 1 FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 AND status = ?4 LIMIT 1",
        params![workspace, kind, parent, status],
    )?;
    Ok(row.is_some())
}

/// The index that the next step under a parent gets.
pub(crate) fn count_children(db: &Db<'_>, workspace: &Workspace, parent: &str) -> Result<u32, DbError> {
    let last = db.query_row(
        "SELECT ordinal + 1 FROM tasks_records WHERE workspace = ?1 AND kind = 'step' AND parent = ?2 \
         ORDER BY ordinal DESC LIMIT 1",
        params![workspace, parent],
    )?;
    last.map_or(Ok(0), |row| row.get(0))
}

/// The end of a list to read first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Oldest,
    Latest,
}

impl From {
    /// The column in `ORDER BY`.
    fn order(self, column: &str) -> String {
        match self {
            From::Oldest => column.to_owned(),
            From::Latest => format!("{column} DESC"),
        }
    }
}

/// Records of a root with a status, in creation order or reversed.
pub(crate) fn of_root<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    status: &str,
    from: From,
    limit: usize,
) -> Result<Vec<Placed<T>>, DbError> {
    let order = from.order("position");
    db.query_as(
        &format!(
            "SELECT body, ordinal FROM tasks_records \
             WHERE workspace = ?1 AND root = ?2 AND kind = ?3 AND status = ?4 ORDER BY {order} LIMIT ?5"
        ),
        params![workspace, root, T::KIND, status, rows(limit)],
    )
}

/// Records of a plan and its tasks with a status, in creation order or reversed.
pub(crate) fn of_plan<T: Record>(
    db: &Db<'_>,
    workspace: &Workspace,
    plan: &str,
    status: &str,
    from: From,
    limit: usize,
) -> Result<Vec<Placed<T>>, DbError> {
    let order = from.order("record.position");
    db.query_as(
        &format!(
            "SELECT record.body, record.ordinal FROM tasks_roots AS root JOIN tasks_records AS record \
                 ON record.workspace = root.workspace AND record.root = root.id \
             WHERE root.workspace = ?1 AND (root.id = ?2 OR root.plan = ?2) AND record.kind = ?3 \
                 AND record.status = ?4 ORDER BY {order} LIMIT ?5"
        ),
        params![workspace, plan, T::KIND, status, rows(limit)],
    )
}

/// Number of records of a kind under a root, by status.
pub(crate) fn count_by_status(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    kind: Kind,
) -> Result<Vec<(String, usize)>, DbError> {
    db.query(
        "SELECT status, count(*) FROM tasks_records WHERE workspace = ?1 AND root = ?2 AND kind = ?3 \
         GROUP BY status ORDER BY status",
        params![workspace, root, kind],
    )?
    .iter()
    .map(|row| Ok((row.get(0)?, row.get(1)?)))
    .collect()
}

/// Replaces a record, or adds it after the siblings with lower positions. A record with a new parent or
/// position moves.
pub(crate) fn write(
    db: &Db<'_>,
    workspace: &Workspace,
    kind: Kind,
    columns: &Columns,
    body: &str,
) -> Result<(), DbError> {
    let replaced = db.execute(
        "UPDATE tasks_records SET status = ?4, body = ?5 \
         WHERE workspace = ?1 AND kind = ?2 AND id = ?3 AND parent = ?6 AND position = ?7",
        params![
            workspace,
            kind,
            columns.id,
            columns.status,
            body,
            columns.parent,
            columns.position
        ],
    )?;
    if replaced == 1 {
        return Ok(());
    }
    remove(db, workspace, kind, &columns.id)?;
    let ordinal = make_room(db, workspace, kind, columns)?;
    db.execute(
        "INSERT INTO tasks_records (workspace, kind, id, root, parent, ordinal, position, status, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            workspace,
            kind,
            columns.id,
            columns.root,
            columns.parent,
            ordinal,
            columns.position,
            columns.status,
            body
        ],
    )
    .map(drop)
}

/// Index for a new record, after its later siblings were moved up.
fn make_room(db: &Db<'_>, workspace: &Workspace, kind: Kind, columns: &Columns) -> Result<i64, DbError> {
    let last = db.query_row(
        "SELECT ordinal, position FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 \
         ORDER BY ordinal DESC LIMIT 1",
        params![workspace, kind, columns.parent],
    )?;
    let Some(last) = last else {
        return Ok(0);
    };
    if last.get::<i64>(1)? <= columns.position {
        return Ok(last.get::<i64>(0)?.saturating_add(1));
    }
    let ordinal: i64 = db
        .query_row(
            "SELECT count(*) FROM tasks_records \
             WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 AND position < ?4",
            params![workspace, kind, columns.parent, columns.position],
        )?
        .ok_or(DbError::Internal)?
        .get(0)?;
    db.execute(
        "UPDATE tasks_records SET ordinal = ordinal + 1 \
         WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 AND ordinal >= ?4",
        params![workspace, kind, columns.parent, ordinal],
    )?;
    Ok(ordinal)
}

/// Removes a record and closes the gap in its siblings' indexes.
pub(crate) fn remove(db: &Db<'_>, workspace: &Workspace, kind: Kind, id: &str) -> Result<(), DbError> {
    let removed = db.query_row(
        "DELETE FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND id = ?3 RETURNING parent, ordinal",
        params![workspace, kind, id],
    )?;
    if let Some(removed) = removed {
        db.execute(
            "UPDATE tasks_records SET ordinal = ordinal - 1 \
             WHERE workspace = ?1 AND kind = ?2 AND parent = ?3 AND ordinal > ?4",
            params![workspace, kind, removed.get::<String>(0)?, removed.get::<i64>(1)?],
        )?;
    }
    Ok(())
}

/// The records that hang under another one, at most `limit`.
pub(crate) fn hanging(
    db: &Db<'_>,
    workspace: &Workspace,
    parent: &str,
    limit: usize,
) -> Result<Vec<(Kind, String)>, DbError> {
    db.query(
        "SELECT kind, id FROM tasks_records WHERE workspace = ?1 \
         AND kind IN ('task', 'step', 'node', 'evidence', 'note', 'lease') AND parent = ?2 ORDER BY kind, id LIMIT ?3",
        params![workspace, parent, rows(limit)],
    )?
    .iter()
    .map(|row| Ok((row.get(0)?, row.get(1)?)))
    .collect()
}

/// The plans or tasks whose record mentions an identifier, which those that depend on it do.
pub(crate) fn mentioning<T: Record>(db: &Db<'_>, workspace: &Workspace, id: &str) -> Result<Vec<T>, DbError> {
    db.query(
        "SELECT body FROM tasks_records WHERE workspace = ?1 AND kind = ?2 AND instr(body, ?3) > 0 ORDER BY position",
        params![workspace, T::KIND, format!("\"{id}\"")],
    )?
    .iter()
    .map(|row| row.json(0))
    .collect()
}

/// Removes everything below a root, but not the root's own record.
pub(crate) fn remove_content(db: &Db<'_>, workspace: &Workspace, root: &str) -> Result<(), DbError> {
    db.execute(
        "DELETE FROM tasks_records WHERE workspace = ?1 AND root = ?2 AND id <> ?2",
        params![workspace, root],
    )
    .map(drop)
}

/// The records of a kind in a workspace, by identifier.
pub(crate) fn all<T: Record>(db: &Db<'_>, workspace: &Workspace, limit: usize) -> Result<Vec<T>, DbError> {
    db.query(
        "SELECT body FROM tasks_records WHERE workspace = ?1 AND kind = ?2 ORDER BY id LIMIT ?3",
        params![workspace, T::KIND, rows(limit)],
    )?
    .iter()
    .map(|row| row.json(0))
    .collect()
}
