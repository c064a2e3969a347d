"""Writes `layers.json`: PyTorch's modules with their states, results, gradients and texts.

Run with PyTorch: `python crates/nn/tests/golden/make_golden.py`. Everything is float64; a case's name is the expression
that makes the module. The loss is the sum of the results times cos(0), cos(1), ..., so that no gradient is even.
"""

import json
import pathlib

import torch
from torch import nn

# What makes the module, and what goes in: a list of sizes is drawn from a normal distribution, ("i", sizes, n) are
# whole numbers below n, ("l", sizes, n) labels below n or -1, ("p", sizes) probabilities from 0 to 1, ("s", sizes) 1 and -1.
X = [2, 4, 6]
IMAGE = [2, 4, 6, 5]
VOLUME = [1, 2, 4, 5, 4]
# A call with sequences of these lengths: packed results, the same padded, and last states are written down.
PACKED = " of packed sequences"
LENGTHS = [3, 5, 2, 5]
CASES = [
    ("Linear(3, 2)", [[5, 3]]),
    ("Linear(3, 2, bias=False)", [[2, 5, 3]]),
    ("Linear(6, 2)", [X]),
    ("Bilinear(3, 4, 2)", [[5, 3], [5, 4]]),
    ("Identity()", [X]),
    *((f"{name}()", [X]) for name in (
        "ReLU", "ReLU6", "Hardtanh", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU", "CELU", "SELU",
        "GLU", "GELU", "Hardshrink", "Softshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softsign", "Tanhshrink", "PReLU",
    )),
    ("GELU('tanh')", [X]),
    ("PReLU(4)", [X]),
    ("Threshold(0.1, 20.0)", [X]),
    ("RReLU().eval()", [X]),
    ("Softmin(1)", [X]),
    ("Softmax(1)", [X]),
    ("LogSoftmax(-1)", [X]),
    ("Softmax2d()", [IMAGE]),
    ("Conv1d(4, 6, 3, padding=1, groups=2)", [X]),
    ("Conv2d(4, 6, (3, 2), stride=2, padding='valid', dilation=(1, 2))", [IMAGE]),
    ("Conv2d(4, 2, 3, padding=1, padding_mode='reflect', bias=False)", [IMAGE]),
    ("Conv2d(4, 2, 3, padding='same', padding_mode='circular')", [IMAGE]),
    ("Conv3d(2, 2, 2)", [VOLUME]),
    ("ConvTranspose1d(4, 2, 3, stride=2, output_padding=1)", [X]),
    ("ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)", [IMAGE]),
    ("ConvTranspose3d(2, 2, 2)", [VOLUME]),
    ("LayerNorm(6)", [X]),
    ("LayerNorm((4, 6), eps=1e-3, bias=False)", [X]),
    ("RMSNorm(6)", [X]),
    ("RMSNorm((4, 6), eps=1e-3, elementwise_affine=False)", [X]),
    ("GroupNorm(2, 4)", [IMAGE]),
    ("LocalResponseNorm(3)", [X]),
    ("BatchNorm1d(4)", [X]),
    ("BatchNorm1d(4, momentum=None)", [X]),
    ("BatchNorm2d(4, affine=False)", [IMAGE]),
    ("BatchNorm2d(4).eval()", [IMAGE]),
    ("BatchNorm3d(2, track_running_stats=False)", [VOLUME]),
    ("InstanceNorm1d(4)", [X]),
    ("InstanceNorm2d(4, affine=True, track_running_stats=True)", [IMAGE]),
    ("InstanceNorm3d(2)", [VOLUME]),
    ("Embedding(7, 3, padding_idx=-2)", [("i", [4, 2], 7)]),
    ("EmbeddingBag(7, 3)", [("i", [4, 3], 7)]),
    ("EmbeddingBag(7, 3, mode='sum', padding_idx=1)", [("i", [4, 3], 7)]),
    ("Dropout(0.3).eval()", [X]),
    ("MaxPool1d(2)", [X]),
    ("MaxPool2d(3, stride=2, padding=1)", [IMAGE]),
    ("MaxPool3d((2, 3, 2))", [VOLUME]),
    ("AvgPool1d(2, padding=1)", [X]),
    ("AvgPool2d(3, stride=2, padding=1, count_include_pad=False)", [IMAGE]),
    ("AvgPool3d(2)", [VOLUME]),
    ("LPPool1d(2.0, 2)", [X]),
    ("LPPool2d(2.0, 3, stride=1)", [IMAGE]),
    ("AdaptiveAvgPool1d(4)", [X]),
    ("AdaptiveAvgPool2d((3, 2))", [IMAGE]),
    ("AdaptiveAvgPool3d(2)", [VOLUME]),
    ("AdaptiveMaxPool1d(4)", [X]),
    ("AdaptiveMaxPool2d(3)", [IMAGE]),
    ("AdaptiveMaxPool3d(2)", [VOLUME]),
    ("ZeroPad1d(2)", [X]),
    ("ZeroPad2d((1, 2, 0, 3))", [IMAGE]),
    ("ReflectionPad1d(2)", [X]),
    ("ReflectionPad2d((1, 2, 0, 3))", [IMAGE]),
    ("ReplicationPad2d(1)", [IMAGE]),
    ("ReplicationPad3d(1)", [VOLUME]),
    ("CircularPad2d(2)", [IMAGE]),
    ("ConstantPad2d(1, 3.5)", [IMAGE]),
    ("Flatten()", [IMAGE]),
    ("Unflatten(1, (2, 2))", [X]),
    ("PixelShuffle(2)", [IMAGE]),
    ("PixelUnshuffle(2)", [[1, 2, 4, 6]]),
    ("ChannelShuffle(2)", [IMAGE]),
    ("Unfold((2, 3), padding=1, stride=2)", [IMAGE]),
    ("Fold((4, 5), (2, 2))", [[1, 8, 12]]),
    ("Upsample(scale_factor=2)", [IMAGE]),
    ("Upsample(size=(3, 9), mode='bilinear', align_corners=True)", [IMAGE]),
    ("CosineSimilarity()", [X, X]),
    ("PairwiseDistance(p=3.0)", [X, X]),
    ("MSELoss()", [X, X]),
    ("L1Loss(reduction='sum')", [X, X]),
    ("SmoothL1Loss(beta=0.5)", [X, X]),
    ("HuberLoss(delta=0.5)", [X, X]),
    ("BCELoss()", [("p", X), ("p", X)]),
    ("BCEWithLogitsLoss(pos_weight=torch.tensor([0.5, 1, 2, 3, 4, 5]))", [X, ("p", X)]),
    ("NLLLoss(reduction='none')", [[5, 3], ("i", [5], 3)]),
    ("CrossEntropyLoss()", [[5, 3], ("i", [5], 3)]),
    ("CrossEntropyLoss(weight=torch.tensor([1.0, 2, 3]), label_smoothing=0.1, ignore_index=1)", [[5, 3], ("i", [5], 3)]),
    ("KLDivLoss(reduction='batchmean')", [X, ("p", X)]),
    ("KLDivLoss(reduction='sum', log_target=True)", [X, X]),
    ("PoissonNLLLoss(full=True)", [X, ("p", X)]),
    ("GaussianNLLLoss(full=True)", [X, X, ("p", X)]),
    ("SoftMarginLoss()", [X, ("s", X)]),
    ("HingeEmbeddingLoss(margin=0.5)", [X, ("s", X)]),
    ("MarginRankingLoss(margin=0.1)", [[5], [5], ("s", [5])]),
    ("CosineEmbeddingLoss(margin=0.1)", [[5, 3], [5, 3], ("s", [5])]),
    ("TripletMarginLoss(swap=True)", [[5, 3], [5, 3], [5, 3]]),
    ("MultiLabelSoftMarginLoss()", [[5, 3], ("p", [5, 3])]),
    ("MultiMarginLoss(p=2)", [[5, 3], ("i", [5], 3)]),
    ("RNN(3, 4, nonlinearity='relu')", [[5, 2, 3]]),
    ("RNN(3, 4, bidirectional=True, batch_first=True)", [[2, 5, 3]]),
    ("GRU(3, 4, num_layers=2)", [[5, 2, 3]]),
    ("LSTM(3, 4, num_layers=2, bidirectional=True)", [[5, 2, 3]]),
    ("LSTM(3, 4, bias=False)", [[5, 3]]),
    ("RNNCell(3, 4)", [[2, 3]]),
    ("GRUCell(3, 4)", [[2, 3]]),
    ("LSTMCell(3, 4)", [[2, 3]]),
    ("MultiheadAttention(8, 2)", [[5, 3, 8], [4, 3, 8], [4, 3, 8]]),
    ("MultiheadAttention(8, 2, kdim=6, vdim=5, add_bias_kv=True, add_zero_attn=True, batch_first=True)",
     [[3, 5, 8], [3, 4, 6], [3, 4, 5]]),
    ("TransformerEncoderLayer(8, 2, 16, dropout=0.0)", [[5, 3, 8]]),
    ("TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation='gelu', batch_first=True, norm_first=True)", [[3, 5, 8]]),
    ("TransformerDecoderLayer(8, 2, 16, dropout=0.0)", [[5, 3, 8], [4, 3, 8]]),
    ("Transformer(8, 2, 1, 2, 16, dropout=0.0)", [[5, 3, 8], [4, 3, 8]]),
    ("utils.parametrizations.weight_norm(nn.Linear(3, 2))", [[5, 3]]),
    ("utils.parametrizations.weight_norm(nn.Conv2d(4, 2, 3), dim=None)", [IMAGE]),
    ("utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 2, 3), dim=1)", [X]),
    ("utils.parametrizations.weight_norm(nn.GRU(3, 4), 'weight_hh_l0')", [[5, 2, 3]]),
    ("utils.parametrizations.spectral_norm(nn.Linear(3, 2))", [[5, 3]]),
    ("utils.parametrizations.spectral_norm(nn.ConvTranspose2d(4, 2, 3), n_power_iterations=3)", [IMAGE]),
    ("utils.parametrizations.spectral_norm(nn.Conv1d(4, 2, 3)).eval()", [X]),
    ("utils.parametrizations.orthogonal(nn.Linear(3, 3))", [[5, 3]]),
    ("utils.parametrizations.orthogonal(nn.Linear(3, 5), orthogonal_map='cayley')", [[5, 3]]),
    ("utils.parametrizations.orthogonal(nn.Linear(5, 3), use_trivialization=False)", [[5, 5]]),
    ("LSTM(3, 4, proj_size=2)", [[5, 2, 3]]),
    ("LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True, batch_first=True)", [[2, 5, 3]]),
    (f"LSTM(3, 4, num_layers=2, bidirectional=True){PACKED}", [[5, 4, 3]]),
    (f"LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True){PACKED}", [[5, 4, 3]]),
    (f"GRU(3, 4, bidirectional=True){PACKED}", [[5, 4, 3]]),
    (f"RNN(3, 4){PACKED}", [[5, 4, 3], [1, 4, 4]]),
    ("AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True)", [[9, 8], ("i", [9], 20)]),
    ("LinearCrossEntropyLoss(3, 5)", [[6, 3], ("i", [6], 5)]),
    ("LinearCrossEntropyLoss(3, 5, bias=True, label_smoothing=0.1)", [[6, 3], ("i", [6], 5)]),
    ("MultiLabelMarginLoss()", [[5, 4], ("l", [5, 4], 4)]),
    ("TripletMarginWithDistanceLoss(swap=True)", [[5, 3], [5, 3], [5, 3]]),
    ("UpsamplingNearest2d(scale_factor=2)", [IMAGE]),
    ("UpsamplingBilinear2d(size=(3, 9))", [IMAGE]),
    ("CrossMapLRN2d(9, alpha=0.1, k=2.0)", [IMAGE]),
    ("FractionalMaxPool2d(2, output_size=(3, 2), _random_samples=torch.full((2, 4, 2), 0.3))", [IMAGE]),
    ("FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.full((1, 2, 3), 0.6))", [VOLUME]),
]


