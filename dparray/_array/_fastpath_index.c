/* x[index] and x[index] = value. */

/* --- indices ---------------------------------------------------------------------------------- */

/* An integer: Python's, NumPy's, or in an array without dimensions of an idle queue. */
static int integer_of(PyObject *entry, npy_intp *value)
{
    if (Py_TYPE(entry) == &PyLong_Type) {
        *value = PyLong_AsSsize_t(entry);
        if (*value == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return 1;
    }
    PyObject *seen = seen_of(entry);
    if (seen) {
        PyArrayObject *array = AS_ARRAY(seen);
        if (PyArray_NDIM(array) || !PyArray_ISINTEGER(array) || !is_ready(entry, 0))
            return 0;
        if (PyArray_TYPE(array) == NPY_INT64)
            *value = *(npy_int64 *)PyArray_DATA(array);
        else if (PyArray_TYPE(array) == NPY_INT32)
            *value = *(npy_int32 *)PyArray_DATA(array);
        else
            return 0;
        return 1;
    }
    if (PyArray_IsScalar(entry, Integer)) {
        *value = PyNumber_AsSsize_t(entry, NULL);
        return 1;
    }
    return 0;
}

/* Where the element lies that integers select, one for each dimension; NULL of all other indices,
 * and of those outside. */
static char *element_at(PyArrayObject *seen, PyObject *index)
{
    int count = PyArray_NDIM(seen), is_tuple = Py_TYPE(index) == &PyTuple_Type;
    char *at = PyArray_BYTES(seen);
    if (count == 0 || (is_tuple ? PyTuple_Size(index) != count : count != 1))
        return NULL;
    for (int axis = 0; axis < count; axis++) {
        npy_intp place, extent = PyArray_DIM(seen, axis);
        if (!integer_of(is_tuple ? PyTuple_GetItem(index, axis) : index, &place))
            return NULL;
        if (place < 0)
            place += extent;
        if (place < 0 || place >= extent)
            return NULL;
        at += place * PyArray_STRIDE(seen, axis);
    }
    return at;
}

/* The index as NumPy takes it, whose arrays without dimensions have become numbers; NULL without an
 * exception if it is none of integers, slices, None and Ellipsis. */
static PyObject *plain_of(PyObject *index)
{
    npy_intp value;
    if (is_plain(index))
        return Py_NewRef(index);
    if (Py_TYPE(index) != &PyTuple_Type)
        return integer_of(index, &value) ? PyLong_FromSsize_t(value) : NULL;
    Py_ssize_t count = PyTuple_Size(index);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *entry = PyTuple_GetItem(index, at);
        if (!is_plain_entry(entry) && !integer_of(entry, &value))
            return NULL;
    }
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t at = 0; made && at < count; at++) {
        PyObject *entry = PyTuple_GetItem(index, at);
        PyObject *part = is_plain_entry(entry) ? Py_NewRef(entry) : NULL;
        if (!part && integer_of(entry, &value))
            part = PyLong_FromSsize_t(value);
        if (!part || PyTuple_SetItem(made, at, part) < 0)
            Py_CLEAR(made);
    }
    return made;
}

/* The first byte of an array and the one after its last. */
static void extent_of(PyArrayObject *array, char **first, char **last)
{
    *first = *last = PyArray_BYTES(array);
    for (int axis = 0; axis < PyArray_NDIM(array); axis++) {
        npy_intp span = (PyArray_DIM(array, axis) - 1) * PyArray_STRIDE(array, axis);
        *(span < 0 ? first : last) += span;
    }
    *last += PyArray_ITEMSIZE(array);
}

static int lie_apart(PyArrayObject *one_, PyArrayObject *other)
{
    char *first, *last, *others_first, *others_last;
    extent_of(one_, &first, &last);
    extent_of(other, &others_first, &others_last);
    return last <= others_first || others_last <= first;
}

