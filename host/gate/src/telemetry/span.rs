//! Calls as spans, and the queue that they wait in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use tollgate_core::effect::Effect;
use tollgate_sdk::ToolError;
use tollgate_store::storage::Operation;

use super::Parent;

/// Most spans that wait to be sent: a burst of calls, or a collector that is away for a moment.
const QUEUE: usize = 8192;

/// Method of a client's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A tool's call.
    Tool,
    /// A prompt.
    Prompt,
}

/// One call: names and ids, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The caller's.
    pub parent: Option<Parent>,
    /// Method of the request.
    pub method: Method,
    /// The tool's or prompt's name.
    pub tool: String,
    /// The pack that has it.
    pub pack: String,
    /// Effect of the tool.
    pub effect: Effect,
    /// The operation's id in the ledger.
    pub op_id: String,
    /// The envelope that the call names.
    pub envelope_id: Option<String>,
    /// The client's id of the request.
    pub request_id: Option<String>,
    /// Time of the end, in milliseconds since 1970.
    pub ended_ms: i64,
    /// From reaching the gate to the reply.
    pub duration: Duration,
    /// The code of its refusal.
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
    let (sender, spans) = crossbeam_channel::bounded(QUEUE);
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
    /// The span of a call that is over.
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
    /// The span of a call that begins. A caller that records no span of its own wishes for none here: what the operator
    /// watches is not its to decide, so that its call has a span in a trace of its own.
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

    /// Leaves a span to be sent. Without room for it, it is only counted.
    pub fn leave(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of spans that nobody took.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Queue {
    /// The next one, if one waits.
    pub(super) fn take(&self) -> Option<Span> {
        self.spans.try_recv().ok()
    }

    /// Number of spans that wait.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Counts spans that were taken and that nobody will get.
    pub(super) fn drop_taken(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

/// True for an id as a host gives out. A call can name an envelope in any words, and words of
/// callers stay here.
fn is_envelope_id(id: &str) -> bool {
    let random = id.strip_prefix("env_");
    random.is_some_and(|random| random.len() == 26 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let span = Span {
            parent: None,
            method: Method::Tool,
            tool: "slice_show".to_owned(),
            pack: "gsd".to_owned(),
            effect: Effect::Read,
            op_id: "op_1".to_owned(),
            envelope_id: None,
            request_id: None,
            ended_ms: 0,
            duration: Duration::ZERO,
            error_code: None,
        };
        let (spans, waiting) = queue();
        for _ in 0..QUEUE + 3 {
            spans.leave(span.clone());
        }
        assert_eq!((waiting.len(), spans.dropped()), (QUEUE, 3));
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
