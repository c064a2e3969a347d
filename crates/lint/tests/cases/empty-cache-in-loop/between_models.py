import torch
for name in names:
    model = load_model(name)
    evaluate(model)
    del model
    torch.cuda.empty_cache()
