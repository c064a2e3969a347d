"""Writes random programs over tensors, the same text for PyTorch and for Plimsoll: views, in-place
writes, hooks, custom functions (`functions.py`), retained gradients, backward and grad over parts of
graphs, retained and recorded graphs, modes. A program is a list of lines; `worker.py` runs them.
Shapes are tracked here, so that most lines are valid; the others must be refused by both."""

import random

SHAPES = [(2, 3), (2, 3), (3,), (3, 2), (2, 1), (6,), (1, 3), ()]
UNARY = ["tanh", "sigmoid", "neg", "relu", "abs", "exp"]
RARER_UNARY = ["erf", "sign"]
# Where a function is not defined everywhere, it gets what it is defined for.
POSITIVE = ["sqrt", "log", "rsqrt", "reciprocal", "log1p"]
BINARY = ["+", "-", "*", "*"]


class Variable:
    def __init__(self, name, shape, wants, leaf=False):
        self.name, self.shape, self.leaf = name, shape, leaf
        # Whether it probably requires gradients; a guess that only steers the choice.
        self.wants = wants
        # Whether other variables may be in the same memory.
        self.viewed = False
        # Whether a write to it is refused: a leaf, a view of one, or expanded.
        self.fixed = leaf and wants


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.variables, self.hooks, self.count = [], [], 0, 0

    def new(self, text, shape, wants, leaf=False):
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(text.replace("$", name))
        variable = Variable(name, shape, wants, leaf)
        self.variables.append(variable)
        return variable

    def any(self, condition=lambda v: True):
        found = [v for v in self.variables if condition(v)]
        # Newer ones more often: programs are to get deep.
        return self.random.choice(found[-6:] if self.random.random() < 0.7 else found) if found else None

    def write(self, steps):
        for _ in range(2):
            self.make(True)
        self.make(False)
        for _ in range(steps):
            kinds, weights = zip(*KINDS)
            getattr(self, self.random.choices(kinds, weights)[0])()
        self.backward()
        return self.lines

    # Making tensors.

    def make(self, wants=None):
        if wants is None:
            wants = self.random.random() < 0.6
        shape = self.random.choice(SHAPES)
        count = 1
        for size in shape:
            count *= size
        values = [round(self.random.uniform(-1.5, 1.5), 2) for _ in range(count)]
        self.new(f"$ = make({values}, {list(shape)}, {wants})", shape, wants, leaf=True)

    def unary(self):
        x = self.any()
        kind = self.random.random()
        if kind < 0.7:
            text = f"{x.name}.{self.random.choice(UNARY)}()"
        elif kind < 0.8:
            text = f"{x.name}.{self.random.choice(RARER_UNARY)}()"
        elif kind < 0.88:
            text = f"({x.name}.abs() + 0.5).{self.random.choice(POSITIVE)}()"
        elif kind < 0.94 or not x.shape:
            text = f"{x.name}.pow({self.random.choice([2, 3])})"
        else:
            text = f"{x.name}.{self.random.choice(['softmax', 'log_softmax'])}(-1)"
        self.new(f"$ = {text}", x.shape, x.wants)

    def choose(self):
        x = self.any()
        y = self.any(lambda y: y.shape == x.shape)
        kind = self.random.random()
        if kind < 0.5 or not x.shape:
            self.new(f"$ = t.where({x.name} > 0.0, {x.name}, {y.name})", x.shape, x.wants or y.wants)
        elif kind < 0.75:
            self.new(f"$ = {x.name}[t.tensor([0, {x.shape[0] - 1}, 0])]", (3, *x.shape[1:]), x.wants)
        else:
            self.new(f"$ = {x.name}.sort(-1)[0]", x.shape, x.wants)

    def binary(self):
        x = self.any()
        operator = self.random.choice(BINARY)
        if self.random.random() < 0.25:
            self.new(f"$ = {x.name} {operator} {self.number(operator)}", x.shape, x.wants)
            return
        y = self.any(lambda y: broadcast(x.shape, y.shape) is not None)
        shape = broadcast(x.shape, y.shape)
        if self.random.random() < 0.15:
            name = self.random.choice(["maximum", "minimum", "div"])
            text = f"$ = {x.name}.{name}({y.name})" if name != "div" else f"$ = {x.name}.div({y.name} + 3.0)"
            self.new(text, shape, x.wants or y.wants)
        else:
            self.new(f"$ = {x.name} {operator} {y.name}", shape, x.wants or y.wants)

    def number(self, operator):
        # A number that PyTorch multiplies by is saved as a tensor, which only shows when backward
        # runs twice: ours is not.
        number = round(self.random.uniform(-2, 2), 2)
        return f"make([{number}], [], False)" if operator in ("*", "mul_") else number

    def matmul(self):
        x = self.any(lambda v: len(v.shape) == 2)
        y = x and self.any(lambda v: len(v.shape) == 2 and v.shape[0] == x.shape[1])
        if y:
            self.new(f"$ = {x.name} @ {y.name}", (x.shape[0], y.shape[1]), x.wants or y.wants)

    def join(self):
        x = self.any(lambda v: len(v.shape) > 0)
        y = x and self.any(lambda v: v.shape == x.shape)
        if y:
            shape = (x.shape[0] * 2, *x.shape[1:])
            self.new(f"$ = t.cat([{x.name}, {y.name}], 0)", shape, x.wants or y.wants)

    def reduce(self):
        x = self.any()
        name = self.random.choice(["sum", "mean", "amax"])
        if not x.shape or self.random.random() < 0.4:
            self.new(f"$ = {x.name}.{'sum' if name == 'amax' else name}()", (), x.wants)
            return
        dim = self.random.randrange(len(x.shape))
        keep = self.random.random() < 0.5
        middle = (1,) if keep else ()
        shape = x.shape[:dim] + middle + x.shape[dim + 1 :]
        self.new(f"$ = {x.name}.{name}({dim}, {keep})", shape, x.wants)

    def view(self):
        x = self.any(lambda v: not v.leaf or self.random.random() < 0.5)
        if not x:
            return
        x.viewed = True
        before = len(self.variables)
        self.view_of(x)
        for variable in self.variables[before:]:
            variable.viewed = True
            variable.fixed = x.fixed or "expand(" in self.lines[-1]

    def view_of(self, x):
        rank = len(x.shape)
        kind = self.random.choice(["narrow", "select", "slice", "transpose", "view", "unsqueeze", "expand", "whole"])
        name, shape = x.name, x.shape
        if kind in ("narrow", "select", "slice") and rank:
            dim = self.random.randrange(rank)
            size = shape[dim]
            if kind == "select":
                at = self.random.randrange(size)
                self.new(f"$ = {name}.select({dim}, {at})", shape[:dim] + shape[dim + 1 :], x.wants)
            elif kind == "narrow" or dim > 0:
                start = self.random.randrange(size)
                length = self.random.randint(1, size - start)
                result = shape[:dim] + (length,) + shape[dim + 1 :]
                self.new(f"$ = {name}.narrow({dim}, {start}, {length})", result, x.wants)
            else:
                self.new(f"$ = {name}[::2]", ((size + 1) // 2, *shape[1:]), x.wants)
        elif kind == "transpose" and rank == 2:
            self.new(f"$ = {name}.transpose(0, 1)", shape[::-1], x.wants)
        elif kind == "view" and rank:
            count = 1
            for size in shape:
                count *= size
            result = self.random.choice([(count,), (1, count), (count, 1)])
            # Not every layout can be viewed so: then both refuse it, or both copy.
            method = self.random.choice(["view", "reshape", "reshape"])
            self.new(f"$ = {name}.{method}({', '.join(map(str, result))})", result, x.wants)
        elif kind == "unsqueeze":
            self.new(f"$ = {name}.unsqueeze(0)", (1, *shape), x.wants)
        elif kind == "expand" and rank < 2:
            self.new(f"$ = {name}.expand({', '.join(map(str, (2, *shape)))})", (2, *shape), x.wants)
        else:
            self.new(f"$ = {name}.view({list(shape)})", shape, x.wants)

    def copy(self):
        x = self.any()
        kind = self.random.choice(["clone", "clone", "detach", "contiguous"])
        y = self.new(f"$ = {x.name}.{kind}()", x.shape, x.wants and kind != "detach")
        if kind == "contiguous":
            x.viewed = y.viewed = True
        if kind != "clone":
            y.fixed = x.fixed

    # Changing tensors.

    def custom(self):
        x = self.any()
        kind = self.random.choices(*zip(*CUSTOM))[0]
        if kind in ("two", "partly", "fixed"):
            more = f", {self.random.random() < 0.5}" if kind == "two" else ""
            names = [f"v{self.count + 1}", f"v{self.count + 2}"]
            self.count += 2
            self.lines.append(f"{', '.join(names)} = f.{kind}({x.name}{more})")
            for name, wants in zip(names, (x.wants and kind == "two", x.wants)):
                self.variables.append(Variable(name, x.shape, wants))
            if kind == "fixed":
                x.viewed = self.variables[-2].viewed = True
        elif kind == "in_place":
            x = self.any(lambda v: not v.fixed or self.random.random() < 0.02)
            y = x and self.any(lambda y: y is not x and broadcast(x.shape, y.shape) == x.shape)
            if y:
                self.lines.append(f"{x.name} = f.in_place({x.name}, {y.name}.detach().clone())")
                x.leaf = x.leaf and not x.wants
        elif kind in ("product", "keeps_attribute", "silent", "wrong"):
            y = self.any(lambda y: y.shape == x.shape)
            self.new(f"$ = f.{kind}({x.name}, {y.name})", x.shape, x.wants or y.wants)
        elif kind in ("same", "view"):
            y = self.any(lambda y: y.shape == x.shape)
            more = f", {y.name}" if kind == "same" else ""
            result = self.new(f"$ = f.{kind}({x.name}{more})", x.shape, x.wants or (bool(more) and y.wants))
            x.viewed = result.viewed = result.fixed = True
        else:
            more = f", {round(self.random.uniform(-2, 2), 2)}" if kind == "saves_input" else ""
            silently = self.random.random() < 0.05
            mode = "with t.no_grad(): " if silently else ""
            self.new(f"{mode}$ = f.{kind}({x.name}{more})", x.shape, x.wants and not silently)

    def write_in_place(self):
        x = self.any(lambda v: not v.fixed or self.random.random() < 0.02)
        if not x:
            return
        kind = self.random.random()
        if kind < 0.25:
            self.lines.append(f"{x.name}.{self.random.choice(UNARY + RARER_UNARY)}_()")
        elif kind < 0.45:
            method = self.random.choice(["add_", "mul_", "sub_"])
            self.lines.append(f"{x.name}.{method}({self.number(method)})")
        elif kind < 0.52:
            self.lines.append(f"{x.name}.{self.random.choice(['zero_()', 'fill_(0.5)'])}")
        else:
            y = self.any(lambda y: y is not x and broadcast(x.shape, y.shape) == x.shape)
            if not y:
                return
            if kind < 0.8:
                self.lines.append(f"{x.name}.{self.random.choice(['add_', 'mul_', 'sub_'])}({y.name})")
            elif kind < 0.92 or not x.shape:
                self.lines.append(f"{x.name}.copy_({y.name})")
            else:
                row = self.any(lambda y: broadcast(x.shape[1:], y.shape) == x.shape[1:])
                if not row:
                    return
                self.lines.append(f"{x.name}[0] = {row.name}")
                y = row
            x.wants = x.wants or y.wants
            if x.wants:
                x.leaf = False

    def without_recording(self):
        x = self.any()
        kind = self.random.random()
        if kind < 0.35:
            self.new(f"with t.no_grad(): $ = {x.name} * 2.0", x.shape, False)
        elif kind < 0.6:
            self.lines.append(f"with t.no_grad(): {x.name}.mul_(0.5)")
        elif kind < 0.75 and x.shape:
            y = self.new(f"with t.no_grad(): $ = {x.name}.narrow(0, 0, 1)", (1, *x.shape[1:]), False)
            x.viewed = y.viewed = y.fixed = True
        elif kind < 0.9:
            self.new(f"with t.no_grad():\n  with t.enable_grad(): $ = {x.name}.tanh()", x.shape, x.wants)
        elif not x.viewed:
            # A view that was there before its base became a leaf belongs to nobody in PyTorch: its
            # gradient is lost.
            x.wants = self.random.random() < 0.8
            x.fixed = x.fixed or (x.leaf and x.wants)
            self.lines.append(f"{x.name}.requires_grad_({x.wants})")

    def forget(self):
        x = self.any()
        if len(self.variables) > 4:
            self.variables.remove(x)
            self.lines.append(f"del {x.name}")

    # Hooks and gradients.

    def hook(self):
        x = self.any(lambda v: v.wants)
        if not x:
            return
        self.hooks += 1
        factor = self.random.choice([None, None, 2.0, -0.5])
        self.lines.append(f"h{self.hooks} = hook({x.name}, 'h{self.hooks}', {factor})")
        if self.random.random() < 0.1:
            self.lines.append(f"h{self.hooks}.remove()")

    def retain(self):
        x = self.any(lambda v: v.wants)
        if x:
            self.lines.append(f"{x.name}.retain_grad()")

    def read_grad(self):
        x = self.any(lambda v: v.wants)
        if not x:
            return
        if self.random.random() < 0.5:
            self.lines.append(f"{x.name}.grad = None")
        else:
            self.new(f"$ = grad_or_zeros({x.name})", x.shape, False)

    def options(self):
        options = []
        if self.random.random() < 0.65:
            options.append("retain_graph=True")
        if self.random.random() < 0.3:
            options.append("create_graph=True")
        return options

    def backward(self):
        x = self.any(lambda v: v.wants) or self.any()
        options = self.options()
        if self.random.random() < 0.3:
            inputs = [self.any(lambda v: v.wants) for _ in range(self.random.randint(1, 3))]
            names = ", ".join(sorted({v.name for v in inputs if v}))
            options.append(f"inputs=[{names}]")
        if self.random.random() < 0.3:
            g = self.any(lambda v: v.shape == x.shape)
            text = f"{x.name}.backward({', '.join([g.name + '.clone()', *options])})"
        else:
            text = f"{x.name}.sum().backward({', '.join(options)})"
        self.lines.append(text)

    def grad(self):
        outputs = [self.any(lambda v: v.wants) or self.any()]
        if self.random.random() < 0.2:
            outputs.append(self.any(lambda v: v.wants) or self.any())
        inputs = [self.any(lambda v: v.wants) or self.any() for _ in range(self.random.randint(1, 2))]
        options = self.options() + (["allow_unused=True"] if self.random.random() < 0.97 else [])
        sums = ", ".join(f"{v.name}.sum()" for v in outputs)
        names = ", ".join(v.name for v in inputs)
        found = []
        for x in inputs:
            self.count += 1
            found.append(f"v{self.count}")
        call = f"{', '.join(found)}, = grad([{sums}], [{names}]{''.join(', ' + o for o in options)})"
        self.lines.append(call)
        recorded = "create_graph=True" in options
        for name, x in zip(found, inputs):
            # It may not depend on anything, but then what is done with it later is refused by both.
            self.variables.append(Variable(name, x.shape, recorded and self.random.random() < 0.3))


KINDS = [
    ("make", 3),
    ("unary", 10),
    ("binary", 16),
    ("matmul", 3),
    ("choose", 3),
    ("custom", 12),
    ("join", 2),
    ("reduce", 5),
    ("view", 14),
    ("copy", 4),
    ("write_in_place", 12),
    ("without_recording", 3),
    ("forget", 3),
    ("hook", 7),
    ("retain", 5),
    ("read_grad", 3),
    ("backward", 6),
    ("grad", 6),
]

# Custom functions, of `functions.py`. Those that are always refused are few.
CUSTOM = [
    ("saves_input", 4),
    ("saves_result", 4),
    ("saves_between", 3),
    ("keeps_attribute", 3),
    ("product", 4),
    ("two", 6),
    ("partly", 4),
    ("in_place", 5),
    ("once", 2),
    ("same", 4),
    ("view", 3),
    ("fixed", 2),
    ("silent", 3),
    ("wide", 2),
    ("wrong", 0.7),
    ("raises", 0.5),
    ("nested", 2),
]


def broadcast(a, b):
    result = []
    for i in range(max(len(a), len(b))):
        x = a[len(a) - 1 - i] if i < len(a) else 1
        y = b[len(b) - 1 - i] if i < len(b) else 1
        if x != y and 1 not in (x, y):
            return None
        result.append(max(x, y))
    return tuple(reversed(result))


def program(seed):
    """The program of this number; always the same one."""
    writer = Writer(seed)
    return writer.write(writer.random.randint(8, 32))
