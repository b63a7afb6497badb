//! What crossed the socket during a case, as text for a person. It keeps the latest exchanges and judges none.
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tonic::Status;
use tonic_types::StatusExt as _;

/// The most that is shown of one message, in characters.
const SHOWN: usize = 1500;

/// How many exchanges are shown of a case.
const KEPT: usize = 8;

/// One call and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Exchange {
    /// The method.
    pub method: String,
    /// The request.
    pub request: String,
    /// The answer, or the status.
    pub answer: String,
    /// How long it took, in milliseconds.
    pub millis: u128,
}

/// The exchanges of a case.
#[derive(Debug, Default)]
pub struct Exchanges(Mutex<Vec<Exchange>>);

impl Exchanges {
    /// Keeps one.
    pub fn add<Q: fmt::Debug, A: fmt::Debug>(&self, method: &str, request: &Q, answer: &Result<A, Status>, took: Duration) {
        let answer = match answer {
            Ok(answer) => short(format!("{answer:?}")),
            Err(status) => describe(status),
        };
        let one =
            Exchange { method: method.to_owned(), request: short(format!("{request:?}")), answer, millis: took.as_millis() };
        self.0.lock().push(one);
    }

    /// The latest ones.
    pub fn latest(&self) -> Vec<Exchange> {
        let all = self.0.lock();
        all[all.len().saturating_sub(KEPT)..].to_vec()
    }
}

/// A status with its details.
pub fn describe(status: &Status) -> String {
    let details = status.get_error_details();
    let info = details.error_info().map(|info| format!(" ErrorInfo({} {} {:?})", info.domain, info.reason, info.metadata));
    let retry = details.retry_info().map(|retry| format!(" RetryInfo({:?})", retry.retry_delay));
    let (info, retry) = (info.unwrap_or_default(), retry.unwrap_or_default());
    format!("{:?}{info}{retry}: {}", status.code(), short(status.message().to_owned()))
}

fn short(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
