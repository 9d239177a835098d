//! Sanitizing of messages with unreadable arguments, so that the gate can refuse them.
//!
//! JSON-RPC libraries drop messages that they cannot parse, and the client then waits forever. Each message is
//! therefore checked first. A line that is not a message is answered with a JSON-RPC error. A tool call is replaced if
//! it has ill-formed UTF-8, half a surrogate pair, arguments that are not an object, or too deep nesting. The
//! replacement has no arguments and a list of the faults, which the gate turns into a refusal and a ledger row.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::{memchr, memchr2};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, ReadBuf};

/// `_meta` key that carries the faults to the gate.
pub const MALFORMED: &str = "tollgate/malformed";
/// Longest message. rmcp drops longer ones.
pub const MAX_MESSAGE: usize = 16 << 20;
/// Deepest nesting that is passed on. A parser's limit is 128.
const MAX_DEPTH: usize = 100;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Replacement for a message, if the message is an unreadable tool call.
pub fn sanitize(message: &[u8]) -> Option<Vec<u8>> {
    look_at(message).unwrap_or_default()
}

/// Error for a line that is not a JSON-RPC message.
struct Unreadable;

/// Replacement for a message, if it needs one.
fn look_at(message: &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
    let mut problems = Vec::new();
    let text = well_formed(message, &mut problems);
    if depth(&text) > MAX_DEPTH {
        problems.push(format!("nesting is deeper than {MAX_DEPTH}"));
    }
    let Ok(outline) = serde_json::from_str::<Message<'_>>(&text) else {
        return Err(Unreadable);
    };
    if !outline.is_message() {
        return Err(Unreadable);
    }
    let Some(call) = tool_call(outline) else {
        return Ok((!problems.is_empty()).then(|| text.into_owned().into_bytes()));
    };
    if let Some(arguments) = call.params.arguments.map(RawValue::get)
        && !arguments.starts_with('{')
        && arguments != "null"
    {
        problems.push("arguments must be an object".to_owned());
    }
    Ok((!problems.is_empty()).then(|| call.without_arguments(problems)))
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Returns whether this is a request, a notification or a response, with an id that the library can represent.
    fn is_message(&self) -> bool {
        let is_plain = |id: &RawValue| id.get().starts_with('"') || id.get().parse::<i64>().is_ok();
        let says = self.method.is_some() || self.result.is_some() || self.error.is_some();
        says && self.id.is_none_or(is_plain)
    }
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

struct ToolCall<'a> {
    id: Option<&'a RawValue>,
    params: Params<'a>,
}

fn tool_call(message: Message<'_>) -> Option<ToolCall<'_>> {
    if message.method.as_deref() != Some("tools/call") {
        return None;
    }
    Some(ToolCall {
        id: message.id,
        params: serde_json::from_str(message.params?.get()).ok()?,
    })
}

impl ToolCall<'_> {
    fn without_arguments(&self, problems: Vec<String>) -> Vec<u8> {
        let mut meta: Map<String, Value> = self
            .params
            .meta
            .and_then(|meta| serde_json::from_str(meta.get()).ok())
            .unwrap_or_default();
        meta.insert(MALFORMED.to_owned(), problems.into());
        let read = |value: Option<&RawValue>| {
            value.and_then(|value| serde_json::from_str::<Value>(value.get()).ok())
        };
        let mut message = json!({
            "jsonrpc": "2.0",
            "id": read(self.id),
            "method": "tools/call",
            "params": { "name": read(self.params.name), "arguments": {}, "_meta": meta },
        });
        if self.id.is_none()
            && let Some(message) = message.as_object_mut()
        {
            message.remove("id");
        }
        message.to_string().into_bytes()
    }
}

