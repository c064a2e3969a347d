"""A typical program: a module, a dataset and its loader, an optimizer and its schedule, mixed precision, a checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path

import plimsoll as torch
import plimsoll.nn.functional as F
from plimsoll import Tensor, nn, optim
from plimsoll.optim.lr_scheduler import CosineAnnealingLR
from plimsoll.utils.checkpoint import checkpoint
from plimsoll.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    """Numbers and their squares."""

    def __init__(self, count: int) -> None:
        self.x = torch.linspace(-1.0, 1.0, count).unsqueeze(1)
        self.y = self.x**2

    def __len__(self) -> int:
        return self.x.size(0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Block(nn.Module):
    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = F.gelu(self.up(self.norm(x)))
        added: Tensor = self.dropout(self.down(hidden))
        return x + self.scale * added


class Net(nn.Module):
    def __init__(self, width: int = 16, layers: int = 2, checkpointed: bool = False) -> None:
        super().__init__()
        self.inputs = nn.Sequential(nn.Linear(1, width), nn.ReLU())
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.head = nn.Linear(width, 1)
        self.checkpointed = checkpointed

    def forward(self, x: Tensor) -> Tensor:
        x = self.inputs(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        out: Tensor = self.head(x)
        return out


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += F.mse_loss(model(x), y, reduction="sum").item()
        count += x.shape[0]
    model.train()
    return total / count


def train(steps: int, folder: Path | None) -> float:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Squares(256)
    part, rest = random_split(data, [192, 64])
    loader = DataLoader(part, batch_size=32, shuffle=True, num_workers=0)
    held_out = DataLoader(rest, batch_size=64)
    model = Net(checkpointed=True).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = CosineAnnealingLR(optimizer, T_max=steps)
    scaler = torch.amp.GradScaler("cuda", enabled=device.type == "cuda")
    for _ in range(steps):
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                loss = F.mse_loss(model(x).float(), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
        scheduler.step()
    if folder is not None:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, folder / "model.pt")
        loaded = torch.load(folder / "model.pt", map_location="cpu")
        model.load_state_dict(loaded["model"])
    return evaluate(model, held_out)


def shapes() -> None:
    """Small things that programs do with tensors."""
    x = torch.randn(4, 3, requires_grad=True)
    rows, columns = x.shape
    flat = x.reshape(rows * columns)
    best, where = x.max(dim=1)
    assert x.topk(2).values.shape == x.sort(dim=1).indices[:, :2].shape
    mask = x > 0
    chosen = x[mask].sum() + x[0, 1:].mean() + flat[-1]
    (slope,) = torch.autograd.grad(chosen, x)
    assert slope.shape == x.shape and best.dtype == torch.float32 and where.dtype == torch.int64
    both = torch.cat([x, slope], dim=0).t() @ torch.stack([x, slope]).flatten(0, 1)
    pairs = torch.einsum("ij,kj->ik", x, slope)
    values = both.softmax(-1).argmax(dim=-1).tolist()
    print(values, pairs.size(0), x.detach().numpy(), both.device, both.dtype.itemsize)
    dataset = TensorDataset(x.detach(), slope)
    print(len(dataset), torch.cuda.memory_allocated(), torch.unique(where))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    shapes()
    print(train(arguments.steps, None))
