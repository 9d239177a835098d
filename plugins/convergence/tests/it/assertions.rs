//! Assertions that failed, told apart by their source.

use serde_json::json;

use crate::place::{Place, reply};
use crate::runs::seen;

/// Runs tests whose output a tool writes over files of the workspace, each after an edit, and tells the flags of each.
struct Assertions {
    place: Place,
    session: tollgate_sdk::native::Session,
    edits: std::cell::Cell<u64>,
}

impl Assertions {
    fn new() -> Assertions {
        let place = Place::repository();
        let session = place.session();
        session.set_envelope(Some("env_1"));
        Assertions {
            place,
            session,
            edits: std::cell::Cell::new(0),
        }
    }

    fn run(&self, output: &str) -> String {
        self.edits.set(self.edits.get() + 1);
        self.session
            .set_work_tree("default", seen(self.edits.get(), None));
        self.place.write("output", output);
        self.place.tests_print("cat output; exit 1\n");
        let ran = reply(&self.session, "test_run", json!({}));
        let flags = ["non_progress", "same_test_other_failure"];
        let set: Vec<&str> = flags.into_iter().filter(|flag| ran[*flag] == true).collect();
        let unsure = ran["message"]
            .as_str()
            .unwrap()
            .contains("unless another assertion");
        format!("{}{}", set.join(" "), if unsure { " unsure" } else { "" })
    }
}

/// Runs a test twice with a source line and a message each, and checks the flags of the second run.
fn check_twice(
    run: impl Fn(&str, &str, &str) -> String,
    name: &str,
    [first, second]: [(&str, &str); 2],
    flags: &str,
) {
    assert_eq!(run(name, first.0, first.1), "", "{name}: {first:?}");
    assert_eq!(run(name, second.0, second.1), flags, "{name}: {second:?}");
}

/// Output of `cargo test` about a panic at a position of `src/lib.rs`.
fn panicked(name: &str, position: &str, message: &str) -> String {
    format!(
        "running 1 test\ntest {name} ... FAILED\n\nfailures:\n\n---- {name} stdout ----\n\nthread '{name}' (7) panicked at \
         src/lib.rs:{position}:\n{message}\n\nfailures:\n    {name}\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 \
         measured; 0 filtered out; finished in 0.00s\n"
    )
}

#[test]
fn the_next_assertion_with_the_same_expectation_is_a_step() {
    let tests = Assertions::new();
    let lib = "fn t() {\n    assert_eq!(f(1), 0); assert_eq!(f(2), 0);\n    assert_eq!(\n        f(3),\n        0,\n    );\n}\n";
    tests.place.write("src/lib.rs", lib);
    let equal = |position: &str| {
        let message = "assertion `left == right` failed\n  left: -1\n right: 0";
        tests.run(&panicked("t", position, message))
    };
    assert_eq!(equal("2:5"), "");
    assert_eq!(equal("2:5"), "non_progress");
    assert_eq!(equal("2:26"), "same_test_other_failure");
    assert_eq!(equal("3:5"), "same_test_other_failure");
    // Lines that were added above move an assertion, and make no other of it.
    tests.place.write("src/lib.rs", format!("\n\n{lib}"));
    assert_eq!(equal("5:5"), "non_progress");
    // Code that gives up may be edited itself. Nobody knows which of two calls came to it.
    let index = "index out of bounds: the len is 1 but the index is 7";
    assert_eq!(tests.run(&panicked("u", "2:9", index)), "");
    assert_eq!(tests.run(&panicked("u", "3:9", index)), "non_progress unsure");

    let spec = |name: &str, position: &str, message: &str| {
        tests.run(&format!(
            "✖ {name} (8.6ms)\nℹ tests 1\nℹ pass 0\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.test.mjs:1:1\n✖ {name} (8.6ms)\n  \
             AssertionError [ERR_ASSERTION]: {message}\n      at TestContext.<anonymous> (file://{}/a.test.mjs:{position})\n      at \
             Test.runInAsyncScope (node:async_hooks:214:14) {{\n    code: 'ERR_ASSERTION'\n  }}\n",
            tests.place.path().display()
        ))
    };
    let module = "test('n', () => {\n  assert.equal(f(1), 0);\n  assert.equal(f(2), 0);\n  assert.equal(2, f(3));\n  \
                  assert.notEqual(f(4), f(4));\n});\n";
    tests.place.write("a.test.mjs", module);
    let equal = "Expected values to be strictly equal:\n\n  -1 !== 0\n";
    assert_eq!(spec("n", "2:10", equal), "");
    assert_eq!(spec("n", "3:10", equal), "same_test_other_failure");
    assert_eq!(spec("n", "3:10", equal), "non_progress");
    let reversed = |made: &str| format!("Expected values to be strictly equal:\n\n  2 !== {made}\n");
    assert_eq!(spec("m", "4:10", &reversed("7")), "");
    assert_eq!(spec("m", "4:10", &reversed("12")), "non_progress");
    let unequal = |made: &str| format!("Expected \"actual\" to be strictly unequal to: {made}\n");
    assert_eq!(spec("o", "5:10", &unequal("7")), "");
    assert_eq!(spec("o", "5:10", &unequal("12")), "non_progress");
}

