//! The table is PyTorch's to the space: `golden/tables.txt` is what PyTorch writes for the same
//! rows.

use plimsoll_profile::{Average, Averages, EventKind, TableOptions, TimeUnit};
use plimsoll_tensor::{Device, DeviceKind, Result};

fn golden(index: usize) -> &'static str {
    include_str!("golden/tables.txt").split("\u{c}\n").nth(index).unwrap()
}

/// A row with count, host time and its own part, kernels' time, and flops.
fn row(key: &str, count: u64, times: [f64; 3], flops: u64) -> Average {
    let mut row = Average::named(key.to_string(), EventKind::Operation, Device::CPU);
    row.count = count;
    [row.cpu_time_us, row.self_cpu_time_us, row.device_time_us] = times;
    row.self_device_time_us = times[2];
    row.flops = flops;
    row
}

fn kernel(key: &str, count: u64, time_us: f64) -> Average {
    let device = Device::from_slot(0, DeviceKind::Cuda, 0, false);
    let mut row = Average::named(key.to_string(), EventKind::Kernel, device);
    (row.count, row.device_time_us, row.self_device_time_us) = (count, time_us, time_us);
    row.input_shapes = Some(vec![]);
    row
}

#[test]
fn of_the_host_with_memory_and_flops() -> Result<()> {
    let mut mm = row("aten::mm", 3, [1500.0, 1200.5, 0.0], 60_000);
    (mm.cpu_bytes, mm.self_cpu_bytes) = (4096, 4096);
    let mut add = row("aten::add", 10, [250.25, 250.25, 0.0], 3000);
    (add.cpu_bytes, add.self_cpu_bytes) = (-512, -512);
    let long = "a_range_with_a_name_that_is_much_longer_than_the_column_may_be";
    let mut range = row(long, 1, [2.5e6, 12.125, 0.0], 0);
    range.cpu_bytes = 3 << 20;
    let averages = Averages::from_rows(vec![mm, add, range], true, true);
    let table =
        averages.table(&TableOptions::new().sort_by("cpu_time_total").header("a header"))?;
    assert_eq!(table, golden(0));
    Ok(())
}

#[test]
fn of_a_device_with_shapes_in_one_unit_cut_off() -> Result<()> {
    let mut mm = row("aten::mm", 3, [1500.0, 1200.5, 800.0], 0);
    (mm.device_bytes, mm.self_device_bytes) = (4096, 4096);
    mm.input_shapes = Some(vec![vec![2, 3], vec![3, 5]]);
    let mut to = row("aten::to", 2, [99.0, 99.0, 200.0], 0);
    to.input_shapes = Some(vec![vec![4]]);
    let copy = kernel("Memcpy HtoD (Pageable -> Device)", 2, 200.0);
    let rows = vec![mm, kernel("mm_kernel", 3, 800.0), to, copy];
    let options = TableOptions::new().row_limit(Some(3)).time_unit(TimeUnit::Milliseconds);
    // Both names of the key.
    for key in ["self_cuda_time_total", "self_device_time_total"] {
        let table =
            Averages::from_rows(rows.clone(), true, false).table(&options.clone().sort_by(key))?;
        assert_eq!(table, golden(1));
    }
    Ok(())
}

#[test]
fn of_stacks() -> Result<()> {
    let mut exp = row("aten::exp", 1, [10.0, 10.0, 0.0], 0);
    exp.stack = vec!["train.py(3): step".into(), "train.py(9): main".into()];
    let mut neg = row("aten::neg", 1, [5.0, 5.0, 0.0], 0);
    let path =
        "/a/very/long/path/of/a/program/that/does/not/fit/into/the/column/train_the_model.py";
    neg.stack = vec![format!("{path}(12): forward")];
    let averages = Averages::from_rows(vec![exp, neg], false, false);
    assert_eq!(averages.table(&TableOptions::new())?, golden(2));
    Ok(())
}

#[test]
fn nothing_is_no_table_and_an_unknown_key_is_named() {
    let none = Averages::from_rows(vec![], true, true);
    assert_eq!(none.table(&TableOptions::new()).unwrap(), "");
    assert!(none.total().is_none());
    let some = Averages::from_rows(vec![row("aten::mm", 1, [1.0, 1.0, 0.0], 0)], false, false);
    let error = some.table(&TableOptions::new().sort_by("beauty")).unwrap_err();
    assert!(error.is_invalid_argument() && error.to_string().contains("`beauty`"), "{error}");
}
