//! The book as a user reads it: operations under the names by which they were called, leaves that
//! count as parameters, pinned and spilled bytes in statistics, reports and snapshots.

use plimsoll_memory::{Configuration, Kind, Snapshot};
use plimsoll_tensor::device::{self, take_back};
use plimsoll_tensor::*;

type Outcome = Result<()>;

fn private() -> Device {
    device::private_cpu(&Configuration::default()).unwrap()
}

/// The operations in the ledger of a device, at its peak.
fn operations(device: Device) -> Vec<&'static str> {
    let rows = memory::peak_by_origin(device);
    let mut names: Vec<_> = rows.iter().map(|row| row.origin.get().operation).collect();
    names.sort_unstable();
    names.dedup();
    names
}

type Call = (&'static str, fn(&Tensor) -> Result<Tensor>);

#[test]
fn operations_are_named_as_they_were_called() -> Outcome {
    let calls: &[Call] = &[
        ("zeros", |x| Tensor::zeros(&[9], x.device())),
        ("ones", |x| Tensor::ones(&[9], x.device())),
        ("full", |x| Tensor::full(&[9], 1, x.device())),
        ("scalar", |x| Tensor::scalar(1, x.device())),
        ("zeros_like", Tensor::zeros_like),
        ("ones_like", Tensor::ones_like),
        ("full_like", |x| x.full_like(2)),
        ("empty_like", Tensor::empty_like),
        ("rand_like", Tensor::rand_like),
        ("clone", Tensor::clone_tensor),
        ("contiguous", |x| x.t()?.contiguous()),
        ("reshape", |x| x.t()?.reshape(&[-1])),
        ("flatten", |x| x.t()?.flatten(0, 1)),
        ("double", Tensor::double),
        ("half", Tensor::half),
        ("long", Tensor::long),
        ("bool", Tensor::bool),
        ("to", |x| x.to(DType::F64)),
        ("stack", |x| Tensor::stack(&[x, x], 0)),
        ("cat", |x| Tensor::cat(&[x, x], 0)),
        ("masked_select", |x| x.masked_select(&x.gt(0.0)?)),
        ("where", |x| Tensor::where_(&x.gt(100.0)?, x, 1.0)),
        ("add", |x| x.long()?.add(x)),
        ("sub", |x| x.sub(1.0)),
        ("eq", |x| x.long()?.eq(x)),
        ("exp", |x| x.long()?.exp()),
        ("matmul", |x| x.matmul(x)),
    ];
    for (name, call) in calls {
        let device = private();
        let x = Tensor::empty(&[4, 4], (DType::F32, device))?;
        x.fill_(1.0)?;
        // What a call's own arguments take is not what is looked at.
        memory::reset_peak_memory_stats(device);
        let made = call(&x)?;
        let names = operations(device);
        let allowed = ["empty", "gt", "long", name];
        assert!(names.contains(name), "{name}: {names:?}");
        assert!(names.iter().all(|found| allowed.contains(found)), "{name}: {names:?}");
        drop(made);
    }
    Ok(())
}

#[test]
fn the_outermost_call_gives_its_name_and_only_on_its_own_thread() -> Outcome {
    let device = private();
    let x = Tensor::ones(&[8], (DType::F32, device))?.requires_grad_(true)?;
    // Reading brings a copy to the host under the reader's name; afterwards names are as before.
    assert_eq!(x.detach().view(&[2, 4])?.t()?.to_vec::<f32>()?, [1.0; 8]);
    let y = x.exp()?;
    let live = memory::live_by_origin(device);
    let names = live.iter().map(|row| row.origin.get().operation);
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), ["exp", "ones"].into());
    y.sum()?.backward()?;
    let grad = x.grad().unwrap();
    let rows = memory::live_by_origin(device);
    let gradient = rows.iter().find(|row| row.kind == Kind::Gradient).unwrap();
    assert_eq!(gradient.origin.get().operation, "mul", "backward's operations have their own");
    drop(grad);
    Ok(())
}

