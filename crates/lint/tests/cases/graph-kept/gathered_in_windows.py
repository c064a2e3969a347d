import torch


def smooth(model, loader, emit):
    window = []
    for x in loader:
        window.append(model(x))
        if len(window) == 8:
            emit(torch.stack(window).mean(0))
            window = []


def evaluated(model, loader, use):
    for x in loader:
        outputs = []
        outputs.append(model(x))
        use(outputs)
