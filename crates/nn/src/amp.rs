//! Mixed precision: the scaler of gradients. Losses are multiplied before backward so that float16
//! gradients do not vanish; gradients are divided before the step; a step whose gradients are not
//! finite is skipped, and the scale falls. Which operations run in which precision is
//! [`plimsoll_tensor::autocast`]'s business.

use plimsoll_memory::{Phase, Site, enter_phase, with_site};
use plimsoll_tensor::{DType, Device, Error, NoGrad, Result, Tensor};

use crate::optim::{Optimizer, OptimizerId, Scaling};
use crate::saved::{Dict, Value};

plimsoll_tensor::options! {
    /// The options of [`GradScaler`], with PyTorch's defaults.
    GradScalerOptions {
        /// The first scale.
        init_scale: f64 = 65536.0,
        /// What the scale is multiplied by after enough steps without a skipped one.
        growth_factor: f64 = 2.0,
        /// What the scale is multiplied by after a skipped step.
        backoff_factor: f64 = 0.5,
        /// How many steps are enough.
        growth_interval: i64 = 2000,
        /// Whether anything is scaled; without, all methods pass things through.
        enabled: bool = true,
    }
}

/// Where an optimizer is between two updates of the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready,
    Unscaled,
    Stepped,
}

/// What is known of one optimizer since the last update.
#[derive(Debug)]
struct Seen {
    id: OptimizerId,
    stage: Stage,
    /// For each device of its gradients one float32: whether one was not finite.
    found: Vec<Tensor>,
}

/// The scale and the count of steps since it changed, where the losses are.
#[derive(Debug)]
struct Scale {
    scale: Tensor,
    tracker: Tensor,
}

/// Scales losses, and skips steps whose gradients are infinite or NaN. Neither unscaling nor a step
/// makes the host wait.
///
/// ```
/// use plimsoll_nn::{Parameter, amp, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// let mut optimizer = optim::SGD::new([weight.clone()], optim::SGDOptions::new().lr(0.5))?;
/// let mut scaler = amp::GradScaler::new(amp::GradScalerOptions::new().init_scale(8.0))?;
/// for factor in [1.0, f64::INFINITY] {
///     optimizer.zero_grad()?;
///     let loss = weight.tensor().mul(factor)?.sum()?;
///     scaler.scale(&loss)?.backward()?;
///     scaler.step(&mut optimizer)?;
///     scaler.update()?;
/// }
/// // The second step was skipped.
/// assert_eq!((weight.tensor().item::<f32>()?, scaler.get_scale()?), (0.5, 4.0));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct GradScaler {
    options: GradScalerOptions,
    first_tracker: i64,
    scale: Option<Scale>,
    seen: Vec<Seen>,
}

fn refused(why: impl Into<String>) -> Error {
    Error::invalid_argument(why).in_operation("GradScaler")
}

impl GradScaler {
    /// A scaler.
    pub fn new(options: GradScalerOptions) -> Result<GradScaler> {
        if options.enabled && options.growth_factor <= 1.0 {
            return Err(refused("The growth factor must be > 1.0."));
        }
        if options.enabled && options.backoff_factor >= 1.0 {
            return Err(refused("The backoff factor must be < 1.0."));
        }
        Ok(GradScaler { options, first_tracker: 0, scale: None, seen: Vec::new() })
    }

    /// The loss, multiplied by the scale.
    #[track_caller]
    pub fn scale(&mut self, loss: &Tensor) -> Result<Tensor> {
        if !self.options.enabled {
            return Ok(loss.clone());
        }
        with_site(Site::caller(), || {
            let scale = match &self.scale {
                Some(scale) => scale.scale.to(loss.device())?,
                None => self.begin(loss.device())?,
            };
            loss.mul(&scale)
        })
    }

    /// Makes the scale, where the first loss is.
    fn begin(&mut self, device: Device) -> Result<Tensor> {
        let _plain = NoGrad::enter();
        let scale = Tensor::full(&[], self.options.init_scale, (DType::F32, device))?;
        let tracker = Tensor::full(&[], self.first_tracker, (DType::I32, device))?;
        self.scale = Some(Scale { scale: scale.clone(), tracker });
        Ok(scale)
    }

