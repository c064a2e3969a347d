//! Kernels: the loops that touch bytes. They are handed pointers, strides and counts that dispatch has
//! checked; they never allocate and never look at a tensor.

pub mod cpu;
