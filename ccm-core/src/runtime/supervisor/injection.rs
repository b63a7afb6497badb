//! Panics and standstills on demand, for tests that run whole processes. Debug builds only: a release build does not compile this file.
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use tokio::time::sleep;

/// The variable that names the folder. Without it no task ever looks.
const FOLDER: &str = "CCM_CORE_TEST_TASKS";
/// What makes a task block its thread for ever.
const STALL: &[u8] = b"stall";
/// How often a task looks.
const LOOK: Duration = Duration::from_millis(50);

/// The task. It has a file of its name in the folder, panics when a test removes that file, and stands still when a test writes
/// [`STALL`] into it.
pub async fn panics_on_demand(name: &'static str, task: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        // Within the future, and not where it has ended: a task that panics still holds all that it owns.
        () = panic_when_asked(name) => {}
        () = task => {}
    }
}

async fn panic_when_asked(name: &str) {
    let file = env::var_os(FOLDER).map(|folder| PathBuf::from(folder).join(name));
    let Some(file) = file.filter(|file| fs::write(file, []).is_ok()) else { return std::future::pending().await };
    while let Ok(text) = fs::read(&file) {
        if text == STALL {
            loop {
                std::thread::park();
            }
        }
        sleep(LOOK).await;
    }
    inject();
}

#[expect(clippy::panic, reason = "what this is for; a release build has none of it")]
fn inject() {
    panic!("injected by a test");
}
