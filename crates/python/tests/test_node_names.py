"""Names and classes of graph nodes, and what they saved. All names are PyTorch's (2.15)."""

import plimsoll as pm
import pytest
from plimsoll.autograd import graph
from plimsoll.nn import functional as F


def leaf(*shape):
    return pm.ones(shape, requires_grad=True)


X, CLASSES = leaf(3, 4), pm.tensor([0, 1, 2])
IMAGE, VOLUME = leaf(1, 1, 4, 4), leaf(1, 1, 4, 4, 4)

NAMES = [
    ("AddBackward0", lambda: X + 1),
    ("MulBackward0", lambda: X * X),
    ("RsubBackward1", lambda: 1 - X),
    ("MulBackward0", lambda: 1 / X),
    ("DivBackward0", lambda: X / 2),
    ("DivBackward2", lambda: pm.div(X, 2, rounding_mode="floor")),
    ("PowBackward0", lambda: X**2),
    ("PowBackward1", lambda: X**X),
    ("PowBackward2", lambda: 2**X),
    ("RemainderBackward0", lambda: X % 2),
    ("FmodBackward1", lambda: pm.fmod(X, X.detach())),
    ("Log1PBackward0", lambda: X.log1p()),
    ("SumBackward0", lambda: X.sum()),
    ("SumBackward1", lambda: X.sum(0)),
    ("SumBackward1", lambda: X.sum(0, keepdim=True)),
    ("MeanBackward0", lambda: X.mean()),
    ("MeanBackward1", lambda: X.mean(1)),
    ("ProdBackward1", lambda: X.prod(1)),
    ("SqueezeBackward0", lambda: leaf(1, 3).squeeze()),
    ("SqueezeBackward1", lambda: leaf(1, 3).squeeze(0)),
    ("SqueezeBackward2", lambda: leaf(1, 1, 3).squeeze((0, 1))),
    ("SliceBackward0", lambda: X.narrow(0, 0, 1)),
    ("SelectBackward0", lambda: X[0]),
    ("ClampBackward1", lambda: X.clamp(0, 1)),
    ("ClampMinBackward0", lambda: X.clamp_min(0)),
    ("ClampMinBackward1", lambda: X.clamp_min(pm.zeros(3, 4))),
    ("MmBackward0", lambda: X @ leaf(4, 5)),
    ("MvBackward0", lambda: X @ leaf(4)),
    ("DotBackward0", lambda: leaf(4) @ leaf(4)),
    ("UnsafeViewBackward0", lambda: leaf(2, 3, 4) @ leaf(2, 4, 5)),
    ("AddmmBackward0", lambda: F.linear(X, leaf(5, 4), leaf(5))),
    ("NllLossBackward0", lambda: F.cross_entropy(X, CLASSES)),
    ("GeluBackward0", lambda: F.gelu(X, approximate="tanh")),
    ("NativeLayerNormBackward0", lambda: F.layer_norm(X, [4])),
    ("NativeBatchNormBackward0", lambda: F.batch_norm(X, None, None, training=True)),
    ("ConvolutionBackward0", lambda: F.conv2d(IMAGE, leaf(1, 1, 2, 2))),
    ("ConvolutionBackward0", lambda: F.conv_transpose2d(IMAGE, leaf(1, 1, 2, 2))),
    ("MaxPool2DWithIndicesBackward0", lambda: F.max_pool2d(IMAGE, 2)),
    ("AvgPool2DBackward0", lambda: F.avg_pool2d(IMAGE, 2)),
    ("UpsampleNearest2DBackward0", lambda: F.interpolate(IMAGE, scale_factor=2)),
    ("UpsampleBilinear2DBackward0", lambda: F.interpolate(IMAGE, scale_factor=2, mode="bilinear")),
    ("UpsampleTrilinear3DBackward0", lambda: F.interpolate(VOLUME, scale_factor=2, mode="trilinear")),
    ("AdaptiveAvgPool2DBackward0", lambda: F.interpolate(IMAGE, scale_factor=0.5, mode="area")),
    ("ConstantPadNdBackward0", lambda: F.pad(IMAGE, (1, 1))),
    ("ReflectionPad2DBackward0", lambda: F.pad(IMAGE, (1, 1, 1, 1), mode="reflect")),
    ("ReplicationPad3DBackward0", lambda: F.pad(VOLUME, (1, 1, 1, 1, 1, 1), mode="replicate")),
    ("GridSampler2DBackward0", lambda: F.grid_sample(IMAGE, leaf(1, 2, 2, 2), align_corners=False)),
    ("ScaledDotProductFlashAttentionForCpuBackward0", lambda: F.scaled_dot_product_attention(*[leaf(1, 2, 3, 4)] * 3)),
    ("LinalgInvExBackward0", lambda: pm.linalg.inv(pm.eye(2).requires_grad_())),
]


@pytest.mark.parametrize(("name", "program"), NAMES)
def test_names_are_pytorchs(name, program):
    node = program().grad_fn
    assert node.name() == type(node).__name__ == name
    assert isinstance(node, graph.Node) and repr(node).startswith(f"<{name} object at 0x")


def test_a_class_for_each_name():
    first, second = (X * 2).grad_fn, (X * 3).grad_fn
    assert type(first) is type(second) and type(first) is not type((X + 1).grad_fn)
    accumulate = first.next_functions[0][0]
    assert accumulate.name() == "torch::autograd::AccumulateGrad" and type(accumulate).__name__ == "AccumulateGrad"
    with pytest.raises(TypeError):
        type(first)()
    with pytest.raises(AttributeError):
        first.note = 3


def test_nodes_are_numbered_in_the_order_of_creation():
    first, second = X.exp(), X.sin()
    assert first.grad_fn._sequence_nr() < second.grad_fn._sequence_nr() < (first * second).grad_fn._sequence_nr()
    # Backward comes to leaves last, as in PyTorch.
    assert first.grad_fn.next_functions[0][0]._sequence_nr() == 2**64 - 1


def test_what_a_node_saved():
    y = X.detach().requires_grad_()
    result = y.exp()
    assert result.grad_fn._saved_result.equal(result)
    box = result.grad_fn._raw_saved_result
    assert isinstance(box, graph.SavedTensor) and box.data.equal(result)
    product = y * result
    assert product.grad_fn._saved_self is y and product.grad_fn._raw_saved_other.data.equal(result)
    with pytest.raises(NotImplementedError, match="saved_tensors_hooks"):
        box.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(AttributeError, match="_raw_saved_nothing"):
        product.grad_fn._raw_saved_nothing
    product.sum().backward()
    with pytest.raises(RuntimeError):
        product.grad_fn._raw_saved_self
