"""Custom functions that random programs call, the same text for PyTorch and for Plimsoll: one for each thing that such a
function may do. Every backward notes what it was given."""

from types import SimpleNamespace


def functions(module, note):
    """The functions for `module`, by name; `note(name, grads)` is told of every backward."""
    base = module.autograd.Function
    once_differentiable = module.autograd.function.once_differentiable

    def constant(value):
        # PyTorch saves a number that it multiplies by, and refuses a second backward for its sake; a tensor both save.
        return module.tensor(value, dtype=module.float64)

    class SavesInput(base):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, grad):
            note("saves_input", [grad])
            (x,) = ctx.saved_tensors
            return grad * x * constant(2.0 * ctx.factor), None

    class SavesResult(base):
        @staticmethod
        def forward(x):
            return x.tanh()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad):
            note("saves_result", [grad])
            (y,) = ctx.saved_tensors
            return grad - grad * y * y

    class SavesBetween(base):
        @staticmethod
        def forward(ctx, x):
            half = x.sigmoid()
            ctx.save_for_backward(half, None)
            return half * half

        @staticmethod
        def backward(ctx, grad):
            half, nothing = ctx.saved_tensors
            note("saves_between", [grad, nothing])
            return grad * half * half * (constant(1.0) - half) * constant(2.0)

    class KeepsAttribute(base):
        @staticmethod
        def forward(ctx, x, y):
            ctx.x, ctx.y = x, y
            return x * y

        @staticmethod
        def backward(ctx, grad):
            note("keeps_attribute", [grad])
            return grad * ctx.y, grad * ctx.x

    class Product(base):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            note("product", [grad, list(ctx.needs_input_grad)])
            x, y = ctx.saved_tensors
            return grad * y if ctx.needs_input_grad[0] else None, grad * x if ctx.needs_input_grad[1] else None

    class Two(base):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2.0, 7, x.abs()

        @staticmethod
        def backward(ctx, first, nothing, second):
            note("two", [first, nothing, second])
            found = None if first is None else first * constant(2.0)
            if second is not None:
                found = second * constant(3.0) if found is None else found + second * constant(3.0)
            return found, None

    class Partly(base):
        @staticmethod
        def forward(ctx, x):
            fixed = x * 5.0
            ctx.mark_non_differentiable(fixed)
            ctx.save_for_backward(fixed)
            return fixed, x * 3.0

        @staticmethod
        def backward(ctx, fixed, grad):
            note("partly", [fixed, grad])
            (saved,) = ctx.saved_tensors
            return grad * saved

    class InPlace(base):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            ctx.save_for_backward(y)
            return x.mul_(y)

        @staticmethod
        def backward(ctx, grad):
            note("in_place", [grad])
            (y,) = ctx.saved_tensors
            return grad * y, None

    class Once(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            note("once", [grad])
            (x,) = ctx.saved_tensors
            return grad * x.exp()

    class Same(base):
        @staticmethod
        def forward(ctx, x, other):
            return x

        @staticmethod
        def backward(ctx, grad):
            note("same", [grad])
            return grad * constant(3.0), grad * constant(-1.0)

    class View(base):
        @staticmethod
        def forward(ctx, x):
            return x.view(x.shape)

        @staticmethod
        def backward(ctx, grad):
            note("view", [grad])
            return grad * constant(0.5)

    class Fixed(base):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x, x * 2.0

        @staticmethod
        def backward(ctx, fixed, grad):
            note("fixed", [fixed, grad])
            return grad * constant(2.0)

    class Silent(base):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            note("silent", [grad])
            return None, grad, None

    class Wide(base):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            note("wide", [grad])
            return grad.expand(2, *grad.shape)

    class Wrong(base):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            note("wrong", [grad])
            return grad, module.ones(5, dtype=module.float64)

    class Raises(base):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            note("raises", [grad])
            raise ValueError("as it must")

    class Nested(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            note("nested", [grad])
            (x,) = ctx.saved_tensors
            with module.enable_grad():
                again = x.detach().requires_grad_()
                SavesResult.apply(again).sum().backward()
            return grad * again.grad

    return SimpleNamespace(
        saves_input=SavesInput.apply,
        saves_result=SavesResult.apply,
        saves_between=SavesBetween.apply,
        keeps_attribute=KeepsAttribute.apply,
        product=Product.apply,
        two=lambda x, materialize: Two.apply(x, materialize)[::2],
        partly=Partly.apply,
        in_place=InPlace.apply,
        once=Once.apply,
        same=Same.apply,
        view=View.apply,
        fixed=Fixed.apply,
        silent=Silent.apply,
        wide=Wide.apply,
        wrong=Wrong.apply,
        raises=Raises.apply,
        nested=Nested.apply,
    )
