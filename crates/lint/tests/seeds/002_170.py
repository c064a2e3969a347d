# GOOD: Extract scalar, discard graph
losses = []
for i in range(1000):
    output = model(input)
    loss = criterion(output, target)
    losses.append(loss.item())  # Scalar only, graph freed

# Memory: 1000 × sizeof(float) = 4KB (vs GB with graph)
