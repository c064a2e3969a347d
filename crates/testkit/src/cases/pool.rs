//! Pooling: the largest and the mean of windows, even, adaptive and fractional; unpooling; windows
//! as columns.

use plimsoll_core::DType;
use plimsoll_tensor::{
    AvgPoolOptions, LpPoolOptions, MaxPoolOptions, MaxUnpoolOptions, Result, Tensor,
};

use super::input::{any, below, distinct, positive, special};
use super::{Case, FLOATS, Input, Inputs, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Reversed, Stepped, Transposed};
use crate::oracle::Array;
use crate::oracle::pool::{self, Columns, Windows};

const MEANS: [DType; 5] = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64];

/// What windows are copied in.
const COPIED: [DType; 5] = [DType::Bool, DType::F16, DType::BF16, DType::F32, DType::F64];

/// Even windows of one number of dimensions.
#[derive(Clone, Copy)]
struct Even {
    kernel: &'static [usize],
    stride: &'static [usize],
    padding: &'static [usize],
    dilation: &'static [usize],
    ceil_mode: bool,
}

fn ints(list: &[usize]) -> Vec<i64> {
    list.iter().map(|&size| size as i64).collect()
}

fn python(truth: bool) -> &'static str {
    if truth { "True" } else { "False" }
}

impl Even {
    fn rank(&self) -> usize {
        self.kernel.len()
    }

    fn windows(&self, x: &Array) -> Vec<Windows> {
        let sizes = &x.shape()[x.shape().len() - self.rank()..];
        (0..self.rank())
            .map(|d| {
                let one = (self.kernel[d], self.stride[d], self.padding[d], self.dilation[d]);
                pool::even(sizes[d], one, self.ceil_mode)
            })
            .collect()
    }

    fn max_options(&self) -> MaxPoolOptions {
        MaxPoolOptions::new()
            .stride(&ints(self.stride))
            .padding(&ints(self.padding))
            .dilation(&ints(self.dilation))
            .ceil_mode(self.ceil_mode)
    }

    fn torch(&self) -> String {
        let Even { kernel, stride, padding, dilation, ceil_mode } = self;
        let ceil_mode = python(*ceil_mode);
        format!("{kernel:?}, {stride:?}, {padding:?}, {dilation:?}, {ceil_mode}")
    }

    fn max(&self, t: &Inputs) -> Result<Tensor> {
        let (kernel, options) = (ints(self.kernel), self.max_options());
        match self.rank() {
            1 => t[0].max_pool1d_with(&kernel, options),
            2 => t[0].max_pool2d_with(&kernel, options),
            _ => t[0].max_pool3d_with(&kernel, options),
        }
    }

    fn max_with_indices(&self, t: &Inputs) -> Result<(Tensor, Tensor)> {
        let (kernel, options) = (ints(self.kernel), self.max_options());
        match self.rank() {
            1 => t[0].max_pool1d_with_indices_with(&kernel, options),
            2 => t[0].max_pool2d_with_indices_with(&kernel, options),
            _ => t[0].max_pool3d_with_indices_with(&kernel, options),
        }
    }
}

const ONE: Even =
    Even { kernel: &[3], stride: &[2], padding: &[1], dilation: &[1], ceil_mode: false };
const TWO: Even = Even {
    kernel: &[3, 2],
    stride: &[2, 1],
    padding: &[1, 1],
    dilation: &[1, 2],
    ceil_mode: false,
};
const THREE: Even = Even {
    kernel: &[2, 2, 2],
    stride: &[1, 2, 2],
    padding: &[0, 1, 1],
    dilation: &[1, 1, 1],
    ceil_mode: true,
};

const PLAIN: [&str; 3] = ["max_pool1d", "max_pool2d", "max_pool3d"];
const INDICES: [&str; 3] =
    ["max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"];

fn max_rows(form: Even, x: Input, dtypes: &[DType]) -> [Case; 3] {
    let at = form.rank() - 1;
    let (plain, indices) = (PLAIN[at], INDICES[at]);
    let call = |name: &str| format!("torch.nn.functional.{name}(a, {}", form.torch());
    let layouts = [Contiguous, Transposed, Stepped];
    [
        Case::new(plain, call(plain) + ")", [x.clone()])
            .run(move |t| form.max(t))
            .oracle(move |x| pool::max_pool(&x[0], form.rank(), |_| form.windows(&x[0])).0)
            .dtypes(dtypes)
            .taking_only_these()
            .only(&layouts)
            .gradient(&[0]),
        Case::new(indices, call(plain) + ", return_indices=True)", [x.clone()])
            .run(move |t| form.max_with_indices(t))
            .oracle(move |x| pool::max_pool(&x[0], form.rank(), |_| form.windows(&x[0])))
            .dtypes(dtypes)
            .taking_only_these()
            .only(&layouts),
        Case::new(indices, call(plain) + ", return_indices=True)[0]", [x])
            .run(move |t| Ok(form.max_with_indices(t)?.0))
            .oracle(move |x| pool::max_pool(&x[0], form.rank(), |_| form.windows(&x[0])).0)
            .dtypes(dtypes)
            .taking_only_these()
            .only(&layouts)
            .gradient(&[0]),
    ]
}

