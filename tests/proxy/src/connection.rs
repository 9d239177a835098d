//! One connection: a thread for each direction.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Cut, End, Trip, Way};

/// Maximum bytes forwarded at once.
const PIECE: usize = 64 << 10;

/// Two sockets, and the planned interference between them.
#[derive(Debug)]
pub(crate) struct Connection {
    client: TcpStream,
    server: TcpStream,
    is_closed: AtomicBool,
    trip: Mutex<OfTrip>,
}

/// State of the current trip.
#[derive(Debug, Default)]
struct OfTrip {
    /// True if the bytes of this trip are counted.
    is_marked: bool,
    /// Number of trips of the connection so far.
    trips: u64,
    /// True if one of these trips contained the mark.
    had_mark: bool,
    /// Bytes of the answer to forward before the connection is cut.
    left: Option<(usize, End)>,
    /// True after the cut. Nothing is forwarded any more in either direction.
    is_over: bool,
}

impl Connection {
    /// Forwards bytes in both directions until one side is gone.
    pub(crate) fn carry(way: &Arc<Way>, client: TcpStream, server: TcpStream) {
        for side in [&client, &server] {
            // Small pieces must be sent without delay.
            let _ = side.set_nodelay(true);
        }
        let connection = Arc::new(Connection {
            client,
            server,
            is_closed: AtomicBool::new(false),
            trip: Mutex::default(),
        });
        way.state().open.push(Arc::clone(&connection));
        for direction in [Connection::questions, Connection::answers] {
            let (way, connection) = (Arc::clone(way), Arc::clone(&connection));
            std::thread::spawn(move || {
                direction(&connection, &way);
                connection.close();
                let mut state = way.state();
                state.open.retain(|open| !Arc::ptr_eq(open, &connection));
                drop(state);
                // The other direction may be held.
                way.changed.notify_all();
            });
        }
    }

    /// Closes both sides.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for side in [&self.client, &self.server] {
            let _ = side.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    pub(crate) fn trips_beside_mark(&self) -> u64 {
        let trip = self.trip();
        if trip.had_mark { trip.trips } else { 0 }
    }

    fn trip(&self) -> MutexGuard<'_, OfTrip> {
        self.trip.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self, way: &Way) {
        let mut piece = vec![0; PIECE];
        while let Ok(length @ 1..) = (&self.client).read(&mut piece) {
            way.wait(self);
            let (passing, end) = self.ask(&piece[..length], way);
            if (&self.server).write_all(passing).is_err() {
                return;
            }
            if let Some(end) = end {
                return self.end(end);
            }
        }
    }

    /// Begins a trip. Returns the part that passes, and the end after it.
    fn ask<'a>(&self, piece: &'a [u8], way: &Way) -> (&'a [u8], Option<End>) {
        let mark = way.mark;
        let is_marked = mark.is_empty() || piece.windows(mark.len()).any(|window| window == mark);
        let mut trip = self.trip();
        if trip.is_over {
            return (&[], None);
        }
        trip.is_marked = is_marked;
        trip.trips += 1;
        trip.had_mark |= is_marked;
        if !is_marked {
            return (piece, None);
        }
        let mut state = way.state();
        state.last = Trip {
            question: piece.len(),
            answer: 0,
        };
        match state.next.take() {
            None => (piece, None),
            Some((Cut::Question(bytes), end)) => {
                trip.is_over = true;
                (&piece[..bytes.min(piece.len())], Some(end))
            }
            Some((Cut::Answer(bytes), end)) => {
                trip.left = Some((bytes, end));
                (piece, None)
            }
        }
    }

    fn answers(&self, way: &Way) {
        let mut piece = vec![0; PIECE];
        while let Ok(length @ 1..) = (&self.server).read(&mut piece) {
            way.wait(self);
            let (passing, end) = self.answer(&piece[..length], way);
            if (&self.client).write_all(passing).is_err() {
                return;
            }
            if let Some(end) = end {
                return self.end(end);
            }
        }
    }

    /// The part of an answer that passes, and the end after it.
    fn answer<'a>(&self, piece: &'a [u8], way: &Way) -> (&'a [u8], Option<End>) {
        let mut trip = self.trip();
        if trip.is_over {
            return (&[], None);
        }
        if trip.is_marked {
            way.state().last.answer += piece.len();
        }
        let Some((left, end)) = trip.left else {
            return (piece, None);
        };
        let passing = &piece[..piece.len().min(left)];
        let left = left - passing.len();
        trip.left = Some((left, end));
        trip.is_over = left == 0;
        (passing, trip.is_over.then_some(end))
    }

    /// Ends the connection. Whatever comes meanwhile is lost.
    fn end(&self, end: End) {
        if let End::Silent(time) = end {
            std::thread::sleep(time);
        }
        self.close();
    }
}
