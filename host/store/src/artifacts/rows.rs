//! Contents in the database of a server, so that every host can read what another one stored.
//!
//! The store has a few sessions of its own, so content does not wait for calls, and calls that write do not wait for
//! content.

use std::collections::VecDeque;
use std::io::{self, Read as _, Seek as _};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_std::fs::File;
use crossbeam_channel::{Receiver, Sender};
use sha2::{Digest as _, Sha256};
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::hash::hex;

use super::space;
use crate::storage::{Database, OpenError, PIECE_BYTES, Session, StoreError, StoreFailure, StoreResult};

/// Most sessions of a store.
const MAX_SESSIONS: usize = 4;
/// Time limit of one step, such as storing a piece, and of waiting for a free session.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Time to wait for an unreachable server.
const AWAY_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between attempts to reach it.
const AWAY_INTERVAL: Duration = Duration::from_millis(100);
/// Most pieces in memory at once.
const WINDOW_PIECES: i64 = 16;
/// Most pieces of one content. `artifacts.max_artifact_mib` is at most 1024.
const MAX_PIECES: usize = (1 << 30) / PIECE_BYTES;
/// Most contents whose piece hashes are cached.
const MAX_CACHED: usize = 64;
/// Contents that are looked up at once.
const BATCH_CONTENTS: u32 = 500;

/// Hashes of the pieces of verified content, so that a slice needs only its own pieces.
type Checked = Arc<Vec<[u8; 32]>>;

/// Source of the bytes to store.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Memory(&'a [u8]),
    /// Whole file, from its beginning.
    File(&'a File),
}

/// Contents in the database.
pub(super) struct Rows {
    database: Database,
    /// Idle sessions, and slots for sessions that are not open yet.
    idle: (Sender<Option<Session>>, Receiver<Option<Session>>),
    known: Mutex<VecDeque<(String, Checked)>>,
}

/// Outcome of reading content.
enum Found {
    Slice(Vec<u8>),
    Nothing,
    /// The content does not match its hash.
    Changed,
}

impl Rows {
    pub(super) fn new(database: Database) -> Rows {
        let idle = crossbeam_channel::bounded(MAX_SESSIONS);
        for _ in 0..MAX_SESSIONS {
            // The channel has room for all of them.
            let _ = idle.0.send(None);
        }
        Rows {
            database,
            idle,
            known: Mutex::default(),
        }
    }

    /// Stores content for an artifact whose row exists or will follow.
    pub(super) fn put(&self, source: Source<'_>, hash: &str, artifact: &str) -> io::Result<()> {
        let session = self.session()?;
        self.write(&session, hash, |session| {
            let pieces = source.len()?.div_ceil(PIECE_BYTES as u64).max(1);
            let pieces = i64::try_from(pieces).map_err(io::Error::other)?;
            session.pieces().note(hash, artifact, pieces).map_err(failed)?;
            let mut number = 0;
            source.each_piece(|bytes| {
                begin_step(session);
                session.pieces().put(hash, number, bytes).map_err(failed)?;
                number += 1;
                Ok(())
            })?;
            match number == pieces {
                true => Ok(()),
                false => Err(io::Error::other("the file changed while being read")),
            }
        })
    }

