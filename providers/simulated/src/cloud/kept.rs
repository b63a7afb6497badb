//! The world in memory, and on disk where there is one. A change is on the disk before anybody sees it; readers never wait
//! for the disk. What a change means is the world's matter.
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

use super::CloudError;
use super::model::{Change, Instance};
use super::store::{Saved, Store, StoreError};
use super::world::World;

/// The cloud's name where it keeps nothing and none was given: an in-memory cloud that starts anew is the same cloud.
pub const DEFAULT_IDENTITY: &str = "simulated://default";

/// The state of a cloud.
#[derive(Debug)]
pub struct Kept {
    identity: String,
    world: RwLock<Arc<World>>,
    /// One change at a time.
    store: Mutex<Option<Store>>,
}

impl Kept {
    /// A cloud that starts with `world`, or with what `store` has of a former process: then the machines and disks of
    /// `world` count for nothing. `identity` is what the user asked for, and wins.
    pub fn open(mut world: World, identity: Option<String>, store: Option<(Store, Option<Saved>)>) -> Result<Self, StoreError> {
        let (store, saved) = store.map_or((None, None), |(store, saved)| (Some(store), saved));
        let fallback = if store.is_some() { new_identity() } else { DEFAULT_IDENTITY.to_owned() };
        let identity = identity.or_else(|| Some(saved.as_ref()?.cloud_identity.clone())).unwrap_or(fallback);
        if let Some(saved) = saved {
            world.slots = saved.slots;
            world.volumes = saved.volumes;
        }
        let kept = Self { identity, world: RwLock::new(Arc::new(world)), store: Mutex::new(store) };
        kept.save(kept.store.lock().as_ref(), &kept.world())?;
        Ok(kept)
    }

    /// Names the cloud.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What is known now.
    pub fn world(&self) -> Arc<World> {
        Arc::clone(&self.world.read())
    }

    /// Makes a change, keeps it, and only then lets it be seen. Blocks for the disk.
    pub fn change(&self, change: &Change) -> Result<Vec<Instance>, CloudError> {
        let store = self.store.lock();
        let next = self.world().apply(change, Timestamp::now())?;
        self.save(store.as_ref(), &next)?;
        let changed = change.instances.iter().filter_map(|spec| next.truth(&spec.name)).collect();
        *self.world.write() = Arc::new(next);
        Ok(changed)
    }

    fn save(&self, store: Option<&Store>, world: &World) -> Result<(), StoreError> {
        let Some(store) = store else { return Ok(()) };
        store.save(&Saved::new(self.identity.clone(), world.slots.clone(), world.volumes.clone()))
    }
}

/// A name that no other cloud has, in the form of a UUID.
fn new_identity() -> String {
    let id = format!("{:032x}", rand::random::<u128>());
    format!("simulated://{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cloud::model::{Action, Spec, State};

    fn change(action: Action, name: &str) -> Change {
        Change { action, instances: vec![Spec::named(name)] }
    }

    #[test]
    fn a_restart_finds_the_machines_and_the_name_of_the_cloud() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Kept::open(World::default(), None, Some(Store::open(directory.path()).unwrap())).unwrap();
        let first = open();
        first.change(&change(Action::Add, "a")).unwrap();
        first.change(&change(Action::Stop, "a")).unwrap();
        let identity = first.identity().to_owned();
        drop(first);

        let second = open();
        assert_eq!(second.identity(), identity);
        assert_eq!(second.world().truth("a").unwrap().state, State::Stopped);
    }

    #[test]
    fn a_change_that_cannot_be_kept_is_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::open(World::default(), None, Some(Store::open(directory.path()).unwrap())).unwrap();
        drop(directory);
        assert!(matches!(kept.change(&change(Action::Add, "a")), Err(CloudError::Storage(_))));
        assert_eq!(kept.world().truth("a"), None);
    }

    #[test]
    fn without_a_directory_the_cloud_has_the_same_name_after_a_restart() {
        let open = || Kept::open(World::default(), None, None).unwrap().identity().to_owned();
        assert_eq!(open(), open());
    }
}
