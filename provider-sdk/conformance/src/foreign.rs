//! What is in the cloud and not of this run: it must stay the same. Seen by the hook listResources and by `ListRoutes`.
use ccm_proto::v1::{Capability, ListRoutesRequest, RouteOwner};

use crate::case::{Checked, check};
use crate::connection::collected;
use crate::context::READING;
use crate::hooks::Hook;
use crate::suite::Suite;

/// The foreign things at the start of a run; an absent list could not be had.
#[derive(Debug)]
pub struct Foreign {
    resources: Option<Vec<String>>,
    routes: Option<Vec<String>>,
}

impl Foreign {
    /// Lists them.
    pub async fn look(suite: &Suite) -> Self {
        if !suite.mutations {
            return Self { resources: None, routes: None };
        }
        Self { resources: resources(suite).await, routes: routes(suite).await }
    }

    /// Compares with what is there now.
    pub async fn unchanged(&self, suite: &Suite) -> Checked {
        let now = Self::look(suite).await;
        compare("LB-9", self.resources.as_deref(), now.resources.as_deref())?;
        compare("RT-4", self.routes.as_deref(), now.routes.as_deref())
    }
}

fn compare(rule: &'static str, before: Option<&[String]>, now: Option<&[String]>) -> Checked {
    let (Some(before), Some(now)) = (before, now) else { return Ok(()) };
    let gone: Vec<_> = before.iter().filter(|one| !now.contains(one)).collect();
    let new: Vec<_> = now.iter().filter(|one| !before.contains(one)).collect();
    check(rule, gone.is_empty() && new.is_empty(), format!("foreign things changed: gone {gone:#?}, new {new:#?}"))
}

async fn resources(suite: &Suite) -> Option<Vec<String>> {
    let text = suite.hooks.run(Hook::ListResources, "").await.ok()?;
    let mut lines: Vec<_> = text.lines().filter(|line| !line.contains(&suite.cluster.uid)).map(str::to_owned).collect();
    lines.sort();
    Some(lines)
}

/// The routes of others, without what changes by itself.
async fn routes(suite: &Suite) -> Option<Vec<String>> {
    if !suite.serves(Capability::Routes) {
        return None;
    }
    let request = ListRoutesRequest { cluster: Some(suite.cluster.clone()) };
    let parts = collected(&suite.connect(), request, READING).await.ok()?;
    let others = parts.into_iter().flat_map(|part| part.routes).filter(|route| route.owner() != RouteOwner::ThisCluster);
    let mut lines: Vec<_> =
        others.map(|route| format!("{} {} {}", route.destination_cidr, route.name, route.target_node_name)).collect();
    lines.sort();
    Some(lines)
}
