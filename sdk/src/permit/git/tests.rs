//! Tests of the decisions on git commands: permitted forms and reasons for refusals.

use super::*;

/// Verdicts on commands with read access and with write access to git.
fn decided(lines: &str) -> String {
    let mut log = String::new();
    for line in lines.lines().map(str::trim) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let told = |access| match checked(&arguments, access, b"") {
            Ok(command) => format!("git {} {:?}", command.arguments.join(" "), command.writes),
            // The list of permitted options is long, and tested elsewhere.
            Err(why) => format!("no: {}", why.chars().take(75).collect::<String>()),
        };
        let (read, write) = (told(GitAccess::Read), told(GitAccess::Write));
        log += &format!("{line}\n  {read}\n");
        if read != write {
            log += &format!("  when writing: {write}\n");
        }
    }
    log
}

#[test]
fn options_that_are_not_listed_are_refused() {
    let lines = "status --porcelain=v2 -z
        --no-optional-locks -c core.quotePath=off diff --no-renames --src-prefix=a/ HEAD
        log -n 3 -5 -n2 --format=%H main..side
        log --not main --all
        log --format=%G?
        log --pretty=mine
        log --remerge-diff
        ls-files -z --others --exclude-standard
        ls-files --others --exclude-per-directory=.gitignore
        ls-files --others --exclude-per-directory=/etc/passwd
        hash-object -w a
        config --list --show-scope --name-only -z
        config --list
        config core.pager sh
        diff --output=x
        diff --outp x
        diff --submodule=diff
        diff -O order
        diff --no-index a b
        diff -- --output=x
        diff -- /etc/passwd a
        diff -- ../x a
        diff -- sub/.GIT/config
        blame a.txt
        blame HEAD a.txt
        blame --contents=x a.txt
        status -v
        status --help
        status -sb
        status --ignore-submodules=none
        rev-parse --git-path hooks
        rev-parse --verify --quiet --end-of-options HEAD^{commit}
        var GIT_COMMITTER_IDENT
        var GIT_EDITOR
        for-each-ref --sort=signature
        for-each-ref --format=%(refname)%(signature)
        -C /tmp status
        --git-dir=x status
        push
        archive HEAD

        version";
    expect_test::expect![[r#"
        status --porcelain=v2 -z
          git status --ignore-submodules=dirty --porcelain=v2 -z -- Nothing
        --no-optional-locks -c core.quotePath=off diff --no-renames --src-prefix=a/ HEAD
          git --no-optional-locks -c core.quotePath=off diff --no-ext-diff --no-textconv --ignore-submodules=dirty --no-renames --src-prefix=a/ HEAD -- Nothing
        log -n 3 -5 -n2 --format=%H main..side
          git log --no-ext-diff --no-textconv -n3 -5 -n2 --format=%H main..side -- Nothing
        log --not main --all
          git log --no-ext-diff --no-textconv --not main --all -- Nothing
        log --format=%G?
          no: the placeholder `%G?` may start a program; permitted placeholders begin wit
        log --pretty=mine
          no: the format `mine` is not one of git's own: oneline, short, medium, full, fu
        log --remerge-diff
          no: `--remerge-diff` is not one of the options of `git log` that packs may use:
        ls-files -z --others --exclude-standard
          git ls-files -z --others --exclude-standard -- Nothing
        ls-files --others --exclude-per-directory=.gitignore
          git ls-files --others --exclude-per-directory=.gitignore -- Nothing
        ls-files --others --exclude-per-directory=/etc/passwd
          no: `--exclude-per-directory` cannot have the value `/etc/passwd`; it must be .
        hash-object -w a
          no: `-w` is not one of the options of `git hash-object` that packs may use: -t:
        config --list --show-scope --name-only -z
          git config --list --show-scope --name-only -z Nothing
        config --list
          no: `git config` may only list names: --list --name-only [--show-scope] [-z]
        config core.pager sh
          no: `git config` accepts only options
        diff --output=x
          no: `--output` is not one of the options of `git diff` that packs may use: -p -
        diff --outp x
          no: `--outp` is not one of the options of `git diff` that packs may use: -p -u 
        diff --submodule=diff
          no: `--submodule` is not one of the options of `git diff` that packs may use: -
        diff -O order
          no: `-O` is not one of the options of `git diff` that packs may use: -p -u --pa
        diff --no-index a b
          no: `--no-index` is not one of the options of `git diff` that packs may use: -p
        diff -- --output=x
          git diff --no-ext-diff --no-textconv --ignore-submodules=dirty -- --output=x Nothing
        diff -- /etc/passwd a
          no: `/etc/passwd` may leave the workspace; use a relative path without `..`
        diff -- ../x a
          no: `../x` may leave the workspace; use a relative path without `..`
        diff -- sub/.GIT/config
          no: `sub/.GIT/config` belongs to git; pass files of the work tree
        blame a.txt
          git blame --no-textconv -- a.txt Nothing
        blame HEAD a.txt
          git blame --no-textconv HEAD -- a.txt Nothing
        blame --contents=x a.txt
          no: `--contents` is not one of the options of `git blame` that packs may use: -
        status -v
          no: `-v` is not one of the options of `git status` that packs may use: --porcel
        status --help
          no: `--help` is not one of the options of `git status` that packs may use: --po
        status -sb
          git status --ignore-submodules=dirty -s -b -- Nothing
        status --ignore-submodules=none
          no: `--ignore-submodules` cannot have the value `none`; it must be all|dirty
        rev-parse --git-path hooks
          no: `--git-path` is not one of the options of `git rev-parse` that packs may us
        rev-parse --verify --quiet --end-of-options HEAD^{commit}
          git rev-parse --verify --quiet --end-of-options HEAD^{commit} Nothing
        var GIT_COMMITTER_IDENT
          no: `git var` shows the committer, but git may only read here; set `git = "writ
          when writing: git var GIT_COMMITTER_IDENT Nothing
        var GIT_EDITOR
          no: `git var` shows the committer, but git may only read here; set `git = "writ
          when writing: no: `git var` may only print GIT_AUTHOR_IDENT or GIT_COMMITTER_IDENT
        for-each-ref --sort=signature
          no: the field `signature` is not one of the fields that packs may print: refnam
        for-each-ref --format=%(refname)%(signature)
          no: the field `signature` is not one of the fields that packs may print: refnam
        -C /tmp status
          no: `git -C` is not one of the options that packs may use: --no-pager, --no-opt
        --git-dir=x status
          no: `git --git-dir=x` is not one of the options that packs may use: --no-pager,
        push
          no: `git push` is not one of the subcommands that packs may run: blame, cat-fil
        archive HEAD
          no: `git archive` is not one of the subcommands that packs may run: blame, cat-

          no: git needs a subcommand, for example status
        version
          git version Nothing
    "#]].assert_eq(&decided(lines));
}

#[test]
fn what_is_written_is_told() {
    let lines = "add -- a b
        add -vp
        commit -F - -- a
        commit -F../secret
        commit -qam text
        commit -S
        commit -t x
        commit --trailer=a:b -m x
        commit -v -m x
        tag -s v1
        tag -am text v1
        tag -F link v1
        mv a b
        stash
        restore -- docs/a.md
        restore --staged -- a
        reset --hard
        reset -q HEAD~1
        switch --quiet --create side
        switch -
        switch main
        switch --orphan x
        rm --cached -- a
        rm -r docs
        add --pathspec-from-file=x
        commit --interactive
        branch -D side";
    expect_test::expect![[r#"
        add -- a b
          no: `git add` writes, but git may only read here; set `git = "write"` in [works
          when writing: git add -- a b Nothing
        add -vp
          no: `git add` writes, but git may only read here; set `git = "write"` in [works
          when writing: no: `-p` is not one of the options of `git add` that packs may use: -A --all --
        commit -F - -- a
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: git commit -F- -- a Nothing
        commit -F../secret
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `-F` cannot have the value `../secret`; it must be `-`, which is standard i
        commit -qam text
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: git commit -q -a -mtext -- Nothing
        commit -S
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `-S` is not one of the options of `git commit` that packs may use: -a --all
        commit -t x
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `-t` is not one of the options of `git commit` that packs may use: -a --all
        commit --trailer=a:b -m x
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `--trailer` is not one of the options of `git commit` that packs may use: -
        commit -v -m x
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `-v` is not one of the options of `git commit` that packs may use: -a --all
        tag -s v1
          no: `git tag` writes, but git may only read here; set `git = "write"` in [works
          when writing: no: `-s` is not one of the options of `git tag` that packs may use: --sort=SORT
        tag -am text v1
          no: `git tag` writes, but git may only read here; set `git = "write"` in [works
          when writing: git tag -a -mtext v1 Nothing
        tag -F link v1
          no: `git tag` writes, but git may only read here; set `git = "write"` in [works
          when writing: no: `-F` cannot have the value `link`; it must be `-`, which is standard input
        mv a b
          no: `git mv` is not one of the subcommands that packs may run; write the file e
        stash
          no: `git stash` is not one of the subcommands that packs may run; commit to a b
        restore -- docs/a.md
          no: `git restore` writes, but git may only read here; set `git = "write"` in [w
          when writing: git --literal-pathspecs restore -- docs/a.md Below(["docs/a.md"])
        restore --staged -- a
          no: `git restore` writes, but git may only read here; set `git = "write"` in [w
          when writing: git restore --staged -- a Nothing
        reset --hard
          no: `git reset` writes, but git may only read here; set `git = "write"` in [wor
          when writing: git --literal-pathspecs reset --hard -- Anything
        reset -q HEAD~1
          no: `git reset` writes, but git may only read here; set `git = "write"` in [wor
          when writing: git reset -q HEAD~1 -- Nothing
        switch --quiet --create side
          no: `git switch` writes, but git may only read here; set `git = "write"` in [wo
          when writing: git switch --quiet --quiet --create=side Nothing
        switch -
          no: `git switch` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `-` looks like an option in the place of a revision
        switch main
          no: `git switch` writes, but git may only read here; set `git = "write"` in [wo
          when writing: git --literal-pathspecs switch --quiet main To("main")
        switch --orphan x
          no: `git switch` writes, but git may only read here; set `git = "write"` in [wo
          when writing: git --literal-pathspecs switch --quiet --orphan=x Anything
        rm --cached -- a
          no: `git rm` writes, but git may only read here; set `git = "write"` in [worksp
          when writing: git rm --cached -- a Nothing
        rm -r docs
          no: `git rm` writes, but git may only read here; set `git = "write"` in [worksp
          when writing: git --literal-pathspecs rm -r -- docs Below(["docs"])
        add --pathspec-from-file=x
          no: `git add` writes, but git may only read here; set `git = "write"` in [works
          when writing: no: `--pathspec-from-file` cannot have the value `x`; it must be `-`, which is 
        commit --interactive
          no: `git commit` writes, but git may only read here; set `git = "write"` in [wo
          when writing: no: `--interactive` is not one of the options of `git commit` that packs may us
        branch -D side
          no: `git branch` writes, but git may only read here; set `git = "write"` in [wo
          when writing: git branch -D side Nothing
    "#]]
    .assert_eq(&decided(lines));
}

#[test]
fn paths_on_standard_input_are_checked_too() {
    let stdin = |text: &str| {
        let arguments = ["hash-object".to_owned(), "--stdin-paths".to_owned()];
        checked(&arguments, GitAccess::Read, text.as_bytes()).map(|command| command.paths)
    };
    assert_eq!(
        stdin("a\n\"caf\\351\\\"\"\r\n").unwrap(),
        [b"a".to_vec(), b"caf\xe9\"".to_vec()]
    );
    for refused in [
        "/etc/passwd",
        "a\n../b",
        "\"\\056\\056/b\"",
        ".git/config",
        "\"a",
        "\"a\"b\"",
    ] {
        assert!(stdin(refused).is_err(), "{refused}");
    }
}

#[test]
fn every_listed_option_is_one_that_git_has() {
    let mut unknown = Vec::new();
    for known in options::SUBCOMMANDS {
        for word in known.words() {
            let name = word.split(['=', ':', '[']).next().unwrap();
            assert!(known.option(name).is_some(), "{} {word}", known.name);
            // The option of check-ignore only skips Git's own index, and names no files outside the work tree.
            let is_outside = name.starts_with("--no-index") && known.name != "check-ignore";
            assert!(!is_outside && !name.starts_with("--output="), "{word}");
        }
        let output = std::process::Command::new("git")
            .args([known.name, "--git-completion-helper-all"])
            .output();
        let helper = String::from_utf8(output.unwrap().stdout).unwrap();
        // Options that need a value are listed with one. Otherwise git would take the next word as the value.
        for flag in helper
            .split_whitespace()
            .filter_map(|word| word.strip_suffix('='))
        {
            if known.option(flag) == Some(Value::None) {
                unknown.push(format!("{} {flag}", known.name));
            }
        }
    }
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn names_that_some_system_takes_for_git_are_known() {
    for name in [
        ".git",
        ".GIT",
        ".Git.",
        ".git ",
        "git~1",
        "GIT~1",
        ".g\u{200c}it",
        ".git::$INDEX_ALLOCATION",
        "a\\.git",
    ] {
        assert!(crate::permit::is_git_name(name), "{name}");
    }
    for name in ["git", ".gitignore", ".gitattributes", ".github", "git~2", "x.git"] {
        assert!(!crate::permit::is_git_name(name), "{name}");
    }
}
