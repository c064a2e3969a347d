import deepspeed, torch
model_engine, _, _, _ = deepspeed.initialize(model=model)
for x, y in loader:
    loss = criterion(model_engine(x), y)
    model_engine.backward(loss)
    model_engine.step()
