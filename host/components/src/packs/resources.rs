//! Replies of tools that read, under addresses: what a tool's schema declares beside its arguments.
//!
//! `x-resources` at the root of an input schema names the addresses at which the tool's reply can be read,
//! `x-values` beside an argument names the tool that lists what can stand there, and `x-inherited` beside an argument
//! of a tool that runs members says that members have it, too. `x-charge` at the root says what a call
//! costs its envelope, `x-looks` when the host looks at the work tree before it, `x-workspace` which workspace it is about, and `x-views` that the reply makes a
//! page of the console. Lists show none of them.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_core::effect::Effect;

use super::looks::Looks;
use super::manifest::ToolSpec;
use super::views::{self, View};
use super::workspace_of::WorkspaceOf;
use crate::host_tool::HostTools;

/// Key of a schema's addresses.
const RESOURCES: &str = "x-resources";
/// Key of a property's list of values.
const VALUES: &str = "x-values";
/// Key of a property that members of a batch inherit.
const INHERITED: &str = "x-inherited";
/// Key of a schema that says what a call costs its envelope.
const CHARGE: &str = "x-charge";
/// Prefix of every address; the pack's name and a path follow.
const SCHEME: &str = "tollgate://";
/// Longest address that is looked at, in bytes.
const MAX_ADDRESS: usize = 2 << 10;
/// Characters that are not escaped in an address.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Something to read that has an address.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Name for programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// For agents.
    pub description: String,
    /// Media type of the content, if it is always the same.
    pub mime_type: Option<String>,
    /// The member of the reply that is its content. Without it: the reply's text, or all of it if it is JSON.
    pub content: Option<String>,
    /// The latest of its kind are listed, beside the template.
    pub listed: bool,
    /// The tool whose reply it is.
    pub tool: String,
    /// Pack of the resource.
    pub pack: String,
    /// Prefix of the address.
    pub(super) base: String,
    path: Vec<Segment>,
    query: Vec<String>,
    fixed: Map<String, Value>,
    integers: Vec<String>,
}

/// Values of an argument.
#[derive(Debug, Clone)]
pub enum Values {
    /// One of these words.
    Words(Vec<String>),
    /// Values that a tool lists.
    Listed(Source),
}

/// A tool that lists values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The tool, which reads.
    pub tool: String,
    /// Arguments of that tool.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The member of its reply that is the list.
    pub items: String,
    /// The member of each entry that is a value, or a list of values.
    pub value: String,
}

/// Declarations in one tool's schema.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    pub(super) resources: Vec<Resource>,
    pub(super) values: BTreeMap<String, Values>,
    /// Arguments that members have from the call around them.
    pub(super) inherited: Vec<String>,
    /// Declared cost of a call.
    pub(super) charge: Option<DeclaredCharge>,
    /// Setting under which the host looks at the work tree before a call.
    pub(super) looks: Option<Looks>,
    /// Row that names the workspace of a call.
    pub(super) workspace: Option<WorkspaceOf>,
    /// Page of the console.
    pub(super) view: Option<View>,
}

/// Declared cost of a call that does not only read. Without a declaration: a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeclaredCharge {
    /// Runs programs that only read.
    Nothing,
    /// Runs tests and changes nothing else.
    TestRun,
}

impl DeclaredCharge {
    fn read(charge: Value, effect: Effect) -> Result<DeclaredCharge, String> {
        match serde_json::from_value(charge) {
            Ok(DeclaredCharge::TestRun) if effect != Effect::Read => Ok(DeclaredCharge::TestRun),
            Ok(DeclaredCharge::Nothing) if effect == Effect::Run => Ok(DeclaredCharge::Nothing),
            _ => Err(format!(
                "{CHARGE}: it is \"test-run\" in a tool that does not only read, or \"nothing\" in a `run` tool"
            )),
        }
    }
}

/// One piece of a path between slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    before: String,
    variable: Option<String>,
    after: String,
}

/// An address as a schema declares it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    path: String,
    name: String,
    title: String,
    description: String,
    mime_type: Option<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
    content: Option<String>,
    #[serde(default)]
    listed: bool,
}

