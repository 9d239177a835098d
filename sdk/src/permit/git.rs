//! Allowlist of git commands for packs: subcommands and options on the list are permitted, all others are
//! refused.
//!
//! Git gets the parsed form of the command, not the text of the pack: options one by one, with their values
//! attached, and paths after `--`. So git cannot parse an argument differently.

mod config;
mod formats;
mod options;
mod writes;

use crate::GitAccess;

pub use config::names_filters;
pub(super) use config::{Scope, check as check_config};
use options::{Effect, IDENTITIES, Kind, Positional, Subcommand, Value};
pub use writes::{Ask, Bounds, TreeWrites};

/// Options before the subcommand that only affect the output.
const GLOBAL_OPTIONS: &[&str] = &[
    "--no-pager",
    "--no-optional-locks",
    "--no-replace-objects",
    "--literal-pathspecs",
];

/// Settings that `-c` may set, in lower case.
const SETTINGS: &[&str] = &[
    "core.quotepath",
    "color.ui",
    "diff.renames",
    "status.renames",
    // Values other than the repository's, with which git checks files more carefully.
    "core.ignorecase",
    "core.commitgraph",
    "user.name",
    "user.email",
];

/// Common subcommands that are not permitted, with the alternative.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("mv", "write the file elsewhere, then use `rm` and `add`"),
    ("checkout", "use `switch` or `restore`"),
    ("stash", "commit to a branch"),
];

/// Settings of every git process of a pack: no hooks, no monitors, no signatures, no nested repositories.
const OVERRIDES: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    // These decide whether git considers a file changed. A repository must not hide changes with them.
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.untrackedCache", "false"),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("commit.gpgSign", "false"),
    ("commit.verbose", "false"),
    ("tag.gpgSign", "false"),
    ("tag.forceSignAnnotated", "false"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
    ("interactive.diffFilter", "cat"),
    ("checkout.workers", "1"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("safe.bareRepository", "explicit"),
];

/// Variables of every git process of a pack: no prompts, no network, no helpers.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // The file does not exist, so a commit's parents cannot be replaced.
    ("GIT_GRAFT_FILE", "/dev/null/grafts"),
];

/// Environment of every git process of a pack.
pub fn environment() -> Vec<(String, String)> {
    let variables = VARIABLES
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let overrides = OVERRIDES.iter().enumerate().flat_map(|(number, &(key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{number}"), key.to_owned()),
            (format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()),
        ]
    });
    let count = ("GIT_CONFIG_COUNT".to_owned(), OVERRIDES.len().to_string());
    variables.chain(overrides).chain([count]).collect()
}

/// A permitted git command. [`Repository`](super::Repository) decides where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCommand {
    /// Name of the subcommand.
    pub name: &'static str,
    /// Arguments of git, in order.
    pub arguments: Vec<String>,
    /// Paths in the command whose files git may open. They are relative and not inside `.git`.
    pub paths: Vec<Vec<u8>>,
    /// Files that git writes in the work tree.
    pub writes: TreeWrites,
    /// Revision that files are restored from, if it is not the index.
    source: Option<String>,
}

impl GitCommand {
    /// Checks whether the command changes neither the repository nor the work tree.
    #[must_use]
    pub fn reads_only(&self) -> bool {
        options::find(self.name).is_some_and(|known| known.effect == Effect::Read)
    }

    /// Checks whether git starts no filter for the command, whatever filters are configured.
    #[must_use]
    pub fn runs_no_filter(&self) -> bool {
        self.reads_only() && !options::CONVERTING.contains(&self.name)
    }
}

/// Returns the permitted form of a command, or the reason why it is refused.
pub(super) fn checked(arguments: &[String], access: GitAccess, stdin: &[u8]) -> Result<GitCommand, String> {
    let at = subcommand(arguments)?;
    let (before, rest) = arguments.split_at(at);
    let Some((name, words)) = rest.split_first() else {
        return Err("git needs a subcommand, for example status".to_owned());
    };
    let subcommand = find(name, access)?;
    let parsed = Parsed::read(subcommand, words)?;
    parsed.refuse_combinations()?;
    let paths = parsed.opened(stdin)?;
    let writes = parsed.writes();
    let mut safe = before.to_vec();
    if writes != TreeWrites::Nothing {
        // A pattern could match more than the checked paths.
        safe.push("--literal-pathspecs".to_owned());
    }
    safe.push(name.clone());
    // No option on the lists reverts these.
    safe.extend(subcommand.added.iter().map(|&option| option.to_owned()));
    safe.extend(parsed.words.iter().cloned());
    if !matches!(subcommand.positional, Positional::Nothing | Positional::Revisions) {
        safe.push("--".to_owned());
    }
    safe.extend(parsed.paths.iter().cloned());
    Ok(GitCommand {
        name: subcommand.name,
        arguments: safe,
        paths,
        writes,
        source: parsed.source(),
    })
}

