//! Seats for connections, limited in total and per peer. When all are taken, a new connection gets the seat of one that
//! is unauthenticated or idle. Holding connections open therefore cannot lock others out.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tollgate_core::identity::Identity;

use super::caps::Caps;

/// Minimum time that a connection stays open after an answer, on a server without authentication.
const KEEP_OPEN_INTERVAL: Duration = Duration::from_secs(5);
/// Time without a request after which a connection is idle. Before that, its client may be about to send the next
/// request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time after which an identity's only connection is idle. It is closed only if no identity has two.
const ONLY_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Connections of a server.
#[derive(Debug)]
pub(super) struct Seats {
    most: usize,
    /// Limit per peer. `None` means no limit but `most` on loopback, because a proxy is one peer.
    most_of_peer: Option<usize>,
    /// True if the server does not authenticate.
    is_open: bool,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    last: u64,
    seats: HashMap<u64, Arc<Seat>>,
    of_peer: HashMap<IpAddr, usize>,
}

/// Seat of one connection.
#[derive(Debug)]
pub(super) struct Seat {
    /// Address of the peer. For IPv6, the network that one customer has.
    pub(super) peer: IpAddr,
    /// Address that the connection arrived at.
    pub(super) local: IpAddr,
    opened: Instant,
    state: Mutex<State>,
    /// Cancelled when the seat is given to another connection.
    pub(super) given_up: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// Proven sender of the last request.
    owner: Option<Identity>,
    is_answered: bool,
    /// Admitted requests that have not been answered yet.
    calls: usize,
    /// Open streams for notifications.
    streams: usize,
    /// Time at which the last request or stream ended.
    idle_since: Instant,
    /// Time since which the peer has read nothing of the waiting data.
    stalled_since: Option<Instant>,
}

/// Work that keeps a connection busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A request that needs an answer.
    Call,
    /// A long-lived stream.
    Stream,
}

/// Marks a connection as busy until dropped.
#[derive(Debug)]
pub(super) struct Busy {
    seat: Arc<Seat>,
    work: Work,
}

/// A taken seat. Dropping it frees the seat.
#[derive(Debug)]
pub(super) struct TakenSeat {
    number: u64,
    seat: Arc<Seat>,
    seats: Arc<Seats>,
}

/// Order in which connections are closed for others. First by class; within a class, the owner with the most
/// connections; then connections that were idle for a while; then the oldest.
type Rank = (u8, Reverse<usize>, bool, Instant);

impl Seats {
    pub(super) fn new(caps: &Caps, is_open: bool) -> Arc<Seats> {
        Arc::new(Seats {
            most: caps.connections,
            most_of_peer: caps.connections_per_peer,
            is_open,
            taken: Mutex::default(),
        })
    }

    /// Takes a seat for a connection, closing another one if necessary. The error is the current number of connections.
    pub(super) fn take(self: &Arc<Self>, peer: SocketAddr, local: IpAddr) -> Result<TakenSeat, usize> {
        let now = Instant::now();
        let peer = network(peer.ip());
        let most_of_peer = self.most_of(peer);
        let mut taken = lock(&self.taken);
        if taken.of_peer.get(&peer).copied().unwrap_or_default() >= most_of_peer {
            let given_up = self.give_up(&mut taken, now, Some(peer));
            given_up.ok_or(most_of_peer)?;
        } else if taken.seats.len() >= self.most {
            self.give_up(&mut taken, now, None).ok_or(self.most)?;
        }
        let seat = Arc::new(Seat::new(peer, local, now));
        taken.last += 1;
        let number = taken.last;
        taken.seats.insert(number, Arc::clone(&seat));
        *taken.of_peer.entry(peer).or_default() += 1;
        Ok(TakenSeat {
            number,
            seat,
            seats: Arc::clone(self),
        })
    }

    fn most_of(&self, peer: IpAddr) -> usize {
        match self.most_of_peer {
            Some(most) => most.min(self.most),
            None if peer.is_loopback() => self.most,
            None => (self.most / 2).max(1),
        }
    }

