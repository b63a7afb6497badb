//! The load balancers in memory, and on disk where there is one. A change is on the disk before anybody sees it; readers never
//! wait for the disk, nor do changes of different load balancers for each other. What a change means is the rules' matter.
use std::path::Path;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

use super::model::{Edit, LoadBalancer, Mark, Search, Wanted};
use super::rules::{LoadBalancers, Terms};
use super::store::Files;
use crate::cloud::CloudError;
use crate::cloud::derive::fnv1a;
use crate::cloud::store::StoreError;

/// Where the files are, in the directory of the cloud's state.
const DIRECTORY: &str = "load-balancers";

/// How many changes are written at once.
const WRITERS: usize = 16;

/// The load balancers of a cloud.
#[derive(Debug)]
pub struct Kept {
    terms: Terms,
    known: RwLock<LoadBalancers>,
    files: Option<Files>,
    /// One change of a load balancer at a time: each name has its place here.
    writers: [Mutex<()>; WRITERS],
}

impl Kept {
    /// Those that `state`, the directory of the cloud's state, has of a former process. Without one they are in memory only.
    pub fn open(terms: Terms, state: Option<&Path>) -> Result<Self, StoreError> {
        let opened = state.map(|state| Files::open(state.join(DIRECTORY))).transpose()?;
        let (files, kept) = opened.map_or((None, Vec::new()), |(files, kept)| (Some(files), kept));
        Ok(Self { terms, known: RwLock::new(LoadBalancers::restore(kept)), files, writers: Default::default() })
    }

    /// Those that are looked for.
    pub fn find(&self, search: &Search) -> Vec<LoadBalancer> {
        self.known.read().find(search)
    }

    /// All.
    pub fn all(&self) -> Vec<LoadBalancer> {
        self.known.read().all()
    }

    /// Makes one be as wanted. Blocks for the disk.
    pub fn put(&self, name: &str, wanted: Wanted) -> Result<LoadBalancer, CloudError> {
        let _writing = self.writer(name).lock();
        let next = self.known.write().prepare(&self.terms, name, wanted, Timestamp::now())?;
        self.keep(next)
    }

    /// Removes one if it is marked so. Blocks for the disk.
    pub fn delete(&self, name: &str, mark: &Mark) -> Result<(), CloudError> {
        let _writing = self.writer(name).lock();
        let there = self.known.read().may_remove(name, mark)?;
        if there { self.forget(name) } else { Ok(()) }
    }

    /// Changes or removes one behind its owner's back. Blocks for the disk.
    pub fn edit(&self, name: &str, edit: &Edit) -> Result<Option<LoadBalancer>, CloudError> {
        let _writing = self.writer(name).lock();
        let next = self.known.write().prepare_edit(name, edit)?;
        match next {
            Some(next) => self.keep(next).map(Some),
            None => self.forget(name).map(|()| None),
        }
    }

    fn keep(&self, next: LoadBalancer) -> Result<LoadBalancer, CloudError> {
        if let Err(error) = self.files.as_ref().map_or(Ok(()), |files| files.save(&next)) {
            self.known.write().abandon(&next);
            return Err(error.into());
        }
        self.known.write().commit(next.clone());
        Ok(next)
    }

    fn forget(&self, name: &str) -> Result<(), CloudError> {
        self.files.as_ref().map_or(Ok(()), |files| files.remove(name))?;
        self.known.write().remove(name);
        Ok(())
    }

    fn writer(&self, name: &str) -> &Mutex<()> {
        &self.writers[usize::from(fnv1a(name).to_le_bytes()[0]) % WRITERS]
    }
}

#[cfg(test)]
mod tests;
