//! Every page over a store, empty and full, as browsers and as somebody hostile ask for it.

mod place;
mod story;
mod truth;

use std::sync::Arc;

use axum::http::StatusCode;
use place::{Answer, FORM, OURS, Place, check_headers, check_markup, collect, http_body_frames};
use tokio_util::sync::CancellationToken;
use tollgate_console::{ConsoleSettings, Prove};
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::identity::Identity;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::{Database, OperationFilter};

/// Every page.
const PAGES: [&str; 16] = [
    "/console/",
    "/console/?q=failed%20ada",
    "/console/?q=%3Cimg%20src%3Dx%3E%22",
    "/console/parts",
    "/console/envelopes",
    "/console/envelopes?state=open",
    "/console/approvals",
    "/console/policies",
    "/console/tests",
    "/console/stats?since=14d",
    "/console/views",
    "/console/views/job_list?cursor=100",
    "/console/views/job_get?job_id=JOB-2QZ4",
    "/console/views/job_get?job_id=%3Cimg%20src%3Dx%3E",
    "/console/views/gsd_status",
    "/console/host?check",
];

#[tokio::test]
async fn every_page_is_shown_empty_and_full_and_holds_nothing_that_somebody_else_wrote_as_markup() {
    let place = Place::new();
    let cookie = place.log_in().await;
    for path in PAGES {
        let empty = place.page(&cookie, path).await;
        assert_eq!(empty.status, StatusCode::OK, "{path}: {}", empty.body);
        check_headers(path, &empty.headers);
        check_markup(path, &empty.body);
    }
    let mut writer = place.writer();
    writer.tell_all();
    writer.tell_hostile();
    let rows = place.rows();
    let more: Vec<String> = (1..=rows)
        .rev()
        .step_by(9)
        .chain(rows - 12..=rows)
        .map(|seq| format!("/console/operations/{seq}"))
        .chain([
            "/console/envelopes/env_01m8qk3v7w2r5parser00haqfsf7z".to_owned(),
            "/console/envelopes/env_01m8qk3v7w2%3Cb%3Ehostile%3C%2Fb%3E%22%27".to_owned(),
        ])
        .collect();
    for path in PAGES.into_iter().chain(more.iter().map(String::as_str)) {
        let full = place.page(&cookie, path).await;
        assert_eq!(full.status, StatusCode::OK, "{path}: {}", full.body);
        check_headers(path, &full.headers);
        check_markup(path, &full.body);
    }
    assert_eq!(place.rows(), rows, "looking leaves no row");
}

#[tokio::test]
async fn the_story_is_told() {
    let place = Place::new();
    let cookie = place.log_in().await;
    place.writer().tell_all();
    let told = [
        (
            "/console/",
            &[
                "Deploy to production",
                "oscillates, period 2",
                "parses nested quotes",
                "(6th)",
                "release-freeze denied",
            ][..],
        ),
        (
            "/console/envelopes/env_01m8qk3v7w2r5parser00haqfsf7z",
            &[
                "Edits go in circles.",
                "failed 6 times",
                "6 of 6",
                "TEST_BUDGET_EXHAUSTED",
                "class=\"arc\"",
            ],
        ),
        (
            "/console/approvals",
            &[
                "tollgate approvals allow apv_",
                "task_resolve_approval",
                "Approve S3 of Release 2.4",
                "Run job_start of conductor",
                "builder-7",
            ],
        ),
        (
            "/console/policies",
            &["would have denied", "release-freeze", "936 µs"],
        ),
        ("/console/tests", &["6×", "parses nested quotes", "no progress"]),
        (
            "/console/views",
            &[
                "Release 2.4",
                "class=\"pill info\">EXECUTING",
                "/console/views/job_get?job_id=JOB-2QZ4",
                "/console/views/job_list?cursor=100",
                "Milestones",
            ],
        ),
        (
            "/console/views/job_get?job_id=JOB-2QZ4",
            &["Freeze the branch", "the parser", "Attempts"],
        ),
        ("/console/views/job_get?job_id=JOB-9", &["JOB_NOT_FOUND"]),
        ("/console/views/job_get", &["MISSING_ARGUMENT"]),
        ("/console/views/gsd_status", &["Checkout", "depth-1", "Owner ada"]),
        ("/console/?q=code:frozen", &["git_commit"]),
        ("/console/?q=tool:git_commit%20failed", &["FROZEN"]),
    ];
    for (path, words) in told {
        let page = place.page(&cookie, path).await.body;
        for word in words {
            assert!(page.contains(word), "{path} lacks {word}: {page}");
        }
    }
    let nothing = place.page(&cookie, "/console/?q=tool:nothing").await.body;
    assert!(nothing.contains("No row matches."), "{nothing}");
    for path in [
        "/console/operations/999999",
        "/console/operations/op_x",
        "/console/envelopes/x",
        "/console/nowhere",
        "/console/views/git_push",
    ] {
        let page = place.page(&cookie, path).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        check_headers(path, &page.headers);
    }
}

