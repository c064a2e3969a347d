# BAD: Allocate new tensor each iteration
for i in range(1000):
    output = torch.zeros(batch_size, hidden_dim, device='cuda')
    # ... compute into output ...

# GOOD: Preallocate buffer, reuse
output_buffer = torch.zeros(batch_size, hidden_dim, device='cuda')
for i in range(1000):
    output_buffer.zero_()  # Clear to zeros in-place
    # ... compute into output_buffer ...

    # Or use fill_()
    output_buffer.fill_(0.0)
