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
        let ahead = version(resource_version).is_some_and(|version| version < *written);
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

/// A resourceVersion as a number.
pub fn version(resource_version: &str) -> Option<u64> {
    resource_version.parse().ok()
}

/// The least that is later than a resourceVersion: where the API server has a later version of the object, or none, nothing follows
/// from what the watch still shows.
pub fn later_than(resource_version: &str) -> Option<u64> {
    Some(version(resource_version)?.saturating_add(1))
}
