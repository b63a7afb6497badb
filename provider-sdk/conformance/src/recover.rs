//! `--cleanup`: removes what the journal of a run that did not end says may still exist.
use std::fmt::Write as _;

use ccm_proto::v1::{ClusterRef, LeadRequest, Service};

use crate::cleanup;
use crate::connection::channel;
use crate::exchange::describe;
use crate::hooks::{Hook, Hooks};
use crate::journal::{self, Entry, Event, Journal, Thing};
use crate::lead::{self, Lead};
use crate::process::{By, Launcher};
use crate::run::{Options, RunError};
use crate::safety;
use crate::suite::{handshake, socket_of};
use crate::{config::Config, connection::unary, context::HANDSHAKE};

/// Removes all of it; what was removed, in words.
pub async fn clean_up(options: &Options) -> Result<String, RunError> {
    let other = |why: String| RunError::Other(why);
    let left = journal::left(&options.journal);
    let left = left.map_err(|error| other(format!("--journal {}: {error}", options.journal.display())))?;
    let config = options.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    let launcher = options.command.as_deref().map(Launcher::new).transpose();
    let launcher = launcher.map_err(|error| other(format!("no temporary folder: {error}")))?;
    let socket = match (&launcher, &options.endpoint) {
        (Some(launcher), _) => launcher.main_socket(),
        (None, endpoint) => socket_of(endpoint.as_deref().unwrap_or_default()).map_err(other)?,
    };
    let _running = match &launcher {
        Some(launcher) => Some(launcher.start(&socket, By::Flag).await?),
        None => None,
    };
    let dir = launcher.as_ref().map(|launcher| launcher.dir().to_owned()).unwrap_or_default();
    let remover = Remover {
        hooks: Hooks::new(config.hooks.clone(), dir),
        channel: channel(&socket),
        config,
        journal: Journal::open(&options.journal).map_err(|error| other(error.to_string()))?,
    };
    remover.remove(left).await
}

struct Remover {
    hooks: Hooks,
    channel: tonic::transport::Channel,
    config: Config,
    journal: Journal,
}

impl Remover {
    async fn remove(&self, left: Vec<Entry>) -> Result<String, RunError> {
        let mut text = String::new();
        for entry in left {
            let cluster = ClusterRef { name: entry.cluster_name.clone(), uid: entry.cluster_uid.clone() };
            self.remove_one(&cluster, &entry.thing).await?;
            let noted = self.journal.note(Event::Gone, &cluster, entry.thing.clone());
            noted.map_err(|error| RunError::Other(format!("--journal: {error}")))?;
            // Writing to a String does not fail.
            let _ = writeln!(text, "removed {:?}", entry.thing);
        }
        Ok(text + "nothing of an earlier run is left\n")
    }

    async fn remove_one(&self, cluster: &ClusterRef, thing: &Thing) -> Result<(), RunError> {
        if let Thing::Machine { name } = thing {
            return Ok(self.hooks.run(Hook::DeleteMachine, name).await.map(drop)?);
        }
        let lead = self.lead(cluster).await?;
        let epoch = lead.first.epoch;
        let removed = match thing {
            Thing::Route { destination } => {
                cleanup::routes(&self.channel, epoch, cluster, std::slice::from_ref(destination)).await
            }
            Thing::LoadBalancer { uid, namespace, name } => {
                let (uid, namespace, name) = (uid.clone(), namespace.clone(), name.clone());
                let service = Service { uid, namespace, name, ..Service::default() };
                cleanup::load_balancer(&self.channel, epoch, cluster, &service).await
            }
            Thing::Machine { .. } => Ok(()),
        };
        removed.map_err(|why| RunError::Other(format!("{thing:?} cannot be removed: {why}")))
    }

    async fn lead(&self, cluster: &ClusterRef) -> Result<Lead, RunError> {
        let answer = unary(&self.channel, handshake(cluster), HANDSHAKE).await;
        let info = answer.map_err(|status| RunError::Other(describe(&status)))?.info.unwrap_or_default();
        safety::right_cloud(&self.config, &info)?;
        let epoch = safety::first_epoch(&self.channel, &info, cluster).await?;
        let first = LeadRequest {
            epoch,
            valid_for: Some(prost_types::Duration { seconds: 600, nanos: 0 }),
            holder: "provider-conformance".into(),
            cluster: Some(cluster.clone()),
        };
        let opened = lead::open(&self.channel, first).await;
        opened.map(|(lead, _)| lead).map_err(|status| RunError::Other(describe(&status)))
    }
}
