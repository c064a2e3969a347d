class Button:
    def __init__(self):
        self.handlers = []
        self.handlers.append(lambda: self.label.show())
