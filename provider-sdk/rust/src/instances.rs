//! Machines, as a provider implements them: the look-up that makes a provider, and the methods that few clouds have. Which of
//! these methods are served is said by traits, never by a flag; batches, limits and deadlines are `rpc`'s and `batch`'s.
use std::time::SystemTime;

use async_trait::async_trait;
use ccm_proto::v1;
use futures::stream::BoxStream;

use crate::context::CallContext;
use crate::error::ProviderError;
use crate::parts::sealed::Token;
use crate::provider::Result;

/// What the cloud says of one machine, and when that was read.
///
/// ```
/// # use ccm_provider_sdk::{Lookup, v1};
/// # use std::time::SystemTime;
/// # fn answer(cached: Option<(v1::Instance, SystemTime)>) -> Lookup {
/// match cached {
///     Some((machine, read_at)) => Lookup::found(machine).read_at(read_at),
///     None => Lookup::not_found(),
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// What the cloud says.
    pub outcome: LookupOutcome,
    /// When the cloud's data behind the answer was read; see [`Self::read_at`]. `None` means "during this call".
    pub read_at: Option<SystemTime>,
}

/// The four things that a cloud can say of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum LookupOutcome {
    /// The machine is known.
    Found(v1::Instance),
    /// The cloud was asked and does not know the machine. A node may be deleted for this.
    NotFound,
    /// The machine is not this provider's; the text goes to the log.
    NotMine(String),
    /// Several machines fit: their ids.
    Ambiguous(Vec<String>),
}

impl Lookup {
    const fn of(outcome: LookupOutcome) -> Self {
        Self { outcome, read_at: None }
    }

    /// The machine is known.
    pub fn found(machine: impl Into<v1::Instance>) -> Self {
        Self::of(LookupOutcome::Found(machine.into()))
    }

    /// The cloud was asked, answered, and does not know the machine. The core may delete the node for this.
    pub const fn not_found() -> Self {
        Self::of(LookupOutcome::NotFound)
    }

    /// The machine is not this provider's: another cloud's, or bare metal. `why` goes to the log.
    pub fn not_mine(why: impl Into<String>) -> Self {
        Self::of(LookupOutcome::NotMine(why.into()))
    }

    /// Several machines fit: their ids.
    pub fn ambiguous<I: Into<String>>(provider_ids: impl IntoIterator<Item = I>) -> Self {
        Self::of(LookupOutcome::Ambiguous(provider_ids.into_iter().map(Into::into).collect()))
    }

    /// The same answer from data that was read at `time`, by this machine's clock: when the request to the cloud began that
    /// brought it (the contract's `observed_at`). A provider MUST set it on every answer from a cache: the core deletes a
    /// node only after two "not found" from two readings. A time in the future is refused.
    #[must_use]
    pub fn read_at(self, time: SystemTime) -> Self {
        Self { read_at: Some(time), ..self }
    }
}

/// Machines. One method makes a provider: batches, limits and deadlines are the SDK's.
///
/// A type that implements it also says what else of the RPC service `Instances` the provider serves: nothing
/// ([`LookUpsOnly`]), or [`WatchInstances`], [`AddSshKeys`] and [`CurrentNodeName`], each implemented or declared absent.
#[async_trait]
pub trait Instances: Send + Sync + 'static {
    /// Looks up one machine. An answer from a cache says when the cache was read: [`Lookup::read_at`].
    async fn get_instance(&self, ctx: &CallContext, query: &v1::InstanceQuery) -> Result<Lookup>;

    /// How many `get_instance` calls the SDK makes at once for one batch, for providers without a batch of their own.
    fn look_up_concurrency(&self) -> usize {
        16
    }

    /// Looks up several machines: one result for each query, in the same order. Override it where the cloud has a batched
    /// call or a cheap list; otherwise the SDK calls `get_instance` for each.
    async fn batch_get_instances(&self, ctx: &CallContext, queries: &[v1::InstanceQuery]) -> Result<Vec<Result<Lookup>>> {
        crate::batch::each(self, ctx, queries).await
    }
}

/// The provider tells when machines change (`CAPABILITY_WATCH_INSTANCES`). A provider that does not is [`WithoutWatch`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it serves `WatchInstances`",
    note = "if it serves look-ups only: `impl LookUpsOnly for ... {{}}`",
    note = "otherwise implement `WatchInstances` for it, or declare the method absent: `impl WithoutWatch for ... {{}}`"
)]
pub trait WatchInstances: Send + Sync + 'static {
    /// Machines whose state changed, for a core that then looks sooner. Today's core opens the stream and does not act on it yet.
    async fn watch_instances(&self, ctx: &CallContext) -> Result<BoxStream<'static, Result<v1::WatchInstancesResponse>>>;

    #[doc(hidden)]
    fn served(&self, _: Token) -> bool {
        true
    }
}

