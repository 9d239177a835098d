//! Console pages that show the replies of `read` tools, declared in a tool's input schema.
//!
//! `x-views` at the root of an input schema says that the tool's reply makes a page, which arguments come from the
//! page's address, which members of the reply hold the entries, and which page an entry opens. Lists of tools do not
//! show the key.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_core::effect::Effect;
use tollgate_core::text;

use super::spec::ToolSpec;

/// Schema keyword that declares the console page of a tool.
pub(super) const VIEWS: &str = "x-views";
/// Most levels of a tree.
const MAX_TREE_LEVELS: usize = 6;

/// Page of the console that shows a tool's reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Title of the page.
    pub title: String,
    /// Form in which the entries are shown.
    pub form: Form,
    /// Members of the reply that hold the entries, one for each level.
    pub items: Vec<Items>,
    /// Member of an entry by which entries are grouped into trees.
    pub group: Option<String>,
    /// Arguments with fixed values.
    pub arguments: Map<String, Value>,
    /// Arguments from the page's address. A page without any is in the console's navigation.
    pub asks: Vec<String>,
    /// Page that an entry opens.
    pub opens: Option<Opens>,
    /// True if clients that render pages show the tool's result as one.
    pub app: bool,
    /// The tool.
    pub tool: String,
    /// Pack of the tool.
    pub pack: String,
}

/// Form of a page's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A table.
    List,
    /// A tree, in which the separators in an entry's key give its depth.
    Tree,
}

/// Entries of one level.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Items {
    /// Member of the reply that is the list.
    pub list: String,
    /// Member of each entry that is its key.
    pub key: Option<String>,
}

/// Page that an entry opens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opens {
    /// Tool whose schema declares the page.
    pub tool: String,
    /// Member of the entry, or argument of this page, for each argument of the other page. `key` is the entry's key.
    pub arguments: BTreeMap<String, String>,
}

/// Page as declared in a schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    title: String,
    form: Form,
    #[serde(default)]
    items: Vec<Items>,
    group: Option<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    asks: Vec<String>,
    opens: Option<Opens>,
    #[serde(default)]
    app: bool,
}

/// Removes a tool's page declaration from its schema and returns it.
pub(super) fn take(pack: &str, spec: &mut ToolSpec) -> Result<Option<View>, String> {
    let Some(declared) = spec.input_schema.remove(VIEWS) else {
        return Ok(None);
    };
    let declared: Declaration = serde_json::from_value(declared).map_err(|err| format!("{VIEWS}: {err}"))?;
    if spec.effect != Effect::Read {
        return Err(format!("{VIEWS}: only `read` tools can have a page"));
    }
    if declared.items.len() > MAX_TREE_LEVELS {
        return Err(format!("{VIEWS}: a tree has at most {MAX_TREE_LEVELS} levels"));
    }
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    let is_argument = |name: &str| properties.is_some_and(|known| known.contains_key(name));
    let named = declared.arguments.keys().chain(&declared.asks);
    if let Some(unknown) = named.clone().find(|name| !is_argument(name)) {
        let unknown = text::clean(text::cut(unknown, 64));
        return Err(format!("{VIEWS}: {unknown} is not an argument of the tool"));
    }
    let required = spec.input_schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.find(|name| !named.clone().any(|known| known == name)) {
        return Err(format!(
            "{VIEWS}: the page has no value for the required argument {missing}; add it to `arguments` or `asks`"
        ));
    }
    Ok(Some(View {
        title: text::clean(text::cut(&declared.title, 60)),
        form: declared.form,
        items: declared.items,
        group: declared.group,
        arguments: declared.arguments,
        asks: declared.asks,
        opens: declared.opens,
        app: declared.app,
        tool: spec.name.clone(),
        pack: pack.to_owned(),
    }))
}

/// Checks that entries open a page of the same pack and supply its arguments.
pub(crate) fn check_opens(pack: &str, tools: &[ToolSpec], view: &View) -> Result<(), String> {
    let Some(opens) = &view.opens else {
        return Ok(());
    };
    let own = tools.iter().find(|tool| tool.name == opens.tool);
    let opened = own.and_then(|tool| take(pack, &mut tool.clone()).ok().flatten());
    let name = text::clean(text::cut(&opens.tool, 64));
    let Some(opened) = opened else {
        return Err(format!("{VIEWS}: `{name}` is not a tool of the pack with a page"));
    };
    match opened
        .asks
        .iter()
        .find(|asked| !opens.arguments.contains_key(*asked))
    {
        Some(missing) => Err(format!(
            "{VIEWS}: the page of `{name}` asks for {missing}; add it to `opens.arguments`"
        )),
        None => Ok(()),
    }
}

impl View {
    /// True if the page is in the console's navigation.
    pub fn is_entrance(&self) -> bool {
        self.asks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests;
    use super::*;

    fn spec(name: &str, view: Value) -> ToolSpec {
        let schema = json!({"type": "object", "required": ["job_id"], "x-views": view,
            "properties": {"job_id": {"type": "string"}, "limit": {"type": "integer"}}});
        ToolSpec {
            name: name.to_owned(),
            title: "Show".to_owned(),
            description: "Show a job.".to_owned(),
            ..tests::spec(schema)
        }
    }

    fn job() -> Value {
        json!({"title": "Job", "form": "tree", "items": [{"list": "steps", "key": "path"}], "asks": ["job_id"]})
    }

    #[test]
    fn a_page_is_taken_out_of_the_schema() {
        let mut tool = spec("job_get", job());
        let view = take("conductor", &mut tool).unwrap().unwrap();
        assert_eq!((view.title.as_str(), view.form), ("Job", Form::Tree));
        assert!(!view.is_entrance());
        assert!(!tool.input_schema.contains_key(VIEWS));
        assert_eq!(take("conductor", &mut tool), Ok(None));
    }

    #[test]
    fn a_page_that_cannot_be_shown_is_refused() {
        for (view, said) in [
            (json!(7), "invalid type"),
            (json!({"title": "Job", "form": "chart"}), "unknown variant"),
            (
                json!({"title": "Job", "form": "list", "asks": ["name"]}),
                "name is not an argument",
            ),
            (
                json!({"title": "Job", "form": "list"}),
                "the required argument job_id",
            ),
        ] {
            let err = take("conductor", &mut spec("job_get", view)).unwrap_err();
            assert!(err.contains(said), "{err}");
        }
        let mut writes = spec("job_get", job());
        writes.effect = Effect::Write;
        assert!(
            take("conductor", &mut writes)
                .unwrap_err()
                .contains("only `read` tools")
        );
    }

    #[test]
    fn an_entry_opens_a_page_of_the_same_pack_with_all_its_arguments() {
        let opens = |tool: &str, arguments: Value| {
            let view = json!({"title": "Jobs", "form": "list", "asks": ["job_id"],
                "opens": {"tool": tool, "arguments": arguments}});
            let mut list = spec("job_list", view);
            let tools = [spec("job_get", job()), list.clone()];
            let view = take("conductor", &mut list).unwrap().unwrap();
            check_opens("conductor", &tools, &view)
        };
        assert_eq!(opens("job_get", json!({"job_id": "id"})), Ok(()));
        assert!(
            opens("job_get", json!({}))
                .unwrap_err()
                .contains("asks for job_id")
        );
        assert!(
            opens("git_push", json!({}))
                .unwrap_err()
                .contains("not a tool of the pack")
        );
    }
}
