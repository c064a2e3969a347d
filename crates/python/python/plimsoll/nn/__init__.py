"""What networks are made of, as functions: see `plimsoll.nn.functional`."""

from . import functional as functional
