//! Where the programs under test are: built by cargo, once per test process, into the target folder of the test itself.
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::{Instant, interval_at};

/// How often a reader without a terminal sees that cargo goes on. In a terminal cargo has its own progress bar.
const TICK: Duration = Duration::from_secs(5);

static BUILT: OnceCell<Binaries> = OnceCell::const_new();

/// The two programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// `ccm-core`.
    pub core: PathBuf,
    /// `provider-simulated`.
    pub provider: PathBuf,
}

impl Binaries {
    /// Those that `CCM_CORE_BIN` and `PROVIDER_SIMULATED_BIN` name; what is not named there is built, or found up to date.
    /// Test processes side by side wait for each other at cargo's own lock.
    pub async fn get() -> Result<&'static Self> {
        BUILT.get_or_try_init(Self::build).await
    }

    async fn build() -> Result<Self> {
        let given = |name| env::var_os(name).map(PathBuf::from);
        if let (Some(core), Some(provider)) = (given("CCM_CORE_BIN"), given("PROVIDER_SIMULATED_BIN")) {
            return Ok(Self { core, provider });
        }
        let target = Target::of_this_process()?;
        cargo(target.build()).await?;
        Ok(Self {
            core: given("CCM_CORE_BIN").unwrap_or_else(|| target.program("ccm-core")),
            provider: given("PROVIDER_SIMULATED_BIN").unwrap_or_else(|| target.program("provider-simulated")),
        })
    }
}

/// Builds `provider-simulated` once more, as another version of itself, beside the usual one.
///
/// The setting of the profile tells the two builds apart, so that cargo keeps both and shares all that they depend on.
pub async fn another_provider(version: &str) -> Result<PathBuf> {
    let target = Target::of_this_process()?;
    let other = Target { dir: target.dir.join("another-build"), profile: target.profile.clone() };
    let mut command = other.build();
    command.arg("--config").arg(format!("profile.{}.package.provider-simulated.codegen-units=32", other.profile_name()));
    command.env("CARGO_BUILD_BUILD_DIR", &target.dir).env("PROVIDER_SIMULATED_VERSION", version);
    cargo(command).await?;
    Ok(other.program("provider-simulated"))
}

/// A target folder and one of its profiles.
#[derive(Clone, Debug)]
pub struct Target {
    /// The folder.
    pub dir: PathBuf,
    /// The profile's folder in it: `debug`, `release` or another profile's name.
    profile: String,
}

impl Target {
    /// Those that the running program was built into.
    pub fn of_this_process() -> Result<Self> {
        let program = env::current_exe().context("cannot find out where this program is")?;
        let folder = program.parent().filter(|dir| !dir.ends_with("deps")).or_else(|| program.parent()?.parent());
        let target = folder.and_then(|folder| Some((folder.parent()?, folder.file_name()?.to_str()?)));
        let (dir, profile) = target.with_context(|| format!("{} is in no target folder of cargo's", program.display()))?;
        Ok(Self { dir: dir.to_owned(), profile: profile.to_owned() })
    }

    fn profile_name(&self) -> &str {
        if self.profile == "debug" { "dev" } else { &self.profile }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.dir.join(&self.profile).join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// Every package, as always: another choice would be another set of features, and every dependency built once more.
    fn build(&self) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(["build", "--workspace", "--bins", "--profile", self.profile_name()]).arg("--target-dir").arg(&self.dir);
        command.current_dir(workspace()).stdin(Stdio::null());
        for name in own_variables() {
            command.env_remove(name);
        }
        command
    }
}

/// What cargo told this program about itself. Build scripts such as ring's watch these: a cargo that inherits them builds
/// ring, and all that stands on it, once more.
fn own_variables() -> impl Iterator<Item = OsString> {
    let is_own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    env::vars_os().map(|(name, _)| name).filter(move |name| name.to_str().is_some_and(is_own))
}

/// The root of the source tree.
pub fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

async fn cargo(mut command: Command) -> Result<()> {
    // The first build takes minutes: cargo's progress goes to stderr.
    let building = command.kill_on_drop(true).status();
    let status = if io::stderr().is_terminal() { building.await } else { in_view(building, |line| eprintln!("{line}")).await };
    let status = status.context("cannot run cargo")?;
    ensure!(status.success(), "cargo ended with {status}: see its messages above");
    Ok(())
}

/// Waits for a build, and says every [`TICK`] that it goes on.
async fn in_view<T>(building: impl Future<Output = T>, mut say: impl FnMut(String)) -> T {
    let began = Instant::now();
    let mut ticks = interval_at(began + TICK, TICK);
    tokio::pin!(building);
    loop {
        tokio::select! {
            built = &mut building => return built,
            _ = ticks.tick() => say(format!("still building, {} s so far", began.elapsed().as_secs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_build_is_seen_to_go_on() {
        let mut said = Vec::new();
        in_view(tokio::time::sleep(TICK * 3 + TICK / 2), |line| said.push(line)).await;
        assert_eq!(said, ["still building, 5 s so far", "still building, 10 s so far", "still building, 15 s so far"]);
    }

    #[test]
    fn a_build_inherits_nothing_that_cargo_said_about_this_program() {
        let target = Target { dir: PathBuf::from("target"), profile: "debug".to_owned() };
        let command = target.build();
        let removed: Vec<&OsStr> =
            command.as_std().get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
            assert!(removed.contains(&OsStr::new(name)), "{name} is inherited; removed are {removed:?}");
        }
    }
}
