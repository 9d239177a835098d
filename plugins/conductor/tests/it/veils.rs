//! Ways to let Git tell another state than the files have, and exchanges of files while gates run, one test each.

use serde_json::json;

use crate::cheats::{accepted, accepted_with, caught, caught_with, planned};
use crate::harness::{Bench, step};

/// A repository in which a test and a script are committed, under gates that limit the changes to `b.txt`.
fn guarded(bench: Bench) -> Bench {
    planned(
        bench,
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt"]}, {"gate": "no_uncommitted_changes"}]),
    )
}

fn committed(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::with_repository();
    bench.write_all(files);
    bench.commit_all("files");
    bench
}

fn attributes(bench: &Bench, lines: &str) {
    std::fs::create_dir_all(bench.path(".git/info")).unwrap();
    std::fs::write(bench.path(".git/info/attributes"), lines).unwrap();
}

#[test]
fn conversions_hide_no_bytes() {
    let cases = [
        (
            "*.py ident\n",
            "t.py",
            "# $Id$\nx = 1\n",
            "# $Id: \rimport evil\r $\nx = 1\n",
        ),
        ("*.py text\n", "t.py", "x = 1\n", "x = 1\r\n"),
        ("*.py text eol=crlf\n", "t.py", "x = 1\n", "x = 1\r\n"),
        (
            "*.py working-tree-encoding=UTF-16LE-BOM\n",
            "t.py",
            "x = 1\n",
            "\u{feff}x",
        ),
    ];
    for (lines, path, before, after) in cases {
        let bench = guarded(committed(&[(path, before)]));
        attributes(&bench, lines);
        match lines.contains("encoding") {
            true => {
                let wide: Vec<u8> = before.encode_utf16().flat_map(u16::to_le_bytes).collect();
                std::fs::write(bench.path(path), [&[0xff, 0xfe], wide.as_slice()].concat()).unwrap();
            }
            false => bench.write(path, after),
        }
        assert_eq!(bench.git(&["diff", "--name-only"]), "", "{lines}");
        caught(&bench, "changed outside of b.txt: t.py");
        caught(&bench, "not committed: t.py");
        attributes(&bench, "");
        bench.write(path, before);
        accepted(&bench);
    }
}

#[test]
fn settings_about_ends_of_lines_hide_nothing() {
    let bench = guarded(committed(&[("run.sh", "echo 1\n")]));
    bench.git(&["config", "core.autocrlf", "input"]);
    bench.write("run.sh", "echo 1\r\n");
    assert_eq!(bench.git(&["diff", "--name-only"]), "");
    caught(&bench, "changed outside of b.txt: run.sh");
}

#[test]
fn files_that_were_converted_before_the_step_are_nobodys_change() {
    let bench = Bench::with_repository();
    bench.git(&["config", "core.autocrlf", "true"]);
    bench.write(".gitattributes", "*.bat text eol=crlf\n");
    bench.write("run.bat", "echo 1\r\n");
    bench.commit_all("files");
    let bench = guarded(bench);
    bench.write("b.txt", "1\n");
    bench.commit_all("S1: b");
    accepted(&bench);
    bench.run("- job_next_step_prompt {}");
    assert_eq!(bench.run("git_diff_summary {} ? total"), "ok total=0\n");
}

#[test]
fn an_index_that_was_made_up_hides_nothing() {
    let bench = guarded(committed(&[("t.py", "assert total == 3\n")]));
    let blob = |name: &str| {
        let hash = bench.git(&["rev-parse", name]);
        let digits: Vec<char> = hash.chars().collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        digits.chunks(2).map(byte).collect::<Vec<u8>>()
    };
    let old = blob("HEAD:t.py");
    bench.write("t.py", "assert True == 1 \n");
    bench.git(&["add", "t.py"]);
    let new = blob(":t.py");
    let index = bench.path(".git/index");
    let mut bytes = std::fs::read(&index).unwrap();
    let at = bytes.windows(new.len()).position(|window| window == new).unwrap();
    bytes[at..at + old.len()].copy_from_slice(&old);
    std::fs::write(&index, bytes).unwrap();
    caught(&bench, "changed outside of b.txt: t.py");
}