#[tokio::test]
async fn nobody_gets_in_without_a_session_and_a_token_works_once() {
    let place = Place::new();
    place.writer().tell_all();
    for path in PAGES {
        let page = place
            .page("tollgate_4600=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", path)
            .await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}");
        let wanted: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
        assert_eq!(page.headers["location"], format!("/console/login?to={wanted}"));
        assert!(!page.body.contains("ada"));
        let program = place.ask("GET", path, &[("sec-fetch-dest", "empty")], "").await;
        assert_eq!(program.status, StatusCode::UNAUTHORIZED, "{path}");
        let bearer = place
            .ask(
                "GET",
                path,
                &[("authorization", "Bearer 0123456789abcdef0123456789abcdef")],
                "",
            )
            .await;
        assert_eq!(bearer.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let token = place.token();
    assert_eq!(
        place.post_login(&token, "http://127.0.0.1:1").await.status,
        StatusCode::SEE_OTHER
    );
    assert_eq!(
        place.post_login(&token, "http://127.0.0.1:1").await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        place.post_login("", "http://127.0.0.1:1").await.status,
        StatusCode::FORBIDDEN
    );
    let bearer = place.token();
    let bearer = place
        .ask(
            "GET",
            "/console/",
            &[("authorization", &format!("Bearer {bearer}"))],
            "",
        )
        .await;
    assert_eq!(
        bearer.status,
        StatusCode::UNAUTHORIZED,
        "a token of the login is no bearer token"
    );
}

#[tokio::test]
async fn cookies_are_for_browsers_alone_and_for_this_site_alone() {
    let place = Place::new();
    let cookie = |answer: &Answer| answer.headers["set-cookie"].to_str().unwrap().to_owned();
    let plain = cookie(&place.post_login(&place.token(), "http://127.0.0.1:4600").await);
    assert!(plain.starts_with("tollgate_4600="), "{plain}");
    assert!(
        plain.ends_with("; Path=/console; HttpOnly; SameSite=Strict; Max-Age=28800"),
        "{plain}"
    );
    let tls = cookie(&place.post_login(&place.token(), "https://tollgate.example").await);
    assert!(tls.starts_with("__Host-tollgate="), "{tls}");
    assert!(
        tls.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=28800"),
        "{tls}"
    );
}

#[tokio::test]
async fn the_owner_stays_logged_in_when_the_server_starts_again_and_not_after_logging_out() {
    let mut place = Place::new();
    let (here, gone) = (place.log_in().await, place.log_in().await);
    let page = place.page(&gone, "/console/").await.body;
    let form = page.split("name=\"form\" value=\"").nth(1).unwrap();
    let form = format!("form={}", form.split('"').next().unwrap());
    place
        .ask("POST", "/console/logout", &[FORM, OURS, ("cookie", &gone)], &form)
        .await;
    place.start_again();
    assert_eq!(place.page(&here, "/console/").await.status, StatusCode::OK);
    assert_eq!(place.page(&gone, "/console/").await.status, StatusCode::SEE_OTHER);
    let files = std::fs::read_dir(place.dir.path().join("data/console")).unwrap();
    let secret = here.split('=').nth(1).unwrap();
    for file in files {
        let file = file.unwrap();
        assert!(!file.file_name().to_string_lossy().contains(secret));
        let sessions = file.file_name().to_string_lossy().starts_with("session-");
        if sessions {
            // As if the clock had been set back by a day.
            #[allow(
                clippy::disallowed_methods,
                reason = "the test plays somebody who changes the file"
            )]
            std::fs::write(file.path(), (SystemClock.now_ms() + 86_400_000).to_string()).unwrap();
        }
    }
    place.start_again();
    assert_eq!(
        place.page(&here, "/console/").await.status,
        StatusCode::SEE_OTHER,
        "never longer than eight hours"
    );
}