    /// Slice of content. `None` if the content was removed.
    pub(super) fn read(&self, hash: &str, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let session = self.session()?;
        // One snapshot, so that partially removed content is never seen.
        session.begin_read().map_err(failed)?;
        let found = match self.checked(hash) {
            Some(checked) => slice_of_checked(&session, hash, &checked, (offset, limit)),
            None => self.check(&session, hash, (offset, limit)),
        };
        let found = found.map_err(failed)?;
        session.rollback().map_err(failed)?;
        match found {
            Found::Slice(slice) => Ok(Some(slice)),
            Found::Nothing => Ok(None),
            Found::Changed => {
                let why = "the content does not match its hash: the rows in the database were changed";
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
        }
    }

    /// Removes content, unless an artifact names it or may name it once its row exists.
    pub(super) fn remove(&self, hash: &str) -> io::Result<()> {
        let session = self.session()?;
        self.write(&session, hash, |session| {
            session.pieces().remove(hash).map_err(failed)
        })
    }

    /// Removes contents that no artifact names.
    pub(super) fn sweep(&self) -> io::Result<()> {
        let mut after = String::new();
        loop {
            let session = self.session()?;
            session.begin_read().map_err(failed)?;
            let unnamed = session.pieces().unnamed(&after, BATCH_CONTENTS).map_err(failed)?;
            session.rollback().map_err(failed)?;
            drop(session);
            let Some(last) = unnamed.last() else {
                break;
            };
            after.clone_from(last);
            for hash in &unnamed {
                self.remove(hash)?;
            }
        }
        self.session()?.pieces().forget_puts().map_err(failed)
    }

    /// Bytes of all contents, each counted like a file.
    pub(super) fn size(&self) -> io::Result<u64> {
        let session = self.session()?;
        session.begin_read().map_err(failed)?;
        let least = i64::try_from(space::counted(0)).unwrap_or_default();
        let total = session.pieces().total(least).map_err(failed)?;
        session.rollback().map_err(failed)?;
        Ok(total.cast_unsigned())
    }

    /// Hashes of all contents.
    pub(super) fn hashes(&self) -> io::Result<Vec<String>> {
        let session = self.session()?;
        session.begin_read().map_err(failed)?;
        let hashes = session.pieces().hashes().map_err(failed)?;
        session.rollback().map_err(failed)?;
        Ok(hashes)
    }

    /// Runs a change of content in its own transaction. The change is idempotent, so it is repeated after a short
    /// outage of the server and after a commit without an answer.
    fn write(
        &self,
        session: &Session,
        hash: &str,
        change: impl Fn(&Session) -> io::Result<()>,
    ) -> io::Result<()> {
        let began = Instant::now();
        loop {
            begin_step(session);
            let tried = session
                .pieces()
                .begin(hash)
                .map_err(failed)
                .and_then(|()| change(session))
                .and_then(|()| session.commit().map_err(failed));
            let Err(err) = tried else {
                return Ok(());
            };
            if session.in_transaction() {
                // The earlier error is the one to report.
                let _ = session.rollback();
            }
            if !may_pass(&err) || began.elapsed() > AWAY_TIMEOUT {
                return Err(err);
            }
            std::thread::sleep(AWAY_INTERVAL);
        }
    }

    /// Session of the store. Waits until one is free.
    fn session(&self) -> io::Result<Borrowed<'_>> {
        let began = Instant::now();
        let place = self.idle.1.recv_timeout(STEP_TIMEOUT).map_err(|_| {
            io::Error::new(
                io::ErrorKind::TimedOut,
                "timed out while other contents were stored or read",
            )
        })?;
        let mut borrowed = Borrowed {
            session: place,
            home: &self.idle.0,
        };
        while borrowed.session.is_none() {
            match self.database.write_session() {
                Ok(session) => borrowed.session = Some(session),
                Err(err) => {
                    let err = failed(OpenError::into_cause(err));
                    if !may_pass(&err) || began.elapsed() > AWAY_TIMEOUT {
                        return Err(err);
                    }
                    std::thread::sleep(AWAY_INTERVAL);
                }
            }
        }
        begin_step(&borrowed);
        Ok(borrowed)
    }

    /// Reads content completely, verifies it and returns a slice of it.
    fn check(&self, session: &Session, hash: &str, slice: (u64, usize)) -> StoreResult<Found> {
        let mut whole = Whole::new(slice);
        loop {
            let first = i64::try_from(whole.pieces.len()).unwrap_or(i64::MAX);
            begin_step(session);
            session.pieces().each(hash, (first, WINDOW_PIECES), |piece| {
                whole.take(piece.number, piece.bytes)
            })?;
            let seen = i64::try_from(whole.pieces.len()).unwrap_or(i64::MAX);
            if whole.is_broken || seen - first < WINDOW_PIECES {
                break;
            }
        }
        if whole.pieces.is_empty() && !whole.is_broken {
            // A piece with an unexpected number was not stored by a put.
            return Ok(match session.pieces().has(hash)? {
                true => Found::Changed,
                false => Found::Nothing,
            });
        }
        if whole.is_broken || hex(&whole.hasher.finalize()) != hash {
            return Ok(Found::Changed);
        }
        if whole.pieces.len() > 1 {
            let mut known = self.known();
            known.push_back((hash.to_owned(), Arc::new(whole.pieces)));
            if known.len() > MAX_CACHED {
                known.pop_front();
            }
        }
        Ok(Found::Slice(whole.slice.bytes))
    }

