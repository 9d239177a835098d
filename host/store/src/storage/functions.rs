//! Replacements for SQL text functions whose originals in SQLite take time proportional to the product of two
//! lengths: `trim`, `instr`, `replace` and `like`, with exactly the same results. Pure.
//!
//! SQLite checks a deadline between instructions, and each of these functions is a single instruction. A function
//! that cannot be linear checks its [`Meter`].

use memchr::{memchr2, memmem};

/// Error because the call's time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late;

/// Steps between two checks of the deadline: well under a millisecond.
const STEPS_PER_CHECK: usize = 64 << 10;

/// Length above which reading a text takes noticeable time, in bytes.
const LONG_TEXT_BYTES: usize = 4 << 10;

/// Counts steps, and checks the deadline at intervals.
pub(super) struct Meter<'a> {
    left: usize,
    is_late: &'a dyn Fn() -> bool,
}

impl<'a> Meter<'a> {
    /// Meter for a text of this length. For a long text, the first step checks the deadline: one instruction may be
    /// followed by thousands of the same without a jump, where SQLite itself would check.
    pub(super) fn new(length: usize, is_late: &'a dyn Fn() -> bool) -> Meter<'a> {
        let left = if length < LONG_TEXT_BYTES {
            STEPS_PER_CHECK
        } else {
            0
        };
        Meter { left, is_late }
    }

    /// Counts this many steps.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Late> {
        match self.left.checked_sub(steps) {
            Some(left) => self.left = left,
            None if (self.is_late)() => return Err(Late),
            None => self.left = STEPS_PER_CHECK,
        }
        Ok(())
    }
}

/// Ends that are trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Left,
    Right,
    Both,
}

impl Ends {
    fn left(self) -> bool {
        self != Ends::Right
    }

    fn right(self) -> bool {
        self != Ends::Left
    }
}

/// Part of `text` without characters of `set` at its ends.
pub(super) fn trim<'t>(
    text: &'t [u8],
    set: &[u8],
    ends: Ends,
    meter: &mut Meter<'_>,
) -> Result<&'t [u8], Late> {
    // SQLite reads the set only up to its first NUL.
    let set = until_nul(set);
    meter.spend(set.len() + 1)?;
    match std::str::from_utf8(set) {
        Ok(set) => Characters::of(set).trim(text, ends, meter),
        Err(_) => trim_ill_formed(text, set, ends, meter),
    }
}

/// Characters of a well-formed set. None is a prefix or suffix of another, so their order does not matter.
struct Characters {
    ascii: u128,
    others: Vec<char>,
}

impl Characters {
    fn of(set: &str) -> Characters {
        let mut ascii = 0;
        let mut others = Vec::new();
        for character in set.chars() {
            if character.is_ascii() {
                ascii |= 1 << u32::from(character);
            } else {
                others.push(character);
            }
        }
        others.sort_unstable();
        others.dedup();
        Characters { ascii, others }
    }

    /// True if these bytes are one of the characters.
    fn have(&self, bytes: &[u8]) -> bool {
        match bytes {
            [byte] if byte.is_ascii() => self.ascii & (1 << byte) != 0,
            _ if self.others.is_empty() => false,
            _ => std::str::from_utf8(bytes).is_ok_and(|text| {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(one), None) => self.others.binary_search(&one).is_ok(),
                    _ => false,
                }
            }),
        }
    }

    fn trim<'t>(&self, mut text: &'t [u8], ends: Ends, meter: &mut Meter<'_>) -> Result<&'t [u8], Late> {
        while ends.left() && !text.is_empty() {
            meter.spend(1)?;
            let (first, rest) = text.split_at(width(text[0]).min(text.len()));
            if !self.have(first) {
                break;
            }
            text = rest;
        }
        while ends.right() && !text.is_empty() {
            meter.spend(1)?;
            let lead = text.iter().rev().take(4).position(|&byte| !is_continuation(byte));
            let start = lead.map_or(0, |back| text.len() - 1 - back);
            if !self.have(&text[start..]) {
                break;
            }
            text = &text[..start];
        }
        Ok(text)
    }
}

