//! Login and logout.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use crate::Console;
use crate::access::{Refused, Viewer};
use crate::guard::{self, LOGIN_PATH};
use crate::layout;
use crate::pages::live::query;

/// Serves the form. The script takes a token from the address's fragment, which logs and other pages cannot see.
pub(crate) async fn show(State(console): State<Arc<Console>>, RawQuery(raw): RawQuery) -> Response {
    let query = query(raw.as_deref());
    let wanted = guard::wanted(query.get("to").map_or("", String::as_str));
    page(&console, wanted, None).into_response()
}

/// Login form, which leads to the requested page.
fn page(console: &Console, wanted: &str, said: Option<&str>) -> Markup {
    let body = html! {
        h1 { (layout::icon("gate")) "Tollgate" }
        @if let Some(said) = said { p.refused role="alert" { (said) } }
        form #login method="post" action=(LOGIN_PATH) {
            label for="token" { @if console.access.knows_identities() { "Token" } @else { "One-time token" } }
            input type="hidden" name="to" value=(wanted);
            input #token type="password" name="token" required autocomplete="off" spellcheck="false";
            button.primary type="submit" { "Log in" }
        }
        p.hint {
            "On the machine of the server, " code { "tollgate console" } " prints an address for one login."
            @if console.access.knows_identities() {
                " Viewers named in the configuration paste their own token."
            }
        }
    };
    layout::bare("Log in", &body)
}

/// Exchanges a token for a session's cookie.
pub(crate) async fn log_in(State(console): State<Arc<Console>>, headers: HeaderMap, body: Body) -> Response {
    if !guard::is_from_our_page(&headers) {
        return guard::forbidden("a page of another site sent the form");
    }
    let Some(name) = guard::cookie_name(&headers) else {
        return guard::forbidden("the browser does not say which page sent the form");
    };
    let Some(form) = guard::form(&headers, body).await else {
        return layout::plain(StatusCode::BAD_REQUEST, "Refused", "The form cannot be read.");
    };
    let wanted = guard::wanted(guard::field(&form, "to"));
    match console.access.log_in(guard::field(&form, "token"), &name).await {
        Ok(cookie) => guard::see_other(wanted, Some(guard::set_cookie(&name, Some(&cookie)))),
        Err(Refused::NotAViewer) => {
            let said = "This identity may not view the console. The operator names viewers in server.console.viewers.";
            (StatusCode::FORBIDDEN, page(&console, wanted, Some(said))).into_response()
        }
        Err(Refused::Unknown) => {
            let said =
                "This token is unknown, was used before, or has expired. Run tollgate console for a new one.";
            (StatusCode::FORBIDDEN, page(&console, wanted, Some(said))).into_response()
        }
    }
}

/// Ends the session.
pub(crate) async fn log_out(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let form = guard::form(&headers, body).await.unwrap_or_default();
    if !console
        .access
        .is_form_token(&viewer, "logout", guard::field(&form, "form"))
    {
        return guard::forbidden("the form is not from this session");
    }
    console.access.log_out(&viewer);
    let ended = guard::cookie_name(&headers).map(|name| guard::set_cookie(&name, None));
    guard::see_other(LOGIN_PATH, ended)
}
