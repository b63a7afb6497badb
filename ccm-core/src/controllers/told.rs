//! What people were told of each object, so that something that lasts is told once and not at every look.
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use parking_lot::Mutex;

/// How many remarks are remembered of one object, so that a provider whose words never repeat fills no memory.
const REMEMBERED: usize = 64;

/// The remarks that were made, by the object's name.
pub struct Told<R>(Mutex<HashMap<String, Remarks<R>>>);

struct Remarks<R> {
    uid: String,
    made: HashSet<R>,
}

impl<R> Default for Told<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<R: Eq + Hash> Told<R> {
    /// Remembers a remark; false if it was made of this very object before.
    pub fn is_news(&self, name: &str, uid: &str, remark: R) -> bool {
        let mut told = self.0.lock();
        let nothing = || Remarks { uid: uid.to_owned(), made: HashSet::new() };
        let remarks = told.entry(name.to_owned()).or_insert_with(nothing);
        if remarks.uid != uid || remarks.made.len() >= REMEMBERED {
            *remarks = nothing();
        }
        remarks.made.insert(remark)
    }

    /// The object is gone, or what was wrong is mended: should it go wrong again, that is news.
    pub fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_news_once_for_each_object_until_it_is_forgotten() {
        let told = Told::default();
        assert!(told.is_news("a", "1", "x") && told.is_news("a", "1", "y") && told.is_news("b", "1", "x"));
        assert!(!told.is_news("a", "1", "x"));
        assert!(told.is_news("a", "2", "x"), "another object of the same name");
        told.forget("a");
        assert!(told.is_news("a", "2", "x"));
    }

    #[test]
    fn words_that_never_repeat_fill_no_memory() {
        let told = Told::default();
        assert!((0..1000).all(|words| told.is_news("a", "1", words)));
        assert!(told.0.lock()["a"].made.len() <= REMEMBERED);
    }
}
