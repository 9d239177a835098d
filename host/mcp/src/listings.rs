//! The listing of now, and word to those who want to hear when it changes.

use std::sync::Arc;

use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::listing::Listing;

/// Listings for clients, replaced when the configuration is loaded again.
pub struct Listings(watch::Sender<Arc<Listing>>);

impl Listings {
    /// The first.
    pub fn new(listing: Listing) -> Listings {
        Listings(watch::Sender::new(Arc::new(listing)))
    }

    /// The one of now.
    pub fn current(&self) -> Arc<Listing> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts another in its place and tells every connection that listens, if it is another.
    pub fn replace(&self, listing: Listing) {
        self.0.send_if_modified(|current| {
            let is_other = **current != listing;
            *current = Arc::new(listing);
            is_other
        });
    }

    /// Tells a client that was asked to listen at its start, until the guard that comes back is dropped.
    pub(super) fn tell(&self, peer: Peer<RoleServer>) -> DropGuard {
        let over = CancellationToken::new();
        let guard = over.clone().drop_guard();
        let mut changes = Changes::of(self);
        tokio::spawn(async move {
            while let Some(changed) = over.run_until_cancelled(changes.next()).await.flatten() {
                let told = async {
                    if changed.tools {
                        peer.notify_tool_list_changed().await?;
                    }
                    if changed.prompts {
                        peer.notify_prompt_list_changed().await?;
                    }
                    Ok::<(), rmcp::ServiceError>(())
                };
                if let Some(Err(err)) = over.run_until_cancelled(told).await {
                    tracing::debug!(%err, "a client was not told that the list changed");
                    return;
                }
            }
        });
        guard
    }

    /// Tells a client that subscribed, until it has enough.
    pub(super) async fn tell_subscriber(&self, subscription: &SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = Changes::of(self);
        let sink = subscription.sink();
        loop {
            let changed = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.next() => changed,
            };
            let Some(changed) = changed else { return Ok(()) };
            let accepted = subscription.accepted();
            // One that cannot be told is gone, or will be cancelled in a moment.
            if changed.tools && accepted.tools_list_changed == Some(true) {
                let _ = sink.notify_tool_list_changed().await;
            }
            if changed.prompts && accepted.prompts_list_changed == Some(true) {
                let _ = sink.notify_prompt_list_changed().await;
            }
        }
    }
}

/// The changes since somebody began to listen.
struct Changes {
    receiver: watch::Receiver<Arc<Listing>>,
    seen: Arc<Listing>,
}

struct Changed {
    tools: bool,
    prompts: bool,
}

impl Changes {
    fn of(listings: &Listings) -> Changes {
        let mut receiver = listings.0.subscribe();
        let seen = Arc::clone(&receiver.borrow_and_update());
        Changes { receiver, seen }
    }

    /// The next change, `None` once there will be no more.
    async fn next(&mut self) -> Option<Changed> {
        self.receiver.changed().await.ok()?;
        let now = Arc::clone(&self.receiver.borrow_and_update());
        let before = std::mem::replace(&mut self.seen, Arc::clone(&now));
        Some(Changed {
            tools: before.tools() != now.tools(),
            prompts: before.prompts() != now.prompts(),
        })
    }
}
