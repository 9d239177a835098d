//! Current listing, and notifications to clients when it changes.

use std::sync::Arc;

use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::listing::Listing;

/// Listings for clients. A configuration reload replaces them.
pub struct Listings(watch::Sender<Arc<Listing>>);

impl Listings {
    /// Starts with the first listing.
    pub fn new(listing: Listing) -> Listings {
        Listings(watch::Sender::new(Arc::new(listing)))
    }

    /// Current listing.
    pub fn current(&self) -> Arc<Listing> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces the listing. If the new one differs, notifies every connection that listens.
    pub fn replace(&self, listing: Listing) {
        self.0.send_if_modified(|current| {
            let is_other = **current != listing;
            *current = Arc::new(listing);
            is_other
        });
    }

    /// Notifies a client of changes until the returned guard is dropped. For clients that listen from their start on.
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
                    tracing::debug!(%err, "notifying a client of a changed list failed");
                    return;
                }
            }
        });
        guard
    }

    /// Notifies a subscribed client of changes until the subscription ends.
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
            // If a notification fails, the client is gone or is about to be cancelled.
            if changed.tools && accepted.tools_list_changed == Some(true) {
                let _ = sink.notify_tool_list_changed().await;
            }
            if changed.prompts && accepted.prompts_list_changed == Some(true) {
                let _ = sink.notify_prompt_list_changed().await;
            }
        }
    }
}

/// Changes since the start of listening.
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

    /// Next change, or `None` if there will be no more.
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
