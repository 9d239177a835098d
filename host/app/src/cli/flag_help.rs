//! Help of flags that set a configuration key. The text comes from the table of keys.

use tollgate::config::{default_of, doc};

/// Description of a key, and its default.
pub(super) fn with_default(key: &str) -> String {
    format!("{} [default: {}]", doc(key), default_of(key))
}

/// Description of a key, followed by details of its flag.
pub(super) fn with_details(key: &str, details: &str) -> String {
    format!("{}. {details}", doc(key))
}

/// First sentence about a key, for a flag that replaces the configured value in one command.
pub(super) fn configured(key: &str) -> String {
    let doc = doc(key);
    let first = doc.split_once(". ").map_or(doc, |(first, _)| first);
    format!("{first} [default: {key} of the configuration]")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Arg, Command, CommandFactory as _};
    use tollgate::config::reference;

    use super::*;
    use crate::cli::Cli;

    /// Commands, a flag that they have, and a text about the flag. The program itself has an empty name.
    type Row = (&'static [&'static str], &'static str, &'static str);

    /// Commands with the filters of tools.
    const TOOL_FILTER_COMMANDS: &[&str] = &["serve", "call", "tools"];

    /// Flags that set a key, with its path.
    const KEY_FLAGS: &[Row] = &[
        (&[""], "data-dir", "data_dir"),
        (&[""], "database", "storage.url"),
        (&[""], "cache-dir", "cache_dir"),
        (&[""], "workspace", "workspaces.*.path"),
        (&["serve"], "http", "server.http"),
        (
            &["serve", "tokens add", "tokens list", "tokens revoke"],
            "token-file",
            "server.auth.token_file",
        ),
        (TOOL_FILTER_COMMANDS, "read-only", "server.read_only"),
        (TOOL_FILTER_COMMANDS, "tier", "server.tier"),
        (TOOL_FILTER_COMMANDS, "compact", "server.compact"),
        (TOOL_FILTER_COMMANDS, "output-schemas", "server.output_schemas"),
        (&["packs add"], "sha256", "packs.*.sha256"),
        (&["policies add"], "sha256", "policies.*.sha256"),
        (&["policies add"], "settings", "policies.*.config"),
        (&["policies add"], "tools", "policies.*.tools"),
        (&["policies add"], "order", "policies.*.order"),
    ];

    /// Flags that share the name of a key and set something else, with what they set.
    const OTHER_FLAGS: &[Row] = &[
        (&[""], "config", "the configuration file"),
        (
            TOOL_FILTER_COMMANDS,
            "tools",
            "tools of the host, not of a policy",
        ),
        (
            &["policies backtest"],
            "tools",
            "recorded calls to evaluate again",
        ),
        (
            &["clients add", "clients print", "healthcheck"],
            "http",
            "address of a running server",
        ),
        (
            &["clients add", "clients print"],
            "token-file",
            "file with the token of one client",
        ),
        (&["clients add", "clients print"], "user", "scope of an entry"),
        (&["envelopes open"], "max-mutations", "limit of one envelope"),
        (&["envelopes open"], "max-test-runs", "limit of one envelope"),
        (&["envelopes open"], "max-edits", "limit of one envelope"),
        (&["new pack", "new policy"], "path", "folder of a new crate"),
        (&["packs publish"], "source", "address of the source code"),
    ];

    /// Flags of a command and of those below it, each with the path of its command.
    fn flags<'a>(command: &'a Command, path: &str) -> Vec<(String, &'a Arg)> {
        let own = command
            .get_arguments()
            .filter(|argument| argument.get_long().is_some());
        let mut found: Vec<_> = own.map(|flag| (path.to_owned(), flag)).collect();
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{path} {}", below.get_name());
            found.extend(flags(below, path.trim_start()));
        }
        found
    }

    /// Flag of a command.
    fn flag<'a>(all: &[(String, &'a Arg)], path: &str, name: &str) -> &'a Arg {
        let found = all
            .iter()
            .find(|(of, flag)| of == path && flag.get_long() == Some(name));
        found
            .unwrap_or_else(|| panic!("`tollgate {path}` has no --{name}"))
            .1
    }

    fn lists(rows: &[Row], path: &str, name: &str) -> bool {
        rows.iter()
            .any(|(commands, flag, _)| *flag == name && commands.contains(&path))
    }

    #[test]
    fn flags_are_explained_as_the_table_of_keys_does() {
        let command = Cli::command();
        let all = flags(&command, "");
        for (commands, name, key) in KEY_FLAGS {
            for path in *commands {
                let flag = flag(&all, path, name);
                let help = flag.get_help().unwrap().to_string();
                let is_from_the_table = help == doc(key)
                    || help == configured(key)
                    || help.starts_with(&with_details(key, ""))
                    || (help.contains(" [default: ") && help == with_default(key));
                assert!(is_from_the_table, "{path} --{name}: {help}");
                assert!(flag.get_long_help().is_none(), "{path} --{name} has two texts");
            }
        }
    }

    #[test]
    fn flags_with_the_name_of_a_key_set_it_or_are_exceptions() {
        let command = Cli::command();
        let all = flags(&command, "");
        let keys = reference::entries(None).unwrap();
        let names: BTreeSet<&str> = keys
            .iter()
            .filter_map(|entry| entry.key.rsplit('.').next())
            .collect();
        for (path, flag) in &all {
            let name = flag.get_long().unwrap();
            let is_known = lists(KEY_FLAGS, path, name) || lists(OTHER_FLAGS, path, name);
            assert!(
                is_known || !names.contains(name.replace('-', "_").as_str()),
                "`tollgate {path}` has --{name}: add it to the flags that set a key, or to the exceptions"
            );
        }
        for (commands, name, _) in OTHER_FLAGS {
            for path in *commands {
                flag(&all, path, name);
                assert!(!lists(KEY_FLAGS, path, name), "{path} --{name} is in both lists");
            }
        }
    }
}
