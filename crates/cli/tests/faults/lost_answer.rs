//! A test in which PostgreSQL's answer is lost after the commit: the data is committed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::fixture::FaultedServer;
use crate::scenarios::UploadScenario;

/// A proxy between a server and PostgreSQL, which runs until the test's process ends. When armed,
/// it passes the next statement that names the function, waits for the answer, and hangs up
/// instead of passing the answer.
struct PostgresWire {
    port: u16,
    is_armed: Arc<AtomicBool>,
}

const FUNCTION: &[u8] = b"warren.replace_blob";

impl PostgresWire {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self { port: listener.local_addr().unwrap().port(), is_armed: Arc::default() };
        let is_armed = Arc::clone(&wire.is_armed);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, is_armed) = (client.unwrap(), Arc::clone(&is_armed));
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                thread::spawn(move || carry(&client, &server, &is_armed));
            }
        });
        wire
    }

    fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }

    fn has_cut(&self) -> bool {
        !self.is_armed.load(Ordering::SeqCst)
    }
}

/// Passes bytes both ways until an end hangs up, or until an answer must be lost.
fn carry(client: &TcpStream, server: &TcpStream, is_armed: &AtomicBool) {
    let is_cut = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pass(client, server, |bytes| {
                let names = bytes.windows(FUNCTION.len()).any(|window| window == FUNCTION);
                if names && is_armed.swap(false, Ordering::SeqCst) {
                    is_cut.store(true, Ordering::SeqCst);
                }
                true
            });
        });
        // The answer has arrived, so the commit is done; the server never receives it.
        pass(server, client, |_| !is_cut.load(Ordering::SeqCst));
    });
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        drop(end.shutdown(Shutdown::Both));
    }
}

#[test]
fn a_budgets_file_survives_an_answer_that_is_lost_after_the_commit() {
    let lab = postgres_lab::PostgresServer::start_temporary(&[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let port = lab.config().get_ports()[0];
    let wire = PostgresWire::to(port);
    let url = lab.url("postgres").replace(&format!(":{port}/"), &format!(":{}/", wire.port));
    let url_file = place.join("url.txt");
    std::fs::write(&url_file, format!("{url}\n")).unwrap();
    let options = ["--postgres-file", url_file.to_str().unwrap()];
    let start = || {
        let server = FaultedServer::start_with(&place, Vec::new(), &options);
        server.map_err(|(status, said)| format!("{status}: {said}")).unwrap()
    };
    let server = start();
    let uploads = UploadScenario::sign_up(&server);
    assert_eq!(uploads.download(&server), Ok(0));
    wire.arm();
    assert!(uploads.upload(&server, 1).is_none(), "its answer is lost");
    assert!(wire.has_cut());
    assert_eq!(uploads.download(&server), Ok(1), "it was committed");
    assert!(server.stop().unwrap().success());
    let server = start();
    assert_eq!(uploads.download(&server), Ok(1));
    assert!(uploads.upload(&server, 2).is_some());
    assert_eq!(uploads.download(&server), Ok(2));
    assert!(server.stop().unwrap().success());
}
