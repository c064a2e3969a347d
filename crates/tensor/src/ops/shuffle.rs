//! Elements of images moved between channels and space: compositions of views and one copy. The
//! methods are in `api/shuffle.rs`.

use crate::operation::{OnCuda, OpInfo};

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "shuffle",
        signatures,
        differentiable: true,
        cuda: OnCuda::Composed,
        ..OpInfo::BARE
    }
}

static PIXEL_SHUFFLE: OpInfo =
    info("pixel_shuffle", &["pixel_shuffle(Tensor input, int upscale_factor) -> Tensor"]);
static PIXEL_UNSHUFFLE: OpInfo =
    info("pixel_unshuffle", &["pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor"]);
static CHANNEL_SHUFFLE: OpInfo =
    info("channel_shuffle", &["channel_shuffle(Tensor input, int groups) -> Tensor"]);

pub(crate) static OPS: &[&OpInfo] = &[&PIXEL_SHUFFLE, &PIXEL_UNSHUFFLE, &CHANNEL_SHUFFLE];
