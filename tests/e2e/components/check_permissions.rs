//! Permissions of an unknown component in `packs check` and similar commands.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Place, guest};

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn check(place: &Place, name: &str, more: &[&str]) -> Value {
    let file = guest(name);
    let arguments = [&["--json", "packs", "check", path(&file)], more].concat();
    let output = place.run(&arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    })
}

/// The findings of a report, in one text.
fn found(report: &Value) -> String {
    let findings = report["problems"].as_array().unwrap().iter();
    let lines = findings.map(|finding| finding["found"].as_str().unwrap().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Results of the guest `process-escape`, which an operator can call as well.
fn burgled(config: &str, flags: &[&str]) -> String {
    let place = Place::with(config);
    std::fs::create_dir_all(place.path().join("main")).unwrap();
    let output = place.run(
        &[
            flags,
            &["--log", "debug", "--json", "call", "process_escape_try", "{}"],
        ]
        .concat(),
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_check_starts_no_program_by_name_path_git_or_test() {
    let place = Place::new();
    let tools = place.path().join("bin");
    std::fs::create_dir(&tools).unwrap();
    // Whatever is started by name would leave a trace.
    for name in ["sh", "env", "git", "true"] {
        let file = tools.join(name);
        std::fs::write(
            &file,
            format!("#!/bin/sh\necho {name} >>{}\n", path(&place.path().join("trace"))),
        )
        .unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = |more: &[&str]| {
        let file = guest("process-escape");
        let arguments = [&["--json", "packs", "check", path(&file)], more].concat();
        let output = place.command(&arguments).env("PATH", &tools).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["calls"][0]["outcome"], "TRIED", "{report:#}");
        std::fs::read_to_string(place.path().join("trace")).unwrap_or_default()
    };
    assert_eq!(run(&[]), "");
    // The same with leave to do it.
    let trace = run(&["--programs"]);
    assert!(trace.contains("sh\n") && trace.contains("env\n"), "{trace}");
}

#[test]
fn a_granted_pack_still_starts_programs_by_name_only() {
    let config = format!(
        "[workspaces.main]\npath = \"main\"\nwrite = [\".\"]\n[packs.process-escape]\nsource = {:?}\n\
         grants = {{ workspaces = [\"*\"], process = [\"sh\", \"env\", \"/bin/sh\", \"./run.sh\", \"tests\", \"git\"] }}\n",
        guest("process-escape")
    );
    let said = burgled(&config, &[]);
    assert!(said.contains("broken in: true"), "{said}");
    for program in ["/bin/sh", "./run.sh", "../workspace/run.sh"] {
        assert!(
            said.contains(&format!("{program} did not: not allowed")),
            "{program}: {said}"
        );
    }
}

#[test]
fn a_program_is_wanted_by_name_wherever_a_component_is_asked() {
    let place = Place::new();
    let file = guest("grant-path");
    let report = check(&place, "grant-path", &["--programs"]);
    assert!(
        found(&report).contains("\"/bin/sh\"; write a program's name without its path"),
        "{report:#}"
    );
    for command in [
        &["packs", "inspect"][..],
        &["packs", "add", "--grant", "process=/bin/sh"],
    ] {
        let output = place.run(&[command, &[path(&file)]].concat());
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("without its path"), "{command:?}: {said}");
    }
    let configured = Place::with(&format!(
        "[packs.grant-path]\nsource = {file:?}\ngrants.process = [\"*\", \"/bin/sh\"]\n"
    ));
    let listed = configured.run(&["packs", "list"]);
    let said = String::from_utf8_lossy(&listed.stdout) + String::from_utf8_lossy(&listed.stderr);
    assert!(said.contains("without its path"), "{said}");
}

#[test]
fn a_check_ends_with_its_time_whatever_sleeps_or_spins() {
    let place = Place::new();
    for name in ["limit-sleep", "call-limits"] {
        let started = Instant::now();
        let report = check(&place, name, &["--time", "1"]);
        let told = found(&report);
        assert!(told.contains("the check stopped after 1 s"), "{name}: {report:#}");
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{name}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn what_a_component_says_of_itself_has_no_more_time_than_the_check_and_a_crash_is_told_plainly() {
    let place = Place::new();
    // Whatever the machine's load, the 5 s of a start are not waited for: compiling comes before.
    let told = found(&check(&place, "describe-hang", &["--time", "2"]));
    assert!(
        told.contains("it does not describe itself within") || told.contains("the check stopped after 2 s"),
        "{told}"
    );
    assert!(!told.contains("within 5.0 s"), "{told}");
    let told = found(&check(&place, "describe-trap", &[]));
    assert!(told.contains("it does not describe itself: it crashed"), "{told}");
    for raw in ["backtrace", "0x", "wasm function"] {
        assert!(!told.contains(raw), "{told}");
    }
}

#[test]
fn trials_of_a_policy_end_with_their_time() {
    let place = Place::new();
    let cases = place.path().join("cases.toml");
    let case = "[[case]]\nname = \"NAME\"\ntool = \"task_get\"\nsettings = { before = \"sleep\" }\nexpect = \"pass\"\n";
    let all: String = (0..30)
        .map(|number| case.replace("NAME", &number.to_string()))
        .collect();
    std::fs::write(&cases, all).unwrap();
    let started = Instant::now();
    let file = guest("policy-faults");
    let output = place.run(&[
        "policies",
        "test",
        path(&file),
        "--case",
        path(&cases),
        "--time",
        "3",
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("did not finish within 3 s"), "{said}");
    assert!(
        started.elapsed() < Duration::from_secs(45),
        "{:?}",
        started.elapsed()
    );
}

/// The largest component of the tests.
fn large() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/conductor.wasm")
}

#[test]
fn the_compiler_works_shut_in() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("compile-component")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&std::fs::read(large()).unwrap()).unwrap();
    drop(stdin);
    let file =
        |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap_or_default();
    let is_shut_in = || {
        let limits = file("limits");
        let files = limits.lines().find(|line| line.starts_with("Max open files"));
        files.is_some_and(|line| line.split_whitespace().nth(4) == Some("0"))
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !is_shut_in() {
        assert!(Instant::now() < until, "it was never shut in");
        std::thread::yield_now();
    }
    // Reads to its end, which comes only if everything that compiling needs is still allowed.
    let mut code = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut code).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(code.starts_with(b"\x7fELF") && said.is_empty(), "{said}");
}

#[test]
fn a_component_is_compiled_by_its_first_check_only() {
    let place = Place::new();
    let cache = place.path().join("cold");
    let kept = || {
        let entries = std::fs::read_dir(cache.join("cache")).unwrap();
        let code = entries.map(|entry| entry.unwrap()).filter(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.ends_with(".cwasm")
        });
        let written = code.map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap()));
        written.collect::<Vec<_>>()
    };
    check(&place, "sql-access", &["--cache-dir", path(&cache)]);
    let first = kept();
    assert_eq!(first.len(), 1, "{first:?}");
    check(&place, "sql-access", &["--cache-dir", path(&cache)]);
    assert_eq!(kept(), first);
}
