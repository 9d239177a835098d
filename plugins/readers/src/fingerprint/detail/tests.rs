//! Messages of real assertions: another wrong value is the same, another expectation is not.

use super::*;
use crate::Normaliser;
use crate::readers::{self, Run};

#[test]
fn every_rule_is_a_pattern() {
    assert_eq!(COMPILED_RULES.len(), RULES.len());
}

fn check(kind: Option<&str>, cases: &[(&str, &str, &str)]) {
    let masked = |message| without_actual_values(kind, message, Made::Unknown);
    for (one, same, other) in cases {
        assert_eq!(masked(one), masked(same), "{one} | {same}");
        assert_ne!(masked(one), masked(other), "{one} | {other}");
    }
}

#[test]
fn another_wrong_value_is_the_same_and_another_expectation_is_not() {
    check(
        None,
        &[
            (
                "assertion `left == right` failed\nleft: 6\nright: 5",
                "assertion `left == right` failed\nleft: -1\nright: 5",
                "assertion `left == right` failed\nleft: 6\nright: 8",
            ),
            (
                "Expected: 5\nReceived: 6",
                "Expected: 5\nReceived: 7",
                "Expected: 9\nReceived: 6",
            ),
            (
                "Add(2, 3) = 6; want 5",
                "Add(2, 3) = 7; want 5",
                "Add(1, 3) = 6; want 4",
            ),
            ("got 6, want 5", "got 7, want 5", "got 6, want 8"),
            (
                "got [1 2], want \"x, y\"",
                "got \"a, b\", want \"x, y\"",
                "got [1 2], want \"x\"",
            ),
            ("division by zero", "division by zero", "no such key"),
            (
                "assertion failed: f(1) == 0",
                "assertion failed: f(1) == 0",
                "assertion failed: f(2) == 0",
            ),
            (
                "assertion failed: f(1) == 0",
                "assertion failed: f(1) == 0",
                "assertion failed: f(2) < 9 && f(3) == 0",
            ),
            (
                "assertion failed: got == 3",
                "assertion failed: got == 3",
                "assertion failed: got == 4",
            ),
            (
                "calc: calc.c:5: main: Assertion `f(1) == 0' failed.",
                "calc: calc.c:5: main: Assertion `f(1) == 0' failed.",
                "calc: calc.c:5: main: Assertion `f(2) == 0' failed.",
            ),
            (
                "runtime error: index out of range [3] with length 2",
                "runtime error: index out of range [5] with length 4",
                "runtime error: slice bounds out of range [5:4]",
            ),
            (
                "runtime error: slice bounds out of range [:5] with capacity 3",
                "runtime error: slice bounds out of range [7:4]",
                "runtime error: integer divide by zero",
            ),
            (
                "index out of bounds: the len is 3 but the index is 7",
                "index out of bounds: the len is 0 but the index is 0",
                "attempt to subtract with overflow",
            ),
            (
                "Error Trace:\t/x/a_test.go\nError:      \tNot equal: \nexpected: 9\nactual  : 1\nDiff:\n--- Expected\n\
                 +++ Actual\n@@ -1 +1 @@\n-9\n+1\nTest: TestA",
                "Error Trace:\t/x/a_test.go\nError:      \tNot equal: \nexpected: 9\nactual  : \"two\"\nTest: TestA",
                "Error Trace:\t/x/a_test.go\nError:      \tNot equal: \nexpected: 8\nactual  : 1\nTest: TestA",
            ),
            (
                "Parse() mismatch (-want +got):\n  Point{\n- \tX: 1,\n+ \tX: 2,\n  \tY: 3,\n  }",
                "Parse() mismatch (-want +got):\n  Point{\n- \tX: 1,\n+ \tX: 5,\n- \tY: 3,\n+ \tY: 4,\n  }",
                "Parse() mismatch (-want +got):\n  Point{\n- \tX: 9,\n+ \tX: 2,\n  \tY: 3,\n  }",
            ),
        ],
    );
}

