//! Indices out of range on a device that works behind the host's back: the operation and its line
//! are told at the next point where the host waits, once, and the device goes on.

use plimsoll_tensor::device::{Stream, synchronize};
use plimsoll_tensor::{Device, Result, Tensor};

use super::values;

/// An operation's name, its call with index 9, and the size that 9 is not below.
type Wrong<'a> = (&'a str, usize, &'a dyn Fn() -> Result<Tensor>);

/// Every family that reads or writes where indices say.
pub fn indices_out_of_range_are_told_of_when_the_host_waits(device: Device) -> Result<()> {
    let x = values(12).view(&[4, 3])?.to(device)?;
    let expected = values(12).add(1.0)?.to_f64_vec()?;
    let long = |at: &[i64], sizes: &[i64]| Tensor::from_slice(at, sizes, Device::cpu())?.to(device);
    let list = long(&[0, 9], &[2])?;
    let row = long(&[0, 9, 1], &[1, 3])?;
    let targets = long(&[0, 1, 9, 2], &[4])?;
    // So many that values are sorted by their places.
    let many: Vec<i64> = (0..120).map(|i| if i == 70 { 9 } else { i % 4 }).collect();
    let (many, ones) = (long(&many, &[120])?, Tensor::ones(&[120, 3], x.dtype())?.to(device)?);
    let tall = many.unsqueeze(1)?.expand(&[120, 3])?.contiguous()?;
    let wrongs: [Wrong<'_>; 9] = [
        ("gather", 4, &|| x.gather(0, &row)),
        ("index_select", 4, &|| x.index_select(0, &list)),
        ("embedding", 4, &|| x.embedding(&list)),
        ("index", 4, &|| x.index(&[Some(&list)])),
        ("index_put", 4, &|| x.index_put(&[Some(&many)], &ones, true)),
        ("scatter_add", 4, &|| x.scatter_add(0, &row, &x)),
        ("scatter_add", 4, &|| x.scatter_add(0, &tall, &ones)),
        ("index_add", 4, &|| x.index_add(0, &many, &ones, 1)),
        ("cross_entropy", 3, &|| x.cross_entropy(&targets)),
    ];
    let stream = Stream::current(device);
    let waits: [&dyn Fn() -> Result<()>; 4] = [
        &|| synchronize(device),
        &|| stream.synchronize(),
        &|| x.sum()?.to_scalar().map(drop),
        &|| x.cpu().map(drop),
    ];
    for (at, (name, size, wrong)) in wrongs.iter().enumerate() {
        let wait = waits[at % waits.len()];
        wait()?;
        let later = wrong()?.add(1.0)?;
        let error = wait().expect_err(name);
        let text = error.to_string();
        assert!(error.is_index() && error.operation() == Some(name), "{name}: {error:?}");
        assert!(text.contains("faults.rs:") && text.contains('9'), "{name}: {text}");
        assert!(text.contains(&format!("{size}")), "{name}: {text}");
        drop(later);
        // Told once, and nothing is broken.
        wait()?;
        assert_eq!(x.add(1.0)?.to_f64_vec()?, expected, "after {name}");
    }
    Ok(())
}
