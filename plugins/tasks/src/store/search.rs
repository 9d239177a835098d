//! Search of the records' JSON.

use serde_json::Value as Json;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, ToValue, Value};

use super::{Kind, rows};
use crate::model::Workspace;

/// Filter of a search.
pub(crate) struct Wanted<'a> {
    pub kinds: &'a [Kind],
    /// Only this plan or task; for a plan, its tasks too.
    pub root: Option<&'a str>,
    /// Texts in lower case that all occur somewhere in the JSON.
    pub terms: &'a [&'a String],
    pub limit: usize,
}

/// A record that may match.
#[derive(Debug)]
pub(crate) struct Found {
    pub kind: Kind,
    pub id: String,
    pub root: String,
    pub status: String,
    pub record: Json,
}

from_row! {
    Found { kind, id, root, status, record }
}

/// Records whose JSON has all terms, the latest first. Keys of the JSON match as well, so the caller looks again.
pub(crate) fn find(db: &Db<'_>, workspace: &Workspace, wanted: &Wanted<'_>) -> Result<Vec<Found>, DbError> {
    let limit = rows(wanted.limit);
    let mut params: Vec<Value> = vec![workspace.to_value(), limit.to_value()];
    let mut sql = "SELECT record.kind, record.id, record.root, record.status, record.body \
        FROM tasks_records AS record WHERE record.workspace = ?1"
        .to_owned();
    let kinds: Vec<String> = wanted.kinds.iter().map(|kind| format!("'{kind}'")).collect();
    sql.push_str(&format!(" AND record.kind IN ({})", kinds.join(", ")));
    if let Some(root) = wanted.root {
        params.push(root.to_value());
        let place = params.len();
        sql.push_str(&format!(
            " AND (record.root = ?{place} OR record.root IN (SELECT id FROM tasks_roots \
             WHERE workspace = ?1 AND plan = ?{place}))"
        ));
    }
    for term in wanted.terms.iter().filter(|term| term.is_ascii()) {
        params.push(pattern(term).to_value());
        sql.push_str(&format!(
            " AND lower(record.body) LIKE ?{} ESCAPE '!'",
            params.len()
        ));
    }
    sql.push_str(" ORDER BY record.position DESC, record.id LIMIT ?2");
    db.query_as(&sql, &params)
}

/// Bytes of a pattern, below the 256 that storage takes.
const MAX_PATTERN_BYTES: usize = 250;

/// The pattern of a term as JSON writes it, or of its beginning if it is long: the caller looks again. Only ASCII has
/// one case in storage; other terms are left to the caller.
fn pattern(term: &str) -> String {
    let json = Json::from(term).to_string();
    let inner = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    let mut pattern = "%".to_owned();
    for character in inner.chars() {
        if pattern.len() + 3 > MAX_PATTERN_BYTES {
            break;
        }
        if matches!(character, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}
