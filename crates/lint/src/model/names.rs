//! What people call things. Used only where nothing better is known about a name (a parameter, a
//! value from elsewhere); a finding that rests on a name says so.

use std::borrow::Cow;

/// The last part of a path in lower case: `optimizerd` of `self.optimizerD`.
fn last(path: &str) -> Cow<'_, str> {
    let name = path.rsplit_once('.').map_or(path, |(_, name)| name);
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// What a name alone suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Criterion,
    Module { recurrent: bool },
    Optimizer,
    Scaler,
    Device,
}

/// The role that a path's last part suggests, if any.
pub(crate) fn role(path: &str) -> Option<Role> {
    let name = last(path);
    if is_criterion(&name) {
        Some(Role::Criterion)
    } else if is_module(&name) {
        Some(Role::Module { recurrent: is_recurrent(&name) })
    } else if is_optimizer(&name) {
        Some(Role::Optimizer)
    } else if is_scaler(&name) {
        Some(Role::Scaler)
    } else {
        is_device(&name).then_some(Role::Device)
    }
}

/// Names for something that is called to get an output with a graph.
pub(crate) fn is_module(path: &str) -> bool {
    let name = last(path);
    let whole = ["net", "network", "generator", "discriminator", "unet", "backbone", "classifier"];
    whole.contains(&&*name)
        || name == "model"
        || name.ends_with("_model")
        || name.starts_with("model_") && name.len() <= 9
        || name.ends_with("_net")
        || ["netg", "netd"].iter().any(|prefix| name.starts_with(prefix) && name.len() <= 7)
        || is_recurrent(path)
}

pub(crate) fn is_recurrent(path: &str) -> bool {
    let name = last(path);
    ["rnn", "lstm", "gru"].iter().any(|word| {
        let before = name.strip_suffix(word);
        let after = name.strip_prefix(word);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
            || after.is_some_and(|after| after.starts_with('_'))
    })
}

pub(crate) fn is_optimizer(path: &str) -> bool {
    let name = last(path);
    ["optimizer", "optimiser"].iter().any(|word| name.contains(word))
        || name == "opt"
        || name == "optim"
        || name.ends_with("_opt")
        || name.ends_with("_optim")
        || name.starts_with("opt_")
        || name.starts_with("optim_")
        || name.starts_with("optim") && name.len() <= 7
}

pub(crate) fn is_scaler(path: &str) -> bool {
    let name = last(path);
    name == "scaler" || name == "grad_scaler" || name == "gradscaler" || name == "amp_scaler"
}

pub(crate) fn is_loader(path: &str) -> bool {
    let name = last(path);
    let passes = ["train_iter", "val_iter", "valid_iter", "dev_iter", "test_iter", "eval_iter"];
    name.contains("loader") || name.ends_with("_dl") || passes.contains(&&*name)
}

pub(crate) fn is_criterion(path: &str) -> bool {
    let name = last(path);
    name.starts_with("criterion")
        || name.ends_with("criterion")
        || ["loss_fn", "loss_func", "loss_function", "lossfn", "loss_criterion"].contains(&&*name)
}

pub(crate) fn is_loss(path: &str) -> bool {
    let name = last(path);
    name == "loss" || name.starts_with("loss_") || name.ends_with("_loss")
}

pub(crate) fn is_device(path: &str) -> bool {
    let name = last(path);
    name == "device" || name.ends_with("_device") || name == "dev" || name == "gpu"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_told_by_whole_words() {
        for model in
            ["model", "self.net", "teacher_model", "netG", "netD_A", "self.lstm", "model_ema"]
        {
            assert!(is_module(model), "{model}");
        }
        for other in ["models", "model_name_or_path", "subnet_mask", "remodel", "internet"] {
            assert!(!is_module(other), "{other}");
        }
        assert!(is_optimizer("optimizerD") && is_optimizer("self.opt") && is_optimizer("optim_g"));
        assert!(!is_optimizer("options") && !is_optimizer("opts") && !is_optimizer("scheduler"));
    }
}
