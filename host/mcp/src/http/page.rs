//! Page for a person who opens the server's address in a browser. MCP clients never request it.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};

use super::MCP_PATH;

/// Returns whether a browser sent the request: it accepts HTML and not an event stream.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepts = |wanted: &str| {
        let accepted = headers.get_all(header::ACCEPT).iter();
        accepted
            .filter_map(|accepted| accepted.to_str().ok())
            .flat_map(|accepted| accepted.split(','))
            .any(|range| {
                let kind = range.split(';').next().unwrap_or_default();
                kind.trim().eq_ignore_ascii_case(wanted)
            })
    };
    accepts("text/html") && !accepts("text/event-stream")
}

/// Serves the page. Its content does not depend on the sender.
pub(super) fn show() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Tollgate</title>\n\
         <h1>Tollgate {version}</h1>\n\
         <p>This address serves MCP, the Model Context Protocol, to programs. There is nothing to see in a browser.</p>\n\
         <p>Point an MCP client at <code>{MCP_PATH}</code> on this host and port (streamable HTTP). \
         <code>/healthz</code> and <code>/readyz</code> report whether the server works.</p>\n\
         <p>Documentation: <code>docs/http.md</code> beside Tollgate's source, and <code>tollgate help</code>.</p>\n</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_browsers_get_a_page() {
        let is_wanted = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            is_wanted(&headers)
        };
        for browser in [
            "text/html",
            "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
            "TEXT/HTML;q=1",
        ] {
            assert!(is_wanted(browser), "{browser}");
        }
        for client in [
            "",
            "*/*",
            "text/event-stream",
            "application/json, text/event-stream",
            "text/event-stream, text/html",
        ] {
            assert!(!is_wanted(client), "{client}");
        }
    }
}
