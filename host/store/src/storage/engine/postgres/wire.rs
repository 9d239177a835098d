//! A connection to PostgreSQL with its own runtime.
//!
//! Sessions are synchronous, and each belongs to one thread. A current-thread runtime drives the connection only
//! while the session waits for the server, so that no other thread is woken for a round trip.

mod around;

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::ReadyChunks;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{CancelToken, Client, Row, RowStream, SimpleQueryMessage, SimpleQueryRow, Statement};
use tollgate_core::deadline::Deadline;

use super::error::Failure;
use super::server::{CONNECT_TIMEOUT, Server, ServerError};
use super::tls::MaybeTls;
use super::values::Param;
use crate::storage::engine::Sql;
use crate::storage::error::StoreFailure;

pub(super) use self::around::{Around, Caps, Over};

/// Interval of checking the deadline of a running statement.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Time for the server to react to a cancel request. After that the connection is closed.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for a graceful close.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(200);
/// Most rows that are fetched at once.
const CHUNK_ROWS: usize = 256;

/// A connection.
pub(super) struct Wire {
    /// Absent once the connection is closed.
    client: Option<Client>,
    cancel: CancelToken,
    tls: MaybeTls,
    driver: Mutex<Option<JoinHandle<()>>>,
    /// Absent only during the drop.
    runtime: Option<Runtime>,
}

/// Rows of a statement as they arrive. Rows that arrive together are fetched together.
pub(super) type Chunks = Pin<Box<ReadyChunks<RowStream>>>;

/// End of a statement with a deadline.
enum Ended<T> {
    InTime(Result<T, tokio_postgres::Error>),
    /// A cancel request was sent, and the statement may have failed because of it.
    Late(Option<tokio_postgres::Error>),
}

/// Result of a round trip.
type Trip<T> = Result<T, Failure>;

impl Wire {
    /// Opens a connection.
    pub(super) fn open(server: &Server) -> Result<Wire, ServerError> {
        let unreachable = |reason: String| ServerError::Unreachable {
            place: server.to_string(),
            reason,
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|err| unreachable(err.to_string()))?;
        let config = server.to_connect();
        let connect = timeout_of(CONNECT_TIMEOUT, config.connect(server.tls.clone()));
        let connected = block_on(&runtime, connect)
            .ok_or_else(|| ServerError::Silent {
                place: server.to_string(),
            })
            .and_then(|connected| connected.map_err(|err| unreachable(of_connecting(err))));
        let (client, connection) = match connected {
            Ok(connected) => connected,
            Err(err) => {
                // A normal drop would wait for its threads, which is not allowed in every context.
                runtime.shutdown_background();
                return Err(err);
            }
        };
        let driver = runtime.spawn(async move {
            if let Err(err) = connection.await {
                tracing::debug!("a connection to the database ended: {}", Failure::from(err));
            }
        });
        Ok(Wire {
            cancel: client.cancel_token(),
            client: Some(client),
            tls: server.tls.clone(),
            driver: Mutex::new(Some(driver)),
            runtime: Some(runtime),
        })
    }

