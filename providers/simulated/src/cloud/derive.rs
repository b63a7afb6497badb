//! Machines made out of nothing but a name: what `--auto-instances` answers, and what a new machine gets where nothing
//! was said. The same name gives the same machine in every process and every build, so nothing of it is stored.
use super::model::{Address, AddressType, Instance, Spec, State, provider_id};

/// Sizes, from which a name chooses.
const TYPES: [&str; 3] = ["sim.small", "sim.medium", "sim.large"];

/// Where machines can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The region.
    pub region: String,
    /// Its zones; never empty.
    pub zones: Vec<String>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { region: "sim-1".into(), zones: ["sim-1a", "sim-1b", "sim-1c"].map(String::from).into() }
    }
}

/// The machine of the spec's name: what the spec says, and what follows from the name elsewhere. `generation` counts the
/// machines that had the name before.
pub fn instance(layout: &Layout, generation: u32, spec: &Spec) -> Instance {
    let traits = Traits::of(&spec.name);
    let zone = spec.zone.clone().unwrap_or_else(|| traits.zone(&layout.zones));
    let id = spec.id.clone().unwrap_or_else(|| traits.id(generation));
    Instance {
        name: spec.name.clone(),
        provider_id: provider_id(&zone, &id),
        state: spec.state.unwrap_or(State::Running),
        instance_type: spec.instance_type.clone().unwrap_or_else(|| traits.instance_type()),
        region: spec.region.clone().unwrap_or_else(|| layout.region.clone()),
        zone,
        addresses: if spec.addresses.is_empty() { traits.addresses(&spec.name) } else { spec.addresses.clone() },
        labels: spec.labels.clone(),
        pod_cidrs: spec.pod_cidrs.clone(),
        hidden: spec.hidden,
    }
}

/// The machine that `--auto-instances` has for a name that nobody ever changed.
pub fn auto(layout: &Layout, name: &str) -> Instance {
    instance(layout, 0, &Spec::named(name))
}

/// What follows from a name. A number at its end spreads a numbered series evenly over the zones and keeps its addresses
/// apart; other names go by their hash.
struct Traits {
    hash: u64,
    number: u64,
}

impl Traits {
    fn of(name: &str) -> Self {
        let hash = fnv1a(name);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match name[stem.len()..].parse::<u16>() {
            // The hash of the stem alone, so that one series shares its second octet.
            Ok(number) => Self { hash, number: fnv1a(stem) % 256 * 65_536 + u64::from(number) },
            Err(_) => Self { hash, number: hash % (1 << 24) },
        }
    }

    fn zone(&self, zones: &[String]) -> String {
        let index = self.number % 65_536 % zones.len().max(1) as u64;
        usize::try_from(index).ok().and_then(|index| zones.get(index)).cloned().unwrap_or_default()
    }

    fn id(&self, generation: u32) -> String {
        format!("i-{:016x}", mix(self.hash.wrapping_add(u64::from(generation))))
    }

    fn instance_type(&self) -> String {
        TYPES[usize::from(mix(self.hash).to_le_bytes()[0]) % TYPES.len()].to_owned()
    }

    fn addresses(&self, name: &str) -> Vec<Address> {
        let [_, a, b, c] = u32::try_from(self.number).unwrap_or_default().to_be_bytes();
        vec![
            Address { kind: AddressType::InternalIP, address: format!("10.{a}.{b}.{c}") },
            Address { kind: AddressType::Hostname, address: name.to_owned() },
        ]
    }
}

/// FNV-1a: the standard library's hash may differ from one compiler to the next, and ids must not.
pub fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finisher of splitmix64: neighbours come out far apart, and no two inputs come out alike.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::*;

    #[test]
    fn a_name_gives_the_same_machine_in_every_build() {
        let machine = auto(&Layout::default(), "node-7");
        assert_eq!(machine.provider_id, "simulated://sim-1b/i-c2dee406096c0f60");
        assert_eq!(machine, auto(&Layout::default(), "node-7"));
    }

    #[test]
    fn two_hundred_numbered_names_spread_evenly_over_three_zones() {
        let layout = Layout::default();
        let mut counts = BTreeMap::new();
        for n in 0..200 {
            *counts.entry(auto(&layout, &format!("node-{n}")).zone).or_insert(0) += 1;
        }
        assert_eq!(counts.into_values().collect::<Vec<_>>(), [67, 67, 66]);
    }

    #[test]
    fn ten_thousand_machines_share_neither_id_nor_address() {
        let layout = Layout::default();
        let machines: Vec<_> = (0..10_000).map(|n| auto(&layout, &format!("node-{n:05}"))).collect();
        let ids: HashSet<_> = machines.iter().map(|m| &m.provider_id).collect();
        let addresses: HashSet<_> = machines.iter().map(|m| &m.addresses[0].address).collect();
        assert_eq!((ids.len(), addresses.len()), (10_000, 10_000));
    }

    #[test]
    fn another_machine_of_the_same_name_has_another_id() {
        let layout = Layout::default();
        let [first, second] = [0, 1].map(|generation| instance(&layout, generation, &Spec::named("web")));
        assert_ne!(first.provider_id, second.provider_id);
        assert_eq!(first.zone, second.zone);
    }
}
