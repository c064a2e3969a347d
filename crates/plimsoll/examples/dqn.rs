//! Deep Q-learning: walkers on a line learn to go to their goals and to stay there.
//!
//! The replay buffer is a few tensors that are allocated once and written in place, round and
//! round: its bytes are the same in the first step and in the last. A buffer that is a list of
//! tensors grows, and keeps graphs alive if it is fed with what is still recorded. Its twin is
//! `examples/python/dqn.py`. `cargo run --release --example dqn -- --steps 400 --device cpu`

mod training_run;

use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{ArgOptions, ReduceOptions, nn, optim};
use training_run::{EachStep, Log, Options};

const DISCOUNT: f64 = 0.8;
/// How far one action goes: left, nowhere or right.
const STRIDE: f64 = 0.1;
const WALKERS: i64 = 16;
/// Transitions that are remembered, and those of a batch.
const ROWS: i64 = 2048;
const BATCH: i64 = 64;
const WIDTH: i64 = 32;

/// The last transitions, in tensors of a fixed size.
pub(crate) struct Replay {
    /// States, actions, rewards and next states.
    tables: [Tensor; 4],
    rows: i64,
    written: i64,
}

impl Replay {
    pub(crate) fn new(rows: i64, device: Device) -> Result<Replay> {
        let table = |columns: i64, dtype: DType| {
            Ok::<_, Error>(Tensor::zeros(&[rows, columns], (dtype, device))?.mark_input())
        };
        let (states, next_states) = (table(2, DType::F32)?, table(2, DType::F32)?);
        let (actions, rewards) = (table(1, DType::I64)?, table(1, DType::F32)?);
        Ok(Replay { tables: [states, actions, rewards, next_states], rows, written: 0 })
    }

    /// Puts transitions in the place of the oldest. Their number divides that of the rows.
    pub(crate) fn write(&mut self, transitions: [&Tensor; 4]) -> Result<()> {
        let (first, count) = (self.written % self.rows, transitions[0].size(0)?);
        for (table, values) in self.tables.iter().zip(transitions) {
            table.at(first..first + count)?.copy_(values)?;
        }
        self.written += count;
        Ok(())
    }

    /// Random transitions.
    pub(crate) fn sample(&self, count: i64) -> Result<[Tensor; 4]> {
        let (known, device) = (self.written.min(self.rows), self.tables[0].device());
        let chosen = Tensor::randint(0, known, &[count], (DType::I64, device))?;
        let [states, actions, rewards, next_states] = &self.tables;
        let of = |table: &Tensor| table.index_select(0, &chosen);
        Ok([of(states)?, of(actions)?, of(rewards)?, of(next_states)?])
    }
}

fn network() -> Result<nn::Sequential> {
    Ok(nn::sequential![
        nn::Linear::new(2, WIDTH)?,
        nn::ReLU::new(),
        nn::Linear::new(WIDTH, WIDTH)?,
        nn::ReLU::new(),
        nn::Linear::new(WIDTH, 3)?,
    ])
}

/// Walkers, the network of action values, and its slow copy. It never looks at a value, so it also
/// runs dry.
pub(crate) struct Training {
    device: Device,
    values: nn::Sequential,
    slow: nn::Sequential,
    optimizer: optim::Adam,
    replay: Replay,
    /// Where each walker is, and its goal.
    state: Tensor,
    /// How far each walker was from its goal after the last action.
    pub(crate) distance: Tensor,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        manual_seed(0);
        let (values, slow) = (network()?, network()?);
        values.to(device)?;
        slow.to(device)?;
        slow.load_state_dict(&values.state_dict())?;
        slow.requires_grad_(false)?;
        let options = optim::AdamOptions::new().lr(3e-3);
        let optimizer = optim::Adam::new(values.parameters(), options)?;
        let state = starts(device)?;
        let distance = Tensor::zeros(&[WALKERS, 1], (DType::F32, device))?;
        let replay = Replay::new(ROWS, device)?;
        Ok(Training { device, values, slow, optimizer, replay, state, distance })
    }

    /// One action of each walker, mostly the best one known; some start again afterwards.
    fn act(&mut self) -> Result<()> {
        let (state, column) = (self.state.clone(), [WALKERS, 1]);
        let best = self.values.call(&state)?.argmax_with(ArgOptions::from(1).keepdim(true))?;
        let any = Tensor::randint(0, 3, &column, (DType::I64, self.device))?;
        let explore = Tensor::rand(&column, (DType::F32, self.device))?.lt(0.2)?;
        let action = Tensor::where_(&explore, &any, &best)?;
        let (place, goal) = (state.at((.., ..1))?, state.at((.., 1..))?);
        let place = place.add(&action.sub(1)?.mul(STRIDE)?)?.clamp(-1.0, 1.0)?;
        let next_state = Tensor::cat(&[&place, &goal], 1)?;
        self.distance = place.sub(&goal)?.abs()?;
        self.replay.write([&state, &action, &self.distance.neg()?, &next_state])?;
        let again = Tensor::rand(&column, (DType::F32, self.device))?.lt(0.05)?;
        self.state = Tensor::where_(&again, &starts(self.device)?, &next_state)?;
        Ok(())
    }

    /// One action of each walker and one step of the network; gives its loss.
    fn step(&mut self) -> Result<Tensor> {
        no_grad(|| self.act())?;
        let [state, action, reward, next_state] = self.replay.sample(BATCH)?;
        let best = self.slow.call(&next_state)?.amax_with(ReduceOptions::from(1).keepdim(true))?;
        let target = reward.add(&best.mul(DISCOUNT)?)?;
        self.optimizer.zero_grad()?;
        let loss = self.values.call(&state)?.gather(1, &action)?.mse_loss(&target)?;
        loss.backward()?;
        self.optimizer.step()?;
        no_grad(|| {
            for (slow, fast) in self.slow.parameters().iter().zip(self.values.parameters()) {
                slow.tensor().lerp_(&fast.tensor(), 0.1)?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(loss.detach())
    }
}

/// Places and goals between -1 and 1.
fn starts(device: Device) -> Result<Tensor> {
    let places = Tensor::rand(&[WALKERS, 2], (DType::F32, device))?;
    places.mul_(2)?.sub_(1)?;
    Ok(places)
}

/// Trains for some steps, and gives what was trained.
pub(crate) fn train(device: Device, steps: u64, each: EachStep<'_>) -> Result<Training> {
    let mut training = Training::new(device)?;
    for step in 1..=steps {
        each(step, &training.step()?)?;
    }
    Ok(training)
}

/// The whole program, with the words of its command line; what it says goes to `out`.
pub(crate) fn run(words: &mut dyn Iterator<Item = String>, out: &mut dyn Write) -> Result<()> {
    let options = Options::from_words(400, words)?;
    let mut log = Log::new(options, "loss", 50, out);
    let training = train(options.device, options.steps, &mut |step, loss| log.step(step, loss))?;
    let distance = training.distance.mean()?.item::<f32>()?;
    log.end(&format!(", walkers are {distance:.3} from their goals"))
}

fn main() -> Result<()> {
    run(&mut std::env::args().skip(1), &mut std::io::stdout().lock())
}
