//! What the flags of a deployment become, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;
use serde_json::json;

use super::{Cli, Config, ConfigError, Drift, Invocation, Listed, LogFormat, Output};
use crate::names::controllers::{NODE, NODE_LIFECYCLE, ROUTE, SERVICE};

const ENDPOINT: &str = "--provider-endpoint=unix:///run/ccm/provider.sock";

fn parse(flags: &[&str]) -> Result<Config, ConfigError> {
    Config::from_args(["ccm-core", ENDPOINT].iter().chain(flags))
}

fn refusal(flags: &[&str]) -> String {
    parse(flags).unwrap_err().to_string()
}

#[test]
fn clap_finds_nothing_wrong_with_the_command() {
    Cli::command().debug_assert();
}

#[test]
fn the_defaults_are_gos_where_go_has_them() {
    let config = parse(&[]).unwrap();
    assert_eq!(config.leader_election.lease_duration, Duration::from_secs(15));
    assert_eq!(config.leader_election.renew_deadline, Duration::from_secs(10));
    assert_eq!(config.leader_election.retry_period, Duration::from_secs(2));
    assert!(config.leader_election.enabled);
    assert_eq!(config.leader_election.resource_name, "cloud-controller-manager");
    assert_eq!(config.leader_election.resource_namespace, "kube-system");
    assert_eq!(config.kubernetes.cluster_name, "kubernetes");
    assert_eq!(config.kubernetes.qps, None);
    assert_eq!(config.nodes.monitor_period, Duration::from_secs(5));
    assert_eq!(config.nodes.status_update_frequency, Duration::from_secs(300));
    assert_eq!(config.serving.address.unwrap().to_string(), "127.0.0.1:10258");
    assert_eq!(config.provider.endpoint.to_string(), "unix:///run/ccm/provider.sock");
    assert!([NODE, NODE_LIFECYCLE, SERVICE, ROUTE].iter().all(|name| config.controllers.runs(name)));
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[test]
fn the_arguments_of_an_existing_deployment_keep_working() {
    let flags = [
        "--cloud-provider=external",
        "--leader_elect",
        "--use-service-account-credentials=true",
        "--cloud-config=/etc/cloud.conf",
        "--bind-address=127.0.0.1",
        "--allocate-node-cidrs=false",
        "--configure-cloud-routes=false",
        "--controllers=*,-service,-route",
        "--leader-elect-lease-duration=2m17s",
        "--leader-elect-renew-deadline=1m47s",
        "--leader-elect-retry-period",
        "26s",
        "-v=4",
    ];
    let config = parse(&flags).unwrap();
    assert_eq!(config.logging.verbosity, 4);
    assert_eq!(config.leader_election.lease_duration, Duration::from_secs(137));
    assert_eq!(config.provider.required_name, None);
    let named: Vec<_> = config.warnings.iter().map(|warning| warning.split(' ').next().unwrap()).collect();
    assert_eq!(named, ["--cloud-config", "--use-service-account-credentials"]);
}

#[test]
fn booleans_are_written_as_in_go() {
    assert!(!parse(&["--leader-elect=false"]).unwrap().leader_election.enabled);
    assert!(parse(&["--leader-elect=false", "--leader-elect"]).unwrap().leader_election.enabled);
    assert!(parse(&["--allow-untagged-cloud"]).unwrap().provider.allow_untagged_cloud);
}

#[test]
fn the_last_of_a_repeated_flag_counts_and_lists_grow() {
    assert_eq!(parse(&["--cluster-name=a", "--cluster-name=b"]).unwrap().kubernetes.cluster_name, "b");
    let config = parse(&["--controllers=*", "--controllers=-cloud-node"]).unwrap();
    assert_eq!(config.controllers.enabled().collect::<Vec<_>>(), [NODE_LIFECYCLE, ROUTE, SERVICE]);
}

#[test]
fn controllers_are_chosen_as_in_go() {
    let rows: [(&str, &[&str]); 10] = [
        ("*", &[NODE_LIFECYCLE, NODE, SERVICE, ROUTE]),
        ("-cloud-node,*", &[NODE_LIFECYCLE, SERVICE, ROUTE]),
        ("service", &[SERVICE]),
        ("route", &[ROUTE]),
        ("*,-node-route-controller", &[NODE_LIFECYCLE, NODE, SERVICE]),
        ("*,-service-lb-controller", &[NODE_LIFECYCLE, NODE, ROUTE]),
        ("cloud-node", &[NODE]),
        ("cloud-node-lifecycle-controller", &[NODE_LIFECYCLE]),
        ("*,-cloud-node,cloud-node", &[NODE_LIFECYCLE, SERVICE, ROUTE]),
        ("-cloud-node", &[]),
    ];
    for (list, expected) in rows {
        let config = parse(&[&format!("--controllers={list}")]).unwrap();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(config.controllers.enabled().collect::<Vec<_>>(), expected, "{list}");
    }
}

#[test]
fn a_controller_of_another_version_is_named_in_a_warning() {
    let config = parse(&["--controllers=cloud-node,nodeipam,node-route-controller"]).unwrap();
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].contains("node-ipam-controller is not part of this version"));
    let unknown = refusal(&["--controllers=*,-cloud-nodes"]);
    assert!(
        unknown.contains("\"cloud-nodes\"") && unknown.contains("cloud-node-lifecycle-controller (cloud-node-lifecycle)"),
        "{unknown}"
    );
}

