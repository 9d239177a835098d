//! Modules that Python finds by their names.

use std::collections::{BTreeMap, BTreeSet};

use super::commands::{self, name_of};
use super::is_usual_test;
use super::newcomers::Scene;
use super::places::stem;
use super::runners::Runner;
use crate::git::Git;

/// Directories on the path of many projects, besides the top.
const SOURCE_FOLDERS: [&str; 3] = ["src", "lib", "python"];
/// Modules of Python's standard library. A new file of such a name stands in the module's place.
const STANDARD_MODULES: &str = "\
    abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile calendar \
    cmath cmd code codecs codeop collections colorsys compileall concurrent configparser contextlib \
    contextvars copy copyreg csv ctypes curses dataclasses datetime dbm decimal difflib dis doctest \
    email encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools \
    gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib \
    importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox marshal \
    math mimetypes mmap modulefinder multiprocessing netrc ntpath numbers opcode operator optparse os \
    pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint profile \
    pstats pty pwd py_compile pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource \
    rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket \
    socketserver sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep \
    struct subprocess symtable sys sysconfig syslog tabnanny tarfile tempfile termios textwrap threading \
    time timeit token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest \
    urllib uuid warnings wave weakref webbrowser wsgiref xml xmlrpc zipfile zipimport zlib zoneinfo";

/// Modules that test runners of Python import, with those that they import themselves if they are there.
const RUNNER_MODULES: &str = "\
    argcomplete attr attrs behave chardet colorama coverage ddt distlib elementpath exceptiongroup execnet \
    filelock freezegun hypothesis importlib_metadata iniconfig jinja2 lxml markupsafe more_itertools nose nose2 \
    nox numpy packaging parameterized pexpect pip pkg_resources platformdirs pluggy psutil ptyprocess py pygments \
    pyproject_hooks pytest robot setproctitle setuptools sniffio anyio sortedcontainers testfixtures tomli \
    tomllib tox trio twisted typing_extensions unittest2 virtualenv wcwidth wheel xdist xmlschema zipp zope";

/// A module that Python finds by its name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module<'p> {
    pub root: &'p str,
    pub name: &'p str,
}

/// Modules that old files define, by name.
pub(super) struct Known<'o> {
    modules: BTreeMap<&'o str, Vec<(&'o str, &'o str)>>,
    /// Directories of sources that Python looks into before the top, as settings say.
    first: BTreeSet<String>,
}

impl<'o> Known<'o> {
    pub(super) fn of(
        old: &BTreeSet<&'o str>,
        roots: &BTreeSet<String>,
        first: BTreeSet<String>,
    ) -> Known<'o> {
        let mut known: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for path in old.iter().copied().filter(|path| path.ends_with(".py")) {
            let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
            let is_package = old.contains(format!("{directory}/__init__.py").as_str());
            let is_test = file.starts_with("test_") || file.ends_with("_test.py");
            if let Some(module) = module(path, roots).filter(|_| !is_test)
                && (file == "__init__.py" || !is_package)
            {
                known.entry(module.name).or_default().push((module.root, path));
            }
            // A package without `__init__.py` at the top.
            if let Some((first, _)) = path.split_once('/')
                && !old.contains(format!("{first}/__init__.py").as_str())
            {
                let places = known.entry(first).or_default();
                if !places.iter().any(|(root, _)| root.is_empty()) {
                    places.push(("", path));
                }
            }
        }
        Known {
            modules: known,
            first,
        }
    }

    /// An old module of the same name in another directory, which Python looks into later or may do so.
    pub(super) fn other(&self, module: &Module<'_>) -> Option<&'o str> {
        let rank = |root: &str| match root {
            "" => 1,
            root if SOURCE_FOLDERS.contains(&root) && !self.first.contains(root) => 0,
            _ => 2,
        };
        let is_test = module.name.starts_with("test_") || module.name.ends_with("_test");
        if is_test || module.name == "conftest" {
            return None;
        }
        let places = self.modules.get(module.name)?.iter();
        let mut others = places.filter(|(root, _)| *root != module.root && rank(module.root) >= rank(root));
        others.next().map(|(_, path)| *path)
    }
}

/// Checks whether a new file takes the place of a module of Python's standard library or of a test runner, wherever
/// the command runs.
pub(super) fn shadows(path: &str) -> bool {
    let roots = SOURCE_FOLDERS.map(str::to_owned);
    path.ends_with(".py")
        && module(path, &roots.into_iter().collect()).is_some_and(|module| stands_for(&module, path))
}

/// Module that a file defines, if Python finds it by its name alone: at the top, in a directory of the path, or
/// beside tests.
pub(super) fn module<'p>(path: &'p str, roots: &BTreeSet<String>) -> Option<Module<'p>> {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let (root, name) = match stem(file) {
        "__init__" if !directory.is_empty() => directory.rsplit_once('/').unwrap_or(("", directory)),
        name => (directory, name),
    };
    let is_root = root.is_empty() || roots.contains(root) || is_usual_test(path);
    is_root.then_some(Module { root, name })
}

/// Checks whether a name is that of a module of Python or of a runner. Other private names at the top are refused as
/// well, because Python's own helpers have such names.
pub(super) fn stands_for(module: &Module<'_>, path: &str) -> bool {
    let name = module.name;
    let is_private = name.starts_with('_') && module.root.is_empty() && !is_usual_test(path);
    is_standard(name)
        || RUNNER_MODULES.split_whitespace().any(|known| known == name)
        || name.starts_with("pytest_")
        || is_private
}

