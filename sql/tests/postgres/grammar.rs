//! Random statements of the subset, whose kinds fit.

use proptest::prelude::*;

pub(crate) type Text = BoxedStrategy<String>;

/// Expressions of each kind, up to some depth.
#[derive(Clone)]
pub(crate) struct Kinds {
    pub(crate) int: Text,
    pub(crate) real: Text,
    pub(crate) text: Text,
    pub(crate) blob: Text,
    pub(crate) truth: Text,
}

pub(crate) fn one_of(texts: &'static [&'static str]) -> Text {
    prop::sample::select(texts).prop_map(str::to_owned).boxed()
}

/// Columns of one table, `t`, or of two, with `p`.
pub(crate) fn leaves(two: bool) -> Kinds {
    let either =
        |one: &'static [&'static str], both: &'static [&'static str]| one_of(if two { both } else { one });
    Kinds {
        int: either(
            &[
                "t.a",
                "t.b",
                "t.a",
                "0",
                "1",
                "-2",
                "7",
                "9223372036854775807",
                "?1",
                "NULL",
            ],
            &["t.a", "t.b", "p.a", "p.t", "0", "3", "-1", "12", "?1", "NULL"],
        ),
        real: either(
            &["t.r", "0.25", "-1.5", "2.0", "1e3", "?3", "NULL"],
            &["t.r", "p.r", "0.75", "-2.25", "?3"],
        ),
        text: either(
            &[
                "t.s", "t.u", "'a'", "'B'", "''", "'é%'", "'it''s'", "'b\\c'", "?2", "NULL",
            ],
            &["t.s", "t.u", "p.s", "p.k", "'_b'", "'Ab '", "?2"],
        ),
        blob: either(&["t.x", "x'00ff'", "x''"], &["t.x", "x'61'"]),
        truth: either(
            &["TRUE", "FALSE", "(t.a IS NULL)"],
            &["TRUE", "(t.s IS NOT NULL)", "(p.k IS NULL)"],
        ),
    }
}

/// Expressions one level deeper than those.
pub(crate) fn deeper(from: &Kinds) -> Kinds {
    Kinds {
        int: int(from),
        real: real(from),
        text: text(from),
        blob: blob(from),
        truth: truth(from),
    }
}

/// Fills `{}` with one text after the other.
fn fill(form: &str, parts: &[String]) -> String {
    let mut parts = parts.iter();
    let mut filled = String::new();
    for (place, piece) in form.split("{}").enumerate() {
        if place > 0 {
            filled.push_str(parts.next().map_or("", String::as_str));
        }
        filled.push_str(piece);
    }
    filled
}

fn forms(forms: &'static [&'static str], parts: Vec<Text>) -> Text {
    (prop::sample::select(forms), parts)
        .prop_map(|(form, parts)| fill(form, &parts))
        .boxed()
}

fn int(from: &Kinds) -> Text {
    let Kinds {
        int,
        real,
        text,
        blob,
        truth,
    } = from.clone();
    prop_oneof![
        3 => int.clone(),
        4 => forms(
            &["({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} % {})", "coalesce({}, {})", "nullif({}, {})",
              "max({}, {})", "min({}, {})", "ifnull({}, {})"],
            vec![int.clone(), int.clone()],
        ),
        1 => forms(&["abs({})", "sign({})", "-({})", "CAST({} AS INTEGER)"], vec![int.clone()]),
        1 => forms(&["sign({})", "CAST({} AS BIGINT)"], vec![real]),
        2 => forms(&["length({})", "CAST({} AS BIGINT)"], vec![text.clone()]),
        1 => forms(&["instr({}, {})"], vec![text.clone(), text]),
        1 => forms(&["length({})"], vec![blob]),
        1 => forms(&["({})"], vec![truth.clone()]),
        2 => forms(
            &["CASE WHEN {} THEN {} ELSE {} END", "iif({}, {}, {})", "CASE WHEN {} THEN {} WHEN 1 = 1 THEN {} END"],
            vec![truth.clone(), int.clone(), int.clone()],
        ),
        1 => forms(&["(SELECT max(q.a) FROM shop_u AS q WHERE q.a < {})", "(SELECT count(*) FROM shop_t AS q WHERE q.b = {})",
                     "CASE {} WHEN 1 THEN 2 WHEN 0 THEN NULL END"], vec![int]),
    ]
    .boxed()
}

