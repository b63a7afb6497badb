//! The contract as the suite cites it: the text of each rule by its id, and the digest of the documents. It judges nothing.
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

const DOCUMENT: &str = include_str!("../../../proto/CONTRACT.md");

/// The documents that the digest is made of, in this order.
const DOCUMENTS: [(&str, &str); 10] = [
    ("CONTRACT.md", DOCUMENT),
    ("clusters.proto", include_str!("../../../proto/ccm/provider/v1/clusters.proto")),
    ("errors.proto", include_str!("../../../proto/ccm/provider/v1/errors.proto")),
    ("identity.proto", include_str!("../../../proto/ccm/provider/v1/identity.proto")),
    ("instances.proto", include_str!("../../../proto/ccm/provider/v1/instances.proto")),
    ("load_balancers.proto", include_str!("../../../proto/ccm/provider/v1/load_balancers.proto")),
    ("routes.proto", include_str!("../../../proto/ccm/provider/v1/routes.proto")),
    ("types.proto", include_str!("../../../proto/ccm/provider/v1/types.proto")),
    ("volumes.proto", include_str!("../../../proto/ccm/provider/v1/volumes.proto")),
    ("zones.proto", include_str!("../../../proto/ccm/provider/v1/zones.proto")),
];

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| blocks(DOCUMENT).iter().flat_map(|block| rules_of(block)).collect());

/// A rule of the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id, such as `INST-5`.
    pub id: String,
    /// Its sentence, or its row of a table.
    pub text: String,
    /// Whether it is a MUST. A row of a table is one; a sentence with SHOULD alone is none.
    pub must: bool,
}

/// Every rule of the contract, in the order of the document.
pub fn rules() -> &'static [Rule] {
    &RULES
}

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// The sentence of a rule, for messages.
pub fn text(id: &str) -> &'static str {
    rule(id).map_or("(no rule of this contract)", |rule| &rule.text)
}

/// The SHA-256 of the documents, in hexadecimal: two reports with one digest are about one contract.
pub fn digest() -> String {
    let mut hash = Sha256::new();
    for (name, text) in DOCUMENTS {
        hash.update(format!("{name} {}\n", text.len()));
        hash.update(text);
    }
    hash.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The document in pieces: each paragraph, each item of a list and each row of a table is one.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['|', '#', '-']) {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(line.strip_prefix("- ").unwrap_or(line));
            block.push(' ');
        }
    }
    blocks
}

fn rules_of(block: &str) -> Vec<Rule> {
    let pieces = block.split('[').skip(1).filter_map(|piece| piece.split_once("] "));
    let ids: Vec<_> = pieces.filter(|(id, _)| is_id(id)).map(|(id, _)| id).collect();
    ids.into_iter().map(|id| rule_in(block, id)).collect()
}

fn rule_in(block: &str, id: &str) -> Rule {
    let after = block.split_once(&format!("[{id}] ")).map_or("", |(_, rest)| rest);
    let row = block.starts_with('|');
    let text = if row { after.trim_end_matches([' ', '|']) } else { sentence(after) };
    Rule { id: id.to_owned(), text: text.trim().to_owned(), must: row || text.contains("MUST") }
}

/// The text up to its first full stop that ends a sentence.
fn sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(prefix, number)| {
        prefix.chars().all(|c| c.is_ascii_uppercase()) && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sentence_and_a_row_are_found_with_their_text() {
        assert_eq!(text("LB-14"), "`PlanLoadBalancer` MUST change nothing.");
        assert!(text("INST-28").starts_with("the batch is longer than the limit | INVALID_ARGUMENT `BATCH_TOO_LARGE`"));
        assert!(rule("LB-14").unwrap().must && rule("INST-28").unwrap().must && !rule("INST-4").unwrap().must);
    }

    #[test]
    fn every_id_is_there_once() {
        let mut ids: Vec<_> = rules().iter().map(|rule| &rule.id).collect();
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert!(all > 200 && ids.len() == all, "{all} rules, {} ids", ids.len());
    }

    #[test]
    fn the_digest_is_of_every_document() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/ccm/provider/v1")).unwrap();
        assert_eq!(files.count() + 1, DOCUMENTS.len(), "a proto file came or went");
        assert_eq!(digest().len(), 64);
    }
}
