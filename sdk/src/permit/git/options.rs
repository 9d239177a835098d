//! Subcommands of git that packs may run, and the permitted options of each.
//!
//! A word is `--name` or `-n` (no value), `--name=KIND` (a value, given with `=`, or attached to a single
//! letter), `--name:KIND` (the same, where git also takes the value as the next word), `--name[=KIND]`
//! (optional value), or `-NUMBER`. [`Kind`] lists the kinds of values.

/// Kind of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// Digits, `,` and `%`.
    Number,
    /// Any text: git only compares or prints it.
    Text,
    /// Name of a commit, a tree, a blob, or a range.
    Revision,
    /// Name of a branch or a tag to create.
    Name,
    /// Format of `log`.
    Pretty,
    /// Format of `for-each-ref`.
    Fields,
    /// Field to sort references by.
    Sort,
    /// Only `-`: standard input.
    Stdin,
    /// One of these words, separated by `|`.
    OneOf(&'a str),
}

impl Kind<'_> {
    fn of(word: &str) -> Kind<'_> {
        match word {
            "NUMBER" => Kind::Number,
            "TEXT" => Kind::Text,
            "REV" => Kind::Revision,
            "NAME" => Kind::Name,
            "PRETTY" => Kind::Pretty,
            "FIELDS" => Kind::Fields,
            "SORT" => Kind::Sort,
            "-" => Kind::Stdin,
            choice => Kind::OneOf(choice),
        }
    }
}

/// Value of an option, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    None,
    Optional(Kind<'a>),
    Attached(Kind<'a>),
    /// Required value, attached or as the next word.
    Wanted(Kind<'a>),
}

/// Arguments that are not options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Positional {
    /// No arguments.
    Nothing,
    /// Revisions before `--`, paths after it.
    RevisionsAndPaths,
    /// The same, but without `--` the last argument is a path.
    RevisionsAndPath,
    /// Revisions, and names or patterns of references. Git gets no `--`.
    Revisions,
    /// Paths, also before `--`.
    Paths,
}

/// Effect of a subcommand besides reading the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// No effect.
    Read,
    /// Writes objects, the index and references.
    Repository,
    /// Also writes files of the work tree, depending on its arguments.
    Tree,
}

/// A subcommand.
#[derive(Debug)]
pub(super) struct Subcommand {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    pub(super) positional: Positional,
    pub(super) options: &'static [&'static str],
    /// Options that git always gets.
    pub(super) added: &'static [&'static str],
}

impl Subcommand {
    /// Value of an option, if the option is permitted.
    pub(super) fn option(&self, name: &str) -> Option<Value<'static>> {
        self.words().find_map(|word| {
            let end = word.find(['=', ':', '[']).unwrap_or(word.len());
            let (found, value) = word.split_at(end);
            (found == name).then(|| match value.as_bytes() {
                [] => Value::None,
                [b'[', ..] => Value::Optional(Kind::of(value.trim_start_matches("[=").trim_end_matches(']'))),
                [b':', ..] => Value::Wanted(Kind::of(&value[1..])),
                _ => Value::Attached(Kind::of(&value[1..])),
            })
        })
    }

    /// Options in the notation of the table.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().flat_map(|words| words.split_whitespace())
    }
}

/// Reading subcommands that convert files of the work tree. Git runs the filters of those files.
pub(super) const CONVERTING: &[&str] = &[
    "blame",
    "diff",
    "diff-files",
    "diff-index",
    "hash-object",
    "ls-files",
    "status",
];

/// Variables that `var` may print. Others are settings and names of programs.
pub(super) const IDENTITIES: &[&str] = &["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"];

/// Reading subcommands that require write access, because they show the name and e-mail address of the operator.
pub(super) const PERSONAL: &[&str] = &["var"];

/// Finds a subcommand that packs may run.
pub(super) fn find(name: &str) -> Option<&'static Subcommand> {
    SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name)
}

