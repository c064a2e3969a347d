"""What programs use of torchvision, over images that are made up here: `datasets`, `transforms` and `utils`."""

import sys

from . import datasets as datasets
from . import pictures as utils
from . import transforms as transforms

sys.modules[f"{__name__}.utils"] = utils