/* What the host sees of an array of few positions or a mask, on the queue of another; NULL of all
 * others. `target` is what is not to be written through it, or NULL. */
static PyObject *chosen_by(PyObject *self, PyObject *entry, npy_intp most, PyArrayObject *target)
{
    PyObject *chosen = seen_of(entry);
    if (!chosen || SLOT(entry, at_queue) != SLOT(self, at_queue) ||
        SLOT(entry, at_usm_type) != SLOT(self, at_usm_type))
        return NULL;
    PyArrayObject *array = AS_ARRAY(chosen);
    if ((!PyArray_ISBOOL(array) && !PyArray_ISINTEGER(array)) || PyArray_SIZE(array) > most ||
        PyArray_NDIM(array) == 0 || (target && !lie_apart(target, array)) || !is_ready(entry, 0))
        return NULL;
    return chosen;
}

/* The index as NumPy takes it, with what the host sees of arrays of positions and of masks; NULL
 * without an exception where it has none, or is to be left to Python. At most so many elements are
 * selected as there are positions, times those of a row. */
static PyObject *chosen_of(PyObject *self, PyObject *seen, PyObject *index, int is_to_write)
{
    PyArrayObject *array = AS_ARRAY(seen), *target = is_to_write ? array : NULL;
    npy_intp most = most_elements, value;
    if (!PyArray_NDIM(array) || (is_to_write && PyArray_SIZE(array) > most))
        return NULL;
    if (Py_TYPE(index) == array_type) {
        PyObject *chosen = chosen_by(self, index, most, target);
        if (!chosen || !is_ready(self, 0))
            return NULL;
        npy_intp size = PyArray_SIZE(AS_ARRAY(chosen));
        if (PyArray_ISBOOL(AS_ARRAY(chosen)))
            size = PyArray_SIZE(array);
        else
            for (int axis = 1; axis < PyArray_NDIM(array); axis++)
                size *= PyArray_DIM(array, axis);
        return size <= most ? Py_NewRef(chosen) : NULL;
    }
    if (Py_TYPE(index) != &PyTuple_Type || PyArray_SIZE(array) > most)
        return NULL;
    Py_ssize_t count = PyTuple_Size(index);
    PyArrayObject *first = NULL;
    npy_intp size = 1;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *entry = PyTuple_GetItem(index, at), *chosen;
        if (is_plain_entry(entry) || integer_of(entry, &value))
            continue;
        if (Py_TYPE(entry) != array_type || !(chosen = chosen_by(self, entry, most, target)))
            return NULL;
        if (first && PyArray_SAMESHAPE(first, AS_ARRAY(chosen)))
            continue;
        first = AS_ARRAY(chosen);
        npy_intp others = PyArray_SIZE(first);
        size = others && size > most / others ? most + 1 : size * others;
    }
    if (!first || size > most || !is_ready(self, 0))
        return NULL;
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t at = 0; made && at < count; at++) {
        PyObject *entry = PyTuple_GetItem(index, at), *part;
        if (is_plain_entry(entry))
            part = Py_NewRef(entry);
        else if (integer_of(entry, &value))
            part = PyLong_FromSsize_t(value);
        else
            part = Py_NewRef(SLOT(entry, at_seen));
        if (!part || PyTuple_SetItem(made, at, part) < 0)
            Py_CLEAR(made);
    }
    return made;
}

/* What an index of `chosen_of` selects, whose reference is taken. */
static PyObject *of_chosen(PyObject *self, PyObject *seen, PyObject *index, PyObject *chosen)
{
    PyObject *found = PyObject_GetItem(seen, chosen);
    Py_DECREF(chosen);
    if (found && Py_TYPE(found) == &PyArray_Type && PyArray_BASE(AS_ARRAY(found))) {
        /* beside slices NumPy reorders the axes of what it has made */
        PyObject *own = PyArray_NewCopy(AS_ARRAY(found), NPY_KEEPORDER);
        Py_DECREF(found);
        found = own;
    }
    if (found && Py_TYPE(found) == &PyArray_Type)
        return make(self, found, NULL);
    Py_XDECREF(found);
    return is_fallback_error() ? general(slow_getitem, self, index, NULL) : NULL;
}