fn real(from: &Kinds) -> Text {
    let Kinds { int, real, truth, .. } = from.clone();
    prop_oneof![
        3 => real.clone(),
        3 => forms(
            &["({} + {})", "({} - {})", "({} * {})", "({} / {})", "coalesce({}, {})", "min({}, {})", "nullif({}, {})"],
            vec![real.clone(), real.clone()],
        ),
        1 => forms(&["({} + {})", "({} * {})", "({} / {})"], vec![int.clone(), real.clone()]),
        1 => forms(&["CAST({} AS DOUBLE)", "round({})"], vec![int]),
        1 => forms(&["round({})", "abs({})", "-({})", "round({}, 0)"], vec![real.clone()]),
        1 => forms(&["CASE WHEN {} THEN {} ELSE {} END"], vec![truth, real.clone(), real]),
    ]
    .boxed()
}

fn text(from: &Kinds) -> Text {
    let Kinds { int, text, truth, .. } = from.clone();
    prop_oneof![
        3 => text.clone(),
        2 => forms(
            &["({} || {})", "coalesce({}, {})", "nullif({}, {})", "max({}, {})", "trim({}, {})", "ltrim({}, {})",
              "replace({}, 'a', {})", "replace('ababa', {}, {})"],
            vec![text.clone(), text.clone()],
        ),
        2 => forms(
            &["lower({})", "upper({})", "trim({})", "rtrim({})", "CAST({} AS TEXT)", "substr({}, 2)", "substr({}, -2, 1)"],
            vec![text.clone()],
        ),
        1 => forms(&["CAST({} AS TEXT)", "(t.u || {})"], vec![int.clone()]),
        2 => forms(&["substr({}, {}, {})"], vec![text.clone(), int.clone(), int.clone()]),
        1 => forms(&["substr({}, {})"], vec![text.clone(), int]),
        1 => forms(&["CASE WHEN {} THEN {} ELSE {} END", "iif({}, {}, {})"], vec![truth, text.clone(), text.clone()]),
        1 => forms(&["(SELECT q.k FROM shop_u AS q WHERE q.k > {} ORDER BY q.k LIMIT 1)",
                     "(SELECT q.s FROM shop_u AS q WHERE q.s >= {} ORDER BY q.s DESC, q.k)",
                     "CASE {} WHEN 'a' THEN 'x' ELSE 'y' END"], vec![text]),
    ]
    .boxed()
}

fn blob(from: &Kinds) -> Text {
    let Kinds { int, text, blob, .. } = from.clone();
    prop_oneof![
        3 => blob.clone(),
        1 => forms(&["substr({}, {}, {})"], vec![blob.clone(), int.clone(), int]),
        1 => forms(&["coalesce({}, {})"], vec![blob.clone(), blob]),
        1 => forms(&["CAST({} AS BLOB)"], vec![text]),
    ]
    .boxed()
}

fn truth(from: &Kinds) -> Text {
    let Kinds {
        int,
        real,
        text,
        blob,
        truth,
    } = from.clone();
    let two: &'static [&'static str] = &[
        "({} = {})",
        "({} <> {})",
        "({} < {})",
        "({} <= {})",
        "({} > {})",
        "({} >= {})",
        "({} IS DISTINCT FROM {})",
        "({} IS NOT DISTINCT FROM {})",
        "({} IN ({}, NULL))",
        "({} NOT IN ({}))",
    ];
    prop_oneof![
        2 => truth.clone(),
        3 => forms(two, vec![int.clone(), int.clone()]),
        2 => forms(two, vec![real.clone(), real.clone()]),
        3 => forms(two, vec![text.clone(), text.clone()]),
        1 => forms(two, vec![blob.clone(), blob.clone()]),
        1 => forms(two, vec![truth.clone(), truth.clone()]),
        1 => forms(&["({} > 1)", "(0 <= {})", "({} IN (1, 2.5))"], vec![real.clone()]),
        2 => forms(&["({} AND {})", "({} OR {})"], vec![truth.clone(), truth.clone()]),
        1 => forms(&["(NOT {})", "({} IS TRUE)", "({} IS NOT FALSE)"], vec![truth]),
        1 => forms(&["({} IS NULL)", "({})", "(NOT {})"], vec![int.clone()]),
        1 => forms(&["({} IS NOT NULL)", "({})"], vec![real]),
        2 => forms(&["({} LIKE {})", "({} NOT LIKE {})", "({} LIKE {} ESCAPE '!')"], vec![text.clone(), text.clone()]),
        1 => forms(&["({} BETWEEN {} AND {})", "({} NOT BETWEEN {} AND {})"], vec![int.clone(), int.clone(), int.clone()]),
        1 => forms(&["({} BETWEEN {} AND {})"], vec![text.clone(), text.clone(), text.clone()]),
        1 => forms(&["(({}, {}) > ({}, {}))", "(({}, {}) = ({}, {}))", "(({}, {}) <= ({}, {}))"],
                   vec![int.clone(), text.clone(), int.clone(), text.clone()]),
        1 => forms(&["({} IN (SELECT q.a FROM shop_u AS q))", "({} NOT IN (SELECT q.t FROM shop_u AS q WHERE q.t IS NOT NULL))",
                     "EXISTS (SELECT 1 FROM shop_u AS q WHERE q.a = {})"], vec![int.clone()]),
        1 => forms(&["(({}, {}) IN (SELECT q.a, q.k FROM shop_u AS q))", "(({}, {}) IN (VALUES (1, 'a'), (2, 'B')))"],
                   vec![int, text.clone()]),
        1 => forms(&["({} IS NULL OR ?2 IS NULL)", "({} IN (SELECT q.k FROM shop_u AS q WHERE q.s LIKE 'a%'))"], vec![text]),
    ]
    .boxed()
}

