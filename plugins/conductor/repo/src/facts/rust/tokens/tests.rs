//! Words, the constructs that hide them, and the tokens that a reader gets.

use std::fmt::Write as _;

use expect_test::expect;

use super::*;

#[test]
fn words_are_told_from_what_hides_them() {
    let text = r###"#!/bin/sh
r#"a "use" b"# br"mod" b"\"use\"" c"x" r#type 'a' '\'' b'\u{1f}' 'static x<'a> '"' 1u8.max(2) // use
/* mod /* use */ mod */ größe::b "é\
use" 'é' # { } x!y ' r##"open
"###;
    let mut all = String::new();
    let mut tokens = Tokens::new(text);
    while tokens.peek() != Kind::End {
        let _ = writeln!(all, "{} {:?}", tokens.at(), tokens.next());
    }
    expect![[r#"
        10 Text("a \"use\" b")
        25 Text("mod")
        33 Text("\\\"use\\\"")
        44 Text("x")
        49 Word("type")
        56 Mark('\'')
        60 Mark('\'')
        65 Word("b")
        66 Mark('\'')
        75 Mark('\'')
        83 Word("x")
        84 Mark('<')
        85 Mark('\'')
        87 Mark('>')
        89 Mark('\'')
        93 Mark('0')
        96 Mark('.')
        97 Word("max")
        100 Open('(')
        101 Mark('0')
        102 Close(')')
        135 Word("größe")
        142 Separator
        144 Word("b")
        146 Text("é\\\nuse")
        156 Mark('\'')
        161 Pound
        163 Open('{')
        165 Close('}')
        167 Word("x")
        168 Mark('!')
        169 Word("y")
        171 Mark('\'')
        173 Text("open\n")
    "#]]
    .assert_eq(&all);
    let mut notable = String::new();
    let mut tokens = Tokens::new(text);
    loop {
        match tokens.next_notable(true, &mut 0, 0) {
            Kind::End => break,
            kind => {
                let _ = write!(notable, "{kind:?} ");
            }
        }
    }
    expect![[r#"Word("type") Word("größe") Pound Word("x") "#]].assert_eq(&notable);
}

/// Relevant tokens of a text, found by reading all tokens, with the depth of braces at each.
fn notable(text: &str, everywhere: bool) -> Vec<String> {
    let mut tokens = Tokens::new(text);
    let (mut notable, mut depth) = (Vec::new(), 0);
    loop {
        let kind = tokens.next();
        let matters = match kind {
            Kind::Word(word) => is_wanted(word, everywhere || depth == 0) || tokens.peek() == Kind::Separator,
            Kind::Pound | Kind::End => true,
            Kind::Open('{') | Kind::Close('}') => braces(kind, &mut depth),
            _ => false,
        };
        if matters {
            notable.push(format!("{kind:?} {depth}"));
        }
        if kind == Kind::End {
            return notable;
        }
    }
}

/// Counts a brace. Returns whether it is relevant: a closing brace without an opening one.
fn braces(kind: Kind<'_>, depth: &mut usize) -> bool {
    if kind == Kind::Open('{') {
        *depth += 1;
        return false;
    }
    let outside = *depth == 0;
    *depth = depth.saturating_sub(1);
    outside
}

fn is_wanted(word: &str, of_items: bool) -> bool {
    let names_files = matches!(word, "mod" | "use" | "extern");
    names_files || (of_items && is_keyword(word.as_bytes()) && !word.starts_with("include"))
}

proptest::proptest! {
    #[test]
    fn nothing_notable_is_passed_over(
        parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..60)
    ) {
        let text: String = parts.concat();
        for everywhere in [false, true] {
            let mut tokens = Tokens::new(&text);
            let (mut shown, mut depth) = (Vec::new(), 0);
            loop {
                let kind = tokens.next_notable(everywhere, &mut depth, 0);
                let matters = match kind {
                    Kind::Word(word) => {
                        is_wanted(word, everywhere || depth == 0) || tokens.peek() == Kind::Separator
                    }
                    Kind::Open('{') | Kind::Close('}') => braces(kind, &mut depth),
                    _ => true,
                };
                if matters {
                    shown.push(format!("{kind:?} {depth}"));
                }
                if kind == Kind::End {
                    break;
                }
            }
            proptest::prop_assert_eq!(shown, notable(&text, everywhere), "{:?} {:?}", everywhere, text);
        }
    }
}

const PARTS: &[&str] = &[
    " ",
    "\n",
    "\t",
    "a",
    "b1",
    "use",
    "mod",
    "fn",
    "extern",
    "struct",
    "const",
    "include",
    "é",
    "_",
    "7",
    "r",
    "br",
    "b",
    "c",
    "\"",
    "\\",
    "'",
    "#",
    "::",
    ":",
    "!",
    "!=",
    "/",
    "//",
    "/*",
    "*/",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "<",
    ">",
    ".",
    "longer_than_sixteen_bytes",
    "            ",
    "r#",
];
