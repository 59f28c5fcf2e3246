"""Operators on text, which stays on the host."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, row


@row("StringConcat")
def _concatenate(call: Call, x: Any, y: Any) -> Any:
    return np.asarray(np.char.add(x.astype(str), y.astype(str)), object)


@row("RegexFullMatch")
def _match(call: Call, x: Any) -> Any:
    pattern = re.compile(call["pattern"])
    matches = [pattern.fullmatch(str(each)) is not None for each in x.reshape(-1)]
    return np.asarray(matches, bool).reshape(x.shape)


@row("StringSplit")
def _split(call: Call, x: Any) -> Any:
    delimiter, most = call.get("delimiter") or None, call.get("maxsplit", -1)
    parts = [str(text).split(delimiter, most) if text else [] for text in x.reshape(-1)]
    counts = np.asarray([len(part) for part in parts], "int64").reshape(x.shape)
    width = max(map(len, parts), default=0)
    result = np.full((len(parts), width), "", object)
    for line, text in zip(result, parts, strict=True):
        line[: len(text)] = text
    return result.reshape(*x.shape, width), counts


@row("StringNormalizer")
def _normalize(call: Call, x: Any) -> Any:
    case = {"LOWER": str.lower, "UPPER": str.upper}.get(call.get("case_change_action", "NONE"), str)
    stop = call.get("stopwords", [])
    is_exact = bool(call.get("is_case_sensitive", 0))
    unwanted = set(stop) if is_exact else {word.lower() for word in stop}
    kept = [
        case(str(word)) for word in x.reshape(-1)
        if (str(word) if is_exact else str(word).lower()) not in unwanted
    ]  # fmt: skip
    result = np.asarray(kept or [""], object)
    return result.reshape(1, -1) if x.ndim == 2 else result


@row("TfIdfVectorizer")
def _count(call: Call, x: Any) -> Any:
    starts, places = list(call["ngram_counts"]), list(call["ngram_indexes"])
    longest = min(int(call["max_gram_length"]), len(starts))
    lengths = range(int(call["min_gram_length"]), longest + 1)
    if min(places, default=-1) < 0:
        raise OnnxError("ngram_indexes must be at least one position, none of them negative")
    words = list(call.get("pool_strings") or call["pool_int64s"])
    weights, mode = call.get("weights") or [1.0] * len(places), call["mode"]
    grams: dict[tuple[Any, ...], int] = {}
    for length, (start, stop) in enumerate(zip(starts, [*starts[1:], len(words)], strict=True), 1):
        for at in range(start, stop, length):
            number = len(grams)
            grams[tuple(words[at : at + length])] = number
    texts = call.host(x)
    lines = texts.reshape(1, -1) if texts.ndim < 2 else texts
    call.check_size((len(lines), max(places) + 1), "float32")
    result = np.zeros((len(lines), max(places) + 1), "float32")
    for row_number, line in enumerate(lines.tolist()):
        for length in lengths:
            for apart in range(1, min(int(call["max_skip_count"]) + 1, len(line)) + 1):
                for at in range(len(line) - apart * (length - 1)):
                    number = grams.get(tuple(line[at : at + apart * length : apart][:length]), -1)
                    if number >= 0:
                        result[row_number, places[number]] += 1
                if length == 1:
                    break
    factors = np.zeros(result.shape[1], "float32")
    factors[places] = weights
    if mode != "TF":
        counts = (result > 0) if mode == "IDF" else result
        result = counts.astype("float32") * factors
    return result[0] if texts.ndim < 2 else result