/// Takes what a tool declares out of its schema. The error names everything that is wrong with it.
pub(super) fn take(pack: &str, spec: &mut ToolSpec) -> Result<Declared, Vec<String>> {
    let mut declared = Declared::default();
    let mut problems = Vec::new();
    let addresses = spec.input_schema.remove(RESOURCES);
    match views::take(pack, spec) {
        Ok(view) => declared.view = view,
        Err(problem) => problems.push(problem),
    }
    match Looks::take(spec) {
        Ok(looks) => declared.looks = looks,
        Err(problem) => problems.push(problem),
    }
    match WorkspaceOf::take(pack, spec) {
        Ok(workspace) => declared.workspace = workspace,
        Err(problem) => problems.push(problem),
    }
    match spec
        .input_schema
        .remove(CHARGE)
        .map(|charge| DeclaredCharge::read(charge, spec.effect))
        .transpose()
    {
        Ok(charge) => declared.charge = charge,
        Err(problem) => problems.push(problem),
    }
    if let Some(Value::Object(properties)) = spec.input_schema.get_mut("properties") {
        for (name, property) in properties {
            match property.as_object_mut().map(values).unwrap_or(Ok(None)) {
                Ok(Some(values)) => drop(declared.values.insert(name.clone(), values)),
                Ok(None) => {}
                Err(err) => problems.push(format!("{VALUES} of {name}: {err}")),
            }
            match property
                .as_object_mut()
                .and_then(|property| property.remove(INHERITED))
            {
                None => {}
                Some(Value::Bool(true)) if spec.members.is_some() => declared.inherited.push(name.clone()),
                Some(_) => problems.push(format!(
                    "{INHERITED} of {name}: it is `true`, in a tool that names its members"
                )),
            }
        }
    }
    match addresses.map(serde_json::from_value::<Vec<Declaration>>) {
        None => {}
        Some(Err(err)) => problems.push(format!("{RESOURCES}: {err}")),
        Some(Ok(_)) if spec.effect != Effect::Read => {
            problems.push(format!("{RESOURCES}: only tools that read have addresses"));
        }
        Some(Ok(declarations)) => {
            for declaration in declarations {
                let path = declaration.path.clone();
                match Resource::new(pack, spec, declaration) {
                    Ok(resource) => declared.resources.push(resource),
                    Err(problem) => problems.push(format!("{RESOURCES} {path}: {problem}")),
                }
            }
        }
    }
    if problems.is_empty() {
        return Ok(declared);
    }
    let named = |problem| format!("tool {}: {problem}", spec.name);
    Err(problems.into_iter().map(named).collect())
}

fn values(property: &mut Map<String, Value>) -> serde_json::Result<Option<Values>> {
    if let Some(source) = property.remove(VALUES) {
        return serde_json::from_value(source).map(|source| Some(Values::Listed(source)));
    }
    let words = property.get("enum").and_then(Value::as_array);
    Ok(words.map(|words| {
        Values::Words(
            words
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        )
    }))
}

impl Resource {
    fn new(pack: &str, spec: &ToolSpec, said: Declaration) -> Result<Resource, String> {
        let (base, path) = based(pack, &said.path)?;
        let (path, query) = parse(path)?;
        let properties = spec.input_schema.get("properties").and_then(Value::as_object);
        let property = |name: &str| properties.and_then(|known| known.get(name));
        let variables = path
            .iter()
            .filter_map(|segment| segment.variable.as_ref())
            .chain(&query);
        let arguments = variables.clone().chain(said.arguments.keys());
        if let Some(unknown) = arguments.clone().find(|name| property(name).is_none()) {
            return Err(format!("{unknown} is no argument of the tool"));
        }
        let is_integer = |name: &&String| {
            let kind = property(name).and_then(|property| property.get("type"));
            kind.and_then(Value::as_str) == Some("integer")
        };
        Ok(Resource {
            integers: variables.filter(is_integer).cloned().collect(),
            name: tollgate_core::text::clean(tollgate_core::text::cut(&said.name, 100)),
            title: tollgate_core::text::clean(tollgate_core::text::cut(&said.title, 100)),
            description: tollgate_core::text::clean(tollgate_core::text::cut(&said.description, 500)),
            mime_type: said
                .mime_type
                .map(|kind| tollgate_core::text::clean(tollgate_core::text::cut(&kind, 100))),
            content: said.content,
            listed: said.listed,
            tool: spec.name.clone(),
            pack: pack.to_owned(),
            base,
            path,
            query,
            fixed: said.arguments,
        })
    }

