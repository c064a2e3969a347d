"""Writes `optimizers.json`, `schedulers.json` and `scalers.json`: PyTorch's optimizers over 30 steps, its schedulers over
60, and its scaler over steps some of which are not finite; with their states in the middle.

Run with PyTorch: `python crates/nn/tests/golden/make_optim_golden.py`. Everything is float64 on the CPU; a case's name is
the expression that makes it. `tests/optim_golden.rs` has the same objective and the same expressions in Rust.
PyTorch has no Lion: its steps are written out here, as its paper has them.
"""

import json
import math
import pathlib

import torch
from torch import optim
from torch.optim import lr_scheduler as s

HERE = pathlib.Path(__file__).parent
SHAPES = [[3, 2], [4]]
KEPT = (1, 2, 10, 30)
STATE_AT = 10

OPTIMIZERS = [
    "SGD(lr=0.05)",
    "SGD(lr=0.05, momentum=0.9)",
    "SGD(lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.1)",
    "SGD(lr=0.05, momentum=0.9, nesterov=True)",
    "SGD(lr=0.05, weight_decay=0.1, maximize=True)",
    "Adam(lr=0.05)",
    "Adam(lr=0.05, betas=(0.8, 0.99), eps=1e-06, weight_decay=0.1)",
    "Adam(lr=0.05, amsgrad=True)",
    "Adam(lr=0.05, maximize=True)",
    "Adam(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)",
    "AdamW(lr=0.05)",
    "AdamW(lr=0.05, weight_decay=0.2, amsgrad=True)",
    "AdamW(lr=0.05, maximize=True)",
    "NAdam(lr=0.05)",
    "NAdam(lr=0.05, weight_decay=0.1, momentum_decay=0.01)",
    "NAdam(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)",
    "NAdam(lr=0.05, maximize=True)",
    "RAdam(lr=0.05)",
    "RAdam(lr=0.05, betas=(0.8, 0.9), weight_decay=0.1)",
    "RAdam(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)",
    "RAdam(lr=0.05, maximize=True)",
    "Adagrad(lr=0.1)",
    "Adagrad(lr=0.1, lr_decay=0.1, weight_decay=0.1)",
    "Adagrad(lr=0.1, initial_accumulator_value=0.5, maximize=True)",
    "Adadelta()",
    "Adadelta(lr=0.5, rho=0.8, weight_decay=0.1)",
    "Adadelta(maximize=True)",
    "RMSprop(lr=0.02)",
    "RMSprop(lr=0.02, momentum=0.9, weight_decay=0.1)",
    "RMSprop(lr=0.02, centered=True)",
    "RMSprop(lr=0.02, momentum=0.9, centered=True, maximize=True)",
    "Rprop(lr=0.05)",
    "Rprop(lr=0.05, etas=(0.4, 1.3), step_sizes=(0.001, 0.2))",
    "Rprop(lr=0.05, maximize=True)",
    "Adamax(lr=0.05)",
    "Adamax(lr=0.05, betas=(0.8, 0.99), weight_decay=0.1)",
    "Adamax(lr=0.05, maximize=True)",
    "Lion(lr=0.02)",
    "Lion(lr=0.02, betas=(0.8, 0.9), weight_decay=0.1)",
    "Lion(lr=0.02, maximize=True)",
    "LBFGS(lr=0.1, max_iter=3)",
    "LBFGS(max_iter=4, history_size=2, line_search_fn='strong_wolfe')",
]

# Each with the optimizer it is for.
SGD = "SGD(lr=0.5, momentum=0.9)"
SCHEDULERS = [
    ("StepLR(o, 7, 0.5)", SGD),
    ("MultiStepLR(o, [5, 20, 20, 41], 0.3)", SGD),
    ("ConstantLR(o, 0.25, 9)", SGD),
    ("LinearLR(o, 0.2, 0.9, 25)", SGD),
    ("ExponentialLR(o, 0.93)", SGD),
    ("CosineAnnealingLR(o, 13, 0.01)", SGD),
    ("CosineAnnealingWarmRestarts(o, 6, 2, 0.02)", SGD),
    ("CosineAnnealingWarmRestarts(o, 9)", SGD),
    ("PolynomialLR(o, 40, 2.0)", SGD),
    ("OneCycleLR(o, 0.8, total_steps=70)", SGD),
    ("OneCycleLR(o, 0.8, total_steps=70, three_phase=True, anneal_strategy='linear', pct_start=0.25)", "Adam(lr=0.5)"),
    ("CyclicLR(o, 0.1, 0.6, step_size_up=8)", SGD),
    ("CyclicLR(o, 0.1, 0.6, step_size_up=4, step_size_down=9, mode='triangular2')", "Adam(lr=0.5)"),
    ("CyclicLR(o, 0.1, 0.6, step_size_up=8, mode='exp_range', gamma=0.97, cycle_momentum=False)", SGD),
    ("LambdaLR(o, lambda epoch: 0.95**epoch)", SGD),
    ("MultiplicativeLR(o, lambda epoch: 1 - 1 / (epoch + 3))", SGD),
    ("SequentialLR(o, [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 10)], [8, 30])", SGD),
    ("SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 10), s.CosineAnnealingWarmRestarts(o, 7, 2)], [12])", SGD),
    ("ChainedScheduler([s.ConstantLR(o, 0.1, 15), s.ExponentialLR(o, 0.97), s.StepLR(o, 11, 0.5)])", SGD),
    ("swa_utils.SWALR(o, 0.03, 12)", SGD),
    ("swa_utils.SWALR(o, 0.9, 5, 'linear')", SGD),
    ("ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=1)", SGD),
    ("ReduceLROnPlateau(o, mode='max', patience=1, factor=0.3, threshold=0.2, threshold_mode='abs', min_lr=0.01)", SGD),
]


