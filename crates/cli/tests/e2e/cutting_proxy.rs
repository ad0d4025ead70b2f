//! A proxy between a device and the server that counts bytes: a test can kill a process at a
//! chosen byte of a request or of an answer, and not at some time.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The time limit for the bytes to pass, on a busy machine.
const PASS_TIME_MAX: Duration = Duration::from_mins(5);

/// The event that ended the wait for a process.
pub(crate) enum ProxyEvent {
    /// The awaited number of bytes has passed.
    Passed,
    /// The process ended before that, and had printed this.
    Ended(String),
}

/// The treatment of the bytes after the awaited ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutAction {
    /// The bytes are held until the wait is over and then lost, with their connection: no process
    /// gets further than this byte.
    Hold,
    /// The bytes pass too, so that all processes continue while one is killed.
    Flow,
}

struct ProxyWire {
    target: SocketAddr,
    /// The number of bytes that may still pass; `None` without a wait.
    left: Option<usize>,
    then: CutAction,
    tell: Option<SyncSender<ProxyEvent>>,
    /// All bytes that passed, if they are recorded.
    record: Option<Vec<u8>>,
}

struct ProxyState {
    wire: Mutex<ProxyWire>,
    changed: Condvar,
}

/// A proxy that listens for devices until the test's process ends.
pub(crate) struct CuttingProxy {
    pub(crate) address: String,
    shared: Arc<ProxyState>,
}

impl CuttingProxy {
    /// Starts a proxy to `server`, an address such as `http://127.0.0.1:4600`.
    pub(crate) fn to(server: &str) -> Self {
        Self::start(server, None)
    }

    /// Starts a proxy that records the bytes. It makes devices request uncompressed answers,
    /// because compressed ones could not be searched.
    pub(crate) fn recording(server: &str) -> Self {
        Self::start(server, Some(Vec::new()))
    }

    /// Returns all bytes since the beginning, in both directions.
    pub(crate) fn recorded(&self) -> Vec<u8> {
        self.shared.wire.lock().unwrap().record.clone().unwrap()
    }

    fn start(server: &str, record: Option<Vec<u8>>) -> Self {
        let target = socket(server);
        let wire = ProxyWire { target, left: None, then: CutAction::Flow, tell: None, record };
        let shared = Arc::new(ProxyState { wire: Mutex::new(wire), changed: Condvar::new() });
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

    /// Changes the server to which later connections go.
    pub(crate) fn turn_to(&self, server: &str) {
        self.shared.wire.lock().unwrap().target = socket(server);
    }

    /// Begins a wait until `bytes` have passed in both directions together, or the process has
    /// ended.
    pub(crate) fn watch(&self, bytes: u64, then: CutAction, process: &mut Child) -> ProxyWait<'_> {
        let watch = self.after(bytes, then);
        let ended = watch.tell.clone();
        let mut stdout = process.stdout.take().unwrap();
        thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            // The test may have finished.
            drop(ended.send(ProxyEvent::Ended(text)));
        });
        watch
    }

    /// Begins a wait until `bytes` have passed in both directions together.
    pub(crate) fn after(&self, bytes: u64, then: CutAction) -> ProxyWait<'_> {
        let (tell, events) = sync_channel(2);
        let mut wire = self.shared.wire.lock().unwrap();
        (wire.left, wire.then) = (Some(usize::try_from(bytes.max(1)).unwrap()), then);
        wire.tell = Some(tell.clone());
        ProxyWait { proxy: self, tell, events }
    }
}

/// A wait for bytes. Its drop releases the bytes that were held.
pub(crate) struct ProxyWait<'a> {
    proxy: &'a CuttingProxy,
    tell: SyncSender<ProxyEvent>,
    events: Receiver<ProxyEvent>,
}

impl ProxyWait<'_> {
    pub(crate) fn next(&self) -> ProxyEvent {
        self.events.recv_timeout(PASS_TIME_MAX).unwrap()
    }

    /// Releases the held bytes, waits for the end of the process, and returns its output. It may
    /// only be called after [`ProxyEvent::Passed`].
    pub(crate) fn output(self) -> String {
        self.proxy.release();
        let output = self.events.iter().find_map(|event| match event {
            ProxyEvent::Passed => None,
            ProxyEvent::Ended(text) => Some(text),
        });
        output.unwrap()
    }
}

impl CuttingProxy {
    fn release(&self) {
        let mut wire = self.shared.wire.lock().unwrap();
        (wire.left, wire.tell) = (None, None);
        drop(wire);
        self.shared.changed.notify_all();
    }
}

impl Drop for ProxyWait<'_> {
    fn drop(&mut self) {
        self.proxy.release();
    }
}

fn socket(server: &str) -> SocketAddr {
    server.trim_start_matches("http://").parse().unwrap()
}

fn connect(device: &TcpStream, shared: &Arc<ProxyState>) {
    let target = shared.wire.lock().unwrap().target;
    // A dead server refuses the connection; the device then finds its own closed.
    let Ok(server) = TcpStream::connect(target) else { return };
    let pairs = [(device, &server), (&server, device)];
    for (from, to) in pairs.map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap())) {
        let shared = Arc::clone(shared);
        thread::spawn(move || forward(from, to, &shared));
    }
}

/// Forwards one direction until either side is gone, then closes both.
fn forward(mut from: TcpStream, mut to: TcpStream, shared: &ProxyState) {
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
        // The other direction or a dead process may have closed it already.
        drop(side.shutdown(Shutdown::Both));
    }
}

fn pass(mut bytes: &[u8], to: &mut TcpStream, shared: &ProxyState) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let count = shared.admit(bytes.len()).ok_or(ErrorKind::ConnectionAborted)?;
        to.write_all(&bytes[..count])?;
        shared.passed(count);
        bytes = &bytes[count..];
    }
    Ok(())
}

impl ProxyState {
    fn record(&self, bytes: &mut [u8]) {
        let mut wire = self.wire.lock().unwrap();
        let Some(record) = &mut wire.record else { return };
        // This replaces the coding by a word of the same length that no server supports.
        let wanted = b"accept-encoding: gzip";
        if let Some(at) = bytes.windows(wanted.len()).position(|w| w.eq_ignore_ascii_case(wanted)) {
            bytes[at + wanted.len() - 4..at + wanted.len()].copy_from_slice(b"none");
        }
        record.extend(&*bytes);
    }

    /// Returns how many of these bytes may pass now: all, or those up to the awaited one. Returns
    /// `None` after the wait for later bytes that were held.
    fn admit(&self, count: usize) -> Option<usize> {
        let mut wire = self.wire.lock().unwrap();
        let is_held = |wire: &ProxyWire| wire.left == Some(0) && wire.then == CutAction::Hold;
        if is_held(&wire) {
            while is_held(&wire) {
                wire = self.changed.wait(wire).unwrap();
            }
            return None;
        }
        Some(wire.left.filter(|left| *left > 0).map_or(count, |left| count.min(left)))
    }

    /// Counts bytes that have passed, and reports the last awaited one.
    fn passed(&self, count: usize) {
        let mut wire = self.wire.lock().unwrap();
        let Some(left) = wire.left else { return };
        let left_after = left.saturating_sub(count);
        wire.left = Some(left_after);
        if left_after == 0
            && let Some(tell) = wire.tell.take()
        {
            // The test may have seen the process end.
            drop(tell.send(ProxyEvent::Passed));
        }
    }
}