/// Options of differences. None of them writes a file, reads one outside of the repository, or starts a
/// program. Excluded: `--submodule`, `-O`, `--output`, `--ext-diff`, `--textconv` and `--no-index`.
const DIFF: &str = "-p -u --patch -s --no-patch -U=NUMBER --unified=NUMBER --raw -z --numstat --shortstat --stat[=NUMBER] \
    --compact-summary --summary --patch-with-raw --patch-with-stat --dirstat[=TEXT] --cumulative --name-only --name-status \
    --color[=always|never|auto] --no-color --color-moved[=TEXT] --no-color-moved --word-diff[=color|plain|porcelain|none] \
    --word-diff-regex=TEXT --no-renames --find-renames[=NUMBER] -M[=NUMBER] --find-copies[=NUMBER] -C[=NUMBER] \
    --find-copies-harder -B[=NUMBER] --break-rewrites[=NUMBER] -D --irreversible-delete -l:NUMBER --diff-filter=TEXT -S:TEXT \
    -G:TEXT --pickaxe-all --pickaxe-regex --find-object=REV -R --relative --no-relative -a --text --binary --full-index \
    --abbrev[=NUMBER] --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space \
    --ignore-blank-lines --inter-hunk-context=NUMBER -W --function-context --no-prefix --src-prefix=TEXT --dst-prefix=TEXT \
    --default-prefix --line-prefix=TEXT --minimal --patience --histogram --anchored=TEXT \
    --diff-algorithm=patience|minimal|histogram|myers|default --indent-heuristic --no-indent-heuristic \
    --ws-error-highlight=TEXT --output-indicator-new=TEXT --output-indicator-old=TEXT --output-indicator-context=TEXT \
    --ignore-submodules[=all|dirty] --no-ext-diff --no-textconv --full-index --exit-code --quiet --check --cc -c -m \
    --ita-invisible-in-index";

/// Options that select commits. Excluded: `--stdin`, `--show-signature`, `--remerge-diff` and `-L`.
const HISTORY: &str = "-NUMBER -n:NUMBER --max-count=NUMBER --skip=NUMBER --since=TEXT --after=TEXT --until=TEXT --before=TEXT \
    --author=TEXT --committer=TEXT --grep=TEXT --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F \
    --fixed-strings -P --perl-regexp --merges --no-merges --min-parents=NUMBER --max-parents=NUMBER --first-parent --all \
    --branches[=TEXT] --tags[=TEXT] --remotes[=TEXT] --glob=TEXT --exclude=TEXT --not --topo-order --date-order \
    --author-date-order --reverse --full-history --dense --sparse --simplify-merges --simplify-by-decoration --ancestry-path \
    --left-right --left-only --right-only --cherry-pick --cherry-mark --cherry --boundary --parents --children --no-walk \
    --follow --root --graph --no-graph --oneline --abbrev-commit --no-abbrev-commit --format=PRETTY --pretty[=PRETTY] \
    --date=TEXT --relative-date --ignore-missing --walk-reflogs -g --diff-merges=off|none|first-parent|1|separate|combined|c|dense-combined|cc";

/// Additional options of `log` and `show`.
const LOG_AND_SHOW: &str = "--decorate[=short|full|auto|no] --no-decorate --decorate-refs=TEXT --decorate-refs-exclude=TEXT --source \
    --use-mailmap --mailmap --no-use-mailmap --no-mailmap --no-notes --encoding=TEXT --expand-tabs[=NUMBER] --no-expand-tabs -t -r";

/// Options of lists of references.
const REFS: &str = "--sort=SORT --format=FIELDS --points-at=REV --contains[=REV] --no-contains[=REV] --merged[=REV] \
    --no-merged[=REV] --ignore-case --color[=always|never|auto] --no-color";

/// Options for the author and the message. Excluded: `--template`, `--gpg-sign`, `--trailer`, `--verbose`, and
/// interactive ones.
const COMMIT: &str = "-a --all -m:TEXT --message=TEXT -F:- --file:- -C:REV --reuse-message=REV --amend --no-edit --reset-author \
    --author=TEXT --date=TEXT --allow-empty --allow-empty-message -q --quiet -s --signoff --no-signoff --only -o --include -i \
    --cleanup=strip|whitespace|verbatim|scissors|default --no-verify -n --no-post-rewrite --no-gpg-sign --fixup=TEXT \
    --squash=REV";

const NO_PROGRAMS: &[&str] = &["--no-ext-diff", "--no-textconv"];
/// Options that skip nested repositories in the work tree, because those have their own configuration.
const NO_NESTED: &[&str] = &["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

const fn reads(name: &'static str, positional: Positional, options: &'static [&'static str]) -> Subcommand {
    Subcommand {
        name,
        effect: Effect::Read,
        positional,
        options,
        added: &[],
    }
}

const fn diffs(
    name: &'static str,
    options: &'static [&'static str],
    added: &'static [&'static str],
) -> Subcommand {
    Subcommand {
        added,
        ..reads(name, Positional::RevisionsAndPaths, options)
    }
}

