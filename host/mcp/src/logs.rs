//! Log lines of components for clients that request them. In the older era a session sets the level, in the newer era
//! each request does.
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

/// Level of the lines that a session requests.
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

/// Level of the lines that a request asks for.
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

/// Lowest severity that belongs to an MCP level. Components have no severity above an error.
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
