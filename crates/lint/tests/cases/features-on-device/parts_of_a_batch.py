import torch
with torch.no_grad():
    for views in loader:
        outs = []
        for view in views:
            outs.append(model(view.cuda()))
        mean = torch.stack(outs).mean(0)
