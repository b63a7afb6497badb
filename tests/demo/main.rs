//! The demo: ccm-core and its provider at work on a real API server, told line by line, and checked. It exits with 0 only if
//! everything that it shows did happen.
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use ccm_core::causes;
use ccm_test_support::process;
use clap::Parser;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::screen::Screen;
use crate::stage::Stage;
use crate::story::Story;

mod news;
mod routes;
mod screen;
mod services;
mod stage;
mod story;

/// What shells expect of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Shows ccm-core and its simulated provider at work: nodes join, get their routes, stop, end; a Service gets its load balancer; the provider is
/// killed, replaced, and lies.
///
/// It needs no cluster: it brings a real kube-apiserver of its own, which is built the first time (some minutes).
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Args {
    /// Clean up and exit when the show is over. Without a terminal that is so in any case; with one, the cluster stays up
    /// for kubectl until Ctrl-C.
    #[arg(long)]
    exit: bool,
    /// Use the cluster of this kubeconfig, with its rights. The nodes and the Service that are made there are named ccm-demo-*
    /// and removed in the end.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match show(&Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            Screen::new().failure(&causes::line(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// From the first build to the end of the cleaning up.
async fn show(args: &Args) -> Result<ExitCode> {
    let mut end = Interruption::listen()?;
    process::shield_children();
    // What was started ends with its owner, which an interruption drops.
    let (mut stage, screen) = tokio::select! {
        stage = prepare(args) => stage?,
        () = end.comes() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let screen = &screen;
    let happened = tokio::select! {
        happened = Story::new(&mut stage, screen).tell() => Some(happened),
        () = end.comes() => None,
    };
    let code = match happened {
        Some(true) if args.exit || !is_interactive() => ExitCode::SUCCESS,
        Some(true) => {
            invite(&stage, screen);
            end.comes().await;
            ExitCode::SUCCESS
        }
        Some(false) => {
            stage.show_logs(screen);
            ExitCode::FAILURE
        }
        None => ExitCode::from(INTERRUPTED),
    };
    stage.strike(screen).await?;
    Ok(code)
}

async fn prepare(args: &Args) -> Result<(Stage, Screen)> {
    Screen::new().heading("Building a control plane and two versions of the provider (the first time takes minutes)");
    let other_build = stage::build(args.kubeconfig.is_none()).await?;
    // The show's clock starts when everything is there.
    let screen = Screen::new();
    Ok((Stage::set(args.kubeconfig.as_deref(), other_build, &screen).await?, screen))
}

fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

fn invite(stage: &Stage, screen: &Screen) {
    screen.heading("The cluster is yours until Ctrl-C. In another terminal:");
    Screen::plain(&format!("  export KUBECONFIG={}", stage.kubeconfig().display()));
    Screen::plain("  kubectl get nodes -L topology.kubernetes.io/zone,node.kubernetes.io/instance-type");
    Screen::plain("  kubectl get events -A");
    Screen::plain(&format!("Logs and the provider's sockets are in {}", stage.dir().display()));
}

/// Ctrl-C, SIGTERM, or the end of the terminal.
struct Interruption([Signal; 3]);

impl Interruption {
    fn listen() -> Result<Self> {
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?]))
    }

    async fn comes(&mut self) {
        let Self([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
