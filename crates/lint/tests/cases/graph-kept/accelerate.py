from accelerate import Accelerator
import torch
accelerator = Accelerator()
total_loss = 0
for batch in train_dataloader:
    outputs = model(**batch)
    loss = outputs.loss
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    total_loss += loss  # expect: graph-kept
