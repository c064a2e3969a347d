//! Resampling of spatial dimensions.

use plimsoll_core::DType;
use plimsoll_tensor::{InterpolateMode as Mode, InterpolateOptions};

use super::input::any;
use super::{Case, FLOATS};
use crate::oracle::interpolate::interpolate;

pub(super) fn cases() -> Vec<Case> {
    let row = |shape: &[usize], sizes: &'static [usize], mode: Mode, word: &str, align: bool| {
        let wanted: Vec<i64> = sizes.iter().map(|&size| size as i64).collect();
        let corners = if align { ", align_corners=True" } else { "" };
        Case::new(
            "interpolate",
            format!("torch.nn.functional.interpolate(a, {sizes:?}, mode='{word}'{corners})"),
            [any(shape)],
        )
        .run(move |t| {
            let options = InterpolateOptions::new().interpolate_mode(mode).align_corners(align);
            t[0].interpolate_with(&wanted, options)
        })
        .oracle(move |x| interpolate(&x[0], sizes, mode, align))
        .dtypes(&FLOATS)
        .taking_only_these()
        .tolerance(32.0, 8.0)
        .gradient(&[0])
    };
    let bytes = [DType::U8, DType::F16, DType::BF16, DType::F32, DType::F64];
    vec![
        row(&[2, 3, 4], &[7], Mode::Nearest, "nearest", false).dtypes(&bytes),
        row(&[2, 2, 4, 3], &[3, 5], Mode::Nearest, "nearest", false).brief(),
        row(&[1, 2, 2, 4, 3], &[3, 3, 5], Mode::NearestExact, "nearest-exact", false).brief(),
        row(&[2, 3, 4], &[7], Mode::Linear, "linear", false),
        row(&[2, 3, 4], &[2], Mode::Linear, "linear", true).brief(),
        row(&[2, 2, 4, 3], &[3, 5], Mode::Linear, "bilinear", false).brief(),
        row(&[2, 2, 4, 3], &[7, 1], Mode::Linear, "bilinear", true).brief(),
        row(&[1, 2, 2, 4, 3], &[3, 3, 5], Mode::Linear, "trilinear", false).brief(),
        row(&[2, 2, 4, 3], &[3, 5], Mode::Cubic, "bicubic", false).brief(),
        row(&[2, 2, 4, 3], &[7, 5], Mode::Cubic, "bicubic", true).brief(),
        row(&[2, 2, 5, 3], &[2, 2], Mode::Area, "area", false).brief(),
        // PyTorch pools a signal as an image, and keeps that order.
        row(&[2, 3, 4], &[6], Mode::Area, "area", false).brief().row_major(),
    ]
}
