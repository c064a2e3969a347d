//! Sorts of lines too long for a block's shared memory: stable, in every dtype's width, with keys
//! that differ in some of their digits, in all and in none.

use plimsoll_core::{DType, Device, Result};
use plimsoll_tensor::{SortOptions, Tensor};

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

/// Values and the places that they came from, along the last dimension, both ways; and what is
/// distinct.
pub fn long_sorts_agree_with_the_cpu(device: Device) -> Result<()> {
    // One tile, a tile and a bit, several parts; one row and more.
    for (rows, len) in [(1, 2049), (3, 4100), (2, 70_001), (1, 3_000_000)] {
        for (name, x) in lines(rows, len)? {
            let there = x.to(device)?;
            for descending in [false, true] {
                let options = SortOptions::new().dim(-1).stable(true).descending(descending);
                let (values, places) = x.sort_with(options.clone())?;
                let (found, found_places) = there.sort_with(options)?;
                let same = values.equal(&found.to(Device::cpu())?)?
                    && places.equal(&found_places.to(Device::cpu())?)?;
                assert!(same, "{rows} x {len}, {name}, descending {descending}, on {device}");
            }
            let distinct = x.unique()?.equal(&there.unique()?.to(Device::cpu())?)?;
            assert!(distinct, "distinct of {rows} x {len}, {name}, on {device}");
        }
    }
    Ok(())
}
