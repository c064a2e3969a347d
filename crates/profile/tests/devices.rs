//! On a device that queues its work: kernels with the device's times, copies by their way, and
//! waits. What all that says of a slow program is `advice.rs`.

use std::sync::{Mutex, MutexGuard};

use plimsoll_profile::{EventKind, Grouping, Profile, TableOptions, range};
use plimsoll_tensor::{DType, Result, Tensor, device};

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn kernels_have_the_devices_times_and_their_callers() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let x = Tensor::ones(&[128, 128], (DType::F32, gpu))?;
    device::synchronize(gpu)?;
    let recording = Profile::new().memory(true).run(|| {
        let _range = range("product");
        x.mm(&x).map(drop)
    })?;
    let events = recording.events();
    let kernel = events.iter().find(|event| event.kind == EventKind::Kernel).unwrap();
    assert_eq!((kernel.name.as_str(), kernel.device), ("mm_kernel", gpu));
    assert!(kernel.device_ns > 0 && kernel.cpu_ns() == 0);
    let mm = &events[kernel.parent.unwrap()];
    assert_eq!(mm.name, "aten::mm");
    assert_eq!((mm.self_device_ns, mm.device_ns), (kernel.device_ns, kernel.device_ns));
    let range = events.iter().find(|event| event.name == "product").unwrap();
    assert_eq!((range.self_device_ns, range.device_ns), (0, kernel.device_ns));
    assert_eq!(mm.device_bytes, 128 * 128 * 4);
    let averages = recording.averages(Grouping::default());
    let table = averages.table(&TableOptions::new().sort_by("self_cuda_time_total"))?;
    assert!(table.contains("Self STANDIN %") && table.contains("STANDIN Mem"), "{table}");
    assert!(table.contains("Self STANDIN time total: "), "{table}");
    Ok(())
}

#[test]
fn copies_have_their_ways_and_waits_their_names() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let host = Tensor::ones(&[1 << 16], DType::F32)?;
    let recording = Profile::new().run(|| {
        for _ in 0..3 {
            let there = host.to(gpu)?;
            there.exp()?.sum()?.item::<f32>()?;
        }
        Ok(())
    })?;
    let copies = recording.events().iter().filter(|e| e.name == "Memcpy HtoD (Pageable -> Device)");
    assert_eq!(copies.map(|copy| copy.copied_bytes).collect::<Vec<_>>(), [1 << 18; 3]);
    let waits = recording.events().iter().filter(|event| event.kind == EventKind::Wait);
    assert!(waits.clone().count() >= 6 && waits.clone().all(|w| w.name == "streamSynchronize"));
    Ok(())
}