#[test]
fn values_that_pytest_shows_are_left_out() {
    check(
        Some("AssertionError"),
        &[
            (
                "assert 6 == 5\n+  where 6 = add(2, 3)",
                "assert 1.5 == 5\n+  where 1.5 = add(2, 3)",
                "assert 6 == 5\n+  where 6 = add(0, 5)",
            ),
            (
                "assert {'a': 1, 'b': [1, 2]} == {'a': 2, 'b': [1]}\n\nDiffering items:\n{'b': [1, 2]} != {'b': [1]}\n\
                 {'a': 1} != {'a': 2}\nUse -v to get more diff",
                "assert {'a': 2, 'b': ' == '} == {'a': 2, 'b': [1]}\n\nOmitting 1 identical items, use -vv to show\n\
                 Differing items:\n{'b': ' == '} != {'b': [1]}\nUse -v to get more diff",
                "assert {'a': 1, 'b': [1, 2]} == {'a': 3, 'b': [1]}\n\nDiffering items:\n{'a': 1} != {'a': 3}",
            ),
            (
                "assert [1, 2, 3] == [5]\n\nAt index 0 diff: 1 != 5\nLeft contains 2 more items, first extra item: 2",
                "assert [5, 2] == [5]\n\nLeft contains one more item: 2\nUse -v to get more diff",
                "assert [1, 2, 3] == [6]\n\nAt index 0 diff: 1 != 6",
            ),
            (
                "assert 'q' in 'abc'",
                "assert 'q' in 'plum in jam'",
                "assert 'r' in 'abc'",
            ),
            (
                "assert 404 in (200, 201)",
                "assert 500 in (200, 201)",
                "assert 404 in (200, 202)",
            ),
            (
                "assert 3 in [1, 2]\n+  where 3 = first()",
                "assert 4 in [1, 2]\n+  where 4 = first()",
                "assert 3 in [1, 9]\n+  where 3 = first()",
            ),
            (
                "assert 5 == 2\n+  where 2 = f()",
                "assert 5 == 3\n+  where 3 = f()",
                "assert 6 == 2\n+  where 2 = f()",
            ),
            (
                "assert 0.1234 == 0.5 ± 5.0e-07\n\ncomparison failed\nObtained: 0.1234\nExpected: 0.5 ± 5.0e-07",
                "assert 0.99 == 0.5 ± 5.0e-07\n\ncomparison failed\nObtained: 0.99\nExpected: 0.5 ± 5.0e-07",
                "assert 0.1234 == 0.6 ± 6.0e-07\n\ncomparison failed\nObtained: 0.1234\nExpected: 0.6 ± 6.0e-07",
            ),
            (
                "assert 'a\\nb\\nc' == 'a\\nq'\n\na\n- q\n+ b\n+ c",
                "assert 'b' == 'a\\nq'\n\n- a\n- q\n+ b",
                "assert 'a\\nb\\nc' == 'a\\nr'\n\na\n- r\n+ b\n+ c",
            ),
            (
                "got 6\nassert 6 == 5",
                "got 'six, or so'\nassert 'six, or so' == 5",
                "got 6\nassert 6 == 4",
            ),
            (
                "assert 2 == 3\n+  where 2 = len([1, 2])",
                "assert 1 == 3\n+  where 1 = len(['a'])",
                "assert 2 == 4\n+  where 2 = len([1, 2])",
            ),
            (
                "assert False\n+  where False = <built-in method startswith of str object at <address>>('q')\n\
                 +    where <built-in method startswith of str object at <address>> = 'apple'.startswith",
                "assert False\n+  where False = <built-in method startswith of str object at <address>>('q')\n\
                 +    where <built-in method startswith of str object at <address>> = 'plum.jam'.startswith",
                "assert False\n+  where False = <built-in method startswith of str object at <address>>('r')\n\
                 +    where <built-in method startswith of str object at <address>> = 'apple'.startswith",
            ),
            (
                "assert (3 > 1 and 3 == 7)",
                "assert (4 > 1 and 4 == 7)",
                "assert (3 > 1 and 3 == 8)",
            ),
            (
                "Regex pattern did not match.\n  Expected regex: 'want'\n  Actual message: 'apple'",
                "Regex pattern did not match.\n  Expected regex: 'want'\n  Actual message: 'plum'",
                "Regex pattern did not match.\n  Expected regex: 'wish'\n  Actual message: 'apple'",
            ),
        ],
    );
}