/// Text of the message with valid UTF-8 and valid escapes. Adds each replacement to `problems`.
fn well_formed<'a>(message: &'a [u8], problems: &mut Vec<String>) -> Cow<'a, str> {
    let text = match std::str::from_utf8(message) {
        Ok(text) => Cow::Borrowed(text),
        Err(err) => {
            problems.push(format!("ill-formed UTF-8 at byte {}", err.valid_up_to()));
            String::from_utf8_lossy(message)
        }
    };
    let lone = lone_surrogates(text.as_bytes());
    if lone.is_empty() {
        return text;
    }
    problems.push(format!("half a surrogate pair at byte {}", lone[0]));
    let mut sanitized = text.into_owned();
    for at in lone {
        sanitized.replace_range(at..at + 6, "\\ufffd");
    }
    Cow::Owned(sanitized)
}

/// Positions of escapes from `\uD800` to `\uDFFF` that are not part of a pair.
fn lone_surrogates(text: &[u8]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &text[at..]) {
        at += found;
        match (escaped_unit(text, at), escaped_unit(text, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                lone.push(at);
                at += 6;
            }
            (Some(_), _) => at += 6,
            (None, _) => at += 2,
        }
        if at >= text.len() {
            break;
        }
    }
    lone
}

/// Code unit of the escape `\uXXXX` at a position.
fn escaped_unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Deepest nesting of objects and arrays.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(after),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Text after a string whose first quote was read.
fn after_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', text) {
        if text[at] == b'"' {
            return &text[at + 1..];
        }
        // A backslash and the character after it.
        text = text.get(at + 2..).unwrap_or_default();
    }
    &[]
}

/// Reader of lines that [sanitizes](sanitize) each line where necessary.
pub struct Sanitized<R> {
    inner: R,
    chunk: Box<[u8]>,
    /// Start of a line that is not complete yet.
    partial: Vec<u8>,
    /// Complete lines that are ready to be read.
    ready: Vec<u8>,
    read: usize,
    /// True if the rest of an overlong line is passed on, for rmcp to drop.
    too_long: bool,
    /// Called with each line that is not a message.
    unreadable: Refusing,
}

/// Callback for lines that are not messages.
type Refusing = Box<dyn FnMut(&[u8]) + Send>;

impl<R> Sanitized<R> {
    /// Wraps a reader of lines. Lines that are not messages go to `unreadable` and are not passed on.
    pub fn new(inner: R, unreadable: impl FnMut(&[u8]) + Send + 'static) -> Sanitized<R> {
        Sanitized {
            inner,
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            partial: Vec::new(),
            ready: Vec::new(),
            read: 0,
            too_long: false,
            unreadable: Box::new(unreadable),
        }
    }