#[test]
fn names_that_differ_in_case_are_two_files() {
    let bench = guarded(committed(&[("tests/t.py", "assert 1\n")]));
    bench.git(&["config", "core.ignoreCase", "true"]);
    bench.write("tests/T.PY", "assert True\n");
    assert_eq!(bench.git(&["status", "--short"]), "");
    caught(&bench, "changed outside of b.txt: tests/T.PY");
}

#[test]
fn a_file_in_the_place_of_a_link_is_seen() {
    let bench = Bench::with_repository();
    std::os::unix::fs::symlink("a.txt", bench.path("link")).unwrap();
    bench.commit_all("link");
    let bench = guarded(bench);
    bench.git(&["config", "core.symlinks", "false"]);
    std::fs::remove_file(bench.path("link")).unwrap();
    bench.write("link", "a.txt");
    assert_eq!(bench.git(&["status", "--short"]), "");
    caught(&bench, "changed outside of b.txt: link");
}

#[test]
fn every_attribute_about_differences_counts_lines_all_the_same() {
    for lines in [
        "*.txt -diff\n",
        "*.txt binary\n",
        "*.txt diff=x\n",
        "*.txt export-ignore -text\n",
    ] {
        let bench = planned(
            Bench::with_repository(),
            json!([{"gate": "diff_max_lines", "max": 5}, {"gate": "forbid_paths", "paths": ["a.txt"]}]),
        );
        attributes(&bench, lines);
        bench.git(&["config", "diff.x.textconv", "true"]);
        bench.git(&["config", "diff.x.binary", "true"]);
        bench.write("a.txt", &"line\n".repeat(500));
        caught(&bench, "502 lines changed");
        caught(&bench, "these must not change: a.txt");
    }
}

#[test]
fn files_that_are_exchanged_while_the_gates_run_and_put_back_are_seen() {
    // The commands of the gates stand for a process beside them: it puts the content and the time back.
    let swaps = [
        "cp -p tests/t.py .git/t; echo 'assert True' > tests/t.py; echo 3 passed; cat .git/t > tests/t.py; touch -r .git/t tests/t.py",
        "mv tests/t.py .git/t; echo 'assert True' > tests/t.py; echo 3 passed; mv .git/t tests/t.py",
    ];
    for swap in swaps {
        let bench = Bench::with_repository_and(|workspace| workspace.test("swap", &["sh", "-c", swap]));
        bench.write("tests/t.py", "assert total == 3\n");
        bench.commit_all("tests");
        let bench = planned(bench, json!([{"gate": "command_exit_0", "command": ["swap"]}]));
        caught(
            &bench,
            "these tracked files were rewritten with the same content while the commands of the gates ran: tests/t.py",
        );
    }
}

#[test]
fn what_the_tests_write_themselves_is_known_unless_it_is_a_test() {
    let write = "x=$(cat gen.py); echo \"$x\" > gen.py; test -e fixtures || exit 0; x=$(cat fixtures/f); echo \"$x\" > fixtures/f";
    let bench = Bench::with_repository_and(|workspace| {
        workspace.test("default", &["sh", "-c", &format!("echo 3 passed in 1s; {write}")])
    });
    bench.write("gen.py", "x = 1\n");
    bench.commit_all("files");
    let bench = bench.started(json!([
        step("one", json!([{"gate": "tests_passed"}])),
        step("two", json!([{"gate": "tests_passed"}])),
    ]));
    bench.run("- job_next_step_prompt {}");
    let evidence = json!({"notes": "n", "tests_run": ["default"], "tests_passed": true});
    bench.write("fixtures/f", "1\n");
    bench.git(&["add", "."]);
    caught_with(
        &bench,
        json!({"evidence": evidence}),
        "with the same content while the commands of the gates ran: fixtures/f",
    );
    bench.git(&["rm", "--cached", "--quiet", "-r", "fixtures"]);
    std::fs::remove_dir_all(bench.path("fixtures")).unwrap();
    accepted_with(&bench, json!({"evidence": evidence}));
}
