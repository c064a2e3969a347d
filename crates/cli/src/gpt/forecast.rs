//! What a run will take, before it takes anything: its steps on a dry device, which books every
//! byte and computes nothing. And where a limit is too low, the lowest that would do, and the
//! largest batch that would fit.

use plimsoll_core::{ByteSize, DType, Device, Error, Result};
use plimsoll_memory::SystemMemory;
use plimsoll_tensor::{Tensor, device, memory};

use super::step::{Plan, Trainer};

/// How close a lowest limit is found.
const GRAIN: usize = 1 << 20;

/// Peaks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forecast {
    pub(crate) allocated_bytes: usize,
    pub(crate) reserved_bytes: usize,
}

/// The peaks of two steps and an evaluation between them: everything that a run does again and
/// again. Out of memory under the limit is an error, as it would be in the run.
pub(crate) fn forecast(plan: &Plan, of: Device, limit: Option<usize>) -> Result<Forecast> {
    let dry = device::dry(of)?;
    memory::set_limit(dry, limit);
    let part = || -> Result<Tensor> {
        let sizes = [plan.batch as i64, plan.shape.context];
        Ok(Tensor::empty(&sizes, (DType::I64, dry))?.mark_input())
    };
    let mut batches = std::iter::repeat_with(|| Ok((part()?, part()?)));
    let mut trainer = Trainer::new(plan, dry)?;
    trainer.step(&mut batches)?;
    trainer.evaluate(batches.by_ref().take(1))?;
    trainer.step(&mut batches)?;
    if plan.captures {
        // Beside the graph's pool, which is there from the second step on.
        trainer.evaluate(batches.by_ref().take(1))?;
    }
    Ok(Forecast {
        allocated_bytes: memory::max_memory_allocated(dry),
        reserved_bytes: memory::max_memory_reserved(dry),
    })
}

/// What a device could still give, as far as it says.
pub(crate) fn room(device: Device) -> Option<usize> {
    if device == Device::CPU {
        let machine = SystemMemory::read();
        let of_group = machine.cgroup_limit_bytes.zip(machine.cgroup_used_bytes);
        let of_group = of_group.map(|(limit, used)| limit.saturating_sub(used));
        return [machine.available_bytes, of_group].into_iter().flatten().min();
    }
    device::cuda_memory_info(device).ok().map(|(free, _)| free)
}

/// One line on whether a run fits, or an error that says what would.
pub(crate) fn check(plan: &Plan, device: Device, limit: Option<usize>) -> Result<String> {
    let free = forecast(plan, device, None)?;
    let peak = ByteSize(free.reserved_bytes);
    let Some(limit) = limit else {
        return Ok(match room(device) {
            Some(room) if room < free.reserved_bytes => format!(
                "does not fit: {peak} of {} that {device} has left; try --batch, --recompute or --limit",
                ByteSize(room)
            ),
            Some(room) => format!("fits: {peak} of {}", ByteSize(room)),
            None => format!("takes {peak}"),
        });
    };
    match forecast(plan, device, Some(limit)) {
        Ok(under) => Ok(format!(
            "fits: {} of a limit of {} ({peak} without one)",
            ByteSize(under.reserved_bytes),
            ByteSize(limit)
        )),
        Err(error) if error.is_out_of_memory() => Err(too_low(plan, device, limit, free)?),
        Err(error) => Err(error),
    }
}

/// The error of a limit that is too low, with what would do.
fn too_low(plan: &Plan, device: Device, limit: usize, free: Forecast) -> Result<Error> {
    let least = lowest_limit(plan, device, limit, free.reserved_bytes)?;
    let batch = largest_batch(plan, device, limit)?;
    let smaller = match batch {
        0 => "no batch fits; try a smaller --width or --layers".to_string(),
        batch => format!("the largest batch that fits is --batch {batch}"),
    };
    Ok(Error::invalid_argument(format!(
        "training with batches of {} does not fit in a limit of {}: give --limit {} or more; {smaller}",
        plan.batch,
        ByteSize(limit),
        format_args!("{}MiB", least / GRAIN),
    ))
    .in_operation("train"))
}