#[test]
fn values_that_unittest_shows_are_left_out() {
    check(
        Some("AssertionError"),
        &[
            ("2 != 3", "-1 != 3", "2 != 4"),
            (
                "1 != 2 : total, got 1",
                "3 != 2 : total, got 3",
                "1 != 2 : sum, got 1",
            ),
            (
                "{'a': 0, 'b': [1, 1]} != {'a': 99, 'b': [1]}\n- {'a': 0, 'b': [1, 1]}\n?       ^\n",
                "{'a': 1} != {'a': 99, 'b': [1]}\n- {'a': 1}\n+ {'a': 99, 'b': [1]}",
                "{'a': 0, 'b': [1, 1]} != {'a': 98, 'b': [1]}\n- {'a': 0, 'b': [1, 1]}\n?       ^\n",
            ),
            (
                "Lists differ: [1, 1] != [5]\n\nFirst differing element 0:\n1\n5",
                "Lists differ: [5, 2] != [5]\n\nFirst list contains 1 additional elements.",
                "Lists differ: [1, 1] != [6]\n\nFirst differing element 0:\n1\n6",
            ),
            (
                "'a\\nz\\n' != 'a\\nq\\n'\n  a\n- z\n+ q\n",
                "'z\\nz\\n' != 'a\\nq\\n'\n+ a\n+ q\n- z\n- z\n",
                "'a\\nz\\n' != 'a\\nr\\n'\n  a\n- z\n+ r\n",
            ),
            (
                "'q' not found in 'abc'",
                "'q' not found in \"it's not found in here\"",
                "'r' not found in 'abc'",
            ),
            (
                "3 not found in (1, 2)",
                "4 not found in (1, 2)",
                "3 not found in (1, 9)",
            ),
            (
                "3 not found in [1, 2]",
                "3 not found in []",
                "4 not found in [1, 2]",
            ),
            (
                "0.1 != 0.9 within 7 places (0.8 difference)",
                "0.2 != 0.9 within 7 places (0.7 difference)",
                "0.1 != 0.8 within 7 places (0.7 difference)",
            ),
            (
                "Regex didn't match: 'want' not found in 'apple'",
                "Regex didn't match: 'want' not found in 'plum'",
                "Regex didn't match: 'wish' not found in 'apple'",
            ),
            ("9 not less than 5", "8 not less than 5", "9 not less than 6"),
            ("5 is not None", "'x' is not None", "5 is not true"),
            (
                "Items in the first set but not the second:\n1\nItems in the second set but not the first:\n3",
                "Items in the second set but not the first:\n3",
                "ValueError not raised",
            ),
            (
                "Element counts were not equal:\nFirst has 1, Second has 0:  1",
                "Element counts were not equal:\nFirst has 0, Second has 1:  3\nFirst has 2, Second has 1: 4",
                "False is not true",
            ),
            (
                "division is not supported",
                "division is not supported",
                "multiplication is not supported",
            ),
        ],
    );
}

