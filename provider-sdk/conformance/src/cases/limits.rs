//! Limits of batches, messages and calls at one time, and deadlines.
use std::collections::HashMap;
use std::time::Duration;

use ccm_proto::v1::{BatchGetInstancesRequest, Capability, GetProviderInfoRequest, InstanceQuery, WatchInstancesRequest};
use futures::future::{join, join_all};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use super::health;
use super::instances::queries;
use crate::case::{Case, Checked, Need, broken, check};
use crate::connection;
use crate::context::{Context, READING, failed};
use crate::exchange::describe;
use crate::hooks::Fault;
use crate::rpc::Rpc;
use crate::suite::handshake;

const INSTANCES: Need = Need::Capability(Capability::Instances);

/// A call that the hung cloud is to hold.
const HELD: Duration = Duration::from_secs(4);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("limits/full-batch", "a batch of the stated size is answered in full", &["LIM-3", "INST-26"], &[INSTANCES], |c| {
        Box::pin(full_batch(c))
    }),
    Case::new(
        "limits/long-batch",
        "a batch that is one longer is refused as a whole",
        &["LIM-13", "INST-28", "ERR-1"],
        &[INSTANCES],
        |c| Box::pin(long_batch(c)),
    ),
    Case::new("limits/large-message", "a message of 8 MiB is taken", &["LIM-1"], &[INSTANCES], |c| Box::pin(large_message(c))),
    Case::new(
        "limits/at-once",
        "all calls of the stated limit run beside a watch, a handshake and a health check",
        &["LIM-4", "LIM-11"],
        &[INSTANCES],
        |c| Box::pin(at_once(c)),
    ),
    Case::new(
        "limits/not-held-up",
        "handshakes and health checks do not wait for calls that a hung cloud holds",
        &["LIM-12", "HS-2"],
        &[INSTANCES, Need::Mutations, Need::Fault(Fault::Hung)],
        |c| Box::pin(not_held_up(c)),
    ),
    Case::new(
        "limits/deadline",
        "a look-up in a hung cloud is answered before its deadline, by errors",
        &["LIM-15", "ERR-15"],
        &[INSTANCES, Need::Mutations, Need::Fault(Fault::Hung)],
        |c| Box::pin(deadline(c)),
    ),
    Case::new(
        "limits/cancellation",
        "after calls that their caller cancelled, the next is answered",
        &["ERR-16"],
        &[INSTANCES],
        |c| Box::pin(cancellation(c)),
    ),
];

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("conformance-none-{number}")).collect()
}

async fn full_batch(c: &Context) -> Checked {
    let names = names(c.suite.max_batch());
    let answer = c.ok("LIM-3", BatchGetInstancesRequest { queries: queries(&names) }).await?;
    let found: std::collections::BTreeSet<_> = answer.results.iter().map(|result| &result.node_name).collect();
    let (asked, results) = (names.len(), answer.results.len());
    check("INST-26", found.len() == asked && results == asked, format!("{asked} queries have {results} results"))
}

async fn long_batch(c: &Context) -> Checked {
    let names = names(c.suite.max_batch() + 1);
    let request = BatchGetInstancesRequest { queries: queries(&names) };
    c.refused("LIM-13", request, Code::InvalidArgument, "BATCH_TOO_LARGE").await.map(drop)
}

async fn large_message(c: &Context) -> Checked {
    let labels: HashMap<_, _> = (0..8).map(|number| (format!("large-{number}"), "x".repeat(1 << 20))).collect();
    let query = InstanceQuery { node_name: "conformance-large".into(), labels, ..InstanceQuery::default() };
    match c.send(BatchGetInstancesRequest { queries: vec![query] }).await {
        // A provider that refuses labels that it did not ask for has read the message.
        Err(status) if status.code() != Code::InvalidArgument => Err(failed("LIM-1", BatchGetInstancesRequest::PATH, &status)),
        _ => Ok(()),
    }
}

/// As many look-ups at once as the provider states.
async fn look_ups(c: &Context, deadline: Duration) -> Vec<Result<(), tonic::Status>> {
    let limits = c.suite.info.limits.unwrap_or_default();
    let count = limits.max_concurrent_instance_calls.unwrap_or(4);
    let request = |number| BatchGetInstancesRequest { queries: queries(&[format!("conformance-none-{number}")]) };
    let calls = (0..count).map(|number| c.send_within(request(number), deadline));
    join_all(calls).await.into_iter().map(|answer| answer.map(drop)).collect()
}

async fn at_once(c: &Context) -> Checked {
    let watch = async {
        if c.suite.serves(Capability::WatchInstances) {
            let opening = connection::both_ways(&c.channel, tokio_stream::once(WatchInstancesRequest::default()));
            // A watch may answer nothing, not even headers, until a machine changes.
            return timeout(Duration::from_millis(300), opening).await.ok();
        }
        None
    };
    let _watch = watch.await;
    let (looked_up, shaken) = join(look_ups(c, READING), c.send(handshake(&c.suite.cluster))).await;
    shaken.map_err(|status| failed("LIM-11", GetProviderInfoRequest::PATH, &status))?;
    health::expect(c, "LIM-11", ServingStatus::Serving).await?;
    let refused = looked_up.into_iter().find_map(Result::err);
    refused.map_or(Ok(()), |status| Err(failed("LIM-11", BatchGetInstancesRequest::PATH, &status)))
}

async fn not_held_up(c: &Context) -> Checked {
    c.suite.hooks.set(Fault::Hung).await?;
    let asked = async {
        sleep(Duration::from_millis(500)).await;
        let start = Instant::now();
        let answer = c.send_within(handshake(&c.suite.cluster), HELD / 2).await;
        answer.map_err(|status| failed("LIM-12", GetProviderInfoRequest::PATH, &status))?;
        health::expect(c, "LIM-12", ServingStatus::Serving).await?;
        check("LIM-12", start.elapsed() < HELD / 2, format!("they took {:?} while other calls were held", start.elapsed()))
    };
    join(look_ups(c, HELD), asked).await.1
}

async fn deadline(c: &Context) -> Checked {
    c.suite.hooks.set(Fault::Hung).await?;
    let start = Instant::now();
    let request = BatchGetInstancesRequest { queries: queries(&["conformance-none".to_owned()]) };
    let answer = c.send_within(request, HELD).await;
    let took = start.elapsed();
    check("LIM-15", took < HELD.mul_f64(0.97), format!("with a deadline of {HELD:?} the answer took {took:?}"))?;
    let Ok(answer) = answer else { return Ok(()) };
    let certain = answer.results.iter().find(|result| !super::instances::is_error(result));
    certain.map_or(Ok(()), |one| Err(broken("ERR-15", format!("a hung cloud was answered by {one:?}"))))
}

async fn cancellation(c: &Context) -> Checked {
    let request = || BatchGetInstancesRequest { queries: queries(&names(3)) };
    for _ in 0..20 {
        // The suite drops the call at once: the server sees it cancelled.
        let _ = timeout(Duration::from_micros(200), c.send(request())).await;
    }
    let answer = c.send(request()).await;
    answer.map(drop).map_err(|status| broken("ERR-16", format!("after cancelled calls: {}", describe(&status))))
}
