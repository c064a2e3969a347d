# WRONG: Clear cache every iteration (huge overhead)
for batch in dataloader:
    output = model(batch)
    torch.cuda.empty_cache()  # 50ms overhead × 1000 iters = 50s wasted

# CORRECT: Periodic clearing
for i, batch in enumerate(dataloader):
    output = model(batch)
    if i % 256 == 0:
        torch.cuda.empty_cache()  # 50ms × 4 = 200ms total
