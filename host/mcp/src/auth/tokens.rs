//! Lines of the token file: names, tokens or their hashes, scopes and expiry. No I/O.
//!
//! A hash is the SHA-256 of a token. Slow hashes protect secrets that people choose. A token of 256 random bits cannot
//! be guessed even with a fast hash, and each request needs an immediate answer.

use std::fmt;

use sha2::{Digest as _, Sha256};
use tollgate_core::hash::{hex, unhex};
use tollgate_core::scopes::Scopes;
use tollgate_core::text::is_name;
use tollgate_sdk::Timestamp;

/// Owner of a token without a name.
const DEFAULT_OWNER: &str = "default";
/// Shortest token, in characters. Generated tokens have 64 hexadecimal digits.
const MIN_TOKEN_BYTES: usize = 32;
/// Longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 512;
/// Prefix of a hash.
const HASH_PREFIX: &str = "sha256:";

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes a token.
    pub fn of(token: &str) -> TokenHash {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HASH_PREFIX}{}", hex(&self.0))
    }
}

/// A line of the token file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLine {
    /// Name of the owner.
    pub name: String,
    /// Hash of the token.
    pub hash: TokenHash,
    /// True if the file contains the token itself.
    pub is_plain: bool,
    /// Scopes of the token.
    pub scopes: Scopes,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
}

impl TokenLine {
    fn read(line: &str) -> Result<TokenLine, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, token, options) = match words[..] {
            [token] => (DEFAULT_OWNER, token, &[][..]),
            [name, token, ref options @ ..] => (name, token, options),
            [] => return Err("a line must contain a token, or a name and a token".to_owned()),
        };
        if !is_name(name) {
            return Err("a name consists of at most 64 letters, digits, `-`, `_` and `.`".to_owned());
        }
        let (hash, is_plain) = secret(token)?;
        let mut read = TokenLine {
            name: name.to_owned(),
            hash,
            is_plain,
            scopes: Scopes::default(),
            expires_ms: None,
        };
        for option in options {
            read.option(option)?;
        }
        Ok(read)
    }

    fn option(&mut self, option: &str) -> Result<(), String> {
        match option.split_once('=') {
            Some(("scope", scopes)) => self.scopes = scopes.parse()?,
            Some(("expires", time)) => {
                let time = Timestamp::parse(time)
                    .ok_or_else(|| "an expiry must have the form expires=2027-01-31T00:00:00Z".to_owned())?;
                self.expires_ms = Some(time.as_ms());
            }
            _ => {
                return Err(
                    "a line must contain a token, or a name and a token; scope=… and expires=… can follow"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Returns whether the token has expired.
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|end| end <= now_ms)
    }
}

impl fmt::Display for TokenLine {
    /// Writes the line with the token's hash, never with the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} scope={}", self.name, self.hash, self.scopes)?;
        match self.expires_ms {
            Some(end) => write!(f, " expires={}", Timestamp::from_ms(end)),
            None => Ok(()),
        }
    }
}

/// Hash that a word is or has, and whether the word is the token itself.
fn secret(word: &str) -> Result<(TokenHash, bool), String> {
    if let Some(digits) = word.strip_prefix(HASH_PREFIX) {
        let hash = unhex::<32>(digits).ok_or_else(|| {
            format!(
                "a hash must be {HASH_PREFIX} and 64 hex digits; create a token with `tollgate tokens add`"
            )
        })?;
        return Ok((TokenHash(hash), false));
    }
    if !word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token must contain only visible ASCII characters".to_owned());
    }
    if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&word.len()) {
        return Err(format!(
            "a token must have {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} characters; create one with `tollgate tokens add \
             NAME`"
        ));
    }
    Ok((TokenHash::of(word), true))
}

/// Valid lines of a token file, and the mistakes in the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLines {
    /// Valid lines.
    pub lines: Vec<TokenLine>,
    /// Mistakes, each with the number of its line.
    pub problems: Vec<String>,
}

/// Content of a line without blanks and comments. `None` if nothing is left.
fn said(line: &str) -> Option<&str> {
    let line = line.trim();
    (!line.is_empty() && !line.starts_with('#')).then_some(line)
}

impl TokenLines {
    /// Parses lines `TOKEN` or `NAME TOKEN [scope=…] [expires=…]`. `#` starts a comment.
    pub fn parse(text: &str) -> TokenLines {
        let mut read = TokenLines::default();
        for (number, line) in text.lines().enumerate() {
            match said(line).map(TokenLine::read) {
                None => {}
                Some(Ok(line)) if read.lines.iter().any(|known| known.name == line.name) => {
                    read.problems.push(format!(
                        "{}: {} already has a token on another line",
                        number + 1,
                        line.name
                    ));
                }
                Some(Ok(line)) => match read.lines.iter().find(|known| known.hash == line.hash) {
                    // A shared token would have the scopes of both names, and would remain valid when one name is
                    // revoked.
                    Some(known) => {
                        let again = format!("{}: {} has the same token", number + 1, known.name);
                        read.problems.push(again);
                    }
                    None => read.lines.push(line),
                },
                Some(Err(problem)) => read.problems.push(format!("{}: {problem}", number + 1)),
            }
        }
        read
    }

