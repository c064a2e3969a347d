import torch
model = torch.nn.Linear(2, 2)
model.eval()
correct = 0
for images, labels in test_loader:
    outputs = model(images)  # expect: eval-without-no-grad
    correct += (outputs.argmax(1) == labels).sum().item()
