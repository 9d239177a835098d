//! Commits whose answer is lost on its way from a PostgreSQL server. Without one there is nothing to try.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::json;

use crate::harness::Place;

/// Message of a commit: a query with its length and its end.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// Nothing is cut.
const OPEN: u8 = 0;
/// The next commit reaches the server, and its answer nobody.
const CUT_AFTER: u8 = 1;
/// The next commit does not reach the server.
const CUT_BEFORE: u8 = 2;

/// A way to a server that can be cut at a commit.
struct Way {
    address: SocketAddr,
    cut: Arc<AtomicU8>,
}

impl Way {
    fn to(server: SocketAddr) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cut = Arc::new(AtomicU8::new(OPEN));
        let seen = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
                let (to_client, from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || carry(from_server, &to_client));
                std::thread::spawn(move || carry_until_cut(client, &server, &seen));
            }
        });
        Way { address, cut }
    }

    fn cut(&self, how: u8) {
        self.cut.store(how, Ordering::SeqCst);
    }

    fn was_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == OPEN
    }
}

fn carry(mut from: TcpStream, mut to: &TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn carry_until_cut(mut from: TcpStream, mut to: &TcpStream, cut: &AtomicU8) {
    let mut piece = [0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let piece = &piece[..length];
        let is_commit = piece.windows(COMMIT.len()).any(|window| window == COMMIT);
        let how = if is_commit {
            cut.swap(OPEN, Ordering::SeqCst)
        } else {
            OPEN
        };
        if how == CUT_AFTER {
            // The answer goes nowhere: whoever asked is gone before.
            let _ = from.shutdown(Shutdown::Both);
        }
        if how == CUT_BEFORE || to.write_all(piece).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Write);
}

async fn each_call_is_done_once(how: u8) {
    let mut place = Place::new();
    let Some(server) = place.server() else { return };
    let way = Way::to(server.address());
    server.go_by(way.address);
    let session = place.serve(&["--tier", "full"]).await;
    let create = |title: &str| json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft", "actor": "ada", "actor_role": "orchestrator"});
    session.ok("task_create", create("before")).await;
    for round in 0..5 {
        way.cut(how);
        session.ok("task_create", create(&format!("cut {round}"))).await;
        assert!(way.was_cut(), "no commit came by");
    }
    session.ok("task_create", create("after")).await;
    session.close().await;
    let titles = place.sql("SELECT title FROM task_store_tasks ORDER BY title");
    assert_eq!(
        titles,
        ["after", "before", "cut 0", "cut 1", "cut 2", "cut 3", "cut 4"]
    );
    assert_eq!(place.ledger(), ["task_create write ok"; 7]);
    let verified = place.run(&["ledger", "verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_found() {
    each_call_is_done_once(CUT_AFTER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_came_is_done_again() {
    each_call_is_done_once(CUT_BEFORE).await;
}
