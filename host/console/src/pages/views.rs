//! Pages of packs: jobs, tasks, milestones and whatever else a pack's tools show. The host knows none of a pack's
//! tables. The tool's schema describes how its reply is shown, and the tool is called through the gate on behalf of the
//! viewer.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::live::query;
use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::address::{Name, nothing};
use crate::answers::Refusal;
use crate::layout::{self, Page};
use crate::structured::{self, Entry};
use crate::views::PackPage;
use crate::visible;

/// First page of the packs.
pub(crate) async fn first(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
) -> Shown {
    let pages = console.packs.pages();
    match pages.iter().find(|page| page.asks.is_empty()) {
        Some(page) => shown(&console, &viewer, &pages, page, raw.as_deref()).await,
        None => none(&console, &viewer).await,
    }
}

/// Page of one tool.
pub(crate) async fn one(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    Name(tool): Name,
    RawQuery(raw): RawQuery,
) -> Shown {
    let pages = console.packs.pages();
    match pages.iter().find(|page| page.tool == tool) {
        Some(page) => shown(&console, &viewer, &pages, page, raw.as_deref()).await,
        None => Ok(nothing(
            "This page does not exist",
            "No pack has a page at this address.",
        )),
    }
}

async fn none(console: &Console, viewer: &Viewer) -> Shown {
    let (_, waiting) = parts::current(console).await?;
    let page = Page {
        title: "Work",
        section: "Work",
        refreshes: false,
        waiting,
        body: html! {
            (layout::title("Work", "Jobs, tasks and plans of packs."))
            section.card {
                (layout::empty("No pack has a page.", "Packs declare with x-views which of their tools have a page."))
            }
        },
    };
    Ok(page.show(&console.access, viewer))
}

async fn shown(
    console: &Console,
    viewer: &Viewer,
    pages: &[PackPage],
    page: &PackPage,
    raw: Option<&str>,
) -> Shown {
    let given = query(raw);
    let (_, waiting) = parts::current(console).await?;
    let body = match arguments(page, &given) {
        Err(missing) => failed(
            page,
            &Refusal {
                code: "MISSING_ARGUMENT".to_owned(),
                message: format!("the address of this page lacks {missing}"),
                remediation: "Start at one of the pages above.".to_owned(),
            },
        ),
        Ok(arguments) => {
            let called = console.packs.call(page, arguments, viewer.identity.clone());
            match called.await {
                Ok(reply) => reply_of(page, &given, &reply),
                Err(refusal) => failed(page, &refusal),
            }
        }
    };
    let shown = Page {
        title: &page.title,
        section: "Work",
        refreshes: false,
        waiting,
        body: html! { (tabs(pages, page)) (siblings(pages, page, &given)) (body) },
    };
    Ok(shown.show(&console.access, viewer))
}

/// Pages that can be opened without arguments.
fn tabs(pages: &[PackPage], chosen: &PackPage) -> Markup {
    html! {
        nav.tabs aria-label="Pages of packs" {
            @for page in pages.iter().filter(|page| page.asks.is_empty()) {
                a href=(format!("/console/views/{}", page.tool)) title=(format!("from the pack {}", visible::short(&page.pack, 60)))
                    aria-current=[(page.pack == chosen.pack).then_some("true")] { (visible::short(&page.title, 40)) }
            }
        }
    }
}

/// Pages of the same pack about the same subject.
fn siblings(pages: &[PackPage], chosen: &PackPage, given: &HashMap<String, String>) -> Markup {
    let is_sibling = |page: &&PackPage| page.pack == chosen.pack && page.asks == chosen.asks;
    let all: Vec<&PackPage> = pages.iter().filter(is_sibling).collect();
    let mut address = url::form_urlencoded::Serializer::new(String::new());
    for name in &chosen.asks {
        address.append_pair(name, given.get(name).map_or("", String::as_str));
    }
    let query = address.finish();
    html! {
        @if all.len() > 1 && !chosen.asks.is_empty() {
            nav.tabs aria-label="Related pages" {
                @for page in all {
                    a href=(format!("/console/views/{}?{query}", page.tool))
                        aria-current=[(page.tool == chosen.tool).then_some("page")] { (visible::short(&page.title, 40)) }
                }
            }
        }
    }
}

/// Arguments of the tool. The error is the argument that the address lacks.
fn arguments(page: &PackPage, given: &HashMap<String, String>) -> Result<Map<String, Value>, String> {
    let mut arguments = page.arguments.clone();
    for name in page.asks.iter().chain(&page.cursors) {
        let Some(text) = given.get(name) else {
            if page.asks.contains(name) {
                return Err(name.clone());
            }
            continue;
        };
        let number = text.parse::<i64>().ok().filter(|_| page.integers.contains(name));
        let value = number.map_or_else(|| Value::from(text.as_str()), Value::from);
        arguments.insert(name.clone(), value);
    }
    Ok(arguments)
}

