//! Factorizations of matrices large enough for blocks, of batches and of matrices that have none:
//! factors multiplied again, and errors with their numbers.

use plimsoll_tensor::*;

/// Numbers that look random, by rows.
fn matrix(lead: &[i64], rows: i64, columns: i64) -> Tensor {
    let count = lead.iter().product::<i64>() * rows * columns;
    let mut state = 12345u64;
    let numbers: Vec<f64> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        })
        .collect();
    let sizes: Vec<i64> = lead.iter().copied().chain([rows, columns]).collect();
    Tensor::from_slice(&numbers, &sizes, Device::cpu()).unwrap()
}

#[track_caller]
fn assert_close(a: &Tensor, b: &Tensor, what: &str) {
    let apart = a.sub(b).unwrap().abs().unwrap();
    let worst = if apart.numel() == 0 { 0.0 } else { apart.amax().unwrap().item::<f64>().unwrap() };
    assert!(worst < 1e-9, "{what}: {worst:e} apart");
}

fn turned(x: &Tensor) -> Tensor {
    x.transpose(-2, -1).unwrap()
}

#[test]
fn factors_multiply_to_the_matrix() -> Result<()> {
    for (rows, columns) in [(1, 1), (5, 5), (17, 40), (40, 17), (70, 70), (150, 130), (96, 200)] {
        let a = matrix(&[2], rows, columns);
        let (p, l, u) = a.linalg_lu()?;
        assert_close(&p.matmul(&l)?.matmul(&u)?, &a, "lu");
        let (q, r) = a.linalg_qr()?;
        assert_close(&q.matmul(&r)?, &a, "qr");
        let one = Tensor::eye(rows.min(columns), DType::F64)?.expand_as(&turned(&q).matmul(&q)?)?;
        assert_close(&turned(&q).matmul(&q)?, &one, "q");
        let (whole, tall) = a.linalg_qr_with(LinalgQrOptions::new().mode(QrMode::Complete))?;
        assert_close(&whole.matmul(&tall)?, &a, "complete qr");
        let (packed, tau) = a.geqrf()?;
        assert_close(&packed.ormqr(&tau, &tall)?, &a, "reflections");
        let back = packed.ormqr_with(&tau, &a, OrmqrOptions::new().transpose(true))?;
        assert_close(&back, &tall, "transposed reflections");
        let (u, s, vh) = a.linalg_svd_with(LinalgSvdOptions::new().full_matrices(false))?;
        assert_close(&u.mul(&s.unsqueeze(-2)?)?.matmul(&vh)?, &a, "svd");
        assert_close(&a.linalg_svdvals()?, &s, "singular values");
        assert_close(&a.matmul(&a.linalg_pinv()?)?.matmul(&a)?, &a, "pinv");
    }
    Ok(())
}

#[test]
fn square_matrices_are_solved_and_inverted() -> Result<()> {
    for size in [1, 2, 16, 33, 64, 140] {
        let a = matrix(&[3], size, size);
        let one = Tensor::eye(size, DType::F64)?;
        let near = a.add(&one.mul(size as f64)?)?;
        assert_close(&near.matmul(&near.linalg_inv()?)?, &one.expand_as(&a)?, "inverse");
        let b = matrix(&[3], size, 4);
        assert_close(&near.matmul(&near.linalg_solve(&b)?)?, &b, "solve");
        let right = LinalgSolveOptions::new().left(false);
        let x = near.linalg_solve_with(&turned(&b), right)?;
        assert_close(&x.matmul(&near)?, &turned(&b), "solve from the right");
        let definite = a.matmul(&turned(&a))?.add(&one)?;
        let l = definite.linalg_cholesky()?;
        assert_close(&l.matmul(&turned(&l))?, &definite, "cholesky");
        assert_close(&l, &l.tril(0)?, "a triangle");
        let (values, vectors) = definite.linalg_eigh()?;
        let again = vectors.mul(&values.unsqueeze(-2)?)?.matmul(&turned(&vectors))?;
        assert_close(&again, &definite, "eigh");
        let (_, logarithm) = definite.linalg_slogdet()?;
        assert_close(&logarithm, &values.log()?.sum_with(-1i64)?, "slogdet");
    }
    Ok(())
}

/// What LAPACK gives, and faer does not: pivots and reflections past a column that depends on
/// others.
#[test]
fn dependent_columns_have_factors_too() -> Result<()> {
    let zero_first =
        Tensor::from_slice(&[0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 5.0, 7.0], &[3, 3], Device::cpu())?;
    let (_, pivots, info) = zero_first.linalg_lu_factor_ex()?;
    assert_eq!((pivots.to_vec::<i32>()?, info.item::<i32>()?), (vec![1, 3, 3], 1));
    let (p, l, u) = zero_first.linalg_lu()?;
    assert_close(&p.matmul(&l)?.matmul(&u)?, &zero_first, "lu of a singular matrix");
    assert_eq!(zero_first.linalg_det()?.item::<f64>()?, 0.0);
    for a in [zero_first, Tensor::ones(&[40, 40], DType::F64)?, Tensor::zeros(&[4, 3], DType::F64)?]
    {
        let (q, r) = a.linalg_qr()?;
        assert_close(&q.matmul(&r)?, &a, "qr of a singular matrix");
        assert_close(&r, &r.triu(0)?, "a triangle");
    }
    Ok(())
}

#[test]
fn errors_name_the_matrix_and_the_pivot() -> Result<()> {
    let batch = Tensor::cat(
        &[&Tensor::eye(2, DType::F32)?.unsqueeze(0)?, &Tensor::ones(&[1, 2, 2], DType::F32)?],
        0,
    )?;
    let error = batch.linalg_inv().unwrap_err();
    assert!(error.is_linalg() && error.to_string().contains("batch element 1"), "{error}");
    assert!(error.to_string().contains("pivot 2"), "{error}");
    let error = batch.neg()?.linalg_cholesky().unwrap_err();
    assert!(error.is_linalg() && error.to_string().contains("order 1"), "{error}");
    let nan = Tensor::full(&[2, 2], f64::NAN, DType::F64)?;
    assert!(nan.linalg_svd().unwrap_err().is_linalg());
    assert!(nan.linalg_eigh().unwrap_err().is_linalg());
    let half = Tensor::ones(&[2, 2], DType::F16)?;
    assert!(half.linalg_inv().unwrap_err().is_dtype());
    assert!(Tensor::ones(&[2, 3], DType::F32)?.linalg_inv().unwrap_err().is_shape());
    let (lu, _) = Tensor::eye(2, DType::F32)?.linalg_lu_factor()?;
    let wrong = Tensor::from_slice(&[1i32, 9], &[2], Device::cpu())?;
    let b = Tensor::ones(&[2, 1], DType::F32)?;
    assert!(lu.linalg_lu_solve(&wrong, &b).unwrap_err().is_shape());
    assert!(lu.lu_unpack(&wrong).unwrap_err().is_shape());
    Ok(())
}

#[test]
fn batches_are_the_same_on_any_number_of_threads() -> Result<()> {
    let a = matrix(&[9], 24, 24);
    let all = |threads: usize| {
        parallel::with_threads(threads, || Ok::<_, Error>((a.linalg_inv()?, a.linalg_svdvals()?)))
    };
    let (one, two) = (all(1)?, all(4)?);
    assert!(one.0.equal(&two.0)? && one.1.equal(&two.1)?);
    Ok(())
}
