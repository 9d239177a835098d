//! New files that change how tests run without being tests, one test each, and honest new files beside them.

use serde_json::{Value, json};

use crate::cheats::{accepted, caught};
use crate::harness::{Bench, READY, result, step};

/// A Python project with a package, a module and their tests.
const FILES: &[(&str, &str)] = &[
    ("app.py", "def add(a, b):\n    return a + b\n"),
    ("lib/core.py", "x = 1\n"),
    ("tests/test_app.py", "from app import add\ndef test_add(): ...\n"),
    ("tests/util.py", "y = 1\n"),
    (
        "pyproject.toml",
        "[project]\nname = \"slug\"\ndependencies = [\n  \"sorted-thing>=2\",\n]\n",
    ),
];

/// A job on such a project with a step, whose prompt was given out.
fn project(change: Value) -> Bench {
    let bench =
        Bench::with_repository_and(|workspace| workspace.test("default", &["python", "-m", "pytest", "-q"]));
    bench.write_all(FILES);
    bench.commit_all("project");
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 90}}"#);
    let mut first = step("one", json!([{"gate": "tests_unchanged"}]));
    for (key, value) in change.as_object().unwrap() {
        first[key] = value.clone();
    }
    let bench = bench.started(json!([first, step("two", json!([]))]));
    bench.run("- job_next_step_prompt {}");
    bench
}

fn remove(bench: &Bench, path: &str) {
    std::fs::remove_file(bench.path(path)).unwrap();
}

/// Asserts that a submission with one more file is rejected for a reason with this word, and removes the file.
#[track_caller]
fn caught_with_file(bench: &Bench, path: &str, text: &str, word: &str) {
    bench.write(path, text);
    caught(bench, word);
    remove(bench, path);
}

/// Asserts that a file counts as one that decides how tests run.
#[track_caller]
fn is_protected(bench: &Bench, path: &str, text: &str) {
    let word = format!("files that decide how tests run changed: {path}");
    caught_with_file(bench, path, text, &word);
}

/// Asserts that a new file is refused because it may change how tests run, for a reason that begins so.
#[track_caller]
fn may_change_tests(bench: &Bench, path: &str, text: &str, why: &str) {
    let word = format!("new files may change how tests run: {path} ({why}");
    caught_with_file(bench, path, text, &word);
}

#[test]
fn plugins_by_metadata_decide_how_tests_run() {
    let bench = project(json!({}));
    for path in [
        "evil-1.0.dist-info/entry_points.txt",
        "evil-1.0.dist-info/METADATA",
        "src/evil.egg-info/entry_points.txt",
    ] {
        is_protected(&bench, path, "[pytest11]\nevil = evilplug\n");
    }
    accepted(&bench);
}

#[test]
fn modules_that_a_runner_imports_are_not_replaced() {
    let bench = project(json!({}));
    // Also if code of the repository imports them, so that they look like its own.
    bench.write(
        "app.py",
        "import iniconfig, sorted_thing\ndef add(a, b):\n    return a + b\n",
    );
    for (path, why) in [
        (
            "iniconfig.py",
            "iniconfig is a module of Python or of a test runner",
        ),
        (
            "packaging/__init__.py",
            "packaging is a module of Python or of a test runner",
        ),
        (
            "src/pygments.py",
            "pygments is a module of Python or of a test runner",
        ),
        (
            "tests/exceptiongroup.py",
            "exceptiongroup is a module of Python or of a test runner",
        ),
        (
            "pytest_evil.py",
            "pytest_evil is a module of Python or of a test runner",
        ),
        (
            "_weakrefset.py",
            "_weakrefset is a module of Python or of a test runner",
        ),
        (
            "json/__init__.py",
            "json is a module of Python or of a test runner",
        ),
        ("sorted_thing.py", "sorted_thing is a module of a dependency"),
        ("evilplug.py", "no code and no test imports evilplug"),
        ("app/__init__.py", "it is found in place of app.py"),
        ("tests/util/__init__.py", "it is found in place of tests/util.py"),
        ("tests/__init__.py", "it runs before tests/test_app.py"),
    ] {
        may_change_tests(&bench, path, "import sys\nsys.exit(0)\n", why);
    }
    bench.write(".venv/lib/python3.12/site-packages/absent/__init__.py", "");
    bench.write("absent.py", "x = 1\n");
    bench.write("app.py", "import absent\n");
    caught(&bench, "absent is a module of a dependency");
}

