//! Where the provider listens. Only Unix sockets: the traffic controls a cloud account.
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The longest path of a Unix socket, in bytes, without its closing NUL.
const MAX_PATH: usize = 107;

/// `unix:///absolute/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(PathBuf);

impl Endpoint {
    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.0.display())
    }
}

impl serde::Serialize for Endpoint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Another scheme, or a relative path.
    #[error("it is not the absolute path of a Unix socket; write unix:///run/ccm/provider.sock")]
    Form,
    /// The path is longer than a socket's address can be.
    #[error("its path has {0} bytes and a Unix socket's can have {MAX_PATH}; choose a shorter directory")]
    TooLong(usize),
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        match text.strip_prefix("unix://") {
            Some(path) if path.len() > MAX_PATH => Err(EndpointError::TooLong(path.len())),
            Some(path) if path.starts_with('/') && !path.ends_with('/') => Ok(Self(path.into())),
            _ => Err(EndpointError::Form),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_unix_and_absolute() {
        assert_eq!("unix:///run/p.sock".parse::<Endpoint>().map(|it| it.to_string()), Ok("unix:///run/p.sock".to_owned()));
        for bad in ["", "unix://", "unix:///", "unix://run/p.sock", "/run/p.sock", "http://localhost"] {
            assert_eq!(bad.parse::<Endpoint>(), Err(EndpointError::Form), "{bad}");
        }
        let long = format!("unix:///{}", "x".repeat(MAX_PATH));
        assert!(matches!(long.parse::<Endpoint>(), Err(EndpointError::TooLong(_))));
    }
}
