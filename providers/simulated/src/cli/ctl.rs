//! `provider-simulated ctl`: a hand in the cloud. Every command is one request to its API.
use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context as _, bail};
use ccm_provider_sdk::endpoint::Endpoint;
use clap::{Args, Subcommand, ValueEnum};

use super::table;
use crate::cloud::CloudApi as _;
use crate::cloud::faults::{Fault, FaultName, FaultSpec};
use crate::cloud::model::{Action, Address, AddressType, Change, Instance, Spec, State};
use crate::http::client::Client;
use load_balancers::{LoadBalancerCommand, LoadBalancerList};
use routes::{RouteCommand, RouteList};

mod load_balancers;
mod routes;

/// Reach into a running cloud: machines, load balancers, routes, faults, counters.
///
/// Talks to a provider's control socket (`serve --control`) or to a cloud's address (`cloud`). A change concerns all
/// machines named or, if one of them refuses, none; an unknown name is an error, unless the cloud has --auto-instances.
#[derive(Debug, Args)]
pub struct CtlArgs {
    #[command(flatten)]
    target: Target,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Target {
    /// Control socket of a provider: `unix:///PATH`
    #[arg(long, global = true, value_name = "ENDPOINT", env = "PROVIDER_SIMULATED_CONTROL")]
    control: Option<Endpoint>,

    /// Address of a cloud: `http://HOST:PORT`; wins over --control
    #[arg(long, global = true, value_name = "URL")]
    cloud: Option<String>,
}

impl Target {
    fn client(&self) -> anyhow::Result<Client> {
        match (&self.cloud, &self.control) {
            (Some(url), _) => Ok(Client::tcp(url)?),
            (None, Some(endpoint)) => Ok(Client::unix(endpoint.path())?),
            (None, None) => bail!("say whom to reach: --control unix:///PATH or --cloud http://HOST:PORT"),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print how often what was called, as one JSON object: {"BatchGetInstances":20}
    ///
    /// On a control socket these are the methods of the provider that concern the cloud, since it started; the handshake
    /// and the leadership are not counted. On a cloud's address they are the calls that all providers made to it, and
    /// OverlappingMutations: how often a mutation of a load balancer or of a destination came while one from the same process was
    /// running.
    Calls {
        /// Start again at zero, losing no call in between
        #[arg(long)]
        reset: bool,
    },

    /// List machines as they truly are: hidden ones, and changes that providers don't see yet, included
    ///
    /// Without names, all that the cloud stores. Auto-instances are stored once they were changed; name one to see it.
    Instances {
        /// Only these
        names: Vec<String>,
        /// table or json
        #[arg(long, short, value_enum, default_value_t = Output::Table)]
        output: Output,
    },

    /// Add machines. What is not said follows from each name: the same name gives the same machine everywhere
    Add(AddArgs),

    /// Shut machines down; they can be started again
    Stop(Names),

    /// Start machines
    Start(Names),

    /// Delete machines for good; their records stay, in the state "deleted"
    Terminate(Names),

    /// Delete machines and their records: the cloud does not know them any more. `add` makes new ones, with new ids
    Forget(Names),

    /// Lie about machines: providers are told that they are not there
    Hide(Names),

    /// Stop lying about machines
    Unhide(Names),

    /// Set, list and clear faults
    #[command(subcommand)]
    Fault(FaultCommand),

    /// List load balancers as they truly are, whosever they are
    ///
    /// The table has addresses and counts, the JSON everything: [{"name", "clusterUid", "namespace", "service",
    /// "serviceUid", "addresses": [..], "hostname"?, "state": "provisioning|ready", "targets": ["node", ..], "listeners":
    /// [{"port", "protocol", "nodePort"?}], "maxQps"?, "mutations"}]. Mutations are what its owner did to it, the creation
    /// included; what `ctl` does is not counted.
    LoadBalancers(LoadBalancerList),

    /// Change or remove a load balancer behind its owner's back, for a core to find
    #[command(subcommand)]
    LoadBalancer(LoadBalancerCommand),

    /// List the routes as they truly are, whosever they are
    ///
    /// The JSON has everything: [{"id", "destination", "target", "node"?, "providerId"?, "address"?, "clusterUid"?, "blackhole",
    /// "mutations"}]. Node and providerID are absent if the cloud does not have the machine any more. Mutations are what its owner
    /// did to it, the creation included; what `ctl` does is not counted.
    Routes(RouteList),

    /// Add, tag or remove a route behind its owner's back, for a core to find
    #[command(subcommand)]
    Route(RouteCommand),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Table,
    Json,
}

#[derive(Debug, Args)]
struct Names {
    /// The machines, by the names of their nodes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Args)]
struct AddArgs {
    #[command(flatten)]
    names: Names,
    /// Zone: one of the cloud's
    #[arg(long)]
    zone: Option<String>,
    /// Region; the cloud's unless given
    #[arg(long)]
    region: Option<String>,
    /// Size, such as sim.large
    #[arg(long = "type", value_name = "TYPE")]
    instance_type: Option<String>,
    /// Address, may be repeated: an IP address (`InternalIP`), or `TYPE=ADDRESS` with Kubernetes' types (`ExternalIP=192.0.2.1`)
    #[arg(long = "address", value_name = "[TYPE=]ADDRESS", value_parser = parse_address)]
    addresses: Vec<Address>,
    /// Label for the node, may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// State to begin with
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Id within the zone, to bring the very same machine back; for a single name
    #[arg(long)]
    id: Option<String>,
}

#[derive(Debug, Subcommand)]
enum FaultCommand {
    /// Set a fault, in place of one of the same name and scope
    ///
    /// Faults live in memory, in the process that has the cloud: the provider, or `cloud` where it runs by itself. A fault
    /// for all machines fails whole calls; one for some fails just their items, and hangs or spoils calls that ask for
    /// one of them. other-identity also makes the provider close its connections, so that cores shake hands anew;
    /// handshake-hang leaves handshakes without an answer and all other calls alone.
    ///
    /// error-all, unauthenticated, throttle and hang hit calls about load balancers and routes too. The faults lb-* hit only those:
    /// lb-error every one, lb-in-progress those that want to change something, lb-quota those that make or change a load
    /// balancer; lb-off takes the capability away. --for compares the pattern with NAMESPACE/NAME of the Service then.
    ///
    /// The faults route-* hit calls about routes: route-error every one, route-in-progress those that make or remove routes,
    /// route-quota those that make some; --for compares the pattern with the name of the route's node. route-stale,
    /// route-stale-unsaid, route-empty and route-list-broken spoil lists; route-off takes the capability away.
    Set {
        /// The fault
        #[arg(value_enum)]
        name: FaultName,
        /// Only for machines whose names fit this pattern, or for Services whose NAMESPACE/NAME does: * for any characters,
        /// ? for one
        #[arg(long = "for", value_name = "PATTERN")]
        pattern: Option<String>,
        /// Only for machines of this zone
        #[arg(long)]
        zone: Option<String>,
        /// Only for so many calls
        #[arg(long)]
        count: Option<u64>,
    },
    /// List the faults that are set
    List {
        /// table or json
        #[arg(long, short, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Clear a fault, or all of them
    Clear {
        /// Only this one; an error if it is not set
        #[arg(value_enum)]
        name: Option<FaultName>,
    },
}

/// Makes the request, and prints what came of it.
pub async fn run(args: CtlArgs) -> anyhow::Result<()> {
    let client = args.target.client()?;
    let text = match args.command {
        Command::Calls { reset } => calls(&client, reset).await?,
        Command::Instances { names, output } => instances(&client, &names, output).await?,
        Command::Add(add) => add.run(&client).await?,
        Command::Stop(names) => names.change(&client, Action::Stop).await?,
        Command::Start(names) => names.change(&client, Action::Start).await?,
        Command::Terminate(names) => names.change(&client, Action::Terminate).await?,
        Command::Forget(names) => names.change(&client, Action::Forget).await?,
        Command::Hide(names) => names.change(&client, Action::Hide).await?,
        Command::Unhide(names) => names.change(&client, Action::Unhide).await?,
        Command::Fault(command) => fault(&client, command).await?,
        Command::LoadBalancers(list) => list.run(&client).await?,
        Command::LoadBalancer(command) => command.run(&client).await?,
        Command::Routes(list) => list.run(&client).await?,
        Command::Route(command) => command.run(&client).await?,
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

async fn calls(client: &Client, reset: bool) -> anyhow::Result<String> {
    let calls = if reset { client.take_calls().await? } else { client.calls().await? };
    Ok(serde_json::to_string(&calls)? + "\n")
}

async fn instances(client: &Client, names: &[String], output: Output) -> anyhow::Result<String> {
    let instances = client.instances(names).await?;
    if let Some(missing) = names.iter().find(|name| !instances.iter().any(|instance| instance.name == **name)) {
        bail!("no instance {missing}");
    }
    Ok(match output {
        Output::Json => serde_json::to_string_pretty(&instances)? + "\n",
        Output::Table => {
            let rows: Vec<_> = instances.iter().map(row).collect();
            table::render(["NAME", "STATE", "TYPE", "ZONE", "PROVIDER-ID", "ADDRESSES", "HIDDEN"], &rows)
        }
    })
}

fn row(instance: &Instance) -> [String; 7] {
    let addresses: Vec<_> = instance.addresses.iter().map(|address| address.address.as_str()).collect();
    [
        instance.name.clone(),
        instance.state.to_string(),
        instance.instance_type.clone(),
        instance.zone.clone(),
        instance.provider_id.clone(),
        addresses.join(","),
        if instance.hidden { "hidden".into() } else { String::new() },
    ]
}

impl Names {
    async fn change(self, client: &Client, action: Action) -> anyhow::Result<String> {
        change(client, action, self.names.into_iter().map(Spec::named).collect()).await
    }
}

impl AddArgs {
    async fn run(self, client: &Client) -> anyhow::Result<String> {
        if self.id.is_some() && self.names.names.len() > 1 {
            bail!("--id is for a single name: two machines can't share an id");
        }
        let template = Spec {
            name: String::new(),
            id: self.id,
            state: self.state,
            instance_type: self.instance_type,
            zone: self.zone,
            region: self.region,
            addresses: self.addresses,
            labels: self.labels.into_iter().collect(),
            ..Spec::default()
        };
        let specs = self.names.names.into_iter().map(|name| Spec { name, ..template.clone() }).collect();
        change(client, Action::Add, specs).await
    }
}

/// Prints a line for each machine: what was done, its name and its providerID while it has one.
async fn change(client: &Client, action: Action, instances: Vec<Spec>) -> anyhow::Result<String> {
    let names: Vec<_> = instances.iter().map(|spec| spec.name.clone()).collect();
    let changed = client.change(Change { action, instances }).await?;
    let ids: std::collections::HashMap<_, _> = changed.into_iter().map(|one| (one.name, one.provider_id)).collect();
    let mut text = String::new();
    for name in names {
        let id = ids.get(&name).map(|id| format!(" {id}")).unwrap_or_default();
        writeln!(text, "{action} {name}{id}")?;
    }
    Ok(text)
}

async fn fault(client: &Client, command: FaultCommand) -> anyhow::Result<String> {
    match command {
        FaultCommand::Set { name, pattern, zone, count } => {
            client.set_fault(FaultSpec { name, pattern, zone, count }).await?;
            Ok(format!("set {}\n", name.as_str()))
        }
        FaultCommand::List { output } => faults(&client.faults().await?, output),
        FaultCommand::Clear { name } => {
            client.clear_faults(name).await?;
            Ok(format!("cleared {}\n", name.map_or("all", FaultName::as_str)))
        }
    }
}

fn faults(faults: &[Fault], output: Output) -> anyhow::Result<String> {
    if matches!(output, Output::Json) {
        return Ok(serde_json::to_string_pretty(faults)? + "\n");
    }
    let any = |text: &Option<String>| text.clone().unwrap_or_else(|| "*".into());
    let row = |fault: &Fault| {
        let left = fault.remaining.map_or_else(|| "all".into(), |left| left.to_string());
        [fault.spec.name.as_str().into(), any(&fault.spec.pattern), any(&fault.spec.zone), left, fault.set_at.to_string()]
    };
    Ok(table::render(["NAME", "FOR", "ZONE", "CALLS-LEFT", "SET-AT"], &faults.iter().map(row).collect::<Vec<_>>()))
}

fn parse_address(text: &str) -> Result<Address, String> {
    let Some((kind, address)) = text.split_once('=') else {
        return Ok(Address { kind: AddressType::InternalIP, address: text.to_owned() });
    };
    let kind = serde_json::from_value(kind.into()).map_err(|error| error.to_string())?;
    Ok(Address { kind, address: address.to_owned() })
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must have the form KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
