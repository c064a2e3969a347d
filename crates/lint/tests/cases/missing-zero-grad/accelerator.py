from accelerate import Accelerator
import torch
accelerator = Accelerator()
for batch in train_dataloader:
    loss = model(**batch).loss
    accelerator.backward(loss)  # expect: missing-zero-grad
    optimizer.step()