const fn writes(
    name: &'static str,
    effect: Effect,
    positional: Positional,
    options: &'static [&'static str],
) -> Subcommand {
    Subcommand {
        effect,
        ..reads(name, positional, options)
    }
}

/// Permitted subcommands.
pub(super) const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        added: &["--no-textconv"],
        ..reads(
            "blame",
            Positional::RevisionsAndPath,
            &[
                "-b --root --no-root --show-stats -L:TEXT -l -t --porcelain -p --line-porcelain --incremental --date=TEXT -M[=NUMBER] \
               -C[=NUMBER] -c --score-debug -f --show-name -n --show-number -s -e --show-email -w --abbrev=NUMBER --reverse \
               --first-parent --since=TEXT --minimal --ignore-rev=REV --diff-algorithm=patience|minimal|histogram|myers",
            ],
        )
    },
    reads(
        "cat-file",
        Positional::Revisions,
        &["-t -s -e -p --batch-check --batch --buffer --follow-symlinks -z -Z"],
    ),
    reads(
        "check-ignore",
        Positional::Paths,
        &["-q --quiet -v --verbose --no-index --stdin -z -n --non-matching"],
    ),
    reads(
        "config",
        Positional::Nothing,
        &["--list --name-only --show-scope -z"],
    ),
    reads(
        "describe",
        Positional::Revisions,
        &[
            "--all --tags --contains --abbrev=NUMBER --candidates=NUMBER --exact-match --long --match=TEXT --exclude=TEXT --always \
           --first-parent",
        ],
    ),
    diffs(
        "diff",
        &[
            DIFF,
            "--cached --staged --merge-base --base --ours --theirs -0 -1 -2 -3",
        ],
        NO_NESTED,
    ),
    diffs("diff-files", &[DIFF, "-q -0 -1 -2 -3"], NO_NESTED),
    diffs("diff-index", &[DIFF, "--cached -m --merge-base"], NO_NESTED),
    diffs(
        "diff-tree",
        &[
            DIFF,
            "-r -t --root --no-commit-id --pretty[=PRETTY] --format=PRETTY --combined-all-paths --always --merge-base -v",
        ],
        NO_PROGRAMS,
    ),
    reads(
        "for-each-ref",
        Positional::Revisions,
        &[REFS, "--count=NUMBER --omit-empty --exclude=TEXT"],
    ),
    reads(
        "hash-object",
        Positional::Paths,
        &["-t:blob|tree|commit|tag --no-filters --stdin --stdin-paths --literally"],
    ),
    diffs("log", &[DIFF, HISTORY, LOG_AND_SHOW], NO_PROGRAMS),
    reads(
        "ls-files",
        Positional::Paths,
        &[
            "-z -t -v -f -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed \
           --directory --no-empty-directory --eol --deduplicate --exclude-standard --exclude-per-directory=.gitignore -x:TEXT --exclude=TEXT --error-unmatch \
           --full-name --abbrev[=NUMBER] --debug --sparse",
        ],
    ),
    reads(
        "ls-tree",
        Positional::RevisionsAndPaths,
        &[
            "-d -r -t -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev[=NUMBER]",
        ],
    ),
    reads(
        "merge-base",
        Positional::Revisions,
        &["-a --all --octopus --independent --is-ancestor --fork-point"],
    ),
    reads(
        "name-rev",
        Positional::Revisions,
        &["--tags --refs=TEXT --exclude=TEXT --all --name-only --no-undefined --always"],
    ),
    reads("rev-list", Positional::RevisionsAndPaths, &[HISTORY, REV_LIST]),
    reads(
        "rev-parse",
        Positional::Revisions,
        &[
            "--verify --quiet -q --end-of-options --short[=NUMBER] --symbolic --symbolic-full-name --abbrev-ref[=strict|loose] --all \
           --branches[=TEXT] --tags[=TEXT] --remotes[=TEXT] --glob=TEXT --exclude=TEXT --not --revs-only --no-revs --flags \
           --no-flags --show-toplevel --show-prefix --show-cdup --show-object-format[=storage|input|output] --show-ref-format \
           --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --git-dir --default:REV \
           --since=TEXT --until=TEXT",
        ],
    ),
    reads(
        "shortlog",
        Positional::RevisionsAndPaths,
        &[
            "-n --numbered -s --summary -e --email --group=author|committer -c --committer -w[=NUMBER] --format=PRETTY --date=TEXT \
           --since=TEXT --after=TEXT --until=TEXT --before=TEXT --author=TEXT --grep=TEXT --merges --no-merges --all \
           --max-count=NUMBER --no-use-mailmap",
        ],
    ),
    diffs("show", &[DIFF, HISTORY, LOG_AND_SHOW], NO_PROGRAMS),
    reads(
        "show-ref",
        Positional::Revisions,
        &[
            "--head -d --dereference -s --hash[=NUMBER] --abbrev[=NUMBER] --verify --exists --tags --heads --branches -q --quiet",
        ],
    ),
    Subcommand {
        added: &["--ignore-submodules=dirty"],
        ..reads(
            "status",
            Positional::Paths,
            &[
                "--porcelain[=v1|v2|1|2] -s --short --long -b --branch --no-branch --show-stash --no-show-stash -z --null \
               -u[=no|normal|all] --untracked-files[=no|normal|all] --ignored[=traditional|no|matching] --renames --no-renames \
               --find-renames[=NUMBER] -M[=NUMBER] --ahead-behind --no-ahead-behind --ignore-submodules[=all|dirty]",
            ],
        )
    },
    // Only the variables in IDENTITIES, and only with write access.
    reads("var", Positional::Revisions, &[]),
    reads("version", Positional::Nothing, &["--build-options"]),
    writes(
        "add",
        Effect::Repository,
        Positional::Paths,
        &[
            "-A --all --no-all --ignore-removal --no-ignore-removal -u --update -f --force -n --dry-run -v --verbose -N \
           --intent-to-add --refresh --ignore-errors --ignore-missing --renormalize --sparse --chmod=+x|-x \
           --pathspec-from-file=- --pathspec-file-nul",
        ],
    ),
    writes(
        "branch",
        Effect::Repository,
        Positional::Revisions,
        &[
            REFS,
            "-d -D --delete -m -M --move -c -C --copy -f --force -l --list -a --all -r --remotes --show-current -v --verbose -q --quiet \
           --no-track --abbrev=NUMBER --no-abbrev --no-column",
        ],
    ),
    writes(
        "commit",
        Effect::Repository,
        Positional::Paths,
        &[COMMIT, "--pathspec-from-file=- --pathspec-file-nul"],
    ),
    writes(
        "reset",
        Effect::Tree,
        Positional::RevisionsAndPaths,
        &[
            "-q --quiet --soft --mixed --hard --keep -N --intent-to-add --no-refresh --refresh --pathspec-from-file=- \
           --pathspec-file-nul",
        ],
    ),
    writes(
        "restore",
        Effect::Tree,
        Positional::Paths,
        &[
            "-s:REV --source=REV -S --staged -W --worktree -q --quiet --ours --theirs --overlay --no-overlay --ignore-unmerged",
        ],
    ),
    writes(
        "rm",
        Effect::Tree,
        Positional::Paths,
        &["-r -f --force -n --dry-run --cached --ignore-unmatch --sparse -q --quiet"],
    ),
    Subcommand {
        added: &["--quiet"],
        ..writes(
            "switch",
            Effect::Tree,
            Positional::Revisions,
            &[
                "-c:NAME --create:NAME -C:NAME --force-create:NAME -d --detach -q --quiet --no-guess --no-track --no-progress \
               --orphan:NAME",
            ],
        )
    },
    writes(
        "tag",
        Effect::Repository,
        Positional::Revisions,
        &[
            REFS,
            "-a --annotate -m:TEXT --message=TEXT -F:- --file:- -d --delete -f --force -l --list -n[=NUMBER] --no-sign \
           --cleanup=strip|whitespace|verbatim --create-reflog --no-column",
        ],
    ),
];

const REV_LIST: &str = "--objects --object-names --no-object-names --count --timestamp --header --disk-usage --quiet -z \
    --abbrev[=NUMBER] --cherry --in-commit-order --reflog --no-commit-header --commit-header";