    /// Its address with the names of what is missing, by RFC 6570.
    pub fn template(&self) -> String {
        let path = self.written(|name| format!("{{{name}}}"));
        if self.query.is_empty() {
            path
        } else {
            format!("{path}{{?{}}}", self.query.join(","))
        }
    }

    /// Its address with one value for whatever stands in the path.
    pub fn address(&self, value: &str) -> String {
        self.written(|_| utf8_percent_encode(value, PLAIN).to_string())
    }

    /// Its address with these values in the path.
    pub fn filled(&self, values: &Map<String, Value>) -> String {
        self.written(|name| values.get(name).map(encoded).unwrap_or_default())
    }

    /// The address that goes on where a reply to another ended.
    pub fn continued(&self, arguments: &Map<String, Value>, name: &str, value: &Value) -> Option<String> {
        if !self.query.iter().any(|known| known == name) {
            return None;
        }
        let path = self.filled(arguments);
        let kept = self.query.iter().filter(|known| *known != name);
        let kept = kept.filter_map(|known| Some(format!("{known}={}&", encoded(arguments.get(known)?))));
        Some(format!(
            "{path}?{}{name}={}",
            kept.collect::<String>(),
            encoded(value)
        ))
    }

    /// Variables of the path, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(|segment| segment.variable.as_deref())
    }

    /// Arguments of the tool for an address, if the address belongs to this resource.
    pub fn arguments(&self, address: &str) -> Option<Map<String, Value>> {
        if address.len() > MAX_ADDRESS {
            return None;
        }
        let rest = address.strip_prefix(&self.base)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut arguments = self.fixed.clone();
        let mut pieces = path.split('/');
        for segment in &self.path {
            let piece = pieces
                .next()?
                .strip_prefix(&segment.before)?
                .strip_suffix(&segment.after)?;
            match &segment.variable {
                Some(name) => self.set(&mut arguments, name, piece)?,
                None if piece.is_empty() => {}
                None => return None,
            }
        }
        if pieces.next().is_some() {
            return None;
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            let known = self.query.iter().find(|known| *known == name)?;
            self.set(&mut arguments, known, value)?;
        }
        Some(arguments)
    }

    /// Sets an argument that an address names, once and not to nothing.
    fn set(&self, arguments: &mut Map<String, Value>, name: &str, encoded: &str) -> Option<()> {
        let text = percent_decode_str(encoded).decode_utf8().ok()?;
        if text.is_empty() || arguments.contains_key(name) {
            return None;
        }
        let number = text.parse::<i64>().ok();
        let value = match number {
            Some(number) if self.integers.iter().any(|integer| integer == name) => number.into(),
            _ => Value::String(text.into_owned()),
        };
        arguments.insert(name.to_owned(), value);
        Some(())
    }

    fn written(&self, variable: impl Fn(&str) -> String) -> String {
        let pieces = self.path.iter().map(|segment| {
            let middle = segment.variable.as_deref().map(&variable).unwrap_or_default();
            format!("{}{middle}{}", segment.before, segment.after)
        });
        format!("{}{}", self.base, pieces.collect::<Vec<String>>().join("/"))
    }
}

/// A value as it stands in an address.
fn encoded(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    utf8_percent_encode(&text, PLAIN).to_string()
}

