//! Graceful close, which lets the last answer arrive.
//!
//! If a socket is closed with unread input, the kernel resets the connection, and the reset may overtake the answer. A
//! client that was still sending a refused request would see a broken connection instead of the reason. The host
//! therefore shuts down its writing side first. It then discards input until the client closes as well or a timeout
//! expires.
//!
//! A client that does not read its answer is disconnected after a while, so that it cannot hold resources forever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::seats::Seat;

/// Timeout for a client to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of bytes discarded at once.
const BUFFER_BYTES: usize = 8 << 10;
/// Bytes that a client must accept within its timeout while more is waiting. Fewer do not count as progress.
const MIN_PROGRESS_BYTES: usize = 16 << 10;

/// A connection that closes gracefully, and whose peer must keep reading.
pub(super) struct GracefulClose<Io> {
    io: Io,
    end: Option<Pin<Box<Sleep>>>,
    /// Longest time without progress while data is waiting to be read.
    patience: Duration,
    stall: Option<Stall>,
    seat: Option<Arc<Seat>>,
}

/// State of a client that reads more slowly than the server writes.
struct Stall {
    end: Pin<Box<Sleep>>,
    /// Number of bytes taken since the stall began.
    taken: usize,
}

impl<Io> GracefulClose<Io> {
    pub(super) fn new(io: Io, patience: Duration, seat: Option<Arc<Seat>>) -> Self {
        Self {
            io,
            end: None,
            patience,
            stall: None,
            seat,
        }
    }

    /// Checks the result of a write, to see whether the client still accepts data.
    fn watched(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match (&written, &mut self.stall) {
            (Poll::Ready(Ok(taken)), Some(stall)) => {
                stall.taken += taken;
                if *taken == wanted || stall.taken >= MIN_PROGRESS_BYTES {
                    self.set_stall(None);
                }
            }
            (Poll::Pending, None) => {
                let end = Box::pin(tokio::time::sleep(self.patience));
                self.set_stall(Some(Stall { end, taken: 0 }));
            }
            _ => {}
        }
        if let Some(stall) = &mut self.stall
            && written.is_pending()
            && stall.end.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }

    fn set_stall(&mut self, stall: Option<Stall>) {
        if let Some(seat) = &self.seat {
            seat.stalled(stall.is_some());
        }
        self.stall = stall;
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for GracefulClose<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for GracefulClose<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.watched(cx, buf.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.watched(cx, bufs.iter().map(|buf| buf.len()).sum(), written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, end, .. } = &mut *self;
        let end = match end {
            Some(end) => end,
            None => {
                ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
                end.insert(Box::pin(tokio::time::sleep(CLOSE_TIMEOUT)))
            }
        };
        // Checked before each piece, so that a client that never stops sending cannot extend the timeout.
        while end.as_mut().poll(cx).is_pending() {
            let mut piece = [std::mem::MaybeUninit::uninit(); BUFFER_BYTES];
            let mut piece = ReadBuf::uninit(&mut piece);
            // An error means that the peer is gone, which is all that is awaited.
            let read = ready!(Pin::new(&mut *io).poll_read(cx, &mut piece));
            if read.is_err() || piece.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn patient<Io>(io: Io) -> GracefulClose<Io> {
        GracefulClose::new(io, Duration::from_secs(60), None)
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_or_nearly_nothing_is_left() {
        for pause in [None, Some(Duration::from_millis(20))] {
            let (mut client, server) = tokio::io::duplex(16);
            let mut server = GracefulClose::new(server, Duration::from_millis(500), None);
            let reading = tokio::spawn(async move {
                let Some(pause) = pause else {
                    return std::future::pending().await;
                };
                while client.read_u8().await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
            });
            let written = server.write_all(&[b'x'; 64 << 10]).await;
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
            reading.abort();
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_all_of_it() {
        let (mut client, server) = tokio::io::duplex(16);
        let patience = Duration::from_secs(2);
        let mut server = GracefulClose::new(server, patience, None);
        let reading = tokio::spawn(async move {
            let mut bytes = vec![0; 32 << 10];
            for _ in 0..6 {
                tokio::time::sleep(patience / 4).await;
                client.read_exact(&mut bytes).await.unwrap();
            }
        });
        let started = tokio::time::Instant::now();
        server.write_all(&vec![b'x'; 6 * (32 << 10)]).await.unwrap();
        assert!(started.elapsed() > patience, "it took less than a stall may take");
        reading.await.unwrap();
        // A pause after everything was taken is not a stall.
        assert!(server.stall.is_none());
    }

    #[tokio::test]
    async fn what_still_comes_is_thrown_away_until_the_other_side_closes() {
        let (mut client, server) = tokio::io::duplex(16);
        let closing = tokio::spawn(async move {
            let mut server = patient(server);
            server.write_all(b"no").await.unwrap();
            server.shutdown().await
        });
        // More than fits into the buffers, so that the other side has to read.
        client.write_all(&[b'x'; 100]).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "no");
        assert!(!closing.is_finished());
        drop(client);
        closing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_never_closes_is_left() {
        let (mut client, server) = tokio::io::duplex(16);
        let sending = tokio::spawn(async move { while client.write_all(b"more").await.is_ok() {} });
        let (_silent, other) = tokio::io::duplex(16);
        let waiting = tokio::spawn(async { patient(other).shutdown().await });
        patient(server).shutdown().await.unwrap();
        sending.await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}
