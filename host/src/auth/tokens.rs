//! The operator's own tokens: a file that only its owner may read, or one in the environment.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

use super::Identity;
use crate::config::is_name;

/// Who a token without a name belongs to.
const UNNAMED: &str = "default";
/// Shortest token. A hex digit is four bits, so that 64 of them are what is made.
const SHORTEST: usize = 32;
/// Longest token, in bytes.
const LONGEST: usize = 512;
/// Largest file, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Why tokens cannot be used. Never says what they are.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("the token file {path} cannot be used")]
    Unusable {
        /// Which file.
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// Others than its owner can read it.
    #[error("the token file {0} can be read by others; run `chmod 600 {0}`")]
    Exposed(String),
    /// Everything that is wrong with the tokens.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}

/// Tokens and whose they are. Only hashes are kept.
pub struct Tokens(Vec<(Identity, [u8; 32])>);

impl Tokens {
    /// Reads a file of lines `NAME TOKEN` or `TOKEN`, `#` starting a comment. A file that is not there
    /// is made, with one token of 256 random bits; `made` hears of it.
    pub fn open(path: &Path, made: impl FnOnce(&Path)) -> Result<Tokens, TokenError> {
        let unusable = |source| TokenError::Unusable {
            path: path.display().to_string(),
            source,
        };
        if !path.try_exists().map_err(unusable)? {
            make(path).map_err(unusable)?;
            made(path);
        }
        #[allow(clippy::disallowed_methods, reason = "the operator names the file")]
        let file = File::open(path).map_err(unusable)?;
        if file.metadata().map_err(unusable)?.mode() & 0o077 != 0 {
            return Err(TokenError::Exposed(path.display().to_string()));
        }
        let mut text = String::new();
        file.take(MAX_FILE).read_to_string(&mut text).map_err(unusable)?;
        Tokens::parse(&text).map_err(|problems| {
            let placed = problems
                .into_iter()
                .map(|problem| format!("{}:{problem}", path.display()));
            TokenError::Invalid(placed.collect())
        })
    }

    /// One token, of who has no name.
    pub fn one(token: &str) -> Result<Tokens, TokenError> {
        Tokens::parse(token.trim()).map_err(|problems| {
            let placed = problems
                .into_iter()
                .map(|problem| format!("TOLLGATE_TOKEN:{problem}"));
            TokenError::Invalid(placed.collect())
        })
    }

    /// Both these and others.
    #[must_use]
    pub fn and(mut self, others: Tokens) -> Tokens {
        self.0.extend(others.0);
        self
    }

    /// Reads the lines. The error names each that is wrong, by its number.
    pub(super) fn parse(text: &str) -> Result<Tokens, Vec<String>> {
        let (mut tokens, mut problems): (Vec<(Identity, [u8; 32])>, Vec<String>) = Default::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match entry(line) {
                Ok((name, _)) if tokens.iter().any(|(known, _)| *known == Identity::of_token(name)) => {
                    problems.push(format!("{}: a second token of {name}", number + 1));
                }
                Ok((name, token)) => tokens.push((Identity::of_token(name), hash(token))),
                Err(problem) => problems.push(format!("{}: {problem}", number + 1)),
            }
        }
        if tokens.is_empty() && problems.is_empty() {
            problems.push("1: there is no token".to_owned());
        }
        if problems.is_empty() {
            Ok(Tokens(tokens))
        } else {
            Err(problems)
        }
    }

    /// Whose token this is. Takes as long whichever it is and whatever is like it.
    pub fn find(&self, token: &str) -> Option<Identity> {
        let presented = hash(token);
        let mut found = None;
        for (identity, known) in &self.0 {
            if bool::from(known.ct_eq(&presented)) {
                found = Some(identity.clone());
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(identity, _)| identity.as_str());
        f.debug_tuple("Tokens").field(&names.collect::<Vec<_>>()).finish()
    }
}

fn entry(line: &str) -> Result<(&str, &str), String> {
    let mut words = line.split_whitespace();
    let (name, token) = match (words.next(), words.next(), words.next()) {
        (Some(token), None, _) => (UNNAMED, token),
        (Some(name), Some(token), None) => (name, token),
        _ => return Err("a line is a token, or a name and a token".to_owned()),
    };
    if !is_name(name) {
        return Err("a name has letters, digits, `-`, `_` and `.`, at most 64".to_owned());
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token has visible ASCII characters only".to_owned());
    }
    if !(SHORTEST..=LONGEST).contains(&token.len()) {
        return Err(format!("a token has {SHORTEST} to {LONGEST} characters"));
    }
    Ok((name, token))
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn make(path: &Path) -> std::io::Result<()> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    #[allow(clippy::disallowed_methods, reason = "the operator names the file")]
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{token}")
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make and look at files")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn tokens_have_owners_and_every_bad_line_is_named() {
        let tokens = Tokens::parse(&format!("# ours\nada {TOKEN}\n\n{TOKEN}x\n")).unwrap();
        assert_eq!(tokens.find(TOKEN).unwrap().as_str(), "token:ada");
        assert_eq!(
            tokens.find(&format!("{TOKEN}x")).unwrap().as_str(),
            "token:default"
        );
        assert_eq!(tokens.find(""), None);
        assert_eq!(format!("{tokens:?}"), r#"Tokens(["token:ada", "token:default"])"#);
        let problems = Tokens::parse(&format!("ada {TOKEN}\nada {TOKEN}x\na/b {TOKEN}\nshort\na b c\n"));
        expect_test::expect![[r#"
            2: a second token of ada
            3: a name has letters, digits, `-`, `_` and `.`, at most 64
            4: a token has 32 to 512 characters
            5: a line is a token, or a name and a token"#]]
        .assert_eq(&problems.unwrap_err().join("\n"));
        assert_eq!(Tokens::parse("# none\n").unwrap_err(), ["1: there is no token"]);
    }

    #[test]
    fn a_missing_file_is_made_for_its_owner_alone_and_an_exposed_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let mut told = false;
        Tokens::open(&path, |_| told = true).unwrap();
        assert!(told);
        let token = std::fs::read_to_string(&path).unwrap();
        assert_eq!(token.trim().len(), 64);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = Tokens::open(&path, |_| panic!("it is there")).unwrap();
        assert_eq!(again.find(token.trim()).unwrap().as_str(), "token:default");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Tokens::open(&path, |_| ()).unwrap_err();
        assert!(matches!(refused, TokenError::Exposed(_)), "{refused}");
    }
}
