//! Option values from environment variables, so that errors can name the variable.

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Variables without a flag.
const VARIABLES_WITHOUT_FLAG: &[&str] = &["TOLLGATE_TOKEN", "TOLLGATE_LOG_CONTENT"];
/// Prefix of this program's variables. Variables of its tests are left out.
const OWN_PREFIX: &str = "TOLLGATE_";
const TESTS_PREFIX: &str = "TOLLGATE_TEST_";
/// Shortest value that is recognised in a message.
const MIN_LENGTH: usize = 3;

/// Variables from which flags took their values, with the values.
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    pub(super) fn of(command: &Command, matches: &ArgMatches) -> Variables {
        let mut found = Vec::new();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let is_taken = matches!(matches.try_contains_id(id), Ok(true))
                && matches.value_source(id) == Some(ValueSource::EnvVariable);
            let name = argument.get_env().and_then(|name| name.to_str());
            if let Some(name) = name.filter(|_| is_taken)
                && let Ok(value) = std::env::var(name)
            {
                found.push((name.to_owned(), value));
            }
        }
        if let Some((name, matches)) = matches.subcommand()
            && let Some(command) = command.find_subcommand(name)
        {
            found.extend(Variables::of(command, matches).0);
        }
        found.sort();
        found.dedup();
        Variables(found)
    }

    /// Variables whose values a message repeats.
    pub(super) fn named_in<'a>(&'a self, message: &'a str) -> impl Iterator<Item = &'a str> {
        let is_named = |value: &str| value.len() >= MIN_LENGTH && message.contains(value);
        let named = self.0.iter().filter(move |(_, value)| is_named(value));
        named.map(|(name, _)| name.as_str())
    }
}

/// Variable with the value that made the command line invalid.
pub(super) fn behind(command: &Command, said: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = said.get(ContextKind::InvalidArg) else {
        return None;
    };
    let Some(ContextValue::String(value)) = said.get(ContextKind::InvalidValue) else {
        return None;
    };
    let flag = argument.split_whitespace().next()?;
    let is_typed = |word: String| word == flag || word.starts_with(&format!("{flag}="));
    if std::env::args().any(is_typed) {
        return None;
    }
    let mut names = all(command);
    names
        .find(|(long, _)| *long == flag)
        .map(|(_, name)| name)
        .filter(|name| std::env::var(name).is_ok_and(|held| held.contains(value.as_str())))
}

/// Unknown variables with this program's prefix, each with the one that may be meant.
pub(super) fn unknown(command: &Command) -> Vec<(String, Option<String>)> {
    let known: Vec<String> = all(command)
        .map(|(_, name)| name)
        .chain(VARIABLES_WITHOUT_FLAG.iter().map(|name| (*name).to_owned()))
        .collect();
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<_> = set
        .filter(|name| {
            name.starts_with(OWN_PREFIX) && !name.starts_with(TESTS_PREFIX) && !known.contains(name)
        })
        .map(|name| {
            let near = tollgate_core::text::nearest(&name, known.iter().map(String::as_str));
            let near = near.map(str::to_owned);
            (name, near)
        })
        .collect();
    unknown.sort();
    unknown
}

/// Flags with a variable, of a command and its subcommands.
fn all(command: &Command) -> Box<dyn Iterator<Item = (String, String)> + '_> {
    let own = command.get_arguments().filter_map(|argument| {
        let name = argument.get_env()?.to_str()?;
        Some((format!("--{}", argument.get_long()?), name.to_owned()))
    });
    Box::new(own.chain(command.get_subcommands().flat_map(all)))
}
