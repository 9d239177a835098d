//! Sessions of clients that begin with `initialize`. Each session belongs to its creator. Their number is limited, and
//! idle sessions end.
//!
//! Identities share the places. When all are taken, an identity with fewer sessions gets a place from the identity with
//! the most. The session that was idle for longest ends, or else one that only waits for notifications.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio_util::sync::CancellationToken;
use tollgate_core::identity::Identity;
use tollgate_core::share::Share;

/// Number of attempts to get a freed place that others may take first.
const ATTEMPTS: usize = 8;
/// Time for a client to return to a session whose connections were lost, before its remaining calls are cancelled.
/// Clients are told to reconnect after 3 s.
const COMEBACK_TIMEOUT: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// Request that is being served. Unset while the host itself is at work.
    static REQUEST: Requester;
}

/// Sender of a request, and the place for a session that it may start.
struct Requester {
    identity: Option<Identity>,
    session_slot: Mutex<Option<SessionSlot>>,
}

/// Sessions of a server.
pub(super) struct Sessions {
    local: LocalSessionManager,
    owned: Mutex<HashMap<SessionId, Owned>>,
    bounds: ArcSwap<Bounds>,
    slot_counts: SlotCounts,
}

/// Limits that can change while sessions exist.
struct Bounds {
    most: usize,
    idle: Duration,
}

/// Number of places of each share.
type SlotCounts = Arc<Mutex<HashMap<Share, usize>>>;

struct Owned {
    owner: Option<Identity>,
    /// Requests that use the session now.
    calls: usize,
    /// Open streams for notifications.
    streams: usize,
    last_used: Instant,
    session_slot: Option<SessionSlot>,
    /// Cancelled when nothing waits for the remaining calls.
    given_up: CancellationToken,
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.given_up.cancel();
    }
}

impl Owned {
    fn users(&mut self, purpose: Use) -> &mut usize {
        match purpose {
            Use::Call => &mut self.calls,
            Use::Stream => &mut self.streams,
        }
    }

    fn is_idle(&self) -> bool {
        self.calls == 0 && self.streams == 0
    }
}

/// A place for a session. Dropping it frees the place.
pub(super) struct SessionSlot {
    share: Share,
    slot_counts: SlotCounts,
    /// Cancelled when the token that started the session is no longer valid.
    revoked: Option<CancellationToken>,
}

impl SessionSlot {
    /// Sets the token with which the session ends.
    #[must_use]
    pub(super) fn until(mut self, revoked: Option<CancellationToken>) -> SessionSlot {
        self.revoked = revoked;
        self
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        let mut slot_counts = lock(&self.slot_counts);
        if let Some(count) = slot_counts.get_mut(&self.share) {
            *count -= 1;
            if *count == 0 {
                slot_counts.remove(&self.share);
            }
        }
    }
}

/// Use of a session by a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A call.
    Call,
    /// A stream of notifications, or the end of the session.
    Stream,
}

/// A session in use. Dropping it starts its idle time.
pub(super) struct InUse {
    id: SessionId,
    purpose: Use,
    sessions: Arc<Sessions>,
}

impl InUse {
    /// Cancelled when the session has ended or its client did not return.
    pub(super) fn given_up(&self) -> CancellationToken {
        let owned = self.sessions.owned();
        owned
            .get(&self.id)
            .map_or_else(CancellationToken::new, |owned| owned.given_up.clone())
    }

