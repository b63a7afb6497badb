//! Where a provider listens: `unix:///abs/path`, parsed, and a client's channel to it. Nothing else of transport is here.
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::Channel;

/// The longest path that fits a Unix socket's address on Linux, in bytes.
const MAX_PATH: usize = 107;

/// The address of a provider's Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    path: PathBuf,
}

/// An endpoint that cannot be one.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EndpointError {
    /// It has another form.
    #[error("{0:?} is no endpoint: it must have the form unix:///absolute/path")]
    Form(String),
    /// The system has no room for such a path.
    #[error("the socket's path {path:?} has {length} bytes; a Unix socket's may have {MAX_PATH}: use a shorter one")]
    TooLong {
        /// The path.
        path: String,
        /// Its bytes.
        length: usize,
    },
}

impl Endpoint {
    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A channel that connects when it is first used, with `:authority` `localhost`.
    pub fn channel(&self) -> Channel {
        let path = self.path.clone();
        let connector = tower::service_fn(move |_: http::Uri| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        tonic::transport::Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_prefix("unix://").filter(|path| path.starts_with('/') && !path.ends_with('/'));
        let path = path.ok_or_else(|| EndpointError::Form(text.to_owned()))?;
        if path.len() > MAX_PATH {
            return Err(EndpointError::TooLong { path: path.to_owned(), length: path.len() });
        }
        Ok(Self { path: path.into() })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_absolute_path_is_an_endpoint_and_prints_as_it_came() {
        let endpoint: Endpoint = "unix:///run/ccm/provider.sock".parse().unwrap();

        assert_eq!(endpoint.path(), Path::new("/run/ccm/provider.sock"));
        assert_eq!(endpoint.to_string(), "unix:///run/ccm/provider.sock");
    }

    #[test]
    fn anything_else_is_refused_with_the_form_that_is_wanted() {
        for text in ["", "/run/p.sock", "unix://run/p.sock", "unix:///run/", "tcp://127.0.0.1:9"] {
            assert!(text.parse::<Endpoint>().unwrap_err().to_string().contains("unix:///absolute/path"), "{text}");
        }
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_refused_early() {
        let text = format!("unix:///{}", "x".repeat(MAX_PATH));
        assert!(matches!(text.parse::<Endpoint>(), Err(EndpointError::TooLong { length: 108, .. })));
    }
}
