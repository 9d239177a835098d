//! Which git commands read, which write, and what keeps them from starting programs.
//!
//! A subcommand is on a list, or it is refused: that leaves out the network, aliases and plumbing
//! that runs commands. Options are refused by name, in every abbreviation git would take.

use crate::GitAccess;

const READ: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "hash-object",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "version",
];

const WRITE: &[&str] = &[
    "add", "branch", "commit", "mv", "reset", "restore", "rm", "stash", "switch", "tag",
];

/// Options of `git config` that only list the names of settings: values may be secrets.
const NAMES: &[&str] = &["--list", "--name-only", "--show-scope", "-z"];

/// These show differences, for which a repository's configuration may name programs.
const DIFFS: &[&str] = &["diff", "diff-files", "diff-index", "diff-tree", "log", "show"];

/// Options before the subcommand that change nothing but what is printed.
const GLOBAL: &[&str] = &[
    "--no-pager",
    "--no-optional-locks",
    "--no-replace-objects",
    "--literal-pathspecs",
];

/// Settings that `-c` may give, in lower case.
const SETTINGS: &[&str] = &[
    "core.quotepath",
    "color.ui",
    "diff.renames",
    "status.renames",
    "user.name",
    "user.email",
];

/// Long options that write files, read files outside, or start programs.
const BANNED: &[&str] = &[
    "contents",
    "exec",
    "ext-diff",
    "filters",
    "ignore-revs-file",
    "interactive",
    "no-index",
    "open-files-in-pager",
    "output",
    "pathspec-from-file",
    "show-signature",
    "textconv",
    "upload-pack",
];

/// Whole names of harmless options that a banned one starts with too.
const WHOLE: &[&str] = &["text", "filter"];

