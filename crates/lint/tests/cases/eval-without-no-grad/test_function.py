import torch


def evaluate(model, data_loader, metric):
    model.eval()
    for i, batch in enumerate(data_loader):
        inputs = {k: v.cuda() for k, v in batch.items()}
        outputs = model(**inputs)  # expect: eval-without-no-grad
        metric.add_batch(outputs.logits.argmax(-1), inputs["labels"])
    return metric.compute()
