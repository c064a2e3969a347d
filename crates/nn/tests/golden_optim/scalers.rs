//! Steps with scaled gradients, some of which are infinite or NaN.

use plimsoll_nn::amp::{GradScaler, GradScalerOptions};
use plimsoll_nn::clip_grad_norm_;
use plimsoll_tensor::{Result, memory};
use serde_json::Value;

use crate::objective::{assert_near, devices, made, objective, params, values};
use crate::states::{cases, numbers, state};

/// What the loss is multiplied by at each step.
const FACTORS: [f64; 14] =
    [1.0, 1.0, f64::INFINITY, 1.0, 1.0, 1.0, 1.0, f64::NAN, f64::NAN, 1.0, 1.0, 1.0, 1.0, 1.0];

#[test]
fn scales_and_skipped_steps_are_pytorchs() -> Result<()> {
    for device in devices()? {
        for case in cases(include_str!("../golden/scalers.json")) {
            let name = format!("{} clip {}", case["optimizer"], case["clip"]);
            let params = params(device)?;
            let mut optimizer = made(case["optimizer"].as_str().expect("a name"), &params)?;
            let optimizer = optimizer.dynamic();
            let options = GradScalerOptions::new().init_scale(1024.0).growth_interval(3);
            let mut scaler = GradScaler::new(options)?;
            let first = case["first_is_bad"] == Value::Bool(true);
            let factors = first.then_some(f64::INFINITY).into_iter().chain(FACTORS);
            for (at, factor) in factors.enumerate() {
                optimizer.zero_grad()?;
                scaler.scale(&objective(&params)?.mul(factor)?)?.backward()?;
                if case["clip"] == Value::Bool(true) {
                    scaler.unscale_(optimizer)?;
                    clip_grad_norm_(&params, 0.5)?;
                }
                scaler.step(optimizer)?;
                scaler.update()?;
                let what = format!("{name}, step {at}");
                assert_eq!(scaler.get_scale()?, numbers(&case["scales"])[at], "{what}");
                let tracker = scaler.state_dict()?.get("_growth_tracker").unwrap().as_float();
                assert_eq!(tracker, Some(numbers(&case["trackers"])[at]), "{what}");
                assert_near(&what, &values(&params)?, &numbers(&case["values"][at]), 1e-11);
            }
            crate::states::assert_same(&name, &scaler.state_dict()?, &state(&case["state"])?)?;
        }
        assert_eq!(memory::memory_allocated(device), 0, "everything was given back");
    }
    Ok(())
}
