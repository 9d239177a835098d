use tollgate_core::deadline::Cancel;
use tollgate_sdk::WorkspaceInfo;

use super::*;
use crate::workspaces::{Registration, Workspaces};

fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Workspace>) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("app");
    std::fs::create_dir(&path).unwrap();
    for (name, text) in files {
        std::fs::write(path.join(name), text).unwrap();
    }
    let info = WorkspaceInfo {
        name: "app".to_owned(),
        ..WorkspaceInfo::default()
    };
    let data = place.path().join("data");
    let opened = Workspaces::open(
        [Registration {
            path,
            info,
            git: Default::default(),
        }],
        0o022,
        &data,
    )
    .unwrap();
    let workspace = Arc::clone(opened.get("app").unwrap());
    (place, workspace)
}

fn take(prefetcher: &Prefetcher, app: &Arc<Workspace>, what: &PrefetchRequest) -> Option<Prefetched> {
    let deadline = Deadline::after(Duration::from_secs(60), Cancel::default());
    prefetcher.take(app, what, &deadline)
}

fn read(name: &str) -> PrefetchRequest {
    PrefetchRequest::Read(name.to_owned(), 100)
}

/// Waits until everything that is expected was looked at.
fn settle(prefetcher: &Prefetcher) {
    let shared = prefetcher.0.as_ref().unwrap();
    while !shared.plan().rests {
        std::thread::yield_now();
    }
}

fn text(seen: Option<Prefetched>) -> Option<String> {
    match seen? {
        Prefetched::Read(content) => Some(String::from_utf8(content.unwrap()).unwrap()),
        Prefetched::Listed(entries) => Some(format!("{} entries", entries.unwrap().len())),
        Prefetched::ListedUnless(listing) => Some(match listing.unwrap() {
            Some(listing) => format!("{} entries", listing.entries.len()),
            None => "as it was".to_owned(),
        }),
    }
}