fn find(name: &str, access: GitAccess) -> Result<&'static Subcommand, String> {
    let Some(subcommand) = options::find(name) else {
        let instead = ALTERNATIVES.iter().find(|(known, _)| *known == name);
        let instead = instead.map_or_else(String::new, |(_, instead)| format!("; {instead}"));
        let names: Vec<&str> = options::SUBCOMMANDS.iter().map(|known| known.name).collect();
        return Err(format!(
            "`git {name}` is not one of the subcommands that packs may run{instead}: {}",
            names.join(", ")
        ));
    };
    let reason = match (subcommand.effect, access) {
        (_, GitAccess::Write) => return Ok(subcommand),
        (Effect::Read, GitAccess::Read) if !options::PERSONAL.contains(&name) => return Ok(subcommand),
        (Effect::Read, GitAccess::Read) => "shows the committer",
        _ => "writes",
    };
    Err(format!(
        "`git {name}` {reason}, but git may only read here; set `git = \"write\"` in [workspaces.NAME], for a pack that \
         requests it"
    ))
}

/// Index of the subcommand, after harmless options.
fn subcommand(arguments: &[String]) -> Result<usize, String> {
    let mut at = 0;
    while let Some(option) = arguments.get(at).filter(|argument| argument.starts_with('-')) {
        at += match (option.as_str(), arguments.get(at + 1)) {
            (option, _) if GLOBAL_OPTIONS.contains(&option) => 1,
            ("-c", Some(setting)) => {
                let key = setting.split('=').next().unwrap_or_default().to_ascii_lowercase();
                if !SETTINGS.contains(&key.as_str()) {
                    return Err(format!(
                        "`-c {key}` is not one of the settings that packs may set: {}",
                        SETTINGS.join(", ")
                    ));
                }
                2
            }
            (option, _) => {
                return Err(format!(
                    "`git {option}` is not one of the options that packs may use: {}, -c",
                    GLOBAL_OPTIONS.join(", ")
                ));
            }
        };
    }
    Ok(at)
}

/// Parsed arguments of a subcommand.
struct Parsed {
    subcommand: &'static Subcommand,
    /// Names of the options.
    options: Vec<String>,
    revisions: Vec<String>,
    paths: Vec<String>,
    /// Options and revisions in their order, which matters to git.
    words: Vec<String>,
}

