//! The class of every flag that upstream's cloud-controller-manager has, v0.36 and v0.37: data, sorted by name. A new upstream flag
//! is a new row here; a row becomes [`Class::Honoured`] when a group of arguments takes the flag over.

use Class::{Honoured, Ignored, Refused};

/// An upstream flag.
#[derive(Debug)]
pub(super) struct Flag {
    /// Its name, without dashes.
    pub(super) name: &'static str,
    /// Whether it takes a value.
    pub(super) shape: Shape,
    /// Its class.
    pub(super) class: Class,
    /// Values that ask for what happens here anyway: no warning, no refusal.
    pub(super) harmless: &'static [&'static str],
}

/// How a flag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `--flag` or `--flag=false`.
    Boolean,
    /// `--flag=value` or `--flag value`.
    Value,
}

/// What ccm-core does with a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It has the effect that it has upstream, as `--help` says.
    Honoured,
    /// It is accepted with one warning, which says why it has no effect.
    Ignored(&'static str),
    /// It is refused: ignoring it would do harm.
    Refused {
        /// Why it cannot be accepted.
        problem: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
}

const AUTHENTICATION: Class = Ignored("in this version health and metrics are served without authentication, on loopback");
const TLS: Class = Ignored("in this version health and metrics are plain HTTP, on loopback; a probe needs scheme: HTTP");
const CIDRS: Class = Ignored("allocating node CIDRs is not part of this version; routes do not depend on this flag");
const WEBHOOKS: Class = Ignored("there are no webhooks");
const KLOG: Class = Ignored("lines are written to stderr at once, unbuffered and in one stream");
const PROFILES: Class = Ignored("profiles are not served");

const fn boolean(name: &'static str, class: Class, harmless: &'static [&'static str]) -> Flag {
    Flag { name, shape: Shape::Boolean, class, harmless }
}

const fn value(name: &'static str, class: Class, harmless: &'static [&'static str]) -> Flag {
    Flag { name, shape: Shape::Value, class, harmless }
}

/// Every upstream flag.
#[rustfmt::skip] // one flag a line
pub(super) const FLAGS: &[Flag] = &[
    boolean("allocate-node-cidrs", CIDRS, &["false"]),
    boolean("allow-untagged-cloud", Honoured, &[]),
    value("authentication-kubeconfig", AUTHENTICATION, &[""]),
    boolean("authentication-skip-lookup", AUTHENTICATION, &[]),
    value("authentication-token-webhook-cache-ttl", AUTHENTICATION, &[]),
    boolean("authentication-tolerate-lookup-failure", AUTHENTICATION, &[]),
    value("authorization-always-allow-paths", AUTHENTICATION, &[]),
    value("authorization-kubeconfig", AUTHENTICATION, &[""]),
    value("authorization-webhook-cache-authorized-ttl", AUTHENTICATION, &[]),
    value("authorization-webhook-cache-unauthorized-ttl", AUTHENTICATION, &[]),
    value("bind-address", Honoured, &[]),
    value("cert-dir", TLS, &[""]),
    value("cidr-allocator-type", CIDRS, &[]),
    value("client-ca-file", AUTHENTICATION, &[""]),
    value("cloud-config", Ignored("the cloud's configuration belongs to the provider sidecar; give the file to the provider"), &[""]),
    value("cloud-provider", Honoured, &[]),
    value("cluster-cidr", Honoured, &[]),
    value("cluster-name", Honoured, &[]),
    value("concurrent-node-lifecycle-syncs", Ignored("cloud-node-lifecycle-controller judges all nodes together, from batched look-ups, and has its own bound on concurrent writes"), &[]),
    value("concurrent-node-status-updates", Ignored("--concurrent-node-syncs bounds all concurrent writes of cloud-node-controller"), &["0"]),
    value("concurrent-node-syncs", Honoured, &[]),
    value("concurrent-service-syncs", Honoured, &[]),
    boolean("configure-cloud-routes", Honoured, &[]),
    boolean("contention-profiling", PROFILES, &["false"]),
    value("controller-start-interval", Ignored("controllers start together; they share their watches and look-ups"), &["0", "0s"]),
    value("controllers", Honoured, &[]),
    boolean("disable-http2-serving", Ignored("health and metrics are plain HTTP/1.1"), &[]),
    boolean("enable-leader-migration", Refused { problem: "ccm-core does not take the migration lock of kube-controller-manager, so both could act at once", remedy: "move the controllers by disabling them in kube-controller-manager first, and leave the flag out" }, &["false"]),
    value("external-cloud-volume-plugin", Ignored("there is no volume controller"), &[""]),
    value("feature-gates", Ignored("ccm-core has no feature gates"), &[""]),
    boolean("help", Honoured, &[]),
    value("http2-max-streams-per-connection", Ignored("health and metrics are plain HTTP/1.1"), &["0"]),
    value("kube-api-burst", Honoured, &[]),
    value("kube-api-content-type", Ignored("ccm-core uses JSON with the API server"), &["application/json", ""]),
    value("kube-api-qps", Honoured, &[]),
    value("kubeconfig", Honoured, &[]),
    boolean("leader-elect", Honoured, &[]),
    value("leader-elect-lease-duration", Honoured, &[]),
    value("leader-elect-renew-deadline", Honoured, &[]),
    value("leader-elect-resource-lock", Honoured, &[]),
    value("leader-elect-resource-name", Honoured, &[]),
    value("leader-elect-resource-namespace", Honoured, &[]),
    value("leader-elect-retry-period", Honoured, &[]),
    value("leader-migration-config", Refused { problem: "leader migration does not exist here", remedy: "move the controllers by disabling them in kube-controller-manager first, and leave the flag out" }, &[""]),
    value("log-flush-frequency", KLOG, &[]),
    value("log-json-info-buffer-size", KLOG, &["0"]),
    boolean("log-json-split-stream", KLOG, &["false"]),
    value("log-text-info-buffer-size", KLOG, &["0"]),
    boolean("log-text-split-stream", KLOG, &["false"]),
    value("logging-format", Honoured, &[]),
    value("master", Honoured, &[]),
    value("min-resync-period", Ignored("watches need no resync; nodes are compared with the cloud every --node-status-update-frequency"), &[]),
    value("node-monitor-period", Honoured, &[]),
    value("node-status-update-frequency", Honoured, &[]),
    value("node-sync-period", Ignored("it has no effect upstream either; see --node-status-update-frequency"), &[]),
    boolean("permit-address-sharing", Ignored("the listening socket has no options"), &["false"]),
    boolean("permit-port-sharing", Ignored("the listening socket has no options"), &["false"]),
    boolean("profiling", PROFILES, &["false"]),
    value("requestheader-allowed-names", AUTHENTICATION, &[""]),
    value("requestheader-client-ca-file", AUTHENTICATION, &[""]),
    value("requestheader-extra-headers-prefix", AUTHENTICATION, &[]),
    value("requestheader-group-headers", AUTHENTICATION, &[]),
    value("requestheader-uid-headers", AUTHENTICATION, &[]),
    value("requestheader-username-headers", AUTHENTICATION, &[]),
    value("route-reconciliation-period", Honoured, &[]),
    value("secure-port", Honoured, &[]),
    value("tls-cert-file", TLS, &[""]),
    value("tls-cipher-suites", TLS, &[]),
    value("tls-curve-preferences", TLS, &[]),
    value("tls-min-version", TLS, &[]),
    value("tls-private-key-file", TLS, &[""]),
    value("tls-sni-cert-key", TLS, &[]),
    boolean("use-service-account-credentials", Ignored("all controllers share the Pod's service account, which needs the rights of all of them"), &["false"]),
    value("v", Honoured, &[]),
    boolean("version", Honoured, &[]),
    value("vmodule", Ignored("set RUST_LOG for levels by module, such as RUST_LOG=info,ccm_core::provider=debug"), &[""]),
    value("webhook-bind-address", WEBHOOKS, &[]),
    value("webhook-cert-dir", WEBHOOKS, &[""]),
    boolean("webhook-disable-http2-serving", WEBHOOKS, &[]),
    value("webhook-secure-port", WEBHOOKS, &["0"]),
    value("webhook-tls-cert-file", WEBHOOKS, &[""]),
    value("webhook-tls-cipher-suites", WEBHOOKS, &[]),
    value("webhook-tls-curve-preferences", WEBHOOKS, &[]),
    value("webhook-tls-min-version", WEBHOOKS, &[]),
    value("webhook-tls-private-key-file", WEBHOOKS, &[""]),
    value("webhook-tls-sni-cert-key", WEBHOOKS, &[]),
    value("webhooks", Refused { problem: "this version serves no admission webhooks, and the API server would wait for them", remedy: "remove the webhook configuration that points here, and leave the flag out" }, &["", "-*"]),
];
