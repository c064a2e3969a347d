//! Sequences of different lengths in one tensor: padded, or packed one step after another, as
//! PyTorch's `torch.nn.utils.rnn`. The layers that take packed ones: `recurrent/mod.rs`.

use plimsoll_tensor::{Device, Error, Result, Tensor, To};

use crate::Values;
use crate::call::at_caller;

/// Sequences one step after another: all first elements, then all second ones of the sequences that
/// have one, and so on. [`pack_padded_sequence`] and [`pack_sequence`] make them.
#[derive(Clone, Debug)]
pub struct PackedSequence {
    /// The elements of all steps.
    pub data: Tensor,
    /// How many sequences have each step; on the CPU.
    pub batch_sizes: Tensor,
    /// Where each sequence was before all were sorted by length.
    pub sorted_indices: Option<Tensor>,
    /// The order that undoes that.
    pub unsorted_indices: Option<Tensor>,
}

impl PackedSequence {
    /// How many sequences have each step, as numbers.
    pub fn counts(&self) -> Result<Vec<i64>> {
        self.batch_sizes.to_vec::<i64>()
    }

    /// Moves and converts the data; the orders go to the same device.
    #[track_caller]
    pub fn to(&self, target: impl Into<To>) -> Result<PackedSequence> {
        let _site = at_caller();
        let data = self.data.to(target)?;
        let moved = |order: &Option<Tensor>| {
            order.as_ref().map(|order| order.to(data.device())).transpose()
        };
        Ok(PackedSequence {
            sorted_indices: moved(&self.sorted_indices)?,
            unsorted_indices: moved(&self.unsorted_indices)?,
            batch_sizes: self.batch_sizes.clone(),
            data,
        })
    }

    /// The same sequences with other data.
    pub(crate) fn with_data(&self, data: Tensor) -> PackedSequence {
        PackedSequence { data, ..self.clone() }
    }
}

impl Values for PackedSequence {
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        see(&self.data);
    }

    fn replace_tensors(&mut self, with: &mut dyn Iterator<Item = Tensor>) {
        self.data.replace_tensors(with);
    }
}

plimsoll_tensor::options! {
    /// How [`pack_padded_sequence_with`] and [`pack_sequence_with`] read sequences.
    PackOptions {
        /// Whether the batch is the first dimension, and not the steps.
        batch_first: bool = false,
        /// Whether the longest must come first; else they are sorted.
        enforce_sorted: bool = true,
    }
}

/// Packs padded sequences [steps, batch, ..] of these lengths, the longest first.
///
/// ```
/// use plimsoll_nn::rnn::{pack_padded_sequence, pad_packed_sequence};
/// use plimsoll_tensor::{Device, Tensor};
/// let padded = Tensor::from_slice(&[1.0f32, 4.0, 2.0, 5.0, 3.0, 0.0], &[3, 2], Device::cpu())?;
/// let packed = pack_padded_sequence(&padded, &[3, 2])?;
/// assert_eq!(packed.data.to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0]);
/// assert_eq!(packed.counts()?, [2, 2, 1]);
/// let (again, lengths) = pad_packed_sequence(&packed)?;
/// assert_eq!((again.to_vec::<f32>()?, lengths), (padded.to_vec::<f32>()?, vec![3, 2]));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn pack_padded_sequence(input: &Tensor, lengths: &[i64]) -> Result<PackedSequence> {
    pack_padded_sequence_with(input, lengths, PackOptions::new())
}

/// [`pack_padded_sequence`] of [batch, steps, ..], or of sequences in any order.
#[track_caller]
pub fn pack_padded_sequence_with(
    input: &Tensor,
    lengths: &[i64],
    options: PackOptions,
) -> Result<PackedSequence> {
    let _site = at_caller();
    check_dims(input, lengths, options.batch_first)?;
    let (mut input, mut lengths) = (input.clone(), lengths.to_vec());
    let (mut sorted_indices, mut unsorted_indices) = (None, None);
    if !options.enforce_sorted {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        // Stable, so that equal lengths keep their order.
        order.sort_by_key(|&at| std::cmp::Reverse(lengths[at]));
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &at)| back[at] = place as i64);
        lengths = order.iter().map(|&at| lengths[at]).collect();
        let order: Vec<i64> = order.iter().map(|&at| at as i64).collect();
        let order = on(&order, input.device())?;
        input = input.index_select(if options.batch_first { 0 } else { 1 }, &order)?;
        (sorted_indices, unsorted_indices) = (Some(order), Some(on(&back, input.device())?));
    }
    let steps = if options.batch_first { input.transpose(0, 1)? } else { input };
    check_lengths(&lengths, steps.size(0)?)?;
    let (data, counts) = packed(&steps, &lengths)?;
    let batch_sizes = on(&counts, Device::cpu())?;
    Ok(PackedSequence { data, batch_sizes, sorted_indices, unsorted_indices })
}

