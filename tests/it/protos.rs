//! The proto files, read as text: what they declare, and that they explain all of it. No compiler, since it drops comments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use crate::tree::{Source, files};

/// A declaration and the comment above it.
pub struct Declaration {
    /// Where it is, `path:line`.
    pub place: String,
    /// What kind: `rpc`, `message`, `enum`, `oneof`, `service`, or `value` for fields and enum values.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The comment's text, without slashes.
    pub comment: String,
}

/// Everything that the proto files declare.
pub fn declarations() -> Vec<Declaration> {
    files("proto").iter().flat_map(of_file).collect()
}

/// The names of one kind.
pub fn names(kind: &str) -> Vec<String> {
    declarations().into_iter().filter(|declaration| declaration.kind == kind).map(|declaration| declaration.name).collect()
}

/// The values of an enum, by the prefix that they share, without it; the unspecified one left out.
pub fn enum_values(prefix: &str) -> Vec<Declaration> {
    let values = declarations().into_iter().filter_map(|declaration| {
        let name = declaration.name.strip_prefix(prefix)?.to_owned();
        Some(Declaration { name, ..declaration })
    });
    values.filter(|value| value.name != "UNSPECIFIED").collect()
}

fn of_file(file: &Source) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut comment = String::new();
    for (at, line) in file.text.lines().map(str::trim).enumerate() {
        if let Some(text) = line.strip_prefix("//") {
            format!("{comment} {}", text.trim()).trim().clone_into(&mut comment);
            continue;
        }
        let comment = std::mem::take(&mut comment);
        if let Some((kind, name)) = declared(line) {
            found.push(Declaration { place: format!("{}:{}", file.path, at + 1), kind, name, comment });
        }
    }
    found
}

fn declared(line: &str) -> Option<(&'static str, String)> {
    for kind in ["service", "rpc", "message", "enum", "oneof"] {
        if let Some(rest) = line.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            return Some((kind, name.to_owned()));
        }
    }
    let (left, right) = line.split_once(" = ")?;
    let is_number = right.trim_end_matches(';').parse::<u32>().is_ok();
    is_number.then(|| ("value", left.rsplit(' ').next().unwrap_or_default().to_owned()))
}

#[test]
fn every_declaration_of_the_protos_is_explained() {
    let all = declarations();
    assert!(all.len() > 300, "only {} declarations were found", all.len());
    let silent = all.iter().filter(|declaration| declaration.comment.len() < 3);
    let silent: Vec<_> = silent.map(|it| format!("{} {} {}", it.place, it.kind, it.name)).collect();
    assert!(silent.is_empty(), "without a comment:\n  {}", silent.join("\n  "));
}

#[test]
fn every_proto_file_says_where_its_bindings_belong_in_other_languages() {
    let options = [
        "option csharp_namespace = \"CcmCore.Provider.V1\";",
        "option go_package = \"ccm-core.dev/provider/ccmv1;ccmv1\";",
        "option java_multiple_files = true;",
        "option java_package = \"dev.ccm_core.provider.v1\";",
    ];
    let protos: Vec<_> = files("proto");
    assert!(protos.len() >= 9);
    let lacking = |file: &Source| options.iter().any(|option| file.text.lines().filter(|line| line == option).count() != 1);
    let lacking: Vec<_> = protos.iter().filter(|file| lacking(file)).map(|file| file.path.clone()).collect();
    assert!(lacking.is_empty(), "without {options:#?}: {lacking:?}");
}

#[test]
fn the_zero_of_every_enum_means_not_set() {
    let declarations = declarations();
    let pairs = declarations.windows(2).filter(|pair| pair[0].kind == "enum");
    let wrong: Vec<_> = pairs.filter(|pair| !pair[1].name.ends_with("_UNSPECIFIED")).map(|pair| pair[0].name.as_str()).collect();
    assert!(wrong.is_empty(), "enums that begin with a meaning: {wrong:?}");
}
