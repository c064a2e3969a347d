import gc
import torch

for fold in range(5):
    model = make_model().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        for step, (x, y) in enumerate(loaders[fold]):
            optimizer.zero_grad()
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            if step % 200 == 0:
                torch.cuda.empty_cache()
        torch.cuda.empty_cache()
        gc.collect()
    del model, optimizer
    gc.collect()
