//! Steps that are captured in a graph: learning rates lie in memory of the device, where replays
//! read them, and what is kept beside parameters is there before the capture. Numbers that a
//! capture would write down once and for all are refused.

use plimsoll_memory::{Phase, Site, enter_phase, with_site};
use plimsoll_tensor::{DType, Device, Error, NoGrad, Result, Stream, Tensor};

use super::fused::Fused;
use super::group::ParamGroup;
use super::kept::Kept;
use super::rule::FusedRule;

impl<O: FusedRule> Fused<O> {
    /// Makes steps ready to be captured in a [`Graph`](plimsoll_tensor::Graph): learning rates lie
    /// in memory of the device, in float32, where replays read them. Take one step before the
    /// capture, so that all that is kept beside parameters is there. Called again (for a group that
    /// was added), it leaves the ones that are there in their place: graphs read them.
    ///
    /// ```
    /// use plimsoll_nn::{Parameter, optim};
    /// use plimsoll_tensor::{DType, Graph, Tensor, device};
    /// let gpu = device::stand_in(Default::default())?;
    /// let weight = Parameter::new(&Tensor::ones(&[1], (DType::F32, gpu))?)?;
    /// let mut optimizer = optim::AdamW::new([weight.clone()], optim::AdamWOptions::new())?;
    /// optimizer.make_capturable()?;
    /// let mut step = |optimizer: &mut optim::AdamW| {
    ///     weight.tensor().sum()?.backward()?;
    ///     optimizer.step()?;
    ///     optimizer.zero_grad()
    /// };
    /// step(&mut optimizer)?;
    /// let before = weight.tensor().item::<f32>()?;
    /// let (graph, ()) = Graph::capture(gpu, || step(&mut optimizer))?;
    /// optimizer.groups_mut()[0].options.lr = 0.0; // or a scheduler's doing
    /// optimizer.write_rates()?;
    /// graph.replay()?;
    /// assert_eq!(weight.tensor().item::<f32>()?, before);
    /// optimizer.groups_mut()[0].options.lr = 0.25;
    /// optimizer.write_rates()?;
    /// graph.replay()?;
    /// assert!(weight.tensor().item::<f32>()? < before - 0.2);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn make_capturable(&mut self) -> Result<()> {
        with_site(Site::caller(), || {
            let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
            self.groups.iter_mut().try_for_each(ParamGroup::hold_rates)
        })
    }

    /// Puts the learning rates of today where captured steps read them; steps that are not
    /// captured do so themselves.
    #[track_caller]
    pub fn write_rates(&mut self) -> Result<()> {
        with_site(Site::caller(), || {
            self.groups.iter().try_for_each(|group| write_rates(&group.options, &group.rates))
        })
    }
}

impl<O: FusedRule> ParamGroup<O> {
    /// Makes the learning rate's tensor on each device that has none yet.
    pub(super) fn hold_rates(&mut self) -> Result<()> {
        write_rates(&self.options, &self.rates)?;
        let lr = self.options.shared().lr;
        for param in &self.params {
            let device = param.parameter.tensor().device();
            if !has_rate(&self.rates, device) {
                let rate = Tensor::full(&[], lr, (DType::F32, device))?;
                self.rates.push(rate.mark_optimizer_state());
            }
        }
        Ok(())
    }
}

fn has_rate(rates: &[Tensor], device: Device) -> bool {
    rates.iter().any(|rate| rate.device() == device)
}

/// Puts today's learning rate into its tensors.
pub(super) fn write_rates<O: FusedRule>(options: &O, rates: &[Tensor]) -> Result<()> {
    let lr = options.shared().lr;
    rates.iter().try_for_each(|rate| rate.fill_(lr).map(drop))
}

/// Whether a graph captures what devices are given, asked once for parameters of one device in a
/// row.
#[derive(Default)]
pub(super) struct Captures {
    asked: Option<(Device, bool)>,
    pub(super) any: bool,
}

impl Captures {
    /// An error if a step of a parameter is captured that replays would not do again.
    pub(super) fn check<O: FusedRule>(
        &mut self,
        (options, rates): (&O, &[Tensor]),
        param: &Tensor,
        kept: &Kept,
    ) -> Result<()> {
        let device = param.device();
        let is_captured = match self.asked {
            Some((asked, is_captured)) if asked == device => is_captured,
            _ => device != Device::CPU && Stream::current(device).is_capturing(),
        };
        self.asked = Some((device, is_captured));
        self.any |= is_captured;
        let why = if !is_captured {
            return Ok(());
        } else if !has_rate(rates, device) {
            "whose learning rate is not in memory of the device; call `make_capturable()` before"
        } else if kept.fresh || !kept.has_all(options, param) {
            "which is the first, and each replay would begin anew; take one step before the capture"
        } else {
            return Ok(());
        };
        let message = format!("a graph captures a step of {}, {why}", O::NAME);
        Err(Error::invalid_argument(message).in_operation(O::NAME))
    }
}
