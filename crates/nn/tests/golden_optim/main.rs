//! Optimizers, schedulers and the scaler beside PyTorch's, as `golden/make_optim_golden.py` wrote
//! them down: on the CPU and on a stand-in accelerator, from the start and from PyTorch's states.

mod objective;
mod optimizers;
mod scalers;
mod schedulers;
mod states;
