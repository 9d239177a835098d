//! Log on standard error. Log lines contain neither terminal control characters nor the content of calls.

use std::io::{IsTerminal as _, Write};
use std::sync::OnceLock;

use tollgate_core::text;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::{Global, LogFormat, out};

/// If set to `1`, libraries log everything that the filter permits, including whole requests with arguments and
/// results.
const CONTENT_VARIABLE: &str = "TOLLGATE_LOG_CONTENT";

/// Log target for messages about a server's own actions, such as its address.
const NOTICE_TARGET: &str = "tollgate::notice";
/// Default filter.
const DEFAULT_FILTER: &str = "warn,tollgate::notice=info";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Set if notices are lines of JSON, like the rest of the log.
static IS_JSON: OnceLock<bool> = OnceLock::new();

/// Parses a log filter. An unknown level is refused, because it would be taken for the name of a module and nothing
/// would be logged.
pub(super) fn filter(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(DEFAULT_FILTER.to_owned());
    }
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let is_plain = |word: &&str| !word.contains(['=', '[', ']', '{', '}']);
    let mut words = text.split(',').map(str::trim).filter(is_plain);
    if let Some(word) = words.find(|word| !is_level(word)) {
        return Err(format!(
            "{word:?} is not a log level; write {}, or MODULE=LEVEL",
            LEVELS.join(", ")
        ));
    }
    EnvFilter::try_new(text).map_err(|err| err.to_string())?;
    Ok(text.to_owned())
}

/// Prints a message to the operator that is not a problem, in the format of the log.
pub(super) fn notice(text: &str) {
    if !tracing::enabled!(target: NOTICE_TARGET, Level::INFO) {
        return;
    }
    if IS_JSON.get().copied().unwrap_or_default() {
        tracing::info!(target: NOTICE_TARGET, "{text}");
    } else {
        out::warn(text);
    }
}

/// Starts logging. A line that cannot be written is dropped, because nothing may be reading any more.
pub(super) fn to_stderr(global: &Global) {
    let filter = EnvFilter::new(global.log.as_deref().unwrap_or(DEFAULT_FILTER));
    let _ = IS_JSON.set(matches!(global.log_format, LogFormat::Json));
    let has_content = std::env::var(CONTENT_VARIABLE).is_ok_and(|value| value == "1");
    let quiet = filter_fn(move |metadata| has_content || is_free_of_content(metadata));
    let log = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false);
    match global.log_format {
        LogFormat::Text => {
            // Fields are cleaned individually, because the line contains its own colour codes.
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

/// Returns whether an event is logged without content of calls. This program's own lines never contain such content.
/// Libraries may log it at `debug` and `trace`, and rmcp logs notifications and session names at `info`.
fn is_free_of_content(metadata: &Metadata<'_>) -> bool {
    let library = metadata.target().split("::").next().unwrap_or_default();
    let most = if library == "tollgate" || library.starts_with("tollgate_") {
        Level::TRACE
    } else if library == "rmcp" {
        // Its warnings print error responses, which contain arguments and results.
        Level::ERROR
    } else {
        Level::INFO
    };
    *metadata.level() <= most
}

/// Lines of JSON without terminal control characters.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    /// Each line arrives in one call.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let json = String::from_utf8_lossy(line);
        self.0.write_all(text::escape_json(&json).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_log_nothing_is_refused() {
        for text in [
            "warn",
            "OFF",
            "warn,tollgate=debug",
            "tollgate_gate=trace",
            DEFAULT_FILTER,
        ] {
            assert_eq!(filter(text).as_deref(), Ok(text));
        }
        assert_eq!(filter("").as_deref(), Ok(DEFAULT_FILTER));
        for text in ["verbose", "tollgate", "warn,loud", "tollgate=loud", "warn,"] {
            assert!(filter(text).is_err(), "{text}");
        }
    }
}
