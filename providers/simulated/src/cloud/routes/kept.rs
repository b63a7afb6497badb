//! The table in memory, and on disk where there is one. A change is on the disk before anybody sees it; readers never wait for
//! the disk. What a change means is the table's matter.
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::journal::Journal;
use super::model::{Edit, Route};
use super::table::{Record, Table, Terms};
use crate::cloud::CloudError;
use crate::cloud::store::StoreError;

/// Where the journal is, in the directory of the cloud's state.
const DIRECTORY: &str = "routes";

/// The routes of a cloud.
#[derive(Debug)]
pub struct Kept {
    terms: Terms,
    known: RwLock<Arc<Table>>,
    /// One change at a time.
    journal: Mutex<Option<Journal>>,
}

impl Kept {
    /// Those that `state`, the directory of the cloud's state, has of a former process. Without one they are in memory only.
    pub fn open(terms: Terms, state: Option<&Path>) -> Result<Self, StoreError> {
        let opened = state.map(|state| Journal::open(&state.join(DIRECTORY))).transpose()?;
        let (journal, table) = opened.map_or_else(Default::default, |(journal, table)| (Some(journal), table));
        Ok(Self { terms, known: RwLock::new(Arc::new(table)), journal: Mutex::new(journal) })
    }

    /// The table as it is now.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.known.read())
    }

    /// Makes changes to a copy of the table, keeps them, and only then lets them be seen. Blocks for the disk.
    pub fn change<T>(&self, work: impl FnOnce(&mut Table, Terms, &mut Vec<Record>) -> T) -> Result<T, CloudError> {
        let mut journal = self.journal.lock();
        let mut next = self.table().as_ref().clone();
        let mut records = Vec::new();
        let outcome = work(&mut next, self.terms, &mut records);
        if !records.is_empty() {
            journal.as_mut().map_or(Ok(()), |journal| journal.append(&records))?;
            *self.known.write() = Arc::new(next);
        }
        Ok(outcome)
    }

    /// Changes the table behind its owners' backs. Blocks for the disk.
    pub fn edit(&self, edit: Edit) -> Result<Option<Arc<Route>>, CloudError> {
        Ok(self.change(|table, _, records| table.edit(edit, records))??)
    }
}

#[cfg(test)]
mod tests;
