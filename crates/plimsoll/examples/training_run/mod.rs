//! What the training programs beside this folder say, and how they are started: their two options,
//! the losses on the way, and at the end where the memory was, and whether it stood still. What
//! they train is in their own files.

use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{device, memory};

/// The step after which nothing may grow any more.
const SETTLED: u64 = 100;

/// Is told the number of each step, from 1, and what it gave: the loss, on the device.
pub(crate) type EachStep<'a> = &'a mut dyn FnMut(u64, &Tensor) -> Result<()>;

/// Where a program trains, and for how long: `--device cuda:0 --steps 500`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) device: Device,
    pub(crate) steps: u64,
}

impl Options {
    /// Reads the words of a command line; what they do not say is the CPU, and `steps`.
    pub(crate) fn from_words(
        mut steps: u64,
        words: &mut dyn Iterator<Item = String>,
    ) -> Result<Options> {
        let usage = "use --steps NUMBER and --device NAME (cpu, cuda:0)";
        let refused = |what: String| Error::invalid_argument(format!("{what}: {usage}"));
        let mut place = "cpu".to_string();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| refused(format!("{word} needs a value")));
            match word.as_str() {
                "--steps" => {
                    let text = value()?;
                    let number = text.parse().ok().filter(|&number| number > 0);
                    steps = number.ok_or_else(|| {
                        refused(format!("`{text}` is not a number of steps above 0"))
                    })?;
                }
                "--device" => place = value()?,
                _ => return Err(refused(format!("`{word}` is no option"))),
            }
        }
        // On the CPU a device of its own, so that nobody else's bytes are counted.
        let device = match place.as_str() {
            "cpu" => device::private_cpu(&Default::default())?,
            other => device::named(other)?,
        };
        Ok(Options { device, steps })
    }
}

/// Writes losses down while a program trains, and its memory when it is done.
pub(crate) struct Log<'a> {
    options: Options,
    /// What the losses are called.
    name: &'static str,
    /// How many steps there are from one line to the next.
    every: u64,
    first: f32,
    last: f32,
    /// The bytes in use after the step after which nothing may grow.
    settled_bytes: Option<usize>,
    end_bytes: usize,
    out: &'a mut dyn Write,
}

impl<'a> Log<'a> {
    pub(crate) fn new(
        options: Options,
        name: &'static str,
        every: u64,
        out: &'a mut dyn Write,
    ) -> Log<'a> {
        let (first, last) = (f32::NAN, f32::NAN);
        Log { options, name, every, first, last, settled_bytes: None, end_bytes: 0, out }
    }

    /// Takes a step's loss as a number: the tensor would keep its memory.
    pub(crate) fn step(&mut self, step: u64, loss: &Tensor) -> Result<()> {
        self.last = loss.item::<f32>()?;
        if step == 1 {
            self.first = self.last;
        }
        if step % self.every == 1 {
            writeln!(self.out, "step {step:5}  {} {:.4}", self.name, self.last)?;
        }
        self.end_bytes = memory::memory_allocated(self.options.device);
        if step == SETTLED {
            self.settled_bytes = Some(self.end_bytes);
        }
        Ok(())
    }

    /// The first loss and the last with what else is to be said, and where memory was at the peak.
    ///
    /// # Errors
    /// If more or less memory is in use than after step 100.
    pub(crate) fn end(self, more: &str) -> Result<()> {
        let Options { device, steps } = self.options;
        writeln!(self.out, "{} {:.4} -> {:.4}{more}\n", self.name, self.first, self.last)?;
        write!(self.out, "{}", memory::memory_report(device))?;
        let Some(settled) = self.settled_bytes else { return Ok(()) };
        let now = self.end_bytes;
        writeln!(self.out, "\nin use after step {SETTLED}: {settled} bytes, after {steps}: {now}")?;
        if settled != now {
            let why = format!("{device} held {settled} bytes after step {SETTLED} and {now} now");
            return Err(Error::invalid_argument(why));
        }
        Ok(())
    }
}
