"""`python -m plimsoll.watch train.py`, and the folder run as a program, where there is no package around it."""

from __future__ import annotations

import os
import sys


def _load() -> None:
    """Makes the folder a package of its own, which needs nothing of Plimsoll."""
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    name = "plimsoll_watch"
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    from plimsoll_watch._stand_in import stand_in

    # Where Plimsoll is installed too, a program that marks its steps means this copy.
    stand_in(module)


if __name__ == "__main__":
    if __package__:
        from ._command import main
    else:
        _load()
        from plimsoll_watch._command import main  # type: ignore[no-redef]
    main(sys.argv[1:])
