# BAD: Accumulates computation graphs
losses = []
for i in range(1000):
    output = model(input)
    loss = criterion(output, target)
    losses.append(loss)  # KEEPS GRAPH for all 1000 iterations

# Memory: 1000 × (model outputs + intermediate activations)
