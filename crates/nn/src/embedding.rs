//! Tables of vectors, looked up by index.

use plimsoll_tensor::{
    BagMode, EmbeddingBagOptions as BagArguments, EmbeddingOptions as TableArguments, Error,
    NoGrad, Parameter, Result, Tensor,
};

use crate::call::at_caller;
use crate::options::{layer_options, number, parameter, truth};
use crate::{Forward, Hooks, Module, init};

layer_options! {
    /// How [`Embedding::with`] is made.
    EmbeddingOptions {
        /// The row that is not trained, and zero at first; a negative one counts from the end.
        padding_idx: Option<i64> = None,
        /// The largest length that a row may have: longer ones are cut when they are looked up.
        max_norm: Option<f64> = None,
        /// The power of the norm that `max_norm` bounds.
        norm_type: f64 = 2.0,
        /// Whether gradients are divided by how often a row was looked up.
        scale_grad_by_freq: bool = false,
    }
}

/// The row that is not trained, counted from the first.
fn row(layer: &str, padding_idx: Option<i64>, rows: i64) -> Result<Option<i64>> {
    let Some(row) = padding_idx else { return Ok(None) };
    if !(-rows..rows).contains(&row) {
        let what = format!("Padding_idx must be within num_embeddings: {row} is not within {rows}");
        return Err(Error::invalid_argument(what).in_operation(layer));
    }
    Ok(Some(if row < 0 { row + rows } else { row }))
}

/// Normal numbers, and zeros in the row that is not trained.
fn first_values(weight: &Parameter, padding_idx: Option<i64>) -> Result<()> {
    init::normal_(&weight.tensor(), 0.0, 1.0)?;
    let Some(row) = padding_idx else { return Ok(()) };
    let _plain = NoGrad::enter();
    weight.tensor().select(0, row)?.fill_(0.0).map(drop)
}

/// Cuts the rows that are looked up to a length.
fn cut_rows(weight: &Tensor, indices: &Tensor, max_norm: Option<f64>, p: f64) -> Result<()> {
    let Some(max_norm) = max_norm.filter(|_| indices.numel() > 0) else { return Ok(()) };
    let _plain = NoGrad::enter();
    let rows = indices.reshape(&[-1])?;
    let used = weight.index_select(0, &rows)?;
    weight.index_copy_(0, &rows, &used.renorm(p, 0, max_norm)?).map(drop)
}

/// A row of a trained table for each index.
///
/// ```
/// use plimsoll_nn::{Embedding, Forward};
/// use plimsoll_tensor::{Device, Tensor};
/// let table = Embedding::new(10, 3)?;
/// let indices = Tensor::from_slice(&[1i64, 4, 1], &[3], Device::cpu())?;
/// assert_eq!(table.call(&indices)?.shape(), [3, 3]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = Embedding::describe)]
pub struct Embedding {
    /// Of shape [num_embeddings, embedding_dim].
    pub weight: Parameter,
    /// How many rows.
    pub num_embeddings: i64,
    /// Elements of a row.
    pub embedding_dim: i64,
    #[module(skip)]
    options: EmbeddingOptions,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Embedding {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(num_embeddings: i64, embedding_dim: i64) -> Result<Embedding> {
        Embedding::with(num_embeddings, embedding_dim, EmbeddingOptions::new())
    }

    /// With a row that is not trained, or bounded rows.
    #[track_caller]
    pub fn with(
        num_embeddings: i64,
        embedding_dim: i64,
        mut options: EmbeddingOptions,
    ) -> Result<Embedding> {
        let _site = at_caller();
        options.padding_idx = row("Embedding", options.padding_idx, num_embeddings)?;
        let weight = parameter(&[num_embeddings, embedding_dim], options.made())?;
        first_values(&weight, options.padding_idx)?;
        let hooks = Hooks::default();
        Ok(Embedding { weight, num_embeddings, embedding_dim, options, hooks })
    }

    fn describe(&self) -> String {
        let mut text = format!("{}, {}", self.num_embeddings, self.embedding_dim);
        if let Some(row) = self.options.padding_idx {
            text += &format!(", padding_idx={row}");
        }
        tell_norm(&mut text, self.options.max_norm, self.options.norm_type);
        if self.options.scale_grad_by_freq {
            text += ", scale_grad_by_freq=True";
        }
        text
    }
}

fn tell_norm(text: &mut String, max_norm: Option<f64>, norm_type: f64) {
    if let Some(max_norm) = max_norm {
        *text += &format!(", max_norm={}", number(max_norm));
    }
    if norm_type != 2.0 {
        *text += &format!(", norm_type={}", number(norm_type));
    }
}

impl Forward<&Tensor> for Embedding {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, indices: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        let EmbeddingOptions { padding_idx, max_norm, norm_type, scale_grad_by_freq, .. } =
            self.options;
        let weight = self.weight.tensor();
        cut_rows(&weight, indices, max_norm, norm_type)?;
        let arguments = TableArguments { padding_idx, scale_grad_by_freq };
        weight.embedding_with(indices, arguments)
    }
}

