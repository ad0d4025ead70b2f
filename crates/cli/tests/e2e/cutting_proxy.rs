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
pub(crate) enum ProxyEvent {
    /// So many bytes have passed.
    Passed,
    /// The process ended before, and had printed this.
    Ended(String),
}

/// What happens to the bytes behind the last one that was to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutAction {
    /// They are lost, with their connection, when the wait is over: nobody gets further than this
    /// byte.
    Hold,
    /// They pass too, so that everybody works on while the process is killed.
    Flow,
}

struct ProxyWire {
    target: SocketAddr,
    /// Bytes that may still pass; `None` while nobody waits.
    left: Option<usize>,
    then: CutAction,
    tell: Option<SyncSender<ProxyEvent>>,
    /// Everything that passed, if it is recorded.
    record: Option<Vec<u8>>,
}

struct ProxyState {
    wire: Mutex<ProxyWire>,
    changed: Condvar,
}

/// Listens for devices until the test's process ends.
pub(crate) struct CuttingProxy {
    pub(crate) address: String,
    shared: Arc<ProxyState>,
}

impl CuttingProxy {
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

    /// The server is another one from here on.
    pub(crate) fn turn_to(&self, server: &str) {
        self.shared.wire.lock().unwrap().target = socket(server);
    }

    /// Waits until so many bytes have passed in both directions together, or the process has ended.
    pub(crate) fn watch(&self, bytes: u64, then: CutAction, process: &mut Child) -> ProxyWait<'_> {
        let watch = self.after(bytes, then);
        let ended = watch.tell.clone();
        let mut stdout = process.stdout.take().unwrap();
        thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            // The test may have seen enough.
            drop(ended.send(ProxyEvent::Ended(text)));
        });
        watch
    }

    /// Waits until so many bytes have passed in both directions together.
    pub(crate) fn after(&self, bytes: u64, then: CutAction) -> ProxyWait<'_> {
        let (tell, events) = sync_channel(2);
        let mut wire = self.shared.wire.lock().unwrap();
        (wire.left, wire.then) = (Some(usize::try_from(bytes.max(1)).unwrap()), then);
        wire.tell = Some(tell.clone());
        ProxyWait { proxy: self, tell, events }
    }
}

/// A wait; what was held back is let go with it.
pub(crate) struct ProxyWait<'a> {
    proxy: &'a CuttingProxy,
    tell: SyncSender<ProxyEvent>,
    events: Receiver<ProxyEvent>,
}

impl ProxyWait<'_> {
    pub(crate) fn next(&self) -> ProxyEvent {
        self.events.recv_timeout(PASS_TIME_MAX).unwrap()
    }

    /// Lets the wire go, and waits for the end of the process, for what it printed. Only after
    /// [`ProxyEvent::Passed`].
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
    // A server that is dead refuses; the device then finds its connection closed.
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
        // It may be closed already, by the other direction or by a process that died.
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
        let is_held = |wire: &ProxyWire| wire.left == Some(0) && wire.then == CutAction::Hold;
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
            drop(tell.send(ProxyEvent::Passed));
        }
    }
}
