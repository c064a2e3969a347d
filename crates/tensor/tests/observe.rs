//! Observers see every launch once, with its bytes, device and time; also those of backward, of
//! copies between devices, of dry runs, and of what is computed again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, take_back};
use plimsoll_tensor::observe::{
    Call, CallKind, Launch, LaunchCount, LaunchCounts, LaunchTime, Observer, observe,
};
use plimsoll_tensor::*;

type Outcome = Result<()>;

/// Keeps what it heard of one device.
struct Log {
    device: Device,
    begun: Mutex<Vec<u64>>,
    ended: Mutex<Vec<(Launch, LaunchTime)>>,
}

impl Log {
    fn of(device: Device) -> Arc<Log> {
        Arc::new(Log { device, begun: Mutex::default(), ended: Mutex::default() })
    }
}

impl Observer for Log {
    fn begin(&self, launch: &Launch) {
        if launch.device == self.device {
            self.begun.lock().unwrap().push(launch.number);
        }
    }

    fn end(&self, launch: &Launch, time: &LaunchTime) {
        if launch.device == self.device {
            self.ended.lock().unwrap().push((*launch, time.clone()));
        }
    }
}

fn count(launches: u64, bytes_read: u64, bytes_written: u64) -> LaunchCount {
    LaunchCount { launches, bytes_read, bytes_written }
}

fn program(device: Device) -> Outcome {
    let x = Tensor::ones(&[256], (DType::F32, device))?.requires_grad_(true)?;
    let y = x.mul(&x)?;
    y.detach().add_(1.0)?;
    drop(x.exp()?);
    Ok(())
}

#[test]
fn launches_and_their_bytes_are_counted_by_operation() -> Outcome {
    for device in [device::private_cpu(&Default::default())?, device::stand_in(Default::default())?]
    {
        // Launches are counted here, so nothing may be computed again.
        device::set_chaos(device, None);
        program(device)?; // nobody looks
        let counts = Arc::new(LaunchCounts::default());
        let observing = observe(counts.clone());
        program(device)?;
        drop(observing);
        program(device)?;
        let expected = [
            ("add", count(1, 1024, 1024)),
            ("exp", count(1, 1024, 1024)),
            ("full", count(1, 0, 1024)),
            ("mul", count(1, 2048, 1024)),
        ];
        assert_eq!(counts.all(), expected.into());
    }
    Ok(())
}

#[test]
fn a_launch_names_its_line_device_and_stream() -> Outcome {
    let device = device::stand_in(Default::default())?;
    let side = Stream::new(device)?;
    let log = Log::of(device);
    let observing = observe(log.clone());
    let line = line!() + 1;
    let x = with_stream(&side, || Tensor::zeros(&[4], (DType::F32, device)))?;
    drop(observing);
    let ended = log.ended.lock().unwrap();
    let (launch, _) = ended.first().unwrap();
    let origin = launch.origin.get();
    assert_eq!((launch.operation, origin.operation), ("full", "zeros"));
    assert!(origin.site.to_string().ends_with(&format!("observe.rs:{line}")), "{}", origin.site);
    assert_eq!((launch.device, launch.stream), (device, side.id()));
    drop(x);
    Ok(())
}

#[test]
fn begins_and_ends_pair_and_times_come_when_the_device_has_passed() -> Outcome {
    let device = device::stand_in(Default::default())?;
    let x = Tensor::ones(&[1000], (DType::F32, device))?;
    device::synchronize(device)?;
    let log = Log::of(device);
    let observing = observe(log.clone());
    let pause = Stream::current(device).pause()?;
    let y = x.add(1.0)?;
    let (_, time) = log.ended.lock().unwrap()[0].clone();
    assert_eq!(time.elapsed(), None, "the stream stands still");
    drop(pause);
    let took = time.wait().expect("the device has passed both marks");
    assert!(took < Duration::from_secs(10));
    assert_eq!(time.elapsed(), Some(took));
    assert_eq!(y.to_vec::<f32>()?, [2.0; 1000]); // a copy to the host is a launch of the host's
    drop(observing);
    let ended: Vec<u64> =
        log.ended.lock().unwrap().iter().map(|(launch, _)| launch.number).collect();
    assert_eq!(*log.begun.lock().unwrap(), ended);

    let host = device::private_cpu(&Default::default())?;
    let log = Log::of(host);
    let _observing = observe(log.clone());
    let x = Tensor::ones(&[1000], (DType::F32, host))?;
    assert!(x.add(&Tensor::ones(&[3], (DType::F32, host))?).is_err(), "refused before any launch");
    assert_eq!(log.begun.lock().unwrap().len(), 2);
    assert!(log.ended.lock().unwrap().iter().all(|(_, time)| time.elapsed().is_some()));
    Ok(())
}

