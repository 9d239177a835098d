//! The log on standard error: what is in it, and that nothing in it steers a terminal or tells what calls hold.

use std::io::{IsTerminal as _, Write};

use tollgate::text;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::{Global, LogFormat};

/// Set to `1`, libraries log whatever the filter says, whole requests with arguments and results included.
const CONTENT: &str = "TOLLGATE_LOG_CONTENT";

/// Begins to log.
pub(super) fn to_stderr(global: &Global) {
    let filter = EnvFilter::try_new(&global.log).unwrap_or_else(|_| EnvFilter::new("warn"));
    let has_content = std::env::var(CONTENT).is_ok_and(|value| value == "1");
    let quiet = filter_fn(move |metadata| has_content || is_free_of_content(metadata));
    let log = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer();
    match global.log_format {
        LogFormat::Text => {
            // Fields are cleaned one by one, because the line has colours of its own.
            let fields = debug_fn(|writer, field, value| {
                let value = text::clean(&format!("{value:?}"));
                match field.name() {
                    "message" => write!(writer, "{value} "),
                    name => write!(writer, "{name}={value} "),
                }
            });
            let layer = layer
                .fmt_fields(fields)
                .with_ansi(std::io::stderr().is_terminal())
                .with_writer(std::io::stderr);
            log.with(layer.with_filter(quiet)).init();
        }
        LogFormat::Json => log
            .with(
                layer
                    .json()
                    .with_writer(|| Escaped(std::io::stderr()))
                    .with_filter(quiet),
            )
            .init(),
    }
}

/// Whether something is logged without what calls hold. This program's own lines are written so; libraries print at
/// `debug` and `trace` whatever passes them, and rmcp at `info` the notifications and names of sessions.
fn is_free_of_content(metadata: &Metadata<'_>) -> bool {
    let is_of = |library: &str| {
        let rest = metadata.target().strip_prefix(library);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let most = if is_of("tollgate") {
        Level::TRACE
    } else if is_of("rmcp") {
        // Its warnings print the errors that it answers, and those hold arguments and results.
        Level::ERROR
    } else {
        Level::INFO
    };
    *metadata.level() <= most
}

/// Lines of JSON without characters that a terminal obeys.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    /// Each line comes in one piece.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let json = String::from_utf8_lossy(line);
        self.0.write_all(text::escape_json(&json).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