fn avg_row(
    form: Even,
    x: &[usize],
    count_padding: bool,
    divisor: Option<i64>,
    into: Option<&[usize]>,
) -> Case {
    let name = ["avg_pool1d", "avg_pool2d", "avg_pool3d"][form.rank() - 1];
    let Even { kernel, stride, padding, ceil_mode, .. } = form;
    let mut call = format!(
        "torch.nn.functional.{name}(a, {kernel:?}, {stride:?}, {padding:?}, {}, {}",
        python(ceil_mode),
        python(count_padding)
    );
    if form.rank() > 1 {
        call += &divisor.map_or(", None".to_string(), |divisor| format!(", {divisor}"));
    }
    let options = move || {
        AvgPoolOptions::new()
            .stride(&ints(stride))
            .padding(&ints(padding))
            .ceil_mode(ceil_mode)
            .count_include_pad(count_padding)
            .divisor_override(divisor)
    };
    // PyTorch has no means of halves over volumes.
    let dtypes = if form.rank() == 3 { &MEANS[2..] } else { &MEANS };
    let finish = move |case: Case| {
        case.oracle(move |x| pool::avg_pool(&x[0], &form.windows(&x[0]), count_padding, divisor))
            .dtypes(dtypes)
            .taking_only_these()
            .tolerance(8.0, 3.0)
            .only(&[Contiguous, Transposed, Stepped])
    };
    let Some(out) = into else {
        let case = Case::new(name, call + ")", [any(x)]).run(move |t| match form.rank() {
            1 => t[0].avg_pool1d_with(&ints(kernel), options()),
            2 => t[0].avg_pool2d_with(&ints(kernel), options()),
            _ => t[0].avg_pool3d_with(&ints(kernel), options()),
        });
        return finish(case).gradient(&[0]);
    };
    let call = call.replace("torch.nn.functional", "torch._C._nn");
    let case = Case::new(name, call + ", out=b)", [any(x), any(out)]);
    let case = finish(case.writes(1, move |t| match form.rank() {
        2 => t[0].avg_pool2d_with_out(&ints(kernel), options(), &t[1]),
        _ => t[0].avg_pool3d_with_out(&ints(kernel), options(), &t[1]),
    }));
    // PyTorch writes means of volumes one after the other whatever the target's strides are.
    if form.rank() == 3 { case.plain() } else { case }
}

fn adaptive_rows(x: &[usize], sizes: &'static [usize]) -> [Case; 2] {
    let rank = sizes.len();
    let windows = move |x: &Array| {
        let lead = x.shape().len() - rank;
        (0..rank).map(|d| pool::adaptive(x.shape()[lead + d], sizes[d])).collect::<Vec<_>>()
    };
    let avg = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"][rank - 1];
    let max = ["adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"][rank - 1];
    let layouts = [Contiguous, Transposed, Stepped];
    [
        Case::new(avg, format!("torch.nn.functional.{avg}(a, {sizes:?})"), [any(x)])
            .run(move |t| match rank {
                1 => t[0].adaptive_avg_pool1d(&ints(sizes)),
                2 => t[0].adaptive_avg_pool2d(&ints(sizes)),
                _ => t[0].adaptive_avg_pool3d(&ints(sizes)),
            })
            .oracle(move |x| pool::avg_pool(&x[0], &windows(&x[0]), false, None))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 3.0)
            .only(&layouts)
            .gradient(&[0]),
        Case::new(
            max,
            format!("torch.nn.functional.{max}(a, {sizes:?}, return_indices=True)"),
            [distinct(x)],
        )
        .run(move |t| match rank {
            1 => t[0].adaptive_max_pool1d(&ints(sizes)),
            2 => t[0].adaptive_max_pool2d(&ints(sizes)),
            _ => t[0].adaptive_max_pool3d(&ints(sizes)),
        })
        .oracle(move |x| pool::max_pool(&x[0], rank, |_| windows(&x[0])))
        .dtypes(&FLOATS)
        .taking_only_these()
        .only(&layouts)
        .gradient(&[0]),
    ]
}