#[test]
fn a_leaf_that_requires_gradients_counts_as_a_parameter() -> Outcome {
    let device = private();
    let kind = || memory::live_by_kind(device)[0].kind;
    let options = (DType::F32, device);
    let weight = Tensor::ones(&[256], options)?;
    assert_eq!(kind(), Kind::Temporary);
    weight.requires_grad_(true)?;
    assert_eq!(kind(), Kind::Parameter);
    // Saved for backward it is still one.
    let out = weight.mul(&weight)?;
    assert!(
        memory::live_by_kind(device)
            .iter()
            .any(|row| row.kind == Kind::Parameter && row.bytes == 1024)
    );
    drop(out);
    weight.requires_grad_(false)?;
    assert_eq!(kind(), Kind::Temporary);
    weight.requires_grad_(true)?.mark_input();
    assert_eq!(kind(), Kind::Input, "an input whose gradient is wanted is an input");
    drop(weight);
    // What becomes the result of an operation in place is no leaf any more.
    let leaf = Tensor::ones(&[256], options)?.requires_grad_(true)?;
    let target = Tensor::zeros(&[256], options)?;
    target.add_(&leaf)?;
    let kinds = memory::live_by_kind(device);
    assert_eq!(
        kinds.iter().filter(|row| row.kind == Kind::Parameter).map(|row| row.bytes).sum::<usize>(),
        1024
    );
    drop((leaf, target));
    Ok(())
}

#[test]
fn pinned_and_spilled_bytes_are_in_the_statistics_and_the_snapshot() -> Outcome {
    let spilling = Configuration::parse("spill:true")?;
    let device = device::private_cpu(&spilling)?;
    memory::record_memory_history(Device::CPU, memory::HistoryLevel::All, 1000);
    let pinned = Tensor::ones(&[1000], DType::F32)?.pin_memory()?;
    let x = Tensor::ones(&[3000], (DType::F32, device))?.mul(2.0)?.mark_parameter();
    assert!(take_back(&x, false));
    assert_eq!(memory::memory_spilled(device), 12_000);
    let arena = |name: &str| memory::arenas().into_iter().find(|arena| arena.name() == name);
    let [host, spill] = ["cpu:pinned", "cpu:spill"].map(|name| arena(name).expect(name));
    assert_eq!(host.stats().allocated_bytes.all.current, 4096);
    assert_eq!(spill.stats().allocated_bytes.all.current, 12_288);
    let row = spill.live_by_origin()[0];
    assert_eq!((row.kind, row.origin.get().operation), (Kind::Parameter, "mul"));
    assert!(memory::memory_report(device).contains("Spilled to host memory: 11.72 KiB"));
    assert!(memory::memory_report(Device::CPU).contains("Pinned host memory: 4.00 KiB"));

    let path = std::env::temp_dir().join(format!("plimsoll-book-{}.json", std::process::id()));
    memory::dump_snapshot(&path)?;
    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    assert!(text.contains(r#""name":"cpu:pinned""#) && text.contains(r#""name":"cpu:spill""#));
    let snapshot = Snapshot::take(&memory::arenas(), &spilling);
    let live = |name: &str| {
        let device = snapshot.devices.iter().find(|device| device.device == name).expect(name);
        let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
        blocks.map(|block| block.requested_bytes).sum::<usize>()
    };
    assert_eq!((live("cpu:pinned"), live("cpu:spill")), (4000, 12_000));
    let traced =
        |name: &str| snapshot.devices.iter().any(|d| d.device == name && d.entries.len() == 2);
    assert!(traced("cpu:pinned") && traced("cpu:spill"), "a segment and a block in each");
    drop((pinned, x));
    assert_eq!((host.live_bytes(), spill.live_bytes()), (0, 0));
    Ok(())
}
