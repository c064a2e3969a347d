import torch
from torch.autograd import Variable
model.eval()
for images, labels in test_loader:
    images = Variable(images, volatile=True)
    outputs = model(images)
    correct += (outputs.data.max(1)[1] == labels).sum()