    /// Piece hashes of recently verified content.
    fn checked(&self, hash: &str) -> Option<Checked> {
        let mut known = self.known();
        let at = known.iter().position(|(known, _)| known == hash)?;
        let found = known.remove(at)?;
        let checked = Arc::clone(&found.1);
        known.push_back(found);
        Some(checked)
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<(String, Checked)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Slice of content that was verified as a whole before. The pieces of the slice are verified again.
fn slice_of_checked(
    session: &Session,
    hash: &str,
    checked: &[[u8; 32]],
    (offset, limit): (u64, usize),
) -> StoreResult<Found> {
    let last = checked.len().saturating_sub(1);
    let place = |byte: u64| usize::try_from(byte / PIECE_BYTES as u64).map_or(last, |piece| piece.min(last));
    let end = offset.saturating_add((limit as u64).saturating_sub(1));
    let (mut next, end) = (place(offset), place(end));
    let mut slice = Slice::new((offset, limit), next);
    let mut is_changed = false;
    let mut is_empty = true;
    while next <= end && !is_changed {
        let window = (end - next + 1).min(usize::try_from(WINDOW_PIECES).unwrap_or(1));
        let first = next;
        let range = (
            i64::try_from(first).unwrap_or(i64::MAX),
            i64::try_from(window).unwrap_or(1),
        );
        begin_step(session);
        session.pieces().each(hash, range, |piece| {
            is_empty = false;
            let bytes = piece.bytes.unwrap_or_default();
            let is_it = usize::try_from(piece.number) == Ok(next)
                && checked
                    .get(next)
                    .is_some_and(|hash| Sha256::digest(bytes)[..] == hash[..]);
            is_changed |= !is_it;
            slice.take(bytes);
            next += 1;
        })?;
        is_changed |= next < first + window;
    }
    Ok(match (is_empty, is_changed) {
        // Even if other pieces are left, the content is incomplete.
        (true, _) => match session.pieces().has(hash)? {
            true => Found::Changed,
            false => Found::Nothing,
        },
        (false, true) => Found::Changed,
        (false, false) => Found::Slice(slice.bytes),
    })
}

/// Content while all of it is read.
struct Whole {
    hasher: Sha256,
    pieces: Vec<[u8; 32]>,
    /// True if a piece is missing or has an unexpected length.
    is_broken: bool,
    is_last: bool,
    slice: Slice,
}

impl Whole {
    fn new(slice: (u64, usize)) -> Whole {
        Whole {
            hasher: Sha256::new(),
            pieces: Vec::new(),
            is_broken: false,
            is_last: false,
            slice: Slice::new(slice, 0),
        }
    }

    fn take(&mut self, number: i64, bytes: Option<&[u8]>) {
        let is_next = usize::try_from(number) == Ok(self.pieces.len());
        let bytes = bytes.filter(|_| is_next && !self.is_last && self.pieces.len() < MAX_PIECES);
        let Some(bytes) = bytes else {
            self.is_broken = true;
            return;
        };
        self.is_last = bytes.len() < PIECE_BYTES;
        self.hasher.update(bytes);
        self.pieces.push(Sha256::digest(bytes).into());
        self.slice.take(bytes);
    }
}

/// Slice of content whose pieces arrive in order.
struct Slice {
    /// First byte, and the byte after the last.
    range: (u64, u64),
    /// Number of bytes before the next piece.
    at: u64,
    bytes: Vec<u8>,
}

impl Slice {
    /// Slice from an offset with a limit, of pieces starting with this one.
    fn new((offset, limit): (u64, usize), first: usize) -> Slice {
        Slice {
            range: (offset, offset.saturating_add(limit as u64)),
            at: (first as u64).saturating_mul(PIECE_BYTES as u64),
            bytes: Vec::new(),
        }
    }

    fn take(&mut self, piece: &[u8]) {
        let within = |byte: u64| {
            let from_here = byte.saturating_sub(self.at);
            usize::try_from(from_here).map_or(piece.len(), |at| at.min(piece.len()))
        };
        let (start, end) = (within(self.range.0), within(self.range.1));
        self.bytes
            .extend_from_slice(piece.get(start..end).unwrap_or_default());
        self.at = self.at.saturating_add(piece.len() as u64);
    }
}

impl Source<'_> {
    fn len(self) -> io::Result<u64> {
        match self {
            Source::Memory(bytes) => Ok(bytes.len() as u64),
            Source::File(file) => Ok(file.metadata()?.len()),
        }
    }

    /// Passes the content to `show`, piece by piece. Empty content is one empty piece.
    fn each_piece(self, mut show: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut file = match self {
            Source::Memory([]) => return show(&[]),
            Source::Memory(bytes) => return bytes.chunks(PIECE_BYTES).try_for_each(show),
            Source::File(file) => file,
        };
        file.rewind()?;
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let mut is_first = true;
        loop {
            piece.clear();
            file.take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
            if piece.is_empty() && !is_first {
                return Ok(());
            }
            is_first = false;
            show(&piece)?;
            if piece.len() < PIECE_BYTES {
                return Ok(());
            }
        }
    }
}

/// A session that returns to its store when it is dropped.
struct Borrowed<'r> {
    session: Option<Session>,
    home: &'r Sender<Option<Session>>,
}

impl Deref for Borrowed<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        match &self.session {
            Some(session) => session,
            None => unreachable!("a session is there before anybody has it"),
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        // A session whose transaction cannot be ended is not reused.
        let session = self
            .session
            .take()
            .filter(|session| !session.in_transaction() || session.rollback().is_ok());
        let _ = self.home.try_send(session);
    }
}

/// Sets the time limit of the next step on a session.
fn begin_step(session: &Session) {
    session.limit_time(&Deadline::after(STEP_TIMEOUT, Cancel::default()));
}

/// Converts an error to the form of file errors.
fn failed(err: StoreError) -> io::Error {
    match err.failure() {
        StoreFailure::Lost => io::Error::new(io::ErrorKind::NotConnected, err),
        _ => io::Error::other(err),
    }
}

/// True if another attempt may succeed: the server was unreachable, or another transaction conflicted with it.
fn may_pass(err: &io::Error) -> bool {
    let cause = err
        .get_ref()
        .map(|cause| cause as &(dyn std::error::Error + 'static));
    matches!(
        cause.and_then(StoreError::find),
        Some(StoreFailure::Lost | StoreFailure::Unknown | StoreFailure::Conflict)
    )
}
