//! The threads behind a loader: they live as long as it does, sleep between epochs, and make
//! batches ahead of the consumer as far as `gate.rs` allows. What they make is `plan.rs`.
//!
//! Note [An epoch and its workers]
//! A worker takes the plan's lock, waits there until another batch may be begun, and takes the next
//! task: so tasks are begun in order, and only one worker reads a stream. It then lets go of the
//! plan and makes the batch beside the others. When the consumer leaves early, workers stop at
//! the next sample or at the gate, and leaving waits until all of them did: when the iterator is
//! gone, so is every byte of its batches.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use plimsoll_memory::Site;
use plimsoll_tensor::{Error, Result, parallel};

use crate::batch::{Batch, batch_bytes};
use crate::failure::{Place, remember_panic_lines};
use crate::gate::Gate;
use crate::plan::{Plan, Progress, Task, Turn, plan_is_lost};

/// One epoch's work.
struct Job<B> {
    plan: Mutex<Plan<B>>,
    /// The first batch's place; each worker's and batch's follow from it.
    first: Place,
}

/// What workers and consumer share.
struct Shared<B> {
    state: Mutex<State<B>>,
    /// Something happened that a worker may wait for: work, room, or the end.
    work: Condvar,
    /// Something happened that the consumer may wait for: a batch, or a worker at rest.
    made: Condvar,
}

struct State<B> {
    job: Option<Arc<Job<B>>>,
    /// Counts jobs, so that a worker takes part in each once.
    jobs: u64,
    gate: Gate,
    /// Batches that wait, by number.
    ready: BTreeMap<u64, Result<B>>,
    /// How many batches the epoch has, once that is known.
    total: Option<u64>,
    stopped: bool,
    /// Workers that take part in the job.
    busy: usize,
    closing: bool,
}

/// The threads of one loader.
pub(crate) struct Workers<B> {
    shared: Arc<Shared<B>>,
    threads: Vec<JoinHandle<()>>,
}

impl<B: Batch> Workers<B> {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> Result<Workers<B>> {
        let state = State {
            job: None,
            jobs: 0,
            gate: Gate::new(1, None),
            ready: BTreeMap::new(),
            total: None,
            stopped: false,
            busy: 0,
            closing: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            made: Condvar::new(),
        });
        let mut workers = Workers { shared, threads: Vec::new() };
        for number in 0..count {
            let shared = workers.shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("plimsoll data {number}"))
                // Kernels of a worker stay on its thread: workers are the parallelism.
                .spawn(move || parallel::with_threads(1, || shared.live(number)))
                .map_err(|cause| Error::driver("cannot start a loader's thread").because(cause))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Begins an epoch; the one before must have been left.
    pub(crate) fn begin(&self, plan: Plan<B>, gate: Gate, first: Place) {
        let mut state = self.shared.state.lock();
        state.job = Some(Arc::new(Job { plan: Mutex::new(plan), first }));
        state.jobs += 1;
        state.gate = gate;
        state.total = None;
        state.stopped = false;
        drop(state);
        self.shared.work.notify_all();
    }

    /// The next batch in order; `None` after the last.
    pub(crate) fn take(&self) -> Option<Result<B>> {
        let mut state = self.shared.state.lock();
        loop {
            let number = state.gate.next_taken();
            if let Some(batch) = state.ready.remove(&number) {
                state.gate.take();
                drop(state);
                self.shared.work.notify_all();
                return Some(batch);
            }
            if state.total.is_some_and(|total| number >= total) {
                return None;
            }
            self.shared.made.wait(&mut state);
        }
    }

    /// Ends the epoch, wherever it is, and waits until no worker has anything of it.
    pub(crate) fn leave(&self) {
        let mut state = self.shared.state.lock();
        state.stopped = true;
        let job = state.job.take();
        self.shared.work.notify_all();
        while state.busy > 0 {
            self.shared.made.wait(&mut state);
        }
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        // Batches and plan hold tensors; their memory goes back outside of the lock.
        drop((ready, job));
    }

    /// Bytes of the batches that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.shared.state.lock().gate.waiting_bytes()
    }
}

impl<B> Drop for Workers<B> {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state.lock();
            state.closing = true;
            state.stopped = true;
        }
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // Workers catch panics, so there is none to tell of.
            let _ = thread.join();
        }
    }
}

impl<B: Batch> Shared<B> {
    /// The life of worker `number`.
    fn live(&self, number: usize) {
        remember_panic_lines();
        let mut seen = 0;
        loop {
            let job = {
                let mut state = self.state.lock();
                loop {
                    if state.closing {
                        return;
                    }
                    if let Some(job) = state.job.clone().filter(|_| state.jobs != seen) {
                        seen = state.jobs;
                        state.busy += 1;
                        break job;
                    }
                    self.work.wait(&mut state);
                }
            };
            while self.make_one(&job, number) {}
            drop(job);
            self.state.lock().busy -= 1;
            self.made.notify_all();
        }
    }