/// Queries, with an order that leaves nothing open.
pub(crate) fn query() -> Text {
    let two = deeper(&deeper(&leaves(true)));
    let one = deeper(&deeper(&leaves(false)));
    prop_oneof![
        4 => forms(
            &["SELECT {}, {}, {}, {} FROM shop_t AS t WHERE {} ORDER BY 1, 2 DESC, 3, t.id LIMIT 5 OFFSET 1",
              "SELECT DISTINCT {}, {}, {}, {} FROM shop_t AS t WHERE {} ORDER BY 2, 1 DESC, 3, 4",
              "SELECT {} AS i, {} AS s, {} AS r, {} AS c FROM shop_t AS t WHERE {} ORDER BY s DESC, i, r, t.id DESC LIMIT ?1"],
            vec![one.int.clone(), one.text.clone(), one.real.clone(), one.truth.clone(), one.truth.clone()],
        ),
        3 => forms(
            &["SELECT {}, {}, {} FROM shop_t AS t JOIN shop_u AS p ON {} WHERE {} ORDER BY 1, t.id, p.k",
              "SELECT {}, {}, {} FROM shop_t AS t LEFT JOIN shop_u AS p ON {} WHERE {} ORDER BY 2 DESC, t.id, p.k",
              "SELECT {}, {}, {} FROM shop_t AS t RIGHT JOIN shop_u AS p ON {} WHERE {} ORDER BY 3, t.id, p.k",
              "SELECT {}, {}, {} FROM shop_t AS t, shop_u AS p LEFT JOIN shop_p AS z ON z.n = t.a WHERE {} AND {} ORDER BY 1, t.id, p.k"],
            vec![two.int.clone(), two.text.clone(), two.real.clone(), two.truth.clone(), two.truth],
        ),
        3 => forms(
            &["SELECT {}, count(*), count({}), sum({}), min({}), max({}), count(DISTINCT t.s) FILTER (WHERE {}) FROM shop_t AS t GROUP BY 1 ORDER BY 1",
              "SELECT upper(t.s), count({}), avg({}), total({}), max({}), string_agg({}, '-' ORDER BY t.id), t.s FROM shop_t AS t \
               GROUP BY t.s HAVING count(*) > 0 AND max(t.a) IS NOT NULL ORDER BY t.s DESC"],
            vec![one.text.clone(), one.int.clone(), one.int.clone(), one.int.clone(), one.text.clone(), one.truth.clone()],
        ),
        2 => forms(
            &["VALUES (3), (NULL) UNION ALL SELECT {} FROM shop_t AS t WHERE {} UNION SELECT {} FROM shop_t AS t ORDER BY 1 LIMIT 9",
              "SELECT {} FROM shop_t AS t WHERE {} EXCEPT SELECT {} FROM shop_t AS t ORDER BY 1 DESC",
              "SELECT {} AS v FROM shop_t AS t WHERE {} INTERSECT SELECT {} FROM shop_t AS t ORDER BY v"],
            vec![one.int.clone(), one.truth.clone(), one.int.clone()],
        ),
        2 => forms(
            &["SELECT row_number() OVER (PARTITION BY {} ORDER BY t.id DESC), sum({}) OVER (ORDER BY t.id), lag({}, 1) OVER (ORDER BY t.id), \
               rank() OVER (ORDER BY {}) FROM shop_t AS t WHERE {} ORDER BY t.id",
              "SELECT count(*) OVER (PARTITION BY {}), max({}) OVER (ORDER BY t.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), \
               first_value({}) OVER (ORDER BY t.id DESC), dense_rank() OVER (ORDER BY {} DESC) FROM shop_t AS t WHERE {} ORDER BY t.id"],
            vec![one.text.clone(), one.int.clone(), one.int.clone(), one.text.clone(), one.truth.clone()],
        ),
        2 => forms(
            &["WITH w (i, s) AS (SELECT {}, {} FROM shop_t AS t WHERE {}) SELECT w.i, count(*), max(w.s) FROM w GROUP BY w.i ORDER BY w.i",
              "WITH RECURSIVE w (i, s) AS (SELECT 1, {} FROM shop_t AS t WHERE t.b = {} AND {} UNION SELECT w.i + 1, w.s FROM w WHERE w.i < 4) \
               SELECT * FROM w ORDER BY 1, 2",
              "SELECT v.i, v.s FROM (SELECT {} AS i, {} AS s, t.id FROM shop_t AS t WHERE {}) AS v ORDER BY v.s, v.i, v.id"],
            vec![one.int.clone(), one.text.clone(), one.truth.clone()],
        ),
        1 => forms(
            &["SELECT * FROM shop_t AS t JOIN shop_u AS p USING (a) WHERE {} ORDER BY t.id, p.k",
              "SELECT a, t.id, p.k FROM shop_t AS t LEFT JOIN shop_u AS p USING (a, s) WHERE {} ORDER BY 1, 2, 3",
              "SELECT a, t.id, p.k FROM shop_t AS t FULL JOIN shop_u AS p USING (a) WHERE {} ORDER BY 1, 2, 3",
              "SELECT t.id, p.k FROM shop_t AS t FULL JOIN shop_u AS p ON t.a = p.a AND t.s = p.s WHERE {} ORDER BY 1, 2"],
            vec![deeper(&leaves(true)).truth],
        ),
    ]
    .boxed()
}

