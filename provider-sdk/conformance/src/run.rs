//! A run: prepares what the cases share, runs one after another, removes what they made, and judges nothing itself.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use ccm_proto::v1::{BatchGetInstancesRequest, ClusterRef, InstanceQuery, ProviderInfo, instance_result::Outcome as Found};
use clap::Args;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::case::{Case, Ended, Need};
use crate::config::{Config, ConfigError, Machine};
use crate::connection::{channel, unary};
use crate::context::{Context, HANDSHAKE, READING};
use crate::contract;
use crate::exchange::describe;
use crate::foreign::Foreign;
use crate::hooks::{Hook, Hooks};
use crate::journal::{Event, Journal, Thing};
use crate::process::{By, Launcher, Running};
use crate::report::{CaseReport, Failure, Outcome, Provider, Report};
use crate::safety::{self, Unsafe};
use crate::selection::Selection;
use crate::suite::{FIRST_EPOCH, Suite, handshake, socket_of};

/// How long one case may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// What a run is made of.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The provider's socket, as `unix:///absolute/path`
    #[arg(long, value_name = "ENDPOINT", required_unless_present_any = ["command", "list", "sentences"])]
    pub endpoint: Option<String>,

    /// Start the provider with this shell command, to which `--endpoint=…` is added. `{dir}` is a temporary folder
    #[arg(long, value_name = "COMMAND", conflicts_with = "endpoint")]
    pub command: Option<String>,

    /// What the suite may touch, and the hooks (YAML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Let the suite make and remove things in the cloud that the configuration names
    #[arg(long)]
    pub allow_mutations: bool,

    /// Where the suite notes what it makes
    #[arg(long, value_name = "FILE", default_value = "provider-conformance.journal")]
    pub journal: PathBuf,

    /// Which cases run.
    #[command(flatten)]
    pub selection: Selection,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Changing the cloud would not be safe.
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

impl From<Ended> for RunError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Broken { rule, what } => Self::Other(format!("[{rule}] {}: {what}", contract::text(rule))),
            Ended::Skipped(why) | Ended::Stuck(why) => Self::Other(why),
        }
    }
}

/// Runs the chosen cases, and tells `progress` of each.
pub async fn run(options: &Options, mut progress: impl FnMut(&CaseReport)) -> Result<Report, RunError> {
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let suite = Arc::new(prepare(options).await?);
    let foreign = Foreign::look(&suite).await;
    let mut cases = Vec::new();
    for case in options.selection.cases() {
        let report = run_case(&suite, case, &foreign).await;
        progress(&report);
        cases.push(report);
    }
    forget_machines(&suite).await?;
    let report = Report::new(Provider::of(&suite.info), date, cases);
    let command = suite.launcher.is_some();
    Ok(Report { hooks: suite.hooks.names(), mutations: suite.mutations, command, ..report })
}

async fn prepare(options: &Options) -> Result<Suite, RunError> {
    let config = options.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    let (launcher, process, socket) = provider(options).await?;
    let uid = config.cluster_uid.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
    let cluster = ClusterRef { name: "provider-conformance".into(), uid };
    let info = describe_itself(&socket, &cluster).await?;
    let dir = launcher.as_ref().map_or_else(PathBuf::new, |launcher| launcher.dir().to_owned());
    let hooks = Hooks::new(config.hooks.clone(), dir);
    let epoch = first_epoch(options, &config, &socket, &info, &cluster).await?;
    let journal = open_journal(options)?;
    let machines = machines(&config, &hooks, &socket, options.allow_mutations, &journal, &cluster).await?;
    let (mutations, process, epoch) = (options.allow_mutations, Mutex::new(process), AtomicU64::new(epoch));
    Ok(Suite { socket, info, cluster, config, machines, hooks, mutations, journal, launcher, process, epoch })
}

async fn provider(options: &Options) -> Result<(Option<Launcher>, Option<Running>, PathBuf), RunError> {
    let Some(command) = &options.command else {
        let endpoint = options.endpoint.as_deref().unwrap_or_default();
        return Ok((None, None, socket_of(endpoint).map_err(|why| RunError::Other(format!("--endpoint {why}")))?));
    };
    let launcher = Launcher::new(command).map_err(|error| RunError::Other(format!("no temporary folder: {error}")))?;
    let socket = launcher.main_socket();
    let running = launcher.start(&socket, By::Flag).await?;
    Ok((Some(launcher), Some(running), socket))
}

