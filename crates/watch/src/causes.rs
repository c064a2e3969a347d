//! Why memory grows, and what to do: one wording for `report`, for `LeakWatch` and for the watch of
//! PyTorch's programs.

/// Why something grows, and the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In a few words.
    pub name: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// A loss is kept with its graph.
pub const LOSS: Cause = Cause {
    name: "a graph is kept alive by a loss that is kept",
    remedy: "Keep the number, not the tensor: `losses.append(loss.item())`, `total += loss.item()`, or `loss.detach()`.",
};

/// A state is carried on with its graph.
pub const STATE: Cause = Cause {
    name: "a graph is kept alive by a state that is carried from step to step",
    remedy: "Cut the graph between steps: `state = state.detach()` before the next step (each tensor of \
             it), or run under `torch.no_grad()` where nothing is learned.",
};

/// Results are kept with their graphs.
pub const RESULTS: Cause = Cause {
    name: "a graph is kept alive by results that are kept",
    remedy: "Run under `torch.no_grad()` or `torch.inference_mode()` where nothing is learned, or keep \
             `output.detach()` (`output.detach().cpu()` to free the device).",
};

/// An optimizer is made anew.
pub const OPTIMIZER_STATE: Cause = Cause {
    name: "optimizer state is made again and again, and kept",
    remedy: "Make the optimizer once, before the loop. To replace it, drop everything that refers to \
             the old one (schedulers, lists); to change its rate, set `lr`.",
};

/// A model is made anew.
pub const MODELS: Cause = Cause {
    name: "models are made again and again, and kept",
    remedy: "Build or copy the model once. To keep copies for a record, put them on the host \
             (`{k: v.cpu() for k, v in model.state_dict().items()}`).",
};

/// Gradients are kept by themselves.
pub const GRADIENTS: Cause = Cause {
    name: "gradients are kept",
    remedy: "Keep what you need of a gradient (a number, or `x.grad.cpu()`), and drop the rest.",
};

/// Gradients of kept inputs.
pub const INPUT_GRADIENTS: Cause = Cause {
    name: "kept inputs keep their gradients",
    remedy: "Keep what you need of the gradient (`x.grad.cpu()`), then set `x.grad = None`, or use \
             `torch.autograd.grad`, which returns gradients without storing them.",
};

/// Gradients of models that are kept.
pub const MODEL_GRADIENTS: Cause = Cause {
    name: "gradients of models that are kept",
    remedy: "Drop models that are replaced, and their optimizers.",
};

/// Inputs that take gradients.
pub const INPUTS: Cause = Cause {
    name: "inputs that require gradients are kept",
    remedy: "Keep `x.detach()` of an input, or drop it after backward.",
};

/// A hook gathers.
pub const HOOK: Cause = Cause {
    name: "a hook keeps values",
    remedy: "Clear what the hook gathers after each step, keep numbers or host copies, or \
             remove the hook when it has done its work.",
};

/// Slices.
pub const SLICES: Cause = Cause {
    name: "kept slices keep the whole storage they were cut from",
    remedy: "Keep a copy of the part you need: `part.clone()`, or `part.cpu()`.",
};

/// Plain values.
pub const VALUES: Cause = Cause {
    name: "values are kept",
    remedy: "Keep only what you need of each (`value.item()`, or a host copy), bound the list or cache, \
             and drop old entries.",
};

/// A tensor is rebuilt from itself.
pub const LONGER: Cause = Cause {
    name: "a tensor is rebuilt from itself in each step, longer every time",
    remedy: "Keep what you need of each step (a number, or a host copy), bound its length \
             (`seen[-1000:].clone()`), or start again each epoch.",
};

/// A container is copied, entries and all.
pub const COPIED: Cause = Cause {
    name: "a container is copied in each step, with more in it every time",
    remedy: "Keep what you need of each step (a number, or a host copy), bound the container, or clear \
             it each epoch. Of a metric that keeps lists call `update()` in each step, which copies \
             nothing, and `reset()` after an epoch.",
};

/// Nobody that is known holds it.
pub const LIBRARY: Cause = Cause {
    name: "something that the program does not hold by name keeps values",
    remedy: "Look for a cache of the library that made them, and how to clear or bound it.",
};

/// Every cause.
pub const ALL: [Cause; 15] = [
    LOSS,
    STATE,
    RESULTS,
    OPTIMIZER_STATE,
    MODELS,
    GRADIENTS,
    INPUT_GRADIENTS,
    MODEL_GRADIENTS,
    INPUTS,
    HOOK,
    SLICES,
    VALUES,
    LONGER,
    COPIED,
    LIBRARY,
];
