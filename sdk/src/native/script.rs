//! Scripts of tool calls: one call per line, and the outcome of each.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::Session;
use crate::{NextCall, Pack, Reply, ToolError};

/// Converts a short form of a line to a tool and its arguments. Returns `None` if the line is not a short form.
///
/// ```
/// # use serde_json::json;
/// # use tollgate_sdk::native::ShortForms;
/// let forms: ShortForms = |line| match line.split_once(' ') {
///     Some(("open", id)) => Some(("task_get", json!({"task_id": id}))),
///     _ => None,
/// };
/// assert_eq!(forms("open tsk_1").unwrap().0, "task_get");
/// ```
pub type ShortForms = fn(&str) -> Option<(&'static str, Json)>;

/// Check of a call after it ran: the pack, the tool, its arguments, and the outcome.
///
/// ```
/// # use tollgate_sdk::native::Check;
/// let check: Check = |pack, tool, arguments, outcome| {
///     assert!(outcome.is_ok(), "{}: {tool} {arguments}", pack.name);
/// };
/// # let _ = check;
/// ```
pub type Check = fn(&Pack, &str, &str, &Result<Reply, ToolError>);

/// Runs scripts in a session. A line is `tool {arguments}` or one of these:
///
/// | line | meaning |
/// |---|---|
/// | `- LINE` | the call has to succeed, and is not printed |
/// | `LINE ? FIELDS` | of a reply only these fields are printed, such as `id steps.0.title` |
/// | `LINE as NAME` | sets the argument that [`Script::actor`] names |
/// | `reach N` | runs the first `N` lines of [`Script::way`] like `- LINE` |
/// | `+MS` | lets milliseconds pass |
/// | `# TEXT` | is printed |
///
/// Blank lines are skipped. A reply is printed as `ok` with its structured part, an error as `err` with its code,
/// message and context, and a line for each blocker.
///
/// ```
/// # use tollgate_sdk::{Cx, Effect, Entry, Hints, Pack, Tier, Tool, ToolError, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Clear { #[allow(dead_code)] list: String }
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Cleared { list: String, left: u32 }
/// # impl Tool for Clear {
/// #     const NAME: &'static str = "notes_clear";
/// #     const TITLE: &'static str = "Throw all notes away";
/// #     const EFFECT: Effect = Effect::Write;
/// #     const TIER: Tier = Tier::Full;
/// #     const HINTS: Hints = Hints::DESTRUCTIVE;
/// #     type Output = Cleared;
/// #     fn run(self, _: &Cx<'_>) -> Result<Cleared, ToolError> { Ok(Cleared { list: self.list, left: 0 }) }
/// #     // …
/// # }
/// # use serde_json::json;
/// # use tollgate_sdk::native::{Script, Session};
/// const PACK: Pack = Pack { name: "notes", tools: tools![Clear], ..Pack::EMPTY };
/// let session = Session::new(&PACK);
/// let script = Script::new(&session).default_argument("list", json!("today")).short_forms(|line| match line {
///     "tidy" => Some(("notes_clear", json!({"list": "old"}))),
///     _ => None,
/// });
/// let log = script.run(
///     r"
///     - notes_clear
///     ## the other list
///     tidy ? list
///     ",
/// );
/// assert_eq!(log, "# the other list\nok list=\"old\"\n");
/// ```
#[derive(Clone)]
pub struct Script<'a> {
    session: &'a Session,
    prefix: &'a str,
    short_forms: ShortForms,
    defaults: Vec<(&'a str, Json)>,
    actor: Option<&'a str>,
    way: &'a [&'a str],
    check: Check,
    terse: bool,
}

