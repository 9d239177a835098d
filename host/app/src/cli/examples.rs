//! Examples of every command, shown at the end of its `--help`. A test parses each one.

use clap::Command;

/// Path of a command, and example lines. The text after `#` says what an example is for.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "serve",
        &[
            "tollgate serve                                  # for a client that started it",
            "tollgate serve --packs tasks --workspace app=.  # one task system, one directory",
            "tollgate serve --http 8765 --token-file tokens  # for several clients, each with a token",
        ],
    ),
    (
        "call",
        &[
            "tollgate call task_list",
            "tollgate call envelope_open '{\"limits\": {\"max_mutations\": 20}}'",
            "tollgate call task_create @task.json            # arguments from a file",
        ],
    ),
    (
        "tools",
        &[
            "tollgate tools",
            "tollgate tools --packs convergence --read-only",
            "tollgate --json tools --tools 'task_*'          # with schemas",
        ],
    ),
    (
        "packs list",
        &["tollgate packs list", "tollgate --json packs list"],
    ),
    (
        "packs inspect",
        &[
            "tollgate packs inspect greeter.wasm",
            "tollgate packs inspect --static greeter.wasm    # without running any of it",
        ],
    ),
    (
        "packs outdated",
        &["tollgate packs outdated", "tollgate --json packs outdated"],
    ),
    (
        "packs update",
        &[
            "tollgate packs update greeter",
            "tollgate packs update greeter --to 1.1.0 --yes  # without asking",
        ],
    ),
    (
        "policies update",
        &["tollgate policies update no-deletes --to 1.1.0"],
    ),
    (
        "packs publish",
        &[
            "tollgate packs publish greeter.wasm oci://ghcr.io/ada/greeter:1.0.0 --licence MIT",
            "tollgate packs publish greeter.wasm oci://ghcr.io/ada/greeter:1.0.0 --sign-key team.pem",
        ],
    ),
    (
        "approvals list",
        &[
            "tollgate approvals list",
            "tollgate --json approvals list --status any",
        ],
    ),
    (
        "approvals show",
        &["tollgate approvals show apv_5f2b9c7e0a1d4b6f8c3e2d1a0b"],
    ),
    (
        "approvals allow",
        &["tollgate approvals allow apv_5f2b9c7e0a1d4b6f8c3e2d1a0b --note 'after the backup'"],
    ),
    (
        "approvals deny",
        &["tollgate approvals deny apv_5f2b9c7e0a1d4b6f8c3e2d1a0b --as grace"],
    ),
    (
        "tasks list",
        &[
            "tollgate tasks list",
            "tollgate --json tasks list --state working --owner token:ada",
        ],
    ),
    (
        "tasks show",
        &["tollgate tasks show tsk_0f3a9c62d1e84b7f9a5c2e1d8b7f6a40"],
    ),
    (
        "tasks cancel",
        &["tollgate tasks cancel tsk_0f3a9c62d1e84b7f9a5c2e1d8b7f6a40"],
    ),
    (
        "packs check",
        &[
            "tollgate packs check greeter.wasm",
            "tollgate packs check greeter.wasm --workspace main=.  # with a copy of this directory",
        ],
    ),
    (
        "policies check",
        &["tollgate policies check freeze.wasm --settings '{\"reason\": \"release day\"}'"],
    ),
    (
        "packs add",
        &[
            "tollgate packs add greeter.wasm --grant all",
            "tollgate packs add greeter.wasm --grant workspaces=app --grant process=git",
            "tollgate packs add greeter.wasm --replace --no-pin  # one that you are building",
        ],
    ),
    (
        "packs prepare",
        &["tollgate packs prepare                          # so that the next start compiles nothing"],
    ),
    ("packs accept", &["tollgate packs accept greeter"]),
    ("packs remove", &["tollgate packs remove greeter"]),
    ("policies list", &["tollgate policies list"]),
    (
        "policies inspect",
        &[
            "tollgate policies inspect freeze.wasm",
            "tollgate policies inspect builtin:cel           # shows its settings",
        ],
    ),
    (
        "policies add",
        &[
            "tollgate policies add builtin:secret-scan",
            "tollgate policies add builtin:path-guard --tools 'git_*' --settings '{\"deny\": [\"secrets/**\"]}'",
            "tollgate policies add freeze.wasm --grant ledger --audit",
        ],
    ),
    ("policies accept", &["tollgate policies accept freeze"]),
    ("policies remove", &["tollgate policies remove freeze"]),
    (
        "policies test",
        &["tollgate policies test freeze.wasm --case cases.toml"],
    ),
    (
        "policies backtest",
        &["tollgate policies backtest cel --since 24h --settings @settings.json"],
    ),
    (
        "config",
        &[
            "tollgate config server.tier                     # one key",
            "tollgate config envelope                        # all keys of a table",
        ],
    ),
    (
        "init",
        &[
            "tollgate init",
            "tollgate init --packs tasks,convergence         # one task system, and test tracking",
            "tollgate init --print                           # print it, write nothing",
        ],
    ),
    ("new pack", &["tollgate new pack greeter"]),
    ("new policy", &["tollgate new policy release-freeze"]),
    (
        "doctor",
        &[
            "tollgate doctor",
            "tollgate --json doctor                          # for a monitor",
        ],
    ),
    ("clients list", &["tollgate clients list"]),
    (
        "clients add",
        &[
            "tollgate clients add                            # to every client that is installed",
            "tollgate clients add codex --packs tasks --workspace app=.",
            "tollgate clients add claude-code --project      # into a file to be committed",
            "tollgate clients add cursor --http http://127.0.0.1:8765/mcp --bearer-env TOLLGATE_TOKEN",
        ],
    ),
    ("clients check", &["tollgate clients check"]),
    ("clients remove", &["tollgate clients remove cursor"]),
    ("clients print", &["tollgate clients print cursor"]),
    (
        "ledger tail",
        &["tollgate ledger tail -f", "tollgate --json ledger tail -n 100"],
    ),
    (
        "ledger query",
        &[
            "tollgate ledger query --failed --since 24h",
            "tollgate ledger query --tool test_run --since 2026-11-21T06:00:00Z",
            "tollgate ledger query --policy secret-scan --since 7d  # a policy's verdicts, in audit mode as well",
        ],
    ),
    (
        "ledger report",
        &["tollgate ledger report                          # on the newest envelope"],
    ),
    (
        "ledger verify",
        &[
            "tollgate ledger verify",
            "tollgate ledger verify --head export.ndjson     # against an earlier export",
        ],
    ),
    (
        "ledger export",
        &[
            "tollgate ledger export --sign                   # redirect it into a file",
            "tollgate ledger export --sign --head-only",
        ],
    ),
    ("ledger prune", &["tollgate ledger prune --dry-run"]),
    (
        "ledger compact",
        &[
            "tollgate ledger compact --dry-run               # how much space it would free",
            "tollgate ledger compact",
        ],
    ),
    ("ledger mirror", &["tollgate ledger mirror"]),
    (
        "envelopes open",
        &[
            "tollgate envelopes open --for 2h --label nightly",
            "tollgate envelopes open --for 30m --about main --max-mutations 20",
        ],
    ),
    (
        "envelopes close",
        &["tollgate envelopes close env_01m84t2ve5k3wcw2vzmn68crd9 --outcome failed --note 'gave up'"],
    ),
    (
        "stats",
        &["tollgate stats --since 7d", "tollgate stats --pack tasks"],
    ),
    (
        "console",
        &[
            "tollgate console --open                         # in the browser",
            "tollgate console --port 4600",
        ],
    ),
    (
        "backup",
        &["tollgate backup /mnt/backup/tollgate-monday     # hosts may run"],
    ),
    (
        "restore",
        &[
            "tollgate restore /mnt/backup/tollgate-monday",
            "tollgate --data-dir elsewhere restore /mnt/backup/tollgate-monday  # only to inspect it",
        ],
    ),
    (
        "storage status",
        &["tollgate storage status", "tollgate --json storage status"],
    ),
    (
        "storage check",
        &[
            "tollgate storage check",
            "tollgate --database env:DATABASE_URL storage check  # before it is configured",
        ],
    ),
    (
        "storage init",
        &[
            "tollgate storage init --admin env:ADMIN_URL --password-file tollgate.password",
            "tollgate storage init                           # only the tables, with the configured URL",
        ],
    ),
    (
        "storage copy",
        &[
            "tollgate storage copy --to env:DATABASE_URL     # from the file in the data directory",
            "tollgate storage copy --from env:DATABASE_URL   # back into a file",
        ],
    ),
    (
        "healthcheck",
        &[
            "tollgate healthcheck --http 8765                # in a container's HEALTHCHECK",
            "tollgate --json healthcheck",
        ],
    ),
    (
        "tokens add",
        &[
            "tollgate tokens add ada --expires 90d",
            "tollgate tokens add prometheus --scope metrics  # for a scraper",
            "tollgate tokens add team-lead --scope see-all   # reads everybody's work",
        ],
    ),
    ("tokens list", &["tollgate tokens list"]),
    ("tokens revoke", &["tollgate tokens revoke ada"]),
    (
        "completions",
        &[
            "tollgate completions bash                       # into ~/.local/share/bash-completion/completions/tollgate",
            "tollgate completions zsh                        # into a folder of $fpath, as _tollgate",
            "tollgate completions fish                       # into ~/.config/fish/completions/tollgate.fish",
        ],
    ),
    (
        "man",
        &["tollgate man man1                               # a page for each command"],
    ),
];

