"""Source lines for the positions of work-items and of their accumulators, for each form."""

# The position of a work-item: output `o`, its first reduced element and the step to the next. With
# lanes, each may have one extra element at the end; the last chunk of columns may be shorter. (A
# condition around a last element would slow columns on a CPU device to a quarter.) The last group
# of a row of columns begins so that it is full, and recomputes outputs of the group before it.
# Short rows are processed in blocks: position `place` of a block belongs to one output and to one
# of its rows. A sub-group has one output. If the driver chooses the sub-group size, the kernel
# queries it; a launch has enough sub-groups for the largest size, and more if the size is smaller.
# If local memory holds the rows of a group, it has room for those of the largest size.
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
        "step = uint64({size})",
        "o = uint64(item.get_group().get_group_id(0)) * (uint64({lanes}) // step)",
        "o = o + uint64(sub_group.get_group_id())",
        "if int64(o) >= int64(kept):",
        "    return",
        "trips = int64(count // step)",
        "first = lane",
        "last = uint64(trips) * step + lane",
    ],
    "staged sub-groups": [
        "sub_group = item.get_sub_group()",
        "lane = uint64(sub_group.get_local_id())",
        "step = uint64({size})",
        "slot = uint64(sub_group.get_group_id())",
        "o = uint64(item.get_group().get_group_id(0)) * uint64({rows}) + slot",
        "if (int64(o) >= int64(kept)) | (int64(slot) >= {rows}):",
        "    return",
        "trips = int64(count // step)",
        "first = lane",
        "last = uint64(trips) * step + lane",
        "staged = slot * count",
    ],
    "columns": [
        "group = uint64(item.get_group().get_group_id(0))",
        "blocks = (row + width - uint64(1)) // width",
        "outer = group // blocks",
        "own = (group - outer * blocks) * width",
        "begin = own if own + width <= row else row - width",
        "lane = uint64(item.get_local_id(0))",
        "column = begin + lane",
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

# If one kernel merges the chunks: the counter of finished groups for an output or a row of outputs,
# the slot of a chunk, and the chunks that a work-item merges.
COUNTERS = {"lanes": "o", "columns": "outer * blocks + own // width"}

MERGED_INDEX = {
    "lanes": "counter * chunks + chunk",
    "columns": "(counter * chunks + chunk) * width + column - begin",
}

MERGED_CHUNKS = {"lanes": "range(int64(lane), int64(chunks), {lanes})", "columns": "range(chunks)"}
