//! Batch norm: in training, where it writes running statistics besides its result, and in
//! evaluation.

use plimsoll_core::DType;

use super::input::{any, positive};
use super::{Arrays, Case, FLOATS, Input, Inputs};
use crate::layouts::Arrangement::{Contiguous, Offset, Reversed, Stepped, Transposed};
use crate::oracle::{Array, nn};
use plimsoll_tensor::{BatchNormOptions, Result, Tensor};

/// Inputs: a is the input, b and c are running mean and variance, d weight, e bias.
#[derive(Clone, Copy)]
struct Form {
    running: bool,
    weight: bool,
    bias: bool,
    training: bool,
}

const MOMENTUM: f64 = 0.3;
const EPS: f64 = 1e-3;

impl Form {
    /// PyTorch's call.
    fn torch(self) -> String {
        let name = |given: bool, name: &'static str| if given { name } else { "None" };
        format!(
            "torch.nn.functional.batch_norm(a, {}, {}, {}, {}, {}, {MOMENTUM}, {EPS})",
            name(self.running, "b"),
            name(self.running, "c"),
            name(self.weight, "d"),
            name(self.bias, "e"),
            if self.training { "True" } else { "False" },
        )
    }

    fn run(self, t: &Inputs) -> Result<Tensor> {
        let given = |given: bool, index: usize| given.then(|| &t[index]);
        let options = BatchNormOptions::new()
            .weight(given(self.weight, 3))
            .bias(given(self.bias, 4))
            .training(self.training)
            .momentum(MOMENTUM)
            .eps(EPS);
        t[0].batch_norm_with(given(self.running, 1), given(self.running, 2), options)
    }

    fn oracle(self, x: &Arrays) -> (Array, Option<(Array, Array)>) {
        let by = nn::BatchNorm {
            running: self.running.then(|| (&x[1], &x[2])),
            weight: self.weight.then(|| &x[3]),
            bias: self.bias.then(|| &x[4]),
            training: self.training,
            momentum: MOMENTUM,
            eps: EPS,
        };
        nn::batch_norm(&x[0], by)
    }

    /// The inputs that have a derivative.
    fn gradients(self) -> Vec<usize> {
        let inputs = [(true, 0), (self.weight, 3), (self.bias, 4)];
        inputs.into_iter().filter(|input| input.0).map(|input| input.1).collect()
    }

    /// Its running statistics, which training writes.
    fn written(self) -> &'static [usize] {
        if self.running && self.training { &[1, 2] } else { &[] }
    }
}

const TRAIN: Form = Form { running: true, weight: true, bias: true, training: true };
const EVALUATE: Form = Form { training: false, ..TRAIN };

/// The result alone.
fn row(shape: &[usize], form: Form, parameters: impl Fn(Input) -> Input) -> Case {
    let channels = &shape[1..2];
    let inputs = [
        any(shape),
        parameters(any(channels)),
        parameters(positive(channels)),
        parameters(positive(channels)),
        parameters(any(channels)),
    ];
    Case::new("batch_norm", form.torch(), inputs)
        .run(move |t| form.run(t))
        .oracle(move |x| form.oracle(x).0)
        .mutates(form.written())
        .dtypes(&FLOATS)
        .tolerance(32.0, 8.0)
        // Not expanded: without any variance the result is rounding errors over the root of eps,
        // and running statistics cannot be written.
        .only(&[Contiguous, Transposed, Reversed, Stepped, Offset])
}

/// The result and the running statistics after it.
fn with_statistics(shape: &[usize], parameters: impl Fn(Input) -> Input) -> Case {
    let mut case = row(shape, TRAIN, parameters);
    case.torch = format!("({}, b, c)", TRAIN.torch());
    case.run(|t| Ok((TRAIN.run(t)?, t[1].clone(), t[2].clone()))).oracle(|x| {
        let (y, running) = TRAIN.oracle(x);
        let (mean, variance) = running.expect("the form has running statistics");
        (y, mean, variance)
    })
}

pub(super) fn cases() -> Vec<Case> {
    let same = |input: Input| input;
    let single = |input: Input| input.of(DType::F32);
    let mut rows = vec![
        with_statistics(&[4, 3], same),
        with_statistics(&[2, 3, 4], same),
        with_statistics(&[3, 2, 2, 3], same),
        with_statistics(&[2, 2, 1, 2, 3], same),
        with_statistics(&[3, 70, 2], same).brief(),
        with_statistics(&[0, 3, 2], same).plain().taking_only_these(),
        // Halves beside parameters in single precision.
        with_statistics(&[4, 3, 2], single).dtypes(&[DType::F16, DType::BF16]).taking_only_these(),
        row(&[4, 3, 2], EVALUATE, single).dtypes(&[DType::F16, DType::BF16]).taking_only_these(),
        row(&[2, 0, 2], Form { weight: false, bias: false, ..TRAIN }, same)
            .plain()
            .taking_only_these(),
        row(&[1, 3], EVALUATE, same).plain(),
        row(&[0, 3, 2], EVALUATE, same).plain().taking_only_these(),
    ];
    for training in [true, false] {
        let form = Form { training, ..TRAIN };
        for form in [form, Form { weight: false, ..form }, Form { bias: false, ..form }] {
            rows.push(row(&[3, 2, 4], form, same).gradient(&form.gradients()));
        }
        rows.push(row(&[5, 3], form, same).brief().gradient(&form.gradients()));
        rows.push(row(&[2, 2, 2, 3], form, same).brief().gradient(&form.gradients()));
    }
    let bare = Form { running: false, weight: false, bias: false, training: true };
    rows.push(row(&[3, 2, 4], bare, same).gradient(&[0]));
    rows.push(row(&[3, 2, 4], Form { bias: false, ..EVALUATE }, same).brief().gradient(&[3]));
    rows.push(row(&[3, 2, 4], TRAIN, same).brief().gradient(&[4]));
    rows
}
