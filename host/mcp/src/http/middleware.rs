//! Admission of every request to `/mcp` before it is parsed as MCP: authentication, limits, and receipt of the body.
//! Limits are shared among identities, or among addresses without an identity.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::identity::Identity;
use tollgate_core::meter::{self, AdmissionMetrics, STATUSES};
use tollgate_core::scopes::{Calls, Scope};
use tollgate_core::share::Share;
use tollgate_gate::Gate;

use super::bodies::{Bodies, BodyReservation, Unread};
use super::caps::Caps;
use super::faults::Outline;
use super::limits::{Full, InFlight, Rate};
use super::pace::Pace;
use super::seats::{Seat, Work};
use super::sessions::{InUse, SessionSlot, Sessions, Use};
use super::{answer, faults, metadata, page};
use crate::auth::{Authenticator, Bearer, Refused};
use crate::sanitize;
use crate::sender::Sender;

/// Header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";
/// Timeout of the check that the writer responds.
const WRITER_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the tokens of running streams and sessions are checked for expiry. Requests are checked
/// individually.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between attempts to fetch an issuer's keys before the first token arrives.
const KEY_FETCH_INTERVAL: Duration = Duration::from_secs(31);

/// State of the admission.
pub(super) struct Admission {
    pub(super) authenticator: Authenticator,
    /// This server's address, as clients know it.
    pub(super) resource: String,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    caps: ArcSwap<Caps>,
    pub(super) sessions: Arc<Sessions>,
    gate: Arc<Gate>,
    in_flight: InFlight,
    /// Open streams for notifications.
    streams: InFlight,
    bodies: Bodies,
    pace: Pace,
    rate: ArcSwapOption<Rate>,
    /// True from the stop signal on, so that load balancers use other hosts.
    leaving: AtomicBool,
    /// True once no more requests are admitted.
    stopping: AtomicBool,
    /// Number of refusals, by status.
    refusals: [AtomicU64; STATUSES.len()],
    /// Requests whose responses have not been sent yet.
    unanswered: TaskTracker,
}

impl Admission {
    pub(super) fn new(
        authenticator: Authenticator,
        resource: String,
        hosts: Vec<String>,
        origins: Vec<String>,
        caps: Caps,
        gate: Arc<Gate>,
    ) -> Admission {
        Admission {
            authenticator,
            resource,
            hosts,
            origins,
            sessions: Arc::new(Sessions::new(caps.sessions, caps.idle_session)),
            gate,
            in_flight: InFlight::new(caps.in_flight, caps.in_flight_per_client),
            streams: InFlight::new(caps.connections, caps.sessions),
            bodies: Bodies::new(caps.body),
            pace: Pace::new(),
            rate: ArcSwapOption::new(caps.requests_per_sec.map(|limit| Arc::new(Rate::new(limit)))),
            leaving: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            refusals: Default::default(),
            unanswered: TaskTracker::new(),
            caps: ArcSwap::from_pointee(caps),
        }
    }

    /// Current limits.
    pub(super) fn caps(&self) -> Arc<Caps> {
        self.caps.load_full()
    }

    /// Sets new limits, except for those that are fixed for the server's lifetime.
    pub(super) fn bound(&self, caps: &Caps) {
        let now = self.caps();
        let next = now.with_live(caps);
        self.in_flight.bound(next.in_flight, next.in_flight_per_client);
        self.streams.bound(next.connections, next.sessions);
        self.sessions.bound(next.sessions, next.idle_session);
        if next.requests_per_sec != now.requests_per_sec {
            self.rate
                .store(next.requests_per_sec.map(|limit| Arc::new(Rate::new(limit))));
        }
        self.caps.store(Arc::new(next));
    }

