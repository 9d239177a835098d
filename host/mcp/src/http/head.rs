//! Size limit for a request's head. The connection's buffer bounds an endless head, but accepts more than the limit if
//! it arrives at once. The size is therefore checked after reading.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::answer;

/// Bytes of a header line in addition to its name and value: a colon, a space, and the line ending.
const LINE_OVERHEAD_BYTES: usize = 4;

/// Refuses a request whose head exceeds the limit.
pub(super) async fn check(State(limit): State<usize>, request: Request, next: Next) -> Response {
    if size(&request) > limit {
        return answer::head_too_large(limit);
    }
    next.run(request).await
}

fn size(request: &Request) -> usize {
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter();
    let lines = lines.map(|(name, value)| name.as_str().len() + value.len() + LINE_OVERHEAD_BYTES);
    target + lines.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn names_values_and_the_target_count() {
        let request = Request::builder()
            .uri("/mcp?x=1")
            .header("a", "12345")
            .header("a", "1");
        let request = request.body(Body::empty()).unwrap();
        assert_eq!(
            size(&request),
            "/mcp?x=1".len() + "a: 12345\r\n".len() + "a: 1\r\n".len()
        );
    }
}
