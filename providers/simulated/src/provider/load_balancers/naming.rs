//! How load balancers are named. The name is for people: which one is a Service's is decided by its mark, so that another
//! naming leaves the old ones neither behind nor without an address.
use ccm_provider_sdk::default_load_balancer_name;
use ccm_provider_sdk::v1;

use crate::cloud::derive::fnv1a;
use crate::cloud::load_balancers::validate::LONGEST_NAME;

/// After what a new load balancer is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Naming {
    /// After the Service's UID, as Go's providers do: a0123456789abcdef0123456789abcde
    #[default]
    Uid,
    /// After cluster, namespace and Service, and a hash: kubernetes-default-web-0123abcd
    Service,
}

impl Naming {
    /// The name of a Service's load balancer.
    pub fn name(self, cluster: &v1::ClusterRef, service: &v1::Service) -> String {
        match self {
            Self::Uid => default_load_balancer_name(&service.uid),
            Self::Service => readable(cluster, service),
        }
    }
}

/// The words are cut to what fits; the hash of them all, and of the cluster's UID, keeps one apart from another that reads alike.
fn readable(cluster: &v1::ClusterRef, service: &v1::Service) -> String {
    let whole = [&cluster.uid, &service.namespace, &service.name].map(String::as_str).join("/");
    let hash = format!("{:016x}", fnv1a(&whole));
    let words = [&cluster.name, &service.namespace, &service.name].map(String::as_str).join("-");
    let legal = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = words.chars().map(legal).take(LONGEST_NAME - 9).collect();
    format!("{words}-{}", &hash[8..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(cluster_uid: &str, namespace: &str, service: &str) -> String {
        let cluster = v1::ClusterRef { name: "My.cluster".into(), uid: cluster_uid.into() };
        let service =
            v1::Service { namespace: namespace.into(), name: service.into(), uid: "01-23".into(), ..v1::Service::default() };
        assert_eq!(Naming::Uid.name(&cluster, &service), "a0123");
        Naming::Service.name(&cluster, &service)
    }

    #[test]
    fn a_readable_name_is_legal_and_tells_alike_ones_apart() {
        let web = name("c", "default", "web");
        assert!(web.starts_with("my-cluster-default-web-"), "{web}");
        assert_eq!(web, name("c", "default", "web"));
        assert_ne!(web, name("other", "default", "web"));
        assert_ne!(name("c", "a-b", "c"), name("c", "a", "b-c"));
        let long = "x".repeat(60);
        assert_eq!(name("c", &long, "one").len(), LONGEST_NAME);
        assert_ne!(name("c", &long, "one"), name("c", &long, "two"));
    }
}
