//! Instants as sortable text: `2026-11-20T23:53:30.123Z`.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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
        parse(text.as_bytes()).map(Timestamp)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.0.div_euclid(DAY_MS));
        if year.abs() > LAST_YEAR {
            return write!(f, "{}ms", self.0);
        }
        let ms = self.0.rem_euclid(DAY_MS);
        // Written digit by digit, because a call formats several instants and padding by `write!` is much slower.
        let mut text = *b"-0000-00-00T00:00:00.000Z";
        put(&mut text[1..5], year.abs());
        put(&mut text[6..8], month);
        put(&mut text[9..11], day);
        put(&mut text[12..14], ms / 3_600_000);
        put(&mut text[15..17], ms / 60_000 % 60);
        put(&mut text[18..20], ms / 1_000 % 60);
        put(&mut text[21..24], ms % 1_000);
        let text = &text[usize::from(year >= 0)..];
        f.write_str(std::str::from_utf8(text).map_err(|_| fmt::Error)?)
    }
}

/// Writes the last decimal digits of a number into a place.
fn put(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
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

const DAY_MS: i64 = 86_400_000;
/// Last year with four digits.
const LAST_YEAR: i64 = 9_999;

/// Milliseconds since 1970 of RFC 3339 text. The separator may be any character, as RFC 3339 allows.
fn parse(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.get(1..)?.split_at_checked(8)?;
    let ([_, _, _, _, b'-', _, _, b'-', _, _], [_, _, b':', _, _, b':', _, _]) = (date, time) else {
        return None;
    };
    let (year, month, day) = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    let (hour, minute, second) = (number(&time[..2])?, number(&time[3..5])?, number(&time[6..])?);
    let (fraction, zone) = match rest.split_first() {
        Some((b'.', rest)) => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, zone) = rest.split_at(digits);
            (Some(digits), zone)
        }
        _ => (None, rest),
    };
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let offset = offset_ms(zone)?;
    let midnight = days_since_1970(year, month, day) * DAY_MS;
    let instant = |second: i64| midnight + hour * 3_600_000 + minute * 60_000 + second * 1_000 - offset;
    let nanoseconds = fraction.map_or(Some(0), nanoseconds)?;
    match second {
        0..=59 => {
            let exact = i128::from(instant(second)) * 1_000_000 + i128::from(nanoseconds);
            i64::try_from(exact / 1_000_000).ok()
        }
        // A leap second is the last one of a month, and counts as the millisecond before the next month.
        60 => {
            let next = instant(second);
            let starts_month = next.rem_euclid(DAY_MS) == 0 && date_of(next.div_euclid(DAY_MS)).2 == 1;
            let last_ns = i128::from(next) * 1_000_000 - 1;
            starts_month.then(|| i64::try_from(last_ns / 1_000_000).ok())?
        }
        _ => None,
    }
}

/// Value of one or more decimal digits.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

/// Nanoseconds from the digits after the decimal point. Further digits are dropped.
fn nanoseconds(digits: &[u8]) -> Option<i64> {
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    (!digits.is_empty()).then(|| padded.fold(0, |value, byte| value * 10 + i64::from(byte - b'0')))
}

/// Milliseconds by which a zone is ahead of UTC: `Z`, or `+01:00`.
fn offset_ms(zone: &[u8]) -> Option<i64> {
    let (sign, hour, minute) = match zone {
        [b'Z' | b'z'] => return Some(0),
        [b'+', hour @ .., b':', a, b] => (1, hour, [*a, *b]),
        [b'-', hour @ .., b':', a, b] => (-1, hour, [*a, *b]),
        _ => return None,
    };
    let (hours, minutes) = (number(hour)?, number(&minute)?);
    (hour.len() == 2 && hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60_000)
}

const fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Days from 1970 to a date. Years begin in March, so that a leap day is the last of its year.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * CYCLE_DAYS + year * 365 + year / 4 - year / 100 + day_of_year - DAYS_BEFORE_1970
}

/// Year, month and day of a day counted from 1970.
const fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_BEFORE_1970;
    let (cycle, day) = (days.div_euclid(CYCLE_DAYS), days.rem_euclid(CYCLE_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, passed) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (cycle * 400 + year + passed, month, day)
}

#[cfg(test)]
mod tests {
    use time::format_description::well_known::Rfc3339;
    use time::{OffsetDateTime, format_description};

    use super::*;

    #[test]
    fn text_and_back() {
        let instant = Timestamp::from_ms(1_800_000_000_007);
        assert_eq!(instant.to_string(), "2027-01-15T08:00:00.007Z");
        assert_eq!(Timestamp::parse("2027-01-15T09:00:00.007+01:00"), Some(instant));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    /// Parser of the crate `time`, whose results this code must match.
    fn parse_with_time(text: &str) -> Option<i64> {
        let instant = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(instant.unix_timestamp_nanos() / 1_000_000).ok()
    }

    #[test]
    fn texts_mean_the_same_to_another_reader() {
        for text in [
            "2026-11-20T23:53:30Z",
            "2026-11-20t23:53:30z",
            "2026-11-20 23:53:30.5+01:00",
            "2026-11-20_23:53:30.123456789123-23:59",
            "2026-11-20T23:53:30.Z",
            "2026-11-20T23:53:30,5Z",
            "2026-11-20T23:53:30",
            "2026-11-20T23:53:30+24:00",
            "2026-11-20T23:53:30+01:60",
            "2026-11-20T23:53:30+1:00",
            "2026-11-20T23:53:30+001:00",
            "2026-11-20T23:53:30+0100",
            "2026-11-20T23:53:30ZZ",
            "2026-11-20T24:00:00Z",
            "2026-11-20T23:60:00Z",
            "2026-11-20T23:59:60Z",
            "2026-12-31T23:59:60Z",
            "2026-12-31T23:59:60.2Z",
            "2027-01-01T00:59:60+01:00",
            "1969-12-31T23:59:60Z",
            "2026-12-31T23:59:61Z",
            "1969-12-31T23:59:59.9999Z",
            "1969-12-31T23:59:59.9990001Z",
            "2026-02-29T00:00:00Z",
            "2024-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "2026-00-10T00:00:00Z",
            "2026-13-10T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "0000-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59.999-01:00",
            "10000-01-01T00:00:00Z",
            "-001-01-01T00:00:00Z",
            "2026-11-20é23:53:30Z",
            "2026-1é-20T23:53:30Z",
            "",
        ] {
            let own = Timestamp::parse(text).map(Timestamp::as_ms);
            assert_eq!(own, parse_with_time(text), "{text}");
        }
    }

    #[test]
    fn days_of_all_years_read_the_same_to_another_writer() {
        let format = "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z";
        let format = format_description::parse_borrowed::<2>(format).unwrap();
        let (first, last) = (-377_705_116_800_000_i64, 253_402_300_799_999_i64);
        // About three months, and a different time of day.
        let step = 97 * DAY_MS + 7_654_321;
        for ms in (0..=(last - first) / step)
            .map(|count| first + count * step)
            .chain([last])
        {
            let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).unwrap();
            let text = Timestamp::from_ms(ms).to_string();
            assert_eq!(text, instant.format(&format).unwrap());
            if !text.starts_with('-') {
                assert_eq!(Timestamp::parse(&text), Some(Timestamp::from_ms(ms)), "{text}");
            }
        }
        assert_eq!(Timestamp::from_ms(last + 1).to_string(), "253402300800000ms");
        assert_eq!(Timestamp::from_ms(i64::MIN).to_string(), "-9223372036854775808ms");
    }
}
