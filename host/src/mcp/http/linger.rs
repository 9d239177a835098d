//! A close that lets the last answer arrive.
//!
//! Who closes a socket with input unread has the kernel reset the connection, and the reset may overtake
//! the answer: a client that was still sending what is refused would see a broken connection in place of
//! the reason. So the host says that it has no more to say, then throws away what still comes until the
//! client closes as well or its time is over.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long a client may take to close its side.
const LINGERING: Duration = Duration::from_secs(1);
/// What is thrown away at once, in bytes.
const PIECE: usize = 8 << 10;

/// A connection whose shutdown ends when the other side has closed, too.
pub(super) struct Lingering<Io> {
    io: Io,
    end: Option<Pin<Box<Sleep>>>,
}

impl<Io> Lingering<Io> {
    pub(super) fn new(io: Io) -> Self {
        Self { io, end: None }
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for Lingering<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, end } = &mut *self;
        let end = match end {
            Some(end) => end,
            None => {
                ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
                end.insert(Box::pin(tokio::time::sleep(LINGERING)))
            }
        };
        // Looked at before each piece, so that a client that never stops sending gains nothing by it.
        while end.as_mut().poll(cx).is_pending() {
            let mut piece = [std::mem::MaybeUninit::uninit(); PIECE];
            let mut piece = ReadBuf::uninit(&mut piece);
            // An error says that the other side is gone, which is all that is waited for.
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

    #[tokio::test]
    async fn what_still_comes_is_thrown_away_until_the_other_side_closes() {
        let (mut client, server) = tokio::io::duplex(16);
        let closing = tokio::spawn(async move {
            let mut server = Lingering::new(server);
            server.write_all(b"no").await.unwrap();
            server.shutdown().await
        });
        // More than fits on the way, so that somebody has to take it.
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
        let waiting = tokio::spawn(async { Lingering::new(other).shutdown().await });
        Lingering::new(server).shutdown().await.unwrap();
        sending.await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}
