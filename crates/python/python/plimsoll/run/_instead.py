"""What to use instead of parts of PyTorch that Plimsoll does not have, by their full names. A name stands for
everything below it."""

from __future__ import annotations

INSTEAD = {
    "torch.vmap": "write the batch as a dimension of its own, or loop and torch.stack the results",
    "torch.func": "torch.func.functional_call and torch.autograd.functional are there",
    "torch.distributed": "one process can use several devices: torch.nn.DataParallel",
    "torch.multiprocessing": "Python's multiprocessing works; torch.utils.data.DataLoader has workers",
    "torch.nn.parallel.DistributedDataParallel": "torch.nn.DataParallel uses several devices from one process",
    "torch.fft": "there are no complex numbers; torch.nn.functional.conv1d convolves",
    "torch.stft": "there are no complex numbers; torch.Tensor.unfold gives the frames",
    "torch.istft": "there are no complex numbers; torch.nn.functional.fold adds frames up",
    "torch.complex": "there are no complex numbers; keep the two parts in a last dimension of 2",
    "torch.complex64": "there are no complex numbers; keep the two parts in a last dimension of 2",
    "torch.complex128": "there are no complex numbers; keep the two parts in a last dimension of 2",
    "torch.view_as_complex": "there are no complex numbers; keep the two parts in a last dimension of 2",
    "torch.polar": "there are no complex numbers; torch.cos and torch.sin give the two parts",
    "torch.sparse": "tensors are dense; torch.nn.Embedding gives dense gradients",
    "torch.sparse_coo_tensor": "tensors are dense; index_add_ and scatter_add_ add by index",
    "torch.sparse_csr_tensor": "tensors are dense; index_add_ and scatter_add_ add by index",
    "torch.jit": "call the module or function itself",
    "torch.fx": "forward hooks (register_forward_hook) see each module's calls",
    "torch.export": "torch.save keeps a state_dict; call the module itself",
    "torch.onnx": "torch.save keeps a state_dict",
    "torch.quantization": "torch.bfloat16 and torch.float16 halve the bytes",
    "torch.ao": "torch.nn.utils.prune prunes; torch.bfloat16 and torch.float16 halve the bytes",
    "torch.utils.tensorboard": "torch.profiler writes traces; print or log the numbers",
    "torch.utils.cpp_extension": "torch.autograd.Function is an operation of your own, in Python",
    "torch.hub": "torch.load reads files that are there",
    "torch.mps": "devices are cpu and cuda",
    "torch.xpu": "devices are cpu and cuda",
    "torch.library": "torch.autograd.Function is an operation of your own, in Python",
    "torch.ops": "call the functions of torch and torch.nn.functional",
    "torch._C": "this is PyTorch's compiled part; call the public names",
    "torch._dynamo": "nothing is compiled here; torch.compile gives its argument back",
    "torch._inductor": "nothing is compiled here; torch.compile gives its argument back",
}