#[tokio::test]
async fn forged_forms_are_refused_and_leave_no_row() {
    let place = Place::new();
    place.writer().tell_all();
    let rows = place.rows();
    let cookie = place.log_in().await;
    let page = place.page(&cookie, "/console/").await.body;
    let form = page.split("name=\"form\" value=\"").nth(1).unwrap();
    let form = format!("form={}", form.split('"').next().unwrap());
    let mine = ("cookie", cookie.as_str());
    let forged: [(&[(&str, &str)], &str); 7] = [
        (&[FORM, mine], &form),
        (&[FORM, mine, ("sec-fetch-site", "cross-site")], &form),
        (&[FORM, mine, ("sec-fetch-site", "same-site")], &form),
        (&[FORM, mine, OURS, ("sec-fetch-site", "cross-site")], &form),
        (&[FORM, mine, OURS], "form=00"),
        (&[FORM, mine, OURS], ""),
        (&[("content-type", "text/plain"), mine, OURS], &form),
    ];
    for (headers, body) in forged {
        let answer = place.ask("POST", "/console/logout", headers, body).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?}");
        check_headers("logout", &answer.headers);
    }
    let nobody = place.ask("POST", "/console/logout", &[FORM, OURS], &form).await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    let elsewhere = place
        .ask(
            "POST",
            "/console/login",
            &[FORM, ("sec-fetch-site", "cross-site")],
            "token=x",
        )
        .await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
    assert_eq!(
        place.page(&cookie, "/console/").await.status,
        StatusCode::OK,
        "still logged in"
    );
    let other = place.log_in().await;
    let theirs = place
        .ask(
            "POST",
            "/console/logout",
            &[FORM, OURS, ("cookie", &other)],
            &form,
        )
        .await;
    assert_eq!(
        theirs.status,
        StatusCode::FORBIDDEN,
        "the form is another session's"
    );
    let out = place
        .ask("POST", "/console/logout", &[FORM, OURS, mine], &form)
        .await;
    assert_eq!(out.status, StatusCode::SEE_OTHER, "{}", out.body);
    assert_eq!(
        place.page(&cookie, "/console/").await.status,
        StatusCode::SEE_OTHER,
        "logged out"
    );
    assert_eq!(place.rows(), rows);
}

/// The first form of a kind in a page: its address and its token.
fn answer_form(page: &str) -> (String, String) {
    let form = page
        .split("class=\"answer\" method=\"post\" action=\"")
        .nth(1)
        .unwrap();
    let token = form.split("name=\"form\" value=\"").nth(1).unwrap();
    let until = |text: &str| text.split('"').next().unwrap().to_owned();
    (until(form), until(token))
}

