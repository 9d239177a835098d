//! Page of the host: version, data directory, packs, head of the chain, and findings of the doctor.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use maud::{Markup, html};
use tollgate_store::storage::Head;

use super::live::query;
use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::host::{Finding, HostFacts, Severity};
use crate::layout::{self, Page, pill};
use crate::visible;

/// Serves the page. With `check` in its address, the doctor first verifies the whole chain.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    RawQuery(raw): RawQuery,
) -> Shown {
    let wants_check = query(raw.as_deref()).contains_key("check");
    let (_, waiting) = parts::current(&console).await?;
    let (head, oldest, pruned) = console
        .reader
        .read(|session| {
            Ok((
                session.ledger().head()?,
                session.operations().oldest()?,
                session.ledger().pruned_rows()?,
            ))
        })
        .await?;
    let host = Arc::clone(&console.host);
    let looked = tokio::task::spawn_blocking(move || (host.facts(), wants_check.then(|| host.check())));
    let (facts, checked) = looked.await.unwrap_or_default();
    let page = Page {
        title: "Host",
        section: "Host",
        refreshes: false,
        waiting,
        body: html! {
            (layout::title("Host", "This server and its data directory. The configuration is changed in its file, never here."))
            div.columns.even {
                (place(&facts))
                (chain(&head, oldest, pruned))
            }
            (doctor(&facts, checked.as_deref()))
            (packs(&facts))
        },
    };
    Ok(page.show(&console.access, &viewer))
}

fn place(facts: &HostFacts) -> Markup {
    html! {
        section.card aria-labelledby="place-title" {
            header { h2 #place-title { "Place" } }
            dl.facts {
                dt { "Version" } dd { (visible::line(&facts.version)) }
                dt { "Data" } dd { code { (visible::line(&facts.data_dir)) } }
                dt { "Configuration" } dd { code { (facts.configuration.as_deref().map_or_else(|| "defaults".to_owned(), visible::line)) } }
                dt { "Database" } dd { (layout::number(i64::try_from(facts.database_bytes >> 10).unwrap_or(i64::MAX))) " KiB" }
                dt { "Hosts" } dd { (facts.hosts.len()) " at work" @for host in &facts.hosts { br; code { (visible::line(host)) } @if *host == facts.host_id { " this one" } } }
                @for (name, path) in &facts.workspaces { dt { "Workspace" } dd { strong { (visible::line(name)) } " " code { (visible::line(path)) } } }
            }
        }
    }
}

fn chain(head: &Head, oldest: Option<i64>, pruned: i64) -> Markup {
    html! {
        section.card aria-labelledby="chain-title" {
            header { h2 #chain-title { "Chain" } }
            @if head.seq == 0 { (layout::empty("The ledger is empty.", "The first call adds the first row.")) }
            @else {
                dl.facts {
                    dt { "Head" } dd { a href=(format!("/console/operations/{}", head.seq)) { "#" (layout::number(head.seq)) } }
                    dt { "Hash" } dd { code { (head.hash) } }
                    dt { "Oldest row" } dd { @match oldest { Some(oldest) => a href=(format!("/console/operations/{oldest}")) { "#" (layout::number(oldest)) }, None => "none" } }
                    dt { "Pruned rows" } dd { (layout::number(pruned)) }
                }
            }
            p { a.button href="/console/host?check#doctor-title" { "Verify the ledger" } }
            p.hint { "Keep a signed head somewhere else: " code { "tollgate ledger export --sign --head-only" } }
        }
    }
}

fn doctor(facts: &HostFacts, checked: Option<&[Finding]>) -> Markup {
    html! {
        section.card aria-labelledby="doctor-title" {
            header { h2 #doctor-title { "Doctor" } }
            ul.findings {
                @for finding in checked.unwrap_or_default().iter().chain(&facts.findings) { (line(finding)) }
            }
            @if facts.findings.is_empty() && checked.is_none() { (layout::empty("No problem with packs and policies.", "Verify the ledger to check the database, too.")) }
            p.hint { code { "tollgate doctor" } " checks everything." }
        }
    }
}

fn line(finding: &Finding) -> Markup {
    let (kind, word) = match finding.severity {
        Severity::Ok => ("good", "ok"),
        Severity::Note => ("info", "note"),
        Severity::Warning => ("warn", "warning"),
        Severity::Problem => ("bad", "problem"),
    };
    html! {
        li {
            (pill(kind, word)) " " strong { (visible::short(&finding.about, 60)) } " " (visible::short(&finding.what, 600))
            @if let Some(remedy) = &finding.remedy { div.meta { "→ " (visible::short(remedy, 400)) } }
        }
    }
}

fn packs(facts: &HostFacts) -> Markup {
    html! {
        section.card aria-labelledby="packs-title" {
            header { h2 #packs-title { "Packs" } span.count { (facts.packs.len()) } }
            @if facts.packs.is_empty() { (layout::empty("No pack is loaded.", "tollgate packs list shows them.")) }
            @else {
                div.scroll { table.figures {
                    thead { tr { th scope="col" { "Pack" } th scope="col" { "Version" } th.ms scope="col" { "Tools" } th scope="col" { "Source" } th scope="col" { "SHA-256" } } }
                    tbody { @for pack in &facts.packs {
                        tr {
                            th scope="row" { (visible::short(&pack.name, 60)) small.note { (visible::short(&pack.summary, 160)) } }
                            td { (visible::short(&pack.version, 24)) }
                            td.ms { (pack.tools) }
                            td { (visible::short(&pack.source, 80)) }
                            td { (layout::hash(&pack.sha256)) }
                        }
                    } }
                } }
            }
        }
    }
}
