//! Reserves a free port of the loopback address, for a server that cannot choose its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use socket2::{Domain, Socket, Type};

/// A TCP port of 127.0.0.1 that no other process gets while a clone of this value exists.
///
/// The port is bound with `SO_REUSEADDR`, and nothing listens on it. A server that names the port
/// and sets the same option, as nearly all do, can listen on it; neither a bind to port 0 nor an
/// outgoing connection gets it from the system (Linux, `inet_csk_find_open_port`).
#[derive(Clone, Debug)]
pub struct ReservedPort {
    number: u16,
    _socket: Arc<Socket>,
}

impl ReservedPort {
    /// Reserves a free port.
    pub fn new() -> anyhow::Result<Self> {
        let socket =
            Socket::new(Domain::IPV4, Type::STREAM, None).context("cannot create a socket")?;
        socket.set_reuse_address(true).context("SO_REUSEADDR")?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).context("no free port")?;
        let address = socket.local_addr().context("cannot read the port number")?;
        let number = address.as_socket_ipv4().context("not an IPv4 address")?.port();
        Ok(Self { number, _socket: Arc::new(socket) })
    }

    /// Returns the port's number, from 1 to 65535.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn whoever_names_a_reserved_port_can_listen_on_it_and_nobody_else_gets_it() {
        let reserved = ReservedPort::new().unwrap();
        let others: Vec<TcpListener> =
            (0..500).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let number = |listener: &TcpListener| listener.local_addr().unwrap().port();
        assert!(!others.iter().map(number).any(|other| other == reserved.number()));
        for _ in 0..2 {
            TcpListener::bind((Ipv4Addr::LOCALHOST, reserved.number())).unwrap();
        }
    }
}