    /// Makes the next batch of the job; false if there is none.
    fn make_one(&self, job: &Job<B>, worker: usize) -> bool {
        let mut plan = job.plan.lock();
        let Some(number) = self.begin_one() else { return false };
        let place = Place { worker: Some(worker), batch: job.first.batch + number, ..job.first };
        match catch_unwind(AssertUnwindSafe(|| plan.next())) {
            Ok(Some(task)) => {
                drop(plan);
                self.carry_out(task, number, place);
                true
            }
            Ok(None) => {
                // Before the plan is let go: nobody may begin another batch after the last.
                let mut state = self.state.lock();
                state.gate.take_back();
                self.end_at(&mut state, number);
                false
            }
            Err(panic) => {
                self.end_at(&mut self.state.lock(), number + 1);
                drop(plan);
                let lost = plan_is_lost(place.panicked(&*panic, None));
                self.hand_over(number, Err(lost), false);
                false
            }
        }
    }

    /// Waits until a batch may be begun; its number, or `None` at the end.
    fn begin_one(&self) -> Option<u64> {
        let mut state = self.state.lock();
        loop {
            if state.stopped || state.total.is_some() {
                return None;
            }
            if state.gate.may_begin() {
                return Some(state.gate.begin());
            }
            self.work.wait(&mut state);
        }
    }

    fn end_at(&self, state: &mut MutexGuard<'_, State<B>>, total: u64) {
        state.total = Some(total);
        self.work.notify_all();
        self.made.notify_all();
    }

    fn carry_out(&self, task: Task<B>, number: u64, place: Place) {
        let turn = WorkersTurn { shared: self, number, is_in: Cell::new(false) };
        let progress = Progress { turn: &turn, site: place.site, sample: Cell::new(None) };
        let outcome: Result<Result<Option<B>>, Box<dyn Any + Send>> =
            catch_unwind(AssertUnwindSafe(|| task(&progress)));
        let batch = match outcome {
            Ok(Ok(Some(batch))) => Ok(batch),
            Ok(Ok(None)) => return,
            Ok(Err(error)) => Err(place.failed(error, progress.sample.get())),
            Err(panic) => Err(place.panicked(&*panic, progress.sample.get())),
        };
        self.hand_over(number, batch, turn.is_in.get());
    }

    /// Puts a batch where the consumer finds it.
    fn hand_over(&self, number: u64, batch: Result<B>, is_in: bool) {
        let turn = WorkersTurn { shared: self, number, is_in: Cell::new(is_in) };
        if !is_in && !turn.let_in(Some(0)) {
            return;
        }
        let mut state = self.state.lock();
        if state.stopped {
            drop(state);
            return;
        }
        state.gate.correct(number, batch.as_ref().map_or(0, batch_bytes));
        state.ready.insert(number, batch);
        drop(state);
        self.made.notify_all();
    }
}

/// A batch's place at the gate.
struct WorkersTurn<'a, B> {
    shared: &'a Shared<B>,
    number: u64,
    is_in: Cell<bool>,
}

impl<B> Turn for WorkersTurn<'_, B> {
    fn is_stopped(&self) -> bool {
        self.shared.state.lock().stopped
    }

    fn let_in(&self, bytes: Option<usize>) -> bool {
        let mut state = self.shared.state.lock();
        loop {
            if state.stopped {
                return false;
            }
            let bytes = bytes.unwrap_or_else(|| state.gate.expected_bytes());
            if state.gate.has_room(self.number, bytes) {
                state.gate.let_in(bytes);
                self.is_in.set(true);
                drop(state);
                // The next one in order may wait for this.
                self.shared.work.notify_all();
                return true;
            }
            self.shared.work.wait(&mut state);
        }
    }
}

/// A consumer that makes its batches itself: nothing waits, and nobody stops it.
pub(crate) struct OwnTurn;

impl Turn for OwnTurn {
    fn is_stopped(&self) -> bool {
        false
    }

    fn let_in(&self, _bytes: Option<usize>) -> bool {
        true
    }
}

/// Carries a task out on the consumer's thread. Panics go through.
pub(crate) fn carry_out_here<B>(task: Task<B>, place: Place) -> Option<Result<B>> {
    let progress = Progress { turn: &OwnTurn, site: place.site, sample: Cell::new(None) };
    match task(&progress) {
        Ok(batch) => batch.map(Ok),
        Err(error) => Some(Err(place.failed(error, progress.sample.get()))),
    }
}

/// The place of an epoch's first batch.
pub(crate) fn first_place(epoch: u64, batch: u64, site: Site) -> Place {
    Place { worker: None, epoch, batch, site }
}
