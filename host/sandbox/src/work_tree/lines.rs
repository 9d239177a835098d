//! Line-based diff of two texts in unified form.

use std::fmt::Write as _;
use std::ops::Range;

/// Context lines around a change.
const CONTEXT_LINES: usize = 3;
/// Most edits in the search for the shortest script. Past that, the differing middle is replaced as a whole.
const MAX_EDITS: usize = 1_000;
/// Number of bytes that are checked to distinguish text from other content.
const SNIFFED_BYTES: usize = 8_000;

/// Two contents that differ.
pub(super) struct Lines<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Ranges of lines that are replaced, in order.
    changes: Vec<(Range<usize>, Range<usize>)>,
}

/// Lines of a text. `None` for other content.
fn lines(content: &[u8]) -> Option<Vec<&str>> {
    let start = content.get(..SNIFFED_BYTES.min(content.len()))?;
    if start.contains(&0) {
        return None;
    }
    Some(std::str::from_utf8(content).ok()?.split_inclusive('\n').collect())
}

impl<'a> Lines<'a> {
    /// Compares two texts. `None` if either is not text.
    pub(super) fn of(old: &'a [u8], new: &'a [u8]) -> Option<Lines<'a>> {
        let (old, new) = (lines(old)?, lines(new)?);
        let changes = changes(&old, &new);
        Some(Lines { old, new, changes })
    }

    /// Number of added and of removed lines.
    pub(super) fn counts(&self) -> (u64, u64) {
        let sum = |count: usize, sum: u64| sum.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        self.changes.iter().fold((0, 0), |(added, removed), (old, new)| {
            (sum(new.len(), added), sum(old.len(), removed))
        })
    }

    /// Hunks of a unified diff.
    pub(super) fn hunks(&self, patch: &mut String) {
        let mut rest = self.changes.as_slice();
        while let Some((first, _)) = rest.first() {
            // Changes whose contexts touch form one hunk.
            let mut count = 1;
            let mut end = first.end;
            while let Some((next, _)) = rest
                .get(count)
                .filter(|(next, _)| next.start <= end + 2 * CONTEXT_LINES)
            {
                end = next.end;
                count += 1;
            }
            let (hunk, later) = rest.split_at(count);
            self.hunk(hunk, patch);
            rest = later;
        }
    }

    fn hunk(&self, changes: &[(Range<usize>, Range<usize>)], patch: &mut String) {
        let (Some((first_old, first_new)), Some((last_old, last_new))) = (changes.first(), changes.last())
        else {
            return;
        };
        let before = CONTEXT_LINES.min(first_old.start);
        let after = CONTEXT_LINES.min(self.old.len() - last_old.end);
        let old = first_old.start - before..last_old.end + after;
        let new = first_new.start - before..last_new.end + after;
        let place = |range: &Range<usize>| match range.len() {
            0 => format!("{},0", range.start),
            1 => format!("{}", range.start + 1),
            count => format!("{},{count}", range.start + 1),
        };
        let _ = writeln!(patch, "@@ -{} +{} @@", place(&old), place(&new));
        let mut at = old.start;
        for (gone, come) in changes {
            self.told(' ', &self.old[at..gone.start], patch);
            self.told('-', &self.old[gone.clone()], patch);
            self.told('+', &self.new[come.clone()], patch);
            at = gone.end;
        }
        self.told(' ', &self.old[at..old.end], patch);
    }

    fn told(&self, mark: char, lines: &[&str], patch: &mut String) {
        for line in lines {
            patch.push(mark);
            patch.push_str(line);
            if !line.ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Ranges in which two lists of lines differ.
fn changes(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let end = old[start..]
        .iter()
        .rev()
        .zip(new[start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    if start == old_end && start == new_end {
        return Vec::new();
    }
    let (a, b) = (&old[start..old_end], &new[start..new_end]);
    let matches = if a.is_empty() || b.is_empty() {
        Some(Vec::new())
    } else {
        matches(a, b)
    };
    let mut changes = Vec::new();
    let (mut x, mut y) = (0, 0);
    let ends = std::iter::once((a.len(), b.len()));
    for (next_x, next_y) in matches.unwrap_or_default().into_iter().chain(ends) {
        if next_x > x || next_y > y {
            changes.push((start + x..start + next_x, start + y..start + next_y));
        }
        (x, y) = (next_x + 1, next_y + 1);
    }
    changes
}

/// Pairs of equal lines in a longest common sequence, by Myers' algorithm. `None` if too much differs.
fn matches(a: &[&str], b: &[&str]) -> Option<Vec<(usize, usize)>> {
    let limit = (a.len() + b.len()).min(MAX_EDITS);
    // Furthest position in `a` on each diagonal, from `-limit - 1` on.
    let middle = limit + 1;
    let mut furthest = vec![0_usize; 2 * middle + 1];
    let mut history = Vec::new();
    for edits in 0..=limit {
        history.push(furthest.clone());
        for step in 0..=edits {
            // Diagonal `k = 2 * step - edits`.
            let at = middle + 2 * step - edits;
            let down = step == 0 || (step != edits && furthest[at - 1] < furthest[at + 1]);
            let mut x = if down {
                furthest[at + 1]
            } else {
                furthest[at - 1] + 1
            };
            // `y = x - k`, which may be past the end for positions outside.
            let Some(mut y) = (x + edits).checked_sub(2 * step) else {
                continue;
            };
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at] = x;
            if x >= a.len() && y >= b.len() {
                return Some(walk_back(&history, middle, (a.len(), b.len())));
            }
        }
    }
    None
}

fn walk_back(history: &[Vec<usize>], middle: usize, end: (usize, usize)) -> Vec<(usize, usize)> {
    let (mut x, mut y) = end;
    let mut pairs = Vec::new();
    for (edits, furthest) in history.iter().enumerate().rev() {
        let at = middle + x - y;
        let low = at == middle - edits;
        let high = at == middle + edits;
        let down = low || (!high && furthest[at - 1] < furthest[at + 1]);
        let from = if down { at + 1 } else { at - 1 };
        let before_x = furthest[from];
        let before_y = (before_x + middle).saturating_sub(from);
        let (start_x, start_y) = match edits {
            0 => (0, 0),
            _ if down => (before_x, before_y + 1),
            _ => (before_x + 1, before_y),
        };
        while x > start_x && y > start_y {
            (x, y) = (x - 1, y - 1);
            pairs.push((x, y));
        }
        if edits > 0 {
            (x, y) = (before_x, before_y);
        }
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(old: &str, new: &str) -> (String, (u64, u64)) {
        let lines = Lines::of(old.as_bytes(), new.as_bytes()).unwrap();
        let mut patch = String::new();
        lines.hunks(&mut patch);
        (patch, lines.counts())
    }

    #[test]
    fn a_diff_has_hunks_with_context() {
        let old: String = (1..=30).map(|number| format!("{number}\n")).collect();
        let new = old
            .replace("5\n6\n", "5\nfive and a half\n6\n")
            .replace("20\n", "");
        let (patch, counts) = patch(&old, &new);
        assert_eq!(counts, (1, 1));
        assert_eq!(
            patch,
            "@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+five and a half\n 6\n 7\n 8\n\
             @@ -17,7 +18,6 @@\n 17\n 18\n 19\n-20\n 21\n 22\n 23\n"
        );
    }

    #[test]
    fn ends_without_a_line_feed_and_new_and_removed_files_are_told() {
        assert_eq!(
            patch("a\nb", "a\nc"),
            (
                "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
                    .to_owned(),
                (1, 1)
            )
        );
        assert_eq!(patch("", "a\n"), ("@@ -0,0 +1 @@\n+a\n".to_owned(), (1, 0)));
        assert_eq!(patch("a\n", ""), ("@@ -1 +0,0 @@\n-a\n".to_owned(), (0, 1)));
        assert_eq!(patch("a\n", "a\n"), (String::new(), (0, 0)));
        assert!(Lines::of(b"a\0", b"a").is_none());
    }

    proptest::proptest! {
        /// The removed and added lines make the new text of the old one.
        #[test]
        fn the_changes_lead_from_one_text_to_the_other(old in "[abc\n]{0,60}", new in "[abc\n]{0,60}") {
            let lines = Lines::of(old.as_bytes(), new.as_bytes()).unwrap();
            let (mut made, mut at) = (String::new(), 0);
            for (gone, come) in &lines.changes {
                made.extend(lines.old[at..gone.start].iter().copied());
                made.extend(lines.new[come.clone()].iter().copied());
                at = gone.end;
            }
            made.extend(lines.old[at..].iter().copied());
            proptest::prop_assert_eq!(made, new);
        }
    }
}
