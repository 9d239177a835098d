//! New files that are found in place of others, by the order in which languages and runners look for modules. Pure.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::newcomers::MODULE_EXTENSIONS;
use super::runners::Runner;
use super::{commands, is_usual_test};

/// Extensions in the order in which Node and Jest look for a module that is named without one. The first is the name
/// itself.
const NODE_ORDER: &[&str] = &[
    "", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "json", "node",
];
/// The order of Vite and Vitest.
const VITE_ORDER: &[&str] = &["", "mjs", "js", "mts", "ts", "jsx", "tsx", "json"];
/// The order of runners that prefer TypeScript.
const TYPESCRIPT_ORDER: &[&str] = &[
    "", "tsx", "ts", "mts", "cts", "jsx", "js", "mjs", "cjs", "json", "node",
];
/// Programs of JavaScript that take the order of Node.
const NODE_PROGRAMS: [&str; 15] = [
    "node",
    "npm",
    "npx",
    "yarn",
    "pnpm",
    "bun",
    "bunx",
    "deno",
    "jest",
    "mocha",
    "ava",
    "tap",
    "karma",
    "cypress",
    "playwright",
];
/// Extensions of headers, which C looks for beside the file that includes them first.
const HEADER_EXTENSIONS: [&str; 5] = ["h", "hh", "hpp", "hxx", "inc"];
/// Extensions of languages whose test sources come before the others on the class path.
const JVM_EXTENSIONS: [&str; 4] = ["java", "kt", "scala", "groovy"];

/// Orders in which the runners of some commands look for modules of JavaScript.
#[derive(Debug, Default)]
pub(super) struct Orders(Vec<&'static [&'static str]>);

impl Orders {
    /// Orders of the programs that commands name.
    pub(super) fn of(commands: &[Runner]) -> Orders {
        let lines = commands.iter().flat_map(|runner| commands::simple(&runner.words));
        let words: BTreeSet<String> = lines
            .flatten()
            .map(|word| commands::name_of(&word).to_owned())
            .collect();
        let has = |names: &[&str]| names.iter().any(|name| words.contains(*name));
        let known = [
            (has(&NODE_PROGRAMS), NODE_ORDER),
            (has(&["vite", "vitest"]), VITE_ORDER),
            (has(&["tsx", "ts-node", "bun", "bunx", "deno"]), TYPESCRIPT_ORDER),
        ];
        Orders(
            known
                .into_iter()
                .filter_map(|(is_used, order)| is_used.then_some(order))
                .collect(),
        )
    }

    /// Orders of all runners.
    fn all() -> Orders {
        Orders(vec![NODE_ORDER, VITE_ORDER, TYPESCRIPT_ORDER])
    }
}

/// Reason why a new file is found in place of another one, which is still there.
pub(super) fn replaces(path: &str, old: &BTreeSet<&str>, orders: &Orders) -> Option<String> {
    let other = match path.rsplit('/').next().unwrap_or_default() {
        "__init__.py" => return package(path, old),
        "package.json" if !orders.0.is_empty() => return manifest(path, old),
        _ => python(path, old)
            .or_else(|| script(path, old, orders))
            .or_else(|| twin(path, old)),
    };
    other.map(|other| format!("it is found in place of {other}"))
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

/// Files directly in a directory.
fn direct<'o>(directory: &str, old: &BTreeSet<&'o str>) -> impl Iterator<Item = &'o str> {
    let begin = join(directory, "");
    let below: Vec<&'o str> = old
        .range::<str, _>((Bound::Included(begin.as_str()), Bound::Unbounded))
        .take_while(|path| path.starts_with(&begin))
        .filter(|path| path.get(begin.len()..).is_some_and(|rest| !rest.contains('/')))
        .copied()
        .collect();
    below.into_iter()
}

/// A package in place of a module, or one that runs before old tests.
fn package(path: &str, old: &BTreeSet<&str>) -> Option<String> {
    let (directory, _) = split(path);
    let beside = format!("{directory}.py");
    if old.contains(beside.as_str()) {
        return Some(format!("it is found in place of {beside}"));
    }
    let mut tests = direct(directory, old).filter(|path| path.ends_with(".py") && is_usual_test(path));
    let test = tests.next()?;
    Some(format!(
        "it runs before {test}, and can change what {test} imports"
    ))
}

/// A manifest that tells which file of a directory is loaded, and how.
fn manifest(path: &str, old: &BTreeSet<&str>) -> Option<String> {
    let (directory, _) = split(path);
    let is_script = |path: &&str| {
        NODE_ORDER
            .iter()
            .skip(1)
            .any(|end| path.ends_with(&format!(".{end}")))
    };
    let script = direct(directory, old)
        .find(is_script)
        .filter(|_| !directory.is_empty())?;
    Some(format!("it decides how {script} is loaded"))
}

