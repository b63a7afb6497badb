//! The documents: the commands on the first screen, and links that lead somewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use crate::tree::{Source, files, read, root};

/// The contents of the fenced blocks of one language, in their order.
fn fenced(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    text.split(&opening).skip(1).filter_map(|rest| rest.split("\n```").next()).map(str::to_owned).collect()
}

/// The targets of `[text](target)`, code left out.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split(')').next()).collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

fn broken(document: &Source, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let target = root().join(folder).join(file);
    if !file.is_empty() && !target.exists() {
        return Some(format!("{}: {link}: there is no such file", document.path));
    }
    let text = if file.is_empty() { document.text.clone() } else { std::fs::read_to_string(target).unwrap_or_default() };
    let lost = !anchor.is_empty() && !anchors(&text).iter().any(|found| found == anchor);
    lost.then(|| format!("{}: {link}: there is no such heading", document.path))
}

#[test]
fn the_readme_begins_with_the_demo_and_the_tests() {
    let readme = read("README.md");
    let commands = fenced(&readme, "sh");
    assert_eq!(commands.first().map(String::as_str), Some("cargo demo"));
    assert_eq!(commands.get(1).map(String::as_str), Some("tests/all"));
    assert!(readme.find("```") == readme.find("```sh"), "no other block comes before them");
}

#[test]
fn every_link_inside_the_project_leads_somewhere() {
    let documents = files("md");
    assert!(documents.len() >= 5, "README, ARCHITECTURE, CONTRIBUTING, CHANGELOG and CONTRACT at least");
    let all = documents.iter().flat_map(|document| links(&document.text).into_iter().map(move |link| (document, link)));
    let inside = all.filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"));
    let broken: Vec<_> = inside.filter_map(|(document, link)| broken(document, link)).collect();
    assert!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
}
