import gc, torch
for epoch in range(3):
    train(model)
    gc.collect()
