//! The operator's active tokens: those of a file that only its owner may read, and one from the environment. The file
//! is reloaded while the host runs.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use subtle::ConstantTimeEq as _;
use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tollgate_core::file;
use tollgate_core::hash::hex;

use super::tokens::{TokenHash, TokenLine, TokenLines};
use super::{Bearer, Identity};

/// Largest file, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Reason why tokens cannot be used. Never contains a token.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read or created.
    #[error("cannot use the token file {path}")]
    Unusable {
        /// Path of the file.
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// Users other than the owner can read the file.
    #[error("the token file {0} can be read by others; run `chmod 600 {0}`")]
    Exposed(String),
    /// All mistakes in the tokens.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}

/// An active token.
#[derive(Debug, Clone)]
struct Entry {
    line: TokenLine,
    identity: Identity,
    /// Cancelled when the token is removed or expires.
    revoked: CancellationToken,
}

impl Entry {
    fn of(line: TokenLine) -> Entry {
        Entry {
            identity: Identity::of_token(&line.name, line.scopes.rights()),
            line,
            revoked: CancellationToken::new(),
        }
    }

    /// Returns whether sessions of this token may continue with a reloaded line: the same token with the same scopes.
    fn is_still(&self, line: &TokenLine) -> bool {
        let known = &self.line;
        (&known.name, known.hash, &known.scopes) == (&line.name, line.hash, &line.scopes)
    }
}

/// State of a presented token.
#[derive(Debug)]
pub(super) enum Found {
    /// The token is valid.
    Valid(Bearer),
    /// The token has expired.
    Expired,
    /// The token is unknown.
    Unknown,
}

/// Changes found by reloading the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Names with a new or changed token.
    pub added: Vec<String>,
    /// Names whose token was removed or changed.
    pub removed: Vec<String>,
}

/// The active tokens.
pub struct Keyring {
    file: Option<PathBuf>,
    /// Token from the environment, which never changes.
    fixed: Option<Entry>,
    filed: ArcSwap<Vec<Entry>>,
    changed: Notify,
}

impl Keyring {
    /// Opens a file of tokens and adds one more token. If the file does not exist, creates it with one token of 256
    /// random bits and calls `made`. `None` if neither is configured.
    pub fn open(
        file: Option<&Path>,
        named: Option<&str>,
        made: impl FnOnce(&Path),
    ) -> Result<Option<Keyring>, TokenError> {
        let fixed = named.map(one).transpose()?;
        let mut filed = Vec::new();
        if let Some(path) = file {
            if !path.try_exists().map_err(|source| unusable(path, source))? {
                make(path).map_err(|source| unusable(path, source))?;
                made(path);
            }
            let (text, is_exposed) = read(path)?;
            if is_exposed {
                return Err(exposed(path));
            }
            let mut read = TokenLines::parse(&text);
            if read.lines.is_empty() && read.problems.is_empty() {
                read.problems.push(
                    "1: the file contains no token; create one with `tollgate tokens add NAME`".to_owned(),
                );
            }
            if !read.problems.is_empty() {
                return Err(placed(path, read.problems));
            }
            filed = read.lines.into_iter().map(Entry::of).collect();
        }
        if file.is_none() && fixed.is_none() {
            return Ok(None);
        }
        Ok(Some(Keyring {
            file: file.map(Path::to_owned),
            fixed,
            filed: ArcSwap::from_pointee(filed),
            changed: Notify::new(),
        }))
    }

    /// File that is reloaded.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reloads the file. Removed tokens stop working immediately. If the file cannot be read, all of its tokens stop
    /// working. While the file has mistakes, new tokens are not accepted.
    pub fn refresh(&self) -> Result<Refreshed, TokenError> {
        let Some(path) = &self.file else {
            return Ok(Refreshed::default());
        };
        let (read, failure) = match read(path) {
            Err(err) => (TokenLines::default(), Some(err)),
            Ok((text, is_exposed)) => {
                let read = TokenLines::parse(&text);
                let failure = match is_exposed {
                    true => Some(exposed(path)),
                    false if read.problems.is_empty() => None,
                    false => Some(placed(path, read.problems.clone())),
                };
                (read, failure)
            }
        };
        let changed = self.replace(read.lines, failure.is_none());
        match failure {
            None => Ok(changed),
            Some(err) => Err(err),
        }
    }

