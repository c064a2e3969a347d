//! Reading and writing where indices say, at sizes at which a device goes other ways than for small
//! tensors: sorted, in shared memory, run by run. Numbers are whole, so sums are exact in any
//! order.

use plimsoll_tensor::{
    BagMode, DType, Device, EmbeddingBagOptions, EmbeddingOptions, Reduce, Result, Tensor,
};

use super::{compare, values};

/// Whole numbers from -4 to 4 that look like no pattern.
fn whole(sizes: &[i64]) -> Result<Tensor> {
    let n: i64 = sizes.iter().product();
    let numbers: Vec<f32> = (0..n).map(|i| ((i * 7919 % 2003) % 9 - 4) as f32).collect();
    Tensor::from_slice(&numbers, sizes, Device::cpu())
}

/// Indices below `size`; with `hot`, all but a few the same.
fn indices(sizes: &[i64], size: i64, hot: bool) -> Result<Tensor> {
    let n: i64 = sizes.iter().product();
    let one = |i: i64| if hot && i % 17 != 0 { size / 2 } else { i * 104_729 % 10_007 % size };
    let numbers: Vec<i64> = (0..n).map(one).collect();
    Tensor::from_slice(&numbers, sizes, Device::cpu())
}

/// The size of the target, of the index, and the dimension.
const SCATTERS: [([i64; 2], [i64; 2], i64); 6] = [
    ([50, 300], [200, 300], 0),
    ([300, 50], [300, 200], 1),
    ([7, 5000], [7, 5000], 1),
    ([5000, 3], [6000, 2], 0),
    ([9000, 1], [20_000, 1], 0),
    ([40, 70], [10, 70], 0),
];

/// Every way to bring values together, over lines of every length.
pub fn scatters_agree_with_the_cpu(device: Device) -> Result<()> {
    for (target, sizes, dim) in SCATTERS {
        for hot in [false, true] {
            let index = indices(&sizes, target[dim as usize], hot)?;
            let what = format!("scatter {sizes:?} along {dim} into {target:?}, hot {hot}");
            for dtype in [DType::F32, DType::F64, DType::I64, DType::U8, DType::Bool] {
                let inputs = [whole(&target)?.to(dtype)?, index.clone(), whole(&sizes)?.to(dtype)?];
                compare(device, &what, &inputs, 0.0, |t| {
                    let (x, index, source) = (&t[0], &t[1], &t[2]);
                    let (wide, rows) = (x.t()?.contiguous()?.t()?, index.t()?.contiguous()?.t()?);
                    let in_place = x.clone_tensor()?;
                    in_place.scatter_add_(dim, index, source)?;
                    Ok(vec![
                        x.scatter_add(dim, index, source)?,
                        x.scatter(dim, index, source, None)?,
                        wide.scatter_add(dim, &rows, source)?,
                        x.scatter_reduce(dim, index, source, Reduce::Amax, true)?,
                        x.scatter_reduce(dim, index, source, Reduce::Amin, true)?,
                        in_place,
                    ])
                })?;
            }
            let signs = whole(&sizes)?.ge(0.0)?.to(DType::F32)?.mul(2.0)?.sub(1.0)?;
            compare(device, &what, &[whole(&target)?, index, signs], 0.0, |t| {
                Ok(vec![t[0].scatter_reduce(dim, &t[1], &t[2], Reduce::Prod, true)?])
            })?;
        }
    }
    Ok(())
}

/// Whole slices, and lists of index tensors.
pub fn slices_and_lists_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, width) in [(300, 200), (300, 4), (2000, 1), (90, 133)] {
        for hot in [false, true] {
            let list = indices(&[rows], 50, hot)?;
            let other = indices(&[rows], width, false)?;
            let x = whole(&[50, width])?;
            let (source, values) = (whole(&[rows, width])?, whole(&[rows])?);
            let inputs = [x, list, source, other, values];
            let what = format!("{rows} rows of {width}, hot {hot}");
            compare(device, &what, &inputs, 0.0, |t| {
                let (x, list, source) = (&t[0], &t[1], &t[2]);
                let both = [Some(list), Some(&t[3])];
                let turned = x.t()?.contiguous()?.t()?;
                let across = turned.t()?.index_add(1, list, &source.t()?, 1)?;
                let mask = x.gt(1.0)?;
                Ok(vec![
                    x.index_add(0, list, source, 1)?,
                    x.index_copy(0, list, source)?,
                    across,
                    x.index_select(0, list)?,
                    turned.index_select(0, list)?,
                    x.gather(0, &list.unsqueeze(1)?)?,
                    x.index(&[Some(list)])?,
                    x.index(&both)?,
                    x.index_put(&[Some(list)], source, true)?,
                    x.index_put(&[Some(list)], source, false)?,
                    turned.index_put(&both, &t[4], true)?,
                    x.index_put(&both, &t[4], false)?,
                    x.masked_select(&mask)?,
                    mask.nonzero()?,
                    source.nonzero()?,
                    x.masked_fill(&mask, 7)?,
                ])
            })?;
        }
    }
    Ok(())
}

/// Rows of tables and their gradients; twice, to the same bits.
pub fn embeddings_agree_with_the_cpu(device: Device) -> Result<()> {
    let modes = [BagMode::Sum, BagMode::Mean, BagMode::Max];
    // The last has runs of hundreds of equal indices.
    for (rows, width, count) in [(70, 96, 700), (900, 33, 300), (5, 200, 4000)] {
        let inputs = [whole(&[rows, width])?, indices(&[count], rows, count > rows)?];
        let what = format!("{count} of {rows} rows of {width}");
        // Shares of one row's gradient, hundreds of them, are no whole numbers: each sum rounds.
        compare(device, &what, &inputs, 5e-5, |t| {
            let mut results = Vec::new();
            for by_frequency in [false, true] {
                let table = t[0].detach().requires_grad_(true)?;
                let options =
                    EmbeddingOptions::new().padding_idx(3).scale_grad_by_freq(by_frequency);
                let taken = table.embedding_with(&t[1], options)?;
                taken.mul(&taken)?.sum()?.backward()?;
                results.extend([taken.detach(), table.grad().expect("a gradient")]);
            }
            let starts: Vec<i64> = (0..count).step_by(11).collect();
            let starts = Tensor::from_slice(&starts, &[starts.len() as i64], Device::cpu())?
                .to(t[0].device())?;
            for mode in modes {
                let table = t[0].detach().requires_grad_(true)?;
                let options = EmbeddingBagOptions::new().bag_mode(mode).padding_idx(3);
                let bags = table.embedding_bag_with(&t[1], &starts, options)?;
                bags.mul(2.0)?.sum()?.backward()?;
                results.extend([bags.detach(), table.grad().expect("a gradient")]);
            }
            Ok(results)
        })?;
    }
    let (x, index) = (values(60_000).to(device)?, indices(&[60_000], 7000, true)?.to(device)?);
    let sum = || Tensor::zeros(&[7000], (DType::F32, device))?.scatter_add(0, &index, &x);
    assert_eq!(sum()?.to_vec::<f32>()?, sum()?.to_vec::<f32>()?, "the same bits");
    Ok(())
}
