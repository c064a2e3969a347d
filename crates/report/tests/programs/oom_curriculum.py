"""Out of memory: sequences get longer until one does not fit; no step leaves anything behind."""
import torch
from torch import nn


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((512 << 20) / total)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0).cuda()
    optimizer = torch.optim.Adam(layer.parameters())
    kept = [layer, optimizer]
    try:
        for step in range(16):
            x = torch.randn(32, 128 << step, 128, device="cuda")
            loss = layer(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    except torch.cuda.OutOfMemoryError as error:
        kept.append(error)
    return kept
