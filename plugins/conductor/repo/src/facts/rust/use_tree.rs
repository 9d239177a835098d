//! Leaves of a `use`: `a::{b, c::*}` names `a::b` and everything in `a::c`.

use super::tokens::{Kind, Tokens};

/// Maximum depth of nested braces; code written by people has less.
const MAX_DEPTH: usize = 32;

/// Maximum number of leaves of one `use`.
const MAX_LEAVES: usize = 1_000;

/// A name that a `use` imports.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) path: String,
    /// Name that it gets; `None` for `*` and `_`.
    pub(super) name: Option<String>,
}

/// Reads up to the `;`, or up to where the tree ends early.
pub(super) fn read(tokens: &mut Tokens<'_>) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    tree(tokens, &mut Vec::new(), 0, &mut leaves);
    leaves
}

fn tree<'a>(tokens: &mut Tokens<'a>, prefix: &mut Vec<&'a str>, depth: usize, leaves: &mut Vec<Leaf>) {
    let outer = prefix.len();
    tokens.take(Kind::Separator);
    loop {
        tokens.take(Kind::Mark('$'));
        match tokens.peek() {
            Kind::Word(word) => {
                tokens.next();
                prefix.push(word);
                if !tokens.take(Kind::Separator) {
                    leaf(tokens, prefix, leaves);
                    break;
                }
            }
            Kind::Mark('*') => {
                tokens.next();
                push(prefix, None, leaves);
                break;
            }
            Kind::Open('{') if depth < MAX_DEPTH => {
                tokens.next();
                group(tokens, prefix, depth, leaves);
                break;
            }
            _ => break,
        }
    }
    prefix.truncate(outer);
}

fn group<'a>(tokens: &mut Tokens<'a>, prefix: &mut Vec<&'a str>, depth: usize, leaves: &mut Vec<Leaf>) {
    loop {
        match tokens.peek() {
            Kind::Close('}') => {
                tokens.next();
                return;
            }
            Kind::Mark(',') => drop(tokens.next()),
            Kind::Word(_) | Kind::Separator | Kind::Mark('*' | '$') | Kind::Open('{')
                if leaves.len() < MAX_LEAVES =>
            {
                let before = tokens.at();
                tree(tokens, prefix, depth + 1, leaves);
                if tokens.at() == before {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// End of a path: `self` stands for the path before it.
fn leaf(tokens: &mut Tokens<'_>, prefix: &[&str], leaves: &mut Vec<Leaf>) {
    let path = match prefix {
        [path @ .., "self"] if !path.is_empty() => path,
        path => path,
    };
    let mut name = path.last().copied();
    if tokens.take_word("as") {
        name = match tokens.next() {
            Kind::Word("_") => None,
            Kind::Word(alias) => Some(alias),
            _ => name,
        };
    }
    push(path, name, leaves);
}

fn push(path: &[&str], name: Option<&str>, leaves: &mut Vec<Leaf>) {
    if !path.is_empty() {
        leaves.push(Leaf {
            path: path.join("::"),
            name: name.map(str::to_owned),
        });
    }
}