    fn take(&mut self, length: usize) {
        let Some(mut rest) = self.chunk.get(..length) else {
            return;
        };
        while let Some(end) = memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(end);
            rest = &tail[1..];
            self.partial.extend_from_slice(line);
            let is_blank = self.partial.iter().all(u8::is_ascii_whitespace);
            let looked_at = if self.too_long || is_blank {
                Ok(None)
            } else {
                look_at(&self.partial)
            };
            match looked_at {
                Ok(sanitized) => {
                    self.ready
                        .extend_from_slice(sanitized.as_deref().unwrap_or(&self.partial));
                    self.ready.push(b'\n');
                }
                Err(Unreadable) => (self.unreadable)(&self.partial),
            }
            self.partial.clear();
            self.too_long = false;
        }
        self.partial.extend_from_slice(rest);
        if self.too_long || self.partial.len() > MAX_MESSAGE {
            self.too_long = true;
            self.ready.append(&mut self.partial);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Sanitized<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        while this.read == this.ready.len() {
            this.ready.clear();
            this.read = 0;
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            let length = chunk.filled().len();
            if length == 0 {
                return Poll::Ready(Ok(()));
            }
            this.take(length);
        }
        let waiting = &this.ready[this.read..];
        let length = waiting.len().min(buf.remaining());
        buf.put_slice(&waiting[..length]);
        this.read += length;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn problems(message: &[u8]) -> Option<String> {
        let sanitized = sanitize(message)?;
        let message: Value = serde_json::from_slice(&sanitized).unwrap();
        assert_eq!(message["id"], 7);
        assert_eq!(message["params"]["name"], "t");
        assert_eq!(message["params"]["arguments"], json!({}));
        Some(message["params"]["_meta"][MALFORMED].to_string())
    }

    fn call(arguments: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#)
            .into_bytes()
    }

    #[test]
    fn good_messages_stay_as_they_are() {
        assert_eq!(sanitize(&call(r#"{"a":"\ud83d\ude00 \\ud800 \" {"}"#)), None);
        assert_eq!(sanitize(&call("null")), None);
        assert_eq!(
            sanitize(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
            None
        );
        assert_eq!(sanitize(b"not json"), None);
        assert_eq!(sanitize(b""), None);
    }

    #[test]
    fn bad_arguments_are_named() {
        assert_eq!(
            problems(&call("[1]")).unwrap(),
            r#"["arguments must be an object"]"#
        );
        assert_eq!(
            problems(&call(r#"{"a":"\ud800"}"#)).unwrap(),
            r#"["half a surrogate pair at byte 85"]"#
        );
        assert_eq!(
            problems(&call(r#"{"a":"\udc00\ud800"}"#)).unwrap(),
            r#"["half a surrogate pair at byte 85"]"#
        );
        let mut ill_formed = call(r#"{"a":"x"}"#);
        let at = ill_formed.iter().position(|byte| *byte == b'x').unwrap();
        ill_formed[at] = 0xff;
        assert_eq!(
            problems(&ill_formed).unwrap(),
            r#"["ill-formed UTF-8 at byte 85"]"#
        );
        let deep = call(&format!(
            "{}{}",
            r#"{"a":"#.repeat(5000),
            "1".to_owned() + &"}".repeat(5000)
        ));
        assert_eq!(problems(&deep).unwrap(), r#"["nesting is deeper than 100"]"#);
    }

    #[test]
    fn meta_of_the_client_stays() {
        let message = br#"{"id":7,"method":"tools/call","params":{"name":"t","arguments":3,"_meta":{"progressToken":5}}}"#;
        let sanitized: Value = serde_json::from_slice(&sanitize(message).unwrap()).unwrap();
        assert_eq!(sanitized["params"]["_meta"]["progressToken"], 5);
    }

    #[tokio::test]
    async fn lines_that_are_no_messages_are_handed_over_and_not_passed_on() {
        let good = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let bad = [
            "rubbish",
            "[]",
            "7",
            r#"{"id":{},"method":"ping"}"#,
            r#"{"id":1}"#,
            r#"{"id":1,"method":"ping""#,
        ];
        let input = format!("{}\n\n{good}\n", bad.join("\n"));
        let (send, told) = std::sync::mpsc::channel();
        let unreadable = move |line: &[u8]| send.send(String::from_utf8_lossy(line).into_owned()).unwrap();
        let mut out = String::new();
        let mut lines = Sanitized::new(input.as_bytes(), unreadable);
        lines.read_to_string(&mut out).await.unwrap();
        assert_eq!(out, format!("\n{good}\n"));
        drop(lines);
        assert_eq!(told.into_iter().collect::<Vec<String>>(), bad);
    }

    #[tokio::test]
    async fn lines_are_repaired_wherever_reads_cut_them() {
        let good = String::from_utf8(call("{}")).unwrap();
        let bad = String::from_utf8(call("3")).unwrap();
        let input = format!("{good}\n{bad}\n{good}\n");
        for size in [1, 7, 64] {
            let (mut write, read) = tokio::io::duplex(size);
            let sent = input.clone();
            tokio::spawn(
                async move { tokio::io::AsyncWriteExt::write_all(&mut write, sent.as_bytes()).await },
            );
            let mut out = String::new();
            Sanitized::new(read, |_| {})
                .read_to_string(&mut out)
                .await
                .unwrap();
            let lines: Vec<&str> = out.lines().collect();
            assert_eq!((lines[0], lines[2]), (good.as_str(), good.as_str()));
            assert!(lines[1].contains(MALFORMED));
        }
    }
}
