//! `cargo xtask gpu-bundle`: a folder that runs the CUDA tests and benchmarks on a machine with a driver and no Rust. Test and bench binaries
//! built here, stripped; the cubins; a script that runs them and writes its results into `$OUT`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{nvrtc, run};

/// What the device machine takes at most.
const MOST_BYTES: u64 = 64 << 20;

const RUN: &str = r#"#!/usr/bin/env bash
# Runs what is in this folder on a machine with an NVIDIA driver; results go to $OUT (or ./results).
set -u
here="$(cd "$(dirname "$0")" && pwd)"
out="${OUT:-$here/results}"
mkdir -p "$out"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/gpu.txt"
status=0
# One at a time: the tests count the bytes of the one GPU.
for test in "$here"/test-*; do
    echo "== $(basename "$test")"
    PLIMSOLL_REQUIRE_CUDA=1 "$test" --nocapture --test-threads=1 2>&1 | tee -a "$out/tests.txt"
    [ "${PIPESTATUS[0]}" -eq 0 ] || status=1
done
for bench in "$here"/bench-*; do
    [ -x "$bench" ] || continue
    echo "== $(basename "$bench")"
    "$bench" 2>&1 | tee -a "$out/bench.txt"
done
if [ -f "$here/torch_gpu.py" ] && python3 -c 'import torch' 2>/dev/null; then
    echo "== PyTorch on the same GPU"
    python3 "$here/torch_gpu.py" 2>&1 | tee -a "$out/bench.txt"
fi
exit $status
"#;

/// Builds the bundle and says where it is and how large.
pub(crate) fn build() -> Result<(), String> {
    let folder = run::target().join("gpu-bundle");
    let _ = std::fs::remove_dir_all(&folder);
    let cubins = folder.join("cubins");
    std::fs::create_dir_all(&cubins).map_err(|e| format!("{}: {e}", cubins.display()))?;
    run::plain(&mut nvrtc::compile_into(&nvrtc::cubins())?)?;
    copy_cubins(&nvrtc::cubins(), &cubins)?;
    // A test is built as a test; an example as a program, which `cargo test` would wrap in a test of its own.
    let wanted: [(&str, &[&str], &str); 2] = [
        ("test", &["test", "--no-run", "--test"], "devices"),
        ("bench", &["build", "--example"], "cuda_bench"),
    ];
    for (prefix, build, name) in wanted {
        let binary = built(build, name)?;
        let target = folder.join(format!("{prefix}-{name}"));
        copy(&binary, &target)?;
        run::plain(&mut run::command("strip", &[&target.to_string_lossy()]))?;
    }
    let peer = run::root().join("crates/tensor/examples/torch_gpu.py");
    copy(&peer, &folder.join("torch_gpu.py"))?;
    let script = folder.join("run.sh");
    std::fs::write(&script, RUN).map_err(|e| format!("{}: {e}", script.display()))?;
    make_runnable(&script)?;
    let bytes = size(&folder)?;
    println!("{}: {:.1} MiB", folder.display(), bytes as f64 / (1 << 20) as f64);
    if bytes > MOST_BYTES {
        return Err(format!("the bundle has {bytes} bytes, more than {MOST_BYTES}"));
    }
    Ok(())
}

/// Builds one release binary of the tensor crate and finds it in cargo's messages.
fn built(build: &[&str], name: &str) -> Result<PathBuf, String> {
    let mut command = run::command(env!("CARGO"), build);
    command.args([name, "--release", "--package", "plimsoll-tensor"]);
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("building {name} failed"));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter(|line| line.contains("\"reason\":\"compiler-artifact\"") && line.contains(name))
        .filter_map(|line| {
            let from = line.find("\"executable\":\"")? + "\"executable\":\"".len();
            let length = line[from..].find('"')?;
            Some(PathBuf::from(&line[from..from + length]))
        })
        .next_back()
        .ok_or_else(|| format!("cargo did not say where {name} is"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to)
        .map(drop)
        .map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

/// Only the cubins of the present sources: the folder keeps older ones too.
fn copy_cubins(from: &Path, to: &Path) -> Result<(), String> {
    let mut newest: Vec<(String, std::time::SystemTime, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        let changed = path.metadata().and_then(|m| m.modified()).map_err(|e| e.to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source = name.split('-').next().unwrap_or_default().to_string();
        match newest.iter_mut().find(|(known, ..)| *known == source) {
            Some(known) if known.1 < changed => *known = (source, changed, path),
            Some(_) => {}
            None => newest.push((source, changed, path)),
        }
    }
    for (_, _, path) in newest {
        copy(&path, &to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

fn make_runnable(path: &Path) -> Result<(), String> {
    run::plain(&mut run::command("chmod", &["+x", &path.to_string_lossy()]))
}

fn size(folder: &Path) -> Result<u64, String> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        bytes += if path.is_dir() {
            size(&path)?
        } else {
            path.metadata().map_err(|e| e.to_string())?.len()
        };
    }
    Ok(bytes)
}