static PyObject *getitem_of(PyObject *self, PyObject *seen, PyObject *index)
{
    PyObject *plain, *found;
    if (Py_TYPE(index) == array_type) {
        PyObject *chosen = chosen_of(self, seen, index, 0);
        if (chosen)
            return of_chosen(self, seen, index, chosen);
    }
    char *element = element_at(AS_ARRAY(seen), index);
    if (element) {
        if (!is_ready(self, 0))
            goto slow;
        return make_number(self, PyArray_DESCR(AS_ARRAY(seen)), element);
    }
    plain = plain_of(index);
    if (!plain) {
        if (!is_fallback_error())
            return NULL;
        PyObject *chosen = chosen_of(self, seen, index, 0);
        if (chosen)
            return of_chosen(self, seen, index, chosen);
        goto slow;
    }
    found = PyObject_GetItem(seen, plain);
    Py_DECREF(plain);
    if (!found) {
        if (!is_fallback_error())
            return NULL;
        goto slow;
    }
    if (Py_TYPE(found) == &PyArray_Type) {
        if (!PyArray_SIZE(AS_ARRAY(found))) { /* what has no elements shares no memory */
            PyObject *empty = PyArray_NewCopy(AS_ARRAY(found), NPY_CORDER);
            Py_DECREF(found);
            return empty ? make(self, empty, NULL) : NULL;
        }
        PyObject *base = PyArray_BASE(AS_ARRAY(seen));
        if (!base) {
            Py_DECREF(found);
            PyObject *shared = view_to_share(self);
            if (!shared)
                return is_fallback_error() ? general(slow_getitem, self, index, NULL) : NULL;
            PyObject *part = getitem_of(self, shared, index);
            Py_DECREF(shared);
            return part;
        }
        if (PyArray_BASE(AS_ARRAY(found)) == base)
            return make(self, found, SLOT(self, at_block));
    } else if (PyArray_NDIM(AS_ARRAY(seen)) == 0 && is_ready(self, 0)) { /* x[()] is a copy */
        Py_DECREF(found);
        return make_number(self, PyArray_DESCR(AS_ARRAY(seen)), PyArray_DATA(AS_ARRAY(seen)));
    }
    Py_DECREF(found);
slow:
    return general(slow_getitem, self, index, NULL);
}

/* The view of an array in memory that the host does not see, which a basic index selects. NumPy
 * computes its layout from a header over no memory: with an Ellipsis in the index, it reads no element.
 * NULL without an exception for all other arrays and indices, and for empty views. `is_element` is set
 * if integers select one element. */
