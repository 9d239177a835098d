//! Fair shares of resources that all callers use: no caller who shares a resource can take the last unit.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::identity::Identity;

/// Holder of a share: an authenticated identity, or a peer's address without one. The default is the single caller
/// that has the process to itself, over stdio and at the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Share(Option<Arc<str>>);

impl Share {
    /// Share of the sender of a request.
    pub fn of(identity: Option<&Identity>, peer: Option<IpAddr>) -> Share {
        let name = match (identity, peer) {
            (Some(identity), _) => Some(identity.as_str().to_owned()),
            (None, Some(peer)) => Some(place(peer)),
            (None, None) => None,
        };
        Share(name.map(Arc::from))
    }

    /// True if this process has no other callers.
    pub fn is_alone(&self) -> bool {
        self.0.is_none()
    }

    /// Unique name of the share.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One name for all addresses that a single machine can choose freely: this machine's own, and those of an IPv6
/// network.
fn place(peer: IpAddr) -> String {
    match peer.to_canonical() {
        address if address.is_loopback() => "peer loopback".to_owned(),
        IpAddr::V4(address) => format!("peer {address}"),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("peer {a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// Units of a resource that shares hold, such as readers or bytes.
///
/// A share may hold at most as many units as are free. So a single share holds at most half, two shares at most a
/// third each, and there is room for the next share before any unit is given back.
#[derive(Debug)]
pub struct Holdings {
    free: u64,
    /// Most units that a caller holds who has the process to itself.
    alone: u64,
    held: HashMap<Share, u64>,
}

impl Holdings {
    /// Holdings of this many units, of which a caller without company may hold `alone`.
    pub fn new(units: u64, alone: u64) -> Holdings {
        Holdings {
            free: units,
            alone,
            held: HashMap::new(),
        }
    }

    /// Units that a share holds.
    pub fn held(&self, share: &Share) -> u64 {
        self.held.get(share).copied().unwrap_or_default()
    }

    /// True if no unit is held.
    pub fn is_unused(&self) -> bool {
        self.held.is_empty()
    }

    /// Units that a share may hold now.
    pub fn most(&self, share: &Share) -> u64 {
        if share.is_alone() { self.alone } else { self.free }
    }

    /// True if a share may take this many units.
    pub fn allows(&self, share: &Share, units: u64) -> bool {
        units <= self.free && self.held(share).saturating_add(units) <= self.most(share)
    }

    /// Takes units that were allowed.
    pub fn take(&mut self, share: &Share, units: u64) {
        self.free = self.free.saturating_sub(units);
        match self.held.get_mut(share) {
            Some(held) => *held += units,
            None => drop(self.held.insert(share.clone(), units)),
        }
    }

    /// Takes units back from a share.
    pub fn give_back(&mut self, share: &Share, units: u64) {
        let Some(held) = self.held.get_mut(share) else {
            return;
        };
        let units = units.min(*held);
        *held -= units;
        self.free += units;
        if *held == 0 {
            self.held.remove(share);
        }
    }

    /// Takes all units back.
    pub fn clear(&mut self) {
        self.free += self.held.drain().map(|(_, units)| units).sum::<u64>();
    }
}

impl Share {
    /// Share of a caller with this name, for tests.
    #[doc(hidden)]
    pub fn named(name: &str) -> Share {
        Share(Some(Arc::from(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> String {
        Share::of(None, Some(address.parse().unwrap())).to_string()
    }

    #[test]
    fn addresses_that_one_machine_can_choose_are_one_share() {
        assert_eq!(peer("127.0.0.1"), peer("127.9.9.9"));
        assert_eq!(peer("127.0.0.1"), peer("::1"));
        assert_eq!(peer("127.0.0.1"), peer("::ffff:127.0.0.1"));
        assert_eq!(peer("192.0.2.7"), peer("::ffff:192.0.2.7"));
        assert_ne!(peer("192.0.2.7"), peer("192.0.2.8"));
        assert_eq!(peer("2001:db8:1:2::3"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::3"), peer("2001:db8:1:3::3"));
        assert!(Share::default().is_alone());
    }

    #[test]
    fn nobody_takes_the_last_and_a_newcomer_finds_room() {
        let mut readers = Holdings::new(8, 8);
        let mut fill = |name: &str| {
            let share = Share::named(name);
            let mut taken = 0;
            while readers.allows(&share, 1) {
                readers.take(&share, 1);
                taken += 1;
            }
            taken
        };
        assert_eq!([fill("a"), fill("b"), fill("c")], [4, 2, 1]);
        readers.give_back(&Share::named("a"), 4);
        assert_eq!(readers.held(&Share::named("a")), 0);
        let alone = Share::default();
        let mut own = Holdings::new(8, 8);
        own.take(&alone, 7);
        assert!(own.allows(&alone, 1));
        own.clear();
        assert!(own.is_unused() && own.allows(&alone, 8) && !own.allows(&alone, 9));
    }
}
