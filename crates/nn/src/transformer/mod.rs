//! Transformers: an encoder and a decoder together. Each has its file; `layer` is what their layers
//! share.

mod decoder;
mod encoder;
mod layer;

use plimsoll_tensor::{Result, Tensor};

use crate::call::at_caller;
use crate::{Forward, Hooks, Module, init};
pub use decoder::{TransformerDecoder, TransformerDecoderLayer};
pub use encoder::{TransformerEncoder, TransformerEncoderLayer};
pub use layer::{TransformerActivation, TransformerLayerOptions};

/// An encoder and a decoder that looks at its results.
#[derive(Debug, Module)]
#[module(builtin)]
pub struct Transformer {
    /// The encoder.
    pub encoder: TransformerEncoder,
    /// The decoder.
    pub decoder: TransformerDecoder,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Transformer {
    /// As many layers as asked for on each side, with norms at both ends.
    #[track_caller]
    pub fn new(
        [d_model, nhead]: [i64; 2],
        [encoder_layers, decoder_layers]: [usize; 2],
        options: TransformerLayerOptions,
    ) -> Result<Transformer> {
        let _site = at_caller();
        let encoder = (0..encoder_layers)
            .map(|_| TransformerEncoderLayer::with(d_model, nhead, options.clone()))
            .collect::<Result<_>>()?;
        let decoder = (0..decoder_layers)
            .map(|_| TransformerDecoderLayer::with(d_model, nhead, options.clone()))
            .collect::<Result<_>>()?;
        let transformer = Transformer {
            encoder: TransformerEncoder::new(encoder, Some(options.norm(d_model)?)),
            decoder: TransformerDecoder::new(decoder, Some(options.norm(d_model)?)),
            hooks: Hooks::default(),
        };
        for parameter in transformer.parameters() {
            if parameter.tensor().rank() > 1 {
                init::xavier_uniform_(&parameter.tensor(), 1.0)?;
            }
        }
        Ok(transformer)
    }
}

/// A source and a target sequence.
impl Forward<(&Tensor, &Tensor)> for Transformer {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (source, target): (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        self.decoder.call((target, &self.encoder.call(source)?))
    }
}
