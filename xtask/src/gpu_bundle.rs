//! `cargo xtask gpu-bundle`: a folder that runs the CUDA checks and benchmarks on a machine with a
//! driver and no Rust. The checks (`crates/testkit/src/bin/gpu_bundle`), the command and the
//! benchmark of prefetching, stripped, and the cubins, packed together; a script that unpacks them,
//! runs the checks step by step and writes their results into `$OUT`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{nvrtc, run};

/// What a bundle may weigh, so that it is carried to another machine in seconds.
const MOST_BYTES: u64 = 64 << 20;

/// The programs: package, what kind of target, name.
const PROGRAMS: [[&str; 3]; 3] = [
    ["plimsoll-testkit", "--bin", "gpu_bundle"],
    ["plimsoll-cli", "--bin", "plimsoll"],
    ["plimsoll-data", "--example", "overlap_bench"],
];

const RUN: &str = r#"#!/usr/bin/env bash
# Runs what is in this folder on a machine with an NVIDIA driver; results go to $OUT (or ./results).
# `run.sh STEP...` runs the named steps, without a name all of them; `run.sh sanitize TOOL...` every
# case once under the tools of compute-sanitizer (memcheck, racecheck, initcheck, synccheck), or, with
# OPERATIONS="softmax sum" in the environment, every case of these.
set -u
here="$(cd "$(dirname "$0")" && pwd)"
tar -xzf "$here/built.tar.gz" -C "$here"
out="${OUT:-$here/results}"
mkdir -p "$out"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/gpu.txt"
status=0
if [ "${1:-}" = sanitize ]; then
    shift
    parts=64
    for tool in "${@:-memcheck}"; do
        # What it says of a failed process is the last line of its file.
        seq 0 $((parts - 1)) | xargs -P "$(nproc)" -I{} sh -c "
            timeout 500 compute-sanitizer --tool $tool --error-exitcode 9 '$here/gpu_bundle' once {}/$parts ${OPERATIONS:-} \
                >'$out/$tool-{}.txt' 2>&1 || echo \"FAILED (status \$?)\" >>'$out/$tool-{}.txt'"
        echo "== $tool: $(cat "$out/$tool"-*.txt | grep -c '^ok ') of $parts parts right," \
            "$(cat "$out/$tool"-*.txt | grep -o '^ok.*' | grep -o '[0-9]* instances' | awk '{n += $1} END {print n}') instances"
        grep -l '^FAILED' "$out/$tool"-*.txt && status=1
    done
    exit $status
fi
# A process for each: one that ends in a failed driver does not hide the others.
for step in ${*:-devices oracle dry exhaustion interrupted gradients peaks examples bench}; do
    timeout 300 "$here/gpu_bundle" "$step" >"$out/$step.txt" 2>&1 || status=1
    tail -n 40 "$out/$step.txt"
done
if [ $# -eq 0 ] && python3 -c 'import torch' 2>/dev/null; then
    echo "== PyTorch on the same GPU"
    python3 "$here/torch_gpu.py" 2>&1 | tee "$out/torch.txt"
    python3 "$here/gpu_rows.py" 2>&1 | tee "$out/rows.txt"
fi
exit $status
"#;

/// Builds the bundle and says where it is and how large.
pub(crate) fn build(arguments: &[String]) -> Result<(), String> {
    let profile = match arguments {
        [] => "release",
        [word] if word == "dev" => "dev",
        _ => return Err("gpu-bundle takes nothing, or `dev`".to_string()),
    };
    let folder = run::target().join("gpu-bundle");
    let _ = std::fs::remove_dir_all(&folder);
    let cubins = folder.join("cubins");
    std::fs::create_dir_all(&cubins).map_err(|e| format!("{}: {e}", cubins.display()))?;
    run::plain(&mut nvrtc::compile_into(&nvrtc::cubins())?)?;
    copy_cubins(&nvrtc::cubins(), &cubins)?;
    for ([.., name], built) in PROGRAMS.iter().zip(build_all(profile)?) {
        let stripped = folder.join(name);
        copy(&built, &stripped)?;
        run::plain(&mut run::command("strip", &[&stripped.to_string_lossy()]))?;
    }
    pack(&folder, &["cubins", PROGRAMS[0][2], PROGRAMS[1][2], PROGRAMS[2][2]])?;
    let scripts = [
        "crates/tensor/examples/torch_gpu.py",
        "xtask/bench/gpu_rows.py",
        "xtask/bench/torch_operations.py",
        "xtask/bench/torch_worker.py",
    ];
    for script in scripts.map(Path::new) {
        copy(&run::root().join(script), &folder.join(script.file_name().unwrap_or_default()))?;
    }
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

/// Builds the programs and finds them in cargo's messages. In one go: each alone would have other
/// features of what they share, and every kernel would be compiled once for each.
fn build_all(profile: &str) -> Result<Vec<PathBuf>, String> {
    let mut command = run::command(env!("CARGO"), &["build", "--profile", profile]);
    PROGRAMS.iter().for_each(|[package, kind, name]| {
        command.args(["--package", package, kind, name]);
    });
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    if !output.status.success() {
        return Err("building the programs failed".to_string());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    PROGRAMS.iter().map(|[.., name]| executable(&text, name)).collect()
}

/// Where cargo's messages say that the program `name` is.
fn executable(messages: &str, name: &str) -> Result<PathBuf, String> {
    messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"compiler-artifact\""))
        .filter_map(|line| {
            let from = line.find("\"executable\":\"")? + "\"executable\":\"".len();
            let length = line[from..].find('"')?;
            Some(PathBuf::from(&line[from..from + length]))
        })
        .rfind(|path| path.file_name().is_some_and(|file| file == name))
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

/// Packs what was built, which halves what has to be carried.
fn pack(folder: &Path, built: &[&str]) -> Result<(), String> {
    let place = folder.to_string_lossy();
    let mut tar = run::command("tar", &["-C", &place, "--remove-files", "-czf"]);
    run::plain(tar.arg(folder.join("built.tar.gz")).args(built))
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
