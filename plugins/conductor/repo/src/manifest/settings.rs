//! Programs that configure bundlers: aliases with literal values.
//!
//! The program is not run. In `alias: { "@": path.resolve(__dirname, "src") }` the literals of the value are the
//! path.

use serde::{Deserialize, Serialize};

use crate::facts::javascript_tokens::{Token, TokenAt, inside, tokens};

/// Maximum number of aliases of one file.
const MAX_ALIASES: usize = 100;

/// Content of a program such as `vite.config.ts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Aliases, each with its path relative to the file, in the order written.
    pub aliases: Vec<(String, String)>,
}

/// Reads all objects and lists called `alias`.
pub(super) fn read(text: &str) -> Option<Settings> {
    memchr::memmem::find(text.as_bytes(), b"alias")?;
    let places = tokens(text, text.len());
    let mut reading = Reading {
        places: &places,
        aliases: Vec::new(),
    };
    for at in 0..places.len() {
        if matches!(reading.written(at), "alias" | "aliases") && reading.written(at + 1) == ":" {
            match reading.written(at + 2) {
                "{" => reading.object(at + 3),
                "[" => reading.list(at + 3),
                _ => {}
            }
        }
    }
    let aliases = reading.aliases;
    (!aliases.is_empty()).then_some(Settings { aliases })
}

struct Reading<'a> {
    places: &'a [TokenAt<'a>],
    aliases: Vec<(String, String)>,
}

impl<'a> Reading<'a> {
    /// Reads `"@": "./src", b: resolve("lib")` up to the closing brace.
    fn object(&mut self, mut at: usize) {
        while self.aliases.len() < MAX_ALIASES && matches!(self.token(at), Token::Text | Token::Word) {
            if self.written(at + 1) != ":" {
                return;
            }
            let name = self.name(at);
            let (value, end) = self.value(at + 2);
            self.push(name, value);
            at = end + 1;
            if self.written(end) != "," {
                return;
            }
        }
    }

    /// Reads `{ find: "@", replacement: "./src" }, …`.
    fn list(&mut self, mut at: usize) {
        while self.written(at) == "{" {
            let (mut find, mut replacement) = (String::new(), String::new());
            at += 1;
            while matches!(self.token(at), Token::Text | Token::Word) && self.written(at + 1) == ":" {
                let is_find = self.written(at).contains("find");
                let (value, end) = self.value(at + 2);
                *(if is_find { &mut find } else { &mut replacement }) = value;
                at = end + usize::from(self.written(end) == ",");
            }
            self.push(find, replacement);
            at += 1;
            at += usize::from(self.written(at) == ",");
        }
    }

    fn push(&mut self, name: String, value: String) {
        if !name.is_empty() && !value.is_empty() {
            self.aliases.push((name, value));
        }
    }

    /// Literals of an expression as a path, and the position after it.
    fn value(&self, from: usize) -> (String, usize) {
        let (mut depth, mut parts, mut at) = (0_usize, Vec::new(), from);
        while let Some(place) = self.places.get(at) {
            match (place.token, place.written) {
                (Token::Open, _) => depth += 1,
                (Token::Close, _) if depth == 0 => break,
                (Token::Close, _) => depth -= 1,
                (Token::Mark, ",") if depth == 0 => break,
                (Token::Text, written) => parts.push(inside(written)),
                _ => {}
            }
            at += 1;
        }
        (parts.join("/"), at)
    }

    fn name(&self, at: usize) -> String {
        match self.token(at) {
            Token::Text => inside(self.written(at)).to_owned(),
            _ => self.written(at).to_owned(),
        }
    }

    fn token(&self, at: usize) -> Token {
        self.places.get(at).map_or(Token::End, |place| place.token)
    }

    fn written(&self, at: usize) -> &'a str {
        self.places.get(at).map_or("", |place| place.written)
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn aliases_with_literal_values_are_read() {
        let text = "export default { resolve: { alias: {\n'@': path.resolve(__dirname, './src'),\n lib: fileURLToPath(new URL('./lib', import.meta.url)),\n '#': other,\n '~': '/x' } } }";
        let found = read(text).unwrap().aliases;
        let expected = [("@", "./src"), ("lib", "./lib"), ("~", "/x")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let text = "alias: [{ find: '@', replacement: join(here, '..', 'src') }, { find: /^x/, replacement: 'y' }, { find: 'z', replacement: './z' }]";
        let found = read(text).unwrap().aliases;
        assert_eq!(
            found,
            [("@", "../src"), ("z", "./z")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(read("alias: {"), None);
    }
}
