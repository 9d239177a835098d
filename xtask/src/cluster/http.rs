//! HTTP requests, each on a separate connection, without a client library.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Longest time without any data of an answer. A call may wait for a host that just stopped.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// A complete answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// Value of a header, named in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON-RPC message of the body: the body itself, or the last event of a stream.
    pub(super) fn message(&self) -> anyhow::Result<Value> {
        let text = self.text();
        let is_stream = self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let json = if is_stream {
            let mut events = text.lines().filter_map(|line| line.strip_prefix("data:"));
            let last = events.rfind(|event| !event.trim().is_empty());
            last.context("a stream without an event")?.to_owned()
        } else {
            text
        };
        serde_json::from_str(&json).with_context(|| format!("not a message: {json}"))
    }
}

/// Sends a request and reads the whole answer. An incomplete answer is an error.
pub(super) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> anyhow::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&answer)
}

fn parse(answer: &[u8]) -> anyhow::Result<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.context("the connection ended without an answer")?;
    let (head, rest) = answer.split_at(end);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    let mut answer = Answer {
        status: status.context("an answer without a status")?,
        headers: headers.collect(),
        body: Vec::new(),
    };
    let rest = rest.get(4..).unwrap_or_default();
    answer.body = match (
        answer.header("transfer-encoding"),
        answer.header("content-length"),
    ) {
        (Some("chunked"), _) => chunks(rest)?,
        (_, Some(length)) => {
            ensure!(
                rest.len() == length.parse::<usize>()?,
                "the answer ends too early"
            );
            rest.to_vec()
        }
        _ => rest.to_vec(),
    };
    Ok(answer)
}

/// Decodes a chunked body, up to the empty chunk that ends it.
fn chunks(mut rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n");
        let line = line.context("the answer ends too early")?;
        let (size, after) = rest.split_at(line);
        let size = usize::from_str_radix(std::str::from_utf8(size)?.trim(), 16)?;
        if size == 0 {
            return Ok(body);
        }
        let Some(chunk) = after.get(2..2 + size) else {
            bail!("the answer ends too early");
        };
        body.extend_from_slice(chunk);
        rest = after.get(2 + size + 2..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_complete_answers_are_answers() {
        let whole =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n\
            e\r\ndata: {\"id\":1}\r\n2\r\n\n\n\r\n0\r\n\r\n";
        let answer = parse(whole).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.message().unwrap()["id"], 1);
        for length in [0, 20, whole.len() - 12, whole.len() - 5] {
            assert!(parse(&whole[..length]).is_err(), "{length}");
        }
        let counted = b"HTTP/1.1 502 Bad\r\ncontent-length: 4\r\n\r\ngone";
        assert_eq!(parse(counted).unwrap().text(), "gone");
        assert!(parse(&counted[..counted.len() - 1]).is_err());
    }
}
