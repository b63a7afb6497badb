//! The rules of the architecture, held by tests: ARCHITECTURE.md names each as an invariant. They read text and start nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::path::Path;

use crate::tree::{Source, files, has_word, read};

/// Fails with every finding at once.
fn none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

/// The lines of shipped core code in files that `concerns`, in which one of `words` stands.
fn uses_in_core(words: &[&str], concerns: impl Fn(&str) -> bool) -> Vec<String> {
    let core = files("rs").into_iter().filter(|file| file.path.starts_with("ccm-core/src/"));
    core.filter(|file| !file.is_test() && concerns(&file.path)).flat_map(|file| uses(&file, words)).collect()
}

fn uses(file: &Source, words: &[&str]) -> Vec<String> {
    let found = file.code().filter(|(_, line)| words.iter().any(|word| has_word(line, word)));
    found.map(|(at, line)| format!("{}:{at}: {}", file.path, line.trim())).collect()
}

fn is_decide(path: &str) -> bool {
    path.ends_with("/decide.rs") || path.contains("/decide/")
}

fn is_below(path: &str, module: &str) -> bool {
    path.starts_with(&format!("ccm-core/src/{module}/")) || path == format!("ccm-core/src/{module}.rs")
}

#[test]
fn decisions_are_pure() {
    let impure = ["async", "await", "tokio", "kube", "tonic", "ccm_proto", "elapsed", "rand", "SystemTime"];
    none("decide has no client, no clock and no async: time is an argument", &uses_in_core(&impure, is_decide));
    let decides = files("rs").into_iter().filter(|file| is_decide(&file.path) && !file.is_test());
    let clocks = decides.filter(|file| file.code().any(|(_, line)| line.contains("now()")));
    none("decide reads no clock", &clocks.map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn grpc_and_the_generated_types_stop_at_the_provider_port() {
    let outside = |path: &str| !is_below(path, "provider");
    none("only provider/ knows gRPC", &uses_in_core(&["tonic", "ccm_proto", "prost", "prost_types"], outside));
}

#[test]
fn only_cluster_writes_to_kubernetes() {
    // Every write of kube's takes one of these. The lease is no object of a controller: the elector writes it itself.
    let writes = ["PatchParams", "PostParams", "DeleteParams", "EvictParams", "Recorder"];
    let outside = |path: &str| !is_below(path, "cluster") && !is_below(path, "runtime/leader_election");
    none("only cluster/ writes to Kubernetes", &uses_in_core(&writes, outside));
}

#[test]
fn the_model_knows_no_client_and_no_transport() {
    let words = ["kube", "k8s_openapi", "tonic", "ccm_proto", "tokio", "async"];
    none("model is plain types", &uses_in_core(&words, |path| is_below(path, "model")));
}

#[test]
fn every_rust_file_says_what_it_is_for() {
    let silent: Vec<_> = files("rs").into_iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path).collect();
    none("every file opens with `//!`", &silent);
}

#[test]
fn no_module_is_named_for_having_no_subject() {
    let vague = ["mod.rs", "util.rs", "utils.rs", "common.rs", "helpers.rs", "misc.rs"];
    let named = |path: &str| vague.iter().any(|name| path.rsplit('/').next() == Some(name));
    let found: Vec<_> = files("rs").into_iter().map(|file| file.path).filter(|path| named(path)).collect();
    none("a module is named for its subject", &found);
}

#[test]
fn no_file_is_longer_than_500_lines() {
    let long = files("rs").into_iter().filter(|file| file.text.lines().count() > 500);
    none("split it by subject", &long.map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn every_rust_file_is_reached_from_its_crate() {
    let manifests = files("toml");
    let all = files("rs");
    let lost = all.iter().filter(|file| !is_root(&file.path, &manifests) && !is_declared(&file.path, &all));
    none("no `mod` names it, so nothing compiles or runs it", &lost.map(|file| file.path.clone()).collect::<Vec<_>>());
}

#[test]
fn every_kubeconfig_of_ours_has_its_ca() {
    let skips = [["insecure-skip-", "tls-verify"].concat(), ["Insecure", "SkipTLSVerify"].concat()];
    let ours = ["rs", "go", "py", "yaml"].into_iter().flat_map(files).filter(|file| !file.path.starts_with("ccm-core/src/"));
    let found = ours.filter(|file| skips.iter().any(|skip| file.text.contains(skip.as_str())));
    none("a kubeconfig gives the CA: no client skips verification", &found.map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn no_test_is_switched_off() {
    let mark = ["#[", "ignore"].concat();
    let off: Vec<_> = files("rs").into_iter().filter(|file| file.text.contains(&mark)).map(|file| file.path).collect();
    none("a test runs, or does not exist", &off);
}

/// Whether the file is the root of a crate: by cargo's own rules, or since its package's manifest says so.
fn is_root(path: &str, manifests: &[Source]) -> bool {
    let usual = ["build.rs", "src/main.rs", "src/lib.rs"];
    let by_name = usual.iter().any(|name| path == *name || path.ends_with(&format!("/{name}")));
    by_name || path.contains("/examples/") || is_found_test(path) || manifests.iter().any(|manifest| names_root(manifest, path))
}

/// Whether cargo finds the file as a test by itself: `tests/NAME/main.rs` in a package.
fn is_found_test(path: &str) -> bool {
    path.split("/tests/").nth(1).is_some_and(|inside| inside.split('/').count() == 2 && inside.ends_with("/main.rs"))
}

fn names_root(manifest: &Source, path: &str) -> bool {
    let folder = manifest.path.strip_suffix("Cargo.toml").unwrap_or("-");
    path.strip_prefix(folder).is_some_and(|inside| manifest.text.contains(&format!("path = \"{inside}\"")))
}

/// Whether the parent module declares the file: `foo/bar.rs` by `mod bar;` in `foo.rs`, or in a crate root in `foo`.
fn is_declared(path: &str, all: &[Source]) -> bool {
    let name = Path::new(path).file_stem().and_then(|stem| stem.to_str()).expect("a file has a name");
    let folder = Path::new(path).parent().and_then(Path::to_str).unwrap_or_default();
    let mut parents = all.iter().filter(|file| file.path == format!("{folder}.rs") || lies_in(&file.path, folder));
    parents.any(|file| file.text.lines().any(|line| declares(line, name)))
}

fn lies_in(path: &str, folder: &str) -> bool {
    Path::new(path).parent() == Some(Path::new(folder))
}

fn declares(line: &str, name: &str) -> bool {
    line.trim().strip_suffix(';').is_some_and(|line| line == format!("mod {name}") || line.ends_with(&format!(" mod {name}")))
}

#[test]
fn every_package_obeys_the_workspace_lints() {
    let lax = files("toml")
        .into_iter()
        .filter(|file| file.path.ends_with("Cargo.toml") && !file.text.contains("[lints]\nworkspace = true"));
    none("add `[lints] workspace = true`", &lax.map(|file| file.path).collect::<Vec<_>>());
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""), "no unsafe code, anywhere");
}
