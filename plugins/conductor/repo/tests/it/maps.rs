//! Maps: their formats for people and programs, and queries.

use std::collections::BTreeMap;

use conductor_repo::map::{Export, MarkdownLimits, Notes, Query};
use expect_test::expect;

use crate::harness::Memory;

const PROJECT: &str = r#"
== Cargo.toml
[package]
name = "shop"
== src/lib.rs
pub mod cart;
pub mod money;
== src/cart.rs
use crate::money::Euro;
use crate::gone::deep::X;
== src/money.rs
== src/legacy_cart.rs
// Deprecated: use cart.
== README.md
== Makefile
test: build
	cargo test
"#;

fn notes() -> Notes {
    let said = [
        ("src/cart.rs", "What a customer wants to buy"),
        ("src/money.rs", "Amounts | <b>exact</b>"),
    ];
    Notes {
        descriptions: said.map(|(path, text)| (path.to_owned(), text.to_owned())).into(),
        ..Notes::default()
    }
}

#[test]
fn the_map_reads_as_a_page() {
    let text = Memory::new(PROJECT)
        .map(&notes())
        .markdown(MarkdownLimits::default());
    expect![[r#"
        # Repository map

        Files: 7, size: 152 bytes.

        | language | files | imports found | outside | missing |
        |---|---|---|---|---|
        | Rust | 4 | 3 | 0 | 1 |

        ## Entry points

        - library `shop`: `src/lib.rs`
        - command `test` of `Makefile`

        ## Files

        ### `shop`

        - `Cargo.toml`
        - `Makefile`
        - `src/cart.rs`: What a customer wants to buy (imported by 1, imports 1)
        - `src/legacy_cart.rs`
        - `src/lib.rs` (imports 2)
        - `src/money.rs`: Amounts \| \<b>exact\</b> (imported by 2)
        - top: `README.md`

        ## Imports without a file

        - `src/cart.rs`:2: `crate::gone::deep::X`

        ## Deprecated or stale

        - `src/legacy_cart.rs` (100): nothing imports it; described as deprecated: Deprecated: use cart.; named like a disused file (`legacy`)
    "#]].assert_eq(&text);
}

#[test]
fn the_map_is_the_same_each_time_and_comes_back_from_json() {
    let (one, other) = (
        Memory::new(PROJECT).map(&notes()),
        Memory::new(PROJECT).map(&notes()),
    );
    let json = serde_json::to_string(&one.export()).unwrap();
    assert_eq!(json, serde_json::to_string(&other.export()).unwrap());
    assert_eq!(serde_json::from_str::<Export>(&json).unwrap(), one.export());
}

#[test]
fn what_does_not_fit_is_counted() {
    let text = Memory::new(PROJECT)
        .map(&notes())
        .markdown(MarkdownLimits { files: 1, lines: 1 });
    assert_eq!(text.matches("more\n").count(), 2, "{text}");
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let mut tree = Memory::new(PROJECT);
    tree.put("src/a\n# Heading.rs", b"");
    tree.put("src/`b`.rs", b"");
    let text = tree.map(&notes()).markdown(MarkdownLimits::default());
    assert!(!text.contains("\n# Heading"), "{text}");
    assert!(text.contains("`` src/`b`.rs ``"), "{text}");
}

#[test]
fn questions_combine_and_page() {
    let map = Memory::new(PROJECT).map(&notes());
    let ask = |query: serde_json::Value| {
        let query: Query = serde_json::from_value(query).unwrap();
        match map.query(&query) {
            Ok(page) => {
                let found = page
                    .files
                    .iter()
                    .map(|found| (found.file.path.as_str(), found.distance));
                format!(
                    "{:?} of {} after {:?}",
                    found.collect::<BTreeMap<_, _>>(),
                    page.total,
                    page.after
                )
            }
            Err(error) => format!("{error:?}"),
        }
    };
    let answers = [
        ask(serde_json::json!({"path": "src/*.rs", "limit": 2})),
        ask(serde_json::json!({"path": "src", "after": "src/legacy_cart.rs"})),
        ask(serde_json::json!({"text": "CUSTOMER buy"})),
        ask(serde_json::json!({"importers_of": "src/money.rs", "depth": 2})),
        ask(serde_json::json!({"imports_of": "src/lib.rs", "text": "exact"})),
        ask(serde_json::json!({"imports_of": "lib.rs"})),
    ];
    expect![[r#"
        {"src/cart.rs": None, "src/legacy_cart.rs": None} of 4 after Some("src/legacy_cart.rs")
        {"src/lib.rs": None, "src/money.rs": None} of 4 after None
        {"src/cart.rs": None} of 1 after None
        {"src/cart.rs": Some(1), "src/lib.rs": Some(1)} of 2 after None
        {"src/money.rs": Some(1)} of 1 after None
        UnknownFile { path: "lib.rs", meant: ["src/lib.rs"] }"#]]
    .assert_eq(&answers.join("\n"));
}
