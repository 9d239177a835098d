//! SQL that is sent with a statement in the same round trip, and statements of components within it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use tokio::time::timeout;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, RowStream, Statement};
use tollgate_core::deadline::Deadline;
use tollgate_sql::postgres::Kind;

use super::super::values::Param;
use super::{CANCEL_TIMEOUT, Trip, Wire, last_of};
use crate::storage::engine::Sql;
use crate::storage::error::StoreFailure;

/// Bytes past the limits that are read before the server is asked to stop.
const SLACK_BYTES: usize = 16 << 20;

/// Limits on the rows of a statement.
#[derive(Clone, Copy)]
pub(in crate::storage::engine::postgres) struct Caps {
    pub(in crate::storage::engine::postgres) rows: usize,
    pub(in crate::storage::engine::postgres) bytes: usize,
}

/// SQL before and after a statement in the same round trip. If the statement fails, the SQL after it fails as well.
#[derive(Default)]
pub(in crate::storage::engine::postgres) struct Around {
    pub(in crate::storage::engine::postgres) before: Option<String>,
    pub(in crate::storage::engine::postgres) after: Option<&'static str>,
    /// True if the SQL before begins the transaction.
    pub(in crate::storage::engine::postgres) begins: bool,
    /// Last row from the SQL before, once it has succeeded.
    pub(in crate::storage::engine::postgres) said: OnceLock<Vec<Option<String>>>,
}

impl Around {
    /// Appends to the SQL before the statement.
    pub(in crate::storage::engine::postgres) fn push(&mut self, text: &str) {
        match &mut self.before {
            Some(before) => {
                before.push_str("; ");
                before.push_str(text);
            }
            None => self.before = Some(text.to_owned()),
        }
    }

    /// Sends the SQL before the statement.
    pub(super) async fn begin(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let Some(before) = &self.before else {
            return Ok(());
        };
        let said = client.simple_query(before).await?;
        let _ = self.said.set(last_of(&said));
        Ok(())
    }
}

/// Result of a component's statement.
#[derive(Default)]
pub(in crate::storage::engine::postgres) struct Came {
    pub(in crate::storage::engine::postgres) rows: Vec<Row>,
    pub(in crate::storage::engine::postgres) changed: u64,
}

/// Limit that a statement's rows exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage::engine::postgres) enum Over {
    Rows,
    Bytes,
}

impl Wire {
    /// Prepares a component's statement with these parameter types, between two SQL texts, in one round trip.
    pub(in crate::storage::engine::postgres) fn prepare_guarded(
        &self,
        around: &Around,
        sql: &str,
        types: &[Kind],
        deadline: Option<&Deadline>,
    ) -> Trip<Statement> {
        let client = self.client()?;
        let types: Vec<Type> = types.iter().map(|kind| type_of(*kind)).collect();
        self.trip(deadline, async {
            let (begun, prepared, ended) = futures::join!(
                around.begin(client),
                client.prepare_typed(sql, &types),
                script_of(client, around.after),
            );
            begun?;
            let prepared = prepared?;
            ended?;
            Ok(prepared)
        })
    }

    /// Runs a component's statement between two SQL texts, in one round trip. Also returns the limit that its rows
    /// exceeded.
    pub(in crate::storage::engine::postgres) fn guarded(
        &self,
        around: &Around,
        (statement, params): (&Statement, &[Sql<'_>]),
        deadline: Option<&Deadline>,
        caps: Caps,
    ) -> (Trip<Came>, Option<Over>) {
        let client = match self.client() {
            Ok(client) => client,
            Err(lost) => return (Err(lost), None),
        };
        let params = params.iter().map(|value| Param(*value));
        let over = OnceLock::new();
        let has_stopped = AtomicBool::new(false);
        let came = self.trip(deadline, async {
            let run = async {
                let rows = client.query_raw(statement, params).await?;
                self.capped(rows, caps, &over, &has_stopped).await
            };
            let (begun, came, ended) =
                futures::join!(around.begin(client), run, script_of(client, around.after),);
            begun?;
            let came = came?;
            ended?;
            Ok(came)
        });
        let is_heeded = matches!(&came, Err(failure) if failure.kind() == StoreFailure::Interrupted);
        if has_stopped.into_inner() && !is_heeded {
            // The cancel request may still be in transit, and must not hit a later statement.
            self.give_up();
        }
        (came, over.into_inner())
    }

    /// Rows of a statement. Rows past the limits are dropped. If they do not end soon, the server is asked to stop.
    async fn capped(
        &self,
        rows: RowStream,
        caps: Caps,
        over: &OnceLock<Over>,
        has_stopped: &AtomicBool,
    ) -> Result<Came, tokio_postgres::Error> {
        let mut rows = std::pin::pin!(rows);
        let mut came = Came::default();
        let mut bytes = 0_usize;
        while let Some(row) = rows.next().await {
            let row = row?;
            // Numbers are small, and rows of only NULL take memory too.
            bytes += row.raw_size_bytes() + 16 * row.len();
            if came.rows.len() == caps.rows {
                let _ = over.set(Over::Rows);
            } else if bytes > caps.bytes {
                let _ = over.set(Over::Bytes);
            }
            if over.get().is_none() {
                came.rows.push(row);
            } else if bytes > caps.bytes + SLACK_BYTES && !has_stopped.swap(true, Ordering::Relaxed) {
                let _ = timeout(CANCEL_TIMEOUT, self.cancel.cancel_query(self.tls.clone())).await;
            }
        }
        came.changed = rows.rows_affected().unwrap_or_default();
        Ok(came)
    }

    /// Sends the SQL before a statement separately. Its last row is in the result of the round trip.
    pub(in crate::storage::engine::postgres) fn begin(&self, around: &Around) -> Trip<()> {
        let client = self.client()?;
        self.trip(None, around.begin(client))
    }
}

async fn script_of(client: &Client, sql: Option<&str>) -> Result<(), tokio_postgres::Error> {
    match sql {
        Some(sql) => client.batch_execute(sql).await,
        None => Ok(()),
    }
}

/// Type of a parameter in a component's statement.
fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Integer => Type::INT8,
        Kind::Real => Type::FLOAT8,
        Kind::Text => Type::TEXT,
        Kind::Blob => Type::BYTEA,
    }
}