    fn begun(&self, what: &str) -> Result<&Scale> {
        self.scale.as_ref().ok_or_else(|| {
            refused(format!(
                "Attempted {what} but _scale is None.  This may indicate your script did not use \
                 scaler.scale(loss or outputs) earlier in the iteration."
            ))
        })
    }

    fn seen(&mut self, id: OptimizerId) -> &mut Seen {
        let at = self.seen.iter().position(|seen| seen.id == id).unwrap_or_else(|| {
            self.seen.push(Seen { id, stage: Stage::Ready, found: Vec::new() });
            self.seen.len() - 1
        });
        &mut self.seen[at]
    }

    /// Divides the optimizer's gradients by the scale, to look at them or clip them before the
    /// step. The host does not wait.
    #[track_caller]
    pub fn unscale_(&mut self, optimizer: &dyn Optimizer) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        with_site(Site::caller(), || {
            self.begun("unscale_")?;
            match self.seen(optimizer.id()).stage {
                Stage::Ready => {}
                Stage::Unscaled => {
                    return Err(refused(
                        "unscale_() has already been called on this optimizer since the last update().",
                    ));
                }
                Stage::Stepped => {
                    return Err(refused("unscale_() is being called after step()."));
                }
            }
            let _plain = NoGrad::enter();
            // As PyTorch's: the inverse is rounded once.
            let scale = &self.begun("unscale_")?.scale;
            let inverse = scale.to(DType::F64)?.reciprocal()?.to(DType::F32)?;
            let found = unscaled(optimizer, &inverse, false)?;
            let seen = self.seen(optimizer.id());
            (seen.found, seen.stage) = (found, Stage::Unscaled);
            Ok(())
        })
    }

    /// A step of the optimizer with gradients that are divided by the scale, unless one of them is
    /// infinite or NaN. Whether it happened only the device knows: the host does not wait.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        with_site(Site::caller(), || {
            if !self.options.enabled {
                return optimizer.step();
            }
            let scale = self.begun("step")?.scale.clone();
            let stage = self.seen(optimizer.id()).stage;
            if stage == Stage::Stepped {
                return Err(refused("step() has already been called since the last update()."));
            }
            if stage == Stage::Ready {
                let one = scale.full_like(1.0)?;
                self.seen(optimizer.id()).found = unscaled(optimizer, &one, true)?;
            }
            let found = &self.seen(optimizer.id()).found;
            if found.is_empty() {
                return Err(refused(
                    "No inf checks were recorded for this optimizer: none of its parameters has a gradient.",
                ));
            }
            let found = together(found, scale.device())?;
            let grad_scale = (stage == Stage::Ready).then_some(&scale);
            optimizer.step_scaled(Scaling { grad_scale, found_inf: Some(&found) })?;
            self.seen(optimizer.id()).stage = Stage::Stepped;
            Ok(())
        })
    }

    /// The scale after the steps of all optimizers: smaller if one was skipped, larger after enough
    /// that were not. The host does not wait.
    #[track_caller]
    pub fn update(&mut self) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        with_site(Site::caller(), || {
            let Scale { scale, tracker } = self.begun("update")?;
            let found: Vec<Tensor> = self.seen.iter().flat_map(|seen| seen.found.clone()).collect();
            if found.is_empty() {
                return Err(refused("No inf checks were recorded prior to update."));
            }
            let _plain = NoGrad::enter();
            let found = together(&found, scale.device())?;
            let GradScalerOptions { growth_factor, backoff_factor, growth_interval, .. } =
                self.options;
            let interval = i32::try_from(growth_interval).unwrap_or(i32::MAX);
            scale.amp_update_scale_(tracker, &found, growth_factor, backoff_factor, interval)?;
            self.seen.clear();
            Ok(())
        })
    }

    /// Sets the scale by hand, in place of [`GradScaler::update`].
    #[track_caller]
    pub fn update_to(&mut self, new_scale: f64) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        self.begun("update")?.scale.fill_(new_scale)?;
        self.seen.clear();
        Ok(())
    }

    /// The scale. The host waits for it.
    pub fn get_scale(&self) -> Result<f64> {
        match (&self.scale, self.options.enabled) {
            (_, false) => Ok(1.0),
            (None, true) => Ok(self.options.init_scale),
            (Some(scale), true) => Ok(scale.scale.to_scalar()?.to_f64()),
        }
    }

    /// What the scale is multiplied by after enough steps, and what after a skipped one; and how
    /// many are enough. They may change at any time.
    pub fn options_mut(&mut self) -> &mut GradScalerOptions {
        &mut self.options
    }

    /// Whether anything is scaled.
    pub fn is_enabled(&self) -> bool {
        self.options.enabled
    }

    /// PyTorch's five entries; nothing if it is not enabled. The host waits for the scale.
    pub fn state_dict(&self) -> Result<Value> {
        if !self.options.enabled {
            return Ok(Value::dict([]));
        }
        let tracker = match &self.scale {
            None => self.first_tracker,
            Some(scale) => i64::from(scale.tracker.item::<i32>()?),
        };
        Ok(Value::dict([
            ("scale", self.get_scale()?.into()),
            ("growth_factor", self.options.growth_factor.into()),
            ("backoff_factor", self.options.backoff_factor.into()),
            ("growth_interval", self.options.growth_interval.into()),
            ("_growth_tracker", tracker.into()),
        ]))
    }

    /// Takes over what [`GradScaler::state_dict`] gave; nothing if it is not enabled.
    pub fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        if !self.options.enabled {
            return Ok(());
        }
        if state.as_dict().is_some_and(Dict::is_empty) {
            return Err(refused(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.",
            ));
        }
        let number = |key: &str| {
            let number = state.entry("GradScaler", key)?.to_f64();
            number.ok_or_else(|| refused(format!("\"{key}\" is not a number")))
        };
        let scale = number("scale")?;
        let (growth, backoff) = (number("growth_factor")?, number("backoff_factor")?);
        let interval = number("growth_interval")? as i64;
        let tracker = number("_growth_tracker")? as i64;
        if let Some(own) = &self.scale {
            own.scale.fill_(scale)?;
            own.tracker.fill_(tracker)?;
        }
        self.first_tracker = tracker;
        self.options = GradScalerOptions {
            init_scale: scale,
            growth_factor: growth,
            backoff_factor: backoff,
            growth_interval: interval,
            enabled: true,
        };
        Ok(())
    }
}