#[tokio::test]
async fn a_request_is_answered_once_and_forged_answers_change_nothing() {
    let place = Place::new();
    place.writer().tell_all();
    let (cookie, other) = (place.log_in().await, place.log_in().await);
    let list = place.page(&cookie, "/console/approvals").await.body;
    let (path, token) = answer_form(&list);
    let (_, theirs) = answer_form(&place.page(&other, "/console/approvals").await.body);
    let approve = format!("form={token}&decision=approve&note=after+the+backup%3Cb%3E");
    let mine = ("cookie", cookie.as_str());
    let wrong_token = format!("form={theirs}&decision=approve");
    let forged: [(&[(&str, &str)], &str); 5] = [
        (&[FORM, mine], &approve),
        (&[FORM, mine, ("sec-fetch-site", "cross-site")], &approve),
        (&[FORM, mine, OURS], "decision=approve"),
        (&[FORM, mine, OURS], &wrong_token),
        (&[("content-type", "text/plain"), mine, OURS], &approve),
    ];
    for (headers, body) in forged {
        let answer = place.ask("POST", &path, headers, body).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?} {body}");
    }
    let headers = [FORM, OURS, mine];
    let unsaid = place.ask("POST", &path, &headers, &format!("form={token}")).await;
    assert_eq!(unsaid.status, StatusCode::BAD_REQUEST);
    let elsewhere = place
        .ask("POST", "/console/approvals/apv_x", &headers, &approve)
        .await;
    assert_eq!(
        elsewhere.status,
        StatusCode::FORBIDDEN,
        "the token is for one request"
    );
    assert!(
        place
            .page(&cookie, &path)
            .await
            .body
            .contains("value=\"approve\""),
        "still open"
    );

    let first = place.ask("POST", &path, &headers, &approve).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER, "{}", first.body);
    assert_eq!(first.headers["location"], path.as_str());
    let again = place
        .ask("POST", &path, &headers, &approve.replace("approve", "reject"))
        .await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    for page in [again.body.as_str(), &place.page(&cookie, &path).await.body] {
        for word in ["approved", "by owner", "after the backup&lt;b&gt;"] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(!page.contains("value=\"approve\""), "{page}");
    }
    assert!(again.body.contains("APPROVAL_ANSWERED"), "{}", again.body);
    let left = place.page(&cookie, "/console/approvals").await.body;
    assert_eq!(
        left.matches("class=\"answer\"").count(),
        list.matches("class=\"answer\"").count() - 1
    );
}

