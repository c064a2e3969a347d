//! Sorts of lines too long for a block's shared memory: stable, in every dtype's width, with keys
//! that differ in some of their digits, in all and in none.

use plimsoll_core::{DType, Device, Result};
use plimsoll_tensor::{SortOptions, Tensor, UniqueOptions};

/// Numbers from 0 on in no order, as int64.
fn shuffled(count: i64) -> Result<Tensor> {
    Tensor::arange(0, count, 1, DType::I64)?.mul(7919)?.remainder(count)
}

/// Lines of `rows` x `len`, by name.
fn lines(rows: i64, len: i64) -> Result<Vec<(&'static str, Tensor)>> {
    let all = shuffled(rows * len)?.view(&[rows, len])?;
    let mixed = all.sub(rows * len / 2)?;
    Ok(vec![
        ("few distinct", all.remainder(5)?),
        ("one digit in the middle", all.remainder(3)?.mul(1 << 20)?),
        ("two digits apart", all.remainder(3)?.mul(1_i64 << 40)?.add(&all.remainder(7)?)?),
        ("all equal", all.mul(0)?.add(3)?),
        ("of both signs", mixed.clone()),
        ("large", mixed.mul(1_i64 << 44)?),
        ("int32", mixed.to(DType::I32)?),
        ("float32", mixed.to(DType::F32)?.div(3.0)?),
        ("float64", mixed.to(DType::F64)?.div(3.0)?),
        ("int16", mixed.remainder(30_000)?.to(DType::I16)?),
        ("transposed", mixed.t()?.contiguous()?.t()?),
    ])
}

/// One tile and a bit, several tiles; one row and more.
const SOME_TILES: [(i64, i64); 2] = [(1, 2049), (3, 4100)];

/// Sorts of lines that take several tiles and parts.
pub fn long_sorts_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, len) in SOME_TILES.into_iter().chain([(2, 70_001), (1, 3_000_000)]) {
        agrees(rows, len, device)?;
    }
    Ok(())
}

/// The shortest of these, for tools that watch every access.
pub fn sorts_of_some_tiles_agree_with_the_cpu(device: Device) -> Result<()> {
    SOME_TILES.into_iter().try_for_each(|(rows, len)| agrees(rows, len, device))
}

/// Values and the places that they came from, along the last dimension, both ways; and what is
/// distinct, with and without where each element went.
fn agrees(rows: i64, len: i64, device: Device) -> Result<()> {
    let there_too = |here: &Tensor, there: &Tensor| here.equal(&there.to(Device::cpu())?);
    for (name, x) in lines(rows, len)? {
        let there = x.to(device)?;
        for descending in [false, true] {
            let options = SortOptions::new().dim(-1).stable(true).descending(descending);
            let (values, places) = x.sort_with(options.clone())?;
            let (found, found_places) = there.sort_with(options)?;
            let same = there_too(&values, &found)? && there_too(&places, &found_places)?;
            assert!(same, "{rows} x {len}, {name}, descending {descending}, on {device}");
        }
        assert!(
            there_too(&x.unique()?, &there.unique()?)?,
            "distinct of {rows} x {len}, {name}, on {device}"
        );
        let options = UniqueOptions::new().return_inverse(true);
        let [all, all_there] = [x.unique_with(options.clone())?, there.unique_with(options)?];
        for (here, there) in all.iter().zip(&all_there) {
            assert!(there_too(here, there)?, "inverse of {rows} x {len}, {name}, on {device}");
        }
    }
    Ok(())
}
