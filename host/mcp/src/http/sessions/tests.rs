//! Tests of sessions and their owners.

use super::*;

/// Starts a session for an identity, if there is a place.
async fn begin(sessions: &Sessions, name: &str) -> Option<SessionId> {
    let session_slot = sessions.session_slot(&Share::named(name)).await?;
    let begun = Sessions::serving(None, Some(session_slot), sessions.create_session()).await;
    let (id, transport) = begun.unwrap();
    drop(transport);
    Some(id)
}

#[tokio::test]
async fn calls_that_a_client_left_behind_are_given_up_unless_it_comes_back() {
    let sessions = Arc::new(Sessions::new(2, Duration::from_secs(60)));
    let id = begin(&sessions, "a").await.unwrap();
    let call = sessions.use_by(&id, None, Use::Call).unwrap();
    let given_up = call.given_up();
    drop(call);
    let listens = sessions.use_by(&id, None, Use::Stream).unwrap();
    sessions.await_comeback(&id, Duration::ZERO).await;
    assert!(!given_up.is_cancelled(), "it listens still");
    drop(listens);
    sessions.await_comeback(&id, Duration::ZERO).await;
    assert!(given_up.is_cancelled(), "nobody is there");
    let next = sessions.use_by(&id, None, Use::Call).unwrap().given_up();
    assert!(!next.is_cancelled(), "who comes later begins anew");
    sessions.close_session(&id).await.unwrap();
    assert!(next.is_cancelled(), "the session is over");
}

fn counts(sessions: &Sessions) -> [usize; 3] {
    let slot_counts = lock(&sessions.slot_counts);
    ["a", "b", "c"].map(|name| slot_counts.get(&Share::named(name)).copied().unwrap_or_default())
}

#[tokio::test]
async fn a_newcomer_gets_a_place_of_the_one_that_has_most() {
    let sessions = Arc::new(Sessions::new(6, Duration::from_secs(60)));
    for _ in 0..6 {
        assert!(begin(&sessions, "a").await.is_some());
    }
    assert!(
        begin(&sessions, "a").await.is_none(),
        "nobody makes room for itself"
    );
    for _ in 0..9 {
        begin(&sessions, "b").await;
        begin(&sessions, "a").await;
    }
    assert_eq!(
        counts(&sessions),
        [3, 3, 0],
        "they come to have the same, and stay so"
    );
    assert!(begin(&sessions, "c").await.is_some());
    assert!(begin(&sessions, "c").await.is_some());
    assert!(begin(&sessions, "c").await.is_none());
    assert_eq!(counts(&sessions), [2, 2, 2]);
    assert_eq!(sessions.owned().len(), 6);
}

#[tokio::test]
async fn an_identity_with_one_session_is_pushed_out_by_nobody() {
    let sessions = Arc::new(Sessions::new(4, Duration::from_secs(60)));
    let his = begin(&sessions, "b").await.unwrap();
    for _ in 0..3 {
        assert!(begin(&sessions, "a").await.is_some());
    }
    // `a` has more sessions than `b`, so only those of `a` are ended, although that of `b` was idle for longest.
    for name in ["a", "c", "a", "d", "a", "e", "a", "c"] {
        begin(&sessions, name).await;
        assert!(sessions.owned().contains_key(&his), "{name}");
    }
    assert_eq!(counts(&sessions), [1, 1, 1], "one each, and one of d");
}

#[tokio::test]
async fn the_session_that_was_idle_for_longest_goes_and_one_that_works_stays() {
    let sessions = Arc::new(Sessions::new(3, Duration::from_secs(60)));
    let works = begin(&sessions, "a").await.unwrap();
    let listens = begin(&sessions, "a").await.unwrap();
    let idle = begin(&sessions, "a").await.unwrap();
    let _call = sessions.use_by(&works, None, Use::Call).unwrap();
    let _stream = sessions.use_by(&listens, None, Use::Stream).unwrap();
    let left = |sessions: &Sessions| {
        let owned = sessions.owned();
        [&works, &listens, &idle].map(|id| owned.contains_key(id))
    };
    assert!(begin(&sessions, "b").await.is_some());
    assert_eq!(left(&sessions), [true, true, false]);
    assert!(begin(&sessions, "c").await.is_some());
    assert_eq!(left(&sessions), [true, false, false]);
    assert!(begin(&sessions, "d").await.is_none());
    assert_eq!(left(&sessions), [true, false, false]);
}

#[tokio::test]
async fn sessions_that_all_work_are_no_way_to_keep_others_out() {
    let sessions = Arc::new(Sessions::new(4, Duration::from_secs(60)));
    let mut calls = Vec::new();
    for _ in 0..4 {
        let id = begin(&sessions, "a").await.unwrap();
        calls.push(sessions.use_by(&id, None, Use::Call).unwrap());
    }
    assert!(begin(&sessions, "b").await.is_some());
    assert!(begin(&sessions, "b").await.is_some());
    assert_eq!(counts(&sessions), [2, 2, 0]);
}
