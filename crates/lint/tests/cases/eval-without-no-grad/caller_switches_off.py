import torch
def evaluate(model, loader):
    model.eval()
    for x, y in loader:
        output = model(x)
def main():
    with torch.no_grad():
        evaluate(model, loader)
