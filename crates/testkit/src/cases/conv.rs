//! Convolutions: strides, padding, dilation and groups, over one to three dimensions, and
//! transposed.

use plimsoll_core::DType;
use plimsoll_tensor::{ConvOptions, ConvTransposeOptions, Padding, Result, Tensor};

use super::input::any;
use super::{Arrays, Case, Inputs};
use crate::layouts::Arrangement::{Contiguous, Reversed, Stepped, Transposed};
use crate::oracle::{Array, conv};

const DTYPES: [DType; 5] = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64];

/// One convolution: a is the input, b the weight, c the bias.
#[derive(Clone, Copy)]
struct Form {
    rank: usize,
    bias: bool,
    stride: &'static [usize],
    padding: &'static [usize],
    dilation: &'static [usize],
    groups: usize,
    /// Of transposed ones, how much larger the result is; otherwise empty.
    more: &'static [usize],
    transposed: bool,
}

fn ints(list: &[usize]) -> Vec<i64> {
    list.iter().map(|&size| size as i64).collect()
}

impl Form {
    fn name(&self) -> &'static str {
        let plain = ["conv1d", "conv2d", "conv3d"];
        let transposed = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"];
        if self.transposed { transposed[self.rank - 1] } else { plain[self.rank - 1] }
    }

    fn torch(&self) -> String {
        let bias = if self.bias { "c" } else { "None" };
        let Form { stride, padding, dilation, groups, more, .. } = self;
        let more =
            if self.transposed { format!(", output_padding={more:?}") } else { String::new() };
        format!(
            "torch.{}(a, b, {bias}, stride={stride:?}, padding={padding:?}, dilation={dilation:?}, groups={groups}{more})",
            self.name()
        )
    }

    fn run(&self, t: &Inputs) -> Result<Tensor> {
        let bias = self.bias.then(|| &t[2]);
        let (stride, padding) = (ints(self.stride), ints(self.padding));
        let (dilation, groups) = (ints(self.dilation), self.groups as i64);
        if self.transposed {
            let options = ConvTransposeOptions::new()
                .bias(bias)
                .stride(&stride)
                .padding(&padding)
                .output_padding(&ints(self.more))
                .dilation(&dilation)
                .groups(groups);
            return match self.rank {
                1 => t[0].conv_transpose1d_with(&t[1], options),
                2 => t[0].conv_transpose2d_with(&t[1], options),
                _ => t[0].conv_transpose3d_with(&t[1], options),
            };
        }
        let options = ConvOptions::new()
            .bias(bias)
            .stride(&stride)
            .padding(&padding)
            .dilation(&dilation)
            .groups(groups);
        match self.rank {
            1 => t[0].conv1d_with(&t[1], options),
            2 => t[0].conv2d_with(&t[1], options),
            _ => t[0].conv3d_with(&t[1], options),
        }
    }

    fn oracle(&self, x: &Arrays) -> Array {
        let by = conv::Conv {
            stride: self.stride,
            padding: self.padding,
            behind: self.padding,
            dilation: self.dilation,
            groups: self.groups,
        };
        let bias = self.bias.then(|| &x[2]);
        if self.transposed {
            return conv::conv_transpose(&x[0], &x[1], bias, by, self.more);
        }
        conv::conv(&x[0], &x[1], bias, by)
    }
}

const ONE: Form = Form {
    rank: 1,
    bias: true,
    stride: &[1],
    padding: &[0],
    dilation: &[1],
    groups: 1,
    more: &[0],
    transposed: false,
};
const TWO: Form =
    Form { rank: 2, stride: &[1, 1], padding: &[0, 0], dilation: &[1, 1], more: &[0, 0], ..ONE };
const THREE: Form = Form {
    rank: 3,
    stride: &[1, 1, 1],
    padding: &[0, 0, 0],
    dilation: &[1, 1, 1],
    more: &[0, 0, 0],
    ..ONE
};

fn row(form: Form, x: &[usize], weight: &[usize]) -> Case {
    let results = if form.transposed { weight[1] * form.groups } else { weight[0] };
    let terms = weight.iter().skip(1).product::<usize>().max(1) as f64;
    let gradients: &[usize] = if form.bias { &[0, 1, 2] } else { &[0, 1] };
    Case::new(form.name(), form.torch(), [any(x), any(weight), any(&[results])])
        .run(move |t| form.run(t))
        .oracle(move |x| form.oracle(x))
        .dtypes(&DTYPES)
        .taking_only_these()
        .tolerance(16.0, 9.0 * terms.sqrt())
        .only(&[Contiguous, Transposed, Stepped])
        .gradient(gradients)
}

