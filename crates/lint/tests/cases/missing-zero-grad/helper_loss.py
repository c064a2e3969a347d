import torch


def compute_loss(model, batch, criterion):
    out = model(batch["x"])
    return criterion(out, batch["y"])


def main():
    model = torch.nn.Linear(10, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    criterion = torch.nn.CrossEntropyLoss()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(10):
        for batch in train_loader:
            loss = compute_loss(model, batch, criterion)
            loss.backward()  # expect: missing-zero-grad
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()


if __name__ == "__main__":
    main()
