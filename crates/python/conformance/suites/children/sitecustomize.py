"""Python loads this in programs that a test starts, whose `torch` is Plimsoll too."""

from plimsoll.run import resolve_torch

resolve_torch()