#[test]
fn values_that_javascript_shows_are_left_out() {
    let deep =
        |lines: &str| format!("Expected values to be strictly deep-equal:\n+ actual - expected\n\n{lines}");
    let (one, same, other) = (
        deep("  {\n+   a: 1,\n-   a: 99,\n    b: [\n+     1,\n      1\n    ]\n  }"),
        deep("+ {\n+   a: 2\n+ }\n- {\n-   a: 99,\n-   b: [\n-     1\n-   ]\n- }"),
        deep("  {\n+   a: 1,\n-   a: 98,\n    b: [\n+     1,\n      1\n    ]\n  }"),
    );
    let jest = |lines: &str| format!("expect(received).toEqual(expected) // deep equality\n\n{lines}");
    let (jest_one, jest_same, jest_other) = (
        jest(
            "- Expected  - 1\n+ Received  + 1\n\n  Object {\n-   \"a\": 99,\n+   \"a\": 1,\n    \"b\": 2,\n  }",
        ),
        jest("- Expected  - 2\n+ Received  + 0\n\n  Object {\n-   \"a\": 99,\n-   \"b\": 2,\n  }"),
        jest(
            "- Expected  - 1\n+ Received  + 1\n\n  Object {\n-   \"a\": 98,\n+   \"a\": 1,\n    \"b\": 2,\n  }",
        ),
    );
    let regex = |pattern: &str, input: &str| {
        format!("The input did not match the regular expression {pattern}. Input:\n\n{input}\n")
    };
    let (regex_one, regex_same, regex_other) = (
        regex("/want/", "'apple'"),
        regex("/want/", "'plum\\n' +\n  'jam'"),
        regex("/wish/", "'apple'"),
    );
    check(
        Some("AssertionError"),
        &[
            (&one, &same, &other),
            (&regex_one, &regex_same, &regex_other),
            (
                "The expression evaluated to a falsy value:\n\n  assert(\n    f(1) === 0\n  )",
                "The expression evaluated to a falsy value:\n\n  assert(\n    f(1) === 0\n  )",
                "The expression evaluated to a falsy value:\n\n  assert(\n    f(2) === 0\n  )",
            ),
            (
                "Expected values to be strictly equal:\n6 !== 5",
                "Expected values to be strictly equal:\n'six !== 6' !== 5",
                "Expected values to be strictly equal:\n6 !== 7",
            ),
            (
                "Expected values to be strictly equal:\n+ actual - expected\n\n+ 'v0 apple'\n- 'want'",
                "Expected values to be strictly equal:\n+ actual - expected\n\n+ 'line\\n' +\n+   'x'\n- 'want'",
                "Expected values to be strictly equal:\n+ actual - expected\n\n+ 'v0 apple'\n- 'wish'",
            ),
            (
                "Expected values to be loosely deep-equal:\n\n[\n  1\n]\n\nshould loosely deep-equal\n\n[\n  2\n]",
                "Expected values to be loosely deep-equal:\n\n{}\n\nshould loosely deep-equal\n\n[\n  2\n]",
                "Expected values to be loosely deep-equal:\n\n[\n  1\n]\n\nshould loosely deep-equal\n\n[\n  3\n]",
            ),
            (
                "expected 6 to be 5 // Object.is equality\n- Expected\n+ Received\n- 5\n+ 6",
                "expected 7 to be 5 // Object.is equality\n- Expected\n+ Received\n- 5\n+ 7",
                "expected 6 to be 4 // Object.is equality\n- Expected\n+ Received\n- 4\n+ 6",
            ),
            (
                "expected 'a to b' to include 'q'",
                "expected 'c' to include 'q'",
                "expected 'a to b' to include 'r'",
            ),
        ],
    );
    check(
        Some("JestAssertionError"),
        &[
            (&jest_one, &jest_same, &jest_other),
            (
                "expect(received).toBe(expected) // Object.is equality\n\nExpected: 5\nReceived: 6",
                "expect(received).toBe(expected) // Object.is equality\n\nExpected: 5\nReceived: \"6\nand 7\"",
                "expect(received).toBe(expected) // Object.is equality\n\nExpected: 4\nReceived: 6",
            ),
            (
                "expect(received).toHaveLength(expected)\n\nExpected length: 3\nReceived length: 2\nReceived array: [1, 2]",
                "expect(received).toHaveLength(expected)\n\nExpected length: 3\nReceived length: 1\nReceived array: [1]",
                "expect(received).toHaveLength(expected)\n\nExpected length: 4\nReceived length: 2\nReceived array: [1, 2]",
            ),
            (
                "expect(jest.fn()).toHaveBeenCalledWith(...expected)\n\nExpected: 1\nReceived: 2\n\nNumber of calls: 1",
                "expect(jest.fn()).toHaveBeenCalledWith(...expected)\n\nExpected: 1\nReceived: 3\n\nNumber of calls: 4",
                "expect(jest.fn()).toHaveBeenCalledWith(...expected)\n\nExpected: 0\nReceived: 2\n\nNumber of calls: 1",
            ),
        ],
    );
}