    fn replace(&self, lines: Vec<TokenLine>, takes_new: bool) -> Refreshed {
        let before = self.filed.load_full();
        let mut changed = Refreshed::default();
        let mut entries = Vec::new();
        for line in lines {
            let known = before
                .iter()
                .find(|entry| entry.is_still(&line) && !entry.revoked.is_cancelled());
            match known {
                Some(known) => {
                    let known = known.clone();
                    // A file with mistakes may shorten a token's life but not extend it.
                    let expires_ms = match takes_new {
                        true => line.expires_ms,
                        false => sooner(known.line.expires_ms, line.expires_ms),
                    };
                    let line = TokenLine { expires_ms, ..line };
                    entries.push(Entry { line, ..known });
                }
                None if takes_new => {
                    changed.added.push(line.name.clone());
                    entries.push(Entry::of(line));
                }
                None => {}
            }
        }
        let gone = before
            .iter()
            .filter(|entry| !entries.iter().any(|now| now.is_still(&entry.line)));
        let gone: Vec<Entry> = gone.cloned().collect();
        // New requests with the removed tokens are refused before their running ones are ended.
        self.filed.store(Arc::new(entries));
        for entry in gone {
            changed.removed.push(entry.line.name);
            entry.revoked.cancel();
        }
        self.changed.notify_waiters();
        changed
    }

    /// Ends the sessions and requests of expired tokens.
    pub fn expire(&self, now_ms: i64) {
        let filed = self.filed.load();
        let all = filed.iter().chain(&self.fixed);
        for entry in all.filter(|entry| entry.line.is_over(now_ms)) {
            entry.revoked.cancel();
        }
    }

    /// Waits until the next reload changes the tokens.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Finds the owner of a token, in time that does not depend on the token or on similar ones.
    pub(super) fn find(&self, token: &str, now_ms: i64) -> Found {
        let presented = TokenHash::of(token);
        let filed = self.filed.load();
        let mut found = None;
        for entry in filed.iter().chain(&self.fixed) {
            if bool::from(entry.line.hash.as_bytes().ct_eq(presented.as_bytes())) {
                found = Some(entry);
            }
        }
        match found {
            None => Found::Unknown,
            Some(entry) if entry.line.is_over(now_ms) => Found::Expired,
            Some(entry) => Found::Valid(Bearer {
                identity: entry.identity.clone(),
                revoked: Some(entry.revoked.clone()),
                until_ms: None,
            }),
        }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filed = self.filed.load();
        let names = filed
            .iter()
            .chain(&self.fixed)
            .map(|entry| entry.identity.as_str());
        f.debug_tuple("Keyring")
            .field(&names.collect::<Vec<_>>())
            .finish()
    }
}

fn sooner(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Token from the environment.
fn one(token: &str) -> Result<Entry, TokenError> {
    let mut read = TokenLines::parse(token.trim());
    let says_nothing = read.lines.is_empty() && read.problems.is_empty();
    if says_nothing || read.lines.len() > 1 {
        read.problems.push("1: exactly one token is required".to_owned());
    }
    match read.lines.pop() {
        Some(line) if read.problems.is_empty() => Ok(Entry::of(line)),
        _ => {
            let placed = read.problems.into_iter();
            Err(TokenError::Invalid(
                placed
                    .map(|problem| format!("TOLLGATE_TOKEN:{problem}"))
                    .collect(),
            ))
        }
    }
}

fn unusable(path: &Path, source: std::io::Error) -> TokenError {
    TokenError::Unusable {
        path: path.display().to_string(),
        source,
    }
}

fn exposed(path: &Path) -> TokenError {
    TokenError::Exposed(path.display().to_string())
}

fn placed(path: &Path, problems: Vec<String>) -> TokenError {
    let placed = problems.into_iter();
    TokenError::Invalid(
        placed
            .map(|problem| format!("{}:{problem}", path.display()))
            .collect(),
    )
}

/// Text of the file, and whether users other than its owner can read it.
fn read(path: &Path) -> Result<(String, bool), TokenError> {
    let (text, metadata) = file::read(path, MAX_FILE).map_err(|source| unusable(path, source))?;
    Ok((text, metadata.mode() & 0o077 != 0))
}

/// Generates a token of 256 random bits, in hexadecimal.
pub fn new_token() -> std::io::Result<String> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    Ok(hex(&random))
}

