"""Settings of the libraries that compute on GPUs, for the whole process, with PyTorch's names and defaults."""

from . import cuda as cuda
from . import cudnn as cudnn
