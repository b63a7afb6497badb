//! What tests, benchmarks and the demo need to run the whole system: a real API server, the two processes, kubelets that
//! are only imagined, and ways to wait and to count. Nothing here knows how ccm-core works inside.
//!
//! The map:
//! - [`world`]: one test's own API server and everything around it; where most tests begin.
//! - [`control_plane`], [`rbac`], [`audit`]: the API server, what ccm-core may do there, and what it did.
//! - [`binaries`], [`process`], [`core`], [`simulated`]: the processes.
//! - [`strange_provider`]: a provider that keeps to no contract.
//! - [`kubelet`]: nodes as kubelet makes and reports them.
//! - [`wait`], [`ports`]: conditions and free ports.
//! - [`churn`]: nodes that come and go while processes are killed.
pub mod audit;
pub mod binaries;
pub mod churn;
pub mod control_plane;
pub mod core;
pub mod kubelet;
pub mod ports;
pub mod process;
pub mod rbac;
pub mod simulated;
pub mod strange_provider;
pub mod wait;
pub mod world;