    /// Checks that calls can be made. The error says why not.
    pub(super) async fn readiness(&self) -> Result<(), &'static str> {
        if let Some(issuer) = self.authenticator.issuer()
            && issuer.has_keys().await.is_err()
        {
            return Err("the issuer's keys cannot be fetched");
        }
        match tokio::time::timeout(WRITER_TIMEOUT, self.gate.is_working()).await {
            Ok(true) => Ok(()),
            _ => Err("the writer does not answer"),
        }
    }

    /// Metrics in Prometheus' text format, for a sender that may make calls.
    pub(super) async fn metrics(&self, headers: &HeaderMap) -> Result<String, Response> {
        self.identify(headers).await?;
        let vitals = self.gate.vitals().await;
        meter::prometheus(self.gate.figures(), vitals, self.figures()).map_err(|_| answer::metrics_failed())
    }

    fn figures(&self) -> AdmissionMetrics {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let counted = STATUSES.iter().zip(&self.refusals);
        AdmissionMetrics {
            sessions: count(self.sessions.count()),
            in_flight: count(self.in_flight.count()),
            streams: count(self.streams.count()),
            refusals: counted
                .map(|(status, refusals)| (*status, refusals.load(Ordering::Relaxed)))
                .collect(),
        }
    }

    /// Counts a response, if it is a refusal.
    pub(super) fn count(&self, status: StatusCode) {
        let place = STATUSES.iter().position(|known| *known == status.as_u16());
        if let Some(refusals) = place.and_then(|place| self.refusals.get(place)) {
            refusals.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Fetches the issuer's keys before the first token needs them.
    pub(super) async fn fetch_keys(&self) {
        let Some(issuer) = self.authenticator.issuer() else {
            return;
        };
        while let Err(err) = issuer.has_keys().await {
            tracing::warn!(
                err = format!("{:#}", anyhow::Error::from(err)),
                "the issuer's keys cannot be fetched yet"
            );
            tokio::time::sleep(KEY_FETCH_INTERVAL).await;
        }
    }

    /// Reports not ready from now on, but still admits requests.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Admits no more requests.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Waits until all admitted requests are answered.
    pub(super) async fn answered(&self) {
        self.unanswered.close();
        self.unanswered.wait().await;
        // Calls whose clients are gone.
        self.gate.answered().await;
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Authenticates the sender. The error response says what would help.
    async fn identify(&self, headers: &HeaderMap) -> Result<Option<Bearer>, Response> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let authorization = given.next().and_then(|value| value.to_str().ok());
        if given.next().is_some() {
            // A proxy in front may have checked the other header.
            let refused = Refused::Invalid("the request has two Authorization headers".to_owned());
            return Err(metadata::challenge(self, &refused));
        }
        self.authenticator
            .identify(authorization)
            .await
            .map_err(|refused| {
                tracing::debug!(%refused, "a request is not admitted");
                metadata::challenge(self, &refused)
            })
    }

    /// Checks that an identity may send MCP requests at all.
    fn may_call(&self, identity: Option<&Identity>) -> Result<(), Response> {
        match identity {
            Some(identity) if identity.rights().calls == Calls::None => Err(metadata::challenge(
                self,
                &Refused::Scope(Scope::Read.as_str().to_owned()),
            )),
            _ => Ok(()),
        }
    }

    /// Serves a request as long as its token is valid.
    async fn unless_revoked(
        &self,
        revoked: Option<&CancellationToken>,
        serving: impl Future<Output = Response>,
    ) -> Result<Response, Response> {
        let Some(revoked) = revoked else {
            return Ok(serving.await);
        };
        tokio::select! {
            response = serving => Ok(response),
            () = revoked.cancelled() => {
                Err(metadata::challenge(self, &Refused::Invalid("it was revoked".to_owned())))
            }
        }
    }

    /// Ends the sessions of tokens that are no longer valid, forever.
    pub(super) async fn end_revoked(&self) {
        let Some(keyring) = self.authenticator.keyring() else {
            return std::future::pending().await;
        };
        loop {
            tokio::select! {
                () = keyring.changed() => {}
                () = tokio::time::sleep(EXPIRY_INTERVAL) => {}
            }
            keyring.expire(SystemClock.now_ms());
            self.sessions.end_revoked().await;
        }
    }

    fn check_rate(&self, share: &Share) -> Result<(), Response> {
        match self.rate.load().as_deref() {
            Some(rate) if !rate.allows(share.as_str(), Instant::now()) => Err(answer::too_fast(rate.limit())),
            _ => Ok(()),
        }
    }

    /// Reads a body, within its sender's share of the memory for bodies.
    async fn body(&self, body: Body, share: &Share) -> Result<(Bytes, BodyReservation), Response> {
        let caps = self.caps();
        let limit = caps.body;
        if body.size_hint().lower() > limit as u64 {
            return Err(answer::too_large(limit));
        }
        let read = self.bodies.read(body, share);
        match tokio::time::timeout(caps.request, read).await {
            Err(_) => Err(answer::too_slow(caps.request)),
            Ok(Ok(body)) => Ok(body),
            Ok(Err(Unread::TooLarge)) => Err(answer::too_large(limit)),
            Ok(Err(Unread::NoRoom(most))) => Err(answer::too_many(
                StatusCode::TOO_MANY_REQUESTS,
                "TOO_MANY_BYTES",
                "bytes of requests that are being read",
                most,
            )),
            Ok(Err(Unread::BrokenOff)) => Err(answer::broken_off()),
        }
    }

    /// Reserves a place for the session that a message starts, if it starts one.
    async fn session_slot(
        &self,
        begins_session: bool,
        share: &Share,
    ) -> Result<Option<SessionSlot>, Response> {
        if !begins_session {
            return Ok(None);
        }
        let full = || {
            answer::too_many(
                StatusCode::SERVICE_UNAVAILABLE,
                "TOO_MANY_SESSIONS",
                "sessions",
                self.caps().sessions,
            )
        };
        self.sessions.session_slot(share).await.map(Some).ok_or_else(full)
    }

    fn full(&self, full: Full) -> Response {
        let (status, limit) = match full {
            Full::Server => (StatusCode::SERVICE_UNAVAILABLE, self.caps().in_flight),
            Full::Client => (StatusCode::TOO_MANY_REQUESTS, self.caps().in_flight_per_client),
            Full::Share(held) => (StatusCode::TOO_MANY_REQUESTS, held),
        };
        answer::too_many(status, "TOO_MANY_IN_FLIGHT", "requests in flight", limit)
    }

    fn too_many_streams(&self, full: Full) -> Response {
        let (status, limit) = match full {
            Full::Server => (StatusCode::SERVICE_UNAVAILABLE, self.caps().connections),
            Full::Client => (StatusCode::TOO_MANY_REQUESTS, self.caps().sessions),
            Full::Share(held) => (StatusCode::TOO_MANY_REQUESTS, held),
        };
        answer::too_many(status, "TOO_MANY_STREAMS", "streams", limit)
    }
}

/// Admits a request, or refuses it with the reason.
pub(super) async fn pass(State(admission): State<Arc<Admission>>, request: Request, next: Next) -> Response {
    admit(&admission, request, next)
        .await
        .unwrap_or_else(|refusal| refusal)
}

async fn admit(admission: &Arc<Admission>, request: Request, next: Next) -> Result<Response, Response> {
    if request.method() == Method::GET && page::is_wanted(request.headers()) {
        return Ok(page::show());
    }
    // Taken before the check, so that the shutdown sees either this request or its refusal.
    let unanswered = admission.unanswered.token();
    if admission.is_stopping() {
        return Err(answer::stopping());
    }
    let (mut parts, body) = request.into_parts();
    let bearer = admission.identify(&parts.headers).await?;
    let revoked = bearer.as_ref().and_then(|bearer| bearer.revoked.clone());
    let identity = bearer.map(|bearer| bearer.identity);
    admission.may_call(identity.as_ref())?;
    let seat = parts.extensions.get::<Arc<Seat>>().cloned();
    let share = Share::of(identity.as_ref(), seat.as_ref().map(|seat| seat.peer));
    admission.check_rate(&share)?;
    let purpose = if parts.method == Method::POST {
        Use::Call
    } else {
        Use::Stream
    };
    let named = parts
        .headers
        .get(SESSION_HEADER)
        .and_then(|value| value.to_str().ok());
    let session = named.and_then(|id| admission.sessions.use_by(id, identity.as_ref(), purpose));
    let busy = |work| seat.as_ref().map(|seat| seat.let_in(identity.as_ref(), work));
    parts.extensions.insert(Sender {
        peer: seat.as_ref().map(|seat| seat.peer),
        identity: identity.clone(),
        share: share.clone(),
        given_up: session.as_ref().map(InUse::given_up).or_else(|| revoked.clone()),
        revoked: revoked.clone(),
    });
    if parts.method != Method::POST {
        // The shutdown does not wait for streams of notifications.
        drop(unanswered);
        let slot = admission.streams.take(share.as_str());
        let slot = slot.map_err(|full| admission.too_many_streams(full))?;
        let busy = busy(Work::Stream);
        let method = parts.method.clone();
        let request = Request::from_parts(parts, body);
        let serving = Sessions::serving(identity, None, next.run(request));
        let response = admission.unless_revoked(revoked.as_ref(), serving).await?;
        let response = faults::in_json(response, &method, None).await;
        let kept = Kept {
            session,
            _rest: (slot, busy),
        };
        return Ok(held(response, kept, revoked));
    }
    let slot = admission
        .in_flight
        .take(share.as_str())
        .map_err(|full| admission.full(full))?;
    let pass = admission.pace.enter(&share).await;
    let (body, reservation) = admission.body(body, &share).await?;
    // Only a request that arrived completely keeps its connection's seat.
    let busy = busy(Work::Call);
    let body = sanitize::sanitize(&body).map_or(body, Bytes::from);
    let outline = Outline::of(&body).filter(|outline| !outline.has_odd_id());
    let outline = outline.ok_or_else(|| faults::unreadable(&body))?;
    // Headers that repeat arguments cannot be checked while a tool's schema is unknown. Params are therefore parsed
    // here, but only while packs are being prepared.
    if !admission.gate.catalog().preparing().packs.is_empty()
        && let Some(tool) = outline.tool()
        && !admission.gate.knows_of(&tool).await
    {
        return Err(answer::preparing(&tool));
    }
    let session_slot = admission.session_slot(outline.begins_session(), &share).await?;
    let session_slot = session_slot.map(|session_slot| session_slot.until(revoked.clone()));
    parts.headers.remove(header::CONTENT_LENGTH);
    let message = body.clone();
    let request = Request::from_parts(parts, Body::from(body));
    let serving = Sessions::serving(identity, session_slot, next.run(request));
    let response = admission.unless_revoked(revoked.as_ref(), serving).await?;
    let response = faults::in_json(response, &Method::POST, Some(&message)).await;
    drop(message);
    drop(reservation);
    let rest = (slot, pass, unanswered, busy);
    Ok(held(response, Kept { session, _rest: rest }, revoked))
}

/// Counts every refusal, whichever layer it comes from.
pub(super) async fn count(State(admission): State<Arc<Admission>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    admission.count(response.status());
    response
}

/// Resources that a response holds until it is sent or abandoned.
struct Kept<T> {
    session: Option<InUse>,
    _rest: T,
}

/// Response that holds a resource until it is sent or abandoned.
fn held<T: Send + Unpin + 'static>(
    response: Response,
    kept: Kept<T>,
    revoked: Option<CancellationToken>,
) -> Response {
    response.map(|body| {
        let is_whole = body.is_end_stream();
        let revoked = revoked.filter(|_| !is_whole);
        Body::new(Holding {
            body,
            is_whole,
            revoked: revoked.map(|revoked| Box::pin(revoked.cancelled_owned())),
            kept,
        })
    })
}

struct Holding<T> {
    body: Body,
    /// True once the whole response was passed on.
    is_whole: bool,
    /// Revocation of the request's token, which aborts the response.
    revoked: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    kept: Kept<T>,
}

impl<T> Drop for Holding<T> {
    fn drop(&mut self) {
        if let Some(session) = self.kept.session.as_ref().filter(|_| !self.is_whole) {
            session.broke_off();
        }
    }
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(revoked) = &mut self.revoked
            && revoked.as_mut().poll(cx).is_ready()
        {
            self.revoked = None;
            let gone = std::io::Error::other("the token of this request was removed or has expired");
            return Poll::Ready(Some(Err(axum::Error::new(gone))));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.is_whole = matches!(polled, Poll::Ready(None)) || self.body.is_end_stream();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
