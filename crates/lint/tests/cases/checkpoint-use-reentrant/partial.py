from functools import partial

from torch.utils.checkpoint import checkpoint

ckpt = partial(checkpoint, use_reentrant=False)


def run(blocks, x, trainer):
    for block in blocks:
        x = ckpt(block, x)
    trainer.checkpoint("last.pt", x)
    return x
