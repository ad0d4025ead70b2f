//! A wire between a device and the server, which knows when so many bytes have passed: so a process
//! is killed at a chosen byte of a request or of an answer, and not when a clock says so.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// For so many bytes to pass on a machine that is busy.
const PASS_TIME_MAX: Duration = Duration::from_mins(5);

/// What ended the wait for a process.
pub(crate) enum Event {
    /// So many bytes have passed.
    Passed,
    /// The process ended before, and had printed this.
    Ended(String),
}

/// What happens to the bytes behind the last one that was to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// They are lost, with their connection, when the wait is over: nobody gets further than this
    /// byte.
    Hold,
    /// They pass too, so that everybody works on while the process is killed.
    Flow,
}

struct Wire {
    target: SocketAddr,
    /// Bytes that may still pass; `None` while nobody waits.
    left: Option<usize>,
    then: Then,
    tell: Option<SyncSender<Event>>,
    /// Everything that passed, if it is recorded.
    record: Option<Vec<u8>>,
}

struct Shared {
    wire: Mutex<Wire>,
    changed: Condvar,
}

/// Listens for devices until the test's process ends.
pub(crate) struct Proxy {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

impl Proxy {
    /// `server` is an address such as `http://127.0.0.1:4600`.
    pub(crate) fn to(server: &str) -> Self {
        Self::start(server, None)
    }

    /// One that keeps what passes. Devices ask for answers that are not compressed: those could
    /// not be searched.
    pub(crate) fn recording(server: &str) -> Self {
        Self::start(server, Some(Vec::new()))
    }

    /// What has passed since the beginning, in both directions.
    pub(crate) fn recorded(&self) -> Vec<u8> {
        self.shared.wire.lock().unwrap().record.clone().unwrap()
    }

    fn start(server: &str, record: Option<Vec<u8>>) -> Self {
        let target = socket(server);
        let wire = Wire { target, left: None, then: Then::Flow, tell: None, record };
        let shared = Arc::new(Shared { wire: Mutex::new(wire), changed: Condvar::new() });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for device in listener.incoming() {
                connect(&device.unwrap(), &accepting);
            }
        });
        Self { address, shared }
    }

    /// The server is another one from here on.
    pub(crate) fn turn_to(&self, server: &str) {
        self.shared.wire.lock().unwrap().target = socket(server);
    }

    /// Waits until so many bytes have passed in both directions together, or the process has ended.
    pub(crate) fn watch(&self, bytes: u64, then: Then, process: &mut Child) -> Watch<'_> {
        let watch = self.after(bytes, then);
        let ended = watch.tell.clone();
        let mut stdout = process.stdout.take().unwrap();
        thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            // The test may have seen enough.
            drop(ended.send(Event::Ended(text)));
        });
        watch
    }

    /// Waits until so many bytes have passed in both directions together.
    pub(crate) fn after(&self, bytes: u64, then: Then) -> Watch<'_> {
        let (tell, events) = sync_channel(2);
        let mut wire = self.shared.wire.lock().unwrap();
        (wire.left, wire.then) = (Some(usize::try_from(bytes.max(1)).unwrap()), then);
        wire.tell = Some(tell.clone());
        Watch { proxy: self, tell, events }
    }
}

/// A wait; what was held back is let go with it.
pub(crate) struct Watch<'a> {
    proxy: &'a Proxy,
    tell: SyncSender<Event>,
    events: Receiver<Event>,
}

impl Watch<'_> {
    pub(crate) fn next(&self) -> Event {
        self.events.recv_timeout(PASS_TIME_MAX).unwrap()
    }

    /// Lets the wire go, and waits for the end of the process, for what it printed. Only after
    /// [`Event::Passed`].
    pub(crate) fn output(self) -> String {
        self.proxy.release();
        let output = self.events.iter().find_map(|event| match event {
            Event::Passed => None,
            Event::Ended(text) => Some(text),
        });
        output.unwrap()
    }
}

impl Proxy {
    fn release(&self) {
        let mut wire = self.shared.wire.lock().unwrap();
        (wire.left, wire.tell) = (None, None);
        drop(wire);
        self.shared.changed.notify_all();
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.proxy.release();
    }
}

fn socket(server: &str) -> SocketAddr {
    server.trim_start_matches("http://").parse().unwrap()
}

fn connect(device: &TcpStream, shared: &Arc<Shared>) {
    let target = shared.wire.lock().unwrap().target;
    // A server that is dead refuses; the device then finds its connection closed.
    let Ok(server) = TcpStream::connect(target) else { return };
    let pairs = [(device, &server), (&server, device)];
    for (from, to) in pairs.map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap())) {
        let shared = Arc::clone(shared);
        thread::spawn(move || forward(from, to, &shared));
    }
}

/// Forwards one direction until either side is gone, then closes both.
fn forward(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let mut buffer = [0; 8192];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        shared.record(&mut buffer[..count]);
        if pass(&buffer[..count], &mut to, shared).is_err() {
            break;
        }
    }
    for side in [from, to] {
        // It may be closed already, by the other direction or by a process that died.
        drop(side.shutdown(Shutdown::Both));
    }
}

fn pass(mut bytes: &[u8], to: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let count = shared.admit(bytes.len()).ok_or(ErrorKind::ConnectionAborted)?;
        to.write_all(&bytes[..count])?;
        shared.passed(count);
        bytes = &bytes[count..];
    }
    Ok(())
}

impl Shared {
    fn record(&self, bytes: &mut [u8]) {
        let mut wire = self.wire.lock().unwrap();
        let Some(record) = &mut wire.record else { return };
        // Another word of the same length: a coding that no server knows.
        let wanted = b"accept-encoding: gzip";
        if let Some(at) = bytes.windows(wanted.len()).position(|w| w.eq_ignore_ascii_case(wanted)) {
            bytes[at + wanted.len() - 4..at + wanted.len()].copy_from_slice(b"none");
        }
        record.extend(&*bytes);
    }

    /// How many of these bytes may pass now: all, or those up to the one that is waited for. `None`
    /// for those behind it that are held: after the wait.
    fn admit(&self, count: usize) -> Option<usize> {
        let mut wire = self.wire.lock().unwrap();
        let is_held = |wire: &Wire| wire.left == Some(0) && wire.then == Then::Hold;
        if is_held(&wire) {
            while is_held(&wire) {
                wire = self.changed.wait(wire).unwrap();
            }
            return None;
        }
        Some(wire.left.filter(|left| *left > 0).map_or(count, |left| count.min(left)))
    }

    /// They have passed: tells whoever waits if these were the last ones.
    fn passed(&self, count: usize) {
        let mut wire = self.wire.lock().unwrap();
        let Some(left) = wire.left else { return };
        let left_after = left.saturating_sub(count);
        wire.left = Some(left_after);
        if left_after == 0
            && let Some(tell) = wire.tell.take()
        {
            // The test may have seen the process end.
            drop(tell.send(Event::Passed));
        }
    }
}
