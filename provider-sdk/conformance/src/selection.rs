//! Which cases run: `--only` and `--skip`. A word chooses the cases whose id or title has it, and those that cite it as a rule.
use clap::Args;

use crate::case::Case;
use crate::cases;

/// What was chosen.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    /// Run only cases that fit: an id, a part of one (`load-balancers/`), or a rule (`LB-14`); may be repeated
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Leave out cases that fit; wins over --only
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub skip: Vec<String>,
}

impl Selection {
    /// The chosen cases in their order.
    pub(crate) fn cases(&self) -> Vec<&'static Case> {
        let chosen = |case: &Case| self.only.is_empty() || self.only.iter().any(|word| fits(case, word));
        cases::all().filter(|case| chosen(case) && !self.skip.iter().any(|word| fits(case, word))).collect()
    }

    /// The ids of the chosen cases.
    pub fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.cases().into_iter().map(|case| case.id)
    }
}

fn fits(case: &Case, word: &str) -> bool {
    case.rules.contains(&word) || case.id.contains(word)
}
