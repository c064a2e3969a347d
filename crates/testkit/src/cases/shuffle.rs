//! Elements of images moved between channels and space.

use super::Case;
use super::input::any;
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::pool;

pub(super) fn cases() -> Vec<Case> {
    let layouts = [Contiguous, Transposed, Stepped];
    vec![
        Case::new("pixel_shuffle", "torch.pixel_shuffle(a, 2)", [any(&[2, 8, 2, 3])])
            .run(|t| t[0].pixel_shuffle(2))
            .oracle(|x| pool::pixel_shuffle(&x[0], 2))
            .only(&layouts)
            .gradient(&[0]),
        Case::new("pixel_unshuffle", "torch.pixel_unshuffle(a, 2)", [any(&[2, 2, 4, 6])])
            .run(|t| t[0].pixel_unshuffle(2))
            .oracle(|x| pool::pixel_unshuffle(&x[0], 2))
            .only(&layouts)
            .gradient(&[0]),
        Case::new("channel_shuffle", "torch.channel_shuffle(a, 3)", [any(&[2, 6, 2, 3])])
            .run(|t| t[0].channel_shuffle(3))
            .oracle(|x| pool::channel_shuffle(&x[0], 3))
            .only(&layouts)
            .gradient(&[0]),
    ]
}
