//! Checks of a repository's own configuration: settings that name programs, or files elsewhere, are refused.
//!
//! For sections known to git, permitted settings are listed; sections of other tools have no effect on git. The
//! file is parsed as git does, and a file that git would refuse is refused.

use std::fmt;

/// Sections of git in which no setting names a program that a permitted command starts, or a file that one
/// reads or writes.
#[cfg(test)]
const SECTIONS: &[&str] = &[
    "add",
    "advice",
    "alias",
    "am",
    "apply",
    "attr",
    "author",
    "bitmappseudomerge",
    "branch",
    "bundle",
    "checkout",
    "clean",
    "color",
    "column",
    "commitgraph",
    "committer",
    "completion",
    "credential",
    "credentialcache",
    "credentialstore",
    "difftool",
    "fastimport",
    "feature",
    "fetch",
    "format",
    "fsck",
    "fsmonitor",
    "gc",
    "gitcvs",
    "gitweb",
    "grep",
    "gui",
    "guitool",
    "help",
    "http",
    "i18n",
    "imap",
    "index",
    "init",
    "instaweb",
    "interactive",
    "lsrefs",
    "mailinfo",
    "maintenance",
    "mergetool",
    "notes",
    "pack",
    "pager",
    "pretty",
    "promisor",
    "protocol",
    "pull",
    "push",
    "rebase",
    "receive",
    "reftable",
    "remotes",
    "repack",
    "rerere",
    "revert",
    "safe",
    "sendemail",
    "sequence",
    "showbranch",
    "sparse",
    "splitindex",
    "ssh",
    "stash",
    "status",
    "tar",
    "trace2",
    "transfer",
    "uploadarchive",
    "uploadpack",
    "uploadpackfilter",
    "url",
    "user",
    "versionsort",
    "web",
    "worktree",
];

/// Permitted settings of other sections of git; `*` matches any name in the middle. Programs that some of them
/// would start are disabled by the environment, or by options that git always gets.
const SETTINGS: &[&str] = &[
    "blame.blankboundary blame.coloring blame.date blame.markignoredlines blame.markunblamablelines blame.showemail \
     blame.showroot commit.cleanup commit.gpgsign commit.status commit.verbose",
    "core.abbrev core.askpass core.autocrlf core.bare core.bigfilethreshold core.checkroundtripencoding core.checkstat \
     core.commentchar core.commentstring core.commitgraph core.compression core.createobject core.deltabasecachelimit \
     core.disambiguate core.editor core.eol core.filemode core.filesreflocktimeout core.fscache core.fsmonitor core.fsync \
     core.fsyncmethod core.fsyncobjectfiles core.hidedotfiles core.hookspath core.ignorecase core.ignorestat \
     core.logallrefupdates core.longpaths core.loosecompression core.maxtreedepth core.multipackindex core.notesref \
     core.packedgitlimit core.packedgitwindowsize core.packedrefstimeout core.pager core.precomposeunicode \
     core.preloadindex core.protecthfs core.protectntfs core.quotepath core.repositoryformatversion core.safecrlf \
     core.sharedrepository core.sparsecheckout core.sparsecheckoutcone core.splitindex core.sshcommand core.symlinks \
     core.trustctime core.untrackedcache core.usereplacerefs core.warnambiguousrefs core.whitespace",
    "diff.algorithm diff.autorefreshindex diff.colormoved diff.colormovedws diff.context diff.dirstat diff.dstprefix \
     diff.external diff.guitool diff.ignoresubmodules diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.nodiff \
     diff.noindex diff.noprefix diff.relative diff.renamelimit diff.renames diff.srcprefix diff.statgraphwidth \
     diff.statnamewidth diff.submodule diff.suppressblankempty diff.tool diff.trustexitcode diff.wordregex \
     diff.wserrorhighlight diff.*.algorithm diff.*.binary diff.*.cachetextconv diff.*.command diff.*.funcname diff.*.textconv diff.*.trustexitcode \
     diff.*.wordregex diff.*.xfuncname",
    "extensions.compatobjectformat extensions.noop extensions.objectformat extensions.partialclone \
     extensions.preciousobjects extensions.refstorage extensions.relativeworktrees extensions.worktreeconfig",
    "filter.*.required gpg.format gpg.mintrustlevel",
    "log.abbrevcommit log.date log.decorate log.diffmerges log.excludedecoration log.follow log.graphcolors \
     log.initialdecorationset log.mailmap log.showroot log.showsignature mailmap.blob",
    "merge.autostash merge.branchdesc merge.conflictstyle merge.defaulttoupstream merge.directoryrenames merge.ff \
     merge.guitool merge.log merge.renamelimit merge.renames merge.renormalize merge.stat merge.suppressdest merge.tool \
     merge.verbosity merge.verifysignatures merge.*.name merge.*.recursive",
    "remote.pushdefault remote.*.fetch remote.*.followremotehead remote.*.gh-resolved remote.*.mirror \
     remote.*.partialclonefilter remote.*.projectsv2 remote.*.promisor remote.*.proxy remote.*.proxyauthmethod \
     remote.*.prune remote.*.prunetags remote.*.push remote.*.pushurl remote.*.serveroption remote.*.skipdefaultupdate \
     remote.*.skipfetchall remote.*.tagopt remote.*.url",
    "submodule.active submodule.alternateerrorstrategy submodule.alternatelocation submodule.fetchjobs \
     submodule.propagatebranches submodule.recurse submodule.*.active submodule.*.branch \
     submodule.*.fetchrecursesubmodules submodule.*.ignore submodule.*.update submodule.*.url",
    "tag.forcesignannotated tag.gpgsign tag.sort trailer.separators trailer.ifexists trailer.ifmissing trailer.where \
     trailer.*.ifexists trailer.*.ifmissing trailer.*.key trailer.*.where",
];

