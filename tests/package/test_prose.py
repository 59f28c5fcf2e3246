"""Texts follow the style sheet: plain American English, the field's terms, short sentences.

The checks are simple on purpose. They catch the habits that made earlier texts hard to read.
Pages and docstrings must pass all of them. Comments and messages must use the field's terms and
American spelling. Docstrings of tests may state a fact instead of beginning with a verb.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted(path for top in ("dparray", "notebooks") for path in (ROOT / top).rglob("*.md")),
]
MAX_WORDS = 30

#: Words of the left column of the style sheet's table of terms, and their replacements.
TERMS = {
    r"\bhalves\b(?! =|\])": "float16",
    r"\btruth values?\b": "Boolean",
    r"\bcanonical queue\b": "default queue",
    r"\bmended\b|\bmends\b|\bcures?\b": "fix",
    r"\bnoted down\b": "recorded",
    r"\bput off\b": "deferred",
    r"\bshort way\b": "fast path",
    r"\bkin\b": "related functions",
    r"\bsoak\b": "stress test",
    r"\bbut for\b": "except",
    r"\bwhich else\b": "otherwise",
    r"\bso many\b": "N",
    r"\bin the place of\b": "instead of",
    r"\bat once\b": "immediately, or together",
    r"\bin silence\b": "silently",
    r"\bwho knows\b": "if you know",
    r"\bour own\b|\bours\b|\btheirs\b": "dparray's",
}
BRITISH = re.compile(
    r"\b\w*(?:colour|neighbour|behaviour|favour|normalis|optimis|initialis|standardis|vectoris|"
    r"recognis|summaris|centred|licence)\w*\b",
    re.IGNORECASE,
)
NOUN_CLAUSE = re.compile(r"(?:^|[.:;] )What [a-z]+ (?!(?:is|are|does|do|did|can)\b)[^?]*$")


def prose(text: str) -> str:
    """Return the sentences of a page, without front matter, code, tables and directives."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1[`:]*$", "", text, flags=re.M | re.S)
    text = re.sub(r"^\|.*$|^#.*$|^:.*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`", "code", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", prose(text)):
        joined = " ".join(paragraph.split())
        yield from (s for s in re.split(r"(?<=[.!?:;])\s+", joined) if s)


def problems(text: str) -> Iterator[str]:
    for sentence in sentences(text):
        words = len(sentence.split())
        if words > MAX_WORDS:
            yield f"{words} words: {sentence}"
        if NOUN_CLAUSE.search(sentence):
            yield f'noun clause with "What": {sentence}'
        for pattern, better in TERMS.items():
            if re.search(pattern, sentence, re.IGNORECASE):
                yield f"{better} instead of {pattern}: {sentence}"
        if found := BRITISH.search(sentence):
            yield f"American spelling, not {found[0]}: {sentence}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_plain(path: Path) -> None:
    assert not list(problems(path.read_text()))


MODULES = sorted((ROOT / "dparray").rglob("*.py"))
KERNELS = sorted((ROOT / "kernels").rglob("*.py"))
#: This file is left out, because it contains the inputs of the checks.
TESTS = sorted({*(ROOT / "tests").rglob("*.py")} - {Path(__file__)})


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, without their examples."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield (ast.get_docstring(node) or "").partition("Example:")[0]


def code_texts(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a module, without their examples."""
    yield from docstrings(ast.parse(path.read_text()))
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.string.lstrip("#: ")


def code_problems(path: Path, terms: dict[str, str]) -> Iterator[str]:
    for text in code_texts(path):
        words = re.sub(r"``?[^`]*``?", "code", text)
        for pattern, better in terms.items():
            if found := re.search(pattern, words, re.IGNORECASE):
                yield f"{path}: {better} instead of {found[0]!r}: {text}"
        if found := BRITISH.search(words):
            yield f"{path}: American spelling, not {found[0]}: {text}"


def test_comments_and_docstrings_use_the_terms_of_the_field() -> None:
    found = []
    for path in MODULES + KERNELS + TESTS:
        found += code_problems(path, TERMS)
    assert not found, "\n".join(found)


#: Headings, lists of arguments and literal blocks end a sentence of a docstring.
ENDS = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |\n *\w+: (?=\w)|::\n")
#: Tables, trees and grammars in docstrings have no sentences.
NO_SENTENCE = re.compile(r"===|\|-|[{}\"]{2}|::=| = .* \| ")


def docstring_problems(path: Path) -> Iterator[str]:
    for text in docstrings(ast.parse(path.read_text())):
        for paragraph in ENDS.split(re.sub(r"``?[^`]*``?", "code", text)):
            if NO_SENTENCE.search(paragraph):
                continue
            for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split())):
                if len(sentence.split()) > MAX_WORDS:
                    yield f"{path}: {len(sentence.split())} words: {sentence}"
                if NOUN_CLAUSE.search(sentence):
                    yield f'{path}: noun clause with "What": {sentence}'


def test_docstrings_have_short_sentences() -> None:
    paths = MODULES + KERNELS + TESTS
    found = [problem for path in paths for problem in docstring_problems(path)]
    assert not found, "\n".join(found)


#: First words of a summary that describes instead of naming the action.
NO_VERB = re.compile(
    r"(?:The|An?|One|All|Each|Every|Whether|What|How|Where|Which|Who|Like|As|If|At|Of|For|In|No|Its?|"
    r"Names?|Numbers?|Two|This|That|Only|[A-Z]\w*'s|[A-Z][a-z]*[^s]s|`.*)$"
)
#: "Name a value" and "Number the parts" are imperative.
VERBS = {"Name", "Number"}


def functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods of a module; a property is described as its value is."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        elif isinstance(node, ast.FunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if not node.name.startswith("__") and not re.search("property|setter", decorators):
                yield node


def summary_problems(path: Path) -> Iterator[str]:
    for function in functions(ast.parse(path.read_text())):
        first = (ast.get_docstring(function) or "").partition(" ")[0]
        if NO_VERB.match(first) and first not in VERBS:
            yield f"{path}:{function.lineno}: {function.name}'s docstring begins with {first!r}"


def test_docstrings_begin_with_a_verb() -> None:
    found = [problem for path in MODULES + KERNELS for problem in summary_problems(path)]
    assert not found, "\n".join(found)


def test_the_check_of_summaries_finds(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('def f():\n    """The sum."""\n\ndef g():\n    """Return the sum."""\n')
    assert len(list(summary_problems(path))) == 1


def test_the_check_of_docstrings_finds(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""A text.\n\n{"word " * 31}.\nWhat fails here stands in the list.\n"""\n')
    assert len(list(docstring_problems(path))) == 2


def test_the_check_of_comments_finds(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""A text."""\n\nx = 1  # noted down\n# a neighbouring element\n')
    assert len(list(code_problems(path, TERMS))) == 2
    assert len(list(code_problems(path, {}))) == 1


MAX_WORDS_OF_A_MESSAGE = 45
#: Phrases that messages replace by "must be ...; got ..."; NumPy's sentence stays NumPy's.
MESSAGE_TERMS = TERMS | {
    r"\bis none of\b": "must be one of",
    r"\btruth values?\b(?! of an? \w+ of| of several)": "Boolean",
}
del MESSAGE_TERMS[r"\btruth values?\b"]


def messages(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the strings of a module with four words or more; values in them become "0".

    The second value says whether the string is the message of a ``raise`` statement.
    """
    tree = ast.parse(path.read_text())
    raised = set[ast.AST]()
    apart = set[ast.AST]()  # docstrings, and the parts of formatted strings
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            raised |= {*node.exc.args, *(each.value for each in node.exc.keywords)}
        elif isinstance(node, ast.Expr):
            apart.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            apart |= {*ast.walk(node)} - {node}
    for node in ast.walk(tree):
        if node in apart:
            continue
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (getattr(each, "value", None) for each in node.values)
            text = "".join(part if isinstance(part, str) else "0" for part in parts)
        if len(text.split()) > 3 or node in raised:
            yield text, node in raised


def message_problems(path: Path) -> Iterator[str]:
    for message, is_raised in messages(path):
        words = re.sub(r"`[^`]*`", "code", message)
        if is_raised and len(words.split()) > MAX_WORDS_OF_A_MESSAGE:
            yield f"{path}: more than {MAX_WORDS_OF_A_MESSAGE} words: {message}"
        for pattern, better in MESSAGE_TERMS.items():
            if found := re.search(pattern, words, re.IGNORECASE):
                yield f"{path}: {better} instead of {found[0]!r}: {message}"
        if found := BRITISH.search(words):
            yield f"{path}: American spelling, not {found[0]}: {message}"


def test_error_messages_use_the_terms_of_the_field() -> None:
    found = [problem for path in MODULES for problem in message_problems(path)]
    assert not found, "\n".join(found)


def test_the_check_of_messages_finds(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "raise ValueError(f\"mode {mode!r} is none of 'r', 'w'\")\n"
        "raise TypeError('halves are not taken')\n"
        f"raise KeyError('{'word ' * 46}')\n"
        "raise ValueError('fine')\n"
        "problem = 'this is computed at once'\n"
    )
    assert len(list(message_problems(path))) == 4


@pytest.mark.parametrize(
    "text",
    [
        "What fails here stands in the list.",
        "The sums of halves are single.",
        "A colour is one of its neighbours.",
        "It is computed at once.",
        "one " * 31,
    ],
)
def test_the_checks_find(text: str) -> None:
    assert list(problems(text))