fn reply_of(page: &PackPage, given: &HashMap<String, String>, reply: &Value) -> Markup {
    let none = Map::new();
    let object = reply.as_object().unwrap_or(&none);
    let own = structured::title_of(object);
    let about = own.map_or_else(String::new, |_| page.title.clone());
    let entries = entries(page, given, object);
    let lists: Vec<&str> = page.items.iter().map(|(list, _)| list.as_str()).collect();
    html! {
        @if own.is_some() && !page.asks.is_empty() { p.crumbs { (visible::line(&about)) } }
        (layout::title(own.filter(|_| !page.asks.is_empty()).unwrap_or(&page.title), ""))
        @if !entries.is_empty() || page.asks.is_empty() {
            section.card aria-label="Entries" {
                @if entries.is_empty() { (layout::empty("Nothing here yet.", "")) }
                @else if page.is_tree { (trees(page, &entries)) }
                @else { (structured::table(&entries, &page.title)) }
                (next(page, given, object))
            }
        }
        (structured::facts(object, &lists))
    }
}

/// A tree for each group.
fn trees(page: &PackPage, entries: &[Entry<'_>]) -> Markup {
    let mut groups: Vec<(String, Vec<Entry<'_>>)> = Vec::new();
    for entry in entries {
        let group = page.group.as_ref().and_then(|name| entry.value.get(name));
        let group = group.and_then(Value::as_str).unwrap_or_default();
        let entry = Entry {
            value: entry.value,
            key: entry.key.clone(),
            href: entry.href.clone(),
        };
        match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, known)) => known.push(entry),
            None => groups.push((group.to_owned(), vec![entry])),
        }
    }
    if page.items.len() > 1 {
        // Levels are separate lists in the reply. Sorting by key puts children after their parents.
        groups.iter_mut().for_each(|(_, entries)| {
            entries.sort_by(|a, b| place(a).cmp(&place(b)));
        });
    }
    html! {
        @for (group, entries) in &groups {
            @if !group.is_empty() { h2 { (visible::short(group, 80)) } }
            (structured::tree(entries, page.group.as_deref()))
        }
    }
}

/// Pieces of a key, so that `M01/S01` sorts after `M01` and before `M01-b`.
fn place<'a>(entry: &'a Entry<'_>) -> Vec<&'a str> {
    entry
        .key
        .as_deref()
        .map_or_else(Vec::new, |key| key.split(['/', '.']).collect())
}

/// Entries of a reply, with their keys and the addresses of their pages.
fn entries<'a>(
    page: &PackPage,
    given: &HashMap<String, String>,
    reply: &'a Map<String, Value>,
) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    for (list, key) in &page.items {
        for value in reply.get(list).and_then(Value::as_array).into_iter().flatten() {
            let key = key.as_ref().and_then(|key| text(value.get(key)?));
            let href = page.opens.as_ref().and_then(|(tool, from)| {
                let mut address = url::form_urlencoded::Serializer::new(String::new());
                for (argument, member) in from {
                    let own = value.get(member).and_then(text);
                    let own = own.or_else(|| key.clone().filter(|_| member == "key"));
                    address.append_pair(argument, &own.or_else(|| given.get(member).cloned())?);
                }
                Some(format!("/console/views/{tool}?{}", address.finish()))
            });
            entries.push(Entry { value, key, href });
        }
    }
    entries
}

/// Link to the rest of a reply, if there is more.
fn next(page: &PackPage, given: &HashMap<String, String>, reply: &Map<String, Value>) -> Markup {
    let found = page.cursors.iter().find_map(|cursor| {
        let value = reply.get(&format!("next_{cursor}")).and_then(text)?;
        let mut address = url::form_urlencoded::Serializer::new(String::new());
        for name in &page.asks {
            address.append_pair(name, given.get(name)?);
        }
        Some(address.append_pair(cursor, &value).finish())
    });
    let goes_on = reply
        .get("has_more")
        .is_none_or(|more| *more == Value::Bool(true));
    html! {
        @if let Some(query) = found.filter(|_| goes_on) {
            nav.pages aria-label="More entries" { a href=(format!("/console/views/{}?{query}", page.tool)) rel="next" { "More" } }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn failed(page: &PackPage, refusal: &Refusal) -> Markup {
    html! {
        (layout::title(&page.title, ""))
        div.notice role="alert" {
            (layout::icon("no"))
            div {
                p { strong { (visible::short(&refusal.code, 60)) } " " (visible::short(&refusal.message, 600)) }
                p { (visible::short(&refusal.remediation, 600)) }
            }
        }
    }
}
