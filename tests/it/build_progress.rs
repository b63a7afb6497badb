//! The build of the control plane shows that it goes on, also where nobody has a terminal. A stand-in for Go makes it slow.
#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::tree::root;

/// Answers `go version`. `go build` names one package, is silent until the file `seen` exists, and writes its output.
const GO: &str = r#"#!/bin/sh
[ "$1" = version ] && { echo "go version go1.99.0 linux/amd64"; exit; }
[ "$2" = -v ] && echo k8s.io/sample >&2
until [ -e "$SEEN" ]; do sleep 0.05; done
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\n' >"$2"
chmod +x "$2"
"#;

fn install_go(dir: &Path) {
    let go = dir.join("go");
    fs::write(&go, GO).unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_slow_build_of_the_control_plane_names_its_last_step_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    install_go(dir.path());
    let seen = dir.path().join("seen");
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let mut build = Command::new(root().join("tests/control-plane/build"));
    build.env("PATH", path).env("SEEN", &seen).env("CARGO_TARGET_DIR", dir.path().join("target"));
    let mut build = build.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut steps = 0;
    for line in BufReader::new(build.stderr.take().unwrap()).lines().map(Result::unwrap) {
        steps += usize::from(line.contains("still building") && line.contains("k8s.io/sample"));
        if steps == 2 || line.contains("15 s so far") {
            fs::write(&seen, "").unwrap();
        }
    }
    assert!(build.wait().unwrap().success());
    assert!(steps >= 2, "{steps} lines");
}