/// Directories in which Python looks for modules by their names: those of sources, those with tests that are no
/// package, and those that commands or settings name.
pub(super) fn roots(
    scene: &Scene<'_, '_>,
    old: &BTreeSet<&str>,
    scripts: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut roots: BTreeSet<String> = SOURCE_FOLDERS.map(str::to_owned).into_iter().collect();
    // Python looks into the directory of the script that it runs first.
    let named = scene
        .commands
        .iter()
        .flat_map(|runner| commands::simple(&runner.words));
    let named = named.filter_map(|words| commands::script(&words).map(str::to_owned));
    let named = named.filter(|path| scripts.contains(path));
    roots.extend(named.map(|path| {
        path.rsplit_once('/')
            .map_or("", |(directory, _)| directory)
            .to_owned()
    }));
    let mut named: BTreeSet<String> = BTreeSet::new();
    let mut learn = |text: &str| {
        let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')));
        let words = words.map(|word| word.trim_start_matches("./").trim_end_matches('/'));
        named.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    };
    for runner in scene.commands {
        runner.words.iter().for_each(|word| learn(word));
    }
    python_paths(scene).iter().for_each(|line| learn(line));
    for path in old.iter().filter(|path| path.ends_with(".py")) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_package = old.contains(format!("{directory}/__init__.py").as_str());
        let is_test = name.starts_with("test_") || name.ends_with("_test.py");
        if !is_package && (is_test || named.contains(directory)) {
            roots.insert(directory.to_owned());
        }
    }
    roots
}

/// Lines of settings and words of commands that name directories for Python to look into.
fn python_paths(scene: &Scene<'_, '_>) -> Vec<String> {
    let files = [
        "pytest.ini",
        ".pytest.ini",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
    ]
    .iter();
    let texts = files.filter_map(|path| scene.git.text_in(scene.base?, path));
    let mut lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.extend(scene.commands.iter().flat_map(|runner| runner.words.clone()));
    lines.retain(|line| line.to_lowercase().contains("pythonpath"));
    lines
}

/// Directories of sources that Python looks into before the top.
pub(super) fn first(scene: &Scene<'_, '_>) -> BTreeSet<String> {
    let lines = python_paths(scene);
    let is_named = |root: &&str| {
        let mut words = lines.iter().flat_map(|line| {
            line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.')))
        });
        words.any(|word| word.trim_start_matches("./").trim_end_matches('/') == *root)
    };
    SOURCE_FOLDERS
        .iter()
        .filter(|root| is_named(root))
        .map(|root| (*root).to_owned())
        .collect()
}

/// Checks whether an environment in the work tree has a module installed.
pub(super) fn is_installed(git: &Git<'_>, name: &str) -> bool {
    let environments = [".venv", "venv", "env"].iter();
    let mut libraries = environments.flat_map(|environment| git.entries_in(&format!("{environment}/lib")));
    libraries.any(|library| {
        let place = format!("{library}/site-packages/{name}");
        name_of(&library).starts_with("python") && (git.has(&place) || git.has(&format!("{place}.py")))
    })
}

/// Checks whether a command names Python or a runner of its tests.
pub(super) fn runs_python(runner: &Runner) -> bool {
    const PYTHON_PROGRAMS: [&str; 9] = [
        "python", "py.test", "pytest", "tox", "nox", "unittest", "poetry", "pdm", "hatch",
    ];
    let names = |word: &String| word == "uv" || PYTHON_PROGRAMS.iter().any(|known| word.contains(known));
    runner.words.iter().any(names)
}

/// Checks whether a module is one of Python's standard library.
fn is_standard(name: &str) -> bool {
    STANDARD_MODULES.split_whitespace().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_take_the_place_of_modules() {
        for path in [
            "random.py",
            "json/__init__.py",
            "tests/random.py",
            "tests/json/__init__.py",
            "iniconfig.py",
            "packaging/__init__.py",
            "src/pygments.py",
            "pytest_evil.py",
            "_weakrefset.py",
        ] {
            assert!(shadows(path), "{path}");
        }
        for path in [
            "app/random.py",
            "randoms.py",
            "json/data.txt",
            "src/types.ts",
            "tests/_helpers.py",
            "app/packaging/__init__.py",
        ] {
            assert!(!shadows(path), "{path}");
        }
    }

    #[test]
    fn a_module_of_the_same_name_may_be_found_instead() {
        let old: BTreeSet<&str> = [
            "app.py",
            "tests/test_a.py",
            "src/core.py",
            "shop/a.py",
            "tests/util.py",
        ]
        .into();
        let roots: BTreeSet<String> = ["src", "tests", "more"].map(str::to_owned).into();
        let known = Known::of(&old, &roots, BTreeSet::new());
        for (root, name, expected) in [
            ("tests", "app", Some("app.py")),
            ("tests", "shop", Some("shop/a.py")),
            ("", "core", Some("src/core.py")),
            ("more", "util", Some("tests/util.py")),
            ("src", "app", None),
            ("", "util", None),
            ("tests", "fresh", None),
            ("more", "test_a", None),
        ] {
            assert_eq!(known.other(&Module { root, name }), expected, "{root} {name}");
        }
    }
}