class Lion:
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        self.params, self.lr, self.betas, self.decay, self.maximize = params, lr, betas, weight_decay, maximize
        self.means = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.params, self.means):
            g = -p.grad if self.maximize else p.grad
            p.mul_(1 - self.lr * self.decay)
            p.sub_(self.lr * torch.sign(self.betas[0] * m + (1 - self.betas[0]) * g))
            m.copy_(self.betas[1] * m + (1 - self.betas[1]) * g)

    def state_dict(self):
        return None


def params():
    made = []
    for at, shape in enumerate(SHAPES):
        count = math.prod(shape)
        values = [math.sin(i + 1 + at) for i in range(count)]
        made.append(torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_(True))
    return made


def objective(all_params):
    loss = 0
    for at, p in enumerate(all_params):
        i = torch.arange(p.numel(), dtype=torch.float64).reshape(p.shape)
        loss = loss + ((0.5 + 0.25 * (i + at).cos()) * (p - (2 * i + at).sin()) ** 2 + 0.3 * (3 * p).cos()).sum()
    return loss


def rounded(x):
    return float(f"{x:.13g}") if math.isfinite(x) else None


def told(value):
    """A state as JSON has it: tensors as objects, what is not finite as nothing."""
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "data": [rounded(x) for x in value.detach().double().flatten().tolist()]}
    if isinstance(value, dict):
        return {str(key): told(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(one) for one in value]
    if isinstance(value, float):
        return rounded(value)
    return value if isinstance(value, (bool, int, str)) or value is None else None


def made(name, all_params):
    kind, arguments = name.split("(", 1)
    kinds = {"Lion": Lion}
    return eval(f"kind(all_params, {arguments}", {"kind": kinds.get(kind) or getattr(optim, kind), "all_params": all_params})


def optimizer_case(name):
    all_params = params()
    optimizer = made(name, all_params)
    case = {"name": name, "values": {}}
    for step in range(1, 31):

        def closure():
            for p in all_params:
                p.grad = None
            loss = objective(all_params)
            loss.backward()
            return loss

        if name.startswith("LBFGS"):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        if step in KEPT:
            case["values"][str(step)] = [rounded(x) for p in all_params for x in p.detach().flatten().tolist()]
        if step == STATE_AT:
            case["state"] = told(optimizer.state_dict())
    return case


def momentum_of(optimizer):
    group = optimizer.param_groups[0]
    return group["betas"][0] if "betas" in group else group["momentum"]


def measure(step):
    """Falls, and stays for a while every now and then."""
    return math.exp(-(step // 6) / 3) + 0.01 * math.sin(step)


def scheduler_case(name, of):
    optimizer = made(of, params())
    where = {"o": optimizer, "s": s, "swa_utils": optim.swa_utils}
    scheduler = eval(name if name.startswith("swa_utils") else f"s.{name}", where)
    rates, momenta = [optimizer.param_groups[0]["lr"]], [momentum_of(optimizer)]
    case = {"name": name, "optimizer": of}
    for step in range(60):
        optimizer.step()
        if name.startswith("ReduceLROnPlateau"):
            scheduler.step(measure(step))
        else:
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        momenta.append(momentum_of(optimizer))
        if step == 19:
            case["state"] = told(scheduler.state_dict())
            case["optimizer_state"] = told(optimizer.state_dict())
    # All digits: they are to be the same.
    return {**case, "rates": rates, **({"momenta": momenta} if len(set(momenta)) > 1 else {})}


# What the loss is multiplied by at each step, so that gradients become what no step may take.
FACTORS = [1, 1, math.inf, 1, 1, 1, 1, math.nan, math.nan, 1, 1, 1, 1, 1]
SCALERS = [(name, clip) for name in ("SGD(lr=0.05, momentum=0.9, dampening=0.5)", "Adam(lr=0.05)") for clip in (False, True)]


def scaler_case(name, clip, first_is_bad):
    all_params = params()
    optimizer = made(name, all_params)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    case = {"optimizer": name, "clip": clip, "first_is_bad": first_is_bad, "scales": [], "trackers": [], "values": []}
    for factor in ([math.inf] if first_is_bad else []) + FACTORS:
        optimizer.zero_grad()
        scaler.scale(objective(all_params) * factor).backward()
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(all_params, 0.5)
        scaler.step(optimizer)
        scaler.update()
        case["scales"].append(scaler.get_scale())
        case["trackers"].append(scaler._get_growth_tracker())
        case["values"].append([rounded(x) for p in all_params for x in p.detach().flatten().tolist()])
    return {**case, "state": scaler.state_dict()}


def write(name, cases):
    path = HERE / name
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), allow_nan=False) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{name}: {len(cases)} cases, {path.stat().st_size} bytes")


def main():
    write("optimizers.json", [optimizer_case(name) for name in OPTIMIZERS])
    write("schedulers.json", [scheduler_case(name, of) for name, of in SCHEDULERS])
    write("scalers.json", [scaler_case(name, clip, first) for name, clip in SCALERS for first in (False, True)])


main()
