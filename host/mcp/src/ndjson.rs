//! JSON-RPC over two pipes, one message per line.
//!
//! Messages that are ready at the same time are written in one write. A structured result is sent as its component
//! wrote it, without parsing and serialising it again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, JsonRpcResponse, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::http::faults;
use super::opening::Opening;
use super::sanitize::Sanitized;

/// Maximum number of messages in one write.
const MAX_WRITE_MESSAGES: usize = 64;
/// Time that the end of a session waits for a client that does not read.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Buffer capacity in bytes that is kept for the next write.
const KEPT_BUFFER_BYTES: usize = 256 << 10;

/// Transport over the two pipes of a session.
pub(super) struct Lines<R: AsyncRead + Unpin> {
    incoming: AsyncRwTransport<RoleServer, Sanitized<R>, Outgoing>,
    outgoing: Option<Outgoing>,
    writer: Option<JoinHandle<io::Result<()>>>,
    /// Cancelled when the client closes its end.
    ended: CancellationToken,
    /// True once the client has started a session.
    has_begun: bool,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    /// Creates a transport that reads from one pipe and writes to the other.
    pub(super) fn new<W>(read: R, write: W) -> Lines<R>
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outgoing, lines) = unbounded_channel();
        let outgoing = Outgoing(outgoing);
        Lines {
            incoming: AsyncRwTransport::new(Sanitized::new(read, refusing(&outgoing)), outgoing.clone()),
            outgoing: Some(outgoing),
            writer: Some(tokio::spawn(write_lines(lines, write))),
            ended: CancellationToken::new(),
            has_begun: false,
        }
    }

    /// Token that is cancelled when the client closes its end.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sent = encode(message).and_then(|line| match &self.outgoing {
            Some(outgoing) => outgoing.send(line),
            None => Err(io::ErrorKind::NotConnected.into()),
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.incoming.receive().await else {
                self.ended.cancel();
                return None;
            };
            if self.has_begun {
                return Some(message);
            }
            match Opening::of(&message) {
                Opening::Begins => self.has_begun = true,
                Opening::Before => {}
                Opening::Ignored => continue,
                Opening::Refused(refusal) => {
                    self.send(*refusal).await.ok()?;
                    continue;
                }
            }
            return Some(message);
        }
    }

    /// Returns once everything is written, or the client has not read for too long.
    async fn close(&mut self) -> io::Result<()> {
        self.incoming.close().await?;
        self.outgoing = None;
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        match tokio::time::timeout(SHUTDOWN_TIMEOUT, writer).await {
            Ok(Ok(written)) => written,
            Ok(Err(failed)) => Err(io::Error::other(failed)),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Queue of lines to write.
#[derive(Clone)]
struct Outgoing(UnboundedSender<Vec<u8>>);

impl Outgoing {
    fn send(&self, line: Vec<u8>) -> io::Result<()> {
        self.0
            .send(line)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// Writer for responses that the reading half sends itself.
impl AsyncWrite for Outgoing {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.send(bytes.to_vec()).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Answers a line that is not a message, so that its sender does not wait forever.
fn refusing(outgoing: &Outgoing) -> impl FnMut(&[u8]) + Send + 'static {
    // A weak sender, because the session ends only when all strong senders are dropped.
    let outgoing = outgoing.0.downgrade();
    move |line| {
        let (code, id, message) = faults::told(line);
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
        if let Some(outgoing) = outgoing.upgrade() {
            let _ = outgoing.send(format!("{answer}\n").into_bytes());
        }
    }
}

/// Writes lines until all senders are dropped.
async fn write_lines(
    mut lines: UnboundedReceiver<Vec<u8>>,
    mut write: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (mut ready, mut bytes) = (Vec::new(), Vec::new());
    while lines.recv_many(&mut ready, MAX_WRITE_MESSAGES).await > 0 {
        bytes.clear();
        ready.drain(..).for_each(|line| bytes.extend(line));
        write.write_all(&bytes).await?;
        write.flush().await?;
        bytes.shrink_to(KEPT_BUFFER_BYTES);
    }
    Ok(())
}

/// Encodes a message as a line.
fn encode(mut message: TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let structured = take_structured(&mut message);
    let mut line = serde_json::to_vec(&message)?;
    if let Some(structured) = structured {
        // The result is the last member of the message, and has members itself.
        line.truncate(line.len().saturating_sub(2));
        line.extend_from_slice(b",\"structuredContent\":");
        line.extend_from_slice(structured.as_bytes());
        line.extend_from_slice(b"}}");
    }
    line.push(b'\n');
    Ok(line)
}

/// Takes the structured result of a call, if it is [text](super::handler::Structured::Text) that contains JSON.
fn take_structured(message: &mut TxJsonRpcMessage<RoleServer>) -> Option<String> {
    let JsonRpcMessage::Response(JsonRpcResponse {
        result: ServerResult::CallToolResult(result),
        ..
    }) = message
    else {
        return None;
    };
    match result.structured_content.take() {
        Some(Value::String(json)) => Some(json),
        other => {
            result.structured_content = other;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock, MetaObject, RequestId};
    use serde_json::json;

    use super::*;

    fn encoded(structured: Value, meta: bool) -> Value {
        let mut result = CallToolResult::success(vec![ContentBlock::text("t")]);
        result.structured_content = Some(structured);
        result.meta = meta.then(MetaObject::new);
        let result = ServerResult::CallToolResult(result);
        let line = encode(JsonRpcMessage::response(result, RequestId::Number(7))).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn text_of_json_and_json_are_the_same_on_the_wire() {
        let structured = json!({"a": [1, {"b": "}} \" é"}], "c": 0.1});
        for meta in [false, true] {
            let whole = encoded(structured.clone(), meta);
            assert_eq!(encoded(structured.to_string().into(), meta), whole);
            assert_eq!(whole["id"], 7);
            assert_eq!(whole["result"]["structuredContent"], structured);
        }
    }

    #[tokio::test]
    async fn what_was_sent_is_written_before_the_end() {
        let (read, mut client) = tokio::io::duplex(64);
        let (rest, write) = tokio::io::split(read);
        let mut lines = Lines::new(rest, write);
        let reader = tokio::spawn(async move {
            let mut all = String::new();
            tokio::io::AsyncReadExt::read_to_string(&mut client, &mut all)
                .await
                .unwrap();
            all.lines().count()
        });
        for number in 0..200 {
            let result = ServerResult::CallToolResult(CallToolResult::success(Vec::new()));
            let sent = lines.send(JsonRpcMessage::response(result, RequestId::Number(number)));
            sent.await.unwrap();
        }
        lines.close().await.unwrap();
        drop(lines);
        assert_eq!(reader.await.unwrap(), 200);
    }
}
