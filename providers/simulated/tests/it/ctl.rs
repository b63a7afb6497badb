//! `ctl` as scripts rely on it: what it prints, and when it fails.
use crate::processes::{Provider, program};

#[tokio::test]
async fn unknown_names_fail_with_a_message_and_change_nothing() {
    let provider = Provider::start(&[]).await;
    provider.ctl(&["add", "a"]);
    for command in ["stop", "start", "terminate", "forget", "hide", "unhide", "instances"] {
        let output = provider.try_ctl(&[command, "a", "ghost"]);
        assert!(!output.status.success(), "{command}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("no instance ghost"), "{command}: {message}");
    }
    assert!(provider.ctl(&["instances"]).contains("running"));
}

#[tokio::test]
async fn with_auto_instances_any_name_is_fine() {
    let provider = Provider::start(&["--auto-instances"]).await;
    for command in ["stop", "start", "hide", "unhide", "terminate", "forget", "forget", "add"] {
        provider.ctl(&[command, "anything"]);
    }
}

#[tokio::test]
async fn instances_are_listed_as_a_table_and_as_json() {
    let provider = Provider::start(&[]).await;
    provider.ctl(&["add", "a", "--address", "ExternalIP=192.0.2.1", "--label", "rack=r7"]);
    provider.ctl(&["hide", "a"]);
    let table = provider.ctl(&["instances"]);
    assert!(table.starts_with("NAME") && table.contains("192.0.2.1") && table.contains("hidden"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&provider.ctl(&["instances", "--output", "json"])).unwrap();
    assert_eq!(json[0]["name"], "a");
    assert_eq!(json[0]["labels"]["rack"], "r7");
    assert_eq!(json[0]["hidden"], true);
}

#[tokio::test]
async fn refusals_name_the_remedy() {
    let provider = Provider::start(&[]).await;
    provider.ctl(&["add", "a"]);
    provider.ctl(&["terminate", "a"]);
    let table: [(&[&str], &str); 4] = [
        (&["start", "a"], "can never run again"),
        (&["add", "b", "--zone", "moon"], "instances[0].zone: there is no zone \"moon\""),
        (&["fault", "clear", "hang"], "the fault hang is not set"),
        (&["fault", "set", "other-identity", "--count", "1"], "takes no node"),
    ];
    for (args, expected) in table {
        let output = provider.try_ctl(args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains(expected), "{args:?}: {message}");
    }
}

#[test]
fn without_anybody_there_it_says_so() {
    let nowhere = program().args(["ctl", "--control", "unix:///nonexistent/control.sock", "calls"]).output().unwrap();
    let message = String::from_utf8(nowhere.stderr).unwrap();
    assert!(!nowhere.status.success() && message.contains("unix:///nonexistent/control.sock"), "{message}");
    let nobody = program().args(["ctl", "calls"]).env_remove("PROVIDER_SIMULATED_CONTROL").output().unwrap();
    assert!(String::from_utf8(nobody.stderr).unwrap().contains("--control"));
}

#[test]
fn flags_of_a_cloud_are_refused_where_the_cloud_is_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = format!("unix://{}", directory.path().join("p.sock").display());
    let args = ["serve", "--endpoint", &endpoint, "--cloud", "http://127.0.0.1:1", "--auto-instances"];
    let output = program().args(args).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("--auto-instances belongs to the cloud"), "{message}");
}

#[test]
fn every_subcommand_has_help() {
    let commands: [&[&str]; 10] = [
        &["serve"],
        &["cloud"],
        &["ctl"],
        &["ctl", "add"],
        &["ctl", "fault", "set"],
        &["ctl", "load-balancers"],
        &["ctl", "load-balancer", "change"],
        &["ctl", "routes"],
        &["ctl", "route", "add"],
        &["health"],
    ];
    for command in commands {
        let output = program().args(command).arg("--help").output().unwrap();
        assert!(output.status.success() && output.stdout.len() > 300, "{command:?}");
    }
}