static PyObject *view_of_memory(PyObject *self, PyObject *index, int *is_element)
{
    PyObject *shape = SLOT(self, at_shape), *strides = SLOT(self, at_strides), *made = NULL;
    PyObject *offset = SLOT(self, at_offset), *dtype = SLOT(self, at_dtype);
    npy_intp extents[MAX_DIMENSIONS], steps[MAX_DIMENSIONS];
    char *first = (char *)(size_t)4096;
    if (Py_TYPE(self) != array_type || !shape || !strides || !offset || !dtype || !is_plain(index) ||
        !SLOT(self, at_queue) || !SLOT(self, at_usm_type) || !SLOT(self, at_block) ||
        Py_TYPE(SLOT(self, at_block)) != block_type || seen_of(self))
        return NULL;
    Py_ssize_t count = PyTuple_Size(shape);
    for (Py_ssize_t axis = 0; axis < count && axis < MAX_DIMENSIONS; axis++) {
        extents[axis] = PyLong_AsSsize_t(PyTuple_GetItem(shape, axis));
        steps[axis] = PyLong_AsSsize_t(PyTuple_GetItem(strides, axis));
    }
    if (count > MAX_DIMENSIONS)
        return NULL;
    Py_INCREF(dtype);
    PyObject *header = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)dtype, (int)count,
                                            extents, steps, first, 0, NULL);
    PyObject *whole = Py_TYPE(index) == &PyTuple_Type ? Py_NewRef(index) : PyTuple_Pack(1, index);
    int has_rest = whole == NULL;
    for (Py_ssize_t at = 0; !has_rest && at < PyTuple_Size(whole); at++)
        has_rest = PyTuple_GetItem(whole, at) == Py_Ellipsis;
    if (!has_rest) {
        PyObject *rest = PyTuple_Pack(1, Py_Ellipsis), *key = NULL;
        if (rest)
            key = PySequence_Concat(whole, rest);
        Py_XDECREF(rest);
        Py_DECREF(whole);
        whole = key;
    }
    PyObject *found = header && whole ? PyObject_GetItem(header, whole) : NULL;
    if (found && PyArray_SIZE(AS_ARRAY(found)) && (made = new_array(SLOT(self, at_queue),
                                                                    SLOT(self, at_usm_type)))) {
        put(made, at_block, SLOT(self, at_block));
        put(made, at_dtype, dtype);
        SLOT(made, at_shape) = PyObject_GetAttrString(found, "shape");
        SLOT(made, at_strides) = PyObject_GetAttrString(found, "strides");
        SLOT(made, at_size) = PyLong_FromSsize_t(PyArray_SIZE(AS_ARRAY(found)));
        SLOT(made, at_offset) = PyLong_FromSsize_t(PyLong_AsSsize_t(offset) +
                                                   (PyArray_BYTES(AS_ARRAY(found)) - first));
        PyObject_GC_UnTrack(made);
        *is_element = !has_rest && PyArray_NDIM(AS_ARRAY(found)) == 0;
    }
    Py_XDECREF(header);
    Py_XDECREF(whole);
    Py_XDECREF(found);
    if (PyErr_Occurred() && is_fallback_error())
        Py_CLEAR(made);
    return made;
}

static PyObject *getitem(PyObject *self, PyObject *index)
{
    /* A reference of its own: another thread may give the array other memory meanwhile. */
    PyObject *seen = view_to_index(self), *found;
    int is_element = 0;
    if (seen) {
        found = getitem_of(self, seen, index);
        Py_DECREF(seen);
        return found;
    }
    if (!is_fallback_error())
        return NULL;
    found = view_of_memory(self, index, &is_element);
    if (!found)
        return PyErr_Occurred() ? NULL : general(slow_getitem, self, index, NULL);
    if (is_element) { /* a copy: later writes do not change it, as in NumPy */
        PyObject *view = found;
        found = general(slow_element, view, NULL, NULL);
        Py_DECREF(view);
    }
    return found;
}

/* --- assignment --------------------------------------------------------------------------------- */

static int lie_alike(PyArrayObject *x, PyArrayObject *y)
{
    if (PyArray_BYTES(x) != PyArray_BYTES(y) || PyArray_NDIM(x) != PyArray_NDIM(y))
        return 0;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++)
        if (PyArray_DIM(x, axis) != PyArray_DIM(y, axis) ||
            PyArray_STRIDE(x, axis) != PyArray_STRIDE(y, axis))
            return 0;
    return 1;
}

/* Whether a Python number is written to elements of a dtype as it is. */
static int holds(PyArrayObject *target, PyObject *value)
{
    int is_inexact = PyArray_ISFLOAT(target) || PyArray_ISCOMPLEX(target);
    return (PyFloat_CheckExact(value) && is_inexact) ||
           (PyLong_CheckExact(value) && (is_inexact || PyArray_ISINTEGER(target))) ||
           PyBool_Check(value);
}

/* Write to a part of a NumPy array, without warnings: conversions may overflow. */
static int write_silently(PyObject *target, PyObject *index, PyObject *value)
{
    if (!enter())
        return 0;
    int is_done = PyObject_SetItem(target, index, value) == 0;
    leave(is_done);
    return is_done;
}

