//! Files that decide how tests run, and settings of tests inside of other files: tables, and their use. Pure.

use std::sync::LazyLock;

use globset::GlobSet;
use regex_lite::Regex;
use serde_json::Value;

use super::glob_set;

/// Globs of packages that stand in the way of a test tool, by their names as they are.
pub(super) const TEST_PACKAGES: &[&str] = &["**/{pytest,unittest,_pytest,pluggy}/**"];

/// Globs of files that decide how tests run, or that stand in the way of a test tool, in any case: Python reads metadata
/// so, and some file systems all files.
pub(super) const TEST_SETTINGS: &[&str] = &[
    "**/conftest.py",
    "**/pytest.{ini,toml}",
    "**/.pytest.{ini,toml}",
    "**/noxfile.py",
    "**/{pytest,unittest,_pytest,pluggy}.py",
    "**/{sitecustomize,usercustomize}.py",
    "**/*.pth",
    "**/{jest,vitest,playwright,karma,cypress,ava,wdio}.{conf,config,workspace,setup}.*",
    "**/.mocharc*",
    "**/phpunit.xml*",
    "**/.rspec",
    "**/nextest.toml",
    "**/.cargo/config*",
    "**/babel.config.*",
    "**/.babelrc*",
    "**/.swcrc",
    "**/.{npmrc,yarnrc,yarnrc.yml,pnpmfile.cjs,nycrc*,c8rc*,taprc,proverc,tool-versions,node-version}",
    // Plugins of Python that are found by metadata, and environments.
    "**/*.{dist-info,egg-info}",
    "**/*.{dist-info,egg-info}/**",
    "**/EGG-INFO/**",
    "**/*.{egg,egg-link,pyc}",
    "**/{site-packages,node_modules}/**",
    "**/{pyvenv.cfg,.python-version,unittest.cfg,nose2.cfg,uv.toml,hatch.toml,pdm.toml,pixi.toml}",
    "**/{mise,.mise}.toml",
    // JavaScript and TypeScript.
    "**/{jest,vitest}[-.]{preset,setup}*",
    "**/{jest,vitest}/setup*",
    "**/{__mocks__,.yarn}/**",
    "**/{jasmine,node.config,web-test-runner.config}.*",
    "**/mocha.opts",
    "**/{setupTests,setup-tests,test-setup,setupJest}.*",
    // Rust, Go, the Java platform.
    "**/{rust-toolchain,rust-toolchain.toml,build.rs,go.work}",
    "**/.mvn/**",
    "**/{gradle.properties,settings.gradle,settings.gradle.kts,init.gradle,gradle-wrapper.properties}",
    "**/{junit-platform.properties,testng.xml}",
    "**/META-INF/services/org.{junit,testng,spockframework}*",
    // Ruby, PHP, Elixir, .NET, C and C++.
    "**/{spec,rails,test}_helper.{rb,exs}",
    "**/minitest/**",
    "{lib,spec,test}/{rspec,minitest,test/unit}.rb",
    "**/{tests,test}/{Pest.php,bootstrap.php}",
    "**/*.runsettings",
    "**/{xunit.runner.json,Directory.Build.*,Directory.Packages.props}",
    "global.json",
    "**/CTest{Custom,Testfile}.cmake",
    "**/{GNUmakefile,.bazelrc}",
    "vendor/{modules.txt,autoload.php,bin/**,composer/**,bundle/**,phpunit/**,github.com/**,golang.org/**,gopkg.in/**}",
];

/// Form of the settings of tests in a file that has others as well.
enum Form {
    /// Values of keys at the top of a JSON document.
    Json(&'static [&'static str]),
    /// Values of `extends`, and of these options of a compiler, in a JSON document with comments.
    Compiler(&'static [&'static str]),
    /// Sections with one of the first in their header, and keys of the second anywhere.
    Sections(&'static [&'static str], &'static [&'static str]),
    /// From lines that match the first, and not the second, up to the end of the brackets that they open.
    Blocks(&'static str, &'static str),
    /// Plugins of Maven that run tests, and properties that skip tests.
    Maven,
}

