//! Pages say what is true: who is proven, what changed, what waits, and where nothing is.

use axum::http::StatusCode;

use crate::place::{Place, check_headers, collect, http_body_frames};

#[tokio::test]
async fn a_name_that_is_claimed_is_marked_wherever_names_are() {
    let place = Place::new();
    let cookie = place.log_in().await;
    place.writer().tell_all();
    place.writer().tell_hostile();
    let stats = place.page(&cookie, "/console/stats?since=14d").await.body;
    let callers = &stats[stats.find("By caller").unwrap()..stats.find("By client").unwrap()];
    for row in callers.split("<tr").skip(2) {
        let marks = ["#proven", ">claimed<", "no name recorded"];
        assert!(marks.iter().any(|mark| row.contains(mark)), "{row}");
        let is_claimed = row.contains("who:claimed%3A");
        assert_eq!(is_claimed, row.contains(">claimed<"), "{row}");
    }
}

#[tokio::test]
async fn addresses_that_are_no_text_are_pages_that_do_not_exist() {
    let place = Place::new();
    let cookie = place.log_in().await;
    for path in [
        "envelopes/%ff",
        "approvals/%ff",
        "operations/%ff",
        "views/%ff",
        "%ff",
    ] {
        let path = format!("/console/{path}");
        let answer = place.page(&cookie, &path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(
            answer.body.contains("This page does not exist"),
            "{path}: {}",
            answer.body
        );
        check_headers(&path, &answer.headers);
    }
}

#[tokio::test]
async fn a_head_request_is_led_to_the_login_as_a_get_is() {
    let place = Place::new();
    for method in ["GET", "HEAD"] {
        let answer = place.ask(method, "/console/stats", &[], "").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{method}");
    }
}

#[tokio::test]
async fn pages_before_the_first_row_do_not_say_that_there_is_none() {
    let place = Place::new();
    let cookie = place.log_in().await;
    place.writer().tell_all();
    let page = place.page(&cookie, "/console/?before=-1").await.body;
    assert!(!page.contains("No call has been recorded yet"), "{page}");
    assert!(page.contains("No older row matches"), "{page}");
}

#[tokio::test]
async fn a_stream_goes_on_after_its_page_if_the_browser_names_no_place() {
    let place = Place::new();
    let cookie = place.log_in().await;
    place.writer().tell_all();
    let after = place.rows() - 3;
    for last in ["nonsense", "999999999"] {
        let path = format!("/console/live?after={after}");
        let response = place.stream(&cookie, &path, Some(last)).await;
        let mut frames = http_body_frames(response.into_body());
        let mut seen = Vec::new();
        while seen.len() < 3 {
            collect(&frames.next().await.unwrap(), &mut seen);
        }
        seen.sort_unstable();
        assert_eq!(seen, [after + 1, after + 2, after + 3], "{last}");
    }
}
