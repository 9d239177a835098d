//! Spans of calls, and the queue of spans to send.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use tollgate_core::effect::Effect;
use tollgate_sdk::ToolError;
use tollgate_store::storage::Operation;

use super::Parent;

/// Most spans that wait to be sent: enough for a burst of calls, or for a short outage of the collector.
const QUEUE_SPANS: usize = 8192;

/// Method of a client's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A tool's call.
    Tool,
    /// A prompt.
    Prompt,
}

/// Span of one call: names and ids, and the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Span of the caller.
    pub parent: Option<Parent>,
    /// Method of the request.
    pub method: Method,
    /// Name of the tool or prompt.
    pub tool: String,
    /// Pack of the tool.
    pub pack: String,
    /// Effect of the tool.
    pub effect: Effect,
    /// Id of the operation in the ledger.
    pub op_id: String,
    /// Envelope that the call names.
    pub envelope_id: Option<String>,
    /// Request id from the client.
    pub request_id: Option<String>,
    /// Time of the end, in milliseconds since 1970.
    pub ended_ms: i64,
    /// Time from the call's arrival at the gate to the reply.
    pub duration: Duration,
    /// Code of its refusal.
    pub error_code: Option<String>,
}

/// Sender of spans.
#[derive(Debug, Clone)]
pub struct Spans {
    queue: Sender<Span>,
    dropped: Arc<AtomicU64>,
}

/// Receiver of spans.
#[derive(Debug)]
pub struct Queue {
    spans: Receiver<Span>,
    dropped: Arc<AtomicU64>,
}

/// Both ends of a queue.
pub fn queue() -> (Spans, Queue) {
    let (sender, spans) = crossbeam_channel::bounded(QUEUE_SPANS);
    let dropped = Arc::new(AtomicU64::new(0));
    let queue = Queue {
        spans,
        dropped: Arc::clone(&dropped),
    };
    (
        Spans {
            queue: sender,
            dropped,
        },
        queue,
    )
}

impl Span {
    /// Span of a call that is over.
    #[must_use]
    pub fn ended(self, duration: Duration, refusal: Option<&ToolError>, now_ms: i64) -> Span {
        Span {
            ended_ms: now_ms,
            duration,
            error_code: refusal.map(|refusal| refusal.code.clone()),
            ..self
        }
    }
}

impl Spans {
    /// Span of a call that begins. A caller that records no span of its own wants none here either. The operator's
    /// tracing does not depend on the caller, so the call gets a span in a separate trace.
    pub fn begin(&self, parent: Option<Parent>, method: Method, operation: &Operation) -> Span {
        Span {
            parent: parent.filter(|parent| parent.is_sampled),
            method,
            tool: operation.tool.clone(),
            pack: operation.pack.clone(),
            effect: operation.effect,
            op_id: operation.op_id.clone(),
            envelope_id: operation.envelope_id.clone().filter(|id| is_envelope_id(id)),
            request_id: operation.request_id.clone(),
            ended_ms: 0,
            duration: Duration::ZERO,
            error_code: None,
        }
    }

    /// Queues a span. If there is no room, the span is only counted.
    pub fn leave(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of dropped spans.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Queue {
    /// Next span, if there is one.
    pub(super) fn take(&self) -> Option<Span> {
        self.spans.try_recv().ok()
    }

    /// Number of waiting spans.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Counts spans that were taken from the queue and cannot be delivered.
    pub(super) fn drop_taken(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

/// True for an id in the format that hosts generate. A call can name an envelope in any words, and a caller's words
/// are not exported.
fn is_envelope_id(id: &str) -> bool {
    let random = id.strip_prefix("env_");
    random.is_some_and(|random| random.len() == 26 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Span of a call without a parent and an envelope.
    pub(in crate::telemetry) fn span() -> Span {
        Span {
            parent: None,
            method: Method::Tool,
            tool: "slice_show".to_owned(),
            pack: "gsd".to_owned(),
            effect: Effect::Read,
            op_id: "op_1".to_owned(),
            envelope_id: None,
            request_id: Some("7".to_owned()),
            ended_ms: 2_000,
            duration: Duration::from_millis(1_500),
            error_code: None,
        }
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let span = span();
        let (spans, waiting) = queue();
        for _ in 0..QUEUE_SPANS + 3 {
            spans.leave(span.clone());
        }
        assert_eq!((waiting.len(), spans.dropped()), (QUEUE_SPANS, 3));
        assert_eq!(waiting.take(), Some(span.clone()));
        spans.leave(span.clone());
        assert_eq!(spans.dropped(), 3);
        waiting.drop_taken(1);
        assert_eq!(spans.dropped(), 4);
        drop(waiting);
        spans.leave(span);
        assert_eq!(spans.dropped(), 5);
    }

    #[test]
    fn words_are_no_envelopes() {
        assert!(is_envelope_id("env_01kc0000000000000000000000"));
        for text in [
            "",
            "env_",
            "my envelope",
            "env_my secret plan goes here!!",
            "env_01",
        ] {
            assert!(!is_envelope_id(text), "{text}");
        }
    }
}
