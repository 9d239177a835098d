//! Sessions of clients that begin with `initialize`: each belongs to who began it, there are so many at
//! most, and one that nobody uses ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::Identity;

tokio::task_local! {
    /// The request that is being served. Outside of one, the host itself is at work.
    static REQUEST: Requester;
}

/// Who sends a request, and the place for a session that it may begin.
struct Requester {
    identity: Option<Identity>,
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The sessions of a server.
pub(super) struct Sessions {
    local: LocalSessionManager,
    owned: Mutex<HashMap<SessionId, Owned>>,
    places: Arc<Semaphore>,
    idle: Duration,
}

struct Owned {
    owner: Option<Identity>,
    /// Requests and streams that use it now.
    users: usize,
    last_used: Instant,
    _place: Option<OwnedSemaphorePermit>,
}

/// A session in use. Dropping it begins its idle time.
pub(super) struct InUse {
    id: SessionId,
    sessions: Arc<Sessions>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(owned) = self.sessions.owned().get_mut(&self.id) {
            owned.users -= 1;
            owned.last_used = Instant::now();
        }
    }
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Sessions {
        let mut local = LocalSessionManager::default();
        // What counts as idle is decided here, where calls that take long are known.
        local.session_config.keep_alive = None;
        Sessions {
            local,
            owned: Mutex::default(),
            places: Arc::new(Semaphore::new(most)),
            idle,
        }
    }

    /// A place for one more session, if there is one.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Serves a request as its sender's. `place` is for the session that it begins.
    pub(super) async fn serving<T>(
        identity: Option<Identity>,
        place: Option<OwnedSemaphorePermit>,
        request: impl Future<Output = T>,
    ) -> T {
        let place = Mutex::new(place);
        REQUEST.scope(Requester { identity, place }, request).await
    }

    /// Marks a session as used, if it is its sender's.
    pub(super) fn use_by(self: &Arc<Self>, id: &str, identity: Option<&Identity>) -> Option<InUse> {
        let id: SessionId = id.into();
        let mut map = self.owned();
        let owned = map
            .get_mut(&id)
            .filter(|owned| owned.owner.as_ref() == identity)?;
        owned.users += 1;
        Some(InUse {
            id,
            sessions: Arc::clone(self),
        })
    }

    /// Ends the sessions that nobody used for long. Returns when the next may be due.
    pub(super) async fn end_idle(&self) -> Duration {
        let now = Instant::now();
        let idle = |owned: &Owned| owned.users == 0 && now.duration_since(owned.last_used) >= self.idle;
        let ended: Vec<SessionId> = {
            let owned = self.owned();
            let ended = owned.iter().filter(|(_, owned)| idle(owned));
            ended.map(|(id, _)| id.clone()).collect()
        };
        for id in ended {
            tracing::debug!(session = &*id, "an idle session ends");
            if let Err(err) = self.close(&id).await {
                tracing::debug!(%err, "an idle session was over already");
            }
        }
        (self.idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(15))
    }

    async fn close(&self, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        self.owned().remove(id);
        self.local.close_session(id).await
    }

    /// Whether a session exists for who asks.
    fn exists(&self, id: &SessionId) -> bool {
        self.owned().get(id).is_some_and(|owned| {
            REQUEST
                .try_with(|request| request.identity == owned.owner)
                .unwrap_or(true)
        })
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<SessionId, Owned>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        let taken = REQUEST.try_with(|request| {
            let mut place = request.place.lock().unwrap_or_else(PoisonError::into_inner);
            (request.identity.clone(), place.take())
        });
        let (owner, place) = taken.unwrap_or_default();
        let owned = Owned {
            owner,
            users: 0,
            last_used: Instant::now(),
            _place: place,
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

    /// Ends a session. Somebody else's is as good as none.
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
