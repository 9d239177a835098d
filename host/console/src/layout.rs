//! Frame of every page: head, navigation, and small parts that pages share.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};

use crate::access::{Access, Viewer};
use crate::assets::{ICONS, SCRIPT, STYLE};
use crate::visible;
use tollgate_store::storage::claim;

/// Pages of the navigation: name, address, and the key that follows `g`.
pub(crate) const PAGES: [(&str, &str, char); 8] = [
    ("Live", "/console/", 'l'),
    ("Envelopes", "/console/envelopes", 'e'),
    ("Approvals", "/console/approvals", 'a'),
    ("Policies", "/console/policies", 'p'),
    ("Tests", "/console/tests", 't'),
    ("Work", "/console/views", 'w'),
    ("Stats", "/console/stats", 's'),
    ("Host", "/console/host", 'h'),
];

/// A page of the console.
pub(crate) struct Page<'a> {
    /// Its title.
    pub(crate) title: &'a str,
    /// Entry of the navigation that it belongs to.
    pub(crate) section: &'a str,
    /// True if the page reloads itself when there is no script.
    pub(crate) refreshes: bool,
    /// Number of requests that wait for a person.
    pub(crate) waiting: usize,
    /// Content.
    pub(crate) body: Markup,
}

impl Page<'_> {
    /// Renders the page for a viewer.
    pub(crate) fn show(self, access: &Access, viewer: &Viewer) -> Response {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.title, self.refreshes))
                body {
                    a.skip href="#main" { "Skip to content" }
                    header.top {
                        a.brand href="/console/" { (icon("gate")) "Tollgate" }
                        nav aria-label="Pages" {
                            @for (name, href, key) in PAGES {
                                a href=(href) data-key=(key) aria-current=[(name == self.section).then_some("page")] {
                                    (name)
                                    @if name == "Approvals" { (badge(self.waiting)) }
                                }
                            }
                        }
                        div.account {
                            span.name title="logged in as" { (visible::short(viewer.name(), 40)) }
                            span #connection .connection hidden[!self.refreshes] { "" }
                            @if viewer.session.is_some() {
                                form method="post" action="/console/logout" {
                                    input type="hidden" name="form" value=(access.form_token(viewer, "logout"));
                                    button.quiet type="submit" { "Log out" }
                                }
                            }
                        }
                    }
                    main #main tabindex="-1" { (self.body) }
                    footer {
                        span { "Tollgate " (env!("CARGO_PKG_VERSION")) noscript { " · times are UTC" } }
                        span.keys { kbd { "/" } " filter " kbd { "j" } " " kbd { "k" } " rows " kbd { "p" } " pause "
                            kbd { "g" } " then a letter: go to a page " kbd { "?" } " all keys" }
                    }
                    (keys())
                    div #said .sr role="status" aria-live="polite" {}
                }
            }
        };
        page.into_response()
    }
}

/// Number beside Approvals. The element is present even without a number, so that updates can replace it.
pub(crate) fn badge(waiting: usize) -> Markup {
    html! {
        span #waiting-badge .badge data-part hidden[waiting == 0] {
            (waiting) span.sr { " waiting" }
        }
    }
}

fn head(title: &str, refreshes: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (visible::short(title, 80)) " · Tollgate" }
            link rel="icon" type="image/svg+xml" href=(format!("{}#favicon", ICONS.url()));
            link rel="stylesheet" href=(STYLE.url());
            script src=(SCRIPT.url()) defer {}
            @if refreshes {
                noscript { meta http-equiv="refresh" content="5"; }
            }
        }
    }
}

fn keys() -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl {
                dt { kbd { "/" } } dd { "filter the ledger" }
                dt { kbd { "j" } " " kbd { "k" } } dd { "next row, previous row" }
                dt { kbd { "Enter" } } dd { "open the row" }
                dt { kbd { "p" } } dd { "pause and resume" }
                @for (name, _, key) in PAGES {
                    dt { kbd { "g" } " " kbd { (key) } } dd { (name) }
                }
                dt { kbd { "Esc" } } dd { "leave the filter, close this" }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// A page without navigation, for refusals and errors.
pub(crate) fn plain(status: StatusCode, title: &str, text: &str) -> Response {
    (status, bare(title, &html! { h1 { (title) } p { (visible::short(text, 400)) } p { a href="/console/" { "To the console" } } }))
        .into_response()
}

/// A page without navigation.
pub(crate) fn bare(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, false))
            body.bare { main #main { div.card { (body) } } }
        }
    }
}

/// An icon of the sprite. The text beside it says the same.
pub(crate) fn icon(name: &str) -> Markup {
    html! {
        svg.icon aria-hidden="true" width="16" height="16" { use href=(format!("{}#{name}", ICONS.url())) {} }
    }
}

/// A word as a pill. The kind gives its colour: `good`, `bad`, `warn`, `info` or `plain`.
pub(crate) fn pill(kind: &str, text: &str) -> Markup {
    html! { span class=(format!("pill {kind}")) { (text) } }
}

/// A heading of a page with a line below.
pub(crate) fn title(title: &str, about: &str) -> Markup {
    html! {
        div.title {
            h1 { (visible::short(title, 120)) }
            @if !about.is_empty() { p.about { (about) } }
        }
    }
}

/// Text for an empty list, and a hint on how to fill it.
pub(crate) fn empty(text: &str, hint: &str) -> Markup {
    html! {
        div.empty {
            p { (text) }
            @if !hint.is_empty() { p.hint { (hint) } }
        }
    }
}

/// Date and time, for places that show more than recent times.
pub(crate) fn date(timestamp: &str) -> Markup {
    let day = timestamp.get(..10).unwrap_or(timestamp);
    html! { time.long datetime=(timestamp) title=(timestamp) { (day) " " (clock(timestamp).get(..8).unwrap_or_default()) } }
}

/// The time of day of a timestamp, in UTC.
pub(crate) fn clock(timestamp: &str) -> &str {
    timestamp.get(11..23).unwrap_or(timestamp)
}

/// A name, and whether the transport proved it. The mark is an icon, which no name can contain.
pub(crate) fn name(name: &str, is_proven: bool, longest: usize) -> Markup {
    let shown = visible::short(claim(name).unwrap_or(name), longest);
    html! {
        @if is_proven { span title="proven by the transport" { (icon("proven")) } (shown) span.sr { ", proven" } }
        @else { (shown) " " span.pill.plain title="claimed by the caller, not proven" { "claimed" } }
    }
}

/// Text in place of a missing name, styled differently from a name.
pub(crate) fn none(words: &str) -> Markup {
    html! { em.meta { (words) } }
}

/// Beginning of a hash, with the full hash as a tooltip.
pub(crate) fn hash(hash: &str) -> Markup {
    html! { code.hash title=(hash) { (hash.get(..12).unwrap_or(hash)) } }
}

/// Milliseconds for people, with their unit.
pub(crate) fn took(took: f64) -> String {
    if took < 10_000.0 {
        format!("{} ms", ms(took))
    } else {
        ms(took)
    }
}

/// Milliseconds for people, for a column of durations.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 60_000.0 => format!("{:.1} min", ms / 60_000.0),
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1_000.0),
        ms => format!("{ms:.1}"),
    }
}

/// A number with commas between thousands.
pub(crate) fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    if number < 0 { format!("-{shown}") } else { shown }
}
