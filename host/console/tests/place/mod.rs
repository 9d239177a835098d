//! A console over a data directory of its own, and what every answer of it must be.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tollgate_console::{ConsoleDependencies, ConsoleSettings, Finding, HostFacts, HostView, Prove, Reader};
use tollgate_core::clock::{Clock, SystemClock};
use tollgate_store::artifacts::{ArtifactSettings, ArtifactStore};
use tollgate_store::consoles::Consoles;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::Database;
use tower::ServiceExt as _;

use crate::story;
use crate::story::answers::FirstCounts;

pub(crate) struct NoHost;

impl HostView for NoHost {
    fn facts(&self) -> HostFacts {
        HostFacts {
            data_dir: story::HOSTILE[0].to_owned(),
            ..HostFacts::default()
        }
    }

    fn check(&self) -> Vec<Finding> {
        Vec::new()
    }
}

/// A console over a data directory of its own.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    router: Router,
    /// The settings, as a reload changes them.
    pub(crate) settings: watch::Sender<ConsoleSettings>,
    pub(crate) stop: CancellationToken,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::with(ConsoleSettings::default(), None)
    }

    pub(crate) fn with(settings: ConsoleSettings, prove: Option<Prove>) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let (settings, seen) = watch::channel(settings);
        let router = router(dir.path(), seen, prove, &stop);
        Place {
            dir,
            router,
            settings,
            stop,
        }
    }

    pub(crate) fn start_again(&mut self) {
        self.stop = CancellationToken::new();
        self.router = router(self.dir.path(), self.settings.subscribe(), None, &self.stop);
    }

    pub(crate) fn writer(&self) -> story::Writer {
        story::Writer::open(&self.dir.path().join("data"))
    }

    pub(crate) fn rows(&self) -> i64 {
        let data = DataDir::open(&self.dir.path().join("data")).unwrap();
        let session = Database::open(&data.database()).unwrap().read_session().unwrap();
        session.ledger().head().unwrap().seq
    }

    pub(crate) fn token(&self) -> String {
        let data = DataDir::open(&self.dir.path().join("data")).unwrap();
        Consoles::open(&data)
            .unwrap()
            .offer_login(SystemClock.now_ms())
            .unwrap()
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 16 << 20).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Opens a stream of server-sent events, and returns the response while its body is open.
    pub(crate) async fn stream(&self, cookie: &str, path: &str, last: Option<&str>) -> Response {
        let mut request = Request::builder().uri(path).header("cookie", cookie);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let request = request.body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn log_in(&self) -> String {
        let answer = self.post_login(&self.token(), "http://127.0.0.1:4600").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.body);
        let cookie = answer.headers["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) async fn post_login(&self, token: &str, origin: &str) -> Answer {
        let headers = [FORM, OURS, ("origin", origin)];
        self.ask("POST", "/console/login", &headers, &format!("token={token}"))
            .await
    }

    pub(crate) async fn page(&self, cookie: &str, path: &str) -> Answer {
        self.ask("GET", path, &[("cookie", cookie)], "").await
    }
}

pub(crate) fn router(
    dir: &std::path::Path,
    settings: watch::Receiver<ConsoleSettings>,
    prove: Option<Prove>,
    stop: &CancellationToken,
) -> Router {
    let data = DataDir::open(&dir.join("data")).unwrap();
    let database = Database::open(&data.database()).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    data.private_dir("artifacts").unwrap();
    let artifacts =
        ArtifactStore::open(&data, ArtifactSettings::default(), Arc::clone(&clock), &database).unwrap();
    let dependencies = ConsoleDependencies {
        reader: Reader::new(database, artifacts),
        host: Arc::new(NoHost),
        packs: Arc::new(story::jobs::Jobs),
        answering: Arc::new(FirstCounts::over(&dir.join("data"))),
        consoles: Consoles::open(&data).unwrap(),
        clock,
        settings,
    };
    tollgate_console::router(dependencies, prove, stop.clone()).unwrap()
}

pub(crate) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub(crate) const OURS: (&str, &str) = ("sec-fetch-site", "same-origin");

pub(crate) fn check_headers(path: &str, headers: &HeaderMap) {
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
        "{path}: {policy}"
    );
    assert!(
        !policy.contains("unsafe") && policy.contains("require-trusted-types-for 'script'"),
        "{path}: {policy}"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(headers[name], value, "{path}");
    }
    if !path.contains("/assets/") {
        assert_eq!(headers["cache-control"], "no-store", "{path}");
    }
}

/// Nothing in a page is markup that somebody else wrote, and nothing comes from elsewhere.
pub(crate) fn check_markup(path: &str, page: &str) {
    for tag in [
        "<img",
        "<svg/",
        "<script>",
        "<b>host",
        "javascript:",
        " onerror",
        " onload",
        " style=",
    ] {
        let harmless = page.replace("&lt;", "").replace("title=\"", "");
        let found = harmless
            .match_indices(tag)
            .find(|(at, _)| is_markup(&harmless, *at));
        assert!(
            found.is_none(),
            "{path}: {tag} in …{}…",
            &harmless[found.unwrap().0.saturating_sub(80)..][..160]
        );
    }
    for c in page.chars() {
        assert!(
            c == '\n' || c == '\t' || !tollgate_core::text::is_hidden(c),
            "{path}: U+{:04X}",
            u32::from(c)
        );
    }
    for attribute in ["src=\"", "href=\"", "action=\""] {
        for (at, _) in page.match_indices(attribute) {
            let value = &page[at + attribute.len()..];
            let is_ours = value.starts_with("/console/") || value.starts_with('#');
            assert!(is_ours, "{path}: {attribute}{}", &value[..value.len().min(60)]);
        }
    }
}

/// True if a place is in a tag, outside of quoted values, or begins one.
pub(crate) fn is_markup(page: &str, at: usize) -> bool {
    if page[at..].starts_with('<') {
        return true;
    }
    let before = &page[..at];
    let (open, close) = (before.rfind('<'), before.rfind('>'));
    let is_in_tag = open.is_some_and(|open| close.is_none_or(|close| close < open));
    is_in_tag && before[open.unwrap_or(0)..].matches('"').count().is_multiple_of(2)
}

/// Places of the rows in a message.
pub(crate) fn collect(frame: &str, seen: &mut Vec<i64>) {
    for data in frame.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let rows: serde_json::Value = serde_json::from_str(data).unwrap();
        seen.extend(
            rows.as_array()
                .into_iter()
                .flatten()
                .map(|row| row["seq"].as_i64().unwrap()),
        );
    }
}

pub(crate) struct Frames(axum::body::BodyDataStream);

pub(crate) fn http_body_frames(body: Body) -> Frames {
    Frames(body.into_data_stream())
}

impl Frames {
    pub(crate) async fn next(&mut self) -> Option<String> {
        use futures::StreamExt as _;
        let wait = std::time::Duration::from_secs(20);
        let frame = tokio::time::timeout(wait, self.0.next()).await.unwrap()?;
        Some(String::from_utf8(frame.unwrap().to_vec()).unwrap())
    }
}
