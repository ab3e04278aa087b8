"""The answers of the labs, for tests that grade many files with the same beginning."""


def repeats(file, answer):
    """Whether a file has all the code of an answer, line by line and nothing between, and only adds to it."""
    there, code = code_of(file), code_of(answer)
    return any(there[at : at + len(code)] == code for at in range(len(there)))


def code_of(file):
    lines = file.read_text().partition("\nif __name__")[0].splitlines()
    return [line for line in lines if line and not line.startswith(('"""', "#", "//"))]
