"""Optimizers under PyTorch's names, and Lion. A step is one fused operation over all parameters of a group,
but for those of `_one_by_one.py` and LBFGS."""

from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from ._muon import Muon as Muon
from .adadelta import Adadelta as Adadelta
from .adafactor import Adafactor as Adafactor
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adamax import Adamax as Adamax
from .adamw import AdamW as AdamW
from .asgd import ASGD as ASGD
from .lbfgs import LBFGS as LBFGS
from .lion import Lion as Lion
from .nadam import NAdam as NAdam
from .optimizer import Optimizer as Optimizer
from .radam import RAdam as RAdam
from .rmsprop import RMSprop as RMSprop
from .rprop import Rprop as Rprop
from .sgd import SGD as SGD
from .sparse_adam import SparseAdam as SparseAdam
