import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def folds(data):
    for x, y in data:
        model = nn.Linear(10, 1)
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def search(model, loader, rates):
    for rate in rates:
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        x, y = next(iter(loader))
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def adapt(model, start, samples):
    for x, y in samples:
        model.load_state_dict(start)
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def meta(model, tasks):
    for x, y in tasks:
        learner = copy.deepcopy(model)
        optimizer = torch.optim.Adam(learner.parameters())
        optimizer.zero_grad()
        F.mse_loss(learner(x), y).backward()
        optimizer.step()


def attack(model, images):
    for x in images:
        delta = torch.zeros_like(x, requires_grad=True)
        optimizer = torch.optim.Adam([delta])
        optimizer.zero_grad()
        model(x + delta).sum().backward()
        optimizer.step()