    /// Records that the answer was not sent completely, so its client may be gone.
    pub(super) fn broke_off(&self) {
        if self.purpose == Use::Call && tokio::runtime::Handle::try_current().is_ok() {
            let (sessions, id) = (Arc::clone(&self.sessions), self.id.clone());
            tokio::spawn(async move { sessions.await_comeback(&id, COMEBACK_TIMEOUT).await });
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(owned) = self.sessions.owned().get_mut(&self.id) {
            *owned.users(self.purpose) -= 1;
            owned.last_used = Instant::now();
        }
    }
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Sessions {
        let mut local = LocalSessionManager::default();
        // Idleness is decided here, where long calls are known.
        local.session_config.keep_alive = None;
        Sessions {
            local,
            owned: Mutex::default(),
            bounds: ArcSwap::from_pointee(Bounds { most, idle }),
            slot_counts: SlotCounts::default(),
        }
    }

    /// Sets the maximum number of sessions and their idle time. Existing sessions stay.
    pub(super) fn bound(&self, most: usize, idle: Duration) {
        self.bounds.store(Arc::new(Bounds { most, idle }));
    }

    /// Number of sessions.
    pub(super) fn count(&self) -> usize {
        self.owned().len()
    }

    /// Takes a place for one more session. If there is none, ends a session of the share that has the most, unless that
    /// share has hardly more than this one.
    pub(super) async fn session_slot(&self, share: &Share) -> Option<SessionSlot> {
        // Concurrent requests may take the freed place.
        for _ in 0..ATTEMPTS {
            let holder = match self.take(share) {
                Ok(session_slot) => return Some(session_slot),
                Err(holder) => holder?,
            };
            let id = self.dispensable(&holder)?;
            tracing::debug!(session = &*id, %holder, "a session ends to make room for another identity");
            if let Err(err) = self.close(&id).await {
                tracing::debug!(%err, "the session to end for another identity had already ended");
            }
        }
        None
    }

    /// Takes a place. The error is the share with the most places, if it has at least two more than this share.
    fn take(&self, share: &Share) -> Result<SessionSlot, Option<Share>> {
        let mut slot_counts = lock(&self.slot_counts);
        if slot_counts.values().sum::<usize>() >= self.bounds.load().most {
            let own = slot_counts.get(share).copied().unwrap_or_default();
            let most = slot_counts.iter().max_by_key(|(_, count)| **count);
            let holder = most.filter(|(_, count)| **count >= own + 2);
            return Err(holder.map(|(holder, _)| holder.clone()));
        }
        *slot_counts.entry(share.clone()).or_default() += 1;
        Ok(SessionSlot {
            share: share.clone(),
            slot_counts: Arc::clone(&self.slot_counts),
            revoked: None,
        })
    }

    /// Session of a share to end: the one that was idle for longest, or else one that only waits for notifications. A
    /// session with calls ends only if its share has more than an equal part of the places.
    fn dispensable(&self, holder: &Share) -> Option<SessionId> {
        let (count, shares) = {
            let slot_counts = lock(&self.slot_counts);
            (
                slot_counts.get(holder).copied().unwrap_or_default(),
                slot_counts.len() + 1,
            )
        };
        let has_more = count * shares > self.bounds.load().most;
        let owned = self.owned();
        let theirs = owned.iter().filter(|(_, owned)| {
            let session_slot = owned
                .session_slot
                .as_ref()
                .filter(|session_slot| session_slot.share == *holder);
            session_slot.is_some() && (owned.calls == 0 || has_more)
        });
        theirs
            .min_by_key(|(_, owned)| (owned.calls > 0, owned.streams > 0, owned.last_used))
            .map(|(id, _)| id.clone())
    }

    /// Runs a request with its sender as the current requester. `session_slot` is for the session that it may start.
    pub(super) async fn serving<T>(
        identity: Option<Identity>,
        session_slot: Option<SessionSlot>,
        request: impl Future<Output = T>,
    ) -> T {
        let session_slot = Mutex::new(session_slot);
        REQUEST
            .scope(
                Requester {
                    identity,
                    session_slot,
                },
                request,
            )
            .await
    }

    /// Marks a session as used, if it belongs to the sender.
    pub(super) fn use_by(
        self: &Arc<Self>,
        id: &str,
        identity: Option<&Identity>,
        purpose: Use,
    ) -> Option<InUse> {
        let id: SessionId = id.into();
        let mut map = self.owned();
        let owned = map
            .get_mut(&id)
            .filter(|owned| owned.owner.as_ref() == identity)?;
        *owned.users(purpose) += 1;
        Some(InUse {
            id,
            purpose,
            sessions: Arc::clone(self),
        })
    }

    /// Ends sessions that were idle for too long. Returns the time until the next may be due.
    pub(super) async fn end_idle(&self) -> Duration {
        let now = Instant::now();
        let longest = self.bounds.load().idle;
        let idle = |owned: &Owned| owned.is_idle() && now.duration_since(owned.last_used) >= longest;
        let ended: Vec<SessionId> = {
            let owned = self.owned();
            let ended = owned.iter().filter(|(_, owned)| idle(owned));
            ended.map(|(id, _)| id.clone()).collect()
        };
        for id in ended {
            tracing::debug!(session = &*id, "an idle session ends");
            if let Err(err) = self.close(&id).await {
                tracing::debug!(%err, "an idle session had already ended");
            }
        }
        (longest / 4).clamp(Duration::from_millis(100), Duration::from_secs(15))
    }

    /// Ends sessions whose token is no longer valid.
    pub(super) async fn end_revoked(&self) {
        let is_revoked = |owned: &Owned| {
            let revoked = owned
                .session_slot
                .as_ref()
                .and_then(|session_slot| session_slot.revoked.as_ref());
            revoked.is_some_and(CancellationToken::is_cancelled)
        };
        let ended: Vec<SessionId> = {
            let owned = self.owned();
            let ended = owned.iter().filter(|(_, owned)| is_revoked(owned));
            ended.map(|(id, _)| id.clone()).collect()
        };
        for id in ended {
            tracing::info!(
                session = &*id,
                "a session ends because its token was removed or has expired"
            );
            if let Err(err) = self.close(&id).await {
                tracing::debug!(%err, "a session whose token is no longer valid had already ended");
            }
        }
    }

    /// Cancels the calls of a session that stays unused for a time. The session itself stays.
    async fn await_comeback(&self, id: &SessionId, timeout: Duration) {
        tokio::time::sleep(timeout).await;
        if let Some(owned) = self.owned().get_mut(id)
            && owned.is_idle()
            && owned.last_used.elapsed() >= timeout
        {
            tracing::debug!(
                session = &**id,
                "no client returned to the session in time; its calls are cancelled"
            );
            std::mem::take(&mut owned.given_up).cancel();
        }
    }

    async fn close(&self, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        self.owned().remove(id);
        self.local.close_session(id).await
    }

    /// Returns whether a session exists for the sender.
    fn exists(&self, id: &SessionId) -> bool {
        self.owned().get(id).is_some_and(|owned| {
            REQUEST
                .try_with(|request| request.identity == owned.owner)
                .unwrap_or(true)
        })
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<SessionId, Owned>> {
        lock(&self.owned)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        let taken =
            REQUEST.try_with(|request| (request.identity.clone(), lock(&request.session_slot).take()));
        let (owner, session_slot) = taken.unwrap_or_default();
        let owned = Owned {
            owner,
            calls: 0,
            streams: 0,
            last_used: Instant::now(),
            session_slot,
            given_up: CancellationToken::new(),
        };
        self.owned().insert(id.clone(), owned);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.exists(id) && self.local.has_session(id).await?)
    }

    /// Ends a session. A session of another identity is treated as missing.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if !self.exists(id) {
            return Ok(());
        }
        self.close(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
