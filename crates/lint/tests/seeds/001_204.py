# WRONG: Accumulates graphs in memory
losses = []
for batch in dataloader:
    loss = model(batch)
    losses.append(loss)  # Keeps entire graph!

# CORRECT: Detach or convert to scalar
losses = []
for batch in dataloader:
    loss = model(batch)
    losses.append(loss.item())  # or loss.detach()
