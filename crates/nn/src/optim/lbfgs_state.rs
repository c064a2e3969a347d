//! The state of L-BFGS in PyTorch's layout: everything lies beside the first parameter.

use plimsoll_tensor::{Error, NoGrad, Result, Tensor};

use super::lbfgs::{Kept, LBFGS, LineSearchFn};
use crate::saved::{Dict, Value};

impl LBFGS {
    /// PyTorch's layout.
    pub(super) fn state(&self) -> Value {
        let kept = &self.kept;
        let mut state = Dict::new();
        if kept.evaluations > 0 {
            let mut entries =
                vec![("func_evals", kept.evaluations.into()), ("n_iter", kept.iterations.into())];
            if kept.iterations > 0 {
                let one = || Value::Int(1);
                let diagonal = kept.diagonal.clone().map_or_else(one, Value::from);
                entries.extend([
                    ("d", kept.direction.clone().into()),
                    ("t", kept.length.into()),
                    ("old_dirs", kept.differences.clone().into()),
                    ("old_stps", kept.moves.clone().into()),
                    ("ro", kept.inverses.clone().into()),
                    ("H_diag", diagonal),
                    ("prev_flat_grad", kept.before.clone().into()),
                    ("prev_loss", kept.loss_before.into()),
                ]);
            }
            state.insert(0, Value::dict(entries));
        }
        let mut options = self.options.clone();
        options.max_eval = Some(options.max_evaluations());
        let search = match options.line_search_fn {
            None => Value::None,
            Some(LineSearchFn::StrongWolfe) => "strong_wolfe".into(),
        };
        let slots = options.slots();
        let own = slots.iter().map(|(name, slot)| (*name, slot.value()));
        let extra = self.extra.iter().map(|(name, value)| (name.as_str(), (*value).into()));
        let numbers: Vec<i64> = (0..self.params.len() as i64).collect();
        let last = [("line_search_fn", search), ("params", numbers.into())];
        let group = Value::dict(own.chain(extra).chain(last));
        let groups = Value::List(vec![group]);
        Value::dict([("state", state.into()), ("param_groups", groups)])
    }

    /// Takes a state over, whole or not at all.
    pub(super) fn load(&mut self, state: &Value) -> Result<()> {
        let refused = |why: &str| Error::invalid_argument(why).in_operation("LBFGS");
        let groups = state.entry("LBFGS", "param_groups")?.as_list().unwrap_or(&[]);
        let [Some(group)] = groups.iter().map(Value::as_dict).collect::<Vec<_>>()[..] else {
            return Err(refused("loaded state dict has a different number of parameter groups"));
        };
        let params = groups[0].entry("LBFGS", "params")?.as_list().map_or(0, <[_]>::len);
        if params != self.params.len() {
            return Err(refused(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            ));
        }
        let (mut options, mut extra) = (self.options.clone(), Vec::new());
        for (key, value) in group.iter() {
            let Some(key) = key.as_str() else { continue };
            let mut slots = options.slots();
            if let Some((name, slot)) = slots.iter_mut().find(|(name, _)| *name == key) {
                slot.load("LBFGS", name, value)?;
            } else if key == "line_search_fn" {
                drop(slots);
                options.line_search_fn = value.as_str().map(|_| LineSearchFn::StrongWolfe);
            } else if let Some(number) = value.to_f64() {
                extra.push((key.to_string(), number));
            }
        }
        let Some(entries) = state.entry("LBFGS", "state")?.as_dict() else {
            return Err(refused("\"state\" is not a dictionary"));
        };
        let kept = entries.get(0).map(|found| self.loaded(found)).transpose()?.unwrap_or_default();
        (self.options, self.extra, self.kept) = (options, extra, kept);
        Ok(())
    }

    /// What is kept, from a state, where the parameters are.
    fn loaded(&self, state: &Value) -> Result<Kept> {
        let _plain = NoGrad::enter();
        let first = self.params[0].tensor();
        let total: usize = self.params.iter().map(|param| param.tensor().numel()).sum();
        let placed = |given: &Tensor, count: usize| -> Result<Tensor> {
            if given.numel() != count {
                let what =
                    format!("a vector of {count} elements was expected, not {:?}", given.shape());
                return Err(Error::shape("LBFGS", what));
            }
            let placed = given.detach().to(first.device())?.to(first.dtype())?;
            Ok(placed.mark_optimizer_state())
        };
        let one = |key: &str| {
            let given = state.get(key).and_then(Value::as_tensor);
            given.map(|given| placed(given, total)).transpose()
        };
        let list = |key: &str, count: usize| {
            let items = state.get(key).and_then(Value::as_list).unwrap_or(&[]).iter();
            let tensors = items.filter_map(Value::as_tensor);
            tensors.map(|given| placed(given, count)).collect::<Result<Vec<_>>>()
        };
        let whole = |key: &str| state.get(key).and_then(Value::to_i64).unwrap_or(0);
        let float = |key: &str| state.get(key).and_then(Value::to_f64);
        let diagonal = state.get("H_diag").and_then(Value::as_tensor);
        Ok(Kept {
            evaluations: whole("func_evals"),
            iterations: whole("n_iter"),
            direction: one("d")?,
            length: float("t").unwrap_or(0.0),
            differences: list("old_dirs", total)?,
            moves: list("old_stps", total)?,
            inverses: list("ro", 1)?,
            diagonal: diagonal.map(|diagonal| placed(diagonal, 1)).transpose()?,
            before: one("prev_flat_grad")?,
            loss_before: float("prev_loss"),
        })
    }
}
