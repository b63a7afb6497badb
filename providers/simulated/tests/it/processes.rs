//! Starts the program and waits until it answers; each test has a directory and processes of its own.
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ccm_proto::v1::identity_client::IdentityClient;
use ccm_proto::v1::instance_result::Outcome;
use ccm_proto::v1::instances_client::InstancesClient;
use ccm_proto::v1::{
    BatchGetInstancesRequest, ClusterRef, GetProviderInfoRequest, Instance, InstanceQuery, InstanceResult, InstanceState,
    ProviderInfo,
};
use ccm_provider_sdk::Endpoint;
use tempfile::TempDir;
use tokio::time::{interval, timeout};
use tonic::Status;
use tonic::transport::Channel;

/// How long anything may take that is not about time.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_provider-simulated"));
    program.env("PROVIDER_LOG", "error").env("RUST_LOG", "error");
    program
}

/// A process that is killed when the test ends.
pub struct Process(Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap())
    }

    pub fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// SIGKILL: nothing is flushed, nothing removed.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cloud by itself.
pub fn start_cloud(args: &[&str]) -> (Process, String) {
    let mut process = Process::start(program().arg("cloud").args(args));
    let url = process.first_line();
    assert!(url.starts_with("http://127.0.0.1:"), "{url:?}");
    (process, url)
}

/// A provider, its sockets and a client of it.
pub struct Provider {
    directory: TempDir,
    args: Vec<String>,
    process: Process,
    pub channel: Channel,
}

impl Provider {
    pub async fn start(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
        let (process, channel) = launch(&directory, &args).await;
        Self { directory, args, process, channel }
    }

    pub async fn restart(&mut self) {
        self.process.kill();
        (self.process, self.channel) = launch(&self.directory, &self.args).await;
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn control(&self) -> String {
        format!("unix://{}", self.path("control.sock").display())
    }

    pub fn endpoint(&self) -> Endpoint {
        format!("unix://{}", self.path("provider.sock").display()).parse().unwrap()
    }

    /// `ctl` on the control socket, which must succeed; its standard output.
    pub fn ctl(&self, args: &[&str]) -> String {
        let output = self.try_ctl(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn try_ctl(&self, args: &[&str]) -> Output {
        program().args(["ctl", "--control", &self.control()]).args(args).output().unwrap()
    }

    pub async fn info(&self) -> Result<ProviderInfo, Status> {
        handshake(&self.channel).await
    }

    pub async fn batch(&self, names: &[&str]) -> Result<Vec<InstanceResult>, Status> {
        self.look_up(names.iter().map(|name| InstanceQuery { node_name: (*name).into(), ..InstanceQuery::default() }).collect())
            .await
    }

    pub async fn look_up(&self, queries: Vec<InstanceQuery>) -> Result<Vec<InstanceResult>, Status> {
        let mut request = tonic::Request::new(BatchGetInstancesRequest { queries });
        request.set_timeout(Duration::from_secs(10));
        let mut client = InstancesClient::new(self.channel.clone());
        Ok(client.batch_get_instances(request).await?.into_inner().results)
    }

    /// The state of a machine; `None` if it is not found.
    pub async fn state(&self, name: &str) -> Option<InstanceState> {
        state(&self.batch(&[name]).await.unwrap()[0])
    }
}

pub fn state(result: &InstanceResult) -> Option<InstanceState> {
    match result.outcome.as_ref().unwrap() {
        Outcome::Instance(machine) => Some(machine.state()),
        Outcome::NotFound(_) => None,
        other => panic!("{other:?}"),
    }
}

pub fn machine(result: &InstanceResult) -> &Instance {
    let Some(Outcome::Instance(machine)) = &result.outcome else { panic!("{result:?}") };
    machine
}

pub async fn handshake(channel: &Channel) -> Result<ProviderInfo, Status> {
    let request = GetProviderInfoRequest {
        cluster: Some(ClusterRef { name: "kubernetes".into(), uid: "cluster-uid".into() }),
        core_version: "test".into(),
        protocol_versions: vec!["v1".into()],
        ..GetProviderInfoRequest::default()
    };
    Ok(IdentityClient::new(channel.clone()).get_provider_info(request).await?.into_inner().info.unwrap())
}

async fn launch(directory: &TempDir, args: &[String]) -> (Process, Channel) {
    let socket = |name: &str| format!("unix://{}", directory.path().join(name).display());
    let sockets = ["serve", "--endpoint", &socket("provider.sock"), "--control", &socket("control.sock")];
    let process = Process::start(program().args(sockets).args(args));
    let channel = socket("provider.sock").parse::<Endpoint>().unwrap().channel();
    eventually(async || handshake(&channel).await.ok()).await;
    (process, channel)
}

/// Asks until there is an answer.
pub async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = interval(Duration::from_millis(10));
    let asking = async {
        loop {
            ticks.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    timeout(PATIENCE, asking).await.expect("it did not happen in time")
}