#[test]
fn new_modules_with_their_tests_are_honest_work() {
    let bench = project(json!({}));
    bench.write_all(&[
        ("slug.py", "def slug(text):\n    return text\n"),
        (
            "tests/test_slug.py",
            "from slug import slug\ndef test_slug(): ...\n",
        ),
        ("report/__init__.py", ""),
        ("report/json.py", "x = 1\n"),
        ("report/rows.py", "from report.json import x\n"),
        (
            "app.py",
            "from report.rows import x\ndef add(a, b):\n    return a + b\n",
        ),
        ("lib/more.py", "y = 1\n"),
        ("scripts/make_table.py", "print(1)\n"),
        ("main.py", "import app\n"),
        ("tests/sub/__init__.py", ""),
        ("tests/sub/test_more.py", "def test_more(): ...\n"),
        ("tests/factories.py", "z = 1\n"),
    ]);
    for path in [
        ".editorconfig",
        ".github/workflows/ci.yml",
        ".gitignore",
        "config.yaml",
        ".coverage",
        "web/a.test.ts",
    ] {
        bench.write(path, "x\n");
    }
    accepted(&bench);
}

#[test]
fn a_plan_may_name_such_files_and_a_person_may_add_them() {
    for change in [
        json!({"expected_outputs": ["iniconfig.py, a reader of settings", ".taprc"]}),
        json!({"gates": [{"gate": "tests_unchanged"}, {"gate": "changed_files_allowlist", "paths": ["iniconfig.py", ".taprc"]}]}),
    ] {
        let bench = project(change);
        bench.write("iniconfig.py", "x = 1\n");
        bench.write(".taprc", "x\n");
        accepted(&bench);
    }
    let told =
        json!({"instruction_prompt": "Write tool.py, which nothing imports, and leave conftest.py alone."});
    let bench = project(told);
    bench.write("tool.py", "x = 1\n");
    bench.write("conftest.py", "x = 1\n");
    caught(&bench, "files that decide how tests run changed: conftest.py");
    remove(&bench, "conftest.py");
    bench.write("other.py", "x = 1\n");
    caught(
        &bench,
        "name them in expected_outputs of the step with plan_refine_steps",
    );
    bench.reply(
        "plan_refine_steps",
        json!({"edits": [{"op": "update", "step_id": "S1", "set": {"expected_outputs": ["other.py"]}}]}),
    );
    bench.run("- job_next_step_prompt {}");
    accepted(&bench);
}

#[test]
fn settings_of_many_runners_are_protected() {
    let bench = project(json!({}));
    let files = [
        ".mvn/maven.config",
        ".mvn/jvm.config",
        "gradle.properties",
        "settings.gradle",
        "settings.gradle.kts",
        "rust-toolchain",
        "rust-toolchain.toml",
        "build.rs",
        "go.work",
        "jest-preset.js",
        "__mocks__/fs.js",
        "src/__mocks__/app.js",
        ".nycrc",
        ".taprc",
        "spec/support/jasmine.json",
        "test/mocha.opts",
        "spec/spec_helper.rb",
        "test/test_helper.rb",
        "tests/Pest.php",
        "ci.runsettings",
        "Directory.Build.props",
        "CTestCustom.cmake",
        ".yarn/releases/yarn.cjs",
        "GNUmakefile",
        "node_modules/x/index.js",
        "test/minitest/evil_plugin.rb",
        ".python-version",
        "vendor/autoload.php",
    ];
    for path in files {
        is_protected(&bench, path, "x\n");
    }
    for (path, text) in [
        ("go.mod", "module a\nreplace x => ./evil\n"),
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"paths\": {\"./app\": [\"./evil\"]}}}\n",
        ),
        ("a_test.go", "package a\nfunc TestMain(m *testing.M) {}\n"),
        ("tests/test_new.py", "pytest_plugins = ['evil']\n"),
        (
            "tests/test_new.py",
            "def load_tests(loader, tests, pattern): ...\n",
        ),
        ("Cargo.toml", "[patch.crates-io]\nx = { path = 'evil' }\n"),
    ] {
        is_protected(&bench, path, text);
    }
    bench.write_all(&[
        ("go.mod", "module a\nrequire x v1.0.0\n"),
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}\n"),
        ("a_test.go", "package a\nfunc TestA(t *testing.T) {}\n"),
    ]);
    accepted(&bench);
}

