//! Java: the package, the imports, the declared types and those used without an import.

use std::collections::BTreeSet;
use std::iter::Peekable;

use super::symbols::{Symbol, symbols};
use super::{Facts, Import, Lines, What};

/// Maximum number of names kept of one file. Each may be a class of the same package.
const MAX_NAMES: usize = 500;

/// Annotations of classes that a container finds by itself.
const CONTAINER_ANNOTATIONS: [&str; 34] = [
    "SpringBootApplication",
    "Component",
    "Service",
    "Repository",
    "Controller",
    "RestController",
    "ControllerAdvice",
    "RestControllerAdvice",
    "Configuration",
    "TestConfiguration",
    "AutoConfiguration",
    "ConfigurationProperties",
    "Entity",
    "MappedSuperclass",
    "Embeddable",
    "Converter",
    "Document",
    "Mapper",
    "Aspect",
    "FeignClient",
    "Path",
    "Provider",
    "WebServlet",
    "WebFilter",
    "WebListener",
    "ApplicationScoped",
    "RequestScoped",
    "Singleton",
    "Named",
    "Stateless",
    "MessageDriven",
    "QuarkusMain",
    "AutoService",
    "Mojo",
];

/// Reads a Java source.
pub(super) fn read(text: &str) -> Facts {
    let mut facts = Facts::default();
    let mut lines = Lines::new(text);
    let mut names = BTreeSet::new();
    let mut depth = 0_usize;
    let mut tokens = symbols(text).peekable();
    while let Some((symbol, written, at)) = tokens.next() {
        match (symbol, written) {
            (Symbol::OpenBrace, _) => depth += 1,
            (Symbol::CloseBrace, _) => depth = depth.saturating_sub(1),
            (Symbol::Word, "package") if depth == 0 && facts.package.is_none() => {
                facts.package = dotted(&mut tokens).map(|(path, _)| path);
            }
            (Symbol::Word, "import") if depth == 0 => {
                tokens.next_if(|next| next.1 == "static");
                if let Some((path, all)) = dotted(&mut tokens) {
                    let line = lines.of(at);
                    let what = What::Java { path, all };
                    facts.imports.push(Import { line, what });
                }
            }
            (Symbol::Word, "class" | "interface" | "enum" | "record") => {
                if let Some((_, name, _)) = tokens.next_if(|next| next.0 == Symbol::Word && depth == 0) {
                    facts.declares.push(name);
                }
            }
            (Symbol::Word, "main") => {
                facts.runs |= tokens.peek().is_some_and(|next| next.0 == Symbol::OpenParen)
            }
            (Symbol::At, _) => {
                let is_known = |next: &(Symbol, &str, usize)| CONTAINER_ANNOTATIONS.contains(&next.1);
                facts.registers |= tokens.peek().is_some_and(is_known);
            }
            // After a dot there is a member, or part of a longer name.
            (Symbol::Dot, _) => drop(tokens.next_if(|next| next.0 == Symbol::Word)),
            (Symbol::Word, name)
                if name.starts_with(char::is_uppercase) && names.len() < MAX_NAMES && names.insert(name) =>
            {
                let (line, name) = (lines.of(at), name.to_owned());
                let what = What::JavaName { name };
                facts.imports.push(Import { line, what });
            }
            _ => {}
        }
    }
    facts
}

/// Reads `a.b.C`. Returns whether `.*` follows.
fn dotted<'a>(
    tokens: &mut Peekable<impl Iterator<Item = (Symbol, &'a str, usize)>>,
) -> Option<(String, bool)> {
    let mut path = tokens.next_if(|next| next.0 == Symbol::Word)?.1.to_owned();
    while tokens.next_if(|next| next.0 == Symbol::Dot).is_some() {
        if tokens.next_if(|next| next.0 == Symbol::Star).is_some() {
            return Some((path, true));
        }
        let Some((_, part, _)) = tokens.next_if(|next| next.0 == Symbol::Word) else {
            break;
        };
        path.push('.');
        path.push_str(part);
    }
    Some((path, false))
}
