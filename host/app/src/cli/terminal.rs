//! Questions of policies and packs to a person at a terminal.
//!
//! An agent can run this program through its shell. A person is therefore assumed only if standard input, output and
//! error are a terminal. An answer requires a code that was shown there, which text piped in ahead cannot contain.

use std::io::{BufRead, IsTerminal as _, Write};

use serde_json::{Map, Value};
use tollgate_core::text;
use tollgate_gate::{Answers, Asked, Consent, Pending};
use tollgate_sdk::{Action, Answer, AnsweredBy, Asking, Question};

use super::out;

/// Maximum number of attempts for one field of a form.
const MAX_TRIES: usize = 3;
/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 16 << 10;

/// Returns whether a person can see the output and type input.
pub(super) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// A person who reads questions and types answers.
pub(super) struct Person<R, W> {
    input: R,
    output: W,
    /// Makes the code that an answer needs.
    code: fn() -> String,
    /// Policy question that was agreed to, which stays agreed up to the first call that has effects.
    agreed: Option<String>,
    /// Answers to the tool's latest questions. A policy that asks before the tool runs again does not discard them.
    given: Answers,
}

impl Person<std::io::BufReader<std::io::Stdin>, std::io::Stderr> {
    /// Person at the terminal of this process, if there is one.
    pub(super) fn at_terminal() -> Option<Self> {
        is_there().then(|| {
            Person::new(
                std::io::BufReader::new(std::io::stdin()),
                std::io::stderr(),
                new_code,
            )
        })
    }
}

/// Four random digits.
fn new_code() -> String {
    format!("{:04}", uuid::Uuid::new_v4().as_u128() % 10_000)
}

impl<R: BufRead, W: Write> Person<R, W> {
    fn new(input: R, output: W, code: fn() -> String) -> Person<R, W> {
        Person {
            input,
            output,
            code,
            agreed: None,
            given: Answers::default(),
        }
    }

    /// Answers to questions about a call. `None` if a person cannot answer any of them.
    pub(super) fn answer(&mut self, asked: Asked) -> anyhow::Result<Option<Answers>> {
        match asked {
            Asked::Policy(pending) => self.consent(pending).map(Some),
            Asked::Tool(asking) => self.answers(asking),
        }
    }

    /// Forgets a yes to a policy's question, after a call that had effects.
    pub(super) fn forget_agreement(&mut self) {
        self.agreed = None;
    }

    fn consent(&mut self, Pending { message, about }: Pending) -> anyhow::Result<Answers> {
        self.say(&format!("tollgate: {message}"))?;
        let agreed = self.confirm("to allow this")?;
        self.agreed = agreed.then(|| about.clone());
        Ok(Answers {
            consent: Some(Consent { about, agreed }),
            ..self.given.clone()
        })
    }

    fn answers(&mut self, asking: Asking) -> anyhow::Result<Option<Answers>> {
        let mut answers = Vec::new();
        for question in asking.questions {
            if let AnsweredBy::Form(form) = &question.by {
                let (action, content) = self.fill_in(&question, form)?;
                answers.push(Answer {
                    key: question.key,
                    action,
                    content,
                });
            }
        }
        if answers.is_empty() {
            return Ok(None);
        }
        self.given = Answers {
            consent: None,
            answers,
            remembered: asking.state,
        };
        let agreed = self.agreed.clone();
        Ok(Some(Answers {
            consent: agreed.map(|about| Consent { about, agreed: true }),
            ..self.given.clone()
        }))
    }

    /// Asks the person to fill in a form. A form with only a yes or no needs just the code.
    fn fill_in(&mut self, question: &Question, form: &Value) -> anyhow::Result<(Action, Value)> {
        self.say(&format!("tollgate: {}", question.message))?;
        let fields = form.get("properties").and_then(Value::as_object);
        let fields: Vec<(&String, &Value)> = fields.into_iter().flatten().collect();
        let mut content = Map::new();
        if let [(name, field)] = fields.as_slice()
            && kind(field) == "boolean"
        {
            content.insert((*name).clone(), true.into());
        } else {
            for (name, field) in fields {
                match self.field(name, field, is_required(form, name))? {
                    Some(Value::Null) => {}
                    Some(value) => drop(content.insert(name.clone(), value)),
                    None => return Ok((Action::Cancel, Value::Object(Map::new()))),
                }
            }
        }
        Ok(if self.confirm("to allow this")? {
            (Action::Accept, Value::Object(content))
        } else {
            (Action::Decline, Value::Object(Map::new()))
        })
    }

