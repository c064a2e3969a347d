//! Phases of a step, told from stacks: building the model, forward, backward, the optimizer.
//! PyTorch runs backward on threads of its own, which have no Python frames, so an empty stack in a
//! trace that otherwise has stacks is backward.

use super::code::{Code, CodeOf};
use crate::snapshot::Snapshot;
use crate::stacks::StackId;

/// What the program was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Making a model or moving it to a device.
    Build,
    /// Running a model's layers.
    Model,
    /// The program's own lines, outside of any model.
    Program,
    /// Backward.
    Backward,
    /// The optimizer's step.
    Optimizer,
    /// Not known: the trace has no stacks.
    Unknown,
}

/// The phase of every stack.
#[derive(Clone, Debug, Default)]
pub struct Phases(Vec<Phase>);

impl Phases {
    /// Tells the phase of every stack of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Phases {
        let code = CodeOf::new(snapshot);
        let stacks = (0..snapshot.stacks.len() as u32).map(StackId);
        Phases(stacks.map(|stack| phase(snapshot, &code, stack)).collect())
    }

    /// The phase of a stack.
    pub fn get(&self, stack: StackId) -> Phase {
        self.0.get(stack.0 as usize).copied().unwrap_or(Phase::Unknown)
    }
}

fn phase(snapshot: &Snapshot, code: &CodeOf, stack: StackId) -> Phase {
    if stack == StackId::EMPTY {
        return if snapshot.stacks.len() > 1 { Phase::Backward } else { Phase::Unknown };
    }
    let name = |text| snapshot.strings.get(text);
    let (mut model, mut build, mut python, mut native_backward) = (false, false, false, false);
    let mut outermost = None;
    for frame in snapshot.stacks.frames(stack) {
        let function = name(frame.function);
        let kind = code.of(frame.file);
        match kind {
            Code::Optimizer => return Phase::Optimizer,
            Code::Autograd if matches!(function, "backward" | "_engine_run_backward" | "grad") => {
                return Phase::Backward;
            }
            // Checkpoints run their layers again from a hook of backward.
            Code::Checkpoint if matches!(function, "unpack_hook" | "recompute_fn" | "backward") => {
                return Phase::Backward;
            }
            Code::Module => {
                let moves =
                    ["_apply", "to", "cuda", "__init__", "reset_parameters", "__deepcopy__"];
                build |= moves.contains(&function);
                model |= function.ends_with("_call_impl");
            }
            Code::Native => {
                native_backward |= function.contains("autograd::Engine")
                    || name(frame.file) == "phase" && function == "backward";
                if name(frame.file) == "phase" {
                    match function {
                        "optimizer" => return Phase::Optimizer,
                        "forward" => model = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        python |= kind != Code::Native;
        outermost = Some((kind, frame.file));
    }
    // A custom function's backward has Python frames, but they start in torch/autograd/function.py.
    let custom = outermost
        .is_some_and(|(kind, file)| kind == Code::Autograd && name(file).ends_with("/function.py"));
    match () {
        () if native_backward || custom => Phase::Backward,
        () if model => Phase::Model,
        () if build => Phase::Build,
        () if python => Phase::Program,
        () => Phase::Backward,
    }
}