/* Whether an array is a part of another one, as after x[1:] += 1: then nothing is to be written. */
static int is_that_part(PyObject *self, PyObject *part, PyObject *value, PyArrayObject *source)
{
    return Py_TYPE(part) == &PyArray_Type && SLOT(self, at_block) != Py_None &&
           SLOT(value, at_block) == SLOT(self, at_block) &&
           PyArray_DESCR(source) == PyArray_DESCR(AS_ARRAY(part)) &&
           lie_alike(AS_ARRAY(part), source);
}

/* Copy elements of one dtype, or convert them without warnings. */
static int copy_silently(PyObject *target, PyObject *source)
{
    if (PyArray_DESCR(AS_ARRAY(source)) == PyArray_DESCR(AS_ARRAY(target)))
        return PyArray_CopyInto(AS_ARRAY(target), AS_ARRAY(source)) == 0;
    return write_silently(target, Py_Ellipsis, source);
}

/* Write to a part of what the host sees: 1 if it is done, 0 if not, which may be an exception. */
static int write_part(PyObject *self, PyObject *seen, PyObject *index, PyObject *value)
{
    PyArrayObject *target = AS_ARRAY(seen);
    PyObject *source = value, *part = NULL;
    int done = 0;
    for (int axis = 0; axis < PyArray_NDIM(target); axis++)
        if (PyArray_STRIDE(target, axis) == 0) /* elements that share memory are not written */
            return 0;
    if (Py_TYPE(value) == array_type) {
        source = seen_of(value);
        if (!source || SLOT(value, at_queue) != SLOT(self, at_queue) ||
            PyArray_SIZE(AS_ARRAY(source)) == 0 ||
            (PyArray_ISCOMPLEX(AS_ARRAY(source)) && !PyArray_ISCOMPLEX(target)))
            return 0;
    } else if (!holds(target, value))
        return 0;
    char *element = element_at(target, index);
    int is_whole = source == value && effective_write_size(target) <= most_elements;
    if (!element && !is_whole) {
        if (!(part = PyObject_GetItem(seen, index)))
            return 0;
        if (source != value && is_that_part(self, part, value, AS_ARRAY(source))) {
            Py_DECREF(part);
            return 1;
        }
    }
    if (!is_free_to_write(self) || !is_ready(value, 0))
        done = 0;
    else if (source == value && !part)
        done = write_silently(seen, index, value);
    else if (element && PyArray_NDIM(AS_ARRAY(source)))
        done = 0;
    else if (element && PyArray_DESCR(AS_ARRAY(source)) == PyArray_DESCR(target)) {
        memmove(element, PyArray_DATA(AS_ARRAY(source)), PyArray_ITEMSIZE(target));
        done = 1;
    } else if (element || Py_TYPE(part) != &PyArray_Type) /* one element */
        done = source == value || PyArray_NDIM(AS_ARRAY(source)) == 0
                   ? write_silently(seen, index, source)
                   : 0;
    else if (PyArray_SIZE(AS_ARRAY(part)) == 0 || effective_write_size(AS_ARRAY(part)) > most_elements)
        done = 0;
    else if (source == value)
        done = write_silently(part, Py_Ellipsis, source);
    else if (lie_apart(AS_ARRAY(part), AS_ARRAY(source)))
        done = copy_silently(part, source);
    else { /* NumPy takes x[::2] = x[:n] for an assignment that needs no copy */
        PyObject *apart = PyArray_NewCopy(AS_ARRAY(source), NPY_KEEPORDER);
        done = apart ? copy_silently(part, apart) : 0;
        Py_XDECREF(apart);
    }
    Py_XDECREF(part);
    return done;
}

