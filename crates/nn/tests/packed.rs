//! Sequences of different lengths: packed and padded again, and what is refused. What layers make
//! of them beside PyTorch's: `golden_layers/computed.rs`.

use plimsoll_nn::rnn::{
    PackOptions, PadOptions, pack_padded_sequence, pack_padded_sequence_with, pack_sequence,
    pack_sequence_with, pad_packed_sequence, pad_packed_sequence_with, pad_sequence_with,
    unpack_sequence,
};
use plimsoll_nn::{Forward, GRU, LSTM, RNN, RecurrentOptions};
use plimsoll_tensor::{DType, Device, Result, Tensor};

fn sequence(first: f32, length: i64) -> Result<Tensor> {
    Tensor::arange(0, length, 1, DType::F32)?.add(first)
}

#[test]
fn what_is_packed_comes_back() -> Result<()> {
    // As PyTorch's `pack_sequence([a, b, c], enforce_sorted=False)` of these.
    let all = [sequence(10.0, 2)?, sequence(20.0, 4)?, sequence(30.0, 2)?];
    let given: Vec<&Tensor> = all.iter().collect();
    let packed = pack_sequence_with(&given, PackOptions::new().enforce_sorted(false))?;
    assert_eq!(packed.data.to_vec::<f32>()?, [20.0, 10.0, 30.0, 21.0, 11.0, 31.0, 22.0, 23.0]);
    assert_eq!(packed.counts()?, [3, 3, 1, 1]);
    assert_eq!(packed.sorted_indices.as_ref().unwrap().to_vec::<i64>()?, [1, 0, 2]);
    assert_eq!(packed.unsorted_indices.as_ref().unwrap().to_vec::<i64>()?, [1, 0, 2]);
    for (found, expected) in unpack_sequence(&packed)?.iter().zip(&all) {
        assert_eq!(found.to_vec::<f32>()?, expected.to_vec::<f32>()?);
    }
    let options = PadOptions::new().batch_first(true).padding_value(-1.0).total_length(5);
    let (padded, lengths) = pad_packed_sequence_with(&packed, options)?;
    assert_eq!(lengths, [2, 4, 2]);
    assert_eq!(padded.shape(), [3, 5]);
    assert_eq!(
        padded.to_vec::<f32>()?,
        [10.0, 11.0, -1.0, -1.0, -1.0, 20.0, 21.0, 22.0, 23.0, -1.0, 30.0, 31.0, -1.0, -1.0, -1.0]
    );
    let left = pad_sequence_with(&given, PadOptions::new().batch_first(true).pad_left(true))?;
    assert_eq!(left.select(0, 0)?.to_vec::<f32>()?, [0.0, 0.0, 10.0, 11.0]);
    let moved = packed.to(DType::F64)?;
    assert_eq!((moved.data.dtype(), moved.counts()?), (DType::F64, packed.counts()?));
    Ok(())
}

/// One at a time gives what all packed together give.
#[test]
fn packed_sequences_are_each_as_if_alone() -> Result<()> {
    let lengths = [2, 5, 3];
    let options = || RecurrentOptions::new().bidirectional(true).num_layers(2).dtype(DType::F64);
    let layer = LSTM::with(3, 4, options())?;
    let small = LSTM::with(3, 4, options().proj_size(2))?;
    let gated = GRU::with(3, 4, options())?;
    let x = Tensor::randn(&[5, 3, 3], DType::F64)?;
    let packed = pack_padded_sequence_with(&x, &lengths, PackOptions::new().enforce_sorted(false))?;
    for lstm in [&layer, &small] {
        let (all, (hidden, cell)) = lstm.call(&packed)?;
        let (padded, _) = pad_packed_sequence(&all)?;
        for (at, &length) in lengths.iter().enumerate() {
            let one = x.select(1, at as i64)?.narrow(0, 0, length)?;
            let (own, (last, last_cell)) = lstm.call(&one)?;
            let found = padded.select(1, at as i64)?;
            assert!(found.narrow(0, 0, length)?.allclose(&own)?);
            assert!(hidden.select(1, at as i64)?.allclose(&last)?);
            assert!(cell.select(1, at as i64)?.allclose(&last_cell)?);
            assert_eq!(found.narrow(0, length, 5 - length)?.ne(0.0)?.sum()?.item::<i64>()?, 0);
        }
    }
    let states = Tensor::randn(&[4, 3, 4], DType::F64)?;
    let (_, last) = gated.call((&packed, &states))?;
    let one = x.select(1, 2)?.narrow(0, 0, 3)?;
    let (_, alone) = gated.call((&one, &states.select(1, 2)?))?;
    assert!(last.select(1, 2)?.allclose(&alone)?);
    Ok(())
}

#[test]
fn lengths_that_do_not_fit_are_refused() -> Result<()> {
    let x = Tensor::ones(&[3, 2, 1], DType::F32)?;
    for (lengths, words) in [
        (&[3][..], "equal to batch_size, but got 1 (batch_size=2)"),
        (&[3, 0], "greater than 0"),
        (&[2, 3], "sorted in decreasing order"),
        (&[4, 3], "a length is 4, but the input has 3 steps"),
    ] {
        let error = pack_padded_sequence(&x, lengths).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(pack_sequence(&[]).is_err());
    let packed = pack_padded_sequence(&x, &[3, 2])?;
    let short = PadOptions::new().total_length(2);
    let error = pad_packed_sequence_with(&packed, short).unwrap_err().to_string();
    assert!(error.contains("total_length=2 and max sequence length being 3"), "{error}");

    let size = |size| RecurrentOptions::new().proj_size(size);
    for (error, words) in [
        (LSTM::with(3, 4, size(4)).unwrap_err(), "smaller than hidden_size"),
        (LSTM::with(3, 4, size(-1)).unwrap_err(), "positive integer or zero"),
        (GRU::with(3, 4, size(2)).unwrap_err(), "only supported for LSTM"),
        (RNN::with(3, 4, size(2)).unwrap_err(), "only supported for LSTM"),
    ] {
        assert!(error.is_invalid_argument() && error.to_string().contains(words), "{error}");
    }
    assert_eq!(packed.data.device(), Device::cpu());
    Ok(())
}
