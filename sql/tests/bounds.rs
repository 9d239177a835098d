//! No text takes long or much stack, whatever it says.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tollgate_sql::read::{Owner, statement};
use tollgate_sql::{MAX_TEXT, Reader};

/// A quarter of what the smallest thread of the host has.
const STACK: usize = 512 << 10;

fn fill(start: &str, part: &str, middle: &str, close: &str, end: &str) -> String {
    let times = (MAX_TEXT - start.len() - middle.len() - end.len()) / (part.len() + close.len());
    [start, &part.repeat(times), middle, &close.repeat(times), end].concat()
}

/// Texts that are as long, as deep or as wide as can be.
fn worst() -> Vec<String> {
    let mut texts = Vec::new();
    for (start, part, middle, close, end) in [
        ("SELECT ", "(", "1", ")", ""),
        ("SELECT ", "((", "1", "),1)", ""),
        ("SELECT ", "1+", "1", "", ""),
        ("SELECT 1", " AND 1", "", "", ""),
        ("SELECT ", "1,", "1", "", ""),
        ("SELECT ", "NOT ", "1", "", ""),
        ("SELECT ", "- ", "1", "", ""),
        ("SELECT 1", " IS NULL", "", "", ""),
        ("SELECT 1", " IN (1,1)", "", "", ""),
        ("SELECT 1", " BETWEEN 1 AND 1", "", "", ""),
        ("SELECT ", "CASE WHEN 1 THEN ", "1", " END", ""),
        ("SELECT ", "CASE ", "1", " WHEN 1 THEN 1 END", ""),
        ("SELECT ", "abs(", "1", ")", ""),
        ("SELECT ", "max(1,1,", "1", ")", ""),
        ("SELECT ", "CAST(", "1", " AS TEXT)", ""),
        ("SELECT ", "(SELECT ", "1", ")", ""),
        ("SELECT ", "EXISTS (SELECT ", "1", ")", ""),
        ("SELECT 1 FROM ", "(", "shop_t", ")", ""),
        ("SELECT 1 FROM ", "(SELECT 1 FROM ", "shop_t", ")", ""),
        ("SELECT 1 FROM ", "(SELECT 1 FROM ", "shop_t", ") a", ""),
        ("SELECT 1 FROM ", "((SELECT 1 FROM ", "shop_t", ") a)", ""),
        ("SELECT 1 FROM shop_t", ", shop_t", "", "", ""),
        ("SELECT 1 FROM shop_t", " JOIN shop_t ON 1", "", "", ""),
        ("SELECT 1", " UNION SELECT 1", "", "", ""),
        ("SELECT 1,1", " UNION SELECT 1,1", "", "", ""),
        (
            "SELECT 1,1",
            " EXCEPT SELECT 1,1 INTERSECT SELECT 1,1",
            "",
            "",
            "",
        ),
        (
            "WITH ",
            "a AS (WITH ",
            "a AS (SELECT 1) SELECT 1",
            ") SELECT 1",
            "",
        ),
        (
            "WITH a AS (SELECT 1)",
            ", a AS (SELECT 1 FROM a)",
            " SELECT 1",
            "",
            "",
        ),
        ("INSERT INTO shop_t VALUES (1)", ",(1)", "", "", ""),
        ("INSERT INTO shop_t VALUES (1", ",1", ")", "", ""),
        ("SELECT 1 IN (1", ",1", ")", "", ""),
        ("UPDATE shop_t SET a=1", ",a=1", "", "", ""),
        ("SELECT '", "''", "'", "", ""),
        ("SELECT x'", "00", "'", "", ""),
        ("SELECT ", "a.", "a", "", ""),
        ("SELECT ", "a a ", "", "", ""),
        ("SELECT text ", "(", "1", ")", ""),
        ("SELECT ", "text(1,", "1", ")", ""),
        ("SELECT ", "double precision (", "1", ")", ""),
        ("SELECT count(*) OVER ", "(ORDER BY count(*) OVER ", "()", ")", ""),
        ("SELECT 1 ORDER BY 1", ", 1", "", "", ""),
        ("", "-- \n", "SELECT 1", "", ""),
        ("", "/**/", "SELECT 1", "", ""),
        ("SELECT ", "(1,", "1", ")", ""),
        ("SELECT ", "(1,2) IN ((", "1", "))", ""),
        ("SELECT 1 WHERE ", "1 LIKE 1 ESCAPE ", "'a'", "", ""),
        ("SELECT 1 FROM shop_t WHERE ", "a = 1 OR ", "a = 1", "", ""),
        ("CREATE TABLE shop_t (a TEXT", ", a TEXT", ")", "", ""),
        ("CREATE TABLE shop_t (a TEXT", " NOT NULL", ")", "", ""),
        ("CREATE TABLE shop_t (a TEXT CHECK ", "(", "1", ")", ")"),
    ] {
        texts.push(fill(start, part, middle, close, end));
        // The same without its end, and as deep as parentheses may be.
        texts.push(fill(start, part, "", "", ""));
        for depth in [5, 10, 20, 29] {
            let long = "1,".repeat(20_000);
            texts.push([start, &part.repeat(depth), middle, &close.repeat(depth), end].concat());
            texts.push([start, &part.repeat(depth), middle].concat());
            texts.push(
                [
                    start,
                    &part.repeat(depth),
                    "(",
                    &long,
                    "1)",
                    &close.repeat(depth),
                    end,
                ]
                .concat(),
            );
            texts.push(
                [
                    start,
                    &part.repeat(depth),
                    "(",
                    &long,
                    "1)",
                    &close.repeat(depth),
                    end,
                    " )",
                ]
                .concat(),
            );
        }
    }
    texts
}

#[test]
fn no_text_takes_long_or_much_stack() {
    let reading = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        let mut longest = (Duration::ZERO, String::new());
        for text in worst() {
            let begun = Instant::now();
            let reader = Reader::new("shop_", BTreeSet::new(), "");
            drop(reader.statement(&text));
            let steps = [tollgate_sql::Step {
                name: "0001",
                sql: &text,
            }];
            drop(tollgate_sql::schema::read("shop_", steps));
            let took = begun.elapsed();
            if took > longest.0 {
                longest = (took, text.chars().take(60).collect());
            }
        }
        longest
    });
    let (took, text) = reading.unwrap().join().expect("the stack is enough");
    // Both readings, on a machine that does other things as well.
    assert!(took < Duration::from_secs(2), "{took:?} for {text}");
}

#[test]
fn what_with_multiplies_is_counted() {
    let none = BTreeSet::new();
    let owner = Owner {
        prefix: "shop_",
        append_only: &none,
    };
    let mut text = "WITH a0 AS (SELECT 1 AS x)".to_owned();
    for number in 1..30 {
        let before = number - 1;
        text.push_str(&format!(
            ", a{number} AS (SELECT 1 AS x FROM a{before} AS l, a{before} AS r)"
        ));
    }
    text.push_str(" SELECT x FROM a29");
    let refusal = statement(&text, owner).unwrap_err().to_string();
    assert!(refusal.contains("at most 200 tables"), "{refusal}");
}
