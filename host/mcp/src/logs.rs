//! Lines of components' logs for clients that want them: in the older era what a session was told, in the newer what
//! a request says.
#![expect(
    deprecated,
    reason = "MCP gives logging up, and clients of older eras know it"
)]

use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, ServiceError};
use serde_json::Value;
use tollgate_sandbox::progress::{Line, Severity};

/// Which lines a session wants.
#[derive(Debug, Default)]
pub(super) struct WantedLines(AtomicU8);

impl WantedLines {
    const ALL: [Severity; 4] = [
        Severity::Debug,
        Severity::Info,
        Severity::Warning,
        Severity::Error,
    ];

    pub(super) fn set(&self, level: LoggingLevel) {
        let place =
            severity(level).and_then(|least| WantedLines::ALL.iter().position(|known| *known == least));
        let place = place.and_then(|place| u8::try_from(place + 1).ok());
        self.0.store(place.unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<Severity> {
        let place = usize::from(self.0.load(Ordering::Relaxed)).checked_sub(1)?;
        WantedLines::ALL.get(place).copied()
    }
}

/// Which lines a request says that it wants.
pub(super) fn wanted_by(context: &RequestContext<RoleServer>) -> Option<Severity> {
    context.meta.log_level().and_then(severity)
}

/// Sends a line.
pub(super) async fn send(peer: &Peer<RoleServer>, line: Line) -> Result<(), ServiceError> {
    let level = match line.severity {
        Severity::Debug => LoggingLevel::Debug,
        Severity::Info => LoggingLevel::Info,
        Severity::Warning => LoggingLevel::Warning,
        Severity::Error => LoggingLevel::Error,
    };
    let params = LoggingMessageNotificationParam::new(level, Value::String(line.text));
    peer.notify_logging_message(params.with_logger(line.pack)).await
}

/// The least that is still of a level. Components have no word for what is worse than an error.
fn severity(level: LoggingLevel) -> Option<Severity> {
    match level {
        LoggingLevel::Debug => Some(Severity::Debug),
        LoggingLevel::Info => Some(Severity::Info),
        LoggingLevel::Notice | LoggingLevel::Warning => Some(Severity::Warning),
        LoggingLevel::Error => Some(Severity::Error),
        LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_wants_nothing_until_it_says_so() {
        let wanted = WantedLines::default();
        assert_eq!(wanted.get(), None);
        for (level, least) in [
            (LoggingLevel::Debug, Some(Severity::Debug)),
            (LoggingLevel::Notice, Some(Severity::Warning)),
            (LoggingLevel::Alert, None),
            (LoggingLevel::Error, Some(Severity::Error)),
        ] {
            wanted.set(level);
            assert_eq!(wanted.get(), least, "{level:?}");
        }
    }
}
