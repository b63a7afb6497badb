//! The demo: ccm-core and its provider at work on a real API server, told line by line, and checked. It exits with 0 only if
//! everything that it shows did happen.
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::screen::Screen;
use crate::stage::Stage;
use crate::story::Story;

mod news;
mod screen;
mod stage;
mod story;

/// Shows ccm-core and its simulated provider at work: nodes join, stop, end; the provider is killed, replaced, and lies.
///
/// It needs no cluster: it brings a real kube-apiserver of its own, which is built the first time (some minutes).
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Args {
    /// Clean up and exit when the show is over. Without a terminal that is so in any case; with one, the cluster stays up
    /// for kubectl until Ctrl-C.
    #[arg(long)]
    exit: bool,
    /// Use the cluster of this kubeconfig, with its rights. The nodes that are made there are named ccm-demo-* and removed
    /// in the end.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    tokio::select! {
        outcome = show(&args) => match outcome {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                Screen::new().failure(&format!("{error:#}"));
                ExitCode::FAILURE
            }
        },
        // Everything that was started ends with its owner, which goes here.
        _ = tokio::signal::ctrl_c() => ExitCode::from(130),
    }
}

/// True if everything happened.
async fn show(args: &Args) -> Result<bool> {
    Screen::new().heading("Building what is not built yet (the first time takes minutes)");
    let other_build = stage::build(args.kubeconfig.is_none()).await?;
    // The show's clock starts when everything is there.
    let screen = &Screen::new();
    let mut stage = Stage::set(args.kubeconfig.as_deref(), other_build, screen).await?;
    let happened = Story::new(&mut stage, screen).tell().await;
    if !happened {
        stage.show_logs(screen);
    } else if !args.exit && std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        invite(&stage, screen).await?;
    }
    stage.strike(screen).await?;
    Ok(happened)
}

async fn invite(stage: &Stage, screen: &Screen) -> Result<()> {
    screen.heading("The cluster is yours until Ctrl-C. In another terminal:");
    Screen::plain(&format!("  export KUBECONFIG={}", stage.kubeconfig().display()));
    Screen::plain("  kubectl get nodes -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type");
    Screen::plain("  kubectl get events -A");
    Screen::plain(&format!("Logs and the provider's sockets are in {}", stage.dir().display()));
    Ok(tokio::signal::ctrl_c().await?)
}