fn on(numbers: &[i64], device: Device) -> Result<Tensor> {
    Tensor::from_slice(numbers, &[numbers.len() as i64], device)
}

/// The elements and how many sequences have each step. Steps that the same sequences have are
/// copied as one piece.
fn packed(steps: &Tensor, lengths: &[i64]) -> Result<(Tensor, Vec<i64>)> {
    let (mut pieces, mut counts, mut begin) = (Vec::new(), Vec::new(), 0);
    for (at, &end) in lengths.iter().enumerate().rev() {
        if end == begin {
            continue;
        }
        let (alive, length) = (at as i64 + 1, end - begin);
        let piece = steps.narrow(0, begin, length)?.narrow(1, 0, alive)?;
        let mut sizes = vec![length * alive];
        sizes.extend(steps.shape().iter().skip(2).map(|&size| size as i64));
        pieces.push(piece.reshape(&sizes)?);
        counts.extend(std::iter::repeat_n(alive, length as usize));
        begin = end;
    }
    let data = match pieces.as_slice() {
        [one] => one.clone(),
        many => Tensor::cat(&many.iter().collect::<Vec<_>>(), 0)?,
    };
    Ok((data, counts))
}

const PACK: &str = "pack_padded_sequence";

fn check_dims(input: &Tensor, lengths: &[i64], batch_first: bool) -> Result<()> {
    if input.rank() < 2 || input.numel() == 0 {
        let what = format!("Cannot pack a tensor of shape {:?}: it has no steps", input.shape());
        return Err(Error::shape(PACK, what));
    }
    let batch = input.size(if batch_first { 0 } else { 1 })?;
    if lengths.len() as i64 != batch {
        let what = format!(
            "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={batch})",
            lengths.len()
        );
        return Err(Error::shape(PACK, what));
    }
    Ok(())
}

fn check_lengths(lengths: &[i64], steps: i64) -> Result<()> {
    let wrong = |what: String| Err(Error::invalid_argument(what).in_operation(PACK));
    if let Some(length) = lengths.iter().find(|length| **length <= 0) {
        return wrong(format!(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is {length}"
        ));
    }
    if lengths.windows(2).any(|pair| pair[0] < pair[1]) {
        return wrong(format!(
            "`lengths` must be sorted in decreasing order when `enforce_sorted` is true, and are {lengths:?}; \
             pass `PackOptions::new().enforce_sorted(false)`"
        ));
    }
    if lengths.first().is_some_and(|longest| *longest > steps) {
        return wrong(format!("a length is {}, but the input has {steps} steps", lengths[0]));
    }
    Ok(())
}

plimsoll_tensor::options! {
    /// How [`pad_packed_sequence_with`] and [`pad_sequence_with`] pad.
    PadOptions {
        /// Whether the batch is the first dimension, and not the steps.
        batch_first: bool = false,
        /// What stands after the end of a sequence.
        padding_value: f64 = 0.0,
        /// As many steps as there are to be at least; else as many as the longest has. Of packed
        /// sequences alone.
        total_length: Option<i64> = None,
        /// Whether sequences are padded before their beginning. Of sequences that are not packed.
        pad_left: bool = false,
    }
}

/// Padded sequences [steps, batch, ..] and their lengths, in the order they had before packing.
#[track_caller]
pub fn pad_packed_sequence(sequence: &PackedSequence) -> Result<(Tensor, Vec<i64>)> {
    pad_packed_sequence_with(sequence, PadOptions::new())
}

