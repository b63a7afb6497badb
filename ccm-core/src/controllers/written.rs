//! Which objects were written to and have not been shown by the watch since: what it shows of them is old.
use std::collections::HashMap;

/// The resourceVersion of the last write to each.
#[derive(Debug, Default)]
pub struct Written(HashMap<String, u64>);

impl Written {
    /// An object was written to.
    pub fn note(&mut self, name: &str, resource_version: u64) {
        self.0.insert(name.to_owned(), resource_version);
    }

    /// Whether the watch, which shows this resourceVersion, has yet to show the last write. It will name the object then.
    pub fn is_ahead_of(&mut self, name: &str, resource_version: &str) -> bool {
        let Some(written) = self.0.get(name) else { return false };
        let ahead = resource_version.parse::<u64>().is_ok_and(|version| version < *written);
        if !ahead {
            self.0.remove(name);
        }
        ahead
    }

    /// The object is gone.
    pub fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}