    /// Value of a field, null if it is omitted. `None` if nothing usable was typed.
    fn field(&mut self, name: &str, field: &Value, is_required: bool) -> anyhow::Result<Option<Value>> {
        let text = |key: &str| field.get(key).and_then(Value::as_str);
        let title = text("title").unwrap_or(name);
        let mut prompt =
            text("description").map_or_else(|| title.to_owned(), |more| format!("{title} ({more})"));
        let choices = choices(field);
        if !choices.is_empty() {
            prompt += &format!(" [{}]", choices.join(", "));
        }
        for _ in 0..MAX_TRIES {
            let Some(line) = self.read(&format!("{prompt}: "))? else {
                return Ok(None);
            };
            let value = match line.as_str() {
                "" => field
                    .get("default")
                    .cloned()
                    .or((!is_required).then_some(Value::Null)),
                line => read_value(kind(field), &choices, line),
            };
            match value {
                Some(value) => return Ok(Some(value)),
                None if line.is_empty() => self.say(&format!("tollgate: {title} is required"))?,
                None => self.say(&format!("tollgate: `{line}` is not a valid {}", kind(field)))?,
            }
        }
        Ok(None)
    }

    /// Asks for the code. Returns whether the person typed it.
    fn confirm(&mut self, purpose: &str) -> anyhow::Result<bool> {
        let code = (self.code)();
        let prompt = format!("Only a person may answer. Type {code} {purpose}, anything else to decline: ");
        Ok(self.read(&prompt)?.is_some_and(|line| line == code))
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        writeln!(self.output, "{}", text::clean_prose(text))?;
        Ok(())
    }

    /// Reads a line, without its end. `None` at the end of the input.
    fn read(&mut self, prompt: &str) -> anyhow::Result<Option<String>> {
        write!(self.output, "{}", text::clean_prose(prompt))?;
        self.output.flush()?;
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut self.input, MAX_LINE).read_until(b'\n', &mut line)?;
        Ok((read > 0).then(|| String::from_utf8_lossy(&line).trim().to_owned()))
    }
}

/// Explains how a person can be asked, if a call asks and no person is present.
pub(super) fn say_missing(asked: &Asked) {
    let asks_person = match asked {
        Asked::Policy(_) => true,
        Asked::Tool(asking) => asking
            .questions
            .iter()
            .any(|question| matches!(question.by, AnsweredBy::Form(_))),
    };
    if asks_person {
        out::warn(
            "a person has to answer this question: run the same command in a terminal, without redirecting its input, \
             output or errors",
        );
    }
}

fn is_required(form: &Value, name: &str) -> bool {
    let required = form.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|known| known == name))
}

/// Type of a field. Default text.
fn kind(field: &Value) -> &str {
    let kind = field.get("type").and_then(Value::as_str);
    kind.unwrap_or("string")
}

/// Allowed values of a field, if it lists them.
fn choices(field: &Value) -> Vec<&str> {
    let of = |key: &str| field.get(key).and_then(Value::as_array).into_iter().flatten();
    let named = of("enum").filter_map(Value::as_str);
    let titled = of("oneOf").filter_map(|choice| choice.get("const")?.as_str());
    named.chain(titled).collect()
}