/// The provider puts SSH keys on machines (`CAPABILITY_ADD_SSH_KEY`). A provider that does not is [`WithoutSshKeys`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it serves `AddSSHKeyToAllInstances`",
    note = "if it serves look-ups only: `impl LookUpsOnly for ... {{}}`",
    note = "otherwise implement `AddSshKeys` for it, or declare the method absent: `impl WithoutSshKeys for ... {{}}`"
)]
pub trait AddSshKeys: Send + Sync + 'static {
    /// Makes a public key a login for a user on every machine.
    async fn add_ssh_key_to_all_instances(&self, ctx: &CallContext, user: &str, key_data: &[u8]) -> Result<()>;

    #[doc(hidden)]
    fn served(&self, _: Token) -> bool {
        true
    }
}

/// The provider knows the node that it runs on (`CAPABILITY_CURRENT_NODE_NAME`). A provider that does not is
/// [`WithoutCurrentNodeName`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it serves `GetCurrentNodeName`",
    note = "if it serves look-ups only: `impl LookUpsOnly for ... {{}}`",
    note = "otherwise implement `CurrentNodeName` for it, or declare the method absent: `impl WithoutCurrentNodeName for ... {{}}`"
)]
pub trait CurrentNodeName: Send + Sync + 'static {
    /// The node that the provider runs on.
    async fn current_node_name(&self, ctx: &CallContext, hostname: &str) -> Result<String>;

    #[doc(hidden)]
    fn served(&self, _: Token) -> bool {
        true
    }
}

/// Declares that the provider serves nothing of the RPC service `Instances` but look-ups, as most do:
/// `impl LookUpsOnly for MyCloud {}`. A type that implements [`WatchInstances`], [`AddSshKeys`] or [`CurrentNodeName`] cannot
/// be it: that is a conflict of implementations, so a method that is written is served.
///
/// ```compile_fail,E0119
/// # use ccm_provider_sdk::{CallContext, CurrentNodeName, LookUpsOnly, Result, async_trait};
/// # struct MyCloud;
/// impl LookUpsOnly for MyCloud {}
///
/// #[async_trait]
/// impl CurrentNodeName for MyCloud {
///     async fn current_node_name(&self, _: &CallContext, hostname: &str) -> Result<String> {
///         Ok(hostname.to_owned())
///     }
/// }
/// ```
pub trait LookUpsOnly: Send + Sync + 'static {}

/// Declares that the provider does not serve [`WatchInstances`].
pub trait WithoutWatch: Send + Sync + 'static {}

/// Declares that the provider does not serve [`AddSshKeys`].
pub trait WithoutSshKeys: Send + Sync + 'static {}

/// Declares that the provider does not serve [`CurrentNodeName`].
pub trait WithoutCurrentNodeName: Send + Sync + 'static {}

impl<T: LookUpsOnly> WithoutWatch for T {}
impl<T: LookUpsOnly> WithoutSshKeys for T {}
impl<T: LookUpsOnly> WithoutCurrentNodeName for T {}

#[async_trait]
impl<T: WithoutWatch> WatchInstances for T {
    async fn watch_instances(&self, _: &CallContext) -> Result<BoxStream<'static, Result<v1::WatchInstancesResponse>>> {
        Err(ProviderError::not_implemented("WatchInstances"))
    }

    fn served(&self, _: Token) -> bool {
        false
    }
}

#[async_trait]
impl<T: WithoutSshKeys> AddSshKeys for T {
    async fn add_ssh_key_to_all_instances(&self, _: &CallContext, _: &str, _: &[u8]) -> Result<()> {
        Err(ProviderError::not_implemented("AddSSHKeyToAllInstances"))
    }

    fn served(&self, _: Token) -> bool {
        false
    }
}

#[async_trait]
impl<T: WithoutCurrentNodeName> CurrentNodeName for T {
    async fn current_node_name(&self, _: &CallContext, _: &str) -> Result<String> {
        Err(ProviderError::not_implemented("GetCurrentNodeName"))
    }

    fn served(&self, _: Token) -> bool {
        false
    }
}
