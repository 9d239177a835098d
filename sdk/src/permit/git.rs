//! Git commands that packs may run: subcommands and options are on a list, and everything else is refused.
//!
//! What git gets is not what the pack wrote but what was understood of it: options one by one, with their
//! values attached, and paths behind `--`. So git cannot read an argument in another way than this did.

mod config;
mod formats;
mod options;
mod writes;

use crate::GitAccess;

pub use config::names_filters;
pub(super) use config::{Scope, check as check_config};
use options::{Effect, Kind, Positional, Subcommand, Value};
pub use writes::{Ask, Bounds, TreeWrites};

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

/// Subcommands that many know, with what packs do instead.
const INSTEAD: &[(&str, &str)] = &[
    ("mv", "write the file elsewhere, then use `rm` and `add`"),
    ("checkout", "use `switch` or `restore`"),
    ("stash", "commit to a branch"),
];

/// Settings of every git that a pack starts: no hooks, no monitors, no signatures, nothing of other
/// repositories in the work tree.
const OVERRIDES: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
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

/// Variables of every git that a pack starts: no prompts, no network, no helpers.
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
];

/// Environment of every git that a pack starts.
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

/// A command of git that is among those a pack may run. Where it runs is decided by
/// [`Repository`](super::Repository).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCommand {
    /// The subcommand.
    pub name: &'static str,
    /// Arguments of git, in the order git gets them.
    pub arguments: Vec<String>,
    /// Paths that the command names, of files that git may open. They are relative, and not git's own.
    pub paths: Vec<Vec<u8>>,
    /// Files that git writes beside its own.
    pub writes: TreeWrites,
    /// The revision that files are restored from, if it is not the index.
    source: Option<String>,
}

impl GitCommand {
    /// Whether it changes neither the repository nor the work tree.
    #[must_use]
    pub fn reads_only(&self) -> bool {
        options::find(self.name).is_some_and(|known| known.effect == Effect::Read)
    }
}

/// The command, or why it may not run.
pub(super) fn checked(arguments: &[String], access: GitAccess, stdin: &[u8]) -> Result<GitCommand, String> {
    let at = subcommand(arguments)?;
    let (before, rest) = arguments.split_at(at);
    let Some((name, words)) = rest.split_first() else {
        return Err("git wants a subcommand".to_owned());
    };
    let subcommand = find(name, access)?;
    let parsed = Parsed::read(subcommand, words)?;
    parsed.refuse_combinations()?;
    let paths = parsed.opened(stdin)?;
    let writes = parsed.writes();
    let mut safe = before.to_vec();
    if writes != TreeWrites::Nothing {
        // A pattern could name more than the paths that were checked.
        safe.push("--literal-pathspecs".to_owned());
    }
    safe.push(name.clone());
    // Nothing on the lists takes these back.
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
        let instead = INSTEAD.iter().find(|(known, _)| *known == name);
        let instead = instead.map_or_else(String::new, |(_, instead)| format!("; {instead}"));
        let names: Vec<&str> = options::SUBCOMMANDS.iter().map(|known| known.name).collect();
        return Err(format!(
            "`git {name}` is not among the subcommands that packs may run{instead}: {}",
            names.join(", ")
        ));
    };
    match (subcommand.effect, access) {
        (Effect::Read, _) | (_, GitAccess::Write) => Ok(subcommand),
        _ => Err(format!(
            "`git {name}` writes, and git may only read here; set `git = \"write\"` in [workspaces.NAME], for a pack that \
             asks for it"
        )),
    }
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
                        "`-c {key}` is not among the settings that packs may give: {}",
                        SETTINGS.join(", ")
                    ));
                }
                2
            }
            (option, _) => {
                return Err(format!(
                    "`git {option}` is not among the options that packs may use: {}, -c",
                    GLOBAL.join(", ")
                ));
            }
        };
    }
    Ok(at)
}

/// Arguments of a subcommand, told apart.
struct Parsed {
    subcommand: &'static Subcommand,
    /// Names of the options.
    options: Vec<String>,
    revisions: Vec<String>,
    paths: Vec<String>,
    /// Options and revisions in their order, which means something to git.
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

    /// Takes what is no option.
    fn plain(&mut self, word: &str) {
        match self.subcommand.positional {
            Positional::Paths => self.paths.push(word.to_owned()),
            _ => {
                self.revisions.push(word.to_owned());
                self.words.push(word.to_owned());
            }
        }
    }

