//! Reading an answer of which some part may be of no use: that part is left out and becomes a warning that names it.
use std::fmt::Display;

use ccm_proto::v1;

use crate::model::instance::Warning;
use crate::provider::classify::shorten;

/// The reason of warnings about the answer itself.
const INVALID_ANSWER: &str = "InvalidProviderAnswer";
/// The most warnings that are passed on from one answer: events are no log.
const MAX_WARNINGS: usize = 10;

/// What was left out so far of the message at `path`.
pub struct Reader<'a> {
    path: &'a str,
    warnings: Vec<Warning>,
}

impl<'a> Reader<'a> {
    /// A reader of the message at `path` in the response.
    pub fn new(path: &'a str) -> Self {
        Self { path, warnings: Vec::new() }
    }

    /// The path of one of its fields in the response.
    pub fn at(&self, field: impl Display) -> String {
        format!("{}.{field}", self.path)
    }

    /// Warns that a field is left out.
    pub fn drop(&mut self, field: impl Display, what: &str) {
        let message = format!("{}: {what}; left out", self.at(field));
        self.warnings.push(Warning { reason: INVALID_ANSWER.to_owned(), message: shorten(&message).to_owned() });
    }

    /// Whether a text passes; it is left out if not.
    pub fn passes(&mut self, field: impl Display, text: &str, check: Result<(), &str>) -> bool {
        if let Err(what) = check {
            self.drop(field, &format!("\"{text}\" {what}"));
        }
        check.is_ok()
    }

    /// The warnings: those about the answer first, then the provider's own.
    pub fn finish(self, own: Vec<v1::Warning>) -> Vec<Warning> {
        self.warnings.into_iter().chain(own.into_iter().map(warning)).take(MAX_WARNINGS).collect()
    }
}

fn warning(wire: v1::Warning) -> Warning {
    let word = !wire.reason.is_empty() && wire.reason.len() <= 128 && wire.reason.bytes().all(|b| b.is_ascii_alphanumeric());
    let reason = if word { wire.reason } else { "ProviderWarning".to_owned() };
    Warning { reason, message: shorten(&wire.message).to_owned() }
}
