//! `--controllers`, in upstream's syntax, with upstream's names and aliases.
use std::collections::BTreeSet;

use clap::Args;
use serde::Serialize;

use super::Invalid;
use crate::names::controllers::{NODE, NODE_LIFECYCLE, ROUTE, SERVICE};

/// A controller that may be named.
struct Known {
    name: &'static str,
    alias: &'static str,
    /// Whether this version has it.
    built: bool,
}

/// Every controller of upstream's cloud-controller-manager, and `node-ipam-controller`.
const KNOWN: [Known; 5] = [
    Known { name: NODE, alias: "cloud-node", built: true },
    Known { name: NODE_LIFECYCLE, alias: "cloud-node-lifecycle", built: true },
    Known { name: SERVICE, alias: "service", built: true },
    Known { name: ROUTE, alias: "route", built: true },
    Known { name: "node-ipam-controller", alias: "nodeipam", built: false },
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Controllers")]
pub(super) struct ControllersArgs {
    /// Which controllers run: "*" is all of them, "foo" adds foo, "-foo" leaves foo out
    ///
    /// Controllers (aliases in brackets): cloud-node-controller (cloud-node), cloud-node-lifecycle-controller (cloud-node-lifecycle),
    /// service-lb-controller (service), node-route-controller (route).
    /// Known, but not part of this version: node-ipam-controller (nodeipam).
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    controllers: Vec<String>,
}

/// Which controllers run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ControllersConfig {
    enabled: BTreeSet<&'static str>,
}

impl ControllersConfig {
    /// Whether the controller of this name (one of [`crate::names::controllers`]) runs.
    pub fn runs(&self, name: &str) -> bool {
        self.enabled.contains(name)
    }

    /// The names of those that run.
    pub fn enabled(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.enabled.iter().copied()
    }
}

impl ControllersArgs {
    pub(super) fn validate(self, warnings: &mut Vec<String>) -> Result<ControllersConfig, Invalid> {
        let items: Vec<&str> = self.controllers.iter().map(|item| item.trim()).filter(|item| !item.is_empty()).collect();
        for item in items.iter().filter(|item| **item != "*") {
            let known = find(item.strip_prefix('-').unwrap_or(item))?;
            if !known.built && !item.starts_with('-') {
                warnings.push(format!("--controllers: {} is not part of this version; it does not run", known.name));
            }
        }
        let enabled: BTreeSet<_> =
            KNOWN.iter().filter(|known| known.built && known.wanted(&items)).map(|known| known.name).collect();
        if enabled.is_empty() {
            warnings.push("--controllers: it names no controller of this version; no controller runs".to_owned());
        }
        Ok(ControllersConfig { enabled })
    }
}

impl Known {
    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.alias == name
    }

    /// Upstream's rule: the first item that names the controller decides; without one, a star does.
    fn wanted(&self, items: &[&str]) -> bool {
        let named = items.iter().find_map(|item| match item.strip_prefix('-') {
            Some(name) => self.answers_to(name).then_some(false),
            None => self.answers_to(item).then_some(true),
        });
        named.unwrap_or_else(|| items.contains(&"*"))
    }
}

fn find(name: &str) -> Result<&'static Known, Invalid> {
    KNOWN.iter().find(|known| known.answers_to(name)).ok_or_else(|| {
        let list: Vec<_> = KNOWN.iter().map(|known| format!("{} ({})", known.name, known.alias)).collect();
        Invalid::new("controllers", format!("there is no controller {name:?}"), format!("name some of {}", list.join(", ")))
    })
}
