"""What the documents take for granted: a model, data, a loss, an optimizer. Small, and the same for PyTorch and Plimsoll: the
name `torch` is whichever of them runs. A script's first line asks for the names that its block leaves undefined (`script.py`)."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ROWS, WIDTH, CLASSES = 4, 16, 4
# What is printed whatever it is does not hang on chance.
SEED = int(os.environ.get("PRELUDE_SEED", "0"))
# Folders of files that a script reads: they go when it ends.
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def given(wanted: str, models_on: str = "cpu", data_on: str = "cpu") -> dict[str, object]:
    """The things of these names, `name` or `name=what_it_is_called_here`; all of them anew."""
    torch.manual_seed(SEED)
    things = Things(models_on, data_on)
    pairs = [(name, called or name) for name, _, called in (word.partition("=") for word in wanted.split())]
    return {name: getattr(things, called) for name, called in pairs}


class Features(nn.Sequential):
    """A model that gives what is before its last layer."""

    def extract_features(self, inputs: torch.Tensor) -> torch.Tensor:
        return self[1](self[0](inputs))


class Loss(nn.Module):
    """A model whose result is a loss already."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, CLASSES)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch).square().mean()


class MyModel(nn.Sequential):
    """The model that a document calls so."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def preprocess(batch):  # noqa: ANN001, ANN201 - arrays of NumPy, which not every machine has
    return batch * 2


def preprocess_gpu(batch: torch.Tensor) -> torch.Tensor:
    return batch * 2


def process(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.mean() for tensor in tensors]


class Things:
    """Every name of the prelude. What is asked for twice is the same: the optimizer's parameters are the model's."""

    torch, nn, gc, DataLoader, MyModel = torch, nn, gc, DataLoader, MyModel
    preprocess, preprocess_gpu, process = staticmethod(preprocess), staticmethod(preprocess_gpu), staticmethod(process)
    some_function = staticmethod(torch.mean)
    num_epochs, batch_size, hidden_dim = 2, ROWS, 32

    def __init__(self, models_on: str, data_on: str) -> None:
        self.data_on = data_on
        self.models_on = models_on

    def __getattr__(self, name: str) -> object:
        made = getattr(Making, name)(self)
        setattr(self, name, made)
        return made


class Making:
    """How each is made."""

    def model(things: Things) -> nn.Module:
        return Features(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, CLASSES)).to(things.models_on)

    model_with_features = model

    def model_of_a_loss(things: Things) -> nn.Module:
        return Loss().to(things.models_on)

    def rnn(things: Things) -> nn.Module:
        return nn.RNN(WIDTH, CLASSES).to(things.models_on)

    def lstm(things: Things) -> nn.Module:
        return nn.LSTM(WIDTH, CLASSES).to(things.models_on)

    def criterion(things: Things) -> nn.Module:
        return nn.CrossEntropyLoss()

    def optimizer(things: Things) -> torch.optim.Optimizer:
        return torch.optim.SGD(things.model.parameters(), lr=0.01)

    def compute_loss(things: Things):  # noqa: ANN202 - a function
        return lambda batch: things.criterion(things.model(batch), things.target)

    def train_step(things: Things):  # noqa: ANN202 - a function
        def train_step() -> None:
            things.compute_loss(things.batch).backward()
            things.optimizer.step()

        return train_step

    def batch(things: Things) -> torch.Tensor:
        return torch.randn(ROWS, WIDTH).to(things.data_on)

    data = inputs = input = input_data = batch

    def target(things: Things) -> torch.Tensor:
        return torch.randint(CLASSES, (ROWS,)).to(things.data_on)

    targets = target_data = target

    def output(things: Things) -> torch.Tensor:
        return things.model(things.batch)

    def labelled_batch(things: Things) -> dict[str, torch.Tensor]:
        return {"input": things.batch, "target": things.target}

    def dataloader(things: Things) -> list[torch.Tensor]:
        return [torch.randn(ROWS, WIDTH).to(things.data_on) for _ in range(3)]

    val_loader = dataloader

    def loader_of_labelled(things: Things) -> list[dict[str, torch.Tensor]]:
        return [{"input": batch, "target": things.target} for batch in things.dataloader]

    def loader_of_pairs(things: Things) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(batch, things.target) for batch in things.dataloader]

    def dataset(things: Things) -> list[torch.Tensor]:
        return list(torch.randn(8, WIDTH))

    def pairs(things: Things) -> TensorDataset:
        return TensorDataset(torch.randn(8, WIDTH), torch.randint(CLASSES, (8,)))

    def file_list(things: Things) -> list[Path]:
        folder = tempfile.TemporaryDirectory()
        FOLDERS.append(folder)
        names = [Path(folder.name) / f"{number}.pt" for number in range(16)]
        for name in names:
            torch.save(torch.randn(WIDTH), name)
        return names

    def wide_input(things: Things) -> torch.Tensor:
        return torch.randn(64, 1000)

    def large_input(things: Things) -> torch.Tensor:
        return torch.randn(80, WIDTH)

    def x(things: Things) -> torch.Tensor:
        return torch.randn(64, 64).to(things.data_on)

    def leaf(things: Things) -> torch.Tensor:
        return torch.randn(10, requires_grad=True)

    def cube(things: Things) -> torch.Tensor:
        return torch.randn(100, 100, 10)

    def row(things: Things) -> torch.Tensor:
        return torch.randn(10)

    A = B = x

    def full_tensor(things: Things) -> torch.Tensor:
        return torch.randn(10, 6)

    def indices(things: Things) -> torch.Tensor:
        return torch.randint(0, 10, (5,))