impl<'a> Script<'a> {
    /// Creates a script runner that expects full tool names and no short forms.
    #[must_use]
    pub fn new(session: &'a Session) -> Script<'a> {
        Script {
            session,
            prefix: "",
            short_forms: |_| None,
            defaults: Vec::new(),
            actor: None,
            way: &[],
            check: |_, _, _, _| {},
            terse: false,
        }
    }

    /// Sets the common prefix of all tool names, so that lines may omit it.
    #[must_use]
    pub fn prefix(mut self, prefix: &'a str) -> Script<'a> {
        self.prefix = prefix;
        self
    }

    /// Sets the short forms of lines.
    #[must_use]
    pub fn short_forms(mut self, short_forms: ShortForms) -> Script<'a> {
        self.short_forms = short_forms;
        self
    }

    /// Adds an argument for tools that require it, used by calls that omit it.
    #[must_use]
    pub fn default_argument(mut self, name: &'a str, value: Json) -> Script<'a> {
        self.defaults.push((name, value));
        self
    }

    /// Sets the argument that `as NAME` sets.
    #[must_use]
    pub fn actor(mut self, argument: &'a str) -> Script<'a> {
        self.actor = Some(argument);
        self
    }

    /// Sets the lines that `reach N` runs.
    #[must_use]
    pub fn way(mut self, lines: &'a [&'a str]) -> Script<'a> {
        self.way = lines;
        self
    }

    /// Sets a check that runs after every call.
    #[must_use]
    pub fn check(mut self, check: Check) -> Script<'a> {
        self.check = check;
        self
    }

    /// Does not print the next calls of errors, nor a blocker that is the only one.
    #[must_use]
    pub fn terse(mut self) -> Script<'a> {
        self.terse = true;
        self
    }

    /// Runs a script and returns the printed text.
    ///
    /// # Panics
    /// If a line is malformed, or if a call that must succeed fails.
    #[must_use]
    pub fn run(&self, script: &str) -> String {
        let mut printed = String::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.run_line(line, &mut printed);
        }
        printed
    }

    fn run_line(&self, line: &str, printed: &mut String) {
        if line.starts_with('#') {
            let _ = writeln!(printed, "{line}");
        } else if let Some(ms) = line.strip_prefix('+') {
            self.session.advance_ms(number(ms));
        } else if let Some(count) = line.strip_prefix("reach ") {
            for line in self.way.iter().take(number(count)) {
                self.reply(line);
            }
        } else if let Some(line) = line.strip_prefix("- ") {
            self.reply(line);
        } else {
            let (line, fields) = split_fields(line);
            match self.call(line) {
                Ok(reply) => print_reply(&reply.structured, fields, printed),
                Err(err) => self.print_error(&err, printed),
            }
        }
    }

    /// Runs a call that must succeed, and returns its structured reply.
    ///
    /// # Panics
    /// If the call fails.
    pub fn reply(&self, line: &str) -> Json {
        let reply = self.call(line).unwrap_or_else(|err| panic!("{line}: {err:#?}"));
        serde_json::from_str(&reply.structured).unwrap_or_else(|err| panic!("{line}: {err}"))
    }

    /// Runs a call that must be refused, and returns the refusal.
    ///
    /// # Panics
    /// If the call succeeds.
    #[must_use]
    pub fn refusal(&self, line: &str) -> ToolError {
        match self.call(line) {
            Ok(reply) => panic!("{line}: {}", reply.structured),
            Err(err) => err,
        }
    }

    /// Runs the call on a line.
    pub fn call(&self, line: &str) -> Result<Reply, ToolError> {
        let (tool, arguments) = self.expand(line);
        self.call_with(&tool, &arguments)
    }

    /// Runs a tool by its full name, and adds the default arguments.
    pub fn call_tool(&self, tool: &str, arguments: Json) -> Result<Reply, ToolError> {
        self.call_with(tool, &self.completed(tool, arguments, None).to_string())
    }

    /// Runs a tool by its full name with exactly these arguments.
    pub fn call_with(&self, tool: &str, arguments: &str) -> Result<Reply, ToolError> {
        let result = self.session.call(tool, arguments);
        (self.check)(self.session.pack, tool, arguments, &result);
        result
    }

    /// Tool and arguments of a line.
    ///
    /// # Panics
    /// If the line is malformed.
    #[must_use]
    pub fn expand(&self, line: &str) -> (String, String) {
        let (line, actor) = self.split_actor(line);
        if let Some((tool, arguments)) = (self.short_forms)(line) {
            return (
                tool.to_owned(),
                self.completed(tool, arguments, actor).to_string(),
            );
        }
        let (tool, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, "{}"));
        let tool = match tool.starts_with(self.prefix) {
            true => tool.to_owned(),
            false => format!("{}{tool}", self.prefix),
        };
        // Arguments without additions are passed unchanged, because they need not be JSON.
        let arguments = match self.defaults.is_empty() && actor.is_none() {
            true => arguments.to_owned(),
            false => {
                let read = serde_json::from_str(arguments).unwrap_or_else(|err| panic!("{line}: {err}"));
                self.completed(&tool, read, actor).to_string()
            }
        };
        (tool, arguments)
    }

    fn split_actor<'l>(&self, line: &'l str) -> (&'l str, Option<&'l str>) {
        match line.rsplit_once(" as ").filter(|_| self.actor.is_some()) {
            Some((rest, actor)) if actor.chars().all(|c| c.is_alphanumeric() || c == '-') => {
                (rest, Some(actor))
            }
            _ => (line, None),
        }
    }

    /// Adds the arguments that a call omits.
    fn completed(&self, tool: &str, mut arguments: Json, actor: Option<&str>) -> Json {
        let Json::Object(given) = &mut arguments else {
            return arguments;
        };
        let schema = self.session.pack.tool(tool).map(|entry| (entry.input_schema)());
        let required = schema.as_ref().and_then(|schema| schema["required"].as_array());
        for (name, value) in &self.defaults {
            if required.is_some_and(|required| required.contains(&json!(name))) && !given.contains_key(*name)
            {
                given.insert((*name).to_owned(), value.clone());
            }
        }
        if let (Some(argument), Some(actor)) = (self.actor, actor) {
            given.insert(argument.to_owned(), json!(actor));
        }
        arguments
    }

    fn print_error(&self, err: &ToolError, printed: &mut String) {
        let _ = write!(printed, "err {}: {}", err.code, err.message);
        if !err.context.is_empty() {
            let _ = write!(printed, " {}", Json::Object(err.context.clone()));
        }
        let is_named = err
            .blockers
            .iter()
            .any(|blocker| blocker.next_call == err.next_call);
        self.print_call(err.next_call.as_ref().filter(|_| !is_named), printed);
        printed.push('\n');
        if self.terse && err.blockers.len() == 1 {
            return;
        }
        for blocker in &err.blockers {
            let _ = write!(printed, "  - {}", blocker.code);
            if let Some(field) = &blocker.field {
                let _ = write!(printed, " ({field})");
            }
            let _ = write!(printed, ": {}", blocker.message);
            self.print_call(blocker.next_call.as_ref(), printed);
            printed.push('\n');
        }
    }

    fn print_call(&self, call: Option<&NextCall>, printed: &mut String) {
        if let Some(call) = call.filter(|_| !self.terse) {
            let _ = write!(printed, " -> {}", line_of(call));
        }
    }
}

