//! Where the provider listens. Only Unix sockets: what crosses it is worth a cloud account.
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

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not of the one form.
    #[error("\"{0}\" is not a provider endpoint: give unix:// and an absolute path, such as unix:///run/ccm/provider.sock")]
    Form(String),
    /// The kernel takes no path that long.
    #[error("the socket path \"{0}\" is longer than {MAX_PATH} bytes, the most that a Unix socket takes: choose a shorter one")]
    TooLong(String),
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        match text.strip_prefix("unix://") {
            Some(path) if path.len() > MAX_PATH => Err(EndpointError::TooLong(path.to_owned())),
            Some(path) if path.starts_with('/') && path.len() > 1 => Ok(Self(path.into())),
            _ => Err(EndpointError::Form(text.to_owned())),
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
            assert_eq!(bad.parse::<Endpoint>(), Err(EndpointError::Form(bad.to_owned())), "{bad}");
        }
        let long = format!("unix:///{}", "x".repeat(MAX_PATH));
        assert!(matches!(long.parse::<Endpoint>(), Err(EndpointError::TooLong(_))));
    }
}