/// Length of the character that starts with `lead`.
fn width(lead: u8) -> usize {
    match lead {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn until_nul(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// Trims with an ill-formed set, in which the order of the parts matters: implemented like SQLite.
fn trim_ill_formed<'t>(
    mut text: &'t [u8],
    set: &[u8],
    ends: Ends,
    meter: &mut Meter<'_>,
) -> Result<&'t [u8], Late> {
    // A part is at most as long as the set. Walking the set each time avoids a list of its parts.
    let find = |meter: &mut Meter<'_>, is_end: &dyn Fn(&[u8]) -> bool| {
        let mut rest = set;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(part_length(rest));
            meter.spend(part.len())?;
            if is_end(part) {
                return Ok(Some(part.len()));
            }
            rest = others;
        }
        Ok(None)
    };
    while ends.left() && !text.is_empty() {
        let Some(length) = find(meter, &|part| text.starts_with(part))? else {
            break;
        };
        text = &text[length..];
    }
    while ends.right() && !text.is_empty() {
        let Some(length) = find(meter, &|part| text.ends_with(part))? else {
            break;
        };
        text = &text[..text.len() - length];
    }
    Ok(text)
}

/// Length of the first part: one byte, and its continuation bytes if it is a lead byte.
fn part_length(bytes: &[u8]) -> usize {
    match bytes.split_first() {
        Some((0xc0.., rest)) => 1 + rest.iter().take_while(|&&byte| is_continuation(byte)).count(),
        _ => 1,
    }
}

/// Position of `needle` in `haystack`, from 1, in characters of text or bytes of blobs. 0 if it does not occur.
pub(super) fn instr(haystack: &[u8], needle: &[u8], is_text: bool) -> usize {
    let Some(&first) = needle.first() else {
        return 1;
    };
    // Text is searched character by character, so a needle that starts with a continuation byte occurs at the start
    // or not at all.
    if is_text && is_continuation(first) {
        return usize::from(haystack.starts_with(needle));
    }
    match memmem::find(haystack, needle) {
        None => 0,
        Some(at) if !is_text => at + 1,
        Some(at) => {
            let before = haystack.iter().skip(1).take(at);
            1 + before.filter(|&&byte| !is_continuation(byte)).count()
        }
    }
}

/// Error because a replacement would be too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// `text` with each `pattern` replaced, at most `limit` bytes long.
pub(super) fn replace(text: &[u8], pattern: &[u8], with: &[u8], limit: usize) -> Result<Vec<u8>, TooLong> {
    if pattern.first().is_none_or(|&first| first == 0) {
        return Ok(text.to_owned());
    }
    let finder = memmem::Finder::new(pattern);
    let found = finder.find_iter(text).count();
    let length = text.len() - found * pattern.len() + found.saturating_mul(with.len());
    if with.len() > pattern.len() && found > 0 && length > limit {
        return Err(TooLong);
    }
    let mut replaced = Vec::with_capacity(length);
    let mut kept = 0;
    for at in finder.find_iter(text) {
        replaced.extend_from_slice(&text[kept..at]);
        replaced.extend_from_slice(with);
        kept = at + pattern.len();
    }
    replaced.extend_from_slice(&text[kept..]);
    Ok(replaced)
}

/// Wildcards of a LIKE, without the one used as escape character.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wildcards {
    many: Option<u32>,
    one: Option<u32>,
    escape: Option<u32>,
}

impl Wildcards {
    /// Wildcards of a LIKE without ESCAPE.
    pub(super) const PLAIN: Wildcards = Wildcards {
        many: Some('%' as u32),
        one: Some('_' as u32),
        escape: None,
    };

    /// Wildcards of a LIKE with this ESCAPE. `None` if it is not a single character.
    pub(super) fn escaped_by(escape: &[u8]) -> Option<Wildcards> {
        let escape = until_nul(escape);
        if escape.is_empty() || part_length(escape) != escape.len() {
            return None;
        }
        let (escape, _) = read(escape, 0);
        let unless_escape = |wildcard: Option<u32>| wildcard.filter(|&wildcard| wildcard != escape);
        Some(Wildcards {
            many: unless_escape(Wildcards::PLAIN.many),
            one: unless_escape(Wildcards::PLAIN.one),
            escape: Some(escape),
        })
    }
}

