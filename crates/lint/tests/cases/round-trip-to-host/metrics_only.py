import numpy as np
import torch
from sklearn.metrics import f1_score

preds, golds = [], []
with torch.no_grad():
    for x, y in val_loader:
        p = model(x.to(device)).argmax(-1)
        preds.extend(p.cpu().numpy())
        golds.extend(y.numpy())
score = torch.tensor(f1_score(golds, preds, average="macro")).to(device)
