//! The one program of the GPU bundle (`cargo xtask gpu-bundle`): the test kit's checks on a GPU,
//! and the benchmark, on a machine with a driver and no Rust. `gpu_bundle STEP...` runs the named
//! steps, without a name all checks; the exit status says whether all of them passed. `gpu_bundle
//! worker` serves `gpu_rows.py`; `gpu_bundle once 3/16` runs a part of the cases for
//! compute-sanitizer, `gpu_bundle once 3/16 softmax sum` one of those of these operations.

#![allow(clippy::print_stdout)]

mod bench;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use plimsoll_cuda::Context;
use plimsoll_memory::Configuration;
use plimsoll_tensor::{backends, device};
use plimsoll_testkit::checks::devices::{EVERYWHERE, ON_A_GPU, gpu};
use plimsoll_testkit::checks::exhaustion::{Bench, every_operation_survives};
use plimsoll_testkit::checks::interrupted::{
    a_first_step_survives_each_failure, the_same_is_learnt,
};
use plimsoll_testkit::checks::once::{self, Part};
use plimsoll_testkit::checks::{dry, gradients, oracle};
use plimsoll_testkit::failing::failing_cuda_device;
use plimsoll_testkit::{examples, subject, workloads};

/// A step: it panics or gives an error where something is wrong, and says what it did.
type Step = fn() -> plimsoll_tensor::Result<String>;

/// `devices` is first: it looks at what happens before a GPU is opened.
const STEPS: [(&str, Step); 9] = [
    ("devices", devices),
    ("oracle", || {
        let tally = oracle::every_operation_agrees(subject::cuda_device()?);
        println!("{tally}");
        tally.assert_right(4_000);
        Ok(tally.to_string())
    }),
    ("dry", || {
        let real = subject::cuda_device()?;
        let tally = dry::every_operation_takes_the_same(real, device::dry(real)?);
        tally.assert_right(4_000);
        Ok(tally.to_string())
    }),
    ("exhaustion", || {
        let survived = every_operation_survives(&Bench::cuda()?);
        survived.tally.assert_right(50);
        let (forward, backward) = (survived.forward, survived.backward);
        Ok(format!("{forward} forward and {backward} backward allocations failed"))
    }),
    ("interrupted", || {
        let (cuda, tap) = failing_cuda_device()?;
        let first = a_first_step_survives_each_failure(cuda, &tap)?;
        let failures = the_same_is_learnt(cuda, &tap, 10_000)?;
        Ok(format!("{first} first steps and {failures} of 10000 failed, nothing was lost"))
    }),
    ("gradients", || {
        let tally = gradients::every_gradient_is_right(&[subject::cuda_device()?], (0, 1));
        println!("{tally}");
        tally.assert_right(200);
        Ok(tally.to_string())
    }),
    ("peaks", || {
        // As users have it, and as PyTorch beside it.
        backends::cudnn::ALLOW_TF32.set(true);
        let real = subject::cuda_device()?;
        let dry = device::dry(real)?;
        for name in workloads::PEAKS {
            let dry = workloads::peak_bytes(name, dry)?.unwrap_or(0);
            let real = workloads::peak_bytes(name, real)?.unwrap_or(0);
            println!("plimsoll {name:32} {real:>14} bytes, dry {dry:>14}");
            assert_eq!(real, dry, "a dry run takes the same");
        }
        for name in ["conv2d_64", "conv2d_3_to_16", "conv2d_16_to_32"] {
            workloads::peak_bytes(name, real)?;
        }
        tell_plans()?;
        Ok(format!("{} peaks", workloads::PEAKS.len()))
    }),
    ("examples", || {
        let lines = examples::a_dry_run_takes_what_a_gpu_takes(3)?;
        lines.iter().for_each(|line| println!("{line}"));
        Ok(format!("{} training programs", lines.len()))
    }),
    ("bench", || bench::run().map(|()| "measured".to_string())),
];

/// Every program of the list, each on its own: one that fails does not hide the others.
fn devices() -> plimsoll_tensor::Result<String> {
    let early = gpu::memory_pinned_before_the_gpu_was_opened_is_registered;
    let mut failed = usize::from(!passes("pinned memory", || early().map(|()| String::new())));
    let cuda = device::cuda(0)?;
    println!("{} {:?}", cuda, device::properties(cuda)?);
    let stand_in = device::stand_in(device::StandIn::default())?;
    for program in EVERYWHERE.iter().chain(&ON_A_GPU) {
        let run = || (program.run)(cuda).map(|()| String::new());
        failed += usize::from(!passes(program.name, run));
    }
    for program in &EVERYWHERE {
        (program.run)(stand_in)?;
    }
    tell_plans()?;
    assert_eq!(failed, 0, "programs failed");
    Ok(format!("{} programs", EVERYWHERE.len() + ON_A_GPU.len() + 1))
}

/// Part of the cases, or of those of some operations, once, each tensor in memory that the driver
/// gives for it alone: a sanitizer then sees where it ends.
fn run_once(part: Part, operations: &[String]) -> plimsoll_tensor::Result<String> {
    let configuration = Configuration::default().with_caching(false);
    let cuda = device::private_cuda_over(0, |source| source, &configuration)?;
    let tally = once::every_kernel_runs(cuda, part, operations);
    // A part of a few operations may have no case.
    tally.assert_right(usize::from(operations.is_empty()));
    Ok(tally.to_string())
}

/// What cuDNN was asked for so far, and what it took.
fn tell_plans() -> plimsoll_tensor::Result<()> {
    println!("cuDNN {:?}", backends::cudnn::version());
    for plan in Context::open(0)?.convolution_plans()? {
        println!("{plan}");
    }
    Ok(())
}

/// Runs a step, tells of it and says whether it passed.
fn passes(name: &str, step: impl FnOnce() -> plimsoll_tensor::Result<String>) -> bool {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(step));
    let seconds = start.elapsed().as_secs_f64();
    match outcome {
        Ok(Ok(told)) => {
            println!("ok     {name} ({seconds:.1} s) {told}");
            true
        }
        Ok(Err(error)) => {
            println!("FAILED {name} ({seconds:.1} s): {error}");
            false
        }
        // The panic itself was printed where it happened.
        Err(_) => {
            println!("FAILED {name} ({seconds:.1} s)");
            false
        }
    }
}

fn main() -> ExitCode {
    let named: Vec<String> = std::env::args().skip(1).collect();
    if named == ["worker"] {
        return bench::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if let [once, part, operations @ ..] = named.as_slice()
        && once == "once"
    {
        let run = |part| passes(once, || run_once(part, operations));
        let passed = Part::parse(part).is_some_and(run);
        return if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let known = |name: &String| STEPS.iter().any(|(step, _)| step == name);
    if let Some(unknown) = named.iter().find(|name| !known(name)) {
        let steps: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
        println!("`{unknown}` is no step; the steps are {}", steps.join(", "));
        return ExitCode::from(2);
    }
    let wanted = |step: &str| match named.is_empty() {
        true => step != "bench",
        false => named.iter().any(|name| name == step),
    };
    // The checks compare at float32's own precision; the benchmark does as users do.
    if !named.iter().any(|name| name == "bench") {
        backends::cudnn::ALLOW_TF32.set(false);
    }
    let mut failed = 0;
    for (name, step) in STEPS.iter().filter(|(name, _)| wanted(name)) {
        println!("== {name}");
        failed += usize::from(!passes(name, step));
    }
    println!("{failed} steps failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
