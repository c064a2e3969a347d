import torch, weakref
class Trainer:
    def __init__(self, model):
        self.model = model
        self.hooks = []
    def watch(self):
        me = weakref.ref(self)
        self.hooks.append(lambda: me().model.train())