#[test]
fn refusals_name_all_files() {
    let bench = project(json!({}));
    let paths: Vec<String> = (0..42)
        .map(|number| format!("sub{}/conftest.py", number))
        .collect();
    let others: Vec<String> = (0..20)
        .map(|number| format!("many/__mocks__/m{number}.js"))
        .collect();
    for path in paths.iter().chain(&others) {
        bench.write(path, "x\n");
    }
    let reply = bench.reply("job_submit_step_result", result("S1"));
    let reasons = reply["rejection_reasons"].to_string();
    for path in &paths {
        assert!(reasons.contains(path.as_str()), "{path}: {reasons}");
    }
    assert!(
        reasons.contains("many/__mocks__/{m0.js, m1.js, m10.js"),
        "{reasons}"
    );
    assert!(!reasons.contains(" more"), "{reasons}");
    let notes = reply["notes"].to_string();
    assert!(notes.contains("sub41/conftest.py"), "{notes}");
}

/// A job whose tests run a program of the repository, under these gates in both steps.
fn run_by_tests(words: &[&str], gates: &Value) -> Bench {
    let bench = Bench::with_repository_and(|workspace| workspace.test("default", words));
    bench.write("run.sh", "echo 2 passed in 1s\n");
    bench.write("app.sh", "true\n");
    bench.write("Makefile", "test:\n\t@sh run.sh\n\t@sh ./app.sh\n");
    bench.commit_all("project");
    bench.run(READY);
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    bench.reply(
        "plan_propose_steps",
        json!({"steps": [step("one", gates.clone()), step("two", gates.clone())]}),
    );
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    bench
}

#[test]
fn what_the_gates_commands_plant_is_not_nobodys_if_it_decides_how_tests_run() {
    let gates = json!([{"gate": "command_exit_0", "command": ["default"]}, {"gate": "tests_unchanged"}]);
    for (file, words) in [
        (
            "conftest.py",
            &["sh", "-c", "test ! -e plant || sh plant; echo 2 passed"][..],
        ),
        (
            "iniconfig.py",
            &["sh", "-c", "test ! -e plant || sh plant; echo 2 passed"][..],
        ),
    ] {
        let bench = run_by_tests(words, &gates);
        bench.write("plant", &format!("test -e {file} || echo x > {file}\n"));
        caught(
            &bench,
            &format!("the commands of the gates wrote files that decide how tests run: {file}"),
        );
        // The program is clean again, but what it planted is there.
        remove(&bench, "plant");
        caught(&bench, file);
        remove(&bench, file);
        accepted(&bench);
    }
}

#[test]
fn a_makefile_that_wins_over_another_is_not_planted() {
    let gates = json!([{"gate": "command_exit_0", "command": ["default"]}, {"gate": "tests_unchanged"}]);
    let words = ["sh", "-c", "test ! -e plant || sh plant; true || make test"];
    let bench = run_by_tests(&words, &gates);
    bench.write("plant", "test -e GNUmakefile || echo 'test:' > GNUmakefile\n");
    caught(
        &bench,
        "the commands of the gates wrote files that decide how tests run: GNUmakefile",
    );
}

#[test]
fn reports_and_caches_of_the_gates_commands_stay_nobodys() {
    let gates = json!([{"gate": "command_exit_0", "command": ["default"]}, {"gate": "tests_unchanged"}]);
    let run = "echo 2 passed; test -e ready || exit 0; mkdir -p app.egg-info out; echo x > out/report.xml; echo x > .coverage; echo x > app.egg-info/PKG-INFO; \
        echo '[console_scripts]' > app.egg-info/entry_points.txt";
    let bench = run_by_tests(&["sh", "-c", run], &gates);
    bench.write("ready", "x\n");
    accepted(&bench);
}

/// Makes a directory of the repository a repository of its own.
fn nested(bench: &Bench, directory: &str) {
    let place = bench.path(directory);
    crate::harness::git(&place, &["init", "--quiet"]);
    crate::harness::git(&place, &["add", "."]);
    let commit = [
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "commit",
        "--quiet",
        "-m",
        "x",
    ];
    crate::harness::git(&place, &commit);
}

