//! Span of the caller, in the format of W3C Trace Context.

/// Parent span of a call, as the caller names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// Trace of both spans.
    pub trace: [u8; 16],
    /// Span of the caller.
    pub span: [u8; 8],
    /// True if the caller records the span. If not, nothing that is recorded below it would be found.
    pub is_sampled: bool,
}

impl Parent {
    /// Parses a `traceparent`. An invalid value means no parent, because a call is not refused because of tracing.
    pub fn parse(text: &str) -> Option<Parent> {
        let mut fields = text.split('-');
        let version = byte(fields.next()?)?;
        let trace = u128::from_str_radix(digits(fields.next()?, 32)?, 16).ok()?;
        let span = u64::from_str_radix(digits(fields.next()?, 16)?, 16).ok()?;
        let flags = byte(fields.next()?)?;
        // Later versions may have more fields after these, version 0 may not, and version 255 is invalid.
        let is_known = match version {
            0 => fields.next().is_none(),
            version => version != u8::MAX,
        };
        (is_known && trace != 0 && span != 0).then_some(Parent {
            trace: trace.to_be_bytes(),
            span: span.to_be_bytes(),
            is_sampled: flags & 1 == 1,
        })
    }
}

fn byte(field: &str) -> Option<u8> {
    u8::from_str_radix(digits(field, 2)?, 16).ok()
}

/// Field of exactly this many digits. A number parser would also accept fewer digits, capitals and a sign.
fn digits(field: &str, count: usize) -> Option<&str> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (field.len() == count && field.bytes().all(is_digit)).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_as_it_was_written() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = Parent::parse(text).unwrap();
        assert_eq!(parent.trace[..2], [0x4b, 0xf9]);
        assert_eq!(parent.span, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(parent.is_sampled);
        let unsampled = Parent::parse(&text.replace("-01", "-02")).unwrap();
        assert!(!unsampled.is_sampled);
        // A version that is not there yet.
        assert_eq!(Parent::parse(&format!("cc{}-more", &text[2..])), Some(parent));
    }

    #[test]
    fn anything_else_is_no_parent() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6-00f067aa0ba902b7-01",
            "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Parent::parse(text), None, "{text:?}");
        }
    }
}
