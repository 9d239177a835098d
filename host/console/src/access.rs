//! Access to the pages: browser sessions with a cookie, and bearers of tokens.
//!
//! The owner of the data directory logs in with a one-time token. On a server that requires tokens, the identities
//! named in the configuration log in with theirs. Their sessions end with the tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tollgate_core::clock::Clock;
use tollgate_core::hash::{hex, sha256_hex};
use tollgate_core::identity::Identity;
use tollgate_store::consoles::Consoles;

/// Lifetime of a session.
pub(crate) const SESSION_MS: i64 = 8 * 3_600_000;
/// Maximum number of sessions. A new one replaces the oldest.
const MAX_SESSIONS: usize = 256;
/// Longest token that is checked, in bytes.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// Authenticates a token. `None` if the token is not valid.
pub type Prove = Arc<dyn Fn(String) -> BoxFuture<'static, Option<Proven>> + Send + Sync>;
/// A proven identity, a token that is cancelled on revocation, and the expiry time.
pub type Proven = (Identity, Option<CancellationToken>, Option<i64>);

/// The `[server.console]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsoleSettings {
    /// True if a server over HTTP serves the console.
    pub enabled: bool,
    /// Identities that may view everything.
    pub viewers: Vec<String>,
    /// Identities that may view everything and answer requests for approval.
    pub approvers: Vec<String>,
}

/// A person or program with access to the console.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    /// The identity; `None` for the owner of the data directory.
    pub(crate) identity: Option<Identity>,
    /// True if the viewer may answer requests for approval.
    pub(crate) approves: bool,
    /// Hash of the session's cookie. `None` for the bearer of a token.
    pub(crate) session: Option<String>,
    /// Cancelled when the session ends or the token is revoked.
    pub(crate) ends: Vec<CancellationToken>,
    /// Expiry time of the token.
    pub(crate) until_ms: Option<i64>,
}

impl Viewer {
    /// Name for the page.
    pub(crate) fn name(&self) -> &str {
        self.identity.as_ref().map_or("owner", Identity::as_str)
    }
}

/// Reason why a login is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The token is invalid, used or expired.
    Unknown,
    /// The identity is known but has no access.
    NotAViewer,
}

struct Session {
    identity: Option<Identity>,
    revoked: Option<CancellationToken>,
    /// Expiry time of the session's token.
    until_ms: Option<i64>,
    /// Cancelled if the session ends early.
    ended: DropGuard,
    began_ms: i64,
}

/// Access of all viewers.
pub(crate) struct Access {
    settings: watch::Receiver<ConsoleSettings>,
    consoles: Consoles,
    prove: Option<Prove>,
    clock: Arc<dyn Clock>,
    /// Sessions by the hash of their cookie.
    sessions: Mutex<HashMap<String, Session>>,
    /// Key for the tokens of forms.
    key: [u8; 64],
}

impl Access {
    /// Creates the access to one console. `prove` is `None` on a server without authentication.
    pub(crate) fn new(
        settings: watch::Receiver<ConsoleSettings>,
        consoles: Consoles,
        prove: Option<Prove>,
        clock: Arc<dyn Clock>,
    ) -> Result<Access, getrandom::Error> {
        Ok(Access {
            settings,
            consoles,
            prove,
            clock,
            sessions: Mutex::default(),
            key: fresh()?,
        })
    }

    /// Returns whether identities can log in with their tokens as well.
    pub(crate) fn knows_identities(&self) -> bool {
        self.prove.is_some()
    }