#[tokio::test]
async fn viewers_log_in_with_their_own_tokens_until_those_are_revoked() {
    let revoked = CancellationToken::new();
    let revoking = revoked.clone();
    let prove: Prove = Arc::new(move |token: String| {
        let revoked = revoking.clone();
        Box::pin(async move {
            let name = token.strip_prefix("secret-of-")?;
            Some((Identity::for_tests(&format!("token:{name}")), Some(revoked), None))
        })
    });
    let settings = ConsoleSettings {
        enabled: true,
        viewers: vec!["token:grace".to_owned()],
        approvers: vec!["token:linus".to_owned()],
    };
    let place = Place::with(settings, Some(prove));
    let origin = "http://127.0.0.1:4600";
    assert_eq!(
        place.post_login("secret-of-mallory", origin).await.status,
        StatusCode::FORBIDDEN
    );
    let grace = place.post_login("secret-of-grace", origin).await;
    let cookie = grace.headers["set-cookie"]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let approvals = place.page(&cookie, "/console/approvals").await.body;
    assert!(
        approvals.contains("You are a viewer") && approvals.contains("token:grace"),
        "{approvals}"
    );
    let script = |name: &'static str| format!("Bearer secret-of-{name}");
    for (name, status) in [("linus", StatusCode::OK), ("mallory", StatusCode::FORBIDDEN)] {
        let answer = place
            .ask(
                "GET",
                "/console/approvals",
                &[("authorization", &script(name))],
                "",
            )
            .await;
        assert_eq!(answer.status, status, "{name}");
    }
    place.writer().tell_all();
    let seen = place.page(&cookie, "/console/approvals").await.body;
    assert!(!seen.contains("class=\"answer\""), "viewers have no form: {seen}");
    let linus = place.post_login("secret-of-linus", origin).await;
    let linus = linus.headers["set-cookie"].to_str().unwrap();
    let linus = linus.split(';').next().unwrap().to_owned();
    let (path, token) = answer_form(&place.page(&linus, "/console/approvals").await.body);
    let body = format!("form={token}&decision=reject");
    let by_viewer = place
        .ask("POST", &path, &[FORM, OURS, ("cookie", &cookie)], &body)
        .await;
    assert_eq!(by_viewer.status, StatusCode::FORBIDDEN);
    let bearer = script("linus");
    let by_program = place
        .ask("POST", &path, &[FORM, OURS, ("authorization", &bearer)], &body)
        .await;
    assert_eq!(
        by_program.status,
        StatusCode::FORBIDDEN,
        "a token alone is a program"
    );
    let by_linus = place
        .ask("POST", &path, &[FORM, OURS, ("cookie", &linus)], &body)
        .await;
    assert_eq!(by_linus.status, StatusCode::SEE_OTHER, "{}", by_linus.body);
    let page = place.page(&cookie, &path).await.body;
    assert!(
        page.contains("rejected") && page.contains("token:linus<span class=\"sr\">, proven</span>"),
        "{page}"
    );
    // Whoever is named no more is out, or has no form.
    place.settings.send_modify(|settings| {
        settings.viewers.push("token:linus".to_owned());
        settings.approvers.clear();
    });
    let refused = place
        .ask("POST", &path, &[FORM, OURS, ("cookie", &linus)], &body)
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    place.settings.send_modify(|settings| settings.viewers.clear());
    assert_eq!(
        place.page(&linus, "/console/").await.status,
        StatusCode::SEE_OTHER
    );
    place
        .settings
        .send_modify(|settings| settings.viewers.push("token:grace".to_owned()));
    let grace = place.post_login("secret-of-grace", origin).await;
    let cookie = grace.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert_eq!(place.page(&cookie, "/console/").await.status, StatusCode::OK);
    revoked.cancel();
    assert_eq!(
        place.page(&cookie, "/console/").await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn a_session_counts_under_the_name_of_its_cookie_alone() {
    let place = Place::new();
    let status = async |cookie: String| place.page(&cookie, "/console/").await.status;
    let plain = place.log_in().await;
    let value = plain.strip_prefix("tollgate_4600=").unwrap();
    assert_eq!(status(plain.clone()).await, StatusCode::OK);
    for name in ["tollgate_", "tollgate_1", "tollgate", "__Host-tollgate"] {
        assert_eq!(
            status(format!("{name}={value}")).await,
            StatusCode::SEE_OTHER,
            "{name}"
        );
    }
    let bound = place.post_login(&place.token(), "https://tollgate.example").await;
    let bound = bound.headers["set-cookie"].to_str().unwrap();
    assert!(bound.contains("; Path=/; Secure; HttpOnly"), "{bound}");
    let bound = bound.split(';').next().unwrap().to_owned();
    assert!(bound.starts_with("__Host-tollgate="), "{bound}");
    assert_eq!(status(bound.clone()).await, StatusCode::OK);
    // Another host of the domain can set the other name, and nothing else.
    let forged = format!("{plain}; __Host-tollgate={}", "x".repeat(43));
    assert_eq!(status(forged).await, StatusCode::SEE_OTHER);
    let token = format!("token={}", place.token());
    let unsaid = place.ask("POST", "/console/login", &[FORM, OURS], &token).await;
    assert_eq!(unsaid.status, StatusCode::FORBIDDEN, "a login of no known page");
}

#[tokio::test]
async fn a_stream_that_comes_back_has_every_row_once_and_ends_with_the_server() {
    let place = Place::new();
    let mut writer = place.writer();
    writer.tell_all();
    let cookie = place.log_in().await;
    let last = place.rows() - 250;
    let response = place
        .stream(&cookie, "/console/live?after=1", Some(&last.to_string()))
        .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut frames = http_body_frames(response.into_body());
    let mut seen = Vec::new();
    while seen.len() < 250 {
        collect(&frames.next().await.unwrap(), &mut seen);
    }
    writer.add_now(5);
    while seen.len() < 255 {
        collect(&frames.next().await.unwrap(), &mut seen);
    }
    assert_eq!(seen, (last + 1..=last + 255).collect::<Vec<i64>>());
    place.stop.cancel();
    while let Some(more) = frames.next().await {
        assert!(!more.contains("event: rows"), "{more}");
    }
}

#[tokio::test]
async fn parts_that_a_page_is_told_to_ask_for_hold_what_changed() {
    let place = Place::new();
    let mut writer = place.writer();
    let cookie = place.log_in().await;
    let response = place.stream(&cookie, "/console/live?after=0", None).await;
    let mut frames = http_body_frames(response.into_body());
    let parts = async || place.page(&cookie, "/console/parts").await.body;
    while !frames.next().await.unwrap().contains("event: parts") {}
    assert!(parts().await.contains("No envelope yet"));
    writer.tell_all();
    // Parts that were just read anew are the ones that are kept for longest.
    while !parts().await.contains("Deploy to production") {
        tokio::task::yield_now().await;
    }
    writer.tell_hostile();
    let mut seen = Vec::new();
    while seen.last() != Some(&place.rows()) {
        collect(&frames.next().await.unwrap(), &mut seen);
    }
    while !frames.next().await.unwrap().contains("event: parts") {}
    let told = parts().await;
    assert!(told.contains("&lt;img src=x onerror"), "{told}");
}

#[tokio::test]
async fn a_filtered_stream_has_the_rows_that_fit() {
    let place = Place::new();
    place.writer().tell_all();
    let cookie = place.log_in().await;
    let data = DataDir::open(&place.dir.path().join("data")).unwrap();
    let session = Database::open(&data.database()).unwrap().read_session().unwrap();
    let frozen = OperationFilter {
        error_code: Some("FROZEN".to_owned()),
        after: Some(place.rows() - 190),
        ..OperationFilter::default()
    };
    let expected: Vec<i64> = session
        .operations()
        .list(&frozen, 99)
        .unwrap()
        .iter()
        .map(|row| row.seq)
        .collect();
    assert!(!expected.is_empty());
    let path = format!("/console/live?after={}&q=code:frozen", place.rows() - 190);
    let response = place.stream(&cookie, &path, None).await;
    let mut frames = http_body_frames(response.into_body());
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        collect(&frames.next().await.unwrap(), &mut seen);
    }
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn files_are_kept_by_their_hash() {
    let place = Place::new();
    for name in ["console.js", "console.css", "icons.svg"] {
        let path = format!("/console/assets/{name}?x");
        let first = place.ask("GET", &path, &[], "").await;
        assert_eq!(first.status, StatusCode::OK);
        check_headers(&path, &first.headers);
        let tag = first.headers["etag"].to_str().unwrap();
        let again = place.ask("GET", &path, &[("if-none-match", tag)], "").await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
        assert!(
            !first.body.contains("https://") && !first.body.contains("eval("),
            "{name}"
        );
    }
    let script = include_str!("../assets/console.js");
    assert!(script.lines().count() <= 300);
    for sink in [
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "DOMParser",
        "new Function",
        "setTimeout(\"",
    ] {
        assert!(!script.contains(sink), "{sink}");
    }
    assert_eq!(
        place
            .ask("GET", "/console/assets/..%2Flib.rs", &[], "")
            .await
            .status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn sessions_and_streams_end_with_a_token_that_is_over() {
    let ended_ms = SystemClock.now_ms() - 1;
    let prove: Prove = Arc::new(move |token: String| {
        Box::pin(async move {
            let until_ms = (token == "short").then_some(ended_ms);
            Some((Identity::for_tests("token:grace"), None, until_ms))
        })
    });
    let settings = ConsoleSettings {
        enabled: true,
        viewers: vec!["token:grace".to_owned()],
        ..ConsoleSettings::default()
    };
    let place = Place::with(settings, Some(prove));
    for (token, status) in [("long", StatusCode::OK), ("short", StatusCode::SEE_OTHER)] {
        let login = place.post_login(token, "http://127.0.0.1:4600").await;
        assert_eq!(login.status, StatusCode::SEE_OTHER, "{}", login.body);
        let cookie = login.headers["set-cookie"].to_str().unwrap().split(';').next();
        assert_eq!(
            place.page(cookie.unwrap(), "/console/").await.status,
            status,
            "{token}"
        );
    }
    let bearer = [("authorization", "Bearer short")];
    let stream = place.ask("GET", "/console/live", &bearer, "");
    let stream = tokio::time::timeout(std::time::Duration::from_secs(20), stream).await;
    assert_eq!(stream.expect("the stream ends").status, StatusCode::OK);
}
