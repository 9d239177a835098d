//! A data directory with a story in it, and the console over it: `sample DIR fill`, `sample DIR hostile`, `sample DIR add N`, `sample DIR rows N`,
//! `sample DIR serve PORT`.

#[path = "../tests/story/mod.rs"]
mod story;

use std::path::PathBuf;
use std::sync::Arc;

use tollgate_console::{
    ConsoleDependencies, ConsoleSettings, HostFacts, HostView, PackRow, PolicyRow, Reader,
};
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_store::artifacts::{ArtifactSettings, ArtifactStore};
use tollgate_store::consoles::Consoles;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::Database;

struct Sample;

impl HostView for Sample {
    fn facts(&self) -> HostFacts {
        let policy = |name: &str, mode: &str, summary: &str| PolicyRow {
            name: name.to_owned(),
            mode: mode.to_owned(),
            summary: summary.to_owned(),
            judges: "everything".to_owned(),
            is_loaded: true,
            ..PolicyRow::default()
        };
        HostFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host_id: "hst_sample".to_owned(),
            data_dir: "/var/lib/tollgate".to_owned(),
            hosts: vec!["hst_sample".to_owned()],
            workspaces: vec![("shop".to_owned(), "/home/ada/shop".to_owned())],
            packs: vec![PackRow {
                name: "task-store".to_owned(),
                version: "0.1.0".to_owned(),
                tools: 24,
                source: "builtin".to_owned(),
                sha256: "0".repeat(64),
                summary: "Tasks from spec to completed.".to_owned(),
            }],
            policies: vec![
                policy(
                    "release-freeze",
                    "enforce",
                    "Denies commits while a release is frozen.",
                ),
                policy("secret-scan", "enforce", "Denies arguments that hold secrets."),
                policy(
                    "loop-breaker",
                    "audit",
                    "Denies the call that failed before in the same way.",
                ),
            ],
            ..HostFacts::default()
        }
    }

    fn check(&self) -> Vec<tollgate_console::Finding> {
        Vec::new()
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = PathBuf::from(&args[0]);
    let number = || args.get(2).and_then(|number| number.parse().ok()).unwrap_or(1);
    match args[1].as_str() {
        "fill" => story::Writer::open(&dir).tell_all(),
        "hostile" => story::Writer::open(&dir).tell_hostile(),
        "add" => story::Writer::open(&dir).add_now(number()),
        "rows" => story::Writer::open(&dir).background(14, i64::try_from(number() / 14).unwrap_or(1)),
        "serve" => serve(dir, number()).await,
        other => panic!("{other} is not fill, hostile, add, rows or serve"),
    }
}

#[allow(clippy::print_stdout, reason = "an example tells its address")]
async fn serve(dir: PathBuf, port: usize) {
    let data = DataDir::open(&dir).unwrap();
    let database = Database::open(&data.database()).unwrap();
    let clock = Arc::new(SystemClock);
    let artifacts = ArtifactStore::open(
        &data,
        ArtifactSettings::default(),
        Arc::clone(&clock) as Arc<_>,
        &database,
    )
    .unwrap();
    let dependencies = ConsoleDependencies {
        reader: Reader::new(database, artifacts),
        host: Arc::new(Sample),
        packs: Arc::new(story::jobs::Jobs),
        answering: Arc::new(story::answers::FirstCounts::over(&dir)),
        consoles: Consoles::open(&data).unwrap(),
        clock: Arc::clone(&clock) as Arc<_>,
        settings: tokio::sync::watch::channel(ConsoleSettings::default()).1,
    };
    let app =
        tollgate_console::router(dependencies, None, tokio_util::sync::CancellationToken::new()).unwrap();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap()))
        .await
        .unwrap();
    let token = Consoles::open(&data)
        .unwrap()
        .offer_login(clock.now_ms())
        .unwrap();
    println!("http://{}/console/login#{token}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap();
}