/// Sections of git whose settings must be listed above.
const LISTED_SECTIONS: &[&str] = &[
    "blame",
    "browser",
    "commit",
    "core",
    "diff",
    "extensions",
    "filter",
    "gpg",
    "hook",
    "include",
    "includeif",
    "log",
    "mailmap",
    "man",
    "merge",
    "remote",
    "submodule",
    "tag",
    "trailer",
];

/// Checks settings that are permitted with some values only.
fn value_fits(key: &str, value: &str) -> bool {
    match key {
        VERSION => matches!(value, "0" | "1"),
        "extensions.refstorage" => matches!(value, "files" | "reftable"),
        // `remerge` repeats merges, and merge drivers may be programs.
        "log.diffmerges" => !value.trim_start().starts_with('r'),
        _ if key.starts_with("submodule.") && key.ends_with(".ignore") => matches!(value, "all" | "dirty"),
        _ => true,
    }
}

const VERSION: &str = "core.repositoryformatversion";
/// Extensions that exist only in version 1.
const VERSION_1: &[&str] = &[
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.relativeworktrees",
];

/// Settings that affect one subcommand only.
const ONLY_FOR: &[(&str, &str)] = &[("blame.ignorerevsfile", "blame"), ("commit.template", "commit")];

/// Circumstances that the check of a configuration depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Subcommand to run.
    pub(crate) subcommand: &'a str,
    /// Settings that the operator accepts, as patterns.
    pub(crate) accepted: &'a [String],
    /// True if the operator named the repository, so that its work tree may be set.
    pub(crate) named: bool,
}

/// Names of the settings that are not permitted, sorted.
pub(crate) fn check(content: &[u8], scope: Scope<'_>) -> Result<Vec<String>, Malformed> {
    let mut refused = Vec::new();
    let settings: Vec<Setting> = read(content)?.into_iter().collect();
    // Git does not accept a repository of version 0 with extensions of version 1, and compares plain files
    // then.
    let mut versions = settings.iter().filter(|setting| setting.key == VERSION);
    if versions.next_back().is_none_or(|setting| setting.value != "1") {
        let newer = settings.iter().map(|setting| setting.key.as_str());
        refused.extend(newer.filter(|key| VERSION_1.contains(key)).map(str::to_owned));
        refused.dedup();
    }
    for Setting { key, value } in settings {
        if !scope.allows(&key, &value) && !refused.contains(&key) {
            refused.push(key);
        }
    }
    refused.sort();
    Ok(refused)
}

impl Scope<'_> {
    fn allows(&self, key: &str, value: &str) -> bool {
        let section = key.split('.').next().unwrap_or_default();
        let includes = matches!(section, "include" | "includeif");
        if self
            .accepted
            .iter()
            .any(|pattern| !includes && matches(&pattern.to_ascii_lowercase(), &key.to_ascii_lowercase()))
        {
            return true;
        }
        // These commands read only names, and start nothing.
        if matches!(self.subcommand, "rev-parse" | "config" | "version") && !includes {
            return true;
        }
        if let Some((_, only)) = ONLY_FOR.iter().find(|(known, _)| *known == key) {
            return *only != self.subcommand;
        }
        if self.named && key == "core.worktree" {
            return true;
        }
        let listed = || SETTINGS.iter().flat_map(|keys| keys.split_whitespace());
        match LISTED_SECTIONS.contains(&section) {
            true => listed().any(|known| matches(known, key)) && value_fits(key, value),
            false => true,
        }
    }
}