fn read_value(kind: &str, choices: &[&str], line: &str) -> Option<Value> {
    match kind {
        "boolean" => match line.to_lowercase().as_str() {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        "integer" => line.parse::<i64>().ok().map(Value::from),
        "number" => line.parse::<f64>().ok().map(Value::from),
        "string" if choices.is_empty() || choices.contains(&line) => Some(line.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(typed: &str, asked: Asked) -> (Option<Answers>, String) {
        let mut output = Vec::new();
        let answers = Person::new(typed.as_bytes(), &mut output, || "4821".to_owned()).answer(asked);
        (answers.unwrap(), String::from_utf8(output).unwrap())
    }

    fn form(properties: Value) -> Asked {
        let form = json!({"type": "object", "properties": properties, "required": ["name"]});
        Asked::Tool(Asking {
            questions: vec![Question::with_form("key", "Go on?\u{1b}[2J", form)],
            state: Some("state".to_owned()),
        })
    }

    #[test]
    fn only_the_code_is_a_yes() {
        for (typed, action) in [
            ("4821\n", Action::Accept),
            (" 4821 \r\n", Action::Accept),
            ("4822\n", Action::Decline),
            ("y\nyes\n4821\n", Action::Decline),
            ("\n", Action::Decline),
            ("", Action::Decline),
        ] {
            let (answers, shown) = asked(typed, form(json!({"allow": {"type": "boolean"}})));
            let answers = answers.unwrap();
            assert_eq!(answers.answers[0].action, action, "{typed:?}");
            assert_eq!(answers.remembered.as_deref(), Some("state"));
            assert!(
                shown.contains("Type 4821") && !shown.contains('\u{1b}'),
                "{shown}"
            );
            let policy = Asked::Policy(Pending {
                message: "Run it?".to_owned(),
                about: "question".to_owned(),
            });
            let agreed = asked(typed, policy).0.unwrap().consent.unwrap().agreed;
            assert_eq!(agreed, action == Action::Accept, "{typed:?}");
        }
    }

    #[test]
    fn a_form_is_filled_in_field_by_field() {
        let fields = json!({"name": {"type": "string"}, "size": {"type": "integer", "default": 3},
            "colour": {"enum": ["red", "blue"]}, "sure": {"type": "boolean", "description": "no way back"}});
        let typed = "\nAda\n\nblue\nno\n4821\n";
        let (answers, shown) = asked(typed, form(fields.clone()));
        // A required field is requested again.
        let expected = json!({"name": "Ada", "size": 3, "colour": "blue", "sure": false});
        assert_eq!(answers.unwrap().answers[0].content, expected, "{shown}");
        assert!(
            shown.contains("colour [red, blue]: ") && shown.contains("sure (no way back): "),
            "{shown}"
        );
        for cancelled in ["Ada\n\ngreen\ngreen\ngreen\nno\n4821\n", "Ada\n", ""] {
            let answers = asked(cancelled, form(fields.clone())).0.unwrap();
            assert_eq!(answers.answers[0].action, Action::Cancel, "{cancelled:?}");
        }
    }

    #[test]
    fn a_model_and_folders_are_not_asked_for_here() {
        let asking = Asking {
            questions: vec![
                Question::to_model("more", "Go on.", 50),
                Question::for_roots("roots"),
            ],
            state: None,
        };
        assert!(asked("4821\n", Asked::Tool(asking)).0.is_none());
    }

    #[test]
    fn a_yes_ends_with_a_call_that_has_effects_and_answers_to_the_tool_do_not() {
        let typed = "4821\n".repeat(4);
        let mut output = Vec::new();
        let mut person = Person::new(typed.as_bytes(), &mut output, || "4821".to_owned());
        let policy = || {
            Asked::Policy(Pending {
                message: "Run it?".to_owned(),
                about: "question".to_owned(),
            })
        };
        let tool = || form(json!({"allow": {"type": "boolean"}}));
        person.answer(policy()).unwrap();
        let answers = person.answer(tool()).unwrap().unwrap();
        assert!(answers.consent.is_some_and(|consent| consent.agreed));
        person.forget_agreement();
        let answers = person.answer(tool()).unwrap().unwrap();
        assert_eq!(answers.consent, None);
        let again = person.answer(policy()).unwrap().unwrap();
        assert!(again.consent.is_some_and(|consent| consent.agreed));
        assert_eq!(again.answers, answers.answers);
        assert_eq!(again.remembered.as_deref(), Some("state"));
    }

    #[test]
    fn codes_have_four_digits_and_differ() {
        let codes: std::collections::BTreeSet<String> = (0..50).map(|_| new_code()).collect();
        assert!(codes.len() > 1 && codes.iter().all(|code| code.len() == 4));
    }
}
