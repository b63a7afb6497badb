//! What tests, benchmarks and the demo need to run the whole system: a real API server, the two processes, kubelets that
//! are only imagined, and ways to wait and to count. Nothing here knows how ccm-core works inside.
//!
//! The map:
//! - [`world`]: one test's own API server and everything around it; where most tests begin.
//! - [`control_plane`], [`rbac`], [`audit`]: the API server, what ccm-core may do there, and what it did.
//! - [`binaries`], [`process`], [`core`], [`simulated`], [`cloud`]: the processes; [`ctl`]: a hand in the cloud.
//! - [`strange_provider`]: a provider that keeps to no contract.
//! - [`strict_provider`]: a provider without an SDK that holds ccm-core to the contract.
//! - [`kubelet`]: nodes as kubelet makes and reports them.
//! - [`services`]: Services as users make and change them; [`expectation`]: what they and the cloud must be in the end.
//! - [`wait`], [`ports`]: conditions and free ports.
//! - [`churn`]: nodes, or Services, that come and go while processes are killed.
//! - [`outage`]: Services while their provider is of no use.
pub mod audit;
pub mod binaries;
pub mod churn;
pub mod cloud;
pub mod control_plane;
pub mod core;
pub mod ctl;
pub mod expectation;
pub mod kubelet;
pub mod outage;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod rbac;
pub mod services;
pub mod simulated;
pub mod strange_provider;
pub mod strict_provider;
pub mod wait;
pub mod world;
