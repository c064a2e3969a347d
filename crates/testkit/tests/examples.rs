//! The training programs of the crate `plimsoll`: they learn, they say where their memory was, a
//! dry run foretells their peaks to the byte, their bytes stand still, and nothing is left.

use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::{Device, Result, memory};
use plimsoll_testkit::examples::{self, EXAMPLES, Example, taken};

type Outcome = Result<()>;

fn own_cpu() -> Device {
    device::private_cpu(&Default::default()).unwrap()
}

/// Trains; the last five losses must be at most `share` of the first five. From step 20 on the
/// bytes in use are the same after every step, and none are left in the end.
fn learns(name: &str, steps: u64, share: f64) -> Outcome {
    let (cpu, on_host) = (own_cpu(), memory::memory_allocated(Device::CPU));
    let (mut losses, mut held) = (Vec::new(), Vec::new());
    (examples::named(name).train)(cpu, steps, &mut |step, loss| {
        assert_eq!(step, losses.len() as u64 + 1);
        losses.push(f64::from(loss.item::<f32>()?));
        held.push(memory::memory_allocated(cpu));
        Ok(())
    })?;
    assert_eq!(losses.len() as u64, steps);
    let (first, last): (f64, f64) =
        (losses[..5].iter().sum(), losses[losses.len() - 5..].iter().sum());
    assert!(last < share * first, "{name}: the losses went from {first} to {last}: {losses:?}");
    assert!(held[19..].iter().all(|&bytes| bytes == held[19]), "{name}: {:?}", &held[19..]);
    assert_eq!(memory::memory_allocated(cpu), 0, "{name}: something is left");
    assert_eq!(memory::memory_allocated(Device::CPU), on_host, "{name}: on the host");
    Ok(())
}

#[test]
fn mlp_learns_and_leaves_nothing() -> Outcome {
    learns("mlp", 120, 0.3)
}

#[test]
fn cnn_learns_and_leaves_nothing() -> Outcome {
    learns("cnn", 50, 0.5)
}

#[test]
fn lstm_learns_and_leaves_nothing() -> Outcome {
    learns("lstm", 60, 0.05)
}

#[test]
fn gpt_learns_and_leaves_nothing() -> Outcome {
    learns("gpt", 40, 0.8)
}

#[test]
fn gan_learns_and_leaves_nothing() -> Outcome {
    learns("gan", 160, 0.5)
}

#[test]
fn dqn_learns_and_leaves_nothing() -> Outcome {
    learns("dqn", 160, 0.1)
}

fn foretold(real: Device) -> Outcome {
    // A dry run does not foretell what chaos takes away and brings back.
    device::set_chaos(real, None);
    for example in EXAMPLES {
        let (expected, took) = (taken(example, device::dry(real)?, 3)?, taken(example, real, 3)?);
        assert_eq!(expected, took, "{} on {real}", example.name);
        assert!(took.held_bytes > 0 && took.allocated_bytes > took.held_bytes, "{took:?}");
    }
    Ok(())
}

#[test]
fn a_dry_run_foretells_the_peaks_on_the_cpu() -> Outcome {
    foretold(own_cpu())
}

#[test]
fn a_dry_run_foretells_the_peaks_on_the_stand_in() -> Outcome {
    foretold(device::stand_in(StandIn::default())?)
}

#[test]
fn every_example_runs_dry_on_a_gpu_that_is_not_there() -> Outcome {
    for example in EXAMPLES {
        let took = taken(example, device::dry_named("h200")?, 3)?;
        assert!(took.allocated_bytes > took.held_bytes, "{}: {took:?}", example.name);
    }
    Ok(())
}

fn said(example: Example, words: &[&str]) -> Result<String> {
    let mut out = Vec::new();
    (example.run)(&mut words.iter().map(ToString::to_string), &mut out)?;
    Ok(String::from_utf8(out).expect("words"))
}

#[test]
fn every_example_says_how_it_went_and_where_its_memory_was() -> Outcome {
    for example in EXAMPLES {
        let text = said(example, &["--steps", "3"])?;
        let file = format!("examples/{}.rs:", example.name);
        for word in
            ["step     1  ", " -> ", "parameter", "gradient", "optimizer state", "input", &file]
        {
            assert!(text.contains(word), "no `{word}` of {} in\n{text}", example.name);
        }
    }
    let text = said(examples::named("mlp"), &["--steps", "101", "--device", "cpu"])?;
    let line = text.lines().last().expect("a line");
    let bytes = |word: &str| line.split(word).nth(1).and_then(|rest| rest.split(' ').nth(1));
    assert_eq!(bytes("after step 100:"), bytes("after 101:"), "{line}");
    Ok(())
}

#[test]
fn a_wrong_option_is_an_error_that_says_what_to_write() {
    for (words, wrong) in [
        (&["--steps"][..], "--steps needs a value"),
        (&["--steps", "many"], "`many` is not a number of steps above 0"),
        (&["--steps", "0"], "`0` is not a number of steps above 0"),
        (&["--epochs", "3"], "`--epochs` is no option"),
        (&["--device", "abacus"], "abacus"),
    ] {
        let error = said(examples::named("mlp"), words).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}
