//! What can go wrong with a watch, and what follows from it.
use std::time::Duration;

use crate::cluster::presence::is_unanswered;

/// Why a watch or a list ended.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The API server refused it, ended it, or cannot be understood.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The API server does not stream lists.
    #[error(transparent)]
    NotStreamed(kube::Error),
    /// A streamed list came without its end.
    #[error("it ended before the list was complete")]
    Unfinished,
    /// It brought nothing.
    #[error("it ended at once, without any event")]
    Short,
    /// It cannot be said from where to go on.
    #[error("the answer has no resourceVersion")]
    NoVersion,
}

impl WatchError {
    /// Why a streamed list did not begin.
    pub fn unless_streamed(error: kube::Error) -> Self {
        let code = code(&error).unwrap_or_default();
        let of_any_request = matches!(code, 401 | 403 | 408 | 425 | 429);
        if (400..500).contains(&code) && !of_any_request { Self::NotStreamed(error) } else { Self::Api(error) }
    }

    /// Whether there is no going on from the last resourceVersion: it is too old, or what came from there is not understood.
    pub fn needs_list(&self) -> bool {
        match self {
            Self::Api(kube::Error::SerdeError(_)) | Self::NoVersion => true,
            Self::Api(error) => code(error).is_some_and(|code| !matches!(code, 401 | 403 | 408 | 425 | 429 | 500 | 502 | 503)),
            Self::NotStreamed(_) | Self::Unfinished | Self::Short => false,
        }
    }

    /// Writes the log line.
    pub fn log(&self, plural: &str, pause: Duration) {
        match self {
            Self::Api(error) if is_unanswered(error) => {
                tracing::debug!(%error, ?pause, "the watch of {plural} ended without an answer; resuming it");
            }
            Self::Api(error) if code(error) == Some(410) => {
                tracing::info!(%error, ?pause, "the watch of {plural} is too far behind; listing them again");
            }
            _ => tracing::warn!(error = %self, ?pause, "the watch of {plural} failed; resuming it"),
        }
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
