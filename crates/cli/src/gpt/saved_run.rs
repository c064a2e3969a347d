//! A run in a file: what is written of it, and how it goes on from there as if it had never
//! stopped, on this device or another. The file is a checkpoint of `plimsoll-files`, which says
//! where each part has its place; what decides the run's numbers beside them is in its `extra`.

use std::path::{Path, PathBuf};

use plimsoll_core::{Device, Error, Result};
use plimsoll_data::{DataLoader, Position};
use plimsoll_files::{Checkpoint, Dict, RandomState, Value};
use plimsoll_memory::{Phase, enter_module, enter_phase};
use plimsoll_nn::Module;
use plimsoll_nn::optim::Optimizer;

use super::batches::Batch;
use super::settings::Settings;
use super::step::Trainer;
use super::text::{Mark, Text};

/// Writes a run after `step` steps in place of what is there, as a whole.
pub(crate) fn save(
    path: &Path,
    (trainer, loader, device): (&Trainer, &DataLoader<Batch>, Device),
    step: u64,
    settings: Settings,
    text: &Text,
) -> Result<()> {
    let Position { epoch, batch } = loader.position();
    let Mark { bytes, crc32 } = text.mark();
    let file = text.file.as_ref().map(|file| file.display().to_string());
    let checkpoint = Checkpoint {
        model: trainer.model.state_dict(),
        optimizer: trainer.optimizer.state_dict(),
        scheduler: trainer.scheduler.state_dict(),
        random: RandomState::of(&[device]),
        loader: Value::dict([("epoch", epoch.into()), ("batch", batch.into())]),
        step,
        extra: Dict::from_iter([
            ("settings", settings.to_value()),
            (
                "text",
                Value::dict([
                    ("file", file.into()),
                    ("bytes", bytes.into()),
                    ("crc32", crc32.into()),
                ]),
            ),
            ("device", device.to_string().into()),
        ]),
        ..Checkpoint::default()
    };
    checkpoint.save(path)
}

/// A run that was saved. Its tensors lie on the mapped file until they are copied to where they
/// are wanted.
pub(crate) struct SavedRun {
    path: PathBuf,
    checkpoint: Checkpoint,
}

impl SavedRun {
    pub(crate) fn open(path: &Path) -> Result<SavedRun> {
        let run = SavedRun { path: path.to_path_buf(), checkpoint: Checkpoint::load_mapped(path)? };
        if run.checkpoint.extra.get("settings").is_none() {
            return Err(
                run.refused("it is a checkpoint of another program, not of `plimsoll train`")
            );
        }
        Ok(run)
    }

    fn refused(&self, why: impl std::fmt::Display) -> Error {
        let what = format!("cannot resume `{}`: {why}", self.path.display());
        Error::invalid_argument(what).in_operation("train")
    }

    pub(crate) fn settings(&self) -> Option<&Value> {
        self.checkpoint.extra.get("settings")
    }

    /// The file of the text that it learnt; none for this project's own.
    pub(crate) fn text_file(&self) -> Option<PathBuf> {
        let text = self.checkpoint.extra.get("text")?;
        text.get("file")?.as_str().map(PathBuf::from)
    }

    /// What is said if `text` is not the one that it learnt.
    pub(crate) fn text_conflict(&self, text: &Text) -> Option<String> {
        let saved = self.checkpoint.extra.get("text");
        let number = |key: &str| saved?.get(key)?.as_int()?.try_into().ok();
        let (learnt, here) = ((number("bytes"), number("crc32")), text.mark());
        if learnt == (Some(here.bytes), Some(here.crc32)) {
            return None;
        }
        let learnt = learnt.0.map_or("another text".to_string(), |bytes: u64| {
            format!("another text, of {bytes} bytes")
        });
        Some(format!(
            "--data: the run learns {learnt}; {} has {} bytes and is not the same",
            text.name(),
            here.bytes
        ))
    }

    /// One error for everything in which the command line and the file disagree.
    pub(crate) fn check(&self, conflicts: &[String]) -> Result<()> {
        if conflicts.is_empty() {
            return Ok(());
        }
        Err(self.refused(format!(
            "it does not go with what was asked for:\n  {}\nleave these options out to go on as it was begun, or \
             begin a new run without --resume",
            conflicts.join("\n  ")
        )))
    }

