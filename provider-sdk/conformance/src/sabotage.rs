//! A proxy between the suite and a provider that breaks one sentence of the contract at a time, in any language: for the suite's
//! own tests, and for those who write suites of their own. It knows the wire and what it breaks, and no case.
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use tonic::Status;

use crate::suite::socket_of;

mod balancers;
mod edits;
mod instances;
mod leads;
mod proxy;
mod raw;
mod shared;

pub use proxy::Proxy;

/// What is done to a call.
#[derive(Default)]
pub struct Edits {
    pub(crate) request: Option<RequestEdit>,
    pub(crate) answer: Option<AnswerEdit>,
    pub(crate) delay: Option<(&'static str, Duration)>,
    pub(crate) delayed: AtomicU64,
    pub(crate) instead: Option<Substitute>,
    pub(crate) lead_outlives: bool,
}

pub(crate) type RequestEdit = Box<dyn Fn(&str, Bytes) -> Bytes + Send + Sync>;
pub(crate) type Substitute = Box<dyn Fn(&str, &Bytes) -> Option<Result<Bytes, Status>> + Send + Sync>;
pub(crate) type AnswerEdit = Box<dyn Fn(&str, &Bytes, Result<Bytes, Status>) -> Result<Bytes, Status> + Send + Sync>;

/// One way to break the contract.
pub struct Sabotage {
    /// Its name.
    pub name: &'static str,
    /// The rules that it breaks; a failed case names one of them.
    pub rules: &'static [&'static str],
    pub(crate) edits: Edits,
}

impl std::fmt::Debug for Sabotage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sabotage").field("name", &self.name).field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Sabotage {
    pub(crate) fn new(name: &'static str, rules: &'static [&'static str], edits: Edits) -> Self {
        Self { name, rules, edits }
    }
}

/// Every sabotage.
pub fn all() -> Vec<Sabotage> {
    [shared::all(), instances::all(), leads::all(), balancers::all()].into_iter().flatten().collect()
}

/// Stand between a suite and a provider, and break one sentence of the contract.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to break; see --list
    #[arg(required_unless_present = "list")]
    name: Option<String>,

    /// Print every sabotage with the rules that it breaks
    #[arg(long)]
    list: bool,

    /// The socket to serve on, as `unix:///absolute/path`
    #[arg(long, value_name = "ENDPOINT", required_unless_present = "list")]
    endpoint: Option<String>,

    /// The provider's socket, as `unix:///absolute/path`
    #[arg(long, value_name = "ENDPOINT", required_unless_present = "list")]
    provider: Option<String>,
}

impl Args {
    /// Serves until the process is ended.
    pub async fn run(self) -> Result<(), String> {
        if self.list {
            all().iter().for_each(|one| println(&format!("{} [{}]", one.name, one.rules.join(" "))));
            return Ok(());
        }
        let name = self.name.unwrap_or_default();
        let chosen = all().into_iter().find(|one| one.name == name);
        let chosen = chosen.ok_or_else(|| format!("there is no sabotage {name:?}; see sabotage --list"))?;
        let (front, back) = (path(self.endpoint.as_deref())?, path(self.provider.as_deref())?);
        let _proxy = Proxy::start(&front, &back, chosen).map_err(|error| format!("{}: {error}", front.display()))?;
        tokio::signal::ctrl_c().await.map_err(|error| error.to_string())
    }
}

fn path(endpoint: Option<&str>) -> Result<PathBuf, String> {
    socket_of(endpoint.unwrap_or_default())
}

fn println(line: &str) {
    use std::io::Write as _;
    // A reader that went away is no failure.
    let _ = writeln!(std::io::stdout(), "{line}");
}
