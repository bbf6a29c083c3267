//! Servers that tests talk to, installed once into the build folder.

use std::env;
use std::path::PathBuf;

use crate::{Result, build_folder, cargo, run};

/// The version that the compiler of this workspace builds.
const S3_VERSION: &str = "0.14.1";

/// An S3 server that keeps objects in a folder: `s3s-fs`.
pub(crate) fn s3() -> Result<PathBuf> {
    let root = build_folder().join(format!("s3s-fs-{S3_VERSION}"));
    let server = root.join("bin").join(format!("s3s-fs{}", env::consts::EXE_SUFFIX));
    if !server.exists() {
        println!("xtask: installing s3s-fs {S3_VERSION}");
        run(cargo()
            .args([
                "install",
                "--locked",
                "--quiet",
                "s3s-fs",
                "--version",
                S3_VERSION,
                "--features",
                "binary",
            ])
            .args(["--debug", "--root"])
            .arg(&root)
            .env("CARGO_TARGET_DIR", root.join("target")))?;
        let _ = std::fs::remove_dir_all(root.join("target"));
    }
    Ok(server)
}