    /// Puts everything back; the answer is how many steps are done. The model's state is copied
    /// from the file to where it is, the optimizer's to the device.
    pub(crate) fn restore(
        &self,
        trainer: &mut Trainer,
        loader: &DataLoader<Batch>,
        device: Device,
        steps: u64,
    ) -> Result<u64> {
        let Checkpoint {
            model, optimizer, scheduler, random, loader: position, step, extra, ..
        } = &self.checkpoint;
        if *step > steps {
            return Err(self.refused(format!("it has done {step} steps of {steps}")));
        }
        let number = |key: &str| position.get(key)?.as_int()?.try_into().ok();
        let (Some(epoch), Some(batch)) = (number("epoch"), number("batch")) else {
            return Err(self.refused("it does not say where the loader was"));
        };
        let groups = optimizer.get("param_groups").and_then(Value::as_list).map_or(0, <[_]>::len);
        let own = trainer.optimizer.groups().len();
        if groups != own {
            return Err(self.refused(format!(
                "its optimizer has {groups} groups of parameters and this program's {own}, so another \
                 version saved it; begin a new run without --resume"
            )));
        }
        let saved_on = extra.get("device").and_then(Value::as_str).unwrap_or_default();
        let random = random.clone().moved(saved_on, device);
        let named = |error: Error| self.refused(error);
        trainer.model.load_state_dict(model).map_err(named)?;
        trainer
            .optimizer
            .load_state_dict(&placed(optimizer, &trainer.optimizer_names(), device)?)
            .map_err(named)?;
        trainer.scheduler.load_state_dict(scheduler).map_err(named)?;
        loader.set_position(Position { epoch, batch }).map_err(named)?;
        random.restore().map_err(named)?;
        Ok(*step)
    }
}

/// An optimizer's state on a device, each part booked under its parameter's module, as the
/// optimizer itself would have.
fn placed(state: &Value, names: &[String], device: Device) -> Result<Value> {
    let _phase = enter_phase(Phase::Optimizer);
    let Some(by_number) = state.get("state").and_then(Value::as_dict) else {
        return state.copied_to(device);
    };
    let mut there = Dict::new();
    for (number, kept) in by_number.iter() {
        let at = number.as_int().and_then(|number| usize::try_from(number).ok());
        let name = at.and_then(|at| names.get(at));
        let module = name.and_then(|name| name.rsplit_once('.')).map(|(path, _)| path);
        let _module = module.map(enter_module);
        there.insert(number.clone(), kept.copied_to(device)?);
    }
    let groups = state.get("param_groups").cloned().unwrap_or_default();
    Ok(Value::dict([("state", there.into()), ("param_groups", groups)]))
}

#[cfg(test)]
mod tests {
    use plimsoll_tensor::{device, manual_seed_on, memory};

    use super::*;
    use crate::gpt::batches::{drawn, endless};
    use crate::gpt::model::{Recompute, Shape};
    use crate::gpt::settings::{GivenSettings, Precision};
    use crate::gpt::step::Plan;
    use crate::gpt::vocabulary::Vocabulary;

    const STEPS: u64 = 12;

    fn plan() -> Plan {
        let shape = Shape {
            vocabulary: 256,
            context: 8,
            layers: 1,
            width: 16,
            heads: 2,
            dropout: 0.2,
            recompute: Recompute::default(),
        };
        Plan {
            shape,
            batch: 2,
            accumulate: 2,
            precision: Precision::Float32,
            learning_rate: 1e-2,
            steps: STEPS,
            captures: false,
        }
    }

    fn text() -> Text {
        Text { bytes: b"a few words of a text ".repeat(9), file: None }
    }

    fn loader() -> DataLoader<Batch> {
        let text = text();
        let tokens = Vocabulary::learn(&text.bytes, 256).encode_small(&text.bytes);
        drawn(tokens, 2, 8, 5).unwrap()
    }

