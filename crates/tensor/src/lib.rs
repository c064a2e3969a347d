//! Plimsoll's tensors: storage, dispatch, operations and autograd.
