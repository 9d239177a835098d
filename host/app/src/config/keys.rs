//! Table of all configuration keys, the source of checks, the template, the documentation and `tollgate config`.

mod table;

use std::borrow::Cow;

pub(super) use table::KEYS;

/// Type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A table of the keys that follow it.
    Table,
    /// A list of tables, each with the keys that follow.
    Tables,
    /// A table whose keys are names the operator chooses.
    Names,
    /// A table with any content, checked by the component it is for.
    Free,
    Bool,
    /// A duration such as `30m` or `24h`, from a second to a year.
    Span,
    /// A whole number from 1 to the given one.
    Count(i64),
    /// A table of whole numbers from 0, under names the operator chooses.
    Budgets,
    /// Text, not empty.
    Text,
    /// `ADDRESS:PORT`.
    Address,
    /// An https address, or an http one.
    Url,
    /// `https://HOST:PORT` of a web page.
    Origins,
    /// 64 hex digits.
    Sha256,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// A list of globs.
    Globs,
    /// A list of relative paths, directories ending with a slash.
    Prefixes,
    /// A program and its arguments.
    Argv,
}

impl Kind {
    /// The type as text for messages.
    pub(super) fn wanted(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Kind::Table | Kind::Names | Kind::Budgets | Kind::Free => "a table",
            Kind::Tables => "a list of tables, each under [[…]]",
            Kind::Bool => "true or false",
            Kind::Span => "a length of time from 1s to 52w, such as \"30m\", \"24h\" or \"7d\"",
            Kind::Count(i64::MAX) => "a whole number, at least 1",
            Kind::Count(max) => return Cow::Owned(format!("a whole number from 1 to {max}")),
            Kind::Text => "a non-empty string",
            Kind::Address => "an address with a port, such as \"127.0.0.1:8765\" or \"localhost:8765\"",
            Kind::Url => "an address that starts with https:// or http://",
            Kind::Origins => "a list of origins, such as [\"https://app.example:443\"]",
            Kind::Sha256 => "64 hex digits",
            Kind::OneOf(options) => return Cow::Owned(format!("one of {}", options.join(", "))),
            Kind::Texts => "a list of strings",
            Kind::Prefixes => {
                "a list of relative paths without `..`, directories ending with a slash, such as [\".gsd/\"]"
            }
            Kind::Argv => "a program and its arguments, such as [\"cargo\", \"test\"]",
            Kind::Globs => "a list of globs, such as [\"task_*\"]",
        })
    }

    /// Returns whether this is a table of further keys, which has no value itself.
    pub(super) const fn is_table(self) -> bool {
        matches!(self, Kind::Table | Kind::Tables | Kind::Names)
    }
}

/// Behaviour if a file does not set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unset {
    /// This value, as a file would write it.
    Is(&'static str),
    /// Description of the behaviour if the key is absent.
    Means(&'static str),
    /// An error: the surrounding table requires the key.
    Refused,
}

/// One key. `*` stands for a name that the operator chooses.
pub(super) struct Key {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) unset: Unset,
    /// A value as a file would write it, for the template.
    pub(super) example: &'static str,
    /// One or two sentences for operators.
    pub(super) doc: &'static str,
}

impl Key {
    /// Path as documents write it, with `NAME` for a name that the operator chooses.
    pub(super) fn shown(&self) -> String {
        let lists = KEYS.iter().filter(|key| key.kind == Kind::Tables);
        let in_lists = lists.fold(self.path.to_owned(), |path, list| {
            path.replace(&format!("{}.*", list.path), list.path)
        });
        in_lists.replace('*', "NAME")
    }

    /// The default as documents write it.
    pub(super) fn default(&self) -> String {
        match self.unset {
            Unset::Is(value) => format!("`{value}`"),
            Unset::Means(words) => words.to_owned(),
            Unset::Refused => "required".to_owned(),
        }
    }
}

/// Key with a path, if there is one.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Description of a key, for the help of the corresponding flag. Like all help, without the last full stop.
///
/// # Panics
///
/// Panics if no key has the path, which a test of the command line would show.
pub fn doc(path: &str) -> &'static str {
    let doc = of_flag(path).doc;
    doc.strip_suffix('.').unwrap_or(doc)
}

/// Default of a key, for the help of the corresponding flag.
///
/// # Panics
///
/// Panics if no key has the path, or if the key is required.
pub fn default_of(path: &str) -> &'static str {
    match of_flag(path).unset {
        Unset::Is(value) => value,
        Unset::Means(words) => words,
        Unset::Refused => panic!("the configuration key {path} has no default"),
    }
}

/// Key that a flag sets.
fn of_flag(path: &str) -> &'static Key {
    find(path).unwrap_or_else(|| panic!("no configuration key {path}"))
}

/// Names of the required keys of a table.
pub(super) fn needed(table: &str) -> impl Iterator<Item = &'static str> {
    children(table).filter(move |name| {
        let key = find(&join(table, name));
        key.is_some_and(|key| key.unset == Unset::Refused)
    })
}

/// Keys directly in a table, without its path.
pub(super) fn children(path: &str) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |key| {
        let rest = match path {
            "" => key.path,
            _ => key.path.strip_prefix(path)?.strip_prefix('.')?,
        };
        (!rest.contains('.')).then_some(rest)
    })
}

/// The path of a name in a table.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