    fn settings() -> Settings {
        Settings::chosen(&GivenSettings::default(), None).0
    }

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("plimsoll-run-{name}-{}.pt", std::process::id()))
    }

    /// Losses of a run from its beginning or from a file on; it is saved after a step.
    fn run(device: Device, from: Option<&Path>, save: Option<(u64, &Path)>) -> Vec<f32> {
        manual_seed_on(device, if from.is_some() { 99 } else { 3 });
        let (mut trainer, loader) = (Trainer::new(&plan(), device).unwrap(), loader());
        let done = from.map_or(0, |path| {
            let run = SavedRun::open(path).unwrap();
            run.restore(&mut trainer, &loader, device, STEPS).unwrap()
        });
        let mut batches = endless(&loader, device);
        let mut losses = Vec::new();
        for step in done + 1..=STEPS {
            losses.push(trainer.step(&mut batches).unwrap().item::<f32>().unwrap());
            if let Some((_, path)) = save.filter(|(after, _)| *after == step) {
                super::save(path, (&trainer, &loader, device), step, settings(), &text()).unwrap();
            }
        }
        losses
    }

    #[test]
    fn a_run_goes_on_as_if_it_had_never_stopped_here_and_on_other_devices() {
        let path = scratch("goes-on");
        let cpu = device::private_cpu(&Default::default()).unwrap();
        let whole = run(cpu, None, Some((5, &path)));
        assert_eq!(run(cpu, Some(&path), None), whole[5..]);
        let another = device::private_cpu(&Default::default()).unwrap();
        assert_eq!(run(another, Some(&path), None), whole[5..]);
        // The stand-in computes by the kernels of the CPU.
        let stand_in = device::stand_in(Default::default()).unwrap();
        assert_eq!(run(stand_in, Some(&path), Some((9, &path))), whole[5..]);
        assert_eq!(run(cpu, Some(&path), None), whole[9..], "and back");
        for device in [cpu, another, stand_in] {
            assert_eq!(memory::memory_allocated(device), 0);
        }
        std::fs::remove_file(path).unwrap();
    }

    /// Runs in halves have a group more, for the norms: another program's file changes nothing.
    #[test]
    fn a_file_with_other_groups_is_refused_before_anything_is_changed() {
        let path = scratch("groups");
        let cpu = device::private_cpu(&Default::default()).unwrap();
        run(cpu, None, Some((1, &path)));
        let plan = Plan { precision: Precision::Bfloat16Parameters, ..plan() };
        let mut trainer = Trainer::new(&plan, cpu).unwrap();
        let values = |trainer: &Trainer| -> Vec<Vec<f64>> {
            let parameters = trainer.model.parameters().into_iter();
            parameters.map(|one| one.tensor().to_f64_vec().unwrap()).collect()
        };
        let before = values(&trainer);
        let saved = SavedRun::open(&path).unwrap();
        let error = saved.restore(&mut trainer, &loader(), cpu, STEPS).unwrap_err().to_string();
        assert!(error.contains("2 groups of parameters") && error.contains("3"), "{error}");
        assert_eq!(values(&trainer), before);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_put_back_is_booked_as_it_was_and_nothing_twice() {
        let path = scratch("booked");
        let cpu = device::private_cpu(&Default::default()).unwrap();
        let booked = |device| {
            format!("{:?}", (memory::live_by_kind(device), memory::live_by_module(device)))
        };
        let (mut trainer, loader) = (Trainer::new(&plan(), cpu).unwrap(), loader());
        let mut batches = endless(&loader, cpu);
        trainer.step(&mut batches).unwrap();
        super::save(&path, (&trainer, &loader, cpu), 1, settings(), &text()).unwrap();
        let bytes = memory::memory_allocated(cpu);
        trainer.step(&mut batches).unwrap();
        let before = booked(cpu);
        drop((trainer, batches));

        let mut trainer = Trainer::new(&plan(), cpu).unwrap();
        let scope = memory::peak_scope(cpu);
        let run = SavedRun::open(&path).unwrap();
        run.restore(&mut trainer, &loader, cpu, STEPS).unwrap();
        drop(run);
        assert_eq!(memory::memory_allocated(cpu), bytes);
        assert_eq!(scope.allocated_bytes_peak(), bytes, "one copy, to where it stays");
        // A parameter's module is known once the model has run.
        trainer.step(&mut endless(&loader, cpu)).unwrap();
        assert_eq!(booked(cpu), before);
        std::fs::remove_file(path).unwrap();
    }
}
