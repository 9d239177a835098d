//! Access check for every page: a session cookie or a token, and for forms also a same-origin request.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::access::{Refused, SESSION_MS, Viewer};
use crate::layout;
use crate::{CONSOLE_PATH, Console};

/// Longest form in bytes.
const MAX_FORM_BYTES: usize = 16 << 10;
/// Longest address of a page that the login leads to, in bytes.
const MAX_ADDRESS_BYTES: usize = 2 << 10;
/// Name of a cookie that only this host can set, and only behind TLS.
const HOST_COOKIE: &str = "__Host-tollgate";
/// Path of the page that logs in.
pub(crate) const LOGIN_PATH: &str = "/console/login";

/// Admits viewers. Redirects others to the login, or refuses them.
pub(crate) async fn admit(State(console): State<Arc<Console>>, mut request: Request, next: Next) -> Response {
    let viewer = match viewer(&console, request.headers()).await {
        Ok(viewer) => viewer,
        Err(Refused::NotAViewer) => return forbidden("this identity may not view the console"),
        Err(Refused::Unknown) => return unknown(&request),
    };
    let is_form = request.method() == Method::POST;
    if is_form && viewer.session.is_some() && !is_from_our_page(request.headers()) {
        return forbidden("a page of another site sent the form");
    }
    request.extensions_mut().insert(viewer);
    next.run(request).await
}

async fn viewer(console: &Console, headers: &HeaderMap) -> Result<Viewer, Refused> {
    let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some((scheme, token)) = authorization.and_then(|value| value.split_once(' ')) {
        return match scheme.eq_ignore_ascii_case("bearer") {
            true => console.access.by_token(token.trim()).await,
            false => Err(Refused::Unknown),
        };
    }
    let found = cookies(headers)
        .into_iter()
        .find_map(|(name, value)| console.access.by_cookie(name, value));
    found.ok_or(Refused::Unknown)
}

/// Cookies that may belong to a session, each with its name. Other hosts of a domain can set the other names, so those
/// count only if there is no cookie bound to this host. A session is valid only under the name that it was set with.
fn cookies(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let all = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let ours = all.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        let is_ours = name == HOST_COOKIE || name.starts_with("tollgate_");
        (is_ours && (20..=64).contains(&value.len())).then_some((name, value))
    });
    let mut found: Vec<(&str, &str)> = ours.collect();
    if found.iter().any(|(name, _)| *name == HOST_COOKIE) {
        found.retain(|(name, _)| *name == HOST_COOKIE);
    }
    found
}

/// Returns whether the browser reports that one of our own pages sent the request. Scripts cannot set this header.
pub(crate) fn is_from_our_page(headers: &HeaderMap) -> bool {
    let mut said = headers.get_all("sec-fetch-site").iter();
    matches!((said.next(), said.next()), (Some(site), None) if site == "same-origin")
}

/// Name of a session's cookie, by the origin of the login page. Behind TLS the cookie is bound to the host. On loopback
/// the name contains the port, because cookies of one host are shared by all ports. Browsers send the origin with every
/// form.
pub(crate) fn cookie_name(headers: &HeaderMap) -> Option<String> {
    let origin = headers.get(ORIGIN)?.to_str().ok()?;
    if origin.starts_with("https://") {
        return Some(HOST_COOKIE.to_owned());
    }
    let authority = origin.strip_prefix("http://")?;
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let port = if port.bytes().all(|byte| byte.is_ascii_digit()) {
        port
    } else {
        ""
    };
    Some(format!("tollgate_{port}"))
}

/// Header that sets a session's cookie, or removes it if there is no value.
pub(crate) fn set_cookie(name: &str, value: Option<&str>) -> HeaderValue {
    let age = value.map_or(0, |_| SESSION_MS / 1_000);
    let value = value.unwrap_or_default();
    // Browsers accept a host-bound cookie only with the path `/`.
    let scope = if name == HOST_COOKIE {
        "/; Secure"
    } else {
        "/console"
    };
    let text = format!("{name}={value}; Path={scope}; HttpOnly; SameSite=Strict; Max-Age={age}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("tollgate_=; Max-Age=0"))
}

/// A redirection after a form, with a cookie if one changes.
pub(crate) fn see_other(path: &str, cookie: Option<HeaderValue>) -> Response {
    let mut response = (
        StatusCode::SEE_OTHER,
        [(
            LOCATION,
            HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/console/")),
        )],
    )
        .into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Page that was requested before the login, if it is one of the console's.
pub(crate) fn wanted(address: &str) -> &str {
    let is_ours = address.starts_with(CONSOLE_PATH)
        && address.len() <= MAX_ADDRESS_BYTES
        && address.bytes().all(|byte| byte.is_ascii_graphic());
    if is_ours { address } else { CONSOLE_PATH }
}

/// Fields of a form. `None` if the body is not a form, is too long, or did not arrive in time.
pub(crate) async fn form(headers: &HeaderMap, body: Body) -> Option<Vec<(String, String)>> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return None;
    }
    let reading = tokio::time::timeout(std::time::Duration::from_secs(10), to_bytes(body, MAX_FORM_BYTES));
    let bytes = reading.await.ok()?.ok()?;
    Some(url::form_urlencoded::parse(&bytes).into_owned().collect())
}

/// A field of a form.
pub(crate) fn field<'a>(form: &'a [(String, String)], name: &str) -> &'a str {
    form.iter()
        .find(|(known, _)| known == name)
        .map_or("", |(_, value)| value.as_str())
}

/// Response without a valid login: a redirect to the login for a person, an error for a program.
fn unknown(request: &Request) -> Response {
    let wants_page = matches!(*request.method(), Method::GET | Method::HEAD)
        && request
            .headers()
            .get("sec-fetch-dest")
            .is_none_or(|dest| dest == "document")
        && !request.headers().contains_key(AUTHORIZATION);
    if wants_page {
        let wanted = request
            .uri()
            .path_and_query()
            .map_or(CONSOLE_PATH, |wanted| wanted.as_str());
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("to", wanted);
        return see_other(&format!("{LOGIN_PATH}?{}", query.finish()), None);
    }
    let mut response = layout::plain(
        StatusCode::UNAUTHORIZED,
        "You are not logged in",
        "Run tollgate console on the machine of the server, and open the address that it prints.",
    );
    response.headers_mut().insert(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"tollgate\""),
    );
    response
}

/// Refusal that another login would not change.
pub(crate) fn forbidden(why: &str) -> Response {
    tracing::debug!(why, "a request of the console is refused");
    layout::plain(StatusCode::FORBIDDEN, "Refused", why)
}