    /// `--name`, `--name=value`, or `--name value`.
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
                let value = words.next().ok_or_else(|| format!("`{name}` wants a value"))?;
                Some((kind, value.clone()))
            }
            (Value::Attached(_), None) => return Err(format!("`{name}` wants a value: {name}=VALUE")),
            (Value::None, Some(_)) => return Err(format!("`{name}` takes no value")),
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

    /// Letters behind one dash, each of which is an option; what follows one that takes a value is that.
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
                    return Err(format!("`{name}` wants a value: {name}VALUE"));
                }
                Value::Wanted(kind) if rest.is_empty() => {
                    let value = words.next().ok_or_else(|| format!("`{name}` wants a value"))?;
                    (kind, value.clone())
                }
                Value::Optional(kind) | Value::Attached(kind) | Value::Wanted(kind) => {
                    (kind, rest.to_owned())
                }
            };
            self.check(&name, kind, &value)?;
            // Attached, so that git takes it for the value whatever it looks like; an empty one cannot be.
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
            "`{name}` is not among the options of `git {}` that packs may use: {}",
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
            _ => "a name that is no option",
        };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "`{option}` may not have the value `{value}`; it has to be {wanted}"
            )),
        }
    }

    /// Looks at revisions and paths.
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
                return Err(format!("`git {name}` takes no arguments but options"));
            }
            Positional::Nothing | Positional::Revisions if !self.paths.is_empty() => {
                return Err(format!("`git {name}` takes no paths"));
            }
            _ => {}
        }
        self.revisions.iter().try_for_each(|name| revision(name))?;
        self.paths.iter().try_for_each(|path| self::path(path.as_bytes()))
    }

    fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.as_str()))
    }

    /// Refuses what is harmless only with, or without, something else.
    fn refuse_combinations(&self) -> Result<(), String> {
        match self.subcommand.name {
            "config" if !(self.has(&["--list"]) && self.has(&["--name-only"])) => {
                Err("`git config` may only list names: --list --name-only [--show-scope] [-z]".to_owned())
            }
            "cat-file" if self.has(&["--batch", "--batch-check"]) && !self.revisions.is_empty() => {
                Err("`git cat-file --batch` reads names of objects from standard input".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Paths of files that git may open.
    fn opened(&self, stdin: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut opened: Vec<Vec<u8>> = self.paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        // What stands behind the colon is looked for in the work tree if it is not in the commit.
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

    /// What the command writes in the work tree.
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

    /// The revision that `restore` takes files from: the last that is named.
    fn source(&self) -> Option<String> {
        if self.subcommand.name != "restore" {
            return None;
        }
        let given = |word: &&String| word.starts_with("--source=") || word.starts_with("-s");
        let named = self.words.iter().rev().find(given);
        let named = named.map(|word| word.strip_prefix("--source=").unwrap_or(&word[2..]).to_owned());
        // With the index as a target too, git takes files from HEAD.
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

/// Why something may not be given as a revision.
fn revision(name: &str) -> Result<(), String> {
    let shown = name.escape_debug();
    if name.starts_with('-') {
        return Err(format!(
            "`{shown}` looks like an option and stands where a revision has to be"
        ));
    }
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!("`{shown}` is no revision"));
    }
    Ok(())
}

/// Why something may not be given as a path.
fn path(path: &[u8]) -> Result<(), String> {
    let shown = || String::from_utf8_lossy(path).escape_debug().to_string();
    if path.starts_with(b"/") || path.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return Err(format!(
            "`{}` may lead out of the workspace; paths are relative, without `..`",
            shown()
        ));
    }
    let names = path.split(|byte| *byte == b'/');
    if names
        .map(String::from_utf8_lossy)
        .any(|name| super::is_git_name(&name))
    {
        return Err(format!(
            "`{}` belongs to git; name files of the work tree",
            shown()
        ));
    }
    Ok(())
}

/// A line of paths as git reads it: in double quotes, with escapes as in C, or plain.
fn unquoted(line: &[u8]) -> Result<Vec<u8>, String> {
    let Some(inner) = line.strip_prefix(b"\"") else {
        return Ok(line.to_vec());
    };
    let odd = || {
        format!(
            "`{}` is no path as git quotes it",
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
