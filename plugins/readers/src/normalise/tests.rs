use super::*;

fn check(cases: &[(&str, &str)]) {
    let normaliser = Normaliser::new(["/home/ada/my code/proj", "/tmp/fixture-a/proj/"]);
    for (given, normal) in cases {
        assert_eq!(normaliser.text(given), *normal, "{given:?}");
        assert_eq!(normaliser.text(normal), *normal, "again: {given:?}");
    }
}

#[test]
fn every_rule_compiles() {
    assert_eq!(COMPILED_RULES.len(), RULES.len());
    assert_eq!(COMPILED_NAME.len(), NAME_RULES.len());
    paths::every_pattern_compiles();
}

#[test]
fn what_is_of_one_run_goes() {
    check(&[
        ("at 0x7f73db89dbc0>", "at <address>>"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("run 5548e879-0da9-443c-bc3f-ebefe2b22ee7", "run <uuid>"),
        ("at 2026-11-21T01:15:29.465+00:00.", "at <time>."),
        ("on 2026-11-21 01:15:29,465", "on <time>"),
        ("Sat, 21 Nov 2026 01:06:44 GMT", "<time> <time> GMT"),
        (
            "took 1.703367ms, 3 s and 1m30.5s",
            "took <duration>, <duration> and <duration>",
        ),
        ("pid 22187, PID: 3, pid=4", "pid <n>, PID: <n>, pid=<n>"),
        (
            "thread 'tests::adds' (17576) panicked",
            "thread '<thread>' panicked",
        ),
        (
            "<_MainThread(MainThread, started 139733053774720)>",
            "<_MainThread(MainThread, started <n>)>",
        ),
        ("goroutine 7 [running]", "goroutine <n> [running]"),
        (
            "PYTHONHASHSEED=42 random seed: 0xbeef --seed 7",
            "PYTHONHASHSEED=<seed> random seed: <seed> --seed <seed>",
        ),
        (
            "target/debug/deps/calc-c6626fb655a8d231",
            "target/debug/deps/calc-<hash>",
        ),
        ("refused 127.0.0.1:49152", "refused 127.0.0.1:<port>"),
    ]);
}

#[test]
fn places_in_files_go() {
    check(&[
        ("src/lib.rs:25:9", "src/lib.rs"),
        ("calc.ts(12,5): error", "calc.ts: error"),
        (
            "File \"x.py\", line 15, in read",
            "File \"x.py\", line <n>, in read",
        ),
        ("Unexpected token (10:26)", "Unexpected token"),
    ]);
}

#[test]
fn paths_are_told_from_the_root_or_by_their_file() {
    check(&[
        ("in /tmp/fixture-a/proj/src/calc.js:10", "in src/calc.js"),
        ("in /home/ada/my code/proj/src/calc.js:10", "in src/calc.js"),
        ("cwd '/tmp/fixture-a/proj'", "cwd '<root>'"),
        ("not /tmp/fixture-a/project/x.py", "not x.py"),
        ("file:///srv/ci/42/src/calc.mjs:3:4", "calc.mjs"),
        (r"C:\Users\ada\calc\src\calc.py:3", "calc.py"),
        (r"at \\?\C:\\work\\x", "at <path>"),
        (
            "/opt/venv/lib/python3.11/site-packages/yaml/reader.py",
            "yaml/reader.py",
        ),
        (
            "/opt/python-3.11.7/lib/python3.11/pathlib.py:1044",
            "python/pathlib.py",
        ),
        (
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/panicking.rs:689:5",
            "library/std/src/panicking.rs",
        ),
        (
            "/usr/lib/go-1.19/src/testing/testing.go:1396",
            "go/testing/testing.go",
        ),
        (
            "/home/ada/.cargo/registry/src/index-1949cf8c6b5b557f/serde-1.0.2/src/lib.rs",
            "serde-1.0.2/src/lib.rs",
        ),
        ("/var/folders/zz/T/tmpeuajq0f6", "<tmp>"),
        ("in /var/tmp/fixture-b/calc-19434", "in <path>"),
    ]);
}

#[test]
fn what_tells_failures_apart_stays() {
    for text in [
        "assertion `left == right` failed\n  left: 6\n right: 5",
        "GET /api/users gave 404, not 200",
        "No module named 'numbers_of_old'",
        "index out of bounds: the len is 3 but the index is 5",
        "expected 0x1f, got 0x2f",
        "https://example.com/a/b.html",
        "tests/test_calc.py::test_reads[6/3-2]",
        "6 / 3 = 2, 3/4, </div>, /etc/hosts",
        "version 1.2.3",
    ] {
        check(&[(text, text)]);
    }
}

#[test]
fn names_keep_numbers_and_lose_addresses() {
    let normaliser = Normaliser::new(["/srv/proj"]);
    for (given, normal) in [
        ("tests::adds_2", "tests::adds_2"),
        ("waits 5 ms on line 3", "waits 5 ms on line 3"),
        ("src/lib.rs - double (line 12)", "src/lib.rs - double"),
        (
            "test_x[<object object at 0x7f1622>]",
            "test_x[<object object at <address>>]",
        ),
        ("/srv/proj/test/calc.test.js", "test/calc.test.js"),
        ("test/calc.test.js > adds", "test/calc.test.js > adds"),
    ] {
        assert_eq!(normaliser.name(given), normal);
    }
    let long = |end| normaliser.name(&format!("{}{end}", "x".repeat(400)));
    assert_ne!(long("a"), long("b"));
    assert_eq!(long("a").chars().count(), MAX_NAME + 9);
}

#[test]
fn frames_agree_wherever_they_were_written() {
    let normaliser = Normaliser::new(["/srv/proj", r"C:\proj"]);
    for (given, normal) in [
        ("./src/ratio.rs:11:5", "src/ratio.rs"),
        ("/srv/proj/src/ratio.rs:11:5", "src/ratio.rs"),
        (r"C:\proj\src\ratio.rs:11", "src/ratio.rs"),
        ("file:///srv/proj/src/calc.mjs:1:2", "src/calc.mjs"),
        ("/srv/proj/src/calc.ts?v=12a:1:2", "src/calc.ts"),
        (
            "../../.pyenv/versions/3.11.7/lib/python3.11/pathlib.py:12",
            "python/pathlib.py",
        ),
        ("../../shared/calc.py:12", "calc.py"),
        (
            "node:internal/process/task_queues:140:7",
            "node:internal/process/task_queues",
        ),
        (
            "/srv/proj/node_modules/tape/lib/test.js:151:28",
            "node_modules/tape/lib/test.js",
        ),
    ] {
        assert_eq!(normaliser.path(given), normal);
    }
    assert_eq!(normaliser.kind("calc.ratio.RatioError"), "RatioError");
    assert_eq!(
        normaliser.kind("panic: index out of bounds"),
        "panic: index out of bounds"
    );
}
