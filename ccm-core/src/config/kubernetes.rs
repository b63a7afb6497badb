//! Flags about the API server and the cluster.
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;
use serde::Serialize;

use super::Invalid;
use super::go_syntax::serialize_each;

#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(super) struct KubernetesArgs {
    /// Kubeconfig file; without it ccm-core uses the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address of the API server; overrides the one in the kubeconfig
    #[arg(long, value_name = "URL")]
    master: Option<http::Uri>,
    /// Requests per second to the API server; by default, and with 0, ccm-core sets no limit and the API server's own limits apply
    #[arg(long, value_name = "N", default_value_t = 0.0, hide_default_value = true)]
    kube_api_qps: f32,
    /// Number of requests that may exceed --kube-api-qps at once
    #[arg(long, value_name = "N", default_value_t = 30)]
    kube_api_burst: u32,
    /// Name of the cluster; a provider uses it in the names and tags of cloud resources
    #[arg(long, value_name = "NAME", default_value = "kubernetes")]
    cluster_name: String,
    /// CIDRs of the Pods: one, or one of IPv4 and one of IPv6, such as 10.244.0.0/16,fd00:10::/56
    #[arg(long, value_name = "CIDRS", value_delimiter = ',')]
    cluster_cidr: Vec<String>,
    /// CIDRs of the Services: one, or one of IPv4 and one of IPv6
    #[arg(long, value_name = "CIDRS", value_delimiter = ',')]
    service_cluster_ip_range: Vec<String>,
}

/// The API server and the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesConfig {
    /// The kubeconfig; none: the Pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// The address of the API server; overrides the kubeconfig's.
    pub master: Option<String>,
    /// Requests per second, if limited.
    pub qps: Option<f32>,
    /// Number of requests that may exceed `qps` at once; has no effect without it.
    pub burst: u32,
    /// The name of the cluster.
    pub cluster_name: String,
    /// The Pods' CIDRs: none, one, or one of each family.
    #[serde(serialize_with = "serialize_each")]
    pub cluster_cidrs: Vec<IpNet>,
    /// The Services' CIDRs: none, one, or one of each family.
    #[serde(serialize_with = "serialize_each")]
    pub service_cidrs: Vec<IpNet>,
}

impl KubernetesArgs {
    pub(super) fn validate(self) -> Result<KubernetesConfig, Invalid> {
        if self.cluster_name.is_empty() {
            return Err(Invalid::new("cluster-name", "it is empty", "give a name, or leave the flag out for \"kubernetes\""));
        }
        Ok(KubernetesConfig {
            kubeconfig: self.kubeconfig.filter(|path| !path.as_os_str().is_empty()),
            master: self.master.as_ref().map(absolute).transpose()?,
            qps: qps(self.kube_api_qps)?,
            burst: self.kube_api_burst,
            cluster_name: self.cluster_name,
            cluster_cidrs: cidrs("cluster-cidr", &self.cluster_cidr)?,
            service_cidrs: cidrs("service-cluster-ip-range", &self.service_cluster_ip_range)?,
        })
    }
}

fn absolute(master: &http::Uri) -> Result<String, Invalid> {
    match master.scheme_str() {
        Some("http" | "https") => Ok(master.to_string()),
        _ => Err(Invalid::new("master", format!("{master} is not an http or https address"), "write https://HOST:PORT")),
    }
}

fn qps(given: f32) -> Result<Option<f32>, Invalid> {
    match given {
        0.0 => Ok(None),
        limit if limit.is_finite() && limit > 0.0 => Ok(Some(limit)),
        other => Err(Invalid::new("kube-api-qps", format!("{other} is not a rate"), "give a positive number, or 0 for no limit")),
    }
}

fn cidrs(flag: &'static str, texts: &[String]) -> Result<Vec<IpNet>, Invalid> {
    let parse = |text: &String| {
        text.trim()
            .parse::<IpNet>()
            .map_err(|_| Invalid::new(flag, format!("{text:?} is not a CIDR"), "write ADDRESS/PREFIX, such as 10.244.0.0/16"))
    };
    let given = texts.iter().filter(|text| !text.trim().is_empty());
    let cidrs = given.map(parse).collect::<Result<Vec<_>, _>>()?;
    let one_family = |both: &[IpNet]| both[0].addr().is_ipv4() == both[1].addr().is_ipv4();
    if cidrs.len() > 2 || (cidrs.len() == 2 && one_family(&cidrs)) {
        return Err(Invalid::new(flag, "it has several CIDRs of one family", "give one, or one of IPv4 and one of IPv6"));
    }
    Ok(cidrs)
}
