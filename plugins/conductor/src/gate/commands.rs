//! Commands and the files that they run. Pure.

use super::settings::is_match;

/// Programs that read their tasks from files, and globs of these files in lower case.
const TASK_FILES: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["makefile", "gnumakefile", "**/*.mk"]),
    (&["just"], &["justfile", ".justfile"]),
    (&["task", "go-task"], &["**/taskfile*.{yml,yaml}"]),
    (&["rake"], &["rakefile", "rakefile.rb", "rakelib/**", "**/*.rake"]),
    (&["tox"], &["tox.ini"]),
    (&["invoke", "inv"], &["tasks.py", "tasks/**"]),
    (&["ant"], &["build.xml"]),
    (&["grunt"], &["gruntfile.*"]),
    (&["gulp"], &["gulpfile.*"]),
];

/// Programs that take a script as their first argument.
const INTERPRETERS: [&str; 10] = [
    "sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php",
];
/// Words before a program that runs all the same, with those that follow them.
const WRAPPERS: &[&[&str]] = &[
    &["env"],
    &["time"],
    &["nice"],
    &["exec"],
    &["command"],
    &["xvfb-run"],
    &["npx"],
    &["bunx"],
    &["uvx"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["pdm", "run"],
    &["hatch", "run"],
    &["pnpm", "exec"],
    &["yarn", "exec"],
    &["bundle", "exec"],
    &["npm", "exec"],
];

/// Simple commands of a command: those of a line for a shell, without the words that only wrap them.
pub(super) fn simple(command: &[String]) -> Vec<Vec<String>> {
    let name = command.first().map_or("", |program| name_of(program));
    let lines: Vec<Vec<String>> = match command {
        [_, option, line, ..]
            if SHELLS.contains(&name) && option.starts_with('-') && option.ends_with('c') =>
        {
            line.split([';', '&', '|', '\n', '(', ')', '`'])
                .map(|part| {
                    let words = part
                        .split_whitespace()
                        .map(|word| word.trim_matches(['"', '\'']).to_owned());
                    words.collect()
                })
                .collect()
        }
        _ => vec![command.to_vec()],
    };
    let bare = lines.into_iter().map(unwrapped);
    bare.filter(|words| !words.is_empty()).collect()
}

/// Shells that take a line after `-c`.
pub(super) const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];

fn unwrapped(mut words: Vec<String>) -> Vec<String> {
    loop {
        let is_wrapper = |wrapper: &&&[&str]| {
            let begins = words.iter().zip(**wrapper).all(|(word, wanted)| word == wanted);
            words.len() > wrapper.len() && begins
        };
        let first = words.first().map_or("", String::as_str);
        let count = match WRAPPERS.iter().find(is_wrapper) {
            Some(wrapper) => wrapper.len(),
            None if matches!(first, "!" | "then" | "do" | "if" | "else" | "while") => 1,
            // An assignment, or an option of a wrapper.
            None if !first.starts_with('/') && first.contains('=') || first.starts_with('-') => 1,
            None => return words,
        };
        words.drain(..count);
    }
}

/// Last part of a program's path.
pub(super) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// Script that a simple command runs: the program itself, or what its interpreter is given.
pub(super) fn script(command: &[String]) -> Option<&str> {
    let (program, arguments) = command.split_first()?;
    let found = match INTERPRETERS.contains(&name_of(program)) {
        true => arguments.iter().find(|word| !word.starts_with('-'))?,
        false if program.contains('/') || program.ends_with(".sh") => program,
        false if program == "." || program == "source" => arguments.first()?,
        false => return None,
    };
    Some(found.trim_start_matches("./"))
}

/// Checks whether a command names a file as the script, the file of tasks or, if it runs tests, the module that runs.
pub(super) fn runs(command: &[String], is_test: bool, path: &str) -> bool {
    simple(command).iter().any(|words| {
        let Some((program, arguments)) = words.split_first() else {
            return false;
        };
        let name = name_of(program);
        let lower = path.to_lowercase();
        let tasks = TASK_FILES.iter().filter(|(programs, _)| programs.contains(&name));
        let is_task = tasks.map(|(_, globs)| globs).any(|globs| is_match(globs, &lower));
        let module = match arguments.iter().position(|word| word == "-m") {
            Some(place) if is_test && name.starts_with("python") => arguments.get(place.saturating_add(1)),
            _ => None,
        };
        let is_module = module.is_some_and(|module| {
            let place = module.replace('.', "/");
            [".py", "/__main__.py", "/__init__.py"]
                .iter()
                .any(|end| path == format!("{place}{end}"))
        });
        let is_argument = arguments.iter().any(|word| {
            let is_script = word.starts_with("./") || word.ends_with(".sh");
            is_script && word.trim_start_matches("./") == path
        });
        script(words) == Some(path)
            || program.trim_start_matches("./") == path
            || is_task
            || is_module
            || is_argument
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn scripts_and_files_of_build_tools_run_tests() {
        for (command, path, expected) in [
            ("./run.sh all", "run.sh", true),
            ("bash -e run.sh", "run.sh", true),
            ("python check.py", "check.py", true),
            ("make test", "Makefile", true),
            ("task test", "Taskfile.yml", true),
            ("bundle exec rake test", "Rakefile", true),
            ("uv run python -m checks.all", "checks/all.py", true),
            ("python -m checks", "checks/__main__.py", true),
            ("env CI=1 just test", "justfile", true),
            ("pytest calc.py", "calc.py", false),
            ("cat suite", "suite", false),
        ] {
            assert_eq!(runs(&words(command), true, path), expected, "{command} {path}");
        }
        assert!(!runs(&words("python -m report"), false, "report/__main__.py"));
        let shell = ["sh", "-c", "cd x; ./ci/run.sh && make test"].map(str::to_owned);
        assert!(runs(&shell, true, "ci/run.sh"));
        assert!(runs(&shell, true, "Makefile"));
    }
}