impl Parsed {
    fn read(subcommand: &'static Subcommand, words: &[String]) -> Result<Parsed, String> {
        let mut parsed = Parsed {
            subcommand,
            options: Vec::new(),
            revisions: Vec::new(),
            paths: Vec::new(),
            words: Vec::new(),
        };
        let mut words = words.iter();
        let mut separated = false;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--" => {
                    separated = true;
                    parsed.paths.extend(words.by_ref().cloned());
                }
                "--end-of-options" if subcommand.name == "rev-parse" => {
                    parsed.give("--end-of-options", &[word]);
                    words.by_ref().for_each(|word| parsed.plain(word));
                }
                long if long.starts_with("--") => parsed.long(long, &mut words)?,
                short if short.starts_with('-') && short.len() > 1 => parsed.short(short, &mut words)?,
                plain => parsed.plain(plain),
            }
        }
        parsed.sort(separated)?;
        Ok(parsed)
    }

    /// Parses an argument that is not an option.
    fn plain(&mut self, word: &str) {
        match self.subcommand.positional {
            Positional::Paths => self.paths.push(word.to_owned()),
            _ => {
                self.revisions.push(word.to_owned());
                self.words.push(word.to_owned());
            }
        }
    }

    /// Parses `--name`, `--name=value`, or `--name value`.
    fn long<'w>(&mut self, word: &str, words: &mut impl Iterator<Item = &'w String>) -> Result<(), String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let value = match (self.value_of(name)?, value) {
            (Value::None | Value::Optional(_), None) => None,
            (Value::Optional(kind) | Value::Attached(kind) | Value::Wanted(kind), Some(value)) => {
                Some((kind, value.to_owned()))
            }
            (Value::Wanted(kind), None) => {
                let value = words.next().ok_or_else(|| format!("`{name}` requires a value"))?;
                Some((kind, value.clone()))
            }
            (Value::Attached(_), None) => return Err(format!("`{name}` requires a value: {name}=VALUE")),
            (Value::None, Some(_)) => return Err(format!("`{name}` does not accept a value")),
        };
        if let Some((kind, value)) = &value {
            self.check(name, *kind, value)?;
        }
        let value = value.map(|(_, value)| value);
        let word = value
            .as_ref()
            .map_or_else(|| name.to_owned(), |value| format!("{name}={value}"));
        self.give(name, &[&word]);
        Ok(())
    }

    /// Parses letters after one dash, each an option; the text after an option with a value is that value.
    fn short<'w>(&mut self, word: &str, words: &mut impl Iterator<Item = &'w String>) -> Result<(), String> {
        let letters = &word[1..];
        if letters.bytes().all(|byte| byte.is_ascii_digit()) && self.subcommand.option(word).is_none() {
            self.value_of("-NUMBER").map_err(|_| self.refused(word))?;
            self.give("-NUMBER", &[word]);
            return Ok(());
        }
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            let name = format!("-{letter}");
            rest = &rest[letter.len_utf8()..];
            let (kind, value) = match self.value_of(&name)? {
                Value::None => {
                    self.give(&name, &[&name]);
                    continue;
                }
                Value::Optional(_) if rest.is_empty() => {
                    self.give(&name, &[&name]);
                    continue;
                }
                Value::Attached(_) if rest.is_empty() => {
                    return Err(format!("`{name}` requires a value: {name}VALUE"));
                }
                Value::Wanted(kind) if rest.is_empty() => {
                    let value = words.next().ok_or_else(|| format!("`{name}` requires a value"))?;
                    (kind, value.clone())
                }
                Value::Optional(kind) | Value::Attached(kind) | Value::Wanted(kind) => {
                    (kind, rest.to_owned())
                }
            };
            self.check(&name, kind, &value)?;
            // Attached, so that git reads any text as the value; an empty value cannot be attached.
            match value.is_empty() {
                true => self.give(&name, &[&name, ""]),
                false => self.give(&name, &[&format!("{name}{value}")]),
            }
            rest = "";
        }
        Ok(())
    }

    fn give(&mut self, name: &str, words: &[&str]) {
        self.words.extend(words.iter().map(|&word| word.to_owned()));
        self.options.push(name.to_owned());
    }

    fn value_of(&self, name: &str) -> Result<Value<'static>, String> {
        self.subcommand.option(name).ok_or_else(|| self.refused(name))
    }

    fn refused(&self, name: &str) -> String {
        let words: Vec<&str> = self.subcommand.words().collect();
        format!(
            "`{name}` is not one of the options of `git {}` that packs may use: {}",
            self.subcommand.name,
            words.join(" ")
        )
    }

    fn check(&self, option: &str, kind: Kind<'_>, value: &str) -> Result<(), String> {
        let fits = match kind {
            Kind::Text => true,
            Kind::Number => value
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'%')),
            Kind::Stdin => value == "-",
            Kind::OneOf(words) => words.split('|').any(|word| word == value),
            Kind::Name => !value.starts_with('-'),
            Kind::Revision => return revision(value),
            Kind::Pretty => return formats::pretty(value),
            Kind::Fields => return formats::fields(value),
            Kind::Sort => return formats::sort(value),
        };
        let wanted = match kind {
            Kind::Number => "a number",
            Kind::Stdin => "`-`, which is standard input",
            Kind::OneOf(words) => words,
            _ => "a name that is not an option",
        };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "`{option}` cannot have the value `{value}`; it must be {wanted}"
            )),
        }
    }

    /// Checks revisions and paths.
    fn sort(&mut self, separated: bool) -> Result<(), String> {
        let name = self.subcommand.name;
        match self.subcommand.positional {
            Positional::RevisionsAndPath if !separated && !self.revisions.is_empty() => {
                if let Some(path) = self.revisions.pop() {
                    let last = self.words.iter().rposition(|word| *word == path);
                    last.map(|last| self.words.remove(last));
                    self.paths.push(path);
                }
            }
            Positional::Nothing if !self.revisions.is_empty() => {
                return Err(format!("`git {name}` accepts only options"));
            }
            Positional::Nothing | Positional::Revisions if !self.paths.is_empty() => {
                return Err(format!("`git {name}` does not accept paths"));
            }
            _ => {}
        }
        self.revisions.iter().try_for_each(|name| revision(name))?;
        self.paths.iter().try_for_each(|path| self::path(path.as_bytes()))
    }

    fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.as_str()))
    }

    /// Refuses options that are harmless only with, or without, another one.
    fn refuse_combinations(&self) -> Result<(), String> {
        match self.subcommand.name {
            "config" if !(self.has(&["--list"]) && self.has(&["--name-only"])) => {
                Err("`git config` may only list names: --list --name-only [--show-scope] [-z]".to_owned())
            }
            "cat-file" if self.has(&["--batch", "--batch-check"]) && !self.revisions.is_empty() => {
                Err("`git cat-file --batch` reads names of objects from standard input".to_owned())
            }
            "var" if !matches!(self.revisions.as_slice(), [name] if IDENTITIES.contains(&name.as_str())) => {
                Err(format!("`git var` may only print {}", IDENTITIES.join(" or ")))
            }
            _ => Ok(()),
        }
    }

    /// Paths of files that git may open.
    fn opened(&self, stdin: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut opened: Vec<Vec<u8>> = self.paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        // The text after the colon is searched in the work tree if the commit does not have it.
        opened.extend(self.revisions.iter().filter_map(|revision| {
            let (_, path) = revision.split_once(':')?;
            Some(path.as_bytes().to_vec()).filter(|bytes| self::path(bytes).is_ok())
        }));
        if self.has(&["--stdin-paths"]) {
            for line in stdin.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let named = unquoted(line.strip_suffix(b"\r").unwrap_or(line))?;
                path(&named)?;
                opened.push(named);
            }
        }
        Ok(opened)
    }

    /// Files that the command writes in the work tree.
    fn writes(&self) -> TreeWrites {
        let below = || TreeWrites::Below(self.paths.clone());
        match self.subcommand.name {
            "restore" if self.has(&["-S", "--staged"]) && !self.has(&["-W", "--worktree"]) => {
                TreeWrites::Nothing
            }
            "restore" => below(),
            "rm" if self.has(&["--cached", "-n", "--dry-run"]) => TreeWrites::Nothing,
            "rm" => below(),
            "reset" if self.has(&["--hard", "--keep"]) => TreeWrites::Anything,
            "switch" => self.switches(),
            _ => TreeWrites::Nothing,
        }
    }

    /// Revision that `restore` takes files from: the last one given.
    fn source(&self) -> Option<String> {
        if self.subcommand.name != "restore" {
            return None;
        }
        let given = |word: &&String| word.starts_with("--source=") || word.starts_with("-s");
        let named = self.words.iter().rev().find(given);
        let named = named.map(|word| word.strip_prefix("--source=").unwrap_or(&word[2..]).to_owned());
        // If the index is a target too, git takes files from HEAD.
        named.or_else(|| self.has(&["-S", "--staged"]).then(|| "HEAD".to_owned()))
    }

    fn switches(&self) -> TreeWrites {
        let made = self.has(&["-c", "--create", "-C", "--force-create"]);
        match (self.has(&["--orphan"]), self.revisions.as_slice()) {
            // All tracked files are removed.
            (true, _) => TreeWrites::Anything,
            (false, []) if made || self.has(&["-d", "--detach"]) => TreeWrites::Nothing,
            (false, [target]) => TreeWrites::To(target.clone()),
            _ => TreeWrites::Anything,
        }
    }
}

