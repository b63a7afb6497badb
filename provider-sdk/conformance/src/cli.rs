//! The command line: what can be asked for, what is printed where, and the exit code.
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::coverage;
use crate::recover;
use crate::report::{CaseReport, Report, junit, text};
use crate::run::{Options, RunError, run};
use crate::sabotage;

/// Say whether a ccm-core provider does what its contract asks for.
///
/// Without --allow-mutations the suite only reads. Exit code: 0 if no case failed, 1 if one did, 2 if the run could not begin.
#[derive(Debug, Parser)]
#[command(name = "provider-conformance", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    tool: Option<Tool>,

    #[command(flatten)]
    options: Options,

    /// Print the cases that would run, with the rules that they cite and what they need
    #[arg(long)]
    list: bool,

    /// Print each sentence of the contract with its cases, or why it has none
    #[arg(long)]
    sentences: bool,

    /// Remove what the journal says an earlier run left, and run nothing
    #[arg(long)]
    cleanup: bool,

    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write the report to publish: JSON if the name ends so, YAML otherwise
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Tool {
    Sabotage(sabotage::Args),
}

impl Cli {
    /// Does what was asked for.
    pub async fn run(self) -> ExitCode {
        match self.outcome().await {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => {
                say(&format!("provider-conformance: {error}\n"));
                ExitCode::from(2)
            }
        }
    }

    async fn outcome(self) -> Result<bool, RunError> {
        if let Some(Tool::Sabotage(args)) = self.tool {
            return args.run().await.map(|()| true).map_err(RunError::Other);
        }
        if self.list || self.sentences {
            print(&if self.list { coverage::list(&self.options.selection.cases()) } else { coverage::sentences() });
            return Ok(true);
        }
        if self.cleanup {
            print(&recover::clean_up(&self.options).await?);
            return Ok(true);
        }
        self.test().await
    }

    async fn test(self) -> Result<bool, RunError> {
        let all = self.options.selection.cases().len();
        let mut done = 0;
        let progress = |case: &CaseReport| {
            done += 1;
            let count = if std::io::stderr().is_terminal() { format!("[{done}/{all}] ") } else { String::new() };
            say(&format!("{count}{}\n", text::line(case)));
        };
        let report = run(&self.options, progress).await?;
        print(&text::summary(&report));
        self.write(&report).map_err(RunError::Other)?;
        Ok(report.failures().next().is_none())
    }

    fn write(&self, report: &Report) -> Result<(), String> {
        if let Some(path) = &self.junit {
            std::fs::write(path, junit::xml(report)).map_err(|error| format!("--junit {}: {error}", path.display()))?;
        }
        let Some(path) = &self.report else { return Ok(()) };
        let json = path.extension().is_some_and(|extension| extension == "json");
        let text = if json {
            serde_json::to_string_pretty(report).map_err(|error| error.to_string())
        } else {
            serde_yaml_ng::to_string(report).map_err(|error| error.to_string())
        };
        let written = text.and_then(|text| std::fs::write(path, text).map_err(|error| error.to_string()));
        written.map_err(|error| format!("--report {}: {error}", path.display()))
    }
}

/// To standard output; a reader that went away is no failure of the run.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// To standard error: progress.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