/// Samples that no window's place depends on by rounding: all the same number.
fn fractional_row(x: &[usize], sizes: &'static [usize]) -> Case {
    let rank = sizes.len();
    let name = if rank == 2 { "fractional_max_pool2d" } else { "fractional_max_pool3d" };
    let samples = [x[0], x[1], rank];
    let call = format!("torch._C._nn.{name}(a, {:?}, {sizes:?}, b * 0 + 0.375)", vec![2; rank]);
    Case::new(name, call, [distinct(x), any(&samples)])
        .run(move |t| {
            let samples = t[1].mul(0.0)?.add(0.375)?;
            match rank {
                2 => t[0].fractional_max_pool2d(2, &ints(sizes), &samples),
                _ => t[0].fractional_max_pool3d(2, &ints(sizes), &samples),
            }
        })
        .oracle(move |x| {
            let lead = x[0].shape().len() - rank;
            pool::max_pool(&x[0], rank, |_| {
                let size = |d: usize| x[0].shape()[lead + d];
                (0..rank).map(|d| pool::fractional(size(d), sizes[d], 2, 0.375)).collect()
            })
        })
        .dtypes(&FLOATS)
        .taking_only_these()
        .only(&[Contiguous, Transposed])
        .gradient(&[0])
}

/// Places that are all different: those of the elements themselves.
fn unpool_row(x: &[usize]) -> Case {
    let rank = x.len() - 2;
    let name = ["max_unpool1d", "max_unpool2d", "max_unpool3d"][rank - 1];
    let call = format!(
        "torch.nn.functional.{name}(a, b * 0 + torch.arange(b[0, 0].numel()).reshape(b.shape[2:]) * 2, 2)"
    );
    let places = move |t: &Inputs| {
        let shape = t[1].shape();
        let count = shape[2..].iter().product::<usize>() as i64;
        let sizes: Vec<i64> = shape[2..].iter().map(|&size| size as i64).collect();
        let each = Tensor::arange(0, count, 1, (DType::I64, t.device))?;
        t[1].mul(0)?.add(&each.view(&sizes[..])?.mul(2)?)
    };
    Case::new(name, call, [any(x), below(2, x)])
        .run(move |t| {
            let places = places(t)?;
            match rank {
                1 => t[0].max_unpool1d(&places, 2),
                2 => t[0].max_unpool2d_with(&places, 2, MaxUnpoolOptions::new().stride(2)),
                _ => t[0].max_unpool3d(&places, 2),
            }
        })
        .oracle(move |x| {
            let size: Vec<usize> = x[0].shape()[2..].iter().map(|size| 2 * size).collect();
            let inner = x[0].shape()[2..].to_vec();
            let places = Array::build(DType::I64, x[0].shape(), |at| {
                let place =
                    at[2..].iter().zip(&inner).fold(0, |place, (at, size)| place * size + at);
                2 * place as i64
            });
            pool::scatter(&x[0], &places, &size, false)
        })
        .dtypes(&FLOATS)
        .taking_only_these()
        .only(&[Contiguous, Transposed])
        .gradient(&[0])
}

fn back_row() -> Case {
    let call = "torch.ops.aten.max_pool2d_with_indices_backward(a, c, [2, 2], [1, 1], [0, 0], [1, 1], False, b)";
    let inputs = [any(&[2, 1, 2, 3]), below(12, &[2, 1, 2, 3]), any(&[2, 1, 3, 4])];
    Case::new("max_pool2d_with_indices_backward", call, inputs)
        .run(|t| t[0].max_pool2d_with_indices_backward(&t[2], 2, 1, 0, 1, false, &t[1]))
        .oracle(|x| pool::scatter(&x[0], &x[1], &[3, 4], true))
        .dtypes(&FLOATS)
        .taking_only_these()
        .tolerance(8.0, 9.0)
        .only(&[Contiguous])
        .gradient(&[0, 2])
}

const COLUMNS: Columns =
    Columns { kernel: [2, 3], dilation: [1, 2], padding: [1, 2], stride: [2, 1] };