#[test]
fn refusals_name_the_flag_and_the_remedy() {
    let rows = [
        ("--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline"),
        ("--leader-elect-lease-duration=10.9s", "--leader-elect-lease-duration"),
        ("--leader-elect-lease-duration=0", "--leader-elect-lease-duration"),
        ("--leader-elect-retry-period=9s", "--leader-elect-renew-deadline"),
        ("--leader-elect-resource-lock=endpoints", "write leases"),
        ("--leader-elect-resource-name=", "--leader-elect-resource-name"),
        ("--node-deletion-zone-fraction=0", "0.2"),
        ("--node-deletion-zone-fraction=NaN", "0.2"),
        ("--concurrent-node-syncs=0", "1 or more"),
        ("--concurrent-service-syncs=-1", "--concurrent-service-syncs"),
        ("--load-balancer-classes=internal,Example.com/a", "example.com/internal"),
        ("--load-balancer-classes=a/b/c", "spec.loadBalancerClass"),
        ("--load-balancer-default-class=false", "--load-balancer-classes, or leave the controller out"),
        ("--load-balancer-default-class=no", "neither true nor false"),
        ("--load-balancer-drift=fix", "report, repair, off"),
        ("--load-balancer-drift-period=0s", "greater than zero"),
        ("--route-deletion-fraction=1.1", "0.2"),
        ("--route-deletion-window=0", "greater than zero"),
        ("--route-reconciliation-period=0s", "greater than zero"),
        ("--configure-cloud-routes=no", "neither true nor false"),
        ("--cluster-cidr=10.0.0.0", "ADDRESS/PREFIX"),
        ("--cluster-cidr=10.0.0.0/8,11.0.0.0/8", "one of IPv4 and one of IPv6"),
        ("--kube-api-qps=-1", "positive"),
        ("--master=localhost:6443", "https://HOST:PORT"),
        ("--cluster-name=", "--cluster-name"),
        ("--node-monitor-period=0", "greater than zero"),
        ("--node-monitor-period=5", "500ms"),
    ];
    for (flag, remedy) in rows {
        let message = refusal(&[flag]);
        let name = flag.split('=').next().unwrap();
        assert!(message.contains(remedy), "{flag}: {message}");
        assert!(message.contains(name) || message.contains("--leader-elect-"), "{flag}: {message}");
    }
}

#[test]
fn the_service_controller_is_told_whom_to_serve_and_how_fast() {
    let config = parse(&[]).unwrap().services;
    assert_eq!((config.concurrent_syncs, config.classes.len(), config.serve_default_class), (None, 0, true));
    assert_eq!((config.drift, config.drift_period), (Drift::Report, Duration::from_mins(10)));
    let flags = [
        "--concurrent-service-syncs=7",
        "--load-balancer-classes=internal,example.com/A_b.c,",
        "--load-balancer-classes=internal",
        "--load-balancer-default-class=false",
        "--load-balancer-drift=repair",
        "--load-balancer-drift-period=1h",
    ];
    let config = parse(&flags).unwrap().services;
    assert_eq!(config.classes.into_iter().collect::<Vec<_>>(), ["example.com/A_b.c", "internal"]);
    assert_eq!((config.concurrent_syncs, config.serve_default_class), (Some(7), false));
    assert_eq!((config.drift, config.drift_period), (Drift::Repair, Duration::from_hours(1)));
}

#[test]
fn routes_need_a_cluster_cidr_and_their_controller() {
    let config = parse(&[]).unwrap().routes;
    assert_eq!((config.configure, config.reconciliation_period), (true, Duration::from_mins(5)));
    assert_eq!((config.deletion_window, config.deletion_fraction), (Duration::from_mins(10), 0.2));
    let cidr = "--cluster-cidr=10.244.0.0/16";
    let rows: [(&[&str], bool); 5] = [
        (&[], false),
        (&[cidr], true),
        (&[cidr, "--configure-cloud-routes=false"], false),
        (&[cidr, "--controllers=*,-route"], false),
        (&[cidr, "--controllers=route", "--configure-cloud-routes"], true),
    ];
    for (flags, expected) in rows {
        let config = parse(flags).unwrap();
        assert_eq!((config.configures_routes(), config.warnings.len()), (expected, 0), "{flags:?}");
    }
}

#[test]
fn serving_no_service_is_fine_where_the_controller_does_not_run() {
    let config = parse(&["--load-balancer-default-class=false", "--controllers=*,-service"]).unwrap();
    assert!(!config.services.serve_default_class);
}