#[test]
fn what_is_expected_is_there_in_its_order() {
    let (_place, app) = workspace(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let mut prefetcher = Prefetcher::default();
    assert!(
        take(&prefetcher, &app, &read("a")).is_none(),
        "nothing was expected"
    );
    prefetcher.expect(
        &app,
        [read("a"), PrefetchRequest::List(".".to_owned(), 2), read("c")].into_iter(),
    );
    prefetcher.expect(&app, [read("b")].into_iter());
    settle(&prefetcher);
    assert_eq!(
        text(take(&prefetcher, &app, &read("b"))).as_deref(),
        Some("2"),
        "the later hint"
    );
    assert!(take(&prefetcher, &app, &read("b")).is_none(), "only once");
    let listed = take(&prefetcher, &app, &PrefetchRequest::List(".".to_owned(), 2));
    assert_eq!(text(listed).as_deref(), Some("2 entries"));
    assert!(
        take(&prefetcher, &app, &read("a")).is_none(),
        "it was passed over"
    );
    assert!(
        take(&prefetcher, &app, &PrefetchRequest::Read("c".to_owned(), 99)).is_none(),
        "another limit"
    );
    assert_eq!(text(take(&prefetcher, &app, &read("c"))).as_deref(), Some("3"));
    assert_eq!(prefetcher.0.as_ref().unwrap().plan().held, 0);
}

#[test]
fn a_listing_under_way_is_waited_for() {
    let (_place, app) = workspace(&[("a", "1")]);
    // Without a thread of its own.
    let shared = Arc::new(Shared::default());
    let prefetcher = Prefetcher(Some(Arc::clone(&shared)));
    let root = || PrefetchRequest::List(".".to_owned(), 2);
    shared.plan().add(&app, root());
    let work = shared.plan().next().unwrap();
    let listed = std::thread::scope(|scope| {
        let asked = scope.spawn(|| text(take(&prefetcher, &app, &root())));
        while !shared.plan().waits && !asked.is_finished() {
            std::thread::yield_now();
        }
        drop(shared.keep(&work.position, work.done(&|| true)));
        asked.join().unwrap()
    });
    assert_eq!(listed.as_deref(), Some("1 entries"));
    // Of a read, both are quicker.
    shared.plan().add(&app, read("a"));
    assert!(shared.plan().next().is_some());
    assert!(take(&prefetcher, &app, &read("a")).is_none());
}

#[test]
fn who_waits_looks_at_what_comes_next() {
    let (_place, app) = workspace(&[("a", "1")]);
    let fingerprint = app.tree.list_unless(".", None, 9).unwrap().unwrap().fingerprint;
    let shared = Arc::new(Shared::default());
    let prefetcher = Prefetcher(Some(Arc::clone(&shared)));
    let root = |known, limit| PrefetchRequest::ListUnless(".".to_owned(), known, limit);
    let next = [
        root(None, 1),
        root(Some(fingerprint), 2),
        root(None, 3),
        read("a"),
    ];
    for what in next.iter().rev().cloned() {
        shared.plan().add(&app, what);
    }
    // What the thread is in the middle of.
    let work = shared.plan().begin(0).unwrap();
    let listed = std::thread::scope(|scope| {
        let asked = scope.spawn(|| text(take(&prefetcher, &app, &next[0])));
        while !shared.plan().waits && !asked.is_finished() {
            std::thread::yield_now();
        }
        let seen = |plan: &Plan| {
            let seen = |expected: &Expected| matches!(expected.state, State::Seen(_));
            plan.expected.iter().map(seen).collect::<Vec<_>>()
        };
        assert_eq!(seen(&shared.plan()), [false, true, true, false], "all listings");
        drop(shared.keep(&work.position, work.done(&|| true)));
        asked.join().unwrap()
    });
    assert_eq!(listed.as_deref(), Some("1 entries"));
    assert_eq!(
        text(take(&prefetcher, &app, &next[1])).as_deref(),
        Some("as it was")
    );
    assert_eq!(
        text(take(&prefetcher, &app, &next[2])).as_deref(),
        Some("1 entries")
    );
}

#[test]
fn errors_are_seen_as_they_would_be() {
    let (_place, app) = workspace(&[]);
    let mut prefetcher = Prefetcher::default();
    prefetcher.expect(&app, [read("../x"), read("missing")].into_iter());
    settle(&prefetcher);
    for (what, wanted) in [("../x", "Denied"), ("missing", "NotFound")] {
        let Some(Prefetched::Read(Err(err))) = take(&prefetcher, &app, &read(what)) else {
            panic!("{what}");
        };
        assert!(format!("{err:?}").starts_with(wanted), "{err:?}");
    }
}

#[test]
fn what_was_read_before_a_change_is_forgotten() {
    let (place, app) = workspace(&[("a", "old")]);
    let mut prefetcher = Prefetcher::default();
    prefetcher.expect(&app, [read("a")].into_iter());
    settle(&prefetcher);
    std::fs::write(place.path().join("app/a"), "new").unwrap();
    prefetcher.forget();
    assert!(take(&prefetcher, &app, &read("a")).is_none());
    prefetcher.expect(&app, [read("a")].into_iter());
    settle(&prefetcher);
    assert_eq!(text(take(&prefetcher, &app, &read("a"))).as_deref(), Some("new"));
}

#[test]
fn only_so_much_is_held() {
    let megabyte = "x".repeat(1 << 20);
    let (_place, app) = workspace(&[("big", &megabyte)]);
    let big = || PrefetchRequest::Read("big".to_owned(), 1 << 20);
    let mut prefetcher = Prefetcher::default();
    prefetcher.expect(
        &app,
        std::iter::repeat_with(big)
            .take(20)
            .collect::<Vec<_>>()
            .into_iter(),
    );
    settle(&prefetcher);
    assert_eq!(prefetcher.0.as_ref().unwrap().plan().held, MAX_HELD);
    let many = (0..2 * MAX_EXPECTED).map(|number| read(&number.to_string()));
    prefetcher.expect(&app, many);
    settle(&prefetcher);
    let plan = prefetcher.0.as_ref().unwrap().plan();
    assert_eq!((plan.expected.len(), plan.held), (MAX_EXPECTED, 0));
    assert_eq!(
        plan.expected.front().unwrap().what,
        read("0"),
        "the last are not kept"
    );
}

#[test]
fn nobody_waits_past_a_deadline() {
    let (_place, app) = workspace(&[("a", "1")]);
    let shared = Arc::new(Shared::default());
    let prefetcher = Prefetcher(Some(Arc::clone(&shared)));
    let root = PrefetchRequest::List(".".to_owned(), 2);
    shared.plan().add(&app, root.clone());
    // Somebody is in the middle of it and never done.
    assert!(shared.plan().next().is_some());
    let started = Instant::now();
    let deadline = Deadline::after(Duration::from_millis(20), Cancel::default());
    let Err(late) = prefetcher.list(&app, ".".to_owned(), 2, &deadline) else {
        panic!("it was listed after its time");
    };
    assert!(matches!(late, WorkspaceError::TooLarge(_)), "{late:?}");
    assert!(started.elapsed() < LISTING_TIMEOUT / 2, "{:?}", started.elapsed());
    let cancel = Cancel::default();
    cancel.cancel();
    let cancelled = Deadline::after(Duration::from_secs(60), cancel);
    assert!(
        prefetcher
            .list_unless(&app, ".".to_owned(), Some(1), 2, &cancelled)
            .is_err()
    );
}