/// Checks whether a pattern with at most one `*` matches a key. `filter.lfs.*` matches all of a section.
fn matches(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((before, after)) => {
            key.len() > before.len() + after.len() && key.starts_with(before) && key.ends_with(after)
        }
    }
}

/// Checks whether the operator's own configuration has filters, which git may then start.
#[must_use]
pub fn names_filters(content: &[u8]) -> bool {
    let Ok(settings) = read(content) else {
        return true;
    };
    settings.iter().any(|setting| {
        setting.key.starts_with("include")
            || setting.key.starts_with("filter.")
                && [".clean", ".smudge", ".process"]
                    .iter()
                    .any(|end| setting.key.ends_with(end))
    })
}

/// A setting, with section and name in lower case.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    key: String,
    value: String,
}

/// A configuration that git would not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    line: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} cannot be parsed by git", self.line)
    }
}

/// Parses a configuration as git does.
fn read(content: &[u8]) -> Result<Vec<Setting>, Malformed> {
    let mut reader = Reader {
        rest: content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content),
        line: 1,
    };
    let (mut settings, mut section) = (Vec::new(), None);
    while let Some(byte) = reader.next() {
        match byte {
            b'#' | b';' => reader.skip_line(),
            byte if is_space(byte) => {}
            b'[' => section = Some(reader.section().ok_or(Malformed { line: reader.line })?),
            byte if byte.is_ascii_alphabetic() => {
                let line = reader.line;
                let setting = reader.setting(section.as_deref(), byte);
                settings.push(setting.ok_or(Malformed { line })?);
            }
            _ => return Err(Malformed { line: reader.line }),
        }
    }
    Ok(settings)
}

/// Checks for white space as git's use of C's `isspace` does.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct Reader<'a> {
    rest: &'a [u8],
    line: usize,
}