/// Refuses text that is not permitted as a revision.
fn revision(name: &str) -> Result<(), String> {
    let shown = name.escape_debug();
    if name.starts_with('-') {
        return Err(format!(
            "`{shown}` looks like an option in the place of a revision"
        ));
    }
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!("`{shown}` is not a revision"));
    }
    Ok(())
}

/// Refuses text that is not permitted as a path.
fn path(path: &[u8]) -> Result<(), String> {
    let shown = || String::from_utf8_lossy(path).escape_debug().to_string();
    if path.starts_with(b"/") || path.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return Err(format!(
            "`{}` may leave the workspace; use a relative path without `..`",
            shown()
        ));
    }
    let names = path.split(|byte| *byte == b'/');
    if names
        .map(String::from_utf8_lossy)
        .any(|name| super::is_git_name(&name))
    {
        return Err(format!(
            "`{}` belongs to git; pass files of the work tree",
            shown()
        ));
    }
    Ok(())
}

/// Parses a line with a path as git does: in double quotes with escapes as in C, or plain.
fn unquoted(line: &[u8]) -> Result<Vec<u8>, String> {
    let Some(inner) = line.strip_prefix(b"\"") else {
        return Ok(line.to_vec());
    };
    let odd = || {
        format!(
            "`{}` is not a path in git's quoted form",
            String::from_utf8_lossy(line).escape_debug()
        )
    };
    let inner = inner.strip_suffix(b"\"").ok_or_else(odd)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'"' => return Err(odd()),
            b'\\' => match rest.next().ok_or_else(odd)? {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                plain @ (b'"' | b'\\') => plain,
                first @ b'0'..=b'3' => {
                    let mut octal = || rest.next().filter(|digit| (b'0'..=b'7').contains(digit));
                    let (Some(second), Some(third)) = (octal(), octal()) else {
                        return Err(odd());
                    };
                    (first - b'0') << 6 | (second - b'0') << 3 | (third - b'0')
                }
                _ => return Err(odd()),
            },
            plain => plain,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
