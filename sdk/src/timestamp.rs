//! Instants as sortable text: `2026-11-20T23:53:30.123Z`.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

use crate::{FromValue, ToValue, Value};

/// An instant with millisecond precision, UTC. In JSON and in SQL an instant is RFC 3339 text.
///
/// ```
/// # use tollgate_sdk::Timestamp;
/// let start = Timestamp::parse("2026-11-20T23:53:30Z").unwrap();
/// assert_eq!(start.plus_ms(1_500).to_string(), "2026-11-20T23:53:31.500Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Instant from milliseconds since 1970 UTC.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Timestamp {
        Timestamp(ms)
    }

    /// Milliseconds since 1970 UTC.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Instant `ms` milliseconds later, at most the latest possible one.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(ms))
    }

    /// Parses RFC 3339 text. `None` if the text is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Timestamp> {
        let instant = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(instant.unix_timestamp_nanos() / 1_000_000)
            .ok()
            .map(Timestamp)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format =
            format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        let text = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|instant| instant.to_offset(UtcOffset::UTC).format(&format).ok());
        match text {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text).ok_or_else(|| de::Error::custom("expected an RFC 3339 timestamp"))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

impl ToValue for Timestamp {
    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl FromValue for Timestamp {
    fn from_value(value: &Value) -> Option<Timestamp> {
        match value {
            Value::Text(text) => Timestamp::parse(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let instant = Timestamp::from_ms(1_800_000_000_007);
        assert_eq!(instant.to_string(), "2027-01-15T08:00:00.007Z");
        assert_eq!(Timestamp::parse("2027-01-15T09:00:00.007+01:00"), Some(instant));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