impl Reader<'_> {
    /// Returns the next byte; a line ending counts as one byte.
    fn next(&mut self) -> Option<u8> {
        let (mut byte, mut rest) = self.rest.split_first()?;
        if *byte == b'\r' && rest.first() == Some(&b'\n') {
            (byte, rest) = rest.split_first()?;
        }
        self.rest = rest;
        self.line += usize::from(*byte == b'\n');
        Some(*byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// Parses the text between brackets, with a dot between section and subsection.
    fn section(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => return Some(name),
                byte if is_space(byte) => return self.subsection(name, byte),
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return None,
            }
        }
    }

    fn subsection(&mut self, mut name: String, mut byte: u8) -> Option<String> {
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => break,
                b'\\' => bytes.push(self.next().filter(|byte| *byte != b'\n')?),
                byte => bytes.push(byte),
            }
        }
        name.push('.');
        name.push_str(&String::from_utf8_lossy(&bytes));
        (self.next()? == b']').then_some(name)
    }

    fn setting(&mut self, section: Option<&str>, first: u8) -> Option<Setting> {
        let mut name = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(letter) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            name.push(char::from(letter.to_ascii_lowercase()));
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        let value = match byte {
            None | Some(b'\n') => String::new(),
            Some(b'=') => self.value()?,
            Some(_) => return None,
        };
        let key = section.map_or_else(|| name.clone(), |section| format!("{section}.{name}"));
        Some(Setting { key, value })
    }

    fn value(&mut self) -> Option<String> {
        let (mut value, mut quoted) = (Vec::new(), false);
        loop {
            match self.next() {
                None | Some(b'\n') if quoted => return None,
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.next() {
                    Some(b'\n') => {}
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(b'n') => value.push(b'\n'),
                    Some(plain @ (b'\\' | b'"')) => value.push(plain),
                    _ => return None,
                },
                Some(byte) => value.push(byte),
            }
        }
        Some(String::from_utf8_lossy(&value).trim().to_owned())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files for git to read")]
mod tests {
    use super::*;

    fn refused(subcommand: &str, accepted: &[&str], content: &str) -> String {
        let accepted: Vec<String> = accepted.iter().map(|&pattern| pattern.to_owned()).collect();
        let scope = Scope {
            subcommand,
            accepted: &accepted,
            named: false,
        };
        match check(content.as_bytes(), scope) {
            Ok(keys) => keys.join(" "),
            Err(malformed) => malformed.to_string(),
        }
    }

    #[test]
    fn a_configuration_is_read_as_git_reads_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config");
        let contents = [
            "\u{feff}[a]b=1 # c\n[A \"x\\\"] y\"]\n\tK-1 = \"q;\" \\\n  more\r\nempty\n[s.Sub]k=\\t\\\\x ; [filter \"f\"]clean=x",
            "[filter \"f\"] clean = a\n[filter\t\"g\" ]",
            "[x]y = \"open\nz = 1\n",
            "k = 1\n",
            "[x]\n= 1\n",
            "[x \"\ny\"]\nk=1\n",
            "[x]k\\\n=1\n",
            "[x]\nk 1\n",
            "[x]k=\\q\n",
            "[include]path=/x[filter \"y\"]clean=1\n# [a]\n[ia.b.c]d",
            "[x]a=1\0[b]\nc=2\n[d]\u{b}\ne=1",
            "",
        ];
        for content in contents {
            std::fs::write(&file, content).unwrap();
            let output = std::process::Command::new("git")
                .args(["config", "--list", "-z", "--no-includes", "--file"])
                .arg(&file)
                .output()
                .unwrap();
            let ours = read(content.as_bytes());
            assert_eq!(ours.is_ok(), output.status.success(), "{content:?} {ours:?}");
            let Ok(ours) = ours else { continue };
            let listed = String::from_utf8(output.stdout).unwrap();
            let theirs: Vec<&str> = listed
                .split_terminator('\0')
                .map(|entry| entry.split('\n').next().unwrap())
                .collect();
            if !content.contains('\0') {
                let ours: Vec<&str> = ours.iter().map(|setting| setting.key.as_str()).collect();
                assert_eq!(ours, theirs, "{content:?}");
            }
        }
    }

    #[test]
    fn settings_that_name_programs_or_files_are_refused() {
        let usual = "[core]\nrepositoryformatversion = 0\nbare = false\nhooksPath = .husky\n[remote \"origin\"]\nurl = x\n\
            fetch = +refs/heads/*\n[branch \"main\"]\nremote = origin\nvscode-merge-base = x\n[user]\nname = a\n\
            [gitflow \"branch\"]\nmaster = main\n[alias]\nst = status\n[lfs]\nrepositoryformatversion = 0\n";
        assert_eq!(refused("status", &[], usual), "");
        for key in [
            "filter.f.clean",
            "filter.f.smudge",
            "filter.f.process",
            "merge.m.driver",
            "trailer.t.cmd",
            "trailer.t.command",
            "man.x.cmd",
            "browser.x.cmd",
            "gpg.program",
            "gpg.ssh.program",
            "gpg.ssh.defaultkeycommand",
            "core.worktree",
            "core.attributesfile",
            "core.excludesfile",
            "core.gitproxy",
            "core.alternaterefscommand",
            "hook.x.command",
            "include.path",
            "includeif.gitdir:/.path",
            "remote.r.vcs",
            "remote.r.uploadpack",
            "mailmap.file",
            "diff.orderfile",
            "core.unheard-of",
            "core.sub.key",
        ] {
            let (section, name) = key.rsplit_once('.').unwrap();
            let section = match section.split_once('.') {
                Some((section, sub)) => format!("{section} \"{sub}\""),
                None => section.to_owned(),
            };
            assert_eq!(refused("status", &[], &format!("[{section}]\n{name} = x\n")), key);
        }
        let lfs = "[filter \"lfs\"]\nclean = git-lfs clean\nrequired\n[include]\npath = x\n";
        assert_eq!(refused("add", &[], lfs), "filter.lfs.clean include.path");
        assert_eq!(
            refused("add", &["filter.LFS.*", "include.*"], lfs),
            "include.path"
        );
        assert_eq!(refused("config", &[], lfs), "include.path");
        assert_eq!(
            refused("blame", &[], "[blame]ignoreRevsFile=x"),
            "blame.ignorerevsfile"
        );
        assert_eq!(refused("log", &[], "[blame]ignoreRevsFile=x"), "");
        assert_eq!(refused("log", &[], "[log]diffMerges=remerge"), "log.diffmerges");
        assert_eq!(refused("log", &[], "[x"), "line 1 cannot be parsed by git");
    }

    #[test]
    fn filters_of_the_operator_are_seen() {
        assert!(names_filters(
            b"[filter \"lfs\"]\nprocess = git-lfs filter-process\n"
        ));
        assert!(names_filters(b"[include]\npath = more\n"));
        assert!(!names_filters(b"[user]\nname = a\n[filter \"x\"]\nrequired\n"));
    }

    #[test]
    fn every_section_is_decided_once() {
        for section in LISTED_SECTIONS {
            assert!(!SECTIONS.contains(section), "{section}");
        }
        let known = std::process::Command::new("git")
            .args(["help", "-c"])
            .output()
            .unwrap();
        let known = String::from_utf8(known.stdout).unwrap();
        for key in known
            .lines()
            .filter(|line| line.contains('.') && !line.contains(' '))
        {
            let section = key.split('.').next().unwrap().to_ascii_lowercase();
            let decided = SECTIONS.contains(&section.as_str()) || LISTED_SECTIONS.contains(&section.as_str());
            assert!(decided, "{key} is not classified");
        }
    }
}
