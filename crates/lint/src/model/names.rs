//! What people call things. Used only where nothing better is known about a name (a parameter, a value from elsewhere); a
//! finding that rests on a name says so.

/// The last part of a path in lower case: `optimizerd` of `self.optimizerD`.
fn last(path: &str) -> String {
    path.rsplit('.').next().unwrap_or(path).to_ascii_lowercase()
}

/// Names for something that is called to get an output with a graph.
pub(crate) fn is_module(path: &str) -> bool {
    let name = last(path);
    let whole = ["net", "network", "generator", "discriminator", "unet", "backbone", "classifier"];
    whole.contains(&name.as_str())
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
        name == *word
            || name.ends_with(&format!("_{word}"))
            || name.starts_with(&format!("{word}_"))
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
    name.contains("loader") || name.ends_with("_dl") || name == "train_iter" || name == "val_iter"
}

pub(crate) fn is_criterion(path: &str) -> bool {
    let name = last(path);
    name.starts_with("criterion")
        || name.ends_with("criterion")
        || ["loss_fn", "loss_func", "loss_function", "lossfn", "loss_criterion"]
            .contains(&name.as_str())
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