#[test]
fn the_source_shows_which_value_was_made() {
    let tests = Assertions::new();
    let unittest = |name: &str, source: &str, message: &str| {
        let rule = "-".repeat(70);
        tests.run(&format!(
            "F\n{}\nFAIL: {name} (t.T.{name})\n{rule}\nTraceback (most recent call last):\n  File \"/x/t.py\", line 6, in \
             {name}\n    {source}\n    ~~~~~~^^^^\nAssertionError: {message}\n\n{rule}\nRan 1 test in 0.001s\n\nFAILED \
             (failures=1)\n",
            "=".repeat(70)
        ))
    };
    for (name, source, one, other) in [
        ("a", "self.assertEqual(2, f(1))", "2 != 7", "2 != 12"),
        (
            "b",
            "self.assertGreater(2, f(1))",
            "2 not greater than 7",
            "2 not greater than 12",
        ),
        (
            "c",
            "self.assertIn(f(1), [1, 2])",
            "7 not found in [1, 2]",
            "12 not found in [1, 2]",
        ),
        ("d", "self.assertNotEqual(f(1), f(1))", "7 == 7", "12 == 12"),
        ("e", "self.assertEqual(f(1), 2)", "7 != 2", "12 != 2"),
    ] {
        check_twice(unittest, name, [(source, one), (source, other)], "non_progress");
    }
    // The last is one assertion in a loop.
    for (name, one, other) in [
        (
            "f",
            ("self.assertEqual(f(1), 0)", "-1 != 0"),
            ("self.assertEqual(f(2), 0)", "-1 != 0"),
        ),
        (
            "g",
            ("self.assertTrue(f(1))", "False is not true"),
            ("self.assertTrue(f(2))", "False is not true"),
        ),
        (
            "h",
            ("self.assertEqual(f(i), i)", "-1 != 0"),
            ("self.assertEqual(f(i), i)", "-1 != 1"),
        ),
    ] {
        check_twice(unittest, name, [one, other], "same_test_other_failure");
    }
    let pytest = |name: &str, source: &str, message: &str| {
        tests.run(&format!(
            "=== FAILURES ===\n____ test_{name} ____\n\n    def test_{name}():\n        r = f(1)\n>       {source}\nE       {message}\n\n\
             test_m.py:4: AssertionError\n=== short test summary info ===\nFAILED test_m.py::test_{name} - {message}\n=== 1 failed \
             in 0.01s ===\n"
        ))
    };
    for (name, source, one, other) in [
        ("a", "assert 2 == r", "assert 2 == 7", "assert 2 == 12"),
        ("b", "assert 2 > r", "assert 2 > 7", "assert 2 > 12"),
        ("c", "assert r == 2", "assert 7 == 2", "assert 12 == 2"),
    ] {
        check_twice(pytest, name, [(source, one), (source, other)], "non_progress");
    }
    let other_source = [
        ("assert a == 0", "assert -1 == 0"),
        ("assert b == 0", "assert -1 == 0"),
    ];
    check_twice(pytest, "d", other_source, "same_test_other_failure");
    tests
        .place
        .write("src/lib.rs", "fn t() {\n    assert_eq!(2, f(1));\n}\n");
    let reversed = |made: &str| {
        let message = format!("assertion `left == right` failed\n  left: 2\n right: {made}");
        tests.run(&panicked("t", "2:5", &message))
    };
    assert_eq!(reversed("7"), "");
    assert_eq!(reversed("12"), "non_progress");
}