/// Environment of every git that a pack starts: no hooks, no prompts, no network, no helpers.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "9"),
    ("GIT_CONFIG_KEY_0", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_0", "/dev/null"),
    ("GIT_CONFIG_KEY_1", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_1", "false"),
    ("GIT_CONFIG_KEY_2", "gpg.program"),
    ("GIT_CONFIG_VALUE_2", "false"),
    ("GIT_CONFIG_KEY_3", "gpg.ssh.program"),
    ("GIT_CONFIG_VALUE_3", "false"),
    ("GIT_CONFIG_KEY_4", "gpg.x509.program"),
    ("GIT_CONFIG_VALUE_4", "false"),
    ("GIT_CONFIG_KEY_5", "commit.gpgSign"),
    ("GIT_CONFIG_VALUE_5", "false"),
    ("GIT_CONFIG_KEY_6", "tag.gpgSign"),
    ("GIT_CONFIG_VALUE_6", "false"),
    ("GIT_CONFIG_KEY_7", "maintenance.auto"),
    ("GIT_CONFIG_VALUE_7", "false"),
    ("GIT_CONFIG_KEY_8", "interactive.diffFilter"),
    ("GIT_CONFIG_VALUE_8", "cat"),
];

/// The arguments git may run with, or why it may not.
pub(super) fn checked(arguments: &[String], access: GitAccess) -> Result<Vec<String>, String> {
    let at = subcommand(arguments)?;
    let (before, rest) = arguments.split_at(at);
    let Some((name, options)) = rest.split_first() else {
        return Err("git wants a subcommand".to_owned());
    };
    let reads = READ.contains(&name.as_str()) || (name == "config" && lists_names(options));
    match access {
        _ if reads => {}
        GitAccess::Write if WRITE.contains(&name.as_str()) => {}
        GitAccess::Read if WRITE.contains(&name.as_str()) => {
            return Err(format!(
                "`git {name}` writes; the workspace's `git` would have to be \"write\", and the pack ask for it"
            ));
        }
        _ => {
            return Err(format!(
                "`git {name}` is not among the subcommands that packs may run"
            ));
        }
    }
    let options_end = options
        .iter()
        .position(|option| option == "--")
        .unwrap_or(options.len());
    for (place, option) in options.iter().enumerate() {
        check(name, option, place < options_end)?;
    }
    let mut safe = before.to_vec();
    safe.push(name.clone());
    if DIFFS.contains(&name.as_str()) {
        safe.extend(["--no-ext-diff".to_owned(), "--no-textconv".to_owned()]);
    }
    safe.extend_from_slice(options);
    Ok(safe)
}

/// Whether `git config` gives away no more than names.
fn lists_names(options: &[String]) -> bool {
    let has = |wanted: &str| options.iter().any(|option| option == wanted);
    has("--list") && has("--name-only") && options.iter().all(|option| NAMES.contains(&option.as_str()))
}

/// Where the subcommand is, after options that are harmless.
fn subcommand(arguments: &[String]) -> Result<usize, String> {
    let mut at = 0;
    while let Some(option) = arguments.get(at).filter(|argument| argument.starts_with('-')) {
        at += match (option.as_str(), arguments.get(at + 1)) {
            (option, _) if GLOBAL.contains(&option) => 1,
            ("-c", Some(setting)) => {
                let key = setting.split('=').next().unwrap_or_default().to_ascii_lowercase();
                if !SETTINGS.contains(&key.as_str()) {
                    return Err(format!(
                        "`-c {key}` is not among the settings that packs may give"
                    ));
                }
                2
            }
            (option, _) => {
                return Err(format!(
                    "`git {option}` is not among the options that packs may use"
                ));
            }
        };
    }
    Ok(at)
}

fn check(subcommand: &str, argument: &str, is_option: bool) -> Result<(), String> {
    if is_option
        && argument != "--pathspec-from-file=-"
        && let Some(long) = argument.strip_prefix("--")
    {
        let name = long.split('=').next().unwrap_or_default();
        let banned = |banned: &&&str| !name.is_empty() && banned.starts_with(name) && !WHOLE.contains(&name);
        if let Some(banned) = BANNED.iter().find(banned) {
            return Err(format!("`--{name}` may mean --{banned}, which packs may not use"));
        }
    }
    if is_option && subcommand == "hash-object" && argument.starts_with("-w") {
        return Err("`git hash-object -w` writes".to_owned());
    }
    if is_option && matches!(argument, "-i" | "-p") && WRITE.contains(&subcommand) {
        return Err(format!(
            "`git {subcommand} {argument}` asks questions that nobody answers"
        ));
    }
    let value = match (argument.split_once('='), argument.strip_prefix('-')) {
        (Some((option, value)), _) if option.starts_with("--") => value,
        // The value may follow a letter directly.
        (_, Some(short)) if !short.starts_with('-') => short.get(1..).unwrap_or_default(),
        _ => argument,
    };
    if value.starts_with('/') || value.split('/').any(|name| name == "..") {
        return Err(format!("`{argument}` may lead out of the workspace"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_git_may_do() {
        let lines = "status --porcelain=v2 -z
            --no-optional-locks -c core.quotePath=off diff --no-renames --src-prefix=a/ HEAD
            log -n 3 --format=%H main..side
            ls-files -z --others --exclude-standard
            hash-object --stdin-paths
            hash-object -w a
            config --list --show-scope --name-only -z
            config --list
            config --name-only --list core.pager
            config core.pager sh
            diff --output=x
            diff --outp x
            diff --output-indicator-new=x
            diff --ext-diff
            diff --text --patch
            rev-parse --git-dir
            diff --no-index a b
            diff -- --output=x
            diff /etc/passwd a
            diff ../x a
            log --show-signature
            -c core.pager=sh log
            -C /tmp status
            --git-dir=x status
            fetch
            push
            submodule update
            x

            add -- a b
            commit -F - -- a
            commit -F../secret
            add --pathspec-from-file=- --pathspec-file-nul
            add --pathspec-from-file=x
            commit --interactive
            add -p
            tag v1
            branch -D side
            stash
            --exec-path=x status";
        let mut log = String::new();
        for line in lines.lines().map(str::trim) {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let told = |access| match checked(&arguments, access) {
                Ok(safe) => format!("git {}", safe.join(" ")),
                Err(why) => format!("no: {why}"),
            };
            let (read, write) = (told(GitAccess::Read), told(GitAccess::Write));
            log += &format!("{line}\n  {read}\n");
            if read != write {
                log += &format!("  when writing: {write}\n");
            }
        }
        expect![[r#"
            status --porcelain=v2 -z
              git status --porcelain=v2 -z
            --no-optional-locks -c core.quotePath=off diff --no-renames --src-prefix=a/ HEAD
              git --no-optional-locks -c core.quotePath=off diff --no-ext-diff --no-textconv --no-renames --src-prefix=a/ HEAD
            log -n 3 --format=%H main..side
              git log --no-ext-diff --no-textconv -n 3 --format=%H main..side
            ls-files -z --others --exclude-standard
              git ls-files -z --others --exclude-standard
            hash-object --stdin-paths
              git hash-object --stdin-paths
            hash-object -w a
              no: `git hash-object -w` writes
            config --list --show-scope --name-only -z
              git config --list --show-scope --name-only -z
            config --list
              no: `git config` is not among the subcommands that packs may run
            config --name-only --list core.pager
              no: `git config` is not among the subcommands that packs may run
            config core.pager sh
              no: `git config` is not among the subcommands that packs may run
            diff --output=x
              no: `--output` may mean --output, which packs may not use
            diff --outp x
              no: `--outp` may mean --output, which packs may not use
            diff --output-indicator-new=x
              git diff --no-ext-diff --no-textconv --output-indicator-new=x
            diff --ext-diff
              no: `--ext-diff` may mean --ext-diff, which packs may not use
            diff --text --patch
              git diff --no-ext-diff --no-textconv --text --patch
            rev-parse --git-dir
              git rev-parse --git-dir
            diff --no-index a b
              no: `--no-index` may mean --no-index, which packs may not use
            diff -- --output=x
              git diff --no-ext-diff --no-textconv -- --output=x
            diff /etc/passwd a
              no: `/etc/passwd` may lead out of the workspace
            diff ../x a
              no: `../x` may lead out of the workspace
            log --show-signature
              no: `--show-signature` may mean --show-signature, which packs may not use
            -c core.pager=sh log
              no: `-c core.pager` is not among the settings that packs may give
            -C /tmp status
              no: `git -C` is not among the options that packs may use
            --git-dir=x status
              no: `git --git-dir=x` is not among the options that packs may use
            fetch
              no: `git fetch` is not among the subcommands that packs may run
            push
              no: `git push` is not among the subcommands that packs may run
            submodule update
              no: `git submodule` is not among the subcommands that packs may run
            x
              no: `git x` is not among the subcommands that packs may run

              no: git wants a subcommand
            add -- a b
              no: `git add` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: git add -- a b
            commit -F - -- a
              no: `git commit` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: git commit -F - -- a
            commit -F../secret
              no: `git commit` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: no: `-F../secret` may lead out of the workspace
            add --pathspec-from-file=- --pathspec-file-nul
              no: `git add` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: git add --pathspec-from-file=- --pathspec-file-nul
            add --pathspec-from-file=x
              no: `git add` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: no: `--pathspec-from-file` may mean --pathspec-from-file, which packs may not use
            commit --interactive
              no: `git commit` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: no: `--interactive` may mean --interactive, which packs may not use
            add -p
              no: `git add` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: no: `git add -p` asks questions that nobody answers
            tag v1
              no: `git tag` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: git tag v1
            branch -D side
              no: `git branch` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: git branch -D side
            stash
              no: `git stash` writes; the workspace's `git` would have to be "write", and the pack ask for it
              when writing: git stash
            --exec-path=x status
              no: `git --exec-path=x` is not among the options that packs may use
        "#]].assert_eq(&log);
    }
}
