//! Names of tests in the form that all reporters of a tool share.

use crate::readers::Reader;
use crate::report::Failure;

/// The name of a test as every reporter of its tool tells it.
pub(super) fn shared(reader: Reader, test: &Failure) -> String {
    let name = test.name.as_str();
    match reader {
        // `calc tests::adds`: only nextest has the binary.
        Reader::Nextest => without_binary(name).to_owned(),
        // Only some of Node's reporters have the file, only some the suites.
        Reader::NodeTest | Reader::Tap => leaf(name).to_owned(),
        Reader::Pytest => of_pytest(name),
        Reader::Jest | Reader::Vitest => name.replace(" > ", " "),
        Reader::JunitXml => of_junit(name, test),
        Reader::CargoTest | Reader::Unittest | Reader::GoTest | Reader::Generic => name.to_owned(),
    }
}

fn without_binary(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(_, test)| test)
}

fn leaf(name: &str) -> &str {
    name.rsplit(" > ").next().unwrap_or(name)
}

/// `tests/test_calc.py::TestAdd::test_adds[2/3]` becomes `tests.test_calc.TestAdd.test_adds[2/3]`, as JUnit has it.
fn of_pytest(name: &str) -> String {
    let (place, parameters) = name.split_at(name.find('[').unwrap_or(name.len()));
    let mut parts = place.split("::");
    let file = parts.next().unwrap_or_default();
    let module = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
    let names = parts.fold(module, |name, part| format!("{name}.{part}"));
    names + parameters
}

/// The class and the name that a JUnit report has of a test, which depend on the tool that wrote it.
fn of_junit(name: &str, test: &Failure) -> String {
    let frame = test
        .stack
        .first()
        .map_or("", |frame| frame.split(" in ").next().unwrap_or(frame));
    let is_file = |word: &str| {
        [".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx"]
            .iter()
            .any(|end| word.ends_with(end))
    };
    let first = name.split(' ').next().unwrap_or_default();
    if frame.ends_with(".rs") || name.contains("::") && !name.contains(" > ") {
        without_binary(name).to_owned()
    } else if frame.ends_with(".py") {
        let (place, parameters) = name.split_at(name.find('[').unwrap_or(name.len()));
        place.replacen(' ', ".", 1) + parameters
    } else if is_file(first) {
        name.replace(" > ", " ")
    } else {
        leaf(name).to_owned()
    }
}
