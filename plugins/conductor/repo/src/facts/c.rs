//! C and C++: `#include`, inside any `#if`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::symbols::{Symbol, symbols};
use super::{Facts, Import, Lines, What, last_of};

static KEYWORDS: LazyLock<[Finder<'_>; 4]> =
    LazyLock::new(|| ["include", "import", "main", "Main"].map(Finder::new));

/// Reads a C or C++ source.
pub(super) fn read(text: &str) -> Facts {
    let mut facts = Facts::default();
    let mut lines = Lines::new(text);
    let mut depth = 0_usize;
    let mut tokens = symbols(text).peekable();
    let last = last_of(text, &*KEYWORDS);
    while let Some((symbol, written, at)) = tokens.next() {
        if at > last {
            break;
        }
        match symbol {
            Symbol::OpenBrace => depth += 1,
            Symbol::CloseBrace => depth = depth.saturating_sub(1),
            Symbol::Include if starts_line(text, at) => {
                let rest = text.get(at + written.len()..).unwrap_or_default();
                if let Some((path, system)) = included(rest) {
                    let (line, path) = (lines.of(at), path.to_owned());
                    let what = What::C { path, system };
                    facts.imports.push(Import { line, what });
                }
            }
            Symbol::Word if matches!(written, "main" | "WinMain" | "wmain") && depth == 0 => {
                facts.runs |= tokens.peek().is_some_and(|next| next.0 == Symbol::OpenParen);
            }
            _ => {}
        }
    }
    facts
}

fn starts_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// Path of `"path"` or `<path>` on the same line. Macros are not expanded.
fn included(rest: &str) -> Option<(&str, bool)> {
    let rest = rest.lines().next()?.trim_start();
    let (path, system) = match rest.strip_prefix('<') {
        Some(rest) => (rest.split_once('>')?.0, true),
        None => (rest.strip_prefix('"')?.split_once('"')?.0, false),
    };
    (!path.trim().is_empty()).then_some((path.trim(), system))
}