    /// Appends a line to a text.
    pub fn added(text: &str, line: &TokenLine) -> Result<String, String> {
        let read = TokenLines::parse(text);
        if read.lines.iter().any(|known| known.name == line.name) {
            return Err(format!(
                "{0} already has a token; revoke that token first: tollgate tokens revoke {0}",
                line.name
            ));
        }
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Ok(format!("{text}{end}{line}\n"))
    }

    /// Removes the lines of a name from a text. Comments and other lines are unchanged.
    pub fn without(text: &str, name: &str) -> Result<String, String> {
        // A line whose second half is invalid still belongs to its name, because a revoked token must not remain.
        let is_theirs = |line: &str| {
            said(line).is_some_and(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [_] => name == DEFAULT_OWNER,
                [named, ..] => named == name,
                [] => false,
            })
        };
        if !text.lines().any(is_theirs) {
            let read = TokenLines::parse(text);
            let names: Vec<&str> = read.lines.iter().map(|line| line.name.as_str()).collect();
            return Err(format!(
                "{name} has no token; names with tokens: {}",
                names.join(", ")
            ));
        }
        let kept = text.lines().filter(|line| !is_theirs(line));
        Ok(kept.map(|line| format!("{line}\n")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn tokens_have_owners_and_every_bad_line_is_named() {
        let hash = TokenHash::of(&TOKEN.replace('0', "z"));
        let read = TokenLines::parse(&format!(
            "# ours\nada {TOKEN}\n\n{TOKEN}x\nbob {hash} scope=read,see-all expires=2027-01-01T00:00:00Z\n"
        ));
        assert_eq!(read.problems, [] as [String; 0]);
        let names: Vec<_> = read
            .lines
            .iter()
            .map(|line| (line.name.as_str(), line.is_plain))
            .collect();
        assert_eq!(names, [("ada", true), ("default", true), ("bob", false)]);
        assert_eq!(read.lines[0].hash, TokenHash::of(TOKEN));
        assert_eq!(read.lines[2].hash, hash);
        assert_eq!(
            read.lines[2].to_string(),
            format!("bob {hash} scope=read,see-all expires=2027-01-01T00:00:00.000Z")
        );
        let again = TokenLines::parse(&read.lines[2].to_string());
        assert_eq!(again.lines, read.lines[2..]);
        let bad = TokenLines::parse(&format!(
            "ada {TOKEN}\nada {TOKEN}x\na/b {TOKEN}\nshort\na {TOKEN} c\nb {TOKEN} scope=admin\nc {TOKEN} expires=soon\n\
             d sha256:12\neve nineteen-characters\nfay {TOKEN}\n"
        ));
        expect_test::expect![[r#"
            2: ada already has a token on another line
            3: a name consists of at most 64 letters, digits, `-`, `_` and `.`
            4: a token must have 32 to 512 characters; create one with `tollgate tokens add NAME`
            5: a line must contain a token, or a name and a token; scope=… and expires=… can follow
            6: a scope is read, write, metrics or see-all
            7: an expiry must have the form expires=2027-01-31T00:00:00Z
            8: a hash must be sha256: and 64 hex digits; create a token with `tollgate tokens add`
            9: a token must have 32 to 512 characters; create one with `tollgate tokens add NAME`
            10: ada has the same token"#]]
        .assert_eq(&bad.problems.join("\n"));
    }

    #[test]
    fn lines_come_and_go_and_what_is_around_them_stays() {
        let line = TokenLines::parse(&format!("bob {TOKEN}")).lines.remove(0);
        let with = TokenLines::added("# ours\nada xyz", &line).unwrap();
        assert_eq!(with, format!("# ours\nada xyz\n{line}\n"));
        assert!(!with.contains(TOKEN), "only its hash is kept");
        assert!(
            TokenLines::added(&with, &line)
                .unwrap_err()
                .contains("revoke that token first")
        );
        assert_eq!(TokenLines::without(&with, "bob").unwrap(), "# ours\nada xyz\n");
        assert_eq!(
            TokenLines::without(&with, "ada").unwrap(),
            format!("# ours\n{line}\n"),
            "a line that is wrong goes, too"
        );
        assert_eq!(TokenLines::without(&format!("{TOKEN}\n"), "default").unwrap(), "");
        let none = TokenLines::without(&with, "eve").unwrap_err();
        assert_eq!(none, "eve has no token; names with tokens: bob");
    }
}
