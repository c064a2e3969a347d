# BAD: Create new tensor with indexing
indices = torch.randint(0, 10, (5,))
subset = full_tensor[indices]  # New allocation

# GOOD: Use index_select with preallocated buffer
subset_buffer = torch.empty(5, full_tensor.size(1))
torch.index_select(full_tensor, 0, indices, out=subset_buffer)