impl Source {
    /// The values in a reply, each once.
    pub fn values(&self, reply: &Map<String, Value>) -> Vec<String> {
        let items = reply.get(&self.items).and_then(Value::as_array);
        let mut values: Vec<String> = Vec::new();
        for item in items.into_iter().flatten() {
            let of_item = match item.get(&self.value) {
                Some(Value::Array(several)) => several.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            for value in of_item.iter().filter_map(Value::as_str) {
                // What nobody sees all of is nothing to choose.
                if !tollgate_core::text::hides(value) && !values.iter().any(|known| known == value) {
                    values.push(value.to_owned());
                }
            }
        }
        values
    }
}

/// Checks that a pack with these tools may have a tool called to list values: a tool that reads and is its own, or
/// one of the host's that is nobody's secret. Whoever lists or completes calls it, so anything else would let a
/// component call tools in somebody's name.
pub(super) fn check_source(tools: &[ToolSpec], host_tools: HostTools, source: &Source) -> Result<(), String> {
    if host_tools.get(&source.tool).is_some_and(|tool| tool.lists_values) {
        return Ok(());
    }
    let own = tools.iter().find(|tool| tool.name == source.tool);
    let named = tollgate_core::text::clean(tollgate_core::text::cut(&source.tool, 64));
    let why = match own {
        Some(tool) if tool.effect == Effect::Read => return Ok(()),
        Some(_) => "does not only read",
        None => "is no tool of the pack",
    };
    let allowed = host_tools.listing().collect::<Vec<_>>().join(", ");
    Err(format!(
        "{VALUES}: `{named}` {why}; name a tool of the pack that reads, or one of {allowed}"
    ))
}

/// Prefix of an address, and the path after it: the pack's own, unless the declaration has a
/// scheme that is not the host's.
fn based<'a>(pack: &str, declared: &'a str) -> Result<(String, &'a str), String> {
    let Some((scheme, path)) = declared.split_once("://") else {
        return Ok((format!("{SCHEME}{pack}/"), declared));
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    if !is_scheme || matches!(scheme, "tollgate" | "http" | "https" | "file") {
        return Err(format!("{scheme:?} is no scheme that a pack may use"));
    }
    Ok((format!("{scheme}://"), path))
}

/// A path such as `jobs/{job_id}/bundle.md{?part}`.
fn parse(text: &str) -> Result<(Vec<Segment>, Vec<String>), String> {
    let (path, query) = match text.split_once("{?") {
        None => (text, Vec::new()),
        Some((path, rest)) => {
            let names = rest.strip_suffix('}').ok_or("the names after ? do not end")?;
            (path, names.split(',').map(str::to_owned).collect())
        }
    };
    let segments = path
        .split('/')
        .map(segment)
        .collect::<Result<Vec<Segment>, String>>()?;
    Ok((segments, query))
}

fn segment(text: &str) -> Result<Segment, String> {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let (before, variable, after) = match text.split_once('{') {
        None => (text, None, ""),
        Some((before, rest)) => {
            let (name, after) = rest.split_once('}').ok_or("a { has no }")?;
            (before, Some(name), after)
        }
    };
    if text.is_empty() || !is_plain(before) || !is_plain(after) || !variable.is_none_or(is_plain) {
        return Err(format!("{text:?} is no piece of a path"));
    }
    Ok(Segment {
        before: before.to_owned(),
        variable: variable.map(str::to_owned),
        after: after.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::manifest::Tier;
    use super::*;
    use crate::host_tool::HostTool;

    fn spec(schema: Value) -> ToolSpec {
        ToolSpec {
            name: "job_export".to_owned(),
            title: "Export".to_owned(),
            description: "Export a job.".to_owned(),
            effect: Effect::Read,
            tier: Tier::Core,
            destructive: false,
            idempotent: true,
            open_world: false,
            members: None,
            input_schema: schema.as_object().unwrap().clone(),
            output_schema: Map::new(),
            aliases: Vec::new(),
        }
    }

    fn declaring(path: &str) -> ToolSpec {
        spec(json!({"type": "object",
        "x-resources": [{"path": path, "name": "job", "title": "A job", "description": "It.", "arguments": {"format": "md"}}],
        "properties": {
            "job_id": {"type": "string", "x-values": {"tool": "job_list", "items": "jobs", "value": "id"}},
            "part": {"type": "integer"},
            "format": {"type": "string", "enum": ["md", "json"]},
        }}))
    }

    #[test]
    fn addresses_are_read_and_written() {
        let mut spec = declaring("jobs/{job_id}.md{?part}");
        let declared = take("conductor", &mut spec).unwrap();
        assert!(!Value::Object(spec.input_schema).to_string().contains("x-"));
        assert!(matches!(&declared.values["format"], Values::Words(words) if words.len() == 2));
        assert!(matches!(&declared.values["job_id"], Values::Listed(source) if source.tool == "job_list"));
        let job = &declared.resources[0];
        assert_eq!(job.template(), "tollgate://conductor/jobs/{job_id}.md{?part}");
        let address = job.address("a/b é");
        assert_eq!(address, "tollgate://conductor/jobs/a%2Fb%20%C3%A9.md");
        let arguments = job.arguments(&address).unwrap();
        assert_eq!(
            Value::Object(arguments.clone()),
            json!({"format": "md", "job_id": "a/b é"})
        );
        let next = job.continued(&arguments, "part", &json!(2)).unwrap();
        let asked = job.arguments(&next).unwrap();
        assert_eq!(
            Value::Object(asked),
            json!({"format": "md", "job_id": "a/b é", "part": 2})
        );
        assert_eq!(job.continued(&arguments, "cursor", &json!(2)), None);
        let text = job.arguments("tollgate://conductor/jobs/x.md?part=two").unwrap();
        assert_eq!(text["part"], "two", "the tool says what is wrong with it");
    }

    const HOST_TOOLS: &[HostTool] = &[
        host_tool("ledger_query", false),
        host_tool("envelope_open", false),
        host_tool("envelope_list", true),
    ];

    const fn host_tool(name: &'static str, lists_values: bool) -> HostTool {
        HostTool {
            name,
            spec: || spec(json!({})),
            discovers: false,
            lists_values,
        }
    }

    #[test]
    fn values_are_listed_by_a_reader_of_the_pack_itself() {
        let named = |name: &str, effect: Effect| ToolSpec {
            name: name.to_owned(),
            effect,
            ..spec(json!({}))
        };
        let tools = [named("job_list", Effect::Read), named("job_start", Effect::Run)];
        let check = |tool: &str| {
            let source = json!({"tool": tool, "items": "jobs", "value": "id"});
            check_source(
                &tools,
                HostTools(HOST_TOOLS),
                &serde_json::from_value(source).unwrap(),
            )
        };
        assert_eq!((check("job_list"), check("envelope_list")), (Ok(()), Ok(())));
        for tool in [
            "job_start",
            "task_list",
            "tool_call",
            "ledger_query",
            "envelope_open",
            "",
        ] {
            let why = check(tool).unwrap_err();
            assert!(why.contains(tool) && why.contains("envelope_list"), "{why}");
        }
    }

    #[test]
    fn only_members_inherit() {
        let schema = || json!({"type": "object", "properties": {"workspace": {"type": "string", "x-inherited": true}}});
        let mut batch = ToolSpec {
            members: Some("operations".to_owned()),
            ..spec(schema())
        };
        assert_eq!(take("tasks", &mut batch).unwrap().inherited, ["workspace"]);
        assert!(!Value::Object(batch.input_schema).to_string().contains("x-"));
        assert!(take("tasks", &mut spec(schema())).is_err());
    }

    #[test]
    fn what_is_no_address_of_it_is_none() {
        let declared = take("conductor", &mut declaring("jobs/{job_id}.md{?part}")).unwrap();
        for address in [
            "",
            "tollgate://conductor/jobs/.md",
            "tollgate://conductor/jobs/x.json",
            "tollgate://conductor/jobs/x.md/",
            "tollgate://conductor/jobs/a/b.md",
            "tollgate://conductor/jobs/x.md?part",
            "tollgate://conductor/jobs/x.md?part=",
            "tollgate://conductor/jobs/x.md?part=1&part=2",
            "tollgate://conductor/jobs/x.md?format=json",
            "tollgate://conductor/jobs/%ff.md",
            "tollgate://conductorx/jobs/x.md",
            "file:///etc/passwd",
        ] {
            assert_eq!(declared.resources[0].arguments(address), None, "{address}");
        }
        let long = format!("tollgate://conductor/jobs/{}.md", "x".repeat(MAX_ADDRESS));
        assert_eq!(declared.resources[0].arguments(&long), None);
    }

    #[test]
    fn declarations_that_cannot_be_are_named() {
        for path in [
            "",
            "/x",
            "a//b",
            "{job_id",
            "x{?part",
            "{id}",
            "a b",
            "{job_id}{part}",
        ] {
            let problems = take("conductor", &mut declaring(path)).unwrap_err();
            assert!(
                problems[0].starts_with("tool job_export: x-resources"),
                "{problems:?}"
            );
        }
        let mut writes = declaring("x");
        writes.effect = Effect::Write;
        assert!(take("conductor", &mut writes).is_err());
        let mut nonsense =
            spec(json!({"type": "object", "x-resources": 1, "properties": {"a": {"x-values": []}}}));
        assert_eq!(take("conductor", &mut nonsense).unwrap_err().len(), 2);
    }
}
