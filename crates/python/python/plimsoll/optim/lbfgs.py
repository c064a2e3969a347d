"""L-BFGS: steps along a direction that is made from the differences of the last gradients. It is not fused: a step
evaluates the loss several times, through a closure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._modes import enable_grad, no_grad
from .._plimsoll import Tensor
from ._fused import check_lr
from ._line_search import LineSearch, Point
from .optimizer import Optimizer


class LBFGS(Optimizer):
    """L-BFGS over one group of parameters. It keeps up to `2 * history_size` vectors as long as all parameters together."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def _flat_grad(self) -> Tensor:
        """All gradients as one vector, in the direction that the loss rises, or falls if it is to rise."""
        grads = [param.grad for param in self._params]
        flat = _plimsoll.cat(
            [
                _plimsoll.zeros_like(param.detach()).reshape(-1) if grad is None else grad.reshape(-1)
                for param, grad in zip(self._params, grads, strict=True)
            ]
        )
        return flat.neg_() if self.param_groups[0].get("maximize") else flat

    def _move(self, step: float, direction: Tensor) -> None:
        at = 0
        for param in self._params:
            param.add_(direction[at : at + param.numel()].view(param.shape), alpha=step)
            at += param.numel()

    def _evaluated(self, closure: Callable[[], Any]) -> tuple[Any, float]:
        """The loss as the closure gave it, and as a number that is to fall."""
        with enable_grad(), _plimsoll._Phase("forward"):
            loss = closure()
        # Without its graph: the program is not to be warned of a number that this asks for.
        number = float(loss.detach() if isinstance(loss, Tensor) else loss)
        return loss, -number if self.param_groups[0].get("maximize") else number

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One step of up to `max_iter` iterations. `closure` clears the gradients, computes the loss and its gradients, and
        returns the loss."""
        if not self._params:
            return self._evaluated(closure)[0]
        with no_grad(), _plimsoll._Phase("optimizer"):
            first, loss = self._evaluated(closure)
            state = self.state[self._params[0]]
            state.setdefault("func_evals", 0)
            state.setdefault("n_iter", 0)
            state["func_evals"] += 1
            grad = self._flat_grad()
            if not bool(grad.abs().max() <= self.param_groups[0]["tolerance_grad"]):
                _Steps(self, closure, state).run(loss, grad)
            for kept in (state.get("d"), state.get("prev_flat_grad"), *state.get("old_dirs", []), *state.get("old_stps", [])):
                if kept is not None:
                    kept.mark_optimizer_state()
        return first


class _Steps:
    """The iterations of one step."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any], state: dict[str, Any]) -> None:
        self.optimizer = optimizer
        self.closure = closure
        self.state = state
        self.group = optimizer.param_groups[0]
        self.direction: Tensor = state.get("d")  # type: ignore[assignment]
        self.length: float = state.get("t")  # type: ignore[assignment]
        self.differences: list[Tensor] = state.get("old_dirs") or []
        self.moves: list[Tensor] = state.get("old_stps") or []
        self.inverses: list[Tensor] = state.get("ro") or []
        self.diagonal: Any = state.get("H_diag")
        self.before: Tensor | None = state.get("prev_flat_grad")

    def run(self, loss: float, grad: Tensor) -> None:
        group, evaluations = self.group, 1
        loss_before = self.state.get("prev_loss")
        for iteration in range(1, group["max_iter"] + 1):
            self.state["n_iter"] += 1
            self._turn(grad)
            if self.before is None:
                self.before = grad.clone()
            else:
                self.before.copy_(grad)
            loss_before = loss
            self.length = float(group["lr"])
            if self.state["n_iter"] == 1:
                self.length *= 1.0 / max(1.0, float(grad.abs().sum()))
            slope = float(grad.dot(self.direction))
            if slope > -group["tolerance_change"]:
                break
            is_last = iteration == group["max_iter"]
            start = Point(0.0, loss, grad, slope)
            loss, grad, used = self._go(start, group["max_eval"] - evaluations, is_last)
            evaluations += used
            self.state["func_evals"] += used
            if is_last or evaluations >= group["max_eval"] or self._is_done(grad, loss - loss_before):
                break
        self.state.update(
            d=self.direction,
            t=self.length,
            old_dirs=self.differences,
            old_stps=self.moves,
            ro=self.inverses,
            H_diag=self.diagonal,
            prev_flat_grad=self.before,
            prev_loss=loss_before,
        )

    def _is_done(self, grad: Tensor, change: float) -> bool:
        tolerance = self.group["tolerance_change"]
        return (
            bool(grad.abs().max() <= self.group["tolerance_grad"])
            or bool(self.direction.abs().max() * self.length <= tolerance)
            or abs(change) < tolerance
        )

    def _turn(self, grad: Tensor) -> None:
        """The direction of this iteration."""
        if self.state["n_iter"] == 1:
            self.direction, self.diagonal = grad.neg(), 1
            self.differences, self.moves, self.inverses = [], [], []
            return
        difference, move = grad.sub(self.before), self.direction.mul(self.length)  # type: ignore[arg-type]
        product = difference.dot(move)
        if bool(product > 1e-10):
            if len(self.differences) == self.group["history_size"]:
                for kept in (self.differences, self.moves, self.inverses):
                    del kept[0]
            self.differences.append(difference)
            self.moves.append(move)
            self.inverses.append(1.0 / product)
            self.diagonal = product / difference.dot(difference)
        shares = self.state.setdefault("al", [None] * self.group["history_size"])
        turned = grad.neg()
        for at in reversed(range(len(self.differences))):
            shares[at] = self.moves[at].dot(turned) * self.inverses[at]
            turned.add_(self.differences[at], alpha=-float(shares[at]))
        self.direction = turned.mul_(self.diagonal)
        for at, (old, step) in enumerate(zip(self.differences, self.moves, strict=True)):
            share = old.dot(self.direction) * self.inverses[at]
            self.direction.add_(step, alpha=float(shares[at] - share))

    def _go(self, start: Point, left: int, is_last: bool) -> tuple[float, Tensor, int]:
        """Moves the parameters. Returns loss and gradient there, and how many evaluations it took."""
        optimizer, search = self.optimizer, self.group["line_search_fn"]
        if search is None:
            optimizer._move(self.length, self.direction)
            if is_last:
                return start.loss, start.grad, 0
            loss = optimizer._evaluated(self.closure)[1]
            return loss, optimizer._flat_grad(), 1
        if search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [param.clone() for param in optimizer._params]

        def evaluate(step: float) -> tuple[float, Tensor]:
            optimizer._move(step, self.direction)
            loss = optimizer._evaluated(self.closure)[1]
            grad = optimizer._flat_grad()
            for param, value in zip(optimizer._params, origin, strict=True):
                param.copy_(value)
            return loss, grad

        lines = LineSearch(evaluate, self.direction, start)
        found = lines.run(self.length, 1e-9, left)
        self.length = found.step
        optimizer._move(self.length, self.direction)
        return found.loss, found.grad, lines.evaluations