/// The lowest limit under which a run goes through, to a mebibyte above.
fn lowest_limit(plan: &Plan, device: Device, fails: usize, fits: usize) -> Result<usize> {
    let (mut fails, mut fits) = (fails / GRAIN, fits.div_ceil(GRAIN));
    while fits > fails + 1 {
        let middle = usize::midpoint(fails, fits);
        match does_fit(plan, device, middle * GRAIN)? {
            true => fits = middle,
            false => fails = middle,
        }
    }
    Ok(fits * GRAIN)
}

/// The largest batch that goes through under the limit; 0 if none does.
fn largest_batch(plan: &Plan, device: Device, limit: usize) -> Result<usize> {
    let (mut fits, mut fails) = (0, plan.batch);
    while fails > fits + 1 {
        let middle = usize::midpoint(fits, fails);
        match does_fit(&Plan { batch: middle, ..plan.clone() }, device, limit)? {
            true => fits = middle,
            false => fails = middle,
        }
    }
    Ok(fits)
}

fn does_fit(plan: &Plan, device: Device, limit: usize) -> Result<bool> {
    match forecast(plan, device, Some(limit)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_out_of_memory() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpt::batches::{drawn, endless, even};
    use crate::gpt::model::{Part, Shape};
    use crate::gpt::settings::Precision;
    use crate::gpt::vocabulary::Tokens;
    use plimsoll_data::TokenWidth;
    use plimsoll_nn::Forward;
    use plimsoll_tensor::manual_seed_on;

    fn plan(batch: usize, again: &[Part]) -> Plan {
        Plan {
            shape: Shape {
                vocabulary: 256,
                context: 32,
                layers: 2,
                width: 32,
                heads: 2,
                dropout: 0.0,
                recompute: again.iter().copied().collect(),
            },
            batch,
            accumulate: 1,
            precision: Precision::Float32,
            learning_rate: 1e-3,
            steps: 10,
            captures: false,
        }
    }

    #[test]
    fn the_dry_run_foretells_the_run_to_the_byte() {
        let parts = [&[][..], &[Part::Block], &[Part::Gelu], &[Part::Gelu, Part::Norm]];
        let accumulated = Plan { accumulate: 2, ..plan(2, &[]) };
        for plan in parts.map(|again| plan(4, again)).into_iter().chain([accumulated]) {
            let cpu = device::private_cpu(&Default::default()).unwrap();
            let told = forecast(&plan, cpu, None).unwrap();
            let text = || Tokens {
                bytes: (0..200).map(|token| token % 7).collect(),
                width: TokenWidth::U8,
            };
            let (learnt, kept) = (
                drawn(text(), plan.batch, 32, 0).unwrap(),
                even(text(), plan.batch, 32, 1).unwrap(),
            );
            let mut trainer = Trainer::new(&plan, cpu).unwrap();
            let mut batches = endless(&learnt, cpu);
            for _ in 0..4 {
                trainer.step(&mut batches).unwrap();
                trainer.evaluate(kept.epoch().unwrap()).unwrap();
            }
            assert_eq!(memory::max_memory_allocated(cpu), told.allocated_bytes);
            assert_eq!(memory::max_memory_reserved(cpu), told.reserved_bytes);
            drop(trainer);
            assert_eq!(memory::memory_allocated(cpu), 0);
        }
    }

    /// A step that is captured and replayed learns the same, but for the rounding of its
    /// rate to float32, and its pool is foretold.
    #[test]
    fn captured_steps_are_the_same_and_foretold() {
        let text =
            || Tokens { bytes: (0..200).map(|token| token % 7).collect(), width: TokenWidth::U8 };
        let accumulated = Plan { accumulate: 2, ..plan(2, &[Part::Gelu]) };
        for plain in [plan(4, &[]), accumulated] {
            let losses = [false, true].map(|captures| {
                let gpu = device::stand_in(Default::default()).unwrap();
                device::set_chaos(gpu, None);
                let plan = Plan { captures, ..plain.clone() };
                let told = forecast(&plan, gpu, None).unwrap();
                manual_seed_on(gpu, 1);
                let mut trainer = Trainer::new(&plan, gpu).unwrap();
                let learnt = drawn(text(), plan.batch, 32, 0).unwrap();
                let kept = even(text(), plan.batch, 32, 1).unwrap();
                let mut batches = endless(&learnt, gpu);
                let mut losses = Vec::new();
                for _ in 0..5 {
                    let loss = trainer.step(&mut batches).unwrap();
                    losses.push(loss.to_f64_vec().unwrap()[0]);
                    drop(loss);
                    trainer.evaluate(kept.epoch().unwrap()).unwrap();
                }
                assert_eq!(memory::max_memory_allocated(gpu), told.allocated_bytes);
                assert_eq!(memory::max_memory_reserved(gpu), told.reserved_bytes);
                drop((trainer, batches));
                assert_eq!(memory::memory_allocated(gpu), 0);
                losses
            });
            let near = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-6 * other;
            assert!(losses[0].iter().zip(&losses[1]).all(near), "{losses:?}");
        }
    }

    /// What is computed again is not kept, to the byte, and changes no bit of what is learnt.
    #[test]
    fn parts_that_are_computed_again_are_not_kept() {
        let cpu = device::private_cpu(&Default::default()).unwrap();
        let text =
            || Tokens { bytes: (0..200).map(|token| token % 7).collect(), width: TokenWidth::U8 };
        let (mut kept_bytes, mut losses) = (Vec::new(), Vec::new());
        for again in [&[][..], &[Part::Gelu], &[Part::Norm], &[Part::Gelu, Part::Norm]] {
            let plan = plan(4, again);
            manual_seed_on(cpu, 1);
            let mut trainer = Trainer::new(&plan, cpu).unwrap();
            let ids = Tensor::zeros(&[4, 32], (DType::I64, cpu)).unwrap();
            let before = memory::memory_allocated(cpu);
            let loss = trainer.model.call((&ids, &ids)).unwrap();
            kept_bytes.push(memory::memory_allocated(cpu) - before);
            drop(loss);
            let learnt = drawn(text(), plan.batch, 32, 0).unwrap();
            let mut batches = endless(&learnt, cpu);
            let steps =
                (0..3).map(|_| trainer.step(&mut batches).unwrap().to_f64_vec().unwrap()[0]);
            losses.push(steps.collect::<Vec<f64>>());
        }
        // Of 4 x 32 places in two blocks: GELU makes 128 numbers each, the two norms 32, a mean and
        // a deviation.
        let [gelu, norm] = [2 * 4 * 32 * 128 * 4, 2 * 2 * 4 * 32 * (32 + 2) * 4];
        let saved: Vec<usize> = kept_bytes.iter().map(|kept| kept_bytes[0] - kept).collect();
        assert_eq!(saved, [0, gelu, norm, gelu + norm]);
        assert!(losses.iter().all(|one| one == &losses[0]), "{losses:?}");
    }

    #[test]
    fn a_limit_that_is_too_low_is_refused_with_what_would_do() {
        let plan = plan(64, &[]);
        let cpu = device::private_cpu(&Default::default()).unwrap();
        let free = forecast(&plan, cpu, None).unwrap();
        let limit = free.allocated_bytes / 2;
        let error = check(&plan, cpu, Some(limit)).unwrap_err().to_string();
        let after = |word: &str| -> usize {
            let rest = &error[error.find(word).expect(word) + word.len()..];
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
        };
        let (least, batch) = (after("--limit ") << 20, after("--batch "));
        assert!(does_fit(&plan, cpu, least).unwrap());
        assert!(!does_fit(&plan, cpu, least - GRAIN).unwrap());
        assert!(does_fit(&Plan { batch, ..plan.clone() }, cpu, limit).unwrap());
        assert!(!does_fit(&Plan { batch: batch + 1, ..plan.clone() }, cpu, limit).unwrap());
        assert!(check(&plan, cpu, Some(least)).unwrap().starts_with("fits: "));
        assert!(check(&plan, cpu, Some(1)).unwrap_err().to_string().contains("no batch fits"));
    }
}