#[test]
fn the_whole_output_of_a_tool_shows_the_same() {
    let detail = |command: &str, output: &str| {
        let run = Run {
            output: output.as_bytes(),
            exit_code: Some(1),
            command,
            reader: None,
        };
        let report = readers::read(&run, &Normaliser::default());
        assert_eq!(report.failing_tests.len(), 1, "{output}");
        crate::fingerprint::detail(&report).unwrap()
    };
    let same = |command: &str, output: &dyn Fn(&str, &str) -> String| {
        let of = |made: &str, expected: &str| detail(command, &output(made, expected));
        // A long value pushes what was expected out of the part of a message that is shown.
        let long = format!("'{}'", "x".repeat(900));
        assert_eq!(of("'a'", "'want'"), of("'b c'", "'want'"), "{command}");
        assert_eq!(of("'a'", "'want'"), of(&long, "'want'"), "{command}");
        assert_ne!(of("'a'", "'want'"), of("'a'", "'wish'"), "{command}");
    };
    same("pytest", &|made, expected| {
        format!(
            "=== FAILURES ===\n____ test_a ____\n\n    def test_a():\n>       assert x == {expected}\nE       AssertionError: \
             assert {made} == {expected}\nE         \nE         - {expected}\nE         + {made}\n\ntest_a.py:4: \
             AssertionError\n=== short test summary info ===\nFAILED test_a.py::test_a - AssertionError: assert {made} \
             ==...\n=== 1 failed in 0.01s ===\n"
        )
    });
    same("python3 -m unittest", &|made, expected| {
        format!(
            "F\n{}\nFAIL: test_a (test_a.A.test_a)\n{}\nTraceback (most recent call last):\n  File \"/x/test_a.py\", line 4, \
             in test_a\n    self.assertEqual(x, 1)\nAssertionError: {{'a': {made}}} != {{'a': {expected}}}\n- {{'a': \
             {made}}}\n+ {{'a': {expected}}}\n\n\n{}\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n",
            "=".repeat(70),
            "-".repeat(70),
            "-".repeat(70)
        )
    });
    same("node --test", &|made, expected| {
        format!(
            "TAP version 13\n# Subtest: deep\nnot ok 1 - deep\n  ---\n  duration_ms: 8.5\n  location: '/x/a.test.js:2:1'\n  \
             failureType: 'testCodeFailure'\n  error: |-\n    Expected values to be strictly deep-equal:\n    + actual - \
             expected\n    \n      {{\n    +   a: {made},\n    -   a: {expected},\n        b: 1\n      }}\n  code: \
             'ERR_ASSERTION'\n  name: 'AssertionError'\n  operator: 'deepStrictEqual'\n  stack: |-\n    \
             TestContext.<anonymous> (/x/a.test.js:2:25)\n  ...\n1..1\n# tests 1\n# pass 0\n# fail 1\n"
        )
    });
    same("node --test --test-reporter=spec", &|made, expected| {
        format!(
            "✖ deep (8.6ms)\nℹ tests 1\nℹ pass 0\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.test.js:2:1\n✖ deep (8.6ms)\n  \
             AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  + actual - expected\n  \n  + {made}\n  - \
             {expected}\n      at TestContext.<anonymous> (/x/a.test.js:2:25) {{\n    generatedMessage: true,\n    code: \
             'ERR_ASSERTION',\n    actual: {made},\n    expected: {expected},\n    operator: 'strictEqual'\n  }}\n"
        )
    });
    let panic = |index: u32| {
        format!(
            "--- FAIL: TestA (0.00s)\npanic: runtime error: index out of range [{index}] with length 2 [recovered]\n\tpanic: \
             runtime error: index out of range [{index}] with length 2\n\ngoroutine {index} [running]:\n\
             example.com/m.TestA(0xc00010{index}000)\n\t/x/a_test.go:{index} +0x1d\nFAIL\texample.com/m\t0.003s\nFAIL\n"
        )
    };
    assert_eq!(detail("go test", &panic(3)), detail("go test", &panic(4)));
}

proptest::proptest! {
    #[test]
    fn any_message_is_read(message in "(\\PC|[-+'\"()\\[\\]{} =\n]|assert |not found in | where | and ){0,40}") {
        for kind in [None, Some("AssertionError"), Some("JestAssertionError")] {
            for made in [Made::Unknown, Made::Left, Made::Right, Made::Both] {
                without_actual_values(kind, &message, made);
            }
        }
    }
}