fn columns_rows() -> [Case; 2] {
    let call = "torch._C._nn.im2col(a, [2, 3], [1, 2], [1, 2], [2, 1])";
    let back = "torch._C._nn.col2im(a, [4, 5], [2, 3], [1, 2], [1, 2], [2, 1])";
    [
        Case::new("im2col", call, [any(&[2, 2, 4, 5])])
            .run(|t| t[0].im2col([2, 3], [1, 2], [1, 2], [2, 1]))
            .oracle(|x| pool::unfold(&x[0], COLUMNS))
            .dtypes(&COPIED)
            .taking_only_these()
            .only(&[Contiguous, Transposed, Reversed])
            .gradient(&[0]),
        Case::new("col2im", back, [any(&[2, 12, 15])])
            .run(|t| t[0].col2im([4, 5], [2, 3], [1, 2], [1, 2], [2, 1]))
            .oracle(|x| pool::fold(&x[0], [4, 5], COLUMNS))
            .dtypes(&COPIED)
            .taking_only_these()
            .tolerance(8.0, 9.0)
            .only(&[Contiguous, Transposed])
            .gradient(&[0]),
    ]
}

fn lp_row(rank: usize) -> Case {
    let name = ["lp_pool1d", "lp_pool2d", "lp_pool3d"][rank - 1];
    let shape: Vec<usize> = [1, 2].into_iter().chain(vec![4; rank]).collect();
    let kernel = if rank == 1 { "2".to_string() } else { format!("{:?}", vec![2; rank]) };
    let call = format!("torch.nn.functional.{name}(a, 3.0, {kernel}, 1)");
    Case::new(name, call, [positive(&shape)])
        .run(move |t| {
            let options = LpPoolOptions::new().stride(1);
            match rank {
                1 => t[0].lp_pool1d_with(3.0, 2, options),
                2 => t[0].lp_pool2d_with(3.0, 2, options),
                _ => t[0].lp_pool3d_with(3.0, 2, options),
            }
        })
        .oracle(move |x| {
            let windows: Vec<Windows> =
                (0..rank).map(|_| pool::even(4, (2, 1, 0, 1), false)).collect();
            let cubes = Array::build(DType::F64, x[0].shape(), |at| x[0].at(at).to_f64().powi(3));
            let sums = pool::avg_pool(&cubes, &windows, false, Some(1));
            Array::build(x[0].dtype(), sums.shape(), |at| sums.at(at).to_f64().cbrt())
        })
        // It is made of a mean.
        .dtypes(if rank == 3 { &FLOATS[2..] } else { &FLOATS })
        .taking_only_these()
        .tolerance(64.0, 16.0)
        .only(&[Contiguous])
        .gradient(&[0])
}

pub(super) fn cases() -> Vec<Case> {
    let mut rows = Vec::new();
    rows.extend(max_rows(ONE, distinct(&[2, 2, 6]), &FLOATS));
    rows.extend(max_rows(TWO, distinct(&[1, 2, 5, 6]), &NUMBERS));
    rows.extend(max_rows(THREE, distinct(&[1, 2, 3, 3, 4]), &NUMBERS));
    let special_rows = max_rows(TWO, special(&[1, 2, 5, 6]), &FLOATS);
    rows.extend(special_rows.map(|case| case.gradient(&[]).only(&[Contiguous, Transposed])));
    let mut ceil = TWO;
    ceil.ceil_mode = true;
    rows.extend(max_rows(ceil, distinct(&[2, 1, 4, 5]), &[DType::F32, DType::F64]));
    rows.push(avg_row(ONE, &[2, 2, 6], true, None, None));
    let undilated = Even { dilation: &[1, 1], ..TWO };
    rows.push(avg_row(undilated, &[1, 2, 5, 6], false, None, None));
    let ceil = Even { ceil_mode: true, ..undilated };
    rows.push(avg_row(ceil, &[2, 2, 4, 5], true, None, None));
    rows.push(avg_row(ceil, &[2, 2, 4, 5], true, Some(3), None));
    rows.push(avg_row(undilated, &[1, 2, 5, 6], true, None, Some(&[1, 2, 3, 7])));
    rows.push(avg_row(THREE, &[1, 2, 3, 3, 4], true, None, None));
    rows.push(avg_row(THREE, &[1, 2, 3, 3, 4], false, None, Some(&[1, 2, 2, 2, 3])));
    rows.extend(adaptive_rows(&[2, 2, 7], &[3]));
    rows.extend(adaptive_rows(&[1, 2, 5, 4], &[3, 2]));
    rows.extend(adaptive_rows(&[1, 2, 3, 4, 3], &[2, 3, 2]));
    rows.push(fractional_row(&[1, 2, 6, 5], &[3, 2]));
    rows.push(fractional_row(&[1, 2, 4, 5, 4], &[2, 3, 2]));
    rows.extend([unpool_row(&[1, 2, 3]), unpool_row(&[1, 2, 2, 3]), unpool_row(&[1, 1, 2, 2, 2])]);
    rows.push(back_row());
    rows.extend(columns_rows());
    rows.extend([lp_row(1), lp_row(2), lp_row(3)]);
    rows
}
