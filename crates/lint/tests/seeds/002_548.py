# WRONG: Deletes tensors needed for backward
outputs = model(inputs)
loss = criterion(outputs, targets)
del outputs  # ERROR: outputs needed for loss.backward()
loss.backward()

# CORRECT: Delete after backward
outputs = model(inputs)
loss = criterion(outputs, targets)
loss.backward()
del outputs, loss  # OK: backward done
