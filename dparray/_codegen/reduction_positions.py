"""Where the work-items of a kernel with reductions are, and where their accumulators: lines of its
text, for each form.
"""

# Where a work-item is: output `o`, the first of its reduced elements and the step to the next. With
# lanes, each may have one more, the last; columns have fewer in the last chunk. (With a condition
# around a last element, a CPU device walks columns at a quarter of the speed.) The last group of a
# row of columns begins where it is full, with outputs that the group before it stores. Short
# rows are walked in blocks: place `place` of a block belongs to one output and to one of its rows.
# A sub-group has one output. The driver chooses its size, so the kernel asks for it; a launch has
# sub-groups enough if they are of the largest size, and more otherwise.
POSITIONS = {
    "items": [
        "o = uint64(item.get_global_id(0))",
        "if int64(o) >= int64(kept):",
        "    return",
        "first = uint64(0)",
        "step = uint64(1)",
    ],
    "lanes": [
        "group = item.get_group()",
        "lane = uint64(item.get_local_id(0))",
        "number = uint64(group.get_group_id(0))",
        "o = number // chunks",
        "chunk = number - o * chunks",
        "step = uint64({lanes})",
        "first = chunk * uint64(trips) * step + lane",
        "last = chunks * uint64(trips) * step + chunk * step + lane",
    ],
    "rows": [
        "group = item.get_group()",
        "lane = uint64(item.get_local_id(0))",
        "step = uint64({lanes})",
        "begin = uint64(group.get_group_id(0)) * step",
        "first = lane",
        "last = uint64(trips) * step + lane",
    ],
    "sub-groups": [
        "sub_group = item.get_sub_group()",
        "lane = uint64(sub_group.get_local_id())",
        "step = uint64(sub_group.get_local_range())",
        "o = uint64(item.get_group().get_group_id(0)) * (uint64({lanes}) // step)",
        "o = o + uint64(sub_group.get_group_id())",
        "if int64(o) >= int64(kept):",
        "    return",
        "trips = int64(count // step)",
        "first = lane",
        "last = uint64(trips) * step + lane",
    ],
    "columns": [
        "group = uint64(item.get_group().get_group_id(0))",
        "blocks = (row + width - uint64(1)) // width",
        "outer = group // blocks",
        "own = (group - outer * blocks) * width",
        "begin = own if own + width <= row else row - width",
        "column = begin + uint64(item.get_local_id(0))",
        "rows = kept // row",
        "chunk = outer // rows",
        "outer = outer - chunk * rows",
        "first = chunk * uint64(trips)",
        "trips = trips if count - first >= uint64(trips) else int64(count - first)",
        "step = uint64(1)",
    ],
    "short rows": [
        "chunk = uint64(item.get_group().get_group_id(0))",
        "step = width // row",
        "blocks = count // step",
        "begin = chunk * uint64(trips)",
        "trips = trips if blocks - begin >= uint64(trips) else int64(blocks - begin)",
        "place = uint64(item.get_local_id(0))",
    ],
}


PARTIAL_INDEX = {
    "items": "o",
    "sub-groups": "o",
    "lanes": "o * chunks + chunk",
    "columns": "chunk * kept + o",
    "short rows": "chunk * width + place",
}


# Where one kernel merges the chunks: the counter of the groups that have left an output's, or a row
# of outputs', the slot of a chunk, and which chunks a work-item merges.
COUNTERS = {"lanes": "o", "columns": "outer * blocks + own // width"}


MERGED_INDEX = {
    "lanes": "counter * chunks + chunk",
    "columns": "(counter * chunks + chunk) * width + column - begin",
}


MERGED_CHUNKS = {"lanes": "range(int64(lane), int64(chunks), {lanes})", "columns": "range(chunks)"}