/// [`pad_packed_sequence`] as [batch, steps, ..], with another value, or with more steps.
#[track_caller]
pub fn pad_packed_sequence_with(
    sequence: &PackedSequence,
    options: PadOptions,
) -> Result<(Tensor, Vec<i64>)> {
    let _site = at_caller();
    let (data, counts) = (&sequence.data, sequence.counts()?);
    let longest = counts.len() as i64;
    let total = options.total_length.unwrap_or(longest);
    if total < longest {
        let what = format!(
            "Expected total_length to be at least the length of the longest sequence in input, but got \
             total_length={total} and max sequence length being {longest}"
        );
        return Err(Error::invalid_argument(what).in_operation("pad_packed_sequence"));
    }
    let batch = counts.first().copied().unwrap_or(0);
    let rest: Vec<i64> = data.shape().iter().skip(1).map(|&size| size as i64).collect();
    let sizes = |steps: i64, count: i64| [&[steps, count][..], &rest].concat();
    let value = Tensor::full(&[1], options.padding_value, (data.dtype(), data.device()))?;
    let (mut pieces, mut at) = (Vec::new(), 0);
    for run in counts.chunk_by(|a, b| a == b) {
        let (steps, count) = (run.len() as i64, run[0]);
        let piece = data.narrow(0, at, steps * count)?.reshape(&sizes(steps, count))?;
        at += steps * count;
        pieces.push(if count == batch {
            piece
        } else {
            Tensor::cat(&[&piece, &value.expand(&sizes(steps, batch - count))?], 1)?
        });
    }
    if total > longest {
        pieces.push(value.expand(&sizes(total - longest, batch))?);
    }
    let mut padded = Tensor::cat(&pieces.iter().collect::<Vec<_>>(), 0)?;
    let mut lengths: Vec<i64> =
        (0..batch).map(|at| counts.iter().filter(|count| **count > at).count() as i64).collect();
    if options.batch_first {
        padded = padded.transpose(0, 1)?;
    }
    if let Some(back) = &sequence.unsorted_indices {
        padded = padded.index_select(if options.batch_first { 0 } else { 1 }, back)?;
        let sorted = lengths.clone();
        let places = back.to(Device::cpu())?.to_vec::<i64>()?;
        lengths = places.iter().map(|&place| sorted[place as usize]).collect();
    }
    Ok((padded, lengths))
}

/// Sequences [steps, ..] side by side as [steps, batch, ..], zeros after the shorter ones.
///
/// ```
/// use plimsoll_nn::rnn::pad_sequence;
/// use plimsoll_tensor::{DType, Tensor};
/// let (a, b) = (Tensor::ones(&[2], DType::F32)?, Tensor::ones(&[1], DType::F32)?);
/// assert_eq!(pad_sequence(&[&a, &b])?.to_vec::<f32>()?, [1.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn pad_sequence(sequences: &[&Tensor]) -> Result<Tensor> {
    pad_sequence_with(sequences, PadOptions::new())
}

/// [`pad_sequence`] as [batch, steps, ..], with another value, or before the sequences.
#[track_caller]
pub fn pad_sequence_with(sequences: &[&Tensor], options: PadOptions) -> Result<Tensor> {
    let _site = at_caller();
    let lengths = lengths_of("pad_sequence", sequences)?;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut padded = Vec::with_capacity(sequences.len());
    for (&sequence, length) in sequences.iter().zip(lengths) {
        if length == longest {
            padded.push(sequence.clone());
            continue;
        }
        let mut sizes: Vec<i64> = sequence.shape().iter().map(|&size| size as i64).collect();
        sizes[0] = longest - length;
        let value = (sequence.dtype(), sequence.device());
        let fill = Tensor::full(&[1], options.padding_value, value)?.expand(&sizes)?;
        let parts = if options.pad_left { [&fill, sequence] } else { [sequence, &fill] };
        padded.push(Tensor::cat(&parts, 0)?);
    }
    Tensor::stack(&padded.iter().collect::<Vec<_>>(), i64::from(!options.batch_first))
}

fn lengths_of(operation: &'static str, sequences: &[&Tensor]) -> Result<Vec<i64>> {
    if sequences.is_empty() {
        let what = "received an empty list of sequences";
        return Err(Error::invalid_argument(what).in_operation(operation));
    }
    sequences.iter().map(|sequence| sequence.size(0)).collect()
}

/// Padded sequences [steps, batch, ..] without what pads them.
#[track_caller]
pub fn unpad_sequence(padded: &Tensor, lengths: &[i64]) -> Result<Vec<Tensor>> {
    let _site = at_caller();
    let cut = |(at, length): (usize, &i64)| padded.select(1, at as i64)?.narrow(0, 0, *length);
    lengths.iter().enumerate().map(cut).collect()
}

/// Packs sequences [steps, ..], the longest first.
#[track_caller]
pub fn pack_sequence(sequences: &[&Tensor]) -> Result<PackedSequence> {
    pack_sequence_with(sequences, PackOptions::new())
}

/// [`pack_sequence`] of sequences in any order.
#[track_caller]
pub fn pack_sequence_with(sequences: &[&Tensor], options: PackOptions) -> Result<PackedSequence> {
    let _site = at_caller();
    let lengths = lengths_of("pack_sequence", sequences)?;
    pack_padded_sequence_with(&pad_sequence(sequences)?, &lengths, options.batch_first(false))
}

/// The sequences that were packed.
#[track_caller]
pub fn unpack_sequence(sequence: &PackedSequence) -> Result<Vec<Tensor>> {
    let _site = at_caller();
    let (padded, lengths) = pad_packed_sequence(sequence)?;
    unpad_sequence(&padded, &lengths)
}