/// Multiplies the optimizer's gradients; for each of their devices, whether one was not finite.
fn unscaled(
    optimizer: &dyn Optimizer,
    inverse: &Tensor,
    allow_float16: bool,
) -> Result<Vec<Tensor>> {
    let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
    let parameters = optimizer.parameters();
    let grads: Vec<Tensor> =
        parameters.iter().filter_map(|parameter| parameter.tensor().grad()).collect();
    if !allow_float16 && grads.iter().any(|grad| grad.dtype() == DType::F16) {
        return Err(refused("Attempting to unscale FP16 gradients."));
    }
    let mut devices: Vec<Device> = Vec::new();
    for grad in &grads {
        if !devices.contains(&grad.device()) {
            devices.push(grad.device());
        }
    }
    let on = |device: Device| {
        let own: Vec<&Tensor> = grads.iter().filter(|grad| grad.device() == device).collect();
        let found = Tensor::zeros(&[], (DType::F32, device))?;
        let inverse = inverse.to(device)?;
        Tensor::amp_foreach_non_finite_check_and_unscale_(&own, &found, &inverse)?;
        Ok(found)
    };
    devices.into_iter().map(on).collect()
}

/// Whether one of several is 1, as one float32 on a device.
fn together(found: &[Tensor], device: Device) -> Result<Tensor> {
    let _plain = NoGrad::enter();
    let mut all = found[0].to(device)?;
    for other in &found[1..] {
        all = all.maximum(&other.to(device)?)?;
    }
    Ok(all)
}