fn make(path: &Path) -> std::io::Result<()> {
    let token = new_token()?;
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

    const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
    const BOB: &str = "bob-0123456789abcdef0123456789abcdef";

    /// A file of tokens that only its owner can read.
    struct Kept(tempfile::TempDir);

    impl Kept {
        fn new(text: &str) -> (Kept, Keyring) {
            let kept = Kept(tempfile::tempdir().unwrap());
            kept.write(text);
            let keyring = Keyring::open(Some(&kept.path()), None, |_| ()).unwrap().unwrap();
            (kept, keyring)
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("tokens")
        }

        fn write(&self, text: &str) {
            std::fs::write(self.path(), text).unwrap();
            self.allow(0o600);
        }

        fn allow(&self, mode: u32) {
            std::fs::set_permissions(self.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    fn bearer(keyring: &Keyring, token: &str) -> Option<CancellationToken> {
        match keyring.find(token, 0) {
            Found::Valid(bearer) => bearer.revoked,
            _ => None,
        }
    }

    #[test]
    fn a_missing_file_is_made_for_its_owner_alone_and_an_exposed_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let mut told = false;
        Keyring::open(Some(&path), None, |_| told = true).unwrap();
        assert!(told);
        let token = std::fs::read_to_string(&path).unwrap();
        assert_eq!(token.trim().len(), 64);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = Keyring::open(Some(&path), None, |_| panic!("it is there"))
            .unwrap()
            .unwrap();
        assert!(bearer(&again, token.trim()).is_some());
        assert_eq!(format!("{again:?}"), r#"Keyring(["token:default"])"#);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Keyring::open(Some(&path), None, |_| ()).unwrap_err();
        assert!(matches!(refused, TokenError::Exposed(_)), "{refused}");
        assert!(Keyring::open(None, None, |_| ()).unwrap().is_none());
    }

    #[test]
    fn a_token_that_is_gone_stops_at_once_and_others_stay_as_they_are() {
        let (kept, keyring) = Kept::new(&format!("ada {ADA}\nbob {BOB}\n"));
        let (ada, bob) = (bearer(&keyring, ADA).unwrap(), bearer(&keyring, BOB).unwrap());
        kept.write(&format!("bob {}\neve {ADA}x\n", TokenHash::of(BOB)));
        let changed = keyring.refresh().unwrap();
        assert_eq!(
            (changed.added, changed.removed),
            (vec!["eve".to_owned()], vec!["ada".to_owned()])
        );
        assert!(ada.is_cancelled() && bearer(&keyring, ADA).is_none());
        assert!(
            !bob.is_cancelled(),
            "hashing a plain token changes nothing for its bearer"
        );
        assert!(bearer(&keyring, BOB).is_some() && bearer(&keyring, &format!("{ADA}x")).is_some());
        // Fewer scopes for the same token end its sessions.
        kept.write(&format!("bob {BOB} scope=read\n"));
        keyring.refresh().unwrap();
        assert!(bob.is_cancelled());
        // The last token can be removed while the host runs.
        kept.write("# none\n");
        keyring.refresh().unwrap();
        assert!(bearer(&keyring, BOB).is_none());
    }

    #[test]
    fn a_file_with_something_wrong_lets_nobody_in_who_was_not_and_keeps_nobody_who_is_gone() {
        let both = format!("ada {ADA}\nbob {BOB}\n");
        type Break = fn(&Kept);
        let breaks: [(&str, Break); 4] = [
            ("a bad line", |kept| {
                kept.write(&format!("bob {BOB}\nx short\neve {ADA}x\n"))
            }),
            ("exposed", |kept| {
                kept.write(&format!("bob {BOB}\neve {ADA}x\n"));
                kept.allow(0o644);
            }),
            ("gone", |kept| std::fs::remove_file(kept.path()).unwrap()),
            ("no text", |kept| {
                std::fs::write(kept.path(), [0xff, 0xfe]).unwrap()
            }),
        ];
        for (what, break_it) in breaks {
            let (kept, keyring) = Kept::new(&both);
            let ada = bearer(&keyring, ADA).unwrap();
            break_it(&kept);
            assert!(keyring.refresh().is_err(), "{what}");
            assert!(ada.is_cancelled() && bearer(&keyring, ADA).is_none(), "{what}");
            assert!(bearer(&keyring, &format!("{ADA}x")).is_none(), "{what}");
            let reads_bob = matches!(what, "a bad line" | "exposed");
            assert_eq!(bearer(&keyring, BOB).is_some(), reads_bob, "{what}");
            kept.write(&both);
            keyring.refresh().unwrap();
            assert!(bearer(&keyring, ADA).is_some(), "{what}: and back");
        }
    }

    #[test]
    fn a_token_ends_when_it_expires_and_a_longer_life_begins_anew() {
        let line = |time: &str| format!("ada {ADA} expires={time}\n");
        let (kept, keyring) = Kept::new(&line("1970-01-01T00:00:10Z"));
        let ada = bearer(&keyring, ADA).unwrap();
        keyring.expire(9_999);
        assert!(!ada.is_cancelled());
        assert!(matches!(keyring.find(ADA, 10_000), Found::Expired));
        keyring.expire(10_000);
        assert!(ada.is_cancelled());
        kept.write(&line("1970-01-01T00:00:20Z"));
        keyring.refresh().unwrap();
        let Found::Valid(again) = keyring.find(ADA, 15_000) else {
            panic!("it lives longer")
        };
        assert!(!again.revoked.unwrap().is_cancelled());
        // A shorter life is accepted even from a file with mistakes.
        kept.write(&(line("1970-01-01T00:00:12Z") + "broken\n"));
        assert!(keyring.refresh().is_err());
        assert!(matches!(keyring.find(ADA, 15_000), Found::Expired));
    }

    #[test]
    fn a_token_of_the_environment_is_one_token() {
        let keyring = Keyring::open(None, Some(&format!(" {ADA}\n")), |_| ())
            .unwrap()
            .unwrap();
        assert!(bearer(&keyring, ADA).is_some());
        for bad in ["", "short", &format!("{ADA}\n{BOB}")] {
            assert!(Keyring::open(None, Some(bad), |_| ()).is_err(), "{bad:?}");
        }
    }
}