/// True if `text` matches `pattern`: ASCII letters in either case, `_` for any character, `%` for any number of
/// characters.
pub(super) fn like(
    pattern: &[u8],
    text: &[u8],
    wildcards: Wildcards,
    meter: &mut Meter<'_>,
) -> Result<bool, Late> {
    let (pattern, text) = (until_nul(pattern), until_nul(text));
    let (mut p, mut t) = (0, 0);
    // End of the last `%`, and how far its text extends. Earlier ones need not be retried.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if p == pattern.len() && t == text.len() {
            return Ok(true);
        }
        let mut steps = 1;
        match step(pattern, p, text, t, wildcards) {
            Step::Many(next) if next == pattern.len() => return Ok(true),
            Step::Many(next) => {
                retry = Some((next, t));
                p = next;
            }
            Step::Match(next_p, next_t) => {
                steps += next_t - t;
                (p, t) = (next_p, next_t);
            }
            Step::Never => return Ok(false),
            Step::Mismatch => {
                let Some((after, from)) = retry else {
                    return Ok(false);
                };
                let next = (from < text.len()).then(|| read(text, from).1);
                let Some(from) = next.and_then(|next| candidate(pattern, after, text, next, wildcards))
                else {
                    return Ok(false);
                };
                retry = Some((after, from));
                (p, t) = (after, from);
            }
        }
        meter.spend(steps)?;
    }
}

/// Result of matching one position of a pattern with one position of a text.
enum Step {
    /// A `%` that ends here.
    Many(usize),
    /// Both continue here.
    Match(usize, usize),
    Mismatch,
    /// Nothing can match this pattern.
    Never,
}

fn step(pattern: &[u8], p: usize, text: &[u8], t: usize, wildcards: Wildcards) -> Step {
    if p == pattern.len() {
        return Step::Mismatch;
    }
    let (mut wanted, mut next) = read(pattern, p);
    if Some(wanted) == wildcards.many {
        return Step::Many(next);
    }
    let is_escaped = Some(wanted) == wildcards.escape;
    if is_escaped {
        if next == pattern.len() {
            return Step::Never;
        }
        (wanted, next) = read(pattern, next);
    }
    if t == text.len() {
        return Step::Mismatch;
    }
    let (there, after) = read(text, t);
    let is_any = !is_escaped && Some(wanted) == wildcards.one;
    if is_any || fold(wanted) == fold(there) {
        Step::Match(next, after)
    } else {
        Step::Mismatch
    }
}

/// Next position from `from` where the text after a `%` can start.
fn candidate(pattern: &[u8], after: usize, text: &[u8], from: usize, wildcards: Wildcards) -> Option<usize> {
    let (wanted, _) = read(pattern, after);
    let special = [wildcards.many, wildcards.one, wildcards.escape];
    match u8::try_from(wanted) {
        Ok(byte) if byte.is_ascii() && !special.contains(&Some(wanted)) => {
            let found = memchr2(
                byte.to_ascii_lowercase(),
                byte.to_ascii_uppercase(),
                &text[from..],
            )?;
            Some(from + found)
        }
        _ => Some(from),
    }
}

fn fold(character: u32) -> u32 {
    match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() => byte.to_ascii_lowercase().into(),
        _ => character,
    }
}

/// Character at `at` and the start of the next one, as SQLite reads them, including ill-formed ones.
fn read(text: &[u8], at: usize) -> (u32, usize) {
    let lead = text[at];
    let mut next = at + 1;
    let mut character = u32::from(match lead {
        0xfe.. => 0,
        0xfc.. => lead & 0x01,
        0xf8.. => lead & 0x03,
        0xf0.. => lead & 0x07,
        0xe0.. => lead & 0x0f,
        0xc0.. => lead & 0x1f,
        _ => return (lead.into(), next),
    });
    while let Some(&byte) = text.get(next).filter(|&&byte| is_continuation(byte)) {
        character = (character << 6).wrapping_add(u32::from(byte & 0x3f));
        next += 1;
    }
    let is_sound = character >= 0x80 && character & 0xffff_f800 != 0xd800;
    (if is_sound { character } else { 0xfffd }, next)
}
