//! TCP proxy with which tests delay, hold back and cut connections, to the byte.
//!
//! A trip is everything that a client sends at once, together with the server's answer until the client sends again. A
//! proxy with a mark counts the bytes of each trip that contains it, and can cut the connection within the next such
//! trip.

mod connection;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use connection::Connection;

/// Position in a trip at which the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After this number of bytes to the server, or at the end of them.
    Question(usize),
    /// After this number of bytes to the client. The server has received everything.
    Answer(usize),
}

/// End of a connection, as both sides see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection is closed.
    Closed,
    /// The connection is half-open: it stays, carries nothing any more, and is closed after this time.
    Silent(Duration),
}

/// Bytes of a trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trip {
    /// Number that the client sent.
    pub question: usize,
    /// Number that the server sent.
    pub answer: usize,
}

/// A proxy in front of one server. Its connections last as long as their two sides.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    way: Arc<Way>,
}

impl Proxy {
    /// Listens for clients of a server. Trips that contain the mark are counted, and all of them if the mark is empty.
    ///
    /// # Errors
    ///
    /// Fails if there is no port to listen on.
    pub fn to(server: SocketAddr, mark: &'static [u8]) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let way = Arc::new(Way {
            mark,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let carried = Arc::clone(&way);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if carried.state().is_away {
                    continue;
                }
                // A client of a server that is away sees the end of its connection.
                if let Ok(server) = TcpStream::connect(server) {
                    Connection::carry(&carried, client, server);
                }
            }
        });
        Ok(Proxy { address, way })
    }

    /// Address for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets each piece wait from now on, in both directions.
    pub fn delay(&self, time: Duration) {
        self.way.state().delay = time;
    }

    /// Holds everything back from now on. New connections are accepted and hear nothing.
    pub fn hold(&self) {
        self.way.state().is_held = true;
    }

    /// Lets everything pass that was held back.
    pub fn release(&self) {
        self.way.state().is_held = false;
        self.way.changed.notify_all();
    }

    /// Closes all connections, and new ones at once, until it is asked not to: the server is away.
    pub fn be_away(&self, is_away: bool) {
        self.way.state().is_away = is_away;
        if is_away {
            self.cut();
        }
    }

    /// Closes all connections, with what is held back in them. New ones are accepted.
    pub fn cut(&self) {
        let open = std::mem::take(&mut self.way.state().open);
        open.iter().for_each(|connection| connection.close());
        self.way.changed.notify_all();
    }

    /// Ends the connection of the next trip with the mark, in the trip.
    pub fn cut_next(&self, cut: Cut, end: End) {
        self.way.state().next = Some((cut, end));
    }

    /// True if the cut that was asked for has happened, or none was asked for.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.way.state().next.is_none()
    }

    /// Number of trips so far of the connections that had one with the mark.
    #[must_use]
    pub fn trips_beside_mark(&self) -> u64 {
        let open = self.way.state().open.clone();
        open.iter().map(|connection| connection.trips_beside_mark()).sum()
    }

    /// The last trip with the mark, as far as it has come.
    #[must_use]
    pub fn last_trip(&self) -> Trip {
        self.way.state().last
    }
}

/// State that all connections of a proxy share.
#[derive(Debug)]
struct Way {
    mark: &'static [u8],
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    delay: Duration,
    is_held: bool,
    is_away: bool,
    next: Option<(Cut, End)>,
    last: Trip,
    open: Vec<Arc<Connection>>,
}

impl Way {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as a piece of a connection has to.
    fn wait(&self, connection: &Connection) {
        let delay = self.state().delay;
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        let state = self.state();
        let is_held = |state: &mut State| state.is_held && !connection.is_closed();
        drop(self.changed.wait_while(state, is_held));
    }
}

#[cfg(test)]
mod tests;