async fn describe_itself(socket: &Path, cluster: &ClusterRef) -> Result<ProviderInfo, RunError> {
    let answer = unary(&channel(socket), handshake(cluster), HANDSHAKE).await;
    let answer = answer.map_err(|status| RunError::Other(format!("GetProviderInfo failed: {}", describe(&status))))?;
    answer.info.ok_or_else(|| RunError::Other("GetProviderInfo answered without `info`, which is REQUIRED".into()))
}

async fn first_epoch(
    options: &Options,
    config: &Config,
    socket: &Path,
    info: &ProviderInfo,
    cluster: &ClusterRef,
) -> Result<u64, RunError> {
    if !options.allow_mutations {
        return Ok(FIRST_EPOCH);
    }
    safety::right_cloud(config, info)?;
    Ok(safety::first_epoch(&channel(socket), info, cluster).await?)
}

fn open_journal(options: &Options) -> Result<Journal, RunError> {
    if !options.allow_mutations {
        return Ok(Journal::default());
    }
    let path = &options.journal;
    Journal::open(path).map_err(|error| RunError::Other(format!("--journal {}: {error}", path.display())))
}

/// The machines of the configuration; without any, two that the hook makes.
async fn machines(
    config: &Config,
    hooks: &Hooks,
    socket: &Path,
    mutations: bool,
    journal: &Journal,
    cluster: &ClusterRef,
) -> Result<Vec<Machine>, RunError> {
    if !config.machines.is_empty() || !mutations || !hooks.has(Hook::CreateMachine) {
        return Ok(config.machines.clone());
    }
    let mut machines = Vec::new();
    for number in 1..=2 {
        let name = format!("conformance-{}-{number}", &cluster.uid[..cluster.uid.len().min(8)]);
        let noted = journal.note(Event::Made, cluster, Thing::Machine { name: name.clone() });
        noted.map_err(|error| RunError::Other(format!("--journal: {error}")))?;
        hooks.run(Hook::CreateMachine, &name).await?;
        let provider_id = id_of(socket, &name).await?;
        machines.push(Machine { name, provider_id });
    }
    Ok(machines)
}

async fn id_of(socket: &Path, name: &str) -> Result<String, RunError> {
    let channel = channel(socket);
    let start = Instant::now();
    while start.elapsed() < READING {
        let query = InstanceQuery { node_name: name.to_owned(), ..InstanceQuery::default() };
        let answer = unary(&channel, BatchGetInstancesRequest { queries: vec![query] }, READING).await;
        let result = answer.ok().and_then(|answer| answer.results.into_iter().next()?.outcome);
        if let Some(Found::Instance(machine)) = result {
            return Ok(machine.provider_id);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(RunError::Other(format!("hook createMachine made {name}, and the provider does not find it")))
}

async fn forget_machines(suite: &Suite) -> Result<(), RunError> {
    if suite.config.machines.is_empty() && suite.hooks.has(Hook::DeleteMachine) {
        for machine in &suite.machines {
            suite.hooks.run(Hook::DeleteMachine, &machine.name).await?;
            // A machine that is deleted twice by a later --cleanup does no harm.
            let _ = suite.journal.note(Event::Gone, &suite.cluster, Thing::Machine { name: machine.name.clone() });
        }
    }
    Ok(())
}

async fn run_case(suite: &Arc<Suite>, case: &'static Case, foreign: &Foreign) -> CaseReport {
    if let Some(need) = suite.lacks(case) {
        let not_offered = matches!(need, Need::Capability(_));
        return CaseReport::new(case, Outcome::Skipped { reason: format!("needs: {need}"), not_offered }, 0);
    }
    let start = Instant::now();
    let context = Context::new(Arc::clone(suite));
    let ran = timeout(PATIENCE, (case.run)(&context)).await;
    let ran = ran.unwrap_or_else(|_| Err(Ended::Stuck(format!("no end within {PATIENCE:?}"))));
    let tidied = context.tidy(case.needs.iter().any(|need| matches!(need, Need::Fault(_)))).await;
    let unchanged = if case.mutates() { foreign.unchanged(suite).await } else { Ok(()) };
    let outcome = match ran.and(tidied).and(unchanged) {
        Ok(()) => Outcome::Passed,
        Err(Ended::Skipped(reason)) => Outcome::Skipped { reason, not_offered: true },
        Err(Ended::Broken { rule, what }) => failure(&context, rule, what),
        Err(Ended::Stuck(what)) => failure(&context, "", what),
    };
    CaseReport::new(case, outcome, u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX))
}

fn failure(context: &Context, rule: &str, what: String) -> Outcome {
    let sentence = if rule.is_empty() { String::new() } else { contract::text(rule).to_owned() };
    Outcome::Failed(Failure { rule: rule.to_owned(), sentence, what, exchanges: context.exchanges.latest() })
}
