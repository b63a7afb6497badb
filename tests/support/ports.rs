//! Free ports on the loopback interface, for processes that take a port by flag and cannot choose one themselves.
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A port that was free a moment ago. Somebody else may take it meanwhile: start again with another one then.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
