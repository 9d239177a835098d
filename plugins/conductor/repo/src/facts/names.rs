//! Names of modules and classes in texts: what frameworks and launchers load by name.
//!
//! Only resolving tells whether a name means a file, so that any dotted name is kept.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::language::{self, Language};
use crate::path;

/// Maximum number of names kept of one file.
const MAX_NAMES: usize = 300;

/// Maximum length of a name.
const MAX_LENGTH: usize = 200;

/// Maximum number of words read after the name of a launcher.
const LOOKAHEAD_WORDS: usize = 12;

/// Programs that take a module by its name, without a dot in it.
static LAUNCHERS: LazyLock<[Finder<'_>; 8]> = LazyLock::new(|| {
    [
        "python",
        "uvicorn",
        "gunicorn",
        "hypercorn",
        "daphne",
        "celery",
        "flask",
        "FLASK_APP",
    ]
    .map(Finder::new)
});

/// Position of the names of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameSyntax {
    /// In strings: code of languages that load by name.
    Quoted,
    /// Anywhere: settings, scripts, manifests.
    Bare,
}

/// Names in a text, sorted.
pub(super) fn read(path: &str, text: &str) -> Vec<String> {
    let Some(syntax) = syntax(path) else {
        return Vec::new();
    };
    let mut found = BTreeSet::new();
    dotted(text, syntax, &mut found);
    if syntax == NameSyntax::Bare {
        launched(text, &mut found);
    }
    found.into_iter().map(str::to_owned).collect()
}

fn syntax(path: &str) -> Option<NameSyntax> {
    let name = path::name(path);
    if language::is_generated(name) {
        return None;
    }
    match (Language::of(path), path::extension(name)) {
        _ if name == "setup.py" => Some(NameSyntax::Bare),
        (Some(Language::Python | Language::Java), _) => Some(NameSyntax::Quoted),
        (Some(_), _) => None,
        (None, "md" | "rst" | "txt" | "adoc" | "org" | "html" | "css" | "scss" | "svg" | "csv" | "sql") => {
            None
        }
        (None, _) => Some(NameSyntax::Bare),
    }
}

/// Adds names with dots. Each byte is visited at most twice.
fn dotted<'a>(text: &'a str, syntax: NameSyntax, found: &mut BTreeSet<&'a str>) {
    let bytes = text.as_bytes();
    let mut done = 0;
    for dot in memchr::memchr_iter(b'.', bytes) {
        if dot < done {
            continue;
        }
        let before = bytes.get(done..dot).unwrap_or_default();
        let start = dot - before.iter().rev().take_while(|byte| is_part(**byte)).count();
        let behind = bytes.get(dot..).unwrap_or_default();
        let end = dot + behind.iter().take_while(|byte| is_part(**byte)).count();
        done = end;
        let name = text.get(start..end).unwrap_or_default().trim_matches('.');
        if is_name(name) && (syntax == NameSyntax::Bare || is_quoted(bytes, start, end)) {
            found.insert(name);
            if found.len() == MAX_NAMES {
                return;
            }
        }
    }
}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || !byte.is_ascii()
}

fn is_name(name: &str) -> bool {
    let starts = |part: &str| part.starts_with(|c: char| c.is_alphabetic() || c == '_');
    name.contains('.') && name.len() <= MAX_LENGTH && name.split('.').all(starts)
}

/// Checks for `"a.b"`, `"a.b:c"` and `"x = a.b:c"`.
fn is_quoted(text: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    let rest = text.get(end..).unwrap_or_default();
    let behind = match rest.strip_prefix(b":") {
        Some(rest) => rest.iter().find(|byte| !is_part(**byte)),
        None => rest.first(),
    };
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\''));
    is_quote(behind) && (is_quote(before) || matches!(before, Some(b'=' | b' ')))
}

/// Adds the words behind the name of a launcher on its line, as in `uvicorn main:app`.
fn launched<'a>(text: &'a str, found: &mut BTreeSet<&'a str>) {
    for launcher in LAUNCHERS.iter() {
        for at in launcher.find_iter(text.as_bytes()).take(MAX_NAMES) {
            let rest = text.get(at + launcher.needle().len()..).unwrap_or_default();
            let line = rest.lines().next().unwrap_or_default();
            let is_break = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | ':' | '/');
            for word in line
                .split(is_break)
                .filter(|word| !word.is_empty())
                .take(LOOKAHEAD_WORDS)
            {
                let name = word.split(':').next().unwrap_or_default();
                let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if is_plain
                    && !name.starts_with(|c: char| c.is_ascii_digit())
                    && !name.is_empty()
                    && name.len() <= MAX_LENGTH
                    && found.len() < MAX_NAMES
                {
                    found.insert(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn names_in_strings_and_settings_are_found() {
        let python =
            "import a.b\nX = 'shop.apps.ShopConfig', \"a.b:c\", f'{self.x}', x.y\nS = ['run=pkg.cli:main']\n";
        assert_eq!(read("s.py", python), ["a.b", "pkg.cli", "shop.apps.ShopConfig"]);
        let procfile = "web: gunicorn shop.wsgi --log-file -\nworker: celery -A proj worker\n";
        assert_eq!(read("Procfile", procfile), ["proj", "shop.wsgi", "worker"]);
        assert!(read("Dockerfile", "CMD [\"uvicorn\", \"main:app\"]").contains(&"main".to_owned()));
        assert_eq!(read("a.md", "shop.wsgi"), Vec::<String>::new());
        assert_eq!(read("a.rs", "\"a.b\""), Vec::<String>::new());
    }

    #[test]
    fn long_runs_take_linear_time() {
        let text = "a.".repeat(400_000);
        assert_eq!(read("a.yaml", &text), Vec::<String>::new());
        assert_eq!(read("a.py", &text), Vec::<String>::new());
    }
}