/// Compiled modules come before sources, and a module before a package without `__init__.py`.
fn python(path: &str, old: &BTreeSet<&str>) -> Option<String> {
    let (directory, name) = split(path);
    let (stem, extension) = (stem(name), name.rsplit('.').next().unwrap_or_default());
    if !MODULE_EXTENSIONS.contains(&extension) {
        return None;
    }
    if extension != "py" {
        return Some(join(directory, &format!("{stem}.py"))).filter(|other| old.contains(other.as_str()));
    }
    let package = join(directory, stem);
    let is_package = old.contains(format!("{package}/__init__.py").as_str());
    let mut inside = direct(&package, old).filter(|path| path.ends_with(".py"));
    let other = inside.next().filter(|_| !is_package)?;
    Some(other.to_owned())
}

/// A script that a runner finds before another one if neither is named with its extension.
fn script(path: &str, old: &BTreeSet<&str>, orders: &Orders) -> Option<String> {
    let all = Orders::all();
    let orders = match is_usual_test(path) {
        true => &all,
        false => orders,
    };
    let (directory, name) = split(path);
    let (whole, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_old = |path: &String| old.contains(path.as_str());
    for order in &orders.0 {
        let Some(place) = order.iter().position(|known| *known == extension) else {
            continue;
        };
        let later = order.iter().skip(place.saturating_add(1));
        let mut others = later.map(|other| join(directory, &format!("{whole}.{other}")));
        let inside = order.iter().skip(1).map(|other| format!("index.{other}"));
        let inside = inside.chain(["package.json".to_owned()]);
        let mut inside = inside.map(|name| join(&join(directory, whole), &name));
        if let Some(other) = others.find(is_old).or_else(|| inside.find(is_old)) {
            return Some(other);
        }
    }
    None
}

/// A file among tests that has the place or the name of one that they test.
fn twin(path: &str, old: &BTreeSet<&str>) -> Option<String> {
    let (_, name) = split(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_old = |path: &String| old.contains(path.as_str());
    if JVM_EXTENSIONS.contains(&extension) && path.contains("src/test/") {
        return Some(path.replacen("src/test/", "src/main/", 1)).filter(is_old);
    }
    if extension == "rb" {
        let (first, rest) = path.split_once('/')?;
        let is_first = matches!(first, "test" | "spec");
        return is_first.then(|| format!("lib/{rest}")).filter(is_old);
    }
    if HEADER_EXTENSIONS.contains(&extension) && is_usual_test(path) {
        let is_same = |other: &&&str| split(other).1 == name && !is_usual_test(other);
        return old.iter().find(is_same).map(|other| (*other).to_owned());
    }
    None
}

pub(super) fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(line: &str) -> Orders {
        let words = line.split(' ').map(str::to_owned).collect();
        Orders::of(&[Runner { words, is_test: true }])
    }

    fn check(command: &str, old: &[&str], refused: &[&str], free: &[&str]) {
        let (old, orders) = (old.iter().copied().collect(), orders(command));
        for path in refused {
            assert!(replaces(path, &old, &orders).is_some(), "{command}: {path}");
        }
        for path in free {
            assert_eq!(replaces(path, &old, &orders), None, "{command}: {path}");
        }
    }

    #[test]
    fn packages_and_compiled_modules_come_before_sources() {
        check(
            "python -m pytest",
            &[
                "app.py",
                "tests/test_a.py",
                "tests/util.py",
                "tests/help.ts",
                "web/a.ts",
                "plain/a.py",
                "pkg/__init__.py",
                "pkg/b.py",
            ],
            &[
                "app/__init__.py",
                "tests/__init__.py",
                "tests/util/__init__.py",
                "app.so",
                "tests/help.js",
                "plain.py",
            ],
            &[
                "tests/sub/__init__.py",
                "new/__init__.py",
                "tests/test_b.py",
                "web/a.js",
                "tests/help.json",
                "plain/b.py",
                "pkg.py",
            ],
        );
    }

    #[test]
    fn scripts_are_found_in_the_order_of_their_runner() {
        let old = ["lib/app.js", "lib/sub/index.js", "src/a.ts", "README.md"];
        check(
            "node --test",
            &old,
            &[
                "lib/app",
                "lib/sub.js",
                "lib/sub",
                "lib/sub.json",
                "lib/sub/package.json",
                "src/a.js",
            ],
            &[
                "lib/app.json",
                "lib/app.mjs",
                "lib/app.d.ts",
                "lib/other.js",
                "lib/new/package.json",
                "README",
                "lib/sub/more.js",
            ],
        );
        check(
            "npx vitest run",
            &old,
            &["lib/app.mjs", "src/a.js"],
            &["lib/app.ts"],
        );
        check(
            "npx tsx --test",
            &old,
            &["lib/app.ts", "lib/app.mts"],
            &["lib/new.ts"],
        );
        check("cargo test", &old, &[], &["lib/app", "src/a.js", "lib/sub.js"]);
    }

    #[test]
    fn files_among_tests_stand_in_the_place_of_others() {
        check(
            "make test",
            &[
                "src/main/java/x/App.java",
                "lib/app.rb",
                "include/app.h",
                "tests/help.h",
            ],
            &["src/test/java/x/App.java", "spec/app.rb", "tests/app.h"],
            &[
                "src/test/java/x/AppTest.java",
                "spec/app_spec.rb",
                "src/app.h",
                "tests/more.h",
                "tests/unit/help.h",
            ],
        );
    }
}
