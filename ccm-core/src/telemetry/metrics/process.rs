//! What the process uses, under the names that Prometheus clients agree on. Read from /proc at each scrape; what cannot be read is
//! left out.
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Memory, open files and start time.
#[derive(Debug)]
pub struct ProcessMetrics {
    started: f64,
}

impl ProcessMetrics {
    /// Registers them; the process counts as started now.
    pub fn register(registry: &mut Registry) {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs_f64()).unwrap_or_default();
        registry.register_collector(Box::new(Self { started }));
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        encode(&mut encoder, "process_start_time_seconds", "Start time of the process since the Unix epoch", self.started)?;
        if let Some(bytes) = resident_bytes() {
            encode(&mut encoder, "process_resident_memory_bytes", "Resident memory", bytes)?;
        }
        match open_files() {
            Some(count) => encode(&mut encoder, "process_open_fds", "Open file descriptors", count),
            None => Ok(()),
        }
    }
}

fn encode<N>(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: N) -> Result<(), std::fmt::Error>
where
    ConstGauge<N>: EncodeMetric,
{
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

/// `VmRSS` of /proc/self/status is in kibibytes, so that the page size is not needed.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}
