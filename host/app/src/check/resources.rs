//! Checks of a pack's resources, by reading them, and of its lists of values, by completion.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tollgate_components::catalog::Catalog;
use tollgate_components::tools::Resource;
use tollgate_core::deadline::Cancel;
use tollgate_gate::{Gate, Reply};

use super::arbitrary::Known;
use super::report::{Called, Finding, Report};
use super::scratch;

/// Reads every address and requests every list of values, as a client does.
pub(super) async fn check(gate: &Gate, pack: &str, known: &Known, cancel: &Cancel, report: &mut Report) {
    let catalog = gate.catalog();
    let found = complete(gate, &catalog, pack, cancel, report).await;
    for resource in catalog.resources().iter().filter(|found| found.pack == pack) {
        if cancel.is_cancelled() {
            return;
        }
        match values(resource, &found, known) {
            Ok(values) => read(gate, resource, &resource.filled(&values), cancel, report).await,
            Err(name) => report.untried(Finding::new(
                &resource.template(),
                format!("no call returned a value for {name}, so the address was not read"),
            )),
        }
    }
}

/// Calls each tool that lists values, and returns the first value of each argument.
async fn complete(
    gate: &Gate,
    catalog: &Catalog,
    pack: &str,
    cancel: &Cancel,
    report: &mut Report,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (argument, source) in catalog.value_sources(pack) {
        if cancel.is_cancelled() {
            break;
        }
        let about = format!("completion of {argument}");
        let ended = scratch::call(gate, &source.tool, source.arguments.clone(), cancel).await;
        let Some((result, duration_ms)) = ended.filter(|_| !cancel.is_cancelled()) else {
            continue;
        };
        report.calls.push(Called {
            tool: source.tool.clone(),
            arguments: Value::Object(source.arguments.clone()),
            address: None,
            outcome: result
                .as_ref()
                .map_or_else(|err| err.code.clone(), |_| "ok".to_owned()),
            duration_ms,
        });
        let reply = match &result {
            Ok(reply) => reply.structured(),
            Err(err) => {
                let why = format!(
                    "{} refuses to list values with {}: {}",
                    source.tool, err.code, err.message
                );
                report.problem(
                    Finding::new(&about, why)
                        .remedy("in x-values, set `arguments` to arguments that the tool accepts"),
                );
                continue;
            }
        };
        if !reply.get(&source.items).is_some_and(Value::is_array) {
            let why = format!("the reply of {} has no list {}", source.tool, source.items);
            report.problem(Finding::new(&about, why).remedy("set `items` to a list in the reply"));
            continue;
        }
        let values = source.values(&reply);
        match values.into_iter().next() {
            Some(value) => drop(found.insert(argument.to_owned(), value)),
            None if is_empty(&reply, &source.items) => report.untried(Finding::new(
                &about,
                format!(
                    "the list {} in the reply of {} is empty, so no value was checked",
                    source.items, source.tool
                ),
            )),
            None => {
                let why = format!(
                    "no entry of the list {} in the reply of {} has a string {}",
                    source.items, source.tool, source.value
                );
                report.problem(
                    Finding::new(&about, why).remedy("set `value` to a string member of the entries"),
                );
            }
        }
    }
    found
}

fn is_empty(reply: &Map<String, Value>, items: &str) -> bool {
    reply
        .get(items)
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
}

/// Values for the variables of an address. The error is the name of a variable without values.
fn values(
    resource: &Resource,
    found: &BTreeMap<String, String>,
    known: &Known,
) -> Result<Map<String, Value>, String> {
    let value = |name: &str| {
        let value = found.get(name).map(String::as_str).or_else(|| known.get(name));
        let value = value.ok_or_else(|| name.to_owned())?;
        Ok((name.to_owned(), Value::String(value.to_owned())))
    };
    resource.variables().map(value).collect()
}

async fn read(gate: &Gate, resource: &Resource, address: &str, cancel: &Cancel, report: &mut Report) {
    let Some(arguments) = resource.arguments(address) else {
        let why = "the filled-in address does not match its template".to_owned();
        report.problem(Finding::new(address, why));
        return;
    };
    let ended = scratch::call(gate, &resource.tool, arguments.clone(), cancel).await;
    let Some((result, duration_ms)) = ended.filter(|_| !cancel.is_cancelled()) else {
        return;
    };
    report.calls.push(Called {
        tool: resource.tool.clone(),
        arguments: Value::Object(arguments),
        address: Some(address.to_owned()),
        outcome: result
            .as_ref()
            .map_or_else(|err| err.code.clone(), |_| "ok".to_owned()),
        duration_ms,
    });
    match result {
        Ok(reply) => content(resource, address, &reply)
            .into_iter()
            .for_each(|fault| report.problem(fault)),
        Err(err) => report.untried(Finding::new(
            address,
            format!(
                "reading the address was refused with {}: {}",
                err.code, err.message
            ),
        )),
    }
}

/// Mismatch between a reply and the declaration of its address.
fn content(resource: &Resource, address: &str, reply: &Reply) -> Option<Finding> {
    let structured = reply.structured();
    if let Some(name) = &resource.content {
        let is_text = structured.get(name).is_some_and(Value::is_string);
        return (!is_text).then(|| {
            let why = format!("the reply of {} has no string {name}", resource.tool);
            Finding::new(address, why).remedy("set `content` to a member of the reply that is a string")
        });
    }
    let kind = resource.mime_type.as_deref().unwrap_or("application/json");
    (kind != "application/json" && reply.text.is_none()).then(|| {
        let why = format!(
            "the address is declared as {kind}, but the reply of {} is JSON",
            resource.tool
        );
        Finding::new(address, why).remedy("set `content` to the member of the reply that holds the content")
    })
}
