"""PyTorch's `nn.functional`: functions of tensors, under PyTorch's names and signatures.

Operations that need nothing added come from the generated `_functional.py` as they are; those with arguments that only
Python has (`inplace=`, `size_average=`, a dimension that is guessed) are in the files beside it, one a family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..functional import conv_tbc as conv_tbc

if TYPE_CHECKING:
    # Checkers are told only of those that none of the files below takes the place of: one name has one type.
    from ._functional import elu as elu
    from ._functional import leaky_relu as leaky_relu
    from ._functional import hardtanh as hardtanh
    from ._functional import softplus as softplus
    from ._functional import softshrink as softshrink
    from ._functional import threshold as threshold
    from ._functional import silu as silu
    from ._functional import mish as mish
    from ._functional import logsigmoid as logsigmoid
    from ._functional import hardsigmoid as hardsigmoid
    from ._functional import hardswish as hardswish
    from ._functional import relu6 as relu6
    from ._functional import glu as glu
    from ._functional import softsign as softsign
    from ._functional import tanhshrink as tanhshrink
    from ._functional import pdist as pdist
    from ._functional import one_hot as one_hot
    from ._functional import avg_pool2d as avg_pool2d
    from ._functional import avg_pool3d as avg_pool3d
    from ._functional import max_unpool1d as max_unpool1d
    from ._functional import max_unpool2d as max_unpool2d
    from ._functional import max_unpool3d as max_unpool3d
    from ._functional import lp_pool1d as lp_pool1d
    from ._functional import lp_pool2d as lp_pool2d
    from ._functional import lp_pool3d as lp_pool3d
    from ._functional import im2col as im2col
    from ._functional import col2im as col2im
    from ._functional import pad as pad
else:
    from ._functional import *  # noqa: F403
from ._activations import *  # noqa: F403
from ._windows import *  # noqa: F403
from ._attention import scaled_dot_product_attention as scaled_dot_product_attention
from ._distance import cosine_similarity as cosine_similarity
from ._distance import normalize as normalize
from ._distance import pairwise_distance as pairwise_distance
from ._dropout import alpha_dropout as alpha_dropout
from ._dropout import dropout as dropout
from ._dropout import dropout1d as dropout1d
from ._dropout import dropout2d as dropout2d
from ._dropout import dropout3d as dropout3d
from ._dropout import feature_alpha_dropout as feature_alpha_dropout
from ._grid import affine_grid as affine_grid
from ._grid import grid_sample as grid_sample
from ._interpolate import interpolate as interpolate
from ._interpolate import upsample as upsample
from ._interpolate import upsample_bilinear as upsample_bilinear
from ._interpolate import upsample_nearest as upsample_nearest
from ._linear import bilinear as bilinear
from ._linear import linear as linear
from ._linear_loss import linear_cross_entropy as linear_cross_entropy
from ._loss import binary_cross_entropy as binary_cross_entropy
from ._loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from ._loss import cross_entropy as cross_entropy
from ._loss import gaussian_nll_loss as gaussian_nll_loss
from ._loss import huber_loss as huber_loss
from ._loss import kl_div as kl_div
from ._loss import l1_loss as l1_loss
from ._loss import mse_loss as mse_loss
from ._loss import nll_loss as nll_loss
from ._loss import poisson_nll_loss as poisson_nll_loss
from ._loss import smooth_l1_loss as smooth_l1_loss
from ._margin import cosine_embedding_loss as cosine_embedding_loss
from ._margin import hinge_embedding_loss as hinge_embedding_loss
from ._margin import margin_ranking_loss as margin_ranking_loss
from ._margin import multi_margin_loss as multi_margin_loss
from ._margin import multilabel_margin_loss as multilabel_margin_loss
from ._margin import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from ._margin import soft_margin_loss as soft_margin_loss
from ._margin import triplet_margin_loss as triplet_margin_loss
from ._margin import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from ._multi_head import multi_head_attention_forward as multi_head_attention_forward
from ._norm import batch_norm as batch_norm
from ._norm import group_norm as group_norm
from ._norm import instance_norm as instance_norm
from ._norm import layer_norm as layer_norm
from ._norm import local_response_norm as local_response_norm
from ._norm import rms_norm as rms_norm
from ._sequence import ctc_loss as ctc_loss
from ._table import embedding as embedding
from ._table import embedding_bag as embedding_bag
