//! The exporter thread: sends spans in batches and metrics at intervals.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::oneshot;
use tollgate_core::meter::Figures;

use super::collector::{Collector, Sent};
use super::message::{Origin, untold};
use super::{Queue, Settings};

/// Most spans in a message.
const BATCH_SPANS: usize = 512;
/// Most messages of spans in a row, so that metrics are not starved.
const MAX_BATCHES_IN_A_ROW: usize = 16;
/// Interval of checking the queue. Calls do not wake the exporter.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time that spans wait for a full batch.
const BATCH_DELAY_LIMIT: Duration = Duration::from_secs(2);
/// Longest pause after the collector accepted none. The pause doubles each time, up to this.
const PAUSE_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for a collector's answer.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for sending the rest when the host stops.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Time that the host waits for the exporter to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends spans and metrics until it is stopped.
pub struct Exporter {
    stop: Sender<Instant>,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

impl Exporter {
    /// Starts sending. `figures` reads the metrics while the gate exists.
    pub fn start(
        settings: &Settings,
        host_id: &str,
        queue: Option<Queue>,
        figures: impl Fn() -> Option<Figures> + Send + 'static,
    ) -> std::io::Result<Exporter> {
        let (stop, stopped) = crossbeam_channel::bounded(1);
        let (running, ended) = oneshot::channel();
        let mut work = Work {
            origin: Origin {
                service_name: settings.service_name.clone(),
                host_id: host_id.to_owned(),
            },
            interval: settings.interval,
            traces: Collector::of_traces(settings),
            queue,
            batch: Vec::new(),
            metrics: settings.metrics.then(|| Collector::of_metrics(settings)),
            figures,
        };
        std::thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || {
                work.run(&stopped);
                drop(running);
            })?;
        Ok(Exporter { stop, ended })
    }

    /// Sends the rest, if the collector accepts it soon. A thread that a collector blocks is abandoned.
    pub async fn stop(self) {
        let _ = self.stop.try_send(Instant::now() + FLUSH_TIMEOUT);
        if tokio::time::timeout(EXIT_TIMEOUT, self.ended).await.is_err() {
            tracing::info!("the host stops without waiting for the collector");
        }
    }
}

struct Work<F> {
    origin: Origin,
    interval: Duration,
    traces: Collector,
    /// Queue of spans, if calls leave any.
    queue: Option<Queue>,
    /// Spans that were taken from the queue and not sent yet. They have their ids already, so a collector can detect
    /// duplicates.
    batch: Vec<Span>,
    metrics: Option<Collector>,
    figures: F,
}

impl<F: Fn() -> Option<Figures>> Work<F> {
    fn run(&mut self, stopped: &Receiver<Instant>) {
        let mut pause = BATCH_DELAY_LIMIT;
        let mut next_spans = Instant::now() + pause;
        let mut next_figures = Instant::now() + self.interval;
        loop {
            match stopped.recv_timeout(QUEUE_CHECK_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(until) => return self.finish(until),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let many = self
                .queue
                .as_ref()
                .is_some_and(|queue| queue.len() >= BATCH_SPANS);
            let is_due = Instant::now() >= next_spans;
            if is_due || (many && !self.traces.is_away()) {
                self.send_spans(|| COLLECTOR_TIMEOUT);
                pause = if self.traces.is_away() {
                    PAUSE_LIMIT.min(pause * 2)
                } else {
                    BATCH_DELAY_LIMIT
                };
                next_spans = Instant::now() + pause;
            }
            if Instant::now() >= next_figures {
                self.send_figures(COLLECTOR_TIMEOUT);
                next_figures = Instant::now() + self.interval;
            }
        }
    }

    /// Sends spans until few are left, or one message is not accepted.
    fn send_spans(&mut self, patience: impl Fn() -> Duration) {
        let Some(queue) = &self.queue else {
            return;
        };
        for _ in 0..MAX_BATCHES_IN_A_ROW {
            let room = BATCH_SPANS.saturating_sub(self.batch.len());
            let taken = std::iter::from_fn(|| queue.take()).take(room);
            self.batch.extend(taken.map(|span| span.told()));
            let count = self.batch.len();
            if count == 0 {
                return;
            }
            let message = self.origin.tell(std::mem::take(&mut self.batch));
            match self.traces.tell(&message, patience()) {
                Sent::Taken if count == BATCH_SPANS => {}
                Sent::Taken => return,
                Sent::Later(_) => {
                    self.batch = untold(message);
                    return;
                }
                Sent::Refused(_) => {
                    queue.drop_taken(count);
                    return;
                }
            }
        }
    }

    fn send_figures(&mut self, patience: Duration) {
        if let Some(metrics) = &mut self.metrics
            && let Some(figures) = (self.figures)()
        {
            metrics.tell(&self.origin.count(&figures), patience);
        }
    }

    /// Sends the rest in the remaining time.
    fn finish(&mut self, until: Instant) {
        let left = || until.saturating_duration_since(Instant::now());
        self.send_spans(left);
        if !left().is_zero() {
            self.send_figures(left());
        }
        let unsent = self.batch.len() + self.queue.as_ref().map_or(0, Queue::len);
        if unsent > 0 {
            tracing::info!(unsent, "the host stops before the collector accepted every span");
        }
    }
}
