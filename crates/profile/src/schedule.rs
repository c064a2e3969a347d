//! Recording some steps of many: skip the first, wait, warm up, record, and again. PyTorch's
//! `schedule`.

use plimsoll_core::{Error, Result};

use crate::profile::Profile;
use crate::range::{Range, range};
use crate::recording::Recording;
use crate::session::Session;

/// What a profiler does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// It runs, and what it records is thrown away: the first steps with it on are slow.
    Warmup,
    /// It records.
    Record,
    /// It records, and the recording ends with this step.
    RecordAndSave,
}

/// Which steps are recorded.
///
/// ```
/// use plimsoll_profile::{Action, Schedule};
/// let schedule = Schedule::new(1, 1, 2)?.repeat(1);
/// let actions: Vec<Action> = (0..5).map(|step| schedule.action(step)).collect();
/// use Action::*;
/// assert_eq!(actions, [None, Warmup, Record, RecordAndSave, None]);
/// assert!(Schedule::new(1, 1, 0).is_err());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    wait: u64,
    warmup: u64,
    active: u64,
    repeat: u64,
    skip_first: u64,
}

impl Schedule {
    /// Steps to wait, to warm up and to record, over and over.
    pub fn new(wait: u64, warmup: u64, active: u64) -> Result<Schedule> {
        if active == 0 {
            return Err(Error::invalid_argument(
                "a schedule without active steps records nothing; give at least one",
            )
            .in_operation("schedule"));
        }
        Ok(Schedule { wait, warmup, active, repeat: 0, skip_first: 0 })
    }

    /// How many times; 0 is for ever.
    #[must_use]
    pub fn repeat(self, repeat: u64) -> Schedule {
        Schedule { repeat, ..self }
    }

    /// Steps before the first wait.
    #[must_use]
    pub fn skip_first(self, skip_first: u64) -> Schedule {
        Schedule { skip_first, ..self }
    }

    /// What to do in a step, from 0.
    pub fn action(&self, step: u64) -> Action {
        let Some(step) = step.checked_sub(self.skip_first) else { return Action::None };
        let cycle = self.wait + self.warmup + self.active;
        if self.repeat > 0 && step / cycle >= self.repeat {
            return Action::None;
        }
        let at = step % cycle;
        if at < self.wait {
            Action::None
        } else if at < self.wait + self.warmup {
            Action::Warmup
        } else if at + 1 < cycle {
            Action::Record
        } else {
            Action::RecordAndSave
        }
    }
}

/// A profiler that follows a schedule; `step` at the end of every step.
///
/// ```
/// use plimsoll_profile::{Profile, Schedule};
/// use plimsoll_tensor::{DType, Tensor};
/// let mut steps = Vec::new();
/// let schedule = Schedule::new(1, 0, 2)?.repeat(2);
/// let mut profiler = Profile::new().scheduled(schedule, |recording| {
///     let named = |event: &&plimsoll_profile::Event| event.name.starts_with("ProfilerStep#");
///     steps.extend(recording.events().iter().filter(named).map(|event| event.name.clone()));
/// })?;
/// for _ in 0..8 {
///     Tensor::ones(&[8], DType::F32)?.exp()?;
///     profiler.step()?;
/// }
/// drop(profiler);
/// assert_eq!(steps, ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#4", "ProfilerStep#5"]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct Scheduled<'a> {
    profile: Profile,
    schedule: Schedule,
    step: u64,
    /// The range of the present step; it ends before its session.
    range: Option<Range>,
    session: Option<Session>,
    on_ready: Box<dyn FnMut(Recording) + 'a>,
}

impl std::fmt::Debug for Scheduled<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduled").field("step", &self.step).finish_non_exhaustive()
    }
}

impl Profile {
    /// Records by a schedule; `on_ready` gets every recording.
    pub fn scheduled<'a>(
        self,
        schedule: Schedule,
        on_ready: impl FnMut(Recording) + 'a,
    ) -> Result<Scheduled<'a>> {
        let mut scheduled = Scheduled {
            profile: self,
            schedule,
            step: 0,
            range: None,
            session: None,
            on_ready: Box::new(on_ready),
        };
        scheduled.begin_step()?;
        Ok(scheduled)
    }
}

impl Scheduled<'_> {
    /// The next step begins.
    pub fn step(&mut self) -> Result<()> {
        self.end_step();
        self.step += 1;
        self.begin_step()
    }

    fn begin_step(&mut self) -> Result<()> {
        let before = self.step.checked_sub(1).map(|step| self.schedule.action(step));
        match self.schedule.action(self.step) {
            Action::None => self.session = None,
            // What was recorded while warming up is left behind.
            Action::Record | Action::RecordAndSave if before == Some(Action::Warmup) => {
                self.session = None;
                self.session = Some(self.profile.start()?);
            }
            _ if self.session.is_none() => self.session = Some(self.profile.start()?),
            _ => {}
        }
        self.range = Some(range(format!("ProfilerStep#{}", self.step)));
        Ok(())
    }

    fn end_step(&mut self) {
        self.range = None;
        if self.schedule.action(self.step) == Action::RecordAndSave {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if let Some(session) = self.session.take() {
            (self.on_ready)(session.stop());
        }
    }
}

impl Drop for Scheduled<'_> {
    /// Hands over what was recorded so far, as PyTorch's does at the end of its block.
    fn drop(&mut self) {
        self.range = None;
        let recording = [Action::Record, Action::RecordAndSave];
        if recording.contains(&self.schedule.action(self.step)) {
            self.hand_over();
        }
    }
}
