//! ccm-core's `ServiceAccount`: it may do what `deploy/rbac.yaml` says and nothing else.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde_json::json;

/// The rules.
pub const RULES: &str = include_str!("../../deploy/rbac.yaml");

/// Where the `ServiceAccount` is.
pub const NAMESPACE: &str = "kube-system";

/// Its name.
pub const ACCOUNT: &str = "ccm-core";

/// What the API server calls it, in the audit log for one.
pub const USER: &str = "system:serviceaccount:kube-system:ccm-core";

/// Longer than any test; the API server may shorten it.
const TOKEN_SECONDS: i64 = 24 * 60 * 60;

/// Creates the account and its rules.
pub async fn install(admin: &Client) -> Result<()> {
    for document in serde_yaml_ng::Deserializer::from_str(RULES) {
        let object = DynamicObject::deserialize(document).context("deploy/rbac.yaml")?;
        let types = object.types.clone().context("deploy/rbac.yaml: an object without a kind")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(admin.clone(), &namespace, &resource),
            None => Api::all_with(admin.clone(), &resource),
        };
        let params = PatchParams::apply("ccm-test-support").force();
        api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await?;
    }
    Ok(())
}

/// Lets the account do everything, for a client that needs other rights than ccm-core.
pub async fn allow_everything(admin: &Client) -> Result<()> {
    let binding = serde_json::from_value(json!({
        "metadata": { "name": "everything" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }],
    }))?;
    Api::<ClusterRoleBinding>::all(admin.clone()).create(&PostParams::default(), &binding).await?;
    Ok(())
}

/// Writes a kubeconfig of the account into `dir`, made from the administrator's.
pub async fn kubeconfig(admin: &Client, admin_kubeconfig: &Path, dir: &Path) -> Result<PathBuf> {
    let cluster = Kubeconfig::read_from(admin_kubeconfig)?.clusters.into_iter().next();
    let cluster = cluster.and_then(|named| named.cluster).context("the administrator's kubeconfig has no cluster")?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": ACCOUNT,
        "clusters": [{ "name": ACCOUNT, "cluster": cluster }],
        "users": [{ "name": ACCOUNT, "user": { "token": token(admin).await? } }],
        "contexts": [{ "name": ACCOUNT, "context": { "cluster": ACCOUNT, "user": ACCOUNT } }],
    });
    let path = dir.join("ccm-core.kubeconfig");
    fs::write(&path, serde_json::to_string_pretty(&config)?)?;
    Ok(path)
}

async fn token(admin: &Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), NAMESPACE);
    let spec = TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await?;
    answer.status.and_then(|status| status.token).context("the API server made no token")
}

/// As kubeconfigs want their binary data.
pub(crate) fn base64(bytes: &[u8]) -> serde_json::Value {
    json!(ByteString(bytes.to_vec()))
}