pub(super) fn cases() -> Vec<Case> {
    let transposed = |form: Form| Form { transposed: true, ..form };
    let mut rows = vec![
        row(ONE, &[2, 3, 5], &[4, 3, 2]),
        row(Form { stride: &[2], padding: &[2], dilation: &[2], ..ONE }, &[1, 2, 6], &[2, 2, 3]),
        row(TWO, &[1, 2, 4, 5], &[3, 2, 3, 2]),
        row(
            Form { stride: &[2, 1], padding: &[1, 2], dilation: &[1, 2], bias: false, ..TWO },
            &[2, 2, 5, 4],
            &[3, 2, 2, 3],
        ),
        row(Form { padding: &[1, 1], groups: 2, ..TWO }, &[1, 4, 3, 3], &[4, 2, 3, 3]),
        row(Form { padding: &[1, 1], groups: 3, ..TWO }, &[2, 3, 4, 4], &[3, 1, 3, 3]),
        row(Form { stride: &[2, 2], groups: 2, ..TWO }, &[1, 2, 5, 5], &[4, 1, 2, 2]),
        row(Form { padding: &[0, 1, 1], ..THREE }, &[1, 2, 3, 3, 3], &[2, 2, 2, 3, 2]),
        row(
            Form { stride: &[2, 1, 2], dilation: &[1, 2, 1], bias: false, ..THREE },
            &[1, 1, 4, 4, 3],
            &[2, 1, 2, 2, 2],
        )
        // PyTorch's float16 on one thread is wrong here by several times the result.
        .dtypes(&DTYPES[1..]),
        row(transposed(ONE), &[2, 3, 4], &[3, 2, 3]),
        row(
            transposed(Form { stride: &[3], padding: &[1], dilation: &[2], more: &[2], ..ONE }),
            &[1, 2, 3],
            &[2, 2, 2],
        ),
        row(
            transposed(Form { stride: &[2, 2], padding: &[1, 0], more: &[1, 0], ..TWO }),
            &[1, 2, 3, 3],
            &[2, 3, 3, 2],
        ),
        row(
            transposed(Form { stride: &[2, 1], groups: 2, bias: false, ..TWO }),
            &[1, 4, 3, 2],
            &[4, 1, 2, 3],
        ),
        row(
            transposed(Form { stride: &[1, 2, 1], padding: &[1, 0, 0], ..THREE }),
            &[1, 2, 2, 2, 2],
            &[2, 1, 2, 2, 2],
        ),
    ];
    rows.push(channels_last());
    rows.push(same());
    let empty = row(TWO, &[0, 2, 4, 4], &[3, 2, 3, 3]).only(&[Contiguous]).gradient(&[]);
    rows.push(empty);
    rows.push(composed());
    // Wider than a tile and deeper than a slice.
    rows.push(
        row(Form { padding: &[1, 1], ..TWO }, &[1, 75, 5, 17], &[35, 75, 3, 3])
            .dtypes(&[DType::F32])
            .only(&[Contiguous, Reversed])
            .row_major()
            .gradient(&[]),
    );
    rows
}

/// Channels last in, channels last out.
fn channels_last() -> Case {
    let by = conv::Conv {
        stride: &[1, 1],
        padding: &[1, 1],
        behind: &[1, 1],
        dilation: &[1, 1],
        groups: 1,
    };
    let call = "torch.conv2d(a.permute(0, 3, 1, 2), b, None, padding=1)";
    Case::new("conv2d", call, [any(&[2, 3, 4, 2]), any(&[3, 2, 3, 3])])
        .run(|t| {
            let x = t[0].permute(&[0, 3, 1, 2])?;
            x.conv2d_with(&t[1], ConvOptions::new().padding(1))
        })
        .oracle(move |x| {
            let image = crate::oracle::views::permute(&x[0], &[0, 3, 1, 2]);
            conv::conv(&image, &x[1], None, by)
        })
        .dtypes(&DTYPES)
        .taking_only_these()
        .tolerance(16.0, 40.0)
        .only(&[Contiguous])
        .gradient(&[0, 1])
}

/// As much padding as keeps the size, one more zero behind where it is odd.
fn same() -> Case {
    let by = conv::Conv {
        stride: &[1, 1],
        padding: &[1, 1],
        behind: &[2, 1],
        dilation: &[1, 2],
        groups: 1,
    };
    let call = "torch.conv2d(a, b, None, padding='same', dilation=[1, 2])";
    Case::new("conv2d", call, [any(&[1, 2, 5, 4]), any(&[2, 2, 4, 2])])
        .run(|t| {
            let options = ConvOptions::new().padding(Padding::Same).dilation([1, 2]);
            t[0].conv2d_with(&t[1], options)
        })
        .oracle(move |x| conv::conv(&x[0], &x[1], None, by))
        .dtypes(&DTYPES)
        .taking_only_these()
        .tolerance(16.0, 40.0)
        .only(&[Contiguous])
        .gradient(&[0, 1])
}

/// The form with all arguments.
fn composed() -> Case {
    let by = conv::Conv { stride: &[2], padding: &[1], behind: &[1], dilation: &[1], groups: 1 };
    let call = "torch.convolution(a, b, c, [2], [1], [1], False, [0], 1)";
    Case::new("convolution", call, [any(&[1, 2, 5]), any(&[3, 2, 3]), any(&[3])])
        .run(|t| t[0].convolution(&t[1], &t[2], 2, 1, 1, false, 0, 1))
        .oracle(move |x| conv::conv(&x[0], &x[1], Some(&x[2]), by))
        .dtypes(&DTYPES)
        .taking_only_these()
        .tolerance(16.0, 30.0)
        .only(&[Contiguous])
        .gradient(&[0, 1, 2])
}
