"""Whether PyTorch and Plimsoll gave the same answer to a program, as `worker.py` tells it; used
here and by the test that replays recorded answers."""

import math


def same(a, b):
    """Equal, numbers up to what another order of additions changes."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None or isinstance(a, str):
        return a == b and type(a) is type(b)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= 1e-8 * max(1.0, abs(a), abs(b))


# What is not compared, and why. PyTorch hands out gradients whose memory is another gradient's too,
# where adding to one changes the other; and it lets pass some writes that Plimsoll refuses: to a
# tensor that overlaps what is read, which give whatever the order of the loop gives, fills of
# expanded tensors, and copies of expanded tensors to themselves. Some of its gradients cannot be
# added to, and it fails where a later result of a function that retains its gradient is written.
STRICTER = ["overlap in memory without being the same view", "fill_: the target of", "copy_: the target of"]
DEFECTS = ["ZeroTensors are immutable", "please report a bug to PyTorch"]


def left_out(theirs, ours):
    stricter = any(words in ours["why"] for words in STRICTER)
    defect = any(words in theirs["why"] for words in DEFECTS)
    return theirs["shared"] or defect or (stricter and theirs["refused"] != ours["refused"])


def difference(theirs, ours):
    """What differs, in words; None if nothing does."""
    if theirs["refused"] != ours["refused"]:
        return f"refused: PyTorch {theirs['refused']} ({theirs['why']}), Plimsoll {ours['refused']} ({ours['why']})"
    if not same(theirs["log"], ours["log"]):
        return f"hooks: PyTorch {theirs['log']}\n       Plimsoll {ours['log']}"
    for name, seen in theirs["seen"].items():
        if seen != "refused" and not same(seen, ours["seen"].get(name)):
            return f"{name} (value, requires_grad, is_leaf, grad): PyTorch {seen}\n    Plimsoll {ours['seen'].get(name)}"
    return None
