"""Leak: a monitoring stream; the LSTM's state is an attribute that goes from window to window without detach or no_grad."""
import torch
from torch import nn

def sensor_windows(count, machines=64, length=100, channels=64):
    for _ in range(count):
        yield torch.randn(machines, length, channels, device="cuda")

class AnomalyDetector(nn.Module):
    def __init__(self, channels=64, hidden=256):
        super().__init__()
        self.lstm = nn.LSTM(channels, hidden, batch_first=True)
        self.predict = nn.Linear(hidden, channels)
        self.state = None

    def score(self, window):
        out, self.state = self.lstm(window, self.state)
        guess = self.predict(out[:, :-1])
        return (guess - window[:, 1:]).abs().amax(dim=(1, 2))

def main():
    detector = AnomalyDetector().cuda()
    alarms = []
    for t, window in enumerate(sensor_windows(24)):
        worst = detector.score(window)
        alarms.extend((t, m) for m in torch.nonzero(worst > 4.0).flatten().tolist())
    return detector, alarms
