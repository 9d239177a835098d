//! Go: the package and the imports, which precede all other code.

use super::symbols::{Symbol, inside, symbols};
use super::{Facts, Import, Lines, What};

/// Reads a Go source.
pub(super) fn read(text: &str) -> Facts {
    let mut facts = Facts::default();
    let mut lines = Lines::new(text);
    let mut tokens = symbols(text).peekable();
    let mut is_list = false;
    while let Some((symbol, written, at)) = tokens.next() {
        match (symbol, written) {
            (Symbol::Word, "package") if facts.package.is_none() => {
                facts.package = tokens.next().map(|(_, name, _)| name.to_owned());
            }
            (Symbol::Word, "import") => {
                is_list = tokens.next_if(|next| next.0 == Symbol::OpenParen).is_some();
            }
            (Symbol::Text | Symbol::Backquoted, written) => {
                let path = inside(written).to_owned();
                let line = lines.of(at);
                let what = What::Go { path };
                facts.imports.push(Import { line, what });
            }
            (Symbol::CloseParen, _) => is_list = false,
            // A name before the path, or the next declaration.
            (Symbol::Word, "func" | "type" | "var" | "const") if !is_list => break,
            _ => {}
        }
    }
    facts.runs = facts.package.as_deref() == Some("main");
    facts
}