/// Adds examples to each command.
pub(super) fn with_examples(command: Command) -> Command {
    add(command, "")
}

fn add(command: Command, above: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    names.into_iter().fold(command, |command, name| {
        let path = format!("{above} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |sub| {
            let found = EXAMPLES.iter().find(|(known, _)| *known == path);
            let sub = match found {
                Some((_, lines)) => sub.after_help(format!("Examples:\n  {}", lines.join("\n  "))),
                None => sub,
            };
            add(sub, &path)
        })
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// Commands without subcommands, for example `packs add`.
    fn leaves(command: &Command, above: &str) -> Vec<String> {
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        shown
            .flat_map(|sub| {
                let path = format!("{above} {}", sub.get_name()).trim_start().to_owned();
                if sub.has_subcommands() {
                    leaves(sub, &path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    /// Splits a line into words like a shell, as far as the examples need it.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or_default();
        let mut words = Vec::new();
        for (place, piece) in line.split('\'').enumerate() {
            if place % 2 == 1 {
                words.push(piece.to_owned());
            } else {
                words.extend(piece.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    #[test]
    fn every_command_has_examples_that_it_takes() {
        let command = with_examples(Cli::command());
        let mut known: Vec<&str> = EXAMPLES.iter().map(|(path, _)| *path).collect();
        for path in leaves(&command, "") {
            let place = known.iter().position(|known| *known == path);
            known.remove(place.unwrap_or_else(|| panic!("`{path}` has no example")));
        }
        assert_eq!(known, [] as [&str; 0], "examples of commands that are not there");
        for (path, lines) in EXAMPLES {
            for line in *lines {
                let words = words(line);
                assert!(words.join(" ").contains(path), "{line}");
                if let Err(err) = command.clone().try_get_matches_from(&words) {
                    panic!("{line}: {err}");
                }
            }
        }
    }
}