/* Write to elements that masks and positions select, as write_part. */
static int write_chosen(PyObject *self, PyObject *seen, PyObject *index, PyObject *value)
{
    PyArrayObject *target = AS_ARRAY(seen);
    PyObject *source = value;
    for (int axis = 0; axis < PyArray_NDIM(target); axis++)
        if (PyArray_STRIDE(target, axis) == 0)
            return 0;
    if (Py_TYPE(value) == array_type) {
        source = seen_of(value);
        if (!source || SLOT(value, at_queue) != SLOT(self, at_queue) ||
            PyArray_DESCR(AS_ARRAY(source)) != PyArray_DESCR(target) ||
            PyArray_SIZE(AS_ARRAY(source)) == 0 || !lie_apart(target, AS_ARRAY(source)))
            return 0;
    } else if (!holds(target, value))
        return 0;
    PyObject *chosen = chosen_of(self, seen, index, 1);
    if (!chosen)
        return 0;
    int is_done = is_free_to_write(self) && is_ready(value, 0) &&
                  write_silently(seen, chosen, source);
    Py_DECREF(chosen);
    return is_done;
}

/* Write a number or an array to a part of a small array: 1 if it is done, 0 if the general way is
 * to do it, -1 with an exception. */
static int write_now(PyObject *self, PyObject *index, PyObject *value)
{
    PyObject *seen = view_to_index(self), *plain = NULL;
    PyObject *positions = seen_of(index), *source = seen_of(value);
    int done = 0;
    Py_XINCREF(source); /* as in getitem */
    if (seen && positions && PyArray_NDIM(AS_ARRAY(positions)))
        done = write_chosen(self, seen, index, value);
    else if (seen && (plain = plain_of(index)))
        done = write_part(self, seen, plain, value);
    else if (seen && !PyErr_Occurred())
        done = write_chosen(self, seen, index, value);
    Py_XDECREF(plain);
    Py_XDECREF(seen);
    Py_XDECREF(source);
    return !done && PyErr_Occurred() && !is_fallback_error() ? -1 : done;
}

/* Whether a value is already at its destination, as after x[1:] += 1. */
static int is_there(PyObject *part, PyObject *value)
{
    const Py_ssize_t places[] = {at_offset, at_shape, at_strides, at_dtype};
    int is_same = Py_TYPE(value) == array_type && SLOT(value, at_block) == SLOT(part, at_block);
    for (int at = 0; is_same && at < 4; at++) {
        PyObject *other = SLOT(value, places[at]);
        is_same = other && PyObject_RichCompareBool(SLOT(part, places[at]), other, Py_EQ) == 1;
    }
    return is_same;
}

/* Write to a part of an array in memory that the host does not see: 1 if it is done, 0 if the general way
 * is to do it, -1 with an exception. */
static int write_in_memory(PyObject *self, PyObject *index, PyObject *value)
{
    int is_element, is_done;
    PyObject *part = index == Py_Ellipsis ? NULL : view_of_memory(self, index, &is_element);
    if (!part)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *strides = SLOT(self, at_strides);
    for (Py_ssize_t axis = 0; axis < PyTuple_Size(strides); axis++)
        if (PyLong_AsSsize_t(PyTuple_GetItem(strides, axis)) == 0) { /* it may be read-only */
            Py_DECREF(part);
            return 0;
        }
    is_done = is_there(part, value);
    if (!is_done) {
        PyObject *result = general(slow_assign, part, value, NULL);
        is_done = result ? 1 : -1;
        Py_XDECREF(result);
    }
    Py_DECREF(part);
    return is_done;
}

static int setitem(PyObject *self, PyObject *index, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    int done = write_now(self, index, value);
    if (!done)
        done = write_in_memory(self, index, value);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *result = general(slow_setitem, self, index, value);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* write_small(x, index, value): whether it was written. */
static PyObject *write_small(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "write_small(x, index, value)");
        return NULL;
    }
    int done = write_now(args[0], args[1], args[2]);
    return done < 0 ? NULL : PyBool_FromLong(done);
}
