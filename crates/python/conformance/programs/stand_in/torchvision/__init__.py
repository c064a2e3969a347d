"""What programs use of torchvision, over images that are made up here: `datasets`, `transforms` and `utils`."""

from . import datasets as datasets
from . import transforms as transforms
from . import utils as utils
