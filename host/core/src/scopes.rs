//! Scopes of the operator's tokens, and the rights that follow from them. Pure.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Permission that a token can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Calls of tools that read.
    Read,
    /// Calls of every tool.
    Write,
    /// Metrics under `/metrics`.
    Metrics,
    /// Operations, envelopes and reports of every identity.
    SeeAll,
}

/// Every scope with its name.
const NAMES: [(Scope, &str); 4] = [
    (Scope::Read, "read"),
    (Scope::Write, "write"),
    (Scope::Metrics, "metrics"),
    (Scope::SeeAll, "see-all"),
];

impl Scope {
    /// Name, as the token file and the command line write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Metrics => "metrics",
            Scope::SeeAll => "see-all",
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Scope, String> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found
            .map(|(scope, _)| *scope)
            .ok_or_else(|| "a scope is read, write, metrics or see-all".to_owned())
    }
}

/// The scopes of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Default for Scopes {
    /// A line without scopes may call every tool, as all tokens could before scopes existed.
    fn default() -> Scopes {
        Scopes(BTreeSet::from([Scope::Write]))
    }
}

impl Scopes {
    /// Set of these scopes. An empty set means the default.
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Scopes {
        let scopes: BTreeSet<Scope> = scopes.into_iter().collect();
        if scopes.is_empty() {
            Scopes::default()
        } else {
            Scopes(scopes)
        }
    }

    /// Rights that the scopes give.
    pub fn rights(&self) -> Rights {
        let has = |scope| self.0.contains(&scope);
        Rights {
            calls: match () {
                () if has(Scope::Write) => Calls::All,
                // Seeing everything requires calls that read.
                () if has(Scope::Read) || has(Scope::SeeAll) => Calls::Reads,
                () => Calls::None,
            },
            sees_all: has(Scope::SeeAll),
        }
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|scope| scope.as_str()).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Scopes {
    type Err = String;

    fn from_str(text: &str) -> Result<Scopes, String> {
        let scopes: Result<BTreeSet<Scope>, String> = text.split(',').map(str::parse).collect();
        scopes.map(Scopes)
    }
}

/// Calls that an identity may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// No call, and no session.
    None,
    /// Calls of tools that read.
    Reads,
    /// Every call.
    All,
}

/// Rights of an identity beyond admission. Every admitted identity may read `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Calls it may make.
    pub calls: Calls,
    /// True if it sees the operations, envelopes and reports of every identity.
    pub sees_all: bool,
}

impl Default for Rights {
    fn default() -> Rights {
        Scopes::default().rights()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_scopes_gives_exactly_these_rights() {
        let mut matrix = String::new();
        for bits in 1_u8..16 {
            let chosen = NAMES
                .iter()
                .enumerate()
                .filter(|(place, _)| bits & (1 << place) != 0);
            let scopes = Scopes::of(chosen.map(|(_, (scope, _))| *scope));
            let Rights { calls, sees_all } = scopes.rights();
            let all = if sees_all { ", sees all" } else { "" };
            matrix += &format!("{scopes}: {calls:?}{all}\n");
            assert_eq!(scopes.to_string().parse(), Ok(scopes));
        }
        expect_test::expect![[r#"
            read: Reads
            write: All
            read,write: All
            metrics: None
            read,metrics: Reads
            write,metrics: All
            read,write,metrics: All
            see-all: Reads, sees all
            read,see-all: Reads, sees all
            write,see-all: All, sees all
            read,write,see-all: All, sees all
            metrics,see-all: Reads, sees all
            read,metrics,see-all: Reads, sees all
            write,metrics,see-all: All, sees all
            read,write,metrics,see-all: All, sees all
        "#]]
        .assert_eq(&matrix);
        assert_eq!(Scopes::of([]), Scopes::default());
        for bad in ["", "admin", "read,", "READ", "read write"] {
            assert!(bad.parse::<Scopes>().is_err(), "{bad:?}");
        }
    }
}
