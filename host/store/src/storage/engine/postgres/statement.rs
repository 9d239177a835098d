//! Statement texts: parameters in PostgreSQL's notation, and the cache of prepared statements.

use std::collections::HashMap;

use tokio_postgres::Statement;

/// Prepared statements that are cached for each session.
const STATEMENT_CACHE: usize = 256;

/// Statement of the host with `$1` for `?1`. A `?` without a number gets the number after the highest so far, as in
/// SQLite. The text comes from the host, so only quotes and comments can hide a question mark.
pub(super) fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut highest = 0_u32;
    let mut rest = sql;
    while let Some(at) = rest.find(['?', '\'', '"', '-']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let end = match tail.as_bytes()[0] {
            b'?' => {
                let digits = tail[1..].bytes().take_while(u8::is_ascii_digit).count();
                let number = tail[1..=digits].parse().unwrap_or(highest.saturating_add(1));
                highest = highest.max(number);
                out.push('$');
                out.push_str(&number.to_string());
                rest = &tail[1 + digits..];
                continue;
            }
            b'-' if tail.starts_with("--") => tail.find('\n').unwrap_or(tail.len()),
            b'-' => 1,
            // A doubled quote ends one literal and begins the next.
            quote => tail[1..].find(char::from(quote)).map_or(tail.len(), |at| at + 2),
        };
        let (same, tail) = tail.split_at(end);
        out.push_str(same);
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Cache of prepared statements by the host's text. The least recently used one is dropped first.
#[derive(Default)]
pub(super) struct Cache {
    kept: HashMap<Box<str>, (Statement, u64)>,
    uses: u64,
}

impl Cache {
    pub(super) fn get(&mut self, sql: &str) -> Option<Statement> {
        self.uses += 1;
        let (statement, used) = self.kept.get_mut(sql)?;
        *used = self.uses;
        Some(statement.clone())
    }

    pub(super) fn keep(&mut self, sql: &str, statement: &Statement) {
        if self.kept.len() >= STATEMENT_CACHE {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(sql, _)| sql.clone()) {
                self.kept.remove(&oldest);
            }
        }
        self.kept.insert(sql.into(), (statement.clone(), self.uses));
    }

    /// Clears the cache after a reconnect.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn parameters_get_their_numbers_and_quotes_and_comments_stay() {
        for (sql, expected) in [
            ("SELECT ?1, ?2", "SELECT $1, $2"),
            ("x = ?12 OR y = ?1", "x = $12 OR y = $1"),
            ("IN (?, ?, ?)", "IN ($1, $2, $3)"),
            ("?3 ? ?1 ?", "$3 $4 $1 $5"),
            ("'?1' ?1 'it''s ?' \"?\"", "'?1' $1 'it''s ?' \"?\""),
            ("a - ?1 -- why?\n = ?2", "a - $1 -- why?\n = $2"),
            ("-- ?", "-- ?"),
            ("'open ?", "'open ?"),
            ("", ""),
        ] {
            assert_eq!(numbered(sql), expected);
        }
    }
}
