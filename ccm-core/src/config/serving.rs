//! Flags about the health and metrics endpoints.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use serde::Serialize;

#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub(super) struct ServingArgs {
    /// Address on which ccm-core serves /healthz, /livez, /readyz, /metrics, /configz and /version
    ///
    /// In this version they are plain HTTP without authentication, so the default is loopback.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Port of --bind-address, plain HTTP in this version; with 0 ccm-core serves nothing
    #[arg(long, value_name = "PORT", default_value_t = 10258)]
    secure_port: u16,
}

/// Health and metrics endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServingConfig {
    /// Where ccm-core serves them; none: nowhere.
    pub address: Option<SocketAddr>,
}

impl ServingArgs {
    pub(super) fn validate(self, warnings: &mut Vec<String>) -> ServingConfig {
        let address = (self.secure_port != 0).then(|| SocketAddr::new(self.bind_address, self.secure_port));
        if let Some(exposed) = address.filter(|address| !address.ip().is_loopback()) {
            warnings.push(format!(
                "--bind-address: in this version health and metrics are plain HTTP without authentication, so anyone who reaches {exposed} can read \
                 them; leave the flag out to serve on loopback, and give probes scheme: HTTP"
            ));
        }
        ServingConfig { address }
    }
}
