//! `cargo xtask fuzz [SECONDS]`: each fuzz target for a while, five minutes unless told. Needs a
//! nightly toolchain and cargo-fuzz, which `cargo install cargo-fuzz` brings. Not part of `cargo
//! xtask test`: it has no end.

use crate::run;

const TARGETS: &[&str] = &[
    "layouts",
    "allocator",
    "configuration",
    "lint",
    "pickle",
    "snapshot_json",
    "pt",
    "safetensors",
];

/// Runs the targets in turn; an error is a finding, or a missing tool.
pub(crate) fn fuzz(arguments: &[String]) -> Result<(), String> {
    let seconds: u32 = match arguments {
        [] => 300,
        [seconds] => seconds.parse().map_err(|_| format!("`{seconds}` is no number of seconds"))?,
        _ => return Err("usage: cargo xtask fuzz [SECONDS]".to_string()),
    };
    if !run::answers("cargo", &["+nightly", "fuzz", "--version"]) {
        return Err(
            "cargo-fuzz on a nightly toolchain is missing: `cargo install cargo-fuzz`".into()
        );
    }
    for target in TARGETS {
        let limit = format!("-max_total_time={seconds}");
        // Overflows and bounds are checked by the build itself, so the address sanitizer is left
        // out: it triples the time.
        let arguments = ["+nightly", "fuzz", "run", "--sanitizer", "none", target, "--", &limit];
        let mut command = run::command("cargo", &arguments);
        // Leave the toolchain to `+nightly`: within `cargo xtask` these name the one that built us.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        run::plain(&mut command)?;
    }
    Ok(())
}
