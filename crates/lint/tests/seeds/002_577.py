# WRONG: Accumulates computation graphs
losses = []
for batch in dataloader:
    loss = criterion(model(batch), targets)
    losses.append(loss)  # Keeps full graph

# CORRECT: Extract scalar
losses = []
for batch in dataloader:
    loss = criterion(model(batch), targets)
    losses.append(loss.item())  # Only scalar, graph freed