#[test]
fn an_endpoint_is_an_absolute_path_that_fits_a_socket() {
    let long = format!("--provider-endpoint=unix:///{}", "x".repeat(107));
    for flag in
        ["--provider-endpoint=unix://run/p.sock", "--provider-endpoint=/run/p.sock", "--provider-endpoint=http://p", &long]
    {
        let message = Config::from_args(["ccm-core", flag]).unwrap_err().to_string();
        assert!(message.contains("unix:///run/ccm/provider.sock") || message.contains("shorter"), "{message}");
    }
}

#[test]
fn the_users_that_may_listen_at_the_socket_are_listed_by_number() {
    assert!(parse(&[]).unwrap().provider.peer_uids.is_empty());
    let flags = ["--provider-peer-uid=1,2", "--provider_peer_uid=65532"];
    assert_eq!(parse(&flags).unwrap().provider.peer_uids, [1, 2, 65532]);
    for bad in ["--provider-peer-uid=nobody", "--provider-peer-uid=-1"] {
        assert!(refusal(&[bad]).contains("--provider-peer-uid"));
    }
}

#[test]
fn an_unknown_flag_is_an_error_with_a_suggestion() {
    let message = refusal(&["--node-monitor-perid=5s"]);
    assert!(message.contains("--node-monitor-period"), "{message}");
}

#[test]
fn listening_beyond_loopback_is_allowed_with_a_warning_and_port_0_listens_nowhere() {
    let exposed = parse(&["--bind-address=0.0.0.0"]).unwrap();
    assert!(exposed.warnings[0].contains("plain HTTP without authentication"));
    let nowhere = parse(&["--bind-address=0.0.0.0", "--secure-port=0"]).unwrap();
    assert_eq!((nowhere.serving.address, nowhere.warnings.len()), (None, 0));
}

#[test]
fn both_names_of_the_log_format_work() {
    for flag in ["--log-format=json", "--logging-format=json"] {
        assert_eq!(parse(&[flag]).unwrap().logging.format, LogFormat::Json);
    }
}

#[test]
fn help_has_a_heading_for_each_concern_and_version_says_the_version() {
    let help = Config::from_args(["ccm-core", "--help"]).unwrap_err().to_string();
    let headings = [
        "Provider:",
        "Kubernetes:",
        "Controllers:",
        "Nodes:",
        "Deletion of nodes:",
        "Services:",
        "Routes:",
        "Leader election and shutdown:",
        "Serving:",
        "Logging:",
    ];
    for heading in headings {
        assert!(help.contains(&format!("\n{heading}\n")), "{heading} is not in:\n{help}");
    }
    assert!(help.starts_with("A Kubernetes cloud-controller-manager"), "{help}");
    assert!(!help.contains("--webhooks") && !help.contains("--tls-cert-file"));
    let ConfigError::CommandLine(version) = Config::from_args(["ccm-core", "--version"]).unwrap_err() else {
        panic!("no clap error")
    };
    assert_eq!(version.kind(), ErrorKind::DisplayVersion);
}

#[test]
fn configz_shows_values_as_flags_take_them() {
    let shown = serde_json::to_value(parse(&["--cluster-cidr=10.0.0.0/8,fd00::/8"]).unwrap()).unwrap();
    assert_eq!(shown["leaderElection"]["leaseDuration"], "15s");
    assert_eq!(shown["nodes"]["statusUpdateFrequency"], "5m");
    assert_eq!(shown["provider"]["endpoint"], "unix:///run/ccm/provider.sock");
    assert_eq!(shown["kubernetes"]["clusterCidrs"][1], "fd00::/8");
    assert_eq!(shown["controllers"][0], NODE);
    assert_eq!(
        shown["services"],
        json!({
            "concurrentSyncs": null, "classes": [], "serveDefaultClass": true, "drift": "report", "driftPeriod": "10m",
        })
    );
}

#[test]
fn each_listing_command_has_its_own_help_and_the_flags_of_the_other() {
    let invoke = |args: &[&str]| Invocation::from_args(["ccm-core"].iter().chain(args).map(Into::into));
    for (name, listed, claimant) in [("load-balancers", Listed::LoadBalancers, "Service"), ("routes", Listed::Routes, "node")] {
        let help = invoke(&[name, "--help"]).unwrap_err().to_string();
        assert!(
            help.contains(&format!("Usage: ccm-core {name} ")) && help.contains(&format!("that no {claimant} claims")),
            "{help}"
        );
        let flags = [name, ENDPOINT, "--cluster_name=a", "--unclaimed", "-o", "json"];
        let Invocation::List(config) = invoke(&flags).unwrap() else { panic!("{name} is no listing") };
        assert_eq!((config.listed, config.output, config.unclaimed), (listed, Output::Json, true));
        assert_eq!(config.kubernetes.cluster_name, "a");
        assert!(invoke(&[name]).is_err(), "it needs an endpoint");
    }
    assert!(matches!(invoke(&[ENDPOINT]), Ok(Invocation::Run(_))));
}
