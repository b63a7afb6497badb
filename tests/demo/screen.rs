//! How the demo looks: plain lines with the time since it began, coloured on a terminal only.
use std::env;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const DIM: &str = "2";

/// Where lines go.
#[derive(Clone, Debug)]
pub struct Screen {
    began: Instant,
    coloured: bool,
}

/// What kind of news a line brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It goes on.
    Neutral,
    /// Something good happened.
    Good,
    /// Something bad happened, as it should in this show.
    Bad,
}

impl Screen {
    /// Standard output. `NO_COLOR` is honoured.
    pub fn new() -> Self {
        Self { began: Instant::now(), coloured: io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none() }
    }

    /// A new chapter.
    pub fn heading(&self, text: &str) {
        print(&format!("\n{}", self.paint(BOLD, text)));
    }

    /// What the demo itself does.
    pub fn act(&self, text: &str) {
        print(&format!("{}  {} {text}", self.clock(), self.paint(CYAN, ">")));
    }

    /// What happens to something.
    pub fn news(&self, subject: &str, tone: Tone, text: &str) {
        let colour = match tone {
            Tone::Neutral => DIM,
            Tone::Good => GREEN,
            Tone::Bad => YELLOW,
        };
        print(&format!("{}    {subject:<14} {}", self.clock(), self.paint(colour, text)));
    }

    /// A line as it is.
    pub fn plain(text: &str) {
        print(text);
    }

    /// One row of the summary.
    pub fn result(&self, happened: bool, what: &str, seen: &str) {
        let mark = if happened { self.paint(GREEN, "ok    ") } else { self.paint(RED, "FAILED") };
        print(&format!("  {mark}  {what:<42}  {seen}"));
    }

    /// The demo cannot go on.
    pub fn failure(&self, text: &str) {
        eprintln!("{}", self.paint(RED, &format!("demo: {text}")));
    }

    fn clock(&self) -> String {
        self.paint(DIM, &format!("{:6.2}s", self.began.elapsed().as_secs_f64()))
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.coloured { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn print(line: &str) {
    // A reader who has seen enough closes the pipe; that is no failure of the show.
    drop(writeln!(io::stdout(), "{line}"));
}