def drawn(what):
    if isinstance(what, list):
        return torch.randn(what, dtype=torch.float64).requires_grad_(True)
    kind, sizes = what[:2]
    if kind == "i":
        return torch.randint(0, what[2], sizes)
    if kind == "l":
        return torch.randint(-1, what[2], sizes)
    if kind == "s":
        return torch.randint(0, 2, sizes).double() * 2 - 1
    return torch.rand(sizes, dtype=torch.float64) * 0.9 + 0.05


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in value if part is not None for tensor in tensors(part)]


def told(tensor):
    if tensor is None:
        return None
    tensor = tensor.detach()
    if not tensor.dtype.is_floating_point:
        return {"shape": list(tensor.shape), "whole": tensor.flatten().tolist()}
    return {"shape": list(tensor.shape), "data": [float(f"{x:.12g}") for x in tensor.flatten().tolist()]}


def recorded(name, inputs):
    made = eval(f"nn.{name.removesuffix(PACKED)}").double()
    with torch.no_grad():
        for parameter in made.parameters():
            # Norms start with ones and zeros, which would hide what is done with them.
            parameter.add_(0.1 * torch.randn_like(parameter))
    given = [drawn(what) for what in inputs]
    before = {key: told(value) for key, value in made.state_dict().items()}
    if name.endswith(PACKED):
        packed = nn.utils.rnn.pack_padded_sequence(given[0], LENGTHS, enforce_sorted=False)
        all, *states = made(packed, *given[1:])
        results = [all.data, nn.utils.rnn.pad_packed_sequence(all)[0], *tensors(states)]
    else:
        results = tensors(made(*given, **({"need_weights": True} if name.startswith("Multihead") else {})))
    loss = sum((x * torch.arange(x.numel(), dtype=torch.float64).cos().reshape(x.shape)).sum() for x in results)
    if loss.requires_grad:
        loss.backward()
    after = {key: told(value) for key, value in made.named_buffers()}
    return {
        "name": name,
        "text": repr(made),
        "inputs": [told(x) for x in given],
        "state": before,
        "results": [told(x) for x in results],
        "gradients": {key: told(value.grad) for key, value in made.named_parameters()},
        "input_gradients": [told(x.grad) for x in given],
        "buffers": after,
    }


def main():
    cases = []
    for at, (name, inputs) in enumerate(CASES):
        torch.manual_seed(at)
        cases.append(recorded(name, inputs))
    path = pathlib.Path(__file__).parent / "layers.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases, {path.stat().st_size} bytes")


main()
