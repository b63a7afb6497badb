//! How often what was called. Nothing is decided by it.
use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Calls by name, since the process started or they were reset.
#[derive(Debug, Default)]
pub struct Counters(Mutex<BTreeMap<&'static str, u64>>);

impl Counters {
    /// Counters that show these names even before their first call.
    pub fn showing(names: &[&'static str]) -> Self {
        Self(Mutex::new(names.iter().map(|&name| (name, 0)).collect()))
    }

    /// One more call.
    pub fn count(&self, name: &'static str) {
        *self.0.lock().entry(name).or_insert(0) += 1;
    }

    /// What was counted.
    pub fn read(&self) -> BTreeMap<String, u64> {
        self.0.lock().iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    /// What was counted; from now on counting starts at zero. No call is lost in between.
    pub fn take(&self) -> BTreeMap<String, u64> {
        let mut counts = self.0.lock();
        counts.iter_mut().map(|(name, count)| ((*name).to_owned(), std::mem::take(count))).collect()
    }
}
