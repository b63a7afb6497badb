//! Compiles the proto files with protox (pure Rust: no protoc to install) into bindings and a descriptor set in OUT_DIR.
use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

use protox::prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("proto");
    let files = proto_files(&root.join("ccm/provider/v1"))?;
    println!("cargo::rerun-if-changed=proto/ccm");

    let descriptors = protox::compile(&files, [root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("ccm_provider_v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().build_transport(false).compile_fds(descriptors)?;
    Ok(())
}

fn proto_files(dir: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
