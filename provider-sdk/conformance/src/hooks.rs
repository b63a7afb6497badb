//! The hooks: commands that do in the cloud what the protocol cannot. It runs them, and knows no cloud.
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

use crate::case::{Checked, Ended};
use crate::config::HookCommands;

/// How long a hook may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A command of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Makes a machine.
    CreateMachine,
    /// Stops a machine.
    StopMachine,
    /// Deletes a machine.
    DeleteMachine,
    /// Lists what exists.
    ListResources,
}

/// A fault of the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The cloud's API cannot be reached.
    CloudAway,
    /// The cloud refuses the credentials.
    CredentialsRefused,
    /// The cloud limits the rate.
    RateLimited,
    /// The cloud answers nothing until the fault ends.
    Hung,
    /// The provider's data is not refreshed.
    Stale,
    /// The quota of load balancers is used up.
    QuotaExceeded,
}

impl Hook {
    /// Its field in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateMachine => "createMachine",
            Self::StopMachine => "stopMachine",
            Self::DeleteMachine => "deleteMachine",
            Self::ListResources => "listResources",
        }
    }
}

impl Fault {
    /// Its key in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::CloudAway => "cloud-away",
            Self::CredentialsRefused => "credentials-refused",
            Self::RateLimited => "rate-limited",
            Self::Hung => "hung",
            Self::Stale => "stale",
            Self::QuotaExceeded => "quota-exceeded",
        }
    }
}

/// The hooks that were given.
#[derive(Debug)]
pub struct Hooks {
    commands: HookCommands,
    dir: PathBuf,
}

impl Hooks {
    /// The hooks, with `dir` for `{dir}`.
    pub fn new(commands: HookCommands, dir: PathBuf) -> Self {
        Self { commands, dir }
    }

    /// Whether there is a command for it.
    pub fn has(&self, hook: Hook) -> bool {
        self.command(hook).is_some()
    }

    /// Whether the fault can be caused and ended.
    pub fn can(&self, fault: Fault) -> bool {
        self.commands.set_fault.is_some() && self.commands.clear_faults.is_some() && self.commands.faults.contains_key(&fault)
    }

    /// The names of all that was given, for the report.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [Hook::CreateMachine, Hook::StopMachine, Hook::DeleteMachine, Hook::ListResources];
        let given = all.into_iter().filter(|hook| self.has(*hook)).map(Hook::name);
        given.chain(self.commands.faults.keys().filter(|fault| self.can(**fault)).map(|fault| fault.name())).collect()
    }

    /// Runs the hook for the machine `name`; what it printed.
    pub async fn run(&self, hook: Hook, name: &str) -> Checked<String> {
        let command = self.command(hook).ok_or_else(|| Ended::Skipped(format!("needs the hook {}", hook.name())))?;
        self.shell(hook.name(), &command.replace("{name}", name)).await
    }

    /// Causes the fault.
    pub async fn set(&self, fault: Fault) -> Checked {
        let word = self.commands.faults.get(&fault).map_or("", String::as_str);
        let command = self.commands.set_fault.as_deref().unwrap_or("false");
        self.shell("setFault", &command.replace("{fault}", word)).await.map(drop)
    }

    /// Ends all faults.
    pub async fn clear(&self) -> Checked {
        match &self.commands.clear_faults {
            Some(command) => self.shell("clearFaults", command).await.map(drop),
            None => Ok(()),
        }
    }

    fn command(&self, hook: Hook) -> Option<&String> {
        let commands = &self.commands;
        match hook {
            Hook::CreateMachine => commands.create_machine.as_ref(),
            Hook::StopMachine => commands.stop_machine.as_ref(),
            Hook::DeleteMachine => commands.delete_machine.as_ref(),
            Hook::ListResources => commands.list_resources.as_ref(),
        }
    }

    async fn shell(&self, name: &str, command: &str) -> Checked<String> {
        let command = command.replace("{dir}", &self.dir.display().to_string());
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).stdin(Stdio::null()).kill_on_drop(true);
        let stuck = |why: String| Ended::Stuck(format!("hook {name} failed: {why}; its command is: {command}"));
        let output = timeout(PATIENCE, shell.output()).await.map_err(|_| stuck(format!("no end within {PATIENCE:?}")))?;
        let output = output.map_err(|error| stuck(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(String::from_utf8_lossy(&output.stdout).into_owned()) } else { Err(stuck(said)) }
    }
}