    /// Closes the connection with the lowest claim to its seat, if any may be closed.
    fn give_up(&self, taken: &mut Taken, now: Instant, of: Option<IpAddr>) -> Option<()> {
        let mut owned: HashMap<Option<Identity>, usize> = HashMap::new();
        for seat in taken.seats.values() {
            *owned.entry(lock(&seat.state).owner.clone()).or_default() += 1;
        }
        let known = owned.iter().filter(|(owner, _)| owner.is_some());
        let most = known.map(|(_, count)| *count).max().unwrap_or_default();
        let ranked = taken
            .seats
            .iter()
            .filter(|(_, seat)| of.is_none_or(|peer| seat.peer == peer));
        let ranked = ranked.filter_map(|(number, seat)| {
            let state = lock(&seat.state);
            let count = owned.get(&state.owner).copied().unwrap_or_default();
            Some((self.rank(&state, seat.opened, (count, most), now)?, *number))
        });
        let (_, number) = ranked.min()?;
        let seat = taken.seats.get(&number)?;
        tracing::debug!(peer = %seat.peer, "closing a connection to free its slot for others");
        seat.given_up.cancel();
        taken.remove(number);
        Some(())
    }

    /// Rank of a connection. `None` if it must not be closed for others. `count` is the number of connections of its
    /// owner, `most` the largest number of any owner.
    fn rank(
        &self,
        state: &State,
        opened: Instant,
        (count, most): (usize, usize),
        now: Instant,
    ) -> Option<Rank> {
        let since = |time: Instant| now.saturating_duration_since(time);
        let is_stalled = state
            .stalled_since
            .is_some_and(|time| since(time) >= IDLE_TIMEOUT);
        let is_known = state.owner.is_some();
        let is_idle = state.calls == 0 && state.streams == 0;
        if !is_known && is_stalled {
            return Some((0, Reverse(0), false, opened));
        }
        if !is_known && is_idle {
            let may_stay = self.is_open && state.is_answered;
            let rank = (u8::from(may_stay), Reverse(0), false, opened);
            return (!may_stay || since(opened) >= KEEP_OPEN_INTERVAL).then_some(rank);
        }
        // An owner of more than half of the seats has no claim to keep idle connections or streams.
        let has_too_many = count > self.most / 2 && (count > 1 || !is_known);
        if is_idle {
            let is_only = is_known && count == 1;
            let patience = if is_only { ONLY_IDLE_TIMEOUT } else { IDLE_TIMEOUT };
            let is_long = since(state.idle_since) >= patience;
            let may_go = (is_long && !(is_only && most > 1)) || has_too_many;
            return may_go.then_some((2, Reverse(count), !is_long, state.idle_since));
        }
        (state.calls == 0 && has_too_many).then_some((3, Reverse(count), false, opened))
    }
}

impl Taken {
    fn remove(&mut self, number: u64) {
        let Some(seat) = self.seats.remove(&number) else {
            return;
        };
        if let Some(count) = self.of_peer.get_mut(&seat.peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peer.remove(&seat.peer);
            }
        }
    }
}

impl TakenSeat {
    /// Seat of the connection.
    pub(super) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }
}

impl Drop for TakenSeat {
    fn drop(&mut self) {
        lock(&self.seats.taken).remove(self.number);
    }
}

impl Seat {
    fn new(peer: IpAddr, local: IpAddr, now: Instant) -> Seat {
        let state = State {
            owner: None,
            is_answered: false,
            calls: 0,
            streams: 0,
            idle_since: now,
            stalled_since: None,
        };
        Seat {
            peer,
            local,
            opened: now,
            state: Mutex::new(state),
            given_up: CancellationToken::new(),
        }
    }

    /// Records the sender of an admitted request, and keeps the seat until the work ends.
    pub(super) fn let_in(self: &Arc<Self>, owner: Option<&Identity>, work: Work) -> Busy {
        let mut state = lock(&self.state);
        if state.owner.as_ref() != owner {
            state.owner = owner.cloned();
        }
        *state.count(work) += 1;
        Busy {
            seat: Arc::clone(self),
            work,
        }
    }

    /// Records that a request was answered, whatever the answer.
    pub(super) fn answered(&self) {
        lock(&self.state).is_answered = true;
    }