    /// Logs in with a one-time token or an identity's own token, and returns the value of the session's cookie. The
    /// value is valid only under this cookie name.
    pub(crate) async fn log_in(&self, token: &str, name: &str) -> Result<String, Refused> {
        let token = token.trim();
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
            return Err(Refused::Unknown);
        }
        let now_ms = self.clock.now_ms();
        let (identity, revoked, until_ms) = if self.consoles.take_login(token, now_ms) {
            (None, None, None)
        } else {
            let (identity, revoked, until_ms) = self.prove(token).await.ok_or(Refused::Unknown)?;
            if !self.may_look(&identity) {
                return Err(Refused::NotAViewer);
            }
            (Some(identity), revoked, until_ms)
        };
        let secret: [u8; 32] = fresh().map_err(|_| Refused::Unknown)?;
        let cookie = BASE64_URL_SAFE_NO_PAD.encode(secret);
        let session = Session {
            identity,
            revoked,
            until_ms,
            ended: CancellationToken::new().drop_guard(),
            began_ms: self.clock.boot_ms(),
        };
        let mut sessions = self.sessions();
        sessions.retain(|_, session| session.is_on(self.clock.boot_ms(), now_ms));
        make_room(&mut sessions);
        let hash = hash_of(name, &cookie);
        // Sessions of the owner outlive this process, as the data directory does. Those of identities end with it,
        // because otherwise a revocation of their tokens would be missed.
        if session.identity.is_none()
            && let Err(err) = self.consoles.keep_session(&hash, now_ms + SESSION_MS)
        {
            tracing::warn!(%err, "a session of the console ends with this process");
        }
        sessions.insert(hash, session);
        Ok(cookie)
    }

    /// Viewer of a session, by its cookie.
    pub(crate) fn by_cookie(&self, name: &str, cookie: &str) -> Option<Viewer> {
        let hash = hash_of(name, cookie);
        let (boot_ms, now_ms) = (self.clock.boot_ms(), self.clock.now_ms());
        let mut sessions = self.sessions();
        if let Some(kept) = self.kept(&hash).filter(|_| !sessions.contains_key(&hash)) {
            sessions.insert(hash.clone(), kept);
        }
        let session = sessions.get(&hash)?;
        let identity = session.identity.as_ref();
        // Identities that are no longer in the configuration lose access immediately.
        if !session.is_on(boot_ms, now_ms) || identity.is_some_and(|identity| !self.may_look(identity)) {
            sessions.remove(&hash);
            self.consoles.forget_session(&hash);
            return None;
        }
        Some(Viewer {
            approves: identity.is_none_or(|identity| self.may_approve(identity)),
            identity: session.identity.clone(),
            ends: session.ends(),
            until_ms: session.until_ms,
            session: Some(hash),
        })
    }

    /// Session of the owner that was created before this process started.
    fn kept(&self, hash: &str) -> Option<Session> {
        let left_ms = self.consoles.session_ends_at(hash)? - self.clock.now_ms();
        if !(1..=SESSION_MS).contains(&left_ms) {
            self.consoles.forget_session(hash);
            return None;
        }
        Some(Session {
            identity: None,
            revoked: None,
            until_ms: None,
            ended: CancellationToken::new().drop_guard(),
            began_ms: self.clock.boot_ms() - (SESSION_MS - left_ms),
        })
    }

    /// Viewer with a bearer token, for scripts. One-time tokens are not accepted here.
    pub(crate) async fn by_token(&self, token: &str) -> Result<Viewer, Refused> {
        let (identity, revoked, until_ms) = self.prove(token).await.ok_or(Refused::Unknown)?;
        if !self.may_look(&identity) {
            return Err(Refused::NotAViewer);
        }
        Ok(Viewer {
            approves: self.may_approve(&identity),
            identity: Some(identity),
            session: None,
            ends: revoked.into_iter().collect(),
            until_ms,
        })
    }

    /// Ends a session.
    pub(crate) fn log_out(&self, viewer: &Viewer) {
        if let Some(hash) = &viewer.session {
            self.consoles.forget_session(hash);
            self.sessions().remove(hash);
        }
    }

    /// Token of a session's form, which no other page can know.
    pub(crate) fn form_token(&self, viewer: &Viewer, form: &str) -> String {
        hex(&self.seal(viewer, form).finalize().into_bytes())
    }

    /// Returns whether a form carries its token.
    pub(crate) fn is_form_token(&self, viewer: &Viewer, form: &str, token: &str) -> bool {
        let right = self.form_token(viewer, form);
        right.as_bytes().ct_eq(token.as_bytes()).into()
    }

    fn seal(&self, viewer: &Viewer, form: &str) -> Hmac<Sha256> {
        let mut seal = Hmac::<Sha256>::new(&self.key.into());
        seal.update(viewer.session.as_deref().unwrap_or_default().as_bytes());
        seal.update(b"\0");
        seal.update(form.as_bytes());
        seal
    }

    async fn prove(&self, token: &str) -> Option<Proven> {
        match &self.prove {
            Some(prove) => prove(token.to_owned()).await,
            None => None,
        }
    }

    fn may_look(&self, identity: &Identity) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == identity.as_str());
        let settings = self.settings.borrow();
        is_named(&settings.viewers) || is_named(&settings.approvers) || identity.rights().sees_all
    }

    fn may_approve(&self, identity: &Identity) -> bool {
        let settings = self.settings.borrow();
        settings.approvers.iter().any(|name| name == identity.as_str())
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn ends(&self) -> Vec<CancellationToken> {
        let own = std::iter::once(self.ended.token().clone());
        own.chain(self.revoked.clone()).collect()
    }

    fn is_on(&self, boot_ms: i64, now_ms: i64) -> bool {
        boot_ms.saturating_sub(self.began_ms) < SESSION_MS
            && self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
            && !self.revoked.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

/// Hash that identifies a session, made from the cookie and the cookie's name.
fn hash_of(name: &str, cookie: &str) -> String {
    sha256_hex(format!("{name}={cookie}").as_bytes())
}

/// Ends the oldest session if there is no room for another.
fn make_room(sessions: &mut HashMap<String, Session>) {
    if sessions.len() >= MAX_SESSIONS {
        let oldest = sessions.iter().min_by_key(|(_, session)| session.began_ms);
        if let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) {
            sessions.remove(&oldest);
        }
    }
}

fn fresh<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut secret = [0; N];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}