#[test]
fn links_and_nested_repositories_are_looked_into() {
    let bench = project(json!({}));
    bench.write("docs/ini/__init__.py", "x = 1\n");
    std::os::unix::fs::symlink("docs/ini", bench.path("iniconfig")).unwrap();
    caught(
        &bench,
        "iniconfig/__init__.py: iniconfig is a module of Python or of a test runner",
    );
    // Also if it was committed.
    bench.commit_all("link");
    caught(&bench, "iniconfig/__init__.py: iniconfig is a module");
    bench.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    for (directory, file, why) in [
        (
            "iniconfig",
            "__init__.py",
            "iniconfig is a module of Python or of a test runner",
        ),
        (
            "tests/n",
            "conftest.py",
            "tests/n/conftest.py: it decides how tests run",
        ),
        (
            "vendor/x",
            "sub/.envrc",
            "vendor/x/sub/.envrc: tools read such files as settings",
        ),
        ("evil-1.0.dist-info", "entry_points.txt", "evil-1.0.dist-info"),
    ] {
        bench.write(&format!("{directory}/{file}"), "x = 1\n");
        nested(&bench, directory);
        caught(&bench, why);
        std::fs::remove_dir_all(bench.path(directory)).unwrap();
    }
    // A link to documents and a repository of code are honest work.
    bench.write("docs/a.md", "x\n");
    std::os::unix::fs::symlink("docs", bench.path("manual")).unwrap();
    bench.write("third_party/lib/lib.c", "int x;\n");
    bench.write("third_party/lib/README.md", "x\n");
    nested(&bench, "third_party/lib");
    accepted(&bench);
}

#[test]
fn metadata_in_any_case_is_metadata() {
    let bench = project(json!({}));
    for path in [
        "Evil-1.0.DIST-INFO/entry_points.txt",
        "app-1.Egg-Info/entry_points.txt",
        "x.egg/EGG-INFO/PKG-INFO",
        "tests/Conftest.py",
    ] {
        is_protected(&bench, path, "x\n");
    }
    bench.write("docs/dist-info.md", "x\n");
    bench.write("cpp/UnitTest/a.cpp", "int x;\n");
    accepted(&bench);
}

#[test]
fn modules_beside_tests_are_not_found_in_place_of_the_program() {
    let bench = project(json!({}));
    for (path, other) in [
        ("tests/app.py", "app.py"),
        ("tests/core.py", "lib/core.py"),
        ("core.py", "lib/core.py"),
        ("lib.py", "lib/core.py"),
    ] {
        bench.write(path, "x = 1\n");
        bench.write(
            "tests/test_use.py",
            &format!("import {}\n", path.trim_end_matches(".py")),
        );
        caught(&bench, &format!("found in place of {other}"));
        remove(&bench, path);
    }
    // In a package it has another name.
    bench.write("checks/__init__.py", "");
    bench.write("checks/app.py", "import app\n");
    bench.write("tests/test_use.py", "import checks.app\n");
    accepted(&bench);
}

/// A job on a repository of these files whose tests are this command, under `tests_unchanged`.
fn job_on(files: &[(&str, &str)], words: &[&str]) -> Bench {
    let bench = Bench::with_repository_and(|workspace| workspace.test("default", words));
    bench.write_all(files);
    bench.commit_all("project");
    crate::cheats::planned(bench, json!([{"gate": "tests_unchanged"}]))
}

#[test]
fn files_that_node_finds_first_are_seen() {
    let files = [
        ("lib/app.js", "x\n"),
        ("lib/sub/index.js", "x\n"),
        ("test/app.test.js", "x\n"),
    ];
    let bench = job_on(&files, &["node", "--test"]);
    for path in ["lib/app", "lib/sub.js", "lib/sub/package.json"] {
        may_change_tests(&bench, path, "{}\n", "it");
    }
    for path in [
        "lib/more.js",
        "lib/sub/more.js",
        "lib/app.d.ts",
        "test/more.test.js",
        "data/app.json",
    ] {
        bench.write(path, "x\n");
    }
    accepted(&bench);
}

#[test]
fn what_the_script_of_the_tests_imports_is_seen() {
    let check = "import sys\ntry:\n    from local_opts import OPTS\nexcept ImportError:\n    OPTS = []\nimport late_part\n";
    let files = [
        ("tools/check.py", check),
        ("app.py", "x = 1\n"),
        ("tests/test_a.py", "import app\n"),
    ];
    let bench = job_on(&files, &["python", "tools/check.py"]);
    for (path, why) in [
        ("tools/local_opts.py", "tools/check.py imports it"),
        ("local_opts.py", "tools/check.py imports it"),
        ("tools/late_part.py", "tools/check.py imports it"),
        (
            "tools/iniconfig.py",
            "iniconfig is a module of Python or of a test runner",
        ),
        ("tools/app.py", "it may be found in place of app.py"),
    ] {
        may_change_tests(&bench, path, "x = 1\n", why);
    }
    bench.write("tools/table.py", "print(1)\n");
    bench.write("slug.py", "x = 1\n");
    bench.write("tests/test_slug.py", "import slug\n");
    accepted(&bench);
}

