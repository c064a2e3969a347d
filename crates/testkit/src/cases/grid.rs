//! Sampling at places that a grid names.

use plimsoll_core::DType;
use plimsoll_tensor::{GridMode as Mode, GridPadding as Padding, GridSampleOptions};

use super::input::{any, fraction};
use super::{Arrays, Case, FLOATS, Input};
use crate::oracle::grid::grid_sample;

const MODES: [(Mode, &str); 3] =
    [(Mode::Linear, "bilinear"), (Mode::Nearest, "nearest"), (Mode::Cubic, "bicubic")];
const PADDINGS: [(Padding, &str); 3] =
    [(Padding::Zeros, "zeros"), (Padding::Border, "border"), (Padding::Reflection, "reflection")];

/// Of places in half precision PyTorch's own steps lose digits, but for the nearest pixel.
fn finish(case: Case, mode: Mode) -> Case {
    let dtypes: &[DType] = if mode == Mode::Nearest { &FLOATS } else { &[DType::F32, DType::F64] };
    case.dtypes(dtypes).taking_only_these().row_major().tolerance(256.0, 8.0).gradient(&[0, 1])
}

fn images() -> [Input; 2] {
    [any(&[2, 2, 4, 3]), fraction(&[2, 3, 2, 2])]
}

fn volumes() -> [Input; 2] {
    [any(&[2, 2, 3, 4, 2]), fraction(&[2, 2, 1, 2, 3])]
}

pub(super) fn cases() -> Vec<Case> {
    let mut rows = Vec::new();
    for (mode, word) in MODES {
        for (padding, beyond) in PADDINGS {
            for align in [false, true] {
                let corners = if align { "True" } else { "False" };
                let row = |[x, grid]: [Input; 2]| {
                    let case = Case::new(
                        "grid_sample",
                        format!(
                            "torch.nn.functional.grid_sample(a, b, '{word}', '{beyond}', {corners})"
                        ),
                        [x, grid],
                    );
                    let case = case
                        .run(move |t| {
                            let options = GridSampleOptions::new()
                                .grid_mode(mode)
                                .grid_padding(padding)
                                .align_corners(align);
                            t[0].grid_sample_with(&t[1], options)
                        })
                        .oracle(move |x| grid_sample(&x[0], &x[1], mode, padding, align));
                    finish(case, mode)
                };
                rows.push(row(images()).brief());
                // Places beyond the image.
                rows.push(row([any(&[1, 2, 4, 3]), any(&[1, 3, 2, 2])]).plain());
                if !align {
                    rows.push(row(volumes()).plain());
                }
            }
        }
    }
    rows.extend(by_number());
    rows
}

/// The names that have numbers for modes.
fn by_number() -> Vec<Case> {
    let oracle = |case: Case| {
        let mode = Mode::Nearest;
        let of = move |x: &Arrays| grid_sample(&x[0], &x[1], mode, Padding::Border, false);
        finish(case.oracle(of), mode)
    };
    let call = |name: &str| format!("torch.{name}(a, b, 1, 1, False)");
    vec![
        oracle(
            Case::new("grid_sampler", call("grid_sampler"), images())
                .run(|t| t[0].grid_sampler(&t[1], 1, 1, false)),
        )
        .brief(),
        oracle(
            Case::new("grid_sampler_2d", call("grid_sampler_2d"), images())
                .run(|t| t[0].grid_sampler_2d(&t[1], 1, 1, false)),
        )
        .brief(),
        oracle(
            Case::new("grid_sampler_3d", call("grid_sampler_3d"), volumes())
                .run(|t| t[0].grid_sampler_3d(&t[1], 1, 1, false)),
        )
        .brief(),
    ]
}
