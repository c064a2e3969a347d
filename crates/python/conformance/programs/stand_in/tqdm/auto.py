"""The same bar."""

from . import tqdm as tqdm
from . import trange as trange
