//! Notifications about resources that may have changed, for clients that subscribed to them.
//!
//! A resource is the reply of a reading tool. Any successful call of its pack that writes or runs may have changed it.
//! Any successful call may have changed a resource of the host. Changes by other hosts are noticed only if the
//! database is on a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};
use tollgate_gate::Gate;
use tollgate_gate::core_tools::PACK as CORE;

use super::resources;

/// Maximum number of addresses of one client.
pub(super) const MAX_ADDRESSES: usize = 100;
/// Time to wait for further changes before a client is notified.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(250);

/// Subscriptions of a session, and their notifier.
#[derive(Default)]
pub(super) struct Subscriptions {
    addresses: Arc<Addresses>,
    telling: Mutex<Option<DropGuard>>,
}

/// Addresses, each with the pack that it belongs to.
#[derive(Default)]
struct Addresses(Mutex<BTreeMap<String, String>>);

impl Addresses {
    fn map(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, by: &Writers) -> Vec<String> {
        let map = self.map();
        let changed = map.iter().filter(|(_, owner)| by.touch(owner));
        changed.map(|(address, _)| address.clone()).collect()
    }
}

impl Subscriptions {
    /// Adds an address. The first address starts the notifier.
    pub(super) fn add(&self, gate: &Gate, peer: Peer<RoleServer>, address: String) -> Result<(), ErrorData> {
        let Some(owner) = owner(gate, &address) else {
            return Err(resources::nothing_at(&address));
        };
        let mut map = self.addresses.map();
        if map.len() >= MAX_ADDRESSES && !map.contains_key(&address) {
            let why = format!("a session subscribes to at most {MAX_ADDRESSES} resources");
            return Err(ErrorData::invalid_params(why, None));
        }
        map.insert(address, owner);
        drop(map);
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        telling.get_or_insert_with(|| {
            let over = CancellationToken::new();
            let addresses = Arc::clone(&self.addresses);
            let told = tell_session(gate.changes(), addresses, peer);
            tokio::spawn(over.clone().run_until_cancelled_owned(told));
            over.drop_guard()
        });
        Ok(())
    }

    /// Removes an address.
    pub(super) fn remove(&self, address: &str) {
        self.addresses.map().remove(address);
    }
}

/// Pack that a resource belongs to, if the address has a resource.
pub(super) fn owner(gate: &Gate, address: &str) -> Option<String> {
    let catalog = gate.catalog();
    let mut resources = catalog.resources().iter();
    let resource = resources.find(|resource| resource.arguments(address).is_some())?;
    Some(resource.pack.clone())
}

/// Notifies a client of the newer era about changes of the resources that it subscribed to. Ends with the subscription.
pub(super) async fn tell(gate: &Gate, subscription: &SubscriptionContext) {
    let addresses = subscription.accepted().resource_subscriptions.iter().flatten();
    let owned = addresses.filter_map(|address| Some((address.clone(), owner(gate, address)?)));
    let addresses = Addresses(Mutex::new(owned.collect()));
    if addresses.map().is_empty() {
        return std::future::pending().await;
    }
    let mut changes = gate.changes();
    while let Some(writers) = next(&mut changes).await {
        for address in addresses.changed(&writers) {
            // If a notification fails, the client is gone or is about to be cancelled.
            let _ = subscription.sink().notify_resource_updated(address).await;
        }
    }
}

async fn tell_session(mut changes: Receiver<Arc<str>>, addresses: Arc<Addresses>, peer: Peer<RoleServer>) {
    while let Some(writers) = next(&mut changes).await {
        for address in addresses.changed(&writers) {
            let word = ResourceUpdatedNotificationParam::new(address);
            if let Err(err) = peer.notify_resource_updated(word).await {
                tracing::debug!(%err, "notifying a client of a changed resource failed");
                return;
            }
        }
    }
}

/// Packs that wrote, as far as known.
#[derive(Debug, PartialEq, Eq)]
enum Writers {
    These(BTreeSet<Arc<str>>),
    /// Too many changes were missed, so any pack may have written.
    Anybody,
}

impl Writers {
    fn touch(&self, owner: &str) -> bool {
        match self {
            Writers::These(packs) => owner == CORE || packs.contains(owner),
            Writers::Anybody => true,
        }
    }
}

/// Next packs that changed something, including those that followed immediately. `None` if there will be no more.
async fn next(changes: &mut Receiver<Arc<str>>) -> Option<Writers> {
    let first = changes.recv().await;
    if matches!(first, Err(RecvError::Closed)) {
        return None;
    }
    tokio::time::sleep(NOTIFY_INTERVAL).await;
    let Ok(first) = first else {
        *changes = changes.resubscribe();
        return Some(Writers::Anybody);
    };
    let mut packs = BTreeSet::from([first]);
    loop {
        match changes.try_recv() {
            Ok(pack) => drop(packs.insert(pack)),
            Err(tokio::sync::broadcast::error::TryRecvError::Lagged(_)) => {
                *changes = changes.resubscribe();
                return Some(Writers::Anybody);
            }
            Err(_) => return Some(Writers::These(packs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    #[tokio::test]
    async fn writers_are_told_together_and_none_is_missed() {
        let (sender, mut changes) = broadcast::channel(4);
        for pack in ["tasks", "gsd", "tasks"] {
            sender.send(Arc::from(pack)).unwrap();
        }
        let writers = next(&mut changes).await.unwrap();
        assert!(writers.touch("tasks") && writers.touch("gsd") && writers.touch(CORE));
        assert!(!writers.touch("conductor"));
        for _ in 0..9 {
            sender.send(Arc::from("tasks")).unwrap();
        }
        assert_eq!(next(&mut changes).await, Some(Writers::Anybody));
        drop(sender);
        assert_eq!(next(&mut changes).await, None);
    }
}