/// Files with settings of tests among others: globs and the form.
const MIXED_SETTINGS: &[(&[&str], Form)] = &[
    (
        &["**/deno.{json,jsonc}"],
        Form::Json(&["tasks", "test", "imports", "importMap", "exclude"]),
    ),
    (
        &["**/{pyproject.toml,setup.cfg,tox.ini}"],
        // A dotted key outside of its section, as in `tool.pytest.ini_options.testpaths = []`.
        Form::Sections(
            &["pytest", "testenv", "tox", "nose", "unittest"],
            &["pytest.", "pytest11"],
        ),
    ),
    (
        &["**/Cargo.toml"],
        Form::Sections(
            &["[lib]", "[[test]]", "[profile.test", "[patch", "[replace"],
            &[
                "build",
                "lib",
                "lib.",
                "test",
                "doctest",
                "harness",
                "autotests",
                "required-features",
                "default-members",
                "exclude",
            ],
        ),
    ),
    (
        &["**/bunfig.toml"],
        Form::Sections(&["test"], &["preload", "test."]),
    ),
    (&["**/pom.xml"], Form::Maven),
    (
        &["**/build.gradle", "**/*.gradle.kts", "**/*.gradle"],
        Form::Blocks(
            r"\b(?:test|Test|check|integrationTest|useJUnit\w*|useTestNG)\b",
            r"\btest(?:Implementation|RuntimeOnly|CompileOnly|AnnotationProcessor|FixturesApi)\b",
        ),
    ),
    (
        &["**/CMakeLists.txt", "**/*.cmake"],
        Form::Blocks(
            r"(?i)enable_testing|add_test|set_tests_properties|discover_tests|include\s*\(\s*CTest|BUILD_TESTING|CTEST_",
            r"^\s*#",
        ),
    ),
    (
        &["**/vite.config.*"],
        Form::Blocks(r"\b(?:test|alias|setupFiles|globalSetup)\b\s*:", r"^\s*//"),
    ),
    (&["**/go.mod"], Form::Blocks(r"^\s*replace\b", r"^\s*//")),
    (
        &["**/{ts,js}config*.json"],
        Form::Compiler(&[
            "paths",
            "baseUrl",
            "rootDirs",
            "plugins",
            "moduleSuffixes",
            "customConditions",
        ]),
    ),
    // A function that runs all tests of its package.
    (&["**/*_test.go"], Form::Blocks(r"^func\s+TestMain\b", r"^\s*//")),
    // Settings of Django, which may be split into any modules, and what makes a test a plugin.
    (
        &["**/*.py"],
        Form::Blocks(r"\bTEST_RUNNER\b|^pytest_plugins\b|^def\s+load_tests\b", r"^\s*#"),
    ),
];

/// Matchers of [`MIXED_SETTINGS`], made once a call.
static MIXED_SETTINGS_MATCHERS: LazyLock<Vec<GlobSet>> =
    LazyLock::new(|| MIXED_SETTINGS.iter().map(|(globs, _)| matcher(globs)).collect());

/// Settings of tests in a file that has others as well; `None` for other files.
pub(super) fn of(path: &str, text: &str) -> Option<String> {
    let mut forms = MIXED_SETTINGS_MATCHERS.iter().zip(MIXED_SETTINGS);
    let (_, (_, form)) = forms.find(|(place, _)| place.is_match(path))?;
    Some(match form {
        Form::Json(keys) => json(text, keys),
        Form::Compiler(options) => compiler(text, options),
        Form::Sections(parts, keys) => sections(text, parts, keys),
        Form::Blocks(begin, but) => blocks(text, begin, but),
        Form::Maven => maven(text),
    })
}

fn matcher(globs: &[&str]) -> GlobSet {
    let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
    glob_set(&globs)
}

pub(super) fn is_match(globs: &[&str], path: &str) -> bool {
    matcher(globs).is_match(path)
}

/// Values of some keys. A document that cannot be read counts as a whole.
fn json(text: &str, keys: &[&str]) -> String {
    let read: Value = match serde_json::from_str(text) {
        Ok(read) => read,
        Err(_) if text.trim().is_empty() => Value::Null,
        Err(_) => return text.to_owned(),
    };
    let kept = keys.iter().map(|key| read.get(*key).cloned().unwrap_or_default());
    Value::from(kept.collect::<Vec<_>>()).to_string()
}

/// Values of some options of a compiler. A document that cannot be read counts as a whole.
fn compiler(text: &str, options: &[&str]) -> String {
    let mut plain = text.to_owned();
    let read = json_strip_comments::strip(&mut plain).ok();
    let read: Option<Value> = read.and_then(|()| serde_json::from_str(&plain).ok());
    let Some(read) = read else {
        return text.trim().to_owned();
    };
    let own = read.get("compilerOptions");
    let kept = options
        .iter()
        .map(|option| own.and_then(|own| own.get(*option)).cloned().unwrap_or_default());
    let kept = kept.chain([read.get("extends").cloned().unwrap_or_default()]);
    let kept: Vec<Value> = kept.collect();
    match kept.iter().all(Value::is_null) {
        true => String::new(),
        false => Value::from(kept).to_string(),
    }
}

