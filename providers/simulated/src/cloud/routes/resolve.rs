//! Which machines routes lead to, as the cloud knows them at a time: stopped ones make blackholes, and those that are gone
//! cannot be resolved. Pure.
use std::sync::Arc;

use jiff::Timestamp;

use super::model::{Listed, Machine, Route, Target, Wanted};
use crate::cloud::model::{Instance, Outcome, Query, State};
use crate::cloud::world::World;

/// Routes with what the cloud knows of their targets at `now`.
pub fn listed<'a>(world: &World, routes: impl IntoIterator<Item = &'a Arc<Route>>, now: Timestamp) -> Vec<Listed> {
    let routes: Vec<_> = routes.into_iter().collect();
    let machines: Vec<_> = routes.iter().filter_map(|route| route.target.machine().cloned()).collect();
    let mut found = find(world, machines, now).into_iter();
    let list = |route: &Arc<Route>| {
        let machine = route.target.machine().and_then(|_| found.next().flatten());
        list(route, machine.as_ref())
    };
    routes.into_iter().map(list).collect()
}

fn list(route: &Arc<Route>, machine: Option<&Instance>) -> Listed {
    let has_address = |machine: &&Instance| match route.target.address() {
        Some(address) => machine.addresses.iter().any(|one| one.address.parse() == Ok(address)),
        None => true,
    };
    let machine = machine.filter(|machine| machine.state != State::Deleted).filter(has_address);
    let is_dropped = machine.is_none_or(|machine| machine.state == State::Stopped);
    Listed {
        blackhole: route.target.machine().is_some() && is_dropped,
        machine: machine.map(named),
        route: route.as_ref().clone(),
    }
}

/// The targets that are wanted; `None` for a machine that the cloud does not have.
pub fn targets(world: &World, wanted: &[Wanted], now: Timestamp) -> Vec<Option<Target>> {
    let found = find(world, wanted.iter().map(|one| one.machine.clone()).collect(), now).into_iter();
    let target = |(one, machine): (&Wanted, Option<Instance>)| {
        let machine = named(&machine.filter(|machine| machine.state != State::Deleted)?);
        Some(match one.address {
            Some(address) => Target::Address { address, machine: Some(machine) },
            None => Target::Machine(machine),
        })
    };
    wanted.iter().zip(found).map(target).collect()
}

fn named(machine: &Instance) -> Machine {
    Machine { node: machine.name.clone(), provider_id: Some(machine.provider_id.clone()) }
}

fn find(world: &World, machines: Vec<Machine>, now: Timestamp) -> Vec<Option<Instance>> {
    let query = |machine: Machine| Query { name: machine.node, provider_id: machine.provider_id };
    let queries: Vec<_> = machines.into_iter().map(query).collect();
    let found = |outcome| if let Outcome::Found(machine) = outcome { Some(machine) } else { None };
    world.answer(&queries, now).into_iter().map(found).collect()
}
