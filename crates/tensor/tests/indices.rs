//! Indices without elements have any shape, and change nothing; a second rest of an index is what
//! is left.

use plimsoll_tensor::{At, DType, Device, Result, Tensor};

#[test]
fn an_index_without_elements_has_any_shape() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2], Device::cpu())?;
    let source = Tensor::ones(&[1], DType::F32)?;
    for shape in [&[0][..], &[0, 3]] {
        let index = Tensor::zeros(shape, DType::I64)?;
        assert_eq!(x.scatter(0, &index, &source)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(x.scatter_add(1, &index, &source)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        let gathered = x.gather(0, &index)?;
        assert_eq!(gathered.numel(), 0);
        assert_eq!(gathered.rank(), shape.len());
    }
    Ok(())
}

#[test]
fn a_second_rest_is_what_is_left() -> Result<()> {
    let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    let row = x.at(&[At::Rest, At::Index(0), At::Rest][..])?;
    assert_eq!(row.to_vec::<f32>()?, [0.0, 3.0]);
    assert_eq!(x.at(&[At::Rest, At::Rest][..])?.shape(), [2, 3]);
    assert!(x.at(&[At::Rest, At::Rest, At::Index(0)][..]).is_err());
    Ok(())
}