/// Formats a call as a line of a script.
///
/// ```
/// # use serde_json::{Map, json};
/// # use tollgate_sdk::NextCall;
/// # use tollgate_sdk::native::line_of;
/// let next = NextCall::new("task_get", json!({"task_id": "tsk_1"}));
/// assert_eq!(line_of(&next), r#"task_get {"task_id":"tsk_1"}"#);
/// ```
#[must_use]
pub fn line_of(call: &NextCall) -> String {
    format!("{} {}", call.tool, Json::Object(call.arguments.clone()))
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse()
        .unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

/// Splits the fields to print from a line.
fn split_fields(line: &str) -> (&str, &str) {
    let is_field = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ' ');
    match line.rsplit_once(" ? ") {
        Some((line, fields)) if fields.chars().all(is_field) => (line, fields),
        _ => (line, ""),
    }
}

fn print_reply(structured: &str, fields: &str, printed: &mut String) {
    if fields.is_empty() {
        let _ = writeln!(printed, "ok {structured}");
        return;
    }
    let reply: Json = serde_json::from_str(structured).unwrap_or_default();
    printed.push_str("ok");
    for field in fields.split_whitespace() {
        let value = field
            .split('.')
            .fold(&reply, |value, name| match name.parse::<usize>() {
                Ok(place) => &value[place],
                Err(_) => &value[name],
            });
        let _ = match value.as_str() {
            Some(value) if value.contains('\n') => write!(printed, "\n{value}"),
            _ => write!(printed, " {field}={value}"),
        };
    }
    printed.push('\n');
}
