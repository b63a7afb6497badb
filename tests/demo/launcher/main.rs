//! What `cargo demo` runs: builds the demo, shows that it goes on, and becomes the demo. It has no dependencies, so that the
//! first thing on the screen takes no build of minutes. It must not know what the demo does.
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

/// The demo's program.
const DEMO: &str = "ccm-demo";
/// How often a reader without a terminal sees that the build goes on. In a terminal cargo has its own progress bar.
const TICK: Duration = Duration::from_secs(5);
/// How often the build is looked at.
const POLL: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    match launch() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the demo and becomes it; answers how the build ended if that failed.
fn launch() -> io::Result<ExitStatus> {
    let folder = own_folder()?;
    eprintln!("demo: building the demo and ccm-core (the first time takes minutes)");
    let mut building = build(&folder).spawn()?;
    let built = if io::stderr().is_terminal() { building.wait() } else { ended_in_view(building, TICK, &mut io::stderr()) }?;
    if built.success() { Err(Command::new(folder.join(DEMO)).args(env::args_os().skip(1)).exec()) } else { Ok(built) }
}

/// Where this program is, and where cargo puts the demo, too: the folder of a profile in a target folder.
fn own_folder() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    program.parent().map(Path::to_owned).ok_or_else(|| io::Error::other(format!("{} is in no folder", program.display())))
}

/// The whole workspace's programs: the demo needs ccm-core and the provider as well. The build inherits nothing that cargo said
/// about this program, since build scripts that watch such variables would run again.
fn build(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let profile = folder.file_name().filter(|name| *name != "debug").unwrap_or("dev".as_ref());
    command.args(["build", "--workspace", "--bins", "--profile"]).arg(profile);
    command.arg("--target-dir").arg(folder.parent().unwrap_or(folder));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    let is_own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_own)) {
        command.env_remove(name);
    }
    command
}

/// Waits for the end of a build and writes a line after every `tick`.
fn ended_in_view(mut building: Child, tick: Duration, out: &mut impl Write) -> io::Result<ExitStatus> {
    let began = Instant::now();
    let mut next = tick;
    loop {
        if let Some(status) = building.try_wait()? {
            return Ok(status);
        }
        if began.elapsed() >= next {
            // A reader who is gone does not end the build.
            drop(writeln!(out, "demo: still building, {} s so far", began.elapsed().as_secs()));
            next += tick;
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Ends a silent child once two lines were written.
    struct Reader {
        lines: usize,
        child: Option<std::process::ChildStdin>,
    }

    impl Write for Reader {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.lines += String::from_utf8_lossy(text).matches('\n').count();
            if self.lines >= 2 {
                self.child = None;
            }
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_silent_build_is_seen_to_go_on() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut reader = Reader { lines: 0, child: child.stdin.take() };
        let status = ended_in_view(child, Duration::from_millis(10), &mut reader).unwrap();
        assert!(status.success() && reader.lines >= 2, "{} lines", reader.lines);
    }

    #[test]
    fn the_demo_is_built_with_the_profile_and_into_the_folder_of_the_launcher() {
        let arguments = |folder: &str| {
            let command = build(Path::new(folder));
            command.get_args().map(|argument| argument.to_str().unwrap().to_owned()).collect::<Vec<_>>()[3..].to_vec()
        };
        assert_eq!(arguments("/t/debug"), ["--profile", "dev", "--target-dir", "/t"]);
        assert_eq!(arguments("/t/release"), ["--profile", "release", "--target-dir", "/t"]);
    }
}