layer_options! {
    /// How [`EmbeddingBag::with`] is made.
    EmbeddingBagOptions {
        /// The largest length that a row may have: longer ones are cut when they are looked up.
        max_norm: Option<f64> = None,
        /// The power of the norm that `max_norm` bounds.
        norm_type: f64 = 2.0,
        /// Whether gradients are divided by how often a row was looked up.
        scale_grad_by_freq: bool = false,
        /// What becomes of a bag's rows.
        mode: BagMode = BagMode::Mean,
        /// Whether the last offset is where the last bag ends.
        include_last_offset: bool = false,
        /// The row that counts for nothing; a negative one counts from the end.
        padding_idx: Option<i64> = None,
    }
}

/// The sum, mean or maximum of the rows of a trained table, for each bag of indices: the rows of a
/// matrix, or a vector that is cut at offsets.
///
/// ```
/// use plimsoll_nn::{EmbeddingBag, Forward};
/// use plimsoll_tensor::{Device, Tensor};
/// let table = EmbeddingBag::new(10, 3)?;
/// let bags = Tensor::from_slice(&[1i64, 4, 1, 2], &[2, 2], Device::cpu())?;
/// assert_eq!(table.call(&bags)?.shape(), [2, 3]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = EmbeddingBag::describe)]
pub struct EmbeddingBag {
    /// Of shape [num_embeddings, embedding_dim].
    pub weight: Parameter,
    /// How many rows.
    pub num_embeddings: i64,
    /// Elements of a row.
    pub embedding_dim: i64,
    #[module(skip)]
    options: EmbeddingBagOptions,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl EmbeddingBag {
    /// PyTorch's defaults: means.
    #[track_caller]
    pub fn new(num_embeddings: i64, embedding_dim: i64) -> Result<EmbeddingBag> {
        EmbeddingBag::with(num_embeddings, embedding_dim, EmbeddingBagOptions::new())
    }

    /// Sums or maxima, or with a row that counts for nothing.
    #[track_caller]
    pub fn with(
        num_embeddings: i64,
        embedding_dim: i64,
        mut options: EmbeddingBagOptions,
    ) -> Result<EmbeddingBag> {
        let _site = at_caller();
        options.padding_idx = row("EmbeddingBag", options.padding_idx, num_embeddings)?;
        let weight = parameter(&[num_embeddings, embedding_dim], options.made())?;
        first_values(&weight, options.padding_idx)?;
        let hooks = Hooks::default();
        Ok(EmbeddingBag { weight, num_embeddings, embedding_dim, options, hooks })
    }

    fn describe(&self) -> String {
        let mut text = format!("{}, {}", self.num_embeddings, self.embedding_dim);
        tell_norm(&mut text, self.options.max_norm, self.options.norm_type);
        if self.options.scale_grad_by_freq {
            text += &format!(", scale_grad_by_freq={}", truth(true));
        }
        text += match self.options.mode {
            BagMode::Sum => ", mode='sum'",
            BagMode::Mean => ", mode='mean'",
            BagMode::Max => ", mode='max'",
        };
        if let Some(row) = self.options.padding_idx {
            text += &format!(", padding_idx={row}");
        }
        text
    }

    fn bags(&self, indices: &Tensor, offsets: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
        let options = &self.options;
        let weight = self.weight.tensor();
        cut_rows(&weight, indices, options.max_norm, options.norm_type)?;
        let arguments = BagArguments {
            bag_mode: options.mode,
            scale_grad_by_freq: options.scale_grad_by_freq,
            per_sample_weights: weights,
            include_last_offset: options.include_last_offset,
            padding_idx: options.padding_idx,
        };
        weight.embedding_bag_with(indices, offsets, arguments)
    }
}

impl Forward<&Tensor> for EmbeddingBag {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, indices: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        let [rows, columns] = *indices.shape() else {
            let what = format!(
                "indices without offsets are a matrix of bags, and have the shape {:?}; give offsets too",
                indices.shape()
            );
            return Err(Error::shape("EmbeddingBag", what));
        };
        let mut rows = rows as i64;
        let width = columns as i64;
        rows += i64::from(self.options.include_last_offset);
        let offsets =
            Tensor::arange(0, rows, 1, (indices.dtype(), indices.device()))?.mul(width)?;
        self.bags(&indices.reshape(&[-1])?, &offsets, None)
    }
}

impl Forward<(&Tensor, &Tensor)> for EmbeddingBag {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (indices, offsets): (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        self.bags(indices, offsets, None)
    }
}

/// Indices, offsets, and a factor for each index; of sums alone.
impl Forward<(&Tensor, &Tensor, &Tensor)> for EmbeddingBag {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (indices, offsets, weights): (&Tensor, &Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        self.bags(indices, offsets, Some(weights))
    }
}
