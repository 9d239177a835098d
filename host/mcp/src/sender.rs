//! Sender of a request over HTTP.

use std::net::IpAddr;

use tokio_util::sync::CancellationToken;
use tollgate_core::identity::Identity;
use tollgate_core::share::Share;

/// Sender of a request, attached to the request for the layers that handle it.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// Address that the request came from. For IPv6, the network.
    pub(crate) peer: Option<IpAddr>,
    /// Identity proven by a token.
    pub(crate) identity: Option<Identity>,
    /// Share of the server's resources that the sender uses.
    pub(crate) share: Share,
    /// Cancelled when nothing waits any longer for the session's calls.
    pub(crate) given_up: Option<CancellationToken>,
    /// Cancelled when the token is removed or expires.
    pub(crate) revoked: Option<CancellationToken>,
}