#[test]
fn backward_copies_dry_runs_and_recipes_are_launches_too() -> Outcome {
    let spilling = Configuration::parse("spill:true")?;
    let host = device::private_cpu(&spilling)?;
    let counts = Arc::new(LaunchCounts::default());
    let observing = observe(counts.clone());
    let x = Tensor::ones(&[256], (DType::F32, host))?.requires_grad_(true)?;
    x.exp()?.sum()?.backward()?;
    assert_eq!(counts.of("mul"), count(1, 2048, 1024), "the derivative of exp");
    let y = x.detach().tanh()?;
    assert!(take_back(&y, true));
    y.to_vec::<f32>()?;
    assert_eq!(counts.of("tanh"), count(2, 2048, 2048), "it was computed twice");
    let there = x.detach().to(device::stand_in(Default::default())?)?;
    assert_eq!(counts.of("to"), count(1, 1024, 1024));
    let dry = device::dry(host)?;
    let log = Log::of(dry);
    let dry_observing = observe(log.clone());
    Tensor::ones(&[256], (DType::F32, dry))?.sigmoid()?;
    assert_eq!(counts.of("sigmoid"), count(1, 1024, 1024));
    assert!(log.ended.lock().unwrap().iter().all(|(_, time)| time.wait().is_none()));
    drop((observing, dry_observing, there));
    Ok(())
}

/// Runs operations of its own on what was just written, and panics now and then.
struct Meddling(Tensor);

impl Observer for Meddling {
    fn begin(&self, launch: &Launch) {
        if launch.operation == "neg" {
            self.0.add_(1.0).unwrap();
        }
        assert!(launch.operation != "abs", "as asked");
    }

    fn end(&self, launch: &Launch, _: &LaunchTime) {
        assert!(launch.operation != "abs", "as asked");
    }
}

#[test]
fn an_observer_may_run_operations_and_panics_of_one_are_ignored() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::zeros(&[4], (DType::F32, device))?;
    let observing = observe(Arc::new(Meddling(x.clone())));
    x.neg_()?;
    drop(x.abs()?);
    drop(observing);
    assert_eq!(x.to_vec::<f32>()?, [-1.0; 4]);
    Ok(())
}

/// Keeps the calls of one thread as text: names at their depths, results behind them.
#[derive(Default)]
struct Calls(Mutex<(usize, Vec<String>)>);

impl Observer for Calls {
    fn enter(&self, call: &Call<'_>) {
        let mut calls = self.0.lock().unwrap();
        let in_place = call.kind == CallKind::Operation { in_place: true };
        let line =
            format!("{}{}{}", "  ".repeat(calls.0), call.name, if in_place { "_" } else { "" });
        calls.0 += 1;
        calls.1.push(line);
    }

    fn leave(&self, outputs: &[Tensor]) {
        let mut calls = self.0.lock().unwrap();
        calls.0 -= 1;
        if let Some(output) = outputs.first() {
            let line = format!("{}-> {:?}", "  ".repeat(calls.0), output.shape());
            calls.1.push(line);
        }
    }
}

#[test]
fn calls_lie_in_each_other_with_what_they_make() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    device::set_chaos(device, None);
    let calls = Arc::new(Calls::default());
    let observing = observe(calls.clone());
    let x = Tensor::zeros(&[4], (DType::F32, device))?.requires_grad_(true)?;
    x.exp()?.sum()?.backward()?;
    x.detach().add_(1.0)?;
    let failed = x.add(&Tensor::zeros(&[3], (DType::F32, device))?);
    drop(observing);
    assert!(failed.is_err());
    let calls = calls.0.lock().unwrap();
    assert_eq!(calls.0, 0, "every beginning has an end");
    let seen = |line: &str| calls.1.iter().any(|call| call == line);
    for line in [
        "zeros",
        "  full",
        "  -> [4]",
        "exp",
        "autograd::engine::evaluate_function: ExpBackward0",
        "  ExpBackward0",
        "    mul",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
        "add_",
        "add",
    ] {
        assert!(seen(line), "{line:?} in {:#?}", calls.1);
    }
    Ok(())
}

#[test]
fn waits_and_the_ways_of_copies_are_told() -> Outcome {
    let device = device::stand_in(Default::default())?;
    let (calls, log) = (Arc::new(Calls::default()), Log::of(device));
    let observing = (observe(calls.clone()), observe(log.clone()));
    let there = Tensor::ones(&[4], DType::F32)?.to(device)?;
    there.add(1.0)?.to_vec::<f32>()?;
    device::synchronize(device)?;
    drop(observing);
    let names = calls.0.lock().unwrap().1.clone();
    let count = |name: &str| names.iter().filter(|line| line.trim_start() == name).count();
    assert_eq!((count("streamSynchronize"), count("deviceSynchronize")), (2, 1), "{names:#?}");
    let ended = log.ended.lock().unwrap();
    let way = ended.iter().find_map(|(launch, _)| launch.copy).unwrap();
    assert_eq!((way.from, way.to, way.pageable), (Device::cpu(), device, true));
    let (first, last) = (&ended[0].1, &ended[ended.len() - 1].1);
    assert_eq!(first.started_after(first), Some(Duration::ZERO));
    assert!(last.started_after(first).is_some());
    Ok(())
}