fn sections(text: &str, parts: &[&str], keys: &[&str]) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = parts.iter().any(|part| line.contains(part));
        }
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        let is_key = |wanted: &&str| match wanted.ends_with('.') {
            true => key.contains(wanted),
            false => key == *wanted,
        };
        if (inside || keys.iter().any(is_key)) && !line.is_empty() && !line.starts_with('#') {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// Lines that match, each with those up to the end of the brackets that it opens.
fn blocks(text: &str, begin: &str, but: &str) -> String {
    let (Ok(begin), Ok(but)) = (Regex::new(begin), Regex::new(but)) else {
        return text.to_owned();
    };
    let mut kept = String::new();
    let mut depth = 0_i64;
    for line in text.lines().map(str::trim) {
        if depth <= 0 && (but.is_match(line) || !begin.is_match(line)) {
            continue;
        }
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => depth = depth.saturating_add(1),
                '}' | ')' | ']' => depth = depth.saturating_sub(1).max(0),
                _ => {}
            }
        }
        kept += line;
        kept.push('\n');
    }
    kept
}

fn maven(text: &str) -> String {
    const TEST_PROPERTIES: [&str; 5] = [
        "skipTests",
        "skipITs",
        "maven.test",
        "testSourceDirectory",
        "testFailureIgnore",
    ];
    let plugins = text
        .split("<plugin>")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("</plugin>")?.0));
    let plugins = plugins.filter(|plugin| plugin.contains("surefire") || plugin.contains("failsafe"));
    let lines = text
        .lines()
        .filter(|line| TEST_PROPERTIES.iter().any(|word| line.contains(word)));
    let kept: Vec<&str> = plugins.flat_map(str::lines).chain(lines).map(str::trim).collect();
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_tests_are_told_from_others() {
        for (path, old, same, other) in [
            (
                "pyproject.toml",
                "[project]\nname = 'a'\n[tool.pytest.ini_options]\ntestpaths = ['t']\n",
                ("'a'", "'b'"),
                ("'t'", "'u'"),
            ),
            (
                "tsconfig.json",
                r#"{ "compilerOptions": { "target": "es5", /* none */ "paths": {"a": ["b"]}, } }"#,
                ("es5", "es6"),
                ("\"b\"", "\"c\""),
            ),
            (
                "Cargo.toml",
                "[package]\nversion = '1'\n[lib]\ntest = true\n[dependencies]\ntest-log = '1'\n",
                ("'1'", "'2'"),
                ("true", "false"),
            ),
            (
                "pom.xml",
                "<dependency><scope>test</scope></dependency>\n<plugin>\n<artifactId>maven-surefire-plugin\n<skip>no\n</plugin>",
                ("dependency>", "dep>"),
                ("no", "true"),
            ),
            (
                "build.gradle.kts",
                "dependencies {\n  testImplementation(\"junit:1\")\n}\ntasks.test {\n  useJUnitPlatform()\n  enabled = true\n}\n",
                ("junit:1", "junit:2"),
                ("true", "false"),
            ),
            (
                "CMakeLists.txt",
                "add_library(a a.c)\nadd_test(NAME a\n  COMMAND a_test)\n",
                ("a.c", "b.c"),
                ("a_test", "true"),
            ),
            (
                "vite.config.ts",
                "export default {\n  plugins: [vue()],\n  test: {\n    include: ['a'],\n  },\n};\n",
                ("vue", "react"),
                ("'a'", "'b'"),
            ),
            (
                "bunfig.toml",
                "[install]\nexact = true\n[test]\nroot = 'a'\n",
                ("true", "false"),
                ("'a'", "'b'"),
            ),
            (
                "deno.json",
                r#"{"version": "1", "tasks": {"test": "a"}}"#,
                ("1", "2"),
                (r#""a""#, r#""b""#),
            ),
            (
                "app/settings.py",
                "DEBUG = 1\nTEST_RUNNER = 'a.Runner'\n",
                ("1", "2"),
                ("a.Runner", "b.Runner"),
            ),
        ] {
            let (same, other) = (old.replace(same.0, same.1), old.replace(other.0, other.1));
            assert_eq!(of(path, old), of(path, &same), "{path}");
            assert_ne!(of(path, old), of(path, &other), "{path}");
        }
        assert_eq!(of("calc.rs", "x"), None);
    }
}
