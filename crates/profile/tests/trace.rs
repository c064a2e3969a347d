//! The trace is JSON that a viewer can open: complete events with times, arrows with both ends, and
//! counters that end at what the ledger says.

use plimsoll_profile::{Profile, range};
use plimsoll_tensor::{DType, Result, Tensor, device, memory};
use serde_json::Value;

#[test]
fn spans_arrows_and_counters() -> Result<()> {
    let gpu = device::stand_in(Default::default())?;
    let x = Tensor::ones(&[256], (DType::F32, gpu))?;
    let profile = Profile::new().memory(true).shapes(true).stacks(true).modules(true).flops(true);
    let mut kept = None;
    let recording = profile.run(|| {
        let _range = range("a \"quoted\" range");
        kept = Some(x.mul(&x)?);
        device::synchronize(gpu)
    })?;
    let path = std::env::temp_dir().join(format!("plimsoll-trace-{}.json", std::process::id()));
    recording.chrome_trace(&path)?;
    let text = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    assert_eq!(text, recording.trace_json());
    let trace: Value = serde_json::from_str(&text).expect("it is JSON");
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|e| e["ph"] == phase).collect::<Vec<_>>();
    let span = |name: &str| {
        let found = of("X").into_iter().find(|event| event["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {text}"))
    };
    let mul = span("aten::mul");
    assert_eq!((&mul["cat"], &mul["args"]["Input Dims"][0][0]), (&"cpu_op".into(), &256.into()));
    assert_eq!(mul["args"]["Input type"][0], "float");
    assert_eq!(mul["args"]["flops"], 256);
    assert!(mul["args"]["Call stack"].as_str().unwrap().contains("trace.rs("));
    assert_eq!(span("a \"quoted\" range")["cat"], "user_annotation");
    let kernel = span("mul_kernel");
    assert_eq!(kernel["cat"], "kernel");
    let arrows = of("f");
    assert_eq!(arrows.len(), of("s").len());
    assert_eq!((&arrows[0]["pid"], &arrows[0]["ts"]), (&kernel["pid"], &kernel["ts"]));
    let counter = format!("memory {gpu}");
    let last = of("C").into_iter().rfind(|event| event["name"] == counter.as_str()).unwrap();
    assert_eq!(last["args"]["allocated_bytes"], memory::memory_allocated(gpu));
    assert_eq!(last["args"]["reserved_bytes"], memory::memory_reserved(gpu));
    let instants = of("i");
    assert_eq!(instants[0]["args"]["Bytes"], 1024);
    for event in of("X") {
        assert!(event["ts"].is_f64() && event["dur"].as_f64().unwrap() >= 0.0, "{event}");
    }
    assert!(recording.chrome_trace("/no/such/folder/trace.json").is_err());
    Ok(())
}
