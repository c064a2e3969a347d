import torch
import torch.nn as nn

model = nn.DataParallel(Net()).cuda()
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)  # expect: data-parallel-device
        loss.backward()
        optimizer.step()
