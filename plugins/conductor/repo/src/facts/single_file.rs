//! Components in a single file: the code of Vue, Svelte, Astro and MDX, without their markup.

/// Beginnings of tags whose `src` is code or style of the component.
const TAGS: [&str; 3] = ["<script", "<template", "<style"];

/// Code of a component in a single file, with everything else as blank lines, so that lines keep their numbers.
/// `None` for other extensions.
pub(super) fn scripts(extension: &str, text: &str) -> Option<String> {
    match extension {
        "vue" | "svelte" => Some(Scripts::new(text).tags(0)),
        "astro" => {
            let mut scripts = Scripts::new(text);
            let end = scripts.frontmatter();
            Some(scripts.tags(end))
        }
        "mdx" => Some(statements(text)),
        _ => None,
    }
}

struct Scripts<'a> {
    text: &'a str,
    /// Position up to which the text is copied or blank.
    at: usize,
    code: String,
}

impl<'a> Scripts<'a> {
    fn new(text: &'a str) -> Scripts<'a> {
        Scripts {
            text,
            at: 0,
            code: String::new(),
        }
    }

    /// Copies the code of all scripts from a position, and an import for each `src`.
    fn tags(mut self, from: usize) -> String {
        let mut next = from;
        while let Some(open) = self.find("<", next) {
            next = open + 1;
            let rest = self.text.get(open..).unwrap_or_default();
            let Some(tag) = TAGS.iter().find(|tag| starts_tag(rest, tag)) else {
                continue;
            };
            let Some(end) = self.find(">", open) else {
                break;
            };
            self.source(open, end);
            next = end + 1;
            if *tag == "<script" {
                let close = self.find("</script", next).unwrap_or(self.text.len());
                self.copy(next, close);
                next = close;
            }
        }
        self.code
    }

    /// Copies the code between the first two lines of dashes. Returns its end.
    fn frontmatter(&mut self) -> usize {
        let Some(start) = self.text.find("---") else {
            return 0;
        };
        if !self.text.get(..start).unwrap_or_default().trim().is_empty() {
            return 0;
        }
        let end = self.find("\n---", start + 3).unwrap_or(self.text.len());
        self.copy(start + 3, end);
        end
    }

    /// Adds an import for the attribute `src` of a tag.
    fn source(&mut self, open: usize, end: usize) {
        let tag = self.text.get(open..end).unwrap_or_default();
        let Some((_, value)) = tag.split_once(" src=") else {
            return;
        };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let source = quote.and_then(|quote| value.get(1..)?.split(quote).next());
        if let Some(source) = source.filter(|source| source.starts_with('.') && !source.contains('\n')) {
            self.blank(open);
            self.code.push_str(&format!("import {source:?};"));
        }
    }

    fn copy(&mut self, from: usize, to: usize) {
        self.blank(from);
        self.code.push_str(self.text.get(from..to).unwrap_or_default());
        self.code.push_str(";");
        self.at = to.max(self.at);
    }

    /// Adds a line end for each line up to a position.
    fn blank(&mut self, to: usize) {
        let skipped = self.text.as_bytes().get(self.at..to).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', skipped).count();
        self.code.extend(std::iter::repeat_n('\n', lines));
        self.at = to.max(self.at);
    }

    fn find(&self, wanted: &str, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        rest.find(wanted).map(|at| from + at)
    }
}

fn starts_tag(rest: &str, tag: &str) -> bool {
    let behind = rest.strip_prefix(tag);
    behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
}

/// Lines of an MDX document that begin an import or export, outside of code blocks.
fn statements(text: &str) -> String {
    let mut code = String::new();
    let mut is_block = false;
    for line in text.lines() {
        is_block ^= line.trim_start().starts_with("```");
        if !is_block && (line.starts_with("import ") || line.starts_with("export ")) {
            code.push_str(line);
        }
        code.push('\n');
    }
    code
}

#[cfg(test)]
mod tests {
    use super::scripts;

    #[test]
    fn code_keeps_its_lines_and_markup_goes() {
        let vue = "<template>\n  <p>import './no'</p>\n</template>\n<script setup lang=\"ts\">\nimport A from './a'\n</script>\n<style src=\"./s.css\"></style>\n";
        let code = scripts("vue", vue).unwrap();
        assert_eq!(code.lines().nth(4), Some("import A from './a'"));
        assert!(!code.contains("no"), "{code}");
        assert!(code.contains("import \"./s.css\";"), "{code}");
        let astro = scripts("astro", "---\nimport L from '../l.astro'\n---\n<p>---</p>\n").unwrap();
        assert_eq!(astro.lines().nth(1), Some("import L from '../l.astro';"));
        let mdx = scripts(
            "mdx",
            "# A\nimport B from './b'\n```js\nimport C from './c'\n```\n",
        )
        .unwrap();
        assert_eq!(mdx, "\nimport B from './b'\n\n\n\n");
        assert_eq!(scripts("ts", "import './a'"), None);
    }

    #[test]
    fn torn_components_are_read_to_their_end() {
        for text in [
            "<script",
            "<script>",
            "<script src=",
            "<script src=\"",
            "---",
            "---\n",
            "<",
            "<template src='",
        ] {
            for extension in ["vue", "svelte", "astro", "mdx"] {
                assert!(scripts(extension, text).unwrap().len() <= text.len() + 20);
            }
        }
    }
}