    /// Records whether the peer fails to read what is written to it.
    pub(super) fn stalled(&self, is_stalled: bool) {
        let mut state = lock(&self.state);
        state.stalled_since = is_stalled.then(|| state.stalled_since.unwrap_or_else(Instant::now));
    }
}

impl State {
    fn count(&mut self, work: Work) -> &mut usize {
        match work {
            Work::Call => &mut self.calls,
            Work::Stream => &mut self.streams,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = lock(&self.seat.state);
        *state.count(self.work) -= 1;
        state.idle_since = Instant::now();
    }
}

/// Network of a peer: an IPv4 address, or an IPv6 network, because a peer can change its address within the network.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn seats(most: usize, is_open: bool) -> Arc<Seats> {
        let caps = Caps {
            connections: most,
            ..Caps::default()
        };
        Seats::new(&caps, is_open)
    }

    fn take(seats: &Arc<Seats>, peer: &str) -> Result<TakenSeat, usize> {
        seats.take(SocketAddr::new(peer.parse().unwrap(), 1), LOCAL)
    }

    fn is_gone(taken_seat: &TakenSeat) -> bool {
        taken_seat.seat.given_up.is_cancelled()
    }

    fn ada() -> Identity {
        Identity::for_tests("ada")
    }

    #[test]
    fn the_oldest_that_has_not_said_who_it_is_makes_room() {
        let seats = seats(3, false);
        let known = take(&seats, "127.0.0.1").unwrap();
        let _call = known.seat.let_in(Some(&ada()), Work::Call);
        let silent = take(&seats, "127.0.0.1").unwrap();
        let asking = take(&seats, "127.0.0.1").unwrap();
        asking.seat.answered();
        let newer = take(&seats, "127.0.0.1").unwrap();
        assert_eq!(
            [is_gone(&known), is_gone(&silent), is_gone(&asking)],
            [false, true, false]
        );
        let newest = take(&seats, "127.0.0.1").unwrap();
        assert!(is_gone(&asking) && !is_gone(&newer));
        // A closed connection must not free its seat a second time.
        drop((silent, asking));
        assert_eq!(lock(&seats.taken).seats.len(), 3);
        drop((known, newer, newest));
        assert!(lock(&seats.taken).seats.is_empty() && lock(&seats.taken).of_peer.is_empty());
    }

    #[test]
    fn who_is_at_work_keeps_the_place_and_who_is_idle_loses_it_last() {
        let seats = seats(2, false);
        let one = take(&seats, "127.0.0.1").unwrap();
        let call = one.seat.let_in(Some(&ada()), Work::Call);
        let other = take(&seats, "127.0.0.1").unwrap();
        let _other = other.seat.let_in(Some(&Identity::for_tests("bob")), Work::Stream);
        assert_eq!(take(&seats, "127.0.0.1").unwrap_err(), 2);
        drop(call);
        // The connections were busy just now, so their next requests may be on the way.
        assert_eq!(take(&seats, "127.0.0.1").unwrap_err(), 2);
        idle(&one, IDLE_TIMEOUT);
        assert_eq!(
            take(&seats, "127.0.0.1").unwrap_err(),
            2,
            "it is the only one of hers"
        );
        idle(&one, ONLY_IDLE_TIMEOUT);
        take(&seats, "127.0.0.1").unwrap();
        assert!(is_gone(&one) && !is_gone(&other));
    }

    /// Makes a connection idle for a time.
    fn idle(taken_seat: &TakenSeat, time: Duration) {
        lock(&taken_seat.seat.state).idle_since = Instant::now().checked_sub(time).unwrap();
    }

    #[test]
    fn whoever_holds_the_most_gives_up_an_idle_one_and_nobody_the_only_one() {
        let seats = seats(6, false);
        let held = |name: &str, time: Duration| {
            let taken_seat = take(&seats, "127.0.0.1").unwrap();
            drop(
                taken_seat
                    .seat
                    .let_in(Some(&Identity::for_tests(name)), Work::Call),
            );
            idle(&taken_seat, time);
            taken_seat
        };
        // Ada's connections are the youngest, and Bob's only one is the oldest of all.
        let bob = held("bob", 10 * ONLY_IDLE_TIMEOUT);
        let carol = [
            held("carol", 9 * ONLY_IDLE_TIMEOUT),
            held("carol", 8 * ONLY_IDLE_TIMEOUT),
        ];
        let hers: Vec<TakenSeat> = (2..5).map(|number| held("ada", number * IDLE_TIMEOUT)).collect();
        let mut newcomers = Vec::new();
        for gone in 1..=2 {
            let next = take(&seats, "127.0.0.1").unwrap();
            // This connection is Ada's as well, and is busy.
            newcomers.push((next.seat.let_in(Some(&ada()), Work::Call), next));
            assert_eq!(hers.iter().filter(|taken_seat| is_gone(taken_seat)).count(), gone);
            assert!(!is_gone(&bob) && !carol.iter().any(is_gone));
        }
        // Ada's idle connections are closed first, then one of two. Bob's only one is never closed.
        for _ in 0..2 {
            let next = take(&seats, "127.0.0.1").unwrap();
            newcomers.push((next.seat.let_in(Some(&ada()), Work::Call), next));
        }
        assert!(hers.iter().all(is_gone) && is_gone(&carol[0]) && !is_gone(&carol[1]));
        assert_eq!(take(&seats, "127.0.0.1").unwrap_err(), 6);
        assert!(!is_gone(&bob) && !is_gone(&carol[1]));
    }

    #[test]
    fn streams_of_who_has_most_of_the_places_make_room() {
        let seats = seats(3, false);
        let taken_seats: Vec<TakenSeat> = (0..3).map(|_| take(&seats, "127.0.0.1").unwrap()).collect();
        let _streams: Vec<Busy> = taken_seats[..2]
            .iter()
            .map(|taken_seat| taken_seat.seat.let_in(Some(&ada()), Work::Stream))
            .collect();
        let bob = Identity::for_tests("bob");
        let _bob = taken_seats[2].seat.let_in(Some(&bob), Work::Stream);
        take(&seats, "127.0.0.1").unwrap();
        assert_eq!(
            taken_seats.iter().map(is_gone).collect::<Vec<_>>(),
            [true, false, false]
        );
    }

    #[test]
    fn who_reads_nothing_makes_room_even_with_a_call() {
        let seats = seats(1, true);
        let one = take(&seats, "127.0.0.1").unwrap();
        let _call = one.seat.let_in(None, Work::Call);
        one.seat.stalled(true);
        assert!(take(&seats, "127.0.0.1").is_err());
        lock(&one.seat.state).stalled_since = Instant::now().checked_sub(IDLE_TIMEOUT);
        take(&seats, "127.0.0.1").unwrap();
        assert!(is_gone(&one));
    }

    #[test]
    fn a_peer_has_half_of_the_places_and_one_on_this_machine_all() {
        let seats = seats(4, true);
        let answered = |peer: &str| {
            let taken_seat = take(&seats, peer).unwrap();
            taken_seat.seat.answered();
            taken_seat
        };
        let _one = [answered("192.0.2.1"), answered("192.0.2.1")];
        assert_eq!(take(&seats, "192.0.2.1").unwrap_err(), 2);
        // An IPv6 network counts as one peer.
        let _other = [answered("2001:db8::1"), answered("2001:db8::ffff:2")];
        assert_eq!(take(&seats, "2001:db8::3").unwrap_err(), 2);
        drop((_one, _other));
        let _local: Vec<TakenSeat> = (0..4).map(|_| answered("::ffff:127.0.0.1")).collect();
        assert_eq!(take(&seats, "127.0.0.1").unwrap_err(), 4);
    }

    #[test]
    fn a_peer_at_its_limit_gives_up_its_own_connections_only() {
        let seats = seats(4, false);
        let other = take(&seats, "192.0.2.9").unwrap();
        let own = [
            take(&seats, "192.0.2.1").unwrap(),
            take(&seats, "192.0.2.1").unwrap(),
        ];
        let _next = take(&seats, "192.0.2.1").unwrap();
        assert!(!is_gone(&other) && is_gone(&own[0]) && !is_gone(&own[1]));
    }
}
