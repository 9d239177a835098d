//! Time and identifiers: the only place that reads the wall clock.

use std::time::UNIX_EPOCH;

use tollgate_sdk::Timestamp;

/// Source of time and ids.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970 UTC.
    fn now_ms(&self) -> i64;
    /// Milliseconds since the machine's boot, time asleep included. This clock cannot be set, and all processes of
    /// the machine see the same time.
    fn boot_ms(&self) -> i64;
    /// A new identifier: `prefix_` and 26 characters that sort by time of creation.
    fn new_id(&self, prefix: &str) -> String;
}

/// Length of `90s`, `30m`, `24h`, `7d` or `2w` in milliseconds.
pub fn span_ms(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let number = number.parse::<u32>().ok()?;
    Some(i64::from(number) * seconds * 1_000)
}

/// Time as the ledger writes it, from RFC 3339 or from a span before now.
pub fn since(text: &str, now_ms: i64) -> Option<String> {
    if let Some(ago) = span_ms(text) {
        return Some(Timestamp::from_ms(now_ms.saturating_sub(ago)).to_string());
    }
    Some(Timestamp::parse(text)?.to_string())
}

/// The system's clock and random ids.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        #[allow(clippy::disallowed_methods, reason = "the one place that reads the clock")]
        let now = std::time::SystemTime::now();
        now.duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_millis()).ok())
            .unwrap_or_default()
    }

    fn boot_ms(&self) -> i64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec
            .saturating_mul(1000)
            .saturating_add(now.tv_nsec / 1_000_000)
    }

    fn new_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", ulid::Ulid::generate().to_string().to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_before_now_or_said_outright() {
        assert_eq!(
            since("1h", 7_200_000).unwrap(),
            Timestamp::from_ms(3_600_000).to_string()
        );
        assert_eq!(
            since("1970-01-01T00:00:01Z", 0).unwrap(),
            Timestamp::from_ms(1_000).to_string()
        );
        assert_eq!(
            since("2w", 14 * 86_400_000).unwrap(),
            Timestamp::from_ms(0).to_string()
        );
        for text in ["", "h", "1y", "yesterday", "-1h", "é", "2026-11-21"] {
            assert!(since(text, 0).is_none(), "{text}");
        }
    }
}
