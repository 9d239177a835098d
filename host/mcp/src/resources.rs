//! Resources, which are replies of reading tools under addresses, and completion of the variables in the addresses.
//!
//! Reading a resource calls its tool through the gate, so the same rules apply as for the tool.

use rmcp::RoleServer;
use rmcp::model::{
    CompleteRequestParams, CompletionInfo, ErrorData, InputResponses, ReadResourceResponse,
    ReadResourceResult, Reference, Resource as Listed, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tollgate_components::catalog::Catalog;
use tollgate_components::tools::{Resource, Values};
use tollgate_gate::Reply;
use tollgate_sdk::ToolError;

use super::apps;
use super::handler::Handler;
use super::request::{ClientRequest, Kind, Round};

/// Maximum number of listed resources of one kind.
const MAX_LISTED: usize = 20;
/// Longest text to complete, in bytes.
const MAX_VALUE: usize = 200;

/// Resource templates of a catalog. A resource without a variable is listed as a resource.
pub(super) fn templates(catalog: &Catalog) -> Vec<ResourceTemplate> {
    let with_names = catalog
        .resources()
        .iter()
        .filter(|resource| resource.template().contains('{'));
    let templates = with_names.map(|resource| {
        let template = ResourceTemplate::new(resource.template(), &resource.name)
            .with_title(&resource.title)
            .with_description(&resource.description);
        match &resource.mime_type {
            Some(kind) => template.with_mime_type(kind),
            None => template,
        }
    });
    templates.collect()
}

impl Handler {
    /// Latest resources of each kind that is listed.
    pub(super) async fn resources(&self, context: &RequestContext<RoleServer>) -> Vec<Listed> {
        self.gate.introduced().await;
        let catalog = self.gate.catalog();
        let mut all = Vec::new();
        for resource in catalog.resources().iter().filter(|resource| resource.listed) {
            let variables: Vec<&str> = resource.variables().collect();
            match variables.as_slice() {
                [] => all.push(listed(resource, "")),
                [variable] => {
                    let values = self.values(context, &resource.pack, variable).await;
                    let latest = values.iter().take(MAX_LISTED);
                    all.extend(latest.map(|value| listed(resource, value)));
                }
                _ => {}
            }
        }
        all
    }

    /// Resource at an address.
    pub(super) async fn resource(
        &self,
        address: &str,
        context: &RequestContext<RoleServer>,
        answered: (Option<InputResponses>, Option<String>),
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.gate.introduced().await;
        let catalog = self.gate.catalog();
        if let Some(page) = apps::resource(&catalog, address) {
            return Ok(page.into());
        }
        let found = catalog
            .resources()
            .iter()
            .find_map(|resource| Some((resource, resource.arguments(address)?)));
        let Some((resource, arguments)) = found else {
            return Err(nothing_at(address));
        };
        let client_request = ClientRequest {
            kind: Kind::Tool,
            name: &resource.tool,
            arguments: arguments.clone(),
        };
        let outcome = match self.execute(context, client_request, answered).await? {
            Round::Done(outcome) => outcome,
            Round::Required(required) => return Ok(required.into()),
        };
        let reply = outcome.result.map_err(|refusal| refused(&refusal, address))?;
        let contents = contents(resource, &arguments, address, reply);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    /// Completions of an argument of a prompt or of an address.
    pub(super) async fn completion(
        &self,
        request: &CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CompletionInfo, ErrorData> {
        self.gate.introduced().await;
        let catalog = self.gate.catalog();
        let pack = match &request.r#ref {
            Reference::Prompt(prompt) => catalog
                .find_prompt(&prompt.name)
                .map(|prompt| prompt.pack_name().to_owned()),
            Reference::Resource(reference) => catalog
                .resources()
                .iter()
                .find(|resource| resource.template() == reference.uri)
                .map(|resource| resource.pack.clone()),
            _ => None,
        };
        let Some(pack) = pack else {
            return Err(ErrorData::invalid_params(
                "there is no such prompt or template",
                None,
            ));
        };
        let typed = tollgate_core::text::cut(&request.argument.value, MAX_VALUE).to_lowercase();
        let mut values = self.values(context, &pack, &request.argument.name).await;
        values.retain(|value| value.to_lowercase().contains(&typed));
        // Values that begin with the typed text come before those that merely contain it.
        values.sort_by_key(|value| !value.to_lowercase().starts_with(&typed));
        let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let has_more = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        CompletionInfo::with_pagination(values, Some(total), has_more)
            .map_err(|err| ErrorData::internal_error(err, None))
    }

    /// Values for an argument of a pack's tools, latest first.
    async fn values(&self, context: &RequestContext<RoleServer>, pack: &str, argument: &str) -> Vec<String> {
        match self.gate.catalog().values(pack, argument) {
            None => Vec::new(),
            Some(Values::Words(words)) => words.clone(),
            Some(Values::Listed(source)) => {
                let reply = self
                    .look_up(context, pack, &source.tool, source.arguments.clone())
                    .await;
                // Completion without values is not an error for the user.
                reply.map_or_else(Vec::new, |reply| source.values(&reply.structured()))
            }
        }
    }
}

/// Error for an address without a resource.
pub(super) fn nothing_at(address: &str) -> ErrorData {
    let shown = tollgate_core::text::clean(tollgate_core::text::cut(address, MAX_VALUE));
    let why = format!("there is nothing at {shown}; see the resource templates");
    ErrorData::resource_not_found(why, Some(json!({ "uri": address })))
}

fn listed(resource: &Resource, value: &str) -> Listed {
    let (name, title) = if value.is_empty() {
        (resource.name.clone(), resource.title.clone())
    } else {
        let value = tollgate_core::text::clean(value);
        let title = format!("{}: {value}", resource.title);
        (value, title)
    };
    let listed = Listed::new(resource.address(value), name)
        .with_title(title)
        .with_description(&resource.description);
    match &resource.mime_type {
        Some(kind) => listed.with_mime_type(kind),
        None => listed,
    }
}

/// Content of a resource, with the address of the next part, if there is one.
fn contents(
    resource: &Resource,
    asked: &Map<String, Value>,
    address: &str,
    reply: Reply,
) -> ResourceContents {
    let structured = reply.structured();
    let is_base64 = structured.get("encoding").and_then(Value::as_str) == Some("base64");
    let member = resource
        .content
        .as_ref()
        .and_then(|name| structured.get(name))
        .and_then(Value::as_str);
    let contents = match (member, &resource.mime_type) {
        (Some(bytes), _) if is_base64 => {
            let kind = resource
                .mime_type
                .as_deref()
                .unwrap_or("application/octet-stream");
            ResourceContents::blob(bytes, address).with_mime_type(kind)
        }
        (Some(text), kind) => {
            ResourceContents::text(text, address).with_mime_type(kind.as_deref().unwrap_or("text/plain"))
        }
        (None, Some(kind)) if kind != "application/json" => {
            ResourceContents::text(reply.text.unwrap_or(reply.json), address).with_mime_type(kind)
        }
        (None, _) => ResourceContents::text(reply.json, address).with_mime_type("application/json"),
    };
    let next = structured.iter().find_map(|(name, value)| {
        let name = name.strip_prefix("next_")?;
        resource.continued(asked, name, value)
    });
    match next {
        Some(next) => {
            let meta = Map::from_iter([("tollgate/next_uri".to_owned(), json!(next))]);
            contents.with_meta(rmcp::model::MetaObject(meta))
        }
        None => contents,
    }
}

/// Error for a refused read. Results of reads cannot represent a refusal.
fn refused(refusal: &ToolError, address: &str) -> ErrorData {
    let data = Some(json!({ "error": refusal, "uri": address }));
    let code = refusal.code.as_str();
    let is_missing =
        code.starts_with("UNKNOWN_") || code.ends_with("_NOT_FOUND") || code.ends_with("_EXPIRED");
    if is_missing {
        ErrorData::resource_not_found(refusal.to_string(), data)
    } else {
        ErrorData::invalid_params(refusal.to_string(), data)
    }
}