/// Changes of rows.
pub(crate) fn change() -> Text {
    let one = deeper(&deeper(&leaves(false)));
    let alone = deeper(&Kinds {
        int: one_of(&["1", "7", "13", "60", "NULL", "?1", "(1 = 1)"]),
        real: one_of(&["0.5", "?3", "NULL", "3"]),
        text: one_of(&["'a'", "'b'", "'c'", "?2", "NULL", "''"]),
        blob: one_of(&["x'01'", "NULL"]),
        truth: one_of(&["TRUE", "FALSE"]),
    });
    prop_oneof![
        4 => forms(
            &["INSERT INTO shop_t (a, b, u, r) VALUES ({}, {}, {}, {})",
              "INSERT INTO shop_t (a, b, u, r) VALUES ({}, {}, {}, {}) ON CONFLICT (u) DO NOTHING",
              "INSERT INTO shop_t AS t (a, b, u, r) VALUES ({}, {}, {}, {}) ON CONFLICT (u) DO UPDATE SET a = excluded.a, b = t.b + 1, s = t.u || 'x' RETURNING a, b, s"],
            vec![alone.int.clone(), alone.int.clone(), alone.text.clone(), alone.real.clone()],
        ),
        3 => forms(
            &["INSERT INTO shop_u (t, a, k, s) VALUES ({}, {}, {}, {})",
              "INSERT INTO shop_u (t, a, k, s) VALUES ({}, {}, {}, {}) ON CONFLICT DO NOTHING RETURNING k, a + 1"],
            vec![alone.int.clone(), alone.int.clone(), alone.text.clone(), alone.text.clone()],
        ),
        1 => forms(&["INSERT INTO shop_p (n, s) VALUES ({}, {}) ON CONFLICT (n) DO UPDATE SET s = excluded.s WHERE shop_p.s IS NULL"],
                   vec![alone.int.clone(), alone.text]),
        3 => forms(
            &["UPDATE shop_t AS t SET a = {}, s = {}, r = {} WHERE {}",
              "UPDATE shop_t AS t SET (a, s) = ({}, {}), r = {} WHERE {} RETURNING id, a, s",
              "UPDATE shop_t AS t SET a = {}, s = {}, r = {} FROM shop_u AS p WHERE p.k = t.u AND {}"],
            vec![one.int.clone(), one.text, one.real, one.truth.clone()],
        ),
        1 => forms(&["UPDATE shop_u AS t SET a = {} WHERE a > 3", "UPDATE shop_p AS t SET n = {} WHERE n = 3"], vec![alone.int.clone()]),
        1 => forms(&["DELETE FROM shop_t AS t WHERE {} AND t.id % 3 = 0 RETURNING id", "DELETE FROM shop_t AS t WHERE {} AND t.b = 7"], vec![one.truth]),
        1 => forms(&["DELETE FROM shop_p WHERE n = {}", "DELETE FROM shop_u WHERE a = {}"], vec![alone.int]),
    ]
    .boxed()
}
