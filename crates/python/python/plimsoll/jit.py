"""TorchScript is not here. What marks code for it and changes nothing otherwise is; what would compile or load code
raises, and says so."""

from __future__ import annotations

from typing import Any, Callable, NoReturn, TypeVar

_T = TypeVar("_T")


def _refuse(name: str, instead: str) -> NoReturn:
    raise RuntimeError(f"torch.jit.{name}: there is no TorchScript in Plimsoll; {instead}")


def script(obj: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Would compile a function or module; raises."""
    _refuse("script", "call the function or module itself")


def trace(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Would record a function's operations; raises."""
    _refuse("trace", "call the function or module itself")


def trace_module(mod: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Would record a module's operations; raises."""
    _refuse("trace_module", "call the module itself")


def load(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Would load compiled code; raises."""
    _refuse("load", "save a state_dict with torch.save, and load it with torch.load")


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Would save compiled code; raises."""
    _refuse("save", "save a state_dict with torch.save")


def freeze(mod: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Would freeze compiled code; raises."""
    _refuse("freeze", "call model.eval() and use torch.inference_mode()")


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function that is not to be compiled: it stays as it is."""
    return drop if callable(drop) else lambda function: function


def unused(fn: _T) -> _T:
    """Marks a function that is not to be compiled: it stays as it is."""
    return fn


def export(fn: _T) -> _T:
    """Marks a function that is to be compiled too: it stays as it is."""
    return fn


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Would compile a function while something is traced; nothing ever is."""
    return fn


def is_scripting() -> bool:
    """Whether this code is compiled: never."""
    return False


def is_tracing() -> bool:
    """Whether operations are recorded for TorchScript: never."""
    return False


def annotate(the_type: Any, the_value: _T) -> _T:
    """Tells the compiler a type; gives the value back."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's own."""
    import builtins

    return builtins.isinstance(obj, target_type)


Final = Any
