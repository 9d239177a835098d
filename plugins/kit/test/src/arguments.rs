//! Random arguments that fit a tool's schema, or nearly.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{Entry, Pack};

/// Texts that find the edges of checks.
const ODD_TEXTS: &[&str] = &[
    "",
    " ",
    "\u{0}",
    "\u{1b}[31m",
    "\u{202e}",
    "ä’{{x}}",
    "../x",
    "a\nb",
    "<one deliverable>",
];

/// Characters of the longest text, which is beyond every limit of a text.
const MAX_TEXT_CHARS: usize = 70_000;

/// Random arguments of a pack's tools.
#[derive(Debug, Clone)]
pub struct Arguments {
    pub(crate) words: &'static [&'static str],
    pub(crate) fixed: Map<String, Value>,
}

impl Arguments {
    /// Arguments made of words that mean something to the pack, such as ids of what is there.
    #[must_use]
    pub fn of(words: &'static [&'static str]) -> Arguments {
        Arguments {
            words,
            fixed: Map::new(),
        }
    }

    /// Gives every tool with such a property this value of it.
    #[must_use]
    pub fn fixed(mut self, name: &str, value: Value) -> Arguments {
        self.fixed.insert(name.to_owned(), value);
        self
    }

    /// A call of any tool.
    fn call(&self, tools: &'static [Entry]) -> impl Strategy<Value = (&'static str, Value)> + use<> {
        let calls = tools.iter().map(|tool| {
            let schema = (tool.input_schema)();
            let fixed: Vec<(String, Value)> = self
                .fixed
                .iter()
                .filter(|(name, _)| schema["properties"].get(name).is_some())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            self.object(&schema)
                .prop_map(move |mut arguments| {
                    for (name, value) in &fixed {
                        arguments[name] = value.clone();
                    }
                    (tool.name, arguments)
                })
                .boxed()
        });
        Union::new(calls)
    }

    /// A value that fits a schema, or nearly.
    fn value(&self, schema: &Value) -> BoxedStrategy<Value> {
        let fitting = match schema["type"].as_str() {
            Some("string") => match schema["enum"].as_array() {
                Some(choices) => select(choices.clone()).boxed(),
                None => self.text().prop_map(Value::from).boxed(),
            },
            Some("integer") => prop_oneof![
                (0_i64..300).prop_map(Value::from),
                any::<i64>().prop_map(Value::from)
            ]
            .boxed(),
            Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
            Some("array") => prop::collection::vec(self.value(&schema["items"]), 0..4)
                .prop_map(Value::from)
                .boxed(),
            _ => self.object(schema),
        };
        let wrong = select(vec![
            json!(null),
            json!(-1),
            json!("?"),
            json!([[]]),
            json!({"a": {"b": 1e300}}),
        ]);
        prop_oneof![40 => fitting, 1 => wrong].boxed()
    }

    fn text(&self) -> impl Strategy<Value = String> + use<> {
        let known: Vec<&'static str> = self.words.iter().chain(ODD_TEXTS).copied().collect();
        prop_oneof![
            6 => select(known).prop_map(str::to_owned),
            1 => any::<String>(),
            1 => (1..MAX_TEXT_CHARS).prop_map(|length| "x".repeat(length)),
        ]
    }

    /// An object that fits a schema, or nearly. Required properties are mostly there, others now and then.
    fn object(&self, schema: &Value) -> BoxedStrategy<Value> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut fields = Just(Map::new()).boxed();
        for (name, property) in properties {
            let likely = match required.contains(&json!(name)) {
                true => 0.98,
                false => 0.4,
            };
            let name = name.clone();
            fields = (fields, prop::option::weighted(likely, self.value(property)))
                .prop_map(move |(mut fields, field)| {
                    if let Some(field) = field {
                        fields.insert(name.clone(), field);
                    }
                    fields
                })
                .boxed();
        }
        fields.prop_map(Value::Object).boxed()
    }
}

/// Feeds random calls to fresh sessions. Each call has to end in a reply, or in a refusal with a code of its own.
pub fn never_panics(pack: &'static Pack, cases: u32, arguments: &Arguments, session: impl Fn() -> Session) {
    let calls = prop::collection::vec(arguments.call(pack.tools), 1..24);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&calls, |calls| {
        let session = session();
        for (tool, arguments) in calls {
            if let Err(err) = session.call(tool, &arguments.to_string()) {
                let is_ours = !err.code.starts_with("STORAGE") && err.code != "INTERNAL";
                prop_assert!(is_ours, "{tool} {arguments}: {err}");
                let is_upper = err.code.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                prop_assert!(is_upper, "{}", err.code);
            }
        }
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{err}");
    }
}
