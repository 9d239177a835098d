//! Sender of a request over HTTP.

use std::net::IpAddr;

use tokio_util::sync::CancellationToken;
use tollgate_core::identity::Identity;
use tollgate_core::share::Share;

/// Sender of a request, as the request carries it to the layers that serve it.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// The address that it came from; of IPv6, the network.
    pub(crate) peer: Option<IpAddr>,
    /// Proven by a token.
    pub(crate) identity: Option<Identity>,
    /// With whom it shares.
    pub(crate) share: Share,
    /// Cancelled when nobody waits any more for what the session's requests began.
    pub(crate) given_up: Option<CancellationToken>,
    /// Cancelled when the token is removed or expires.
    pub(crate) revoked: Option<CancellationToken>,
}
