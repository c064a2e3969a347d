//! Results written where a target lies, and operands that lie anywhere: strides, odd starts, steps
//! in both dimensions, batches that do not follow each other evenly.

use plimsoll_tensor::{DType, Device, LayerNormOptions, ReduceOptions, Result, Tensor};

use super::{compare, values};

/// `matmul` into a part of a larger tensor, whose rest stays as it was.
pub fn products_are_written_where_the_target_lies(device: Device) -> Result<()> {
    let (a, b) = (values(6 * 10).view(&[6, 10])?, values(10 * 4).view(&[10, 4])?);
    let (vector, batch) = (values(10), values(3 * 6 * 10).view(&[3, 6, 10])?);
    let inputs = [a, b, vector, batch];
    compare(device, "matmul out=", &inputs, 1e-4, |t| {
        let filled = |sizes: &[i64]| Tensor::full(sizes, 7, (DType::F32, t[0].device()));
        // Columns of a wider tensor, columns apart, rows apart, transposed, and a single column.
        let (wide, apart) = (filled(&[6, 9])?, filled(&[6, 8])?);
        t[0].matmul_out(&t[1], &wide.narrow(1, 3, 4)?)?;
        t[0].matmul_out(&t[1], &apart.slice(1, 0, 8, 2)?)?;
        let (rows, turned) = (filled(&[12, 4])?, filled(&[4, 6])?);
        t[0].matmul_out(&t[1], &rows.slice(0, 0, 12, 2)?)?;
        t[0].matmul_out(&t[1], &turned.t()?)?;
        let column = filled(&[6, 3])?;
        t[0].matmul_out(&t[2], &column.select(1, 1)?)?;
        let (batches, inner) = (filled(&[3, 6, 5])?, filled(&[6, 3, 4])?);
        t[3].matmul_out(&t[1], &batches.narrow(2, 1, 4)?)?;
        t[3].matmul_out(&t[1], &inner.transpose(0, 1)?)?;
        Ok(vec![wide, apart, rows, turned, column, batches, inner])
    })
}

/// `sum` and its relatives into a part of a larger tensor, short and long.
pub fn reductions_are_written_where_the_target_lies(device: Device) -> Result<()> {
    let x = values(4 * 5 * 6).view(&[4, 5, 6])?;
    let long = values(3 * 200_000).view(&[3, 200_000])?;
    compare(device, "reductions out=", &[x, long], 1e-3, |t| {
        let filled = |sizes: &[i64]| Tensor::full(sizes, 7, (DType::F32, t[0].device()));
        let (column, turned) = (filled(&[4, 6, 2])?, filled(&[6, 4])?);
        t[0].sum_with_out([1], &column.select(2, 1)?)?;
        t[0].mean_with_out([1], &turned.t()?)?;
        let (kept, one) = (filled(&[4, 3, 6])?, filled(&[5])?);
        t[0].amax_with_out(ReduceOptions::from(&[1]).keepdim(true), &kept.narrow(1, 1, 1)?)?;
        t[0].sum_with_out([0, 1, 2], &one.select(0, 3)?)?;
        // Long enough that several blocks fold one result.
        let apart = filled(&[6])?;
        t[1].sum_with_out([1], &apart.slice(0, 0, 6, 2)?)?;
        Ok(vec![column, turned, kept, one, apart])
    })
}

/// Products of operands that start at odd elements, step in both dimensions, are expanded, or form
/// batches that do not lie evenly; in every dtype.
pub fn products_take_operands_from_any_element(device: Device) -> Result<()> {
    let x = values(40_000);
    let half = (DType::BF16, 3e-2);
    for (dtype, tolerance) in [half, (DType::F16, 5e-3), (DType::F32, 1e-4), (DType::F64, 1e-9)] {
        let inputs = [x.to(dtype)?];
        compare(device, "matmul anywhere", &inputs, tolerance, |t| {
            let part = |start: i64, sizes: &[i64]| {
                let count = sizes.iter().product();
                t[0].narrow(0, start, count)?.view(sizes)
            };
            let mut results = Vec::new();
            for start in [1, 3, 8] {
                let (a, b) = (part(start, &[16, 32])?, part(start + 700, &[32, 24])?);
                results.push(a.matmul(&b)?);
                results.push(a.matmul(&part(0, &[24, 32])?.t()?)?);
                results
                    .push(part(5, &[16, 33])?.narrow(1, start, 24)?.matmul(&part(2, &[24, 7])?)?);
            }
            let stepped = part(0, &[32, 64])?.slice(0, 0, 32, 2)?.slice(1, 0, 64, 2)?;
            results.push(stepped.matmul(&part(9, &[32, 24])?)?);
            results.push(part(9, &[24, 16])?.matmul(&stepped)?);
            let row = part(3, &[1, 32])?.expand(&[16, 32])?;
            results.push(row.matmul(&part(1, &[32, 8])?)?);
            // Batches exchanged, broadcast on one side, and broadcast on both.
            let batches = part(0, &[3, 2, 4, 5])?;
            results.push(batches.transpose(0, 1)?.matmul(&part(0, &[2, 3, 5, 6])?)?);
            results.push(part(1, &[3, 1, 4, 5])?.matmul(&part(0, &[2, 5, 6])?)?);
            results.push(part(1, &[3, 1, 4, 5])?.matmul(&part(0, &[1, 2, 5, 6])?)?);
            let (left, right) = (part(1, &[5])?, part(7, &[4, 5, 6])?);
            results.push(left.matmul(&right)?);
            results.push(batches.matmul(&part(30, &[10])?.slice(0, 0, 10, 2)?)?);
            results.push(left.matmul(&part(11, &[5])?)?);
            Ok(results)
        })?;
    }
    Ok(())
}

/// The gradient of a sum is one number with strides of 0, which `layer_norm` must take.
pub fn gradients_of_sums_go_through_layer_norm(device: Device) -> Result<()> {
    let (x, scale) = (values(12 * 40).view(&[12, 40])?, values(40).add(2.0)?);
    compare(device, "layer_norm().sum().backward()", &[x, scale], 1e-3, |t| {
        let leaf = |tensor: &Tensor| tensor.clone_tensor()?.requires_grad_(true);
        let (x, w, c) = (leaf(&t[0])?, leaf(&t[1])?, leaf(&t[1])?);
        x.layer_norm_with(&[40], LayerNormOptions::new().weight(&w).bias(&c))?.sum()?.backward()?;
        let turned = leaf(&t[0].view(&[40, 12])?)?;
        let every_second = leaf(&t[1].narrow(0, 0, 24)?)?;
        let weight = every_second.slice(0, 0, 24, 2)?;
        let normed = turned
            .narrow(0, 0, 12)?
            .t()?
            .layer_norm_with(&[12], LayerNormOptions::new().weight(&weight))?;
        normed.mul(&normed)?.sum()?.backward()?;
        // Without rows the parameters' gradients are zeros.
        let (none, unused) = (leaf(&t[0].narrow(0, 0, 0)?)?, leaf(&t[1])?);
        none.layer_norm_with(&[40], LayerNormOptions::new().weight(&unused))?.sum()?.backward()?;
        let leaves = [x, w, c, turned, every_second, unused];
        Ok(leaves.iter().map(|leaf| leaf.grad().expect("a gradient")).collect())
    })
}