#[test]
fn files_that_make_takes_for_targets_are_seen() {
    let make =
        ".PHONY: lint\ntest: prep lint\n\t@echo 2 passed\nprep:\n\t@true\nlint:\n\t@true\ndocs:\n\t@true\n";
    let bench = job_on(&[("Makefile", make)], &["make", "test"]);
    for path in ["test", "prep", "test/data.txt"] {
        bench.write(path, "");
        caught(
            &bench,
            &format!("new files may change how tests run: {path} (make treats it"),
        );
        match path.split_once('/') {
            Some((directory, _)) => std::fs::remove_dir_all(bench.path(directory)).unwrap(),
            None => remove(&bench, path),
        }
    }
    bench.write("docs/a.md", "x\n");
    bench.write("lint", "x\n");
    accepted(&bench);
}

#[test]
fn tests_that_the_gates_commands_plant_count_as_changes() {
    let gates = json!([
        {"gate": "command_exit_0", "command": ["default"]},
        {"gate": "changed_files_allowlist", "paths": ["app.sh", "plant"]},
    ]);
    let words = ["sh", "-c", "test ! -e plant || sh plant; echo 2 passed"];
    for file in ["tests/test_aaa.py", "tests/aaa/__init__.py", "web/app.test.js"] {
        let bench = run_by_tests(&words, &gates);
        let directory = file.rsplit_once('/').unwrap().0;
        bench.write(
            "plant",
            &format!("mkdir -p {directory}; test -e {file} || echo x > {file}\n"),
        );
        caught(
            &bench,
            &format!("the commands of the gates wrote files that decide how tests run: {file}"),
        );
        remove(&bench, "plant");
        caught(&bench, &format!("changed outside of app.sh, plant: {file}"));
        remove(&bench, file);
        // Reports and snapshots are as before nobody's.
        let report = "mkdir -p tests/out; echo x > tests/out/report.xml; echo x > tests/out/a.snap\n";
        bench.write("plant", report);
        accepted(&bench);
    }
}

#[test]
fn modules_that_the_plan_wants_may_wait_for_their_importers() {
    let files = [("stats/__init__.py", ""), ("stats/rows.py", "x = 1\n")];
    for change in [
        json!({"instruction_prompt": "Add the package stats; tests come in the next step."}),
        json!({"instruction_prompt": "Add the rows in stats/."}),
        json!({"expected_outputs": ["stats/**"]}),
        json!({"expected_outputs": ["stats/"]}),
    ] {
        let bench = project(change);
        bench.write_all(&files);
        accepted(&bench);
    }
    let bench = project(
        json!({"instruction_prompt": "Print the stats.", "expected_outputs": ["pygments/**", "tests/**"]}),
    );
    bench.write_all(&files);
    caught(
        &bench,
        "stats/__init__.py (no code and no test imports stats); import each needed module",
    );
    // A package that is a program needs no importer, and a configuration may name a module.
    bench.write("stats/__main__.py", "print(1)\n");
    bench.write("serverless.yml", "handler: handler.run\n");
    bench.write("handler.py", "def run(): ...\n");
    bench.write("gunicorn.conf.py", "workers = 2\n");
    for (path, word) in [
        ("pygments/__init__.py", "pygments is a module"),
        (
            "tests/unit/conftest.py",
            "files that decide how tests run changed",
        ),
    ] {
        caught_with_file(&bench, path, "x = 1\n", word);
    }
    accepted(&bench);
}

#[test]
fn a_plan_whose_gate_refuses_what_its_texts_name_gets_a_warning() {
    let warnings = |change: Value| {
        let bench = Bench::with_repository();
        bench.run(READY);
        let mut first = step("one", json!([{"gate": "tests_unchanged"}]));
        for (key, value) in change.as_object().unwrap() {
            first[key] = value.clone();
        }
        bench.reply("plan_propose_steps", json!({"steps": [first]}));
        bench.reply("job_set_ready", json!({}))["warnings"].to_string()
    };
    let told = "Add tests/unit/test_n.py and a fixture in `tests/unit/conftest.py`.";
    let line = "step S1: the gate tests_unchanged will reject changes of tests/unit/conftest.py";
    let found = warnings(json!({"instruction_prompt": told}));
    assert!(found.contains(line), "{found}");
    for change in [
        json!({"instruction_prompt": told, "expected_outputs": ["tests/unit/conftest.py"]}),
        json!({"instruction_prompt": told, "gates": [{"gate": "forbid_paths", "paths": ["docs/**"]}]}),
        json!({"instruction_prompt": "Add tests/unit/test_n.py."}),
    ] {
        let found = warnings(change);
        assert!(!found.contains("will reject"), "{found}");
    }
}
