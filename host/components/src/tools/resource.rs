//! Resource addresses at which the replies of `read` tools can be read.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::spec::ToolSpec;

/// Prefix of every address; the pack's name and a path follow.
const SCHEME: &str = "tollgate://";
/// Longest accepted address, in bytes.
pub(super) const MAX_ADDRESS: usize = 2 << 10;
/// Characters that are escaped in an address.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A resource that can be read at an address.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Name for programs.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description for agents.
    pub description: String,
    /// Media type of the content, if it is always the same.
    pub mime_type: Option<String>,
    /// Member of the reply that holds the content. Default: the reply's text, or the whole reply if it is JSON.
    pub content: Option<String>,
    /// True if the latest resources of this kind are listed beside the template.
    pub listed: bool,
    /// Tool whose reply it is.
    pub tool: String,
    /// Pack of the resource.
    pub pack: String,
    /// Prefix of the address.
    pub(crate) base: String,
    path: Vec<Segment>,
    query: Vec<String>,
    fixed: Map<String, Value>,
    integers: Vec<String>,
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
pub(super) struct Declaration {
    pub(super) path: String,
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

impl Resource {
    pub(super) fn new(pack: &str, spec: &ToolSpec, said: Declaration) -> Result<Resource, String> {
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
            return Err(format!("{unknown} is not an argument of the tool"));
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

    /// URI template of the address, by RFC 6570.
    pub fn template(&self) -> String {
        let path = self.written(|name| format!("{{{name}}}"));
        if self.query.is_empty() {
            path
        } else {
            format!("{path}{{?{}}}", self.query.join(","))
        }
    }

    /// Address with one value for the variable of the path.
    pub fn address(&self, value: &str) -> String {
        self.written(|_| utf8_percent_encode(value, ESCAPED).to_string())
    }

    /// Address with these values in the path.
    pub fn filled(&self, values: &Map<String, Value>) -> String {
        self.written(|name| values.get(name).map(encoded).unwrap_or_default())
    }

    /// Address of the page after a reply to these arguments.
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

    /// Sets an argument from an address, at most once and to a non-empty value.
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

/// Value as written in an address.
fn encoded(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    utf8_percent_encode(&text, ESCAPED).to_string()
}

/// Prefix of an address, and the path after it. The prefix is the pack's own, unless the declaration has a scheme
/// other than the host's.
fn based<'a>(pack: &str, declared: &'a str) -> Result<(String, &'a str), String> {
    let Some((scheme, path)) = declared.split_once("://") else {
        return Ok((format!("{SCHEME}{pack}/"), declared));
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    if !is_scheme || matches!(scheme, "tollgate" | "http" | "https" | "file") {
        return Err(format!("{scheme:?} is not a scheme that a pack may use"));
    }
    Ok((format!("{scheme}://"), path))
}

/// Parses a path such as `jobs/{job_id}/bundle.md{?part}`.
fn parse(text: &str) -> Result<(Vec<Segment>, Vec<String>), String> {
    let (path, query) = match text.split_once("{?") {
        None => (text, Vec::new()),
        Some((path, rest)) => {
            let names = rest.strip_suffix('}').ok_or("`{?` has no matching `}`")?;
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
            let (name, after) = rest.split_once('}').ok_or("a { has no matching }")?;
            (before, Some(name), after)
        }
    };
    if text.is_empty() || !is_plain(before) || !is_plain(after) || !variable.is_none_or(is_plain) {
        return Err(format!("{text:?} is not a valid path segment"));
    }
    Ok(Segment {
        before: before.to_owned(),
        variable: variable.map(str::to_owned),
        after: after.to_owned(),
    })
}
