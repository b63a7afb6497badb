//! A complete provider: machines in a list, one look-up method. Run it with
//! `cargo run -p ccm-provider-sdk --example one_look_up -- serve --endpoint unix:///tmp/example/provider.sock`.
use std::{process::ExitCode, sync::Arc};

use ccm_provider_sdk::{
    CallContext, Description, Instances, LookUpsOnly, Lookup, Parts, Provider, ProviderCommand, Result, async_trait, v1,
};
use clap::Parser;

struct Shelf {
    machines: Vec<&'static str>,
}

#[async_trait]
impl Instances for Shelf {
    async fn get_instance(&self, _: &CallContext, query: &v1::InstanceQuery) -> Result<Lookup> {
        let id = query.provider_id.clone().unwrap_or_else(|| format!("shelf://{}", query.node_name));
        if !self.machines.iter().any(|name| id == format!("shelf://{name}")) {
            return Ok(Lookup::not_found());
        }
        let state = v1::InstanceState::Running.into();
        Ok(Lookup::found(v1::Instance { provider_id: id, state, ..Default::default() }))
    }
}

impl LookUpsOnly for Shelf {}

impl Provider for Shelf {
    fn describe(&self) -> Description {
        Description {
            name: "shelf".into(),
            version: "1.0.0".into(),
            provider_id_prefixes: vec!["shelf://".into()],
            cloud_identity: "the shelf in the cellar".into(),
            cluster_id: Some("cellar".into()),
            ..Default::default()
        }
    }
    fn parts(self: Arc<Self>) -> Parts {
        Parts::new().instances(self)
    }
}

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: ProviderCommand,
}

#[tokio::main]
async fn main() -> ExitCode {
    let shelf = Shelf { machines: vec!["node-a", "node-b"] };
    Cli::parse().command.run(shelf).await
}