    /// True if nothing can be sent any more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_closed) || self.driver_is_gone()
    }

    /// Processes messages that arrived since the last round trip, such as the end of the connection.
    pub(super) fn look(&self) {
        self.block_on(async {
            // The first turn is for the socket, the second for the driver.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
    }

    /// True if the host closed the connection.
    pub(super) fn is_given_up(&self) -> bool {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        driver.is_none()
    }

    fn driver_is_gone(&self) -> bool {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        driver.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Prepares a statement.
    pub(super) fn prepare(&self, sql: &str, deadline: Option<&Deadline>) -> Trip<Statement> {
        let client = self.client()?;
        self.trip(deadline, client.prepare(sql))
    }

    /// Runs a statement that returns nothing, and returns the number of rows that it changed.
    pub(super) fn execute(
        &self,
        around: &Around,
        statement: &Statement,
        params: &[Sql<'_>],
        deadline: Option<&Deadline>,
    ) -> Trip<u64> {
        let client = self.client()?;
        let params = params.iter().map(|value| Param(*value));
        self.trip(deadline, async {
            let (begun, changed) =
                futures::join!(around.begin(client), client.execute_raw(statement, params));
            begun.and(changed)
        })
    }

    /// Starts a statement that returns rows.
    pub(super) fn query(
        &self,
        around: &Around,
        statement: &Statement,
        params: &[Sql<'_>],
        deadline: Option<&Deadline>,
    ) -> Trip<Chunks> {
        let client = self.client()?;
        let params = params.iter().map(|value| Param(*value));
        let stream = self.trip(deadline, async {
            let (begun, stream) = futures::join!(around.begin(client), client.query_raw(statement, params));
            begun.and(stream)
        })?;
        Ok(Box::pin(stream.ready_chunks(CHUNK_ROWS)))
    }

    /// Next rows of a statement. Empty after the last.
    pub(super) fn rows(&self, chunks: &mut Chunks, deadline: Option<&Deadline>) -> Trip<Vec<Row>> {
        self.trip(deadline, async {
            loop {
                let chunk = chunks.next().await.unwrap_or_default();
                let rows: Vec<Row> = chunk.into_iter().collect::<Result<_, _>>()?;
                // Past the deadline the rows are not needed, and the answer to the cancel request follows them.
                if rows.is_empty() || !deadline.is_some_and(Deadline::is_over) {
                    return Ok(rows);
                }
            }
        })
    }

    /// Runs statements that return nothing, in one trip.
    pub(super) fn script(&self, sql: &str, deadline: Option<&Deadline>) -> Trip<()> {
        let client = self.client()?;
        self.trip(deadline, client.batch_execute(sql))
    }

    /// Begins a transaction between two SQL texts that run outside it, in one round trip.
    pub(super) fn begin_between(&self, first: &str, begin: &str, last: &str) -> Trip<()> {
        let client = self.client()?;
        let (first, begun, last) = self.block_on(async {
            futures::join!(
                client.batch_execute(first),
                client.batch_execute(begin),
                client.batch_execute(last),
            )
        });
        Ok(first.and(begun).and(last)?)
    }

    /// Commits the transaction. No deadline applies, because the outcome is needed in any case.
    pub(super) fn commit(&self) -> Trip<()> {
        let client = self.client()?;
        self.block_on(client.batch_execute("COMMIT"))
            .map_err(Failure::of_commit)
    }

    /// Runs a statement and commits the transaction, in one round trip. The second text must ensure that nothing is
    /// committed without the first statement.
    pub(super) fn commit_after(&self, statement: &Statement, params: &[Sql<'_>], commit: &str) -> Trip<()> {
        let client = self.client()?;
        let params = params.iter().map(|value| Param(*value));
        let (ran, committed) = self.block_on(async {
            let run = async {
                let rows = client.query_raw(statement, params).await?;
                rows.try_for_each(|_| async { Ok(()) }).await
            };
            futures::join!(run, client.batch_execute(commit))
        });
        let failure = match (ran, committed) {
            (Ok(()), Ok(())) => return Ok(()),
            // The server refused it before it reached the commit.
            (Err(err), _) if err.as_db_error().is_some() => Failure::from(err),
            (Ok(()), Err(err)) => Failure::of_commit(err),
            (Err(err), committed) => match committed.map_err(Failure::of_commit) {
                // The statement was never sent, so there was nothing to commit.
                Err(refused) if refused.kind() != StoreFailure::Unknown => Failure::from(err),
                Err(failure) => failure,
                Ok(()) => Failure::of_commit(err),
            },
        };
        if !self.is_closed() && self.block_on(client.batch_execute("ROLLBACK")).is_err() {
            self.give_up();
        }
        Err(failure)
    }

    /// Runs a text without preparing it, and returns the first row as text.
    pub(super) fn ask(&self, sql: &str) -> Trip<Vec<Option<String>>> {
        let client = self.client()?;
        let said = self.trip(None, client.simple_query(sql))?;
        let first = said.iter().find_map(row_of);
        Ok(first.map_or_else(Vec::new, texts))
    }

    /// Runs a text under a deadline, and returns the last row as text.
    pub(super) fn ask_last(&self, sql: &str, deadline: Option<&Deadline>) -> Trip<Vec<Option<String>>> {
        let client = self.client()?;
        let said = self.trip(deadline, client.simple_query(sql))?;
        Ok(last_of(&said))
    }

    fn client(&self) -> Trip<&Client> {
        let lost = || Failure::seen(StoreFailure::Lost, "the connection to the database was lost");
        self.client.as_ref().ok_or_else(lost)
    }

    /// Waits for the server, at most until the deadline.
    fn trip<T: Send>(
        &self,
        deadline: Option<&Deadline>,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>> + Send,
    ) -> Trip<T> {
        let Some(deadline) = deadline else {
            return self.block_on(answer).map_err(Failure::from);
        };
        let ended = self.block_on(async {
            let mut answer = std::pin::pin!(answer);
            while !deadline.is_over() {
                let look = deadline.remaining().min(LOOK_INTERVAL);
                if let Ok(answered) = timeout(look, &mut answer).await {
                    return Ended::InTime(answered);
                }
            }
            // The result does not matter, only whether the statement ends.
            let _ = timeout(CANCEL_TIMEOUT, self.cancel.cancel_query(self.tls.clone())).await;
            match timeout(CANCEL_TIMEOUT, answer).await {
                Ok(Err(err)) => Ended::Late(Some(err)),
                _ => Ended::Late(None),
            }
        });
        let failure = match ended {
            Ended::InTime(answered) => return answered.map_err(Failure::from),
            Ended::Late(err) => err.map(Failure::from),
        };
        match failure {
            Some(failure) if failure.kind() == StoreFailure::Interrupted => Err(failure),
            // The cancel request may still be in transit, and must not hit a later statement.
            _ => {
                self.give_up();
                Err(Failure::seen(
                    StoreFailure::Interrupted,
                    "the statement did not end by its deadline, so the connection was closed",
                ))
            }
        }
    }

    /// Closes the connection without waiting for the server, which then rolls back an open transaction.
    pub(super) fn give_up(&self) {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(driver) = driver {
            driver.abort();
            // The runtime drops the socket when it runs next.
            self.block_on(async { drop(driver.await) });
        }
    }

    fn block_on<T: Send>(&self, future: impl Future<Output = T> + Send) -> T {
        match &self.runtime {
            Some(runtime) => block_on(runtime, future),
            None => unreachable!("the runtime is there until the connection is dropped"),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.client.take());
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        if let Some(driver) = driver {
            // Without a graceful close the server logs a message.
            block_on(&runtime, timeout_of(GOODBYE_TIMEOUT, driver));
        }
        // Does not wait for threads, so that a session may be dropped anywhere.
        runtime.shutdown_background();
    }
}

fn row_of(message: &SimpleQueryMessage) -> Option<&SimpleQueryRow> {
    match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    }
}

/// Last row as text.
fn last_of(said: &[SimpleQueryMessage]) -> Vec<Option<String>> {
    let last = said.iter().rev().find_map(row_of);
    last.map_or_else(Vec::new, texts)
}

fn texts(row: &SimpleQueryRow) -> Vec<Option<String>> {
    (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()
}

async fn timeout_of<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    timeout(time, future).await.ok()
}

/// Runs a future to its end on this thread. A thread that already runs another runtime waits for a helper thread
/// instead, as it would wait for SQLite.
fn block_on<T: Send>(runtime: &Runtime, future: impl Future<Output = T> + Send) -> T {
    if Handle::try_current().is_err() {
        return runtime.block_on(future);
    }
    let done = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(future)).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reason for which a connection was refused, with the system's message.
fn of_connecting(err: tokio_postgres::Error) -> String {
    let failure = Failure::from(err);
    let mut told = failure.to_string();
    let mut cause = std::error::Error::source(&failure);
    while let Some(found) = cause {
        told.push_str(": ");
        told.push_str(&found.to_string());
        cause = found.source();
    }
    told
}
