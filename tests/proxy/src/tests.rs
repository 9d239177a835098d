use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::{Cut, End, Proxy, Trip};

/// A server that answers each `?` with `abc`, and ignores everything else.
fn server() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for client in accepting.incoming() {
            let mut client = client.unwrap();
            std::thread::spawn(move || {
                let mut byte = [0];
                while client.read_exact(&mut byte).is_ok() {
                    if byte == *b"?" && client.write_all(b"abc").is_err() {
                        return;
                    }
                }
            });
        }
    });
    listener
}

/// Sends a question, and reads until the connection ends or enough bytes have arrived.
fn ask(client: &mut TcpStream, question: &[u8], wanted: u64) -> Vec<u8> {
    client.write_all(question).unwrap();
    let mut said = Vec::new();
    let _ = client.take(wanted).read_to_end(&mut said);
    said
}

fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).unwrap()
}

#[test]
fn a_trip_is_cut_to_the_byte() {
    let listener = server();
    let proxy = Proxy::to(listener.local_addr().unwrap(), b"mark").unwrap();
    let mut client = connect(&proxy);
    assert_eq!(ask(&mut client, b"mark?", 3), b"abc");
    let trip = Trip {
        question: 5,
        answer: 3,
    };
    assert_eq!(proxy.last_trip(), trip);
    for (cut, heard) in [
        (Cut::Question(0), &b""[..]),
        (Cut::Question(4), b""),
        (Cut::Answer(0), b""),
        (Cut::Answer(2), b"ab"),
        (Cut::Answer(3), b"abc"),
    ] {
        let mut client = connect(&proxy);
        proxy.cut_next(cut, End::Closed);
        assert_eq!(
            ask(&mut client, b"?", 3),
            b"abc",
            "a trip without the mark passes"
        );
        assert!(!proxy.was_cut());
        // One byte more than will arrive, so that the read waits for the end.
        assert_eq!(ask(&mut client, b"mark?", 4), heard, "{cut:?}");
        assert!(proxy.was_cut());
        assert_eq!(ask(&mut connect(&proxy), b"mark?", 3), b"abc");
    }
}

#[test]
fn a_half_open_connection_ends_late() {
    let listener = server();
    let proxy = Proxy::to(listener.local_addr().unwrap(), b"").unwrap();
    let time = Duration::from_millis(80);
    let mut client = connect(&proxy);
    proxy.cut_next(Cut::Answer(1), End::Silent(time));
    let since = Instant::now();
    assert_eq!(ask(&mut client, b"?", 3), b"a");
    assert!(since.elapsed() >= time);
}

#[test]
fn bytes_wait_while_they_are_held_and_are_lost_with_their_connection() {
    let listener = server();
    let proxy = Proxy::to(listener.local_addr().unwrap(), b"").unwrap();
    let mut client = connect(&proxy);
    assert_eq!(ask(&mut client, b"?", 3), b"abc");
    proxy.hold();
    client.write_all(b"?").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(client.read(&mut [0]).is_err(), "a held byte came");
    client.set_read_timeout(None).unwrap();
    proxy.release();
    assert_eq!(ask(&mut client, b"", 3), b"abc");
    proxy.hold();
    client.write_all(b"?").unwrap();
    proxy.cut();
    assert_eq!(ask(&mut client, b"", 1), b"");
    proxy.release();
    proxy.delay(Duration::from_millis(30));
    let since = Instant::now();
    assert_eq!(ask(&mut connect(&proxy), b"?", 3), b"abc");
    assert!(since.elapsed() >= Duration::from_millis(60));
}
