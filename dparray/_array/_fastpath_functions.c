/* NumPy functions of small arrays, conversions to Python numbers, attributes, random words. */

/* --- functions of NumPy's ------------------------------------------------------------------------ */

static int is_number_dtype(PyArrayObject *array)
{
    int type = PyArray_TYPE(array);
    return (type <= NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE || type == NPY_HALF) &&
           PyArray_ISNOTSWAPPED(array);
}

/* The host view of an array on the queue and with the USM type of another one; or NULL. */
static PyObject *host_view_at(PyObject *x, PyObject *like)
{
    PyObject *seen = seen_of(x);
    return seen && SLOT(x, at_queue) == SLOT(like, at_queue) &&
                   SLOT(x, at_usm_type) == SLOT(like, at_usm_type)
               ? seen
               : NULL;
}

/* The host's views of the small arrays in a sequence, as a tuple; NULL without an exception where
 * the general way is to decide. The first array is stored. */
static PyObject *parts_seen(PyObject *arrays, PyObject **owner)
{
    int is_list = Py_TYPE(arrays) == &PyList_Type;
    if (!is_list && Py_TYPE(arrays) != &PyTuple_Type)
        return NULL;
    Py_ssize_t count = is_list ? PyList_Size(arrays) : PyTuple_Size(arrays);
    npy_intp most = most_elements, size = 0;
    if (count == 0 || count > MAX_JOINED)
        return NULL;
    PyObject *seen = PyTuple_New(count);
    for (Py_ssize_t at = 0; seen && at < count; at++) {
        PyObject *x = is_list ? PyList_GetItem(arrays, at) : PyTuple_GetItem(arrays, at);
        if (at == 0)
            *owner = x;
        PyObject *part = Py_TYPE(*owner) == array_type ? host_view_at(x, *owner) : NULL;
        if (part)
            size += PyArray_SIZE(AS_ARRAY(part));
        if (!part || size > most || !is_ready(x, 0) ||
            PyTuple_SetItem(seen, at, Py_NewRef(part)) < 0)
            Py_CLEAR(seen);
    }
    return seen;
}

/* Whether the arrays among NumPy's arguments broadcast to a shape with at most so many elements. */
static int broadcast_is_small(PyObject *given, npy_intp most)
{
    PyObject *arrays[MAX_BROADCAST];
    int count = 0, is_small = 1;
    npy_intp product = 1;
    for (Py_ssize_t at = 0; at < PyTuple_Size(given); at++) {
        PyObject *each = PyTuple_GetItem(given, at);
        if (Py_TYPE(each) != &PyArray_Type)
            continue;
        if (count == MAX_BROADCAST)
            return 0;
        arrays[count++] = each;
        if (product <= most)
            product *= PyArray_SIZE(AS_ARRAY(each));
    }
    if (product <= most)
        return 1;
    PyObject *together = PyArray_MultiIterFromObjects(arrays, count, 0);
    if (!together)
        return 0; /* the shapes do not broadcast, which the general way reports */
    npy_intp size = PyArray_MultiIter_SIZE(together);
    Py_DECREF(together);
    for (int at = 0; at < count && 5 * size / 2 > most; at++) {
        PyArrayObject *x = AS_ARRAY(arrays[at]);
        is_small &= (PyArray_SIZE(x) == size ? effective_read_size(x) : effective_size(x, size)) <= most;
    }
    return is_small;
}

/* The arguments that NumPy is called with; NULL where the general way is to decide. */
static PyObject *arguments_seen(PyObject *args, int joins, int broadcasts, PyObject **owner)
{
    Py_ssize_t count = PyTuple_Size(args);
    PyObject *first = count > 1 ? PyTuple_GetItem(args, 1) : NULL, *seen = NULL;
    if (!first)
        return NULL;
    if (joins)
        seen = parts_seen(first, owner);
    else if ((seen = seen_of(first)) && PyArray_SIZE(AS_ARRAY(seen)) <= most_elements &&
             is_ready(first, 0)) {
        *owner = first;
        Py_INCREF(seen);
    } else
        seen = NULL;
    PyObject *made = seen ? PyTuple_New(count - 1) : NULL;
    if (!made) {
        Py_XDECREF(seen);
        return NULL;
    }
    PyTuple_SetItem(made, 0, seen);
    for (Py_ssize_t at = 2; made && at < count; at++) {
        PyObject *arg = PyTuple_GetItem(args, at), *part = arg;
        if (Py_TYPE(arg) == array_type)
            part = is_ready(arg, 0) ? host_view_at(arg, *owner) : NULL;
        else if (PyArray_Check(arg) || PyArray_CheckScalar(arg))
            part = NULL;
        if (!part || PyTuple_SetItem(made, at - 1, Py_NewRef(part)) < 0)
            Py_CLEAR(made);
    }
    if (made && broadcasts && !broadcast_is_small(made, most_elements))
        Py_CLEAR(made);
    return made;
}

/* compute_small(function, x, *args, broadcasts=False, joins=False): what a NumPy function makes of
 * small arrays, whose result the caller knows to be small; None where the general way is to compute
 * it.
 *
 * `function` is called with the host's views of `x` and of the arrays among `args`. With
 * `broadcasts` the size of the shape that the arrays broadcast to is checked; with `joins`, `x` is a
 * sequence of arrays, and the result has the elements of all. */
static PyObject *compute_small(PyObject *module, PyObject *args, PyObject *named)
{
    PyObject *owner = NULL, *joins = NULL, *broadcasts = NULL, *values = NULL;
    if (named) {
        joins = PyDict_GetItem(named, joins_word);
        broadcasts = PyDict_GetItem(named, broadcasts_word);
        if (PyDict_Size(named) != (joins != NULL) + (broadcasts != NULL)) {
            PyErr_SetString(PyExc_TypeError, "compute_small takes joins and broadcasts by name");
            return NULL;
        }
    }
    PyObject *given = arguments_seen(args, joins == Py_True, broadcasts == Py_True, &owner);
    if (given) {
        values = call_numpy(owner, PyTuple_GetItem(args, 0), given);
        Py_DECREF(given);
    }
    if (values && Py_TYPE(values) != &PyArray_Type) {
        PyObject *whole = PyArray_CheckScalar(values)
                              ? PyArray_FromScalar(values, NULL)
                              : PyArray_FromAny(values, NULL, 0, 0, 0, NULL);
        Py_DECREF(values);
        values = whole;
    }
    if (values && is_number_dtype(AS_ARRAY(values))) {
        if (!PyArray_BASE(AS_ARRAY(values)))
            return make(owner, values, NULL);
        PyObject *copy = PyArray_NewCopy(AS_ARRAY(values), NPY_CORDER);
        Py_DECREF(values);
        return copy ? make(owner, copy, NULL) : NULL;
    }
    Py_XDECREF(values);
    if (!is_fallback_error())
        return NULL;
    Py_RETURN_NONE;
}

/* view_small(x, function, *args): a view that a NumPy function makes; None if it makes none. */
static PyObject *view_small(PyObject *module, PyObject *args)
{
    Py_ssize_t count = PyTuple_Size(args);
    PyObject *x = count > 1 ? PyTuple_GetItem(args, 0) : NULL, *view = NULL;
    PyObject *seen = x ? view_to_share(x) : NULL, *given = seen ? PyTuple_New(count - 1) : NULL;
    if (given) {
        PyTuple_SetItem(given, 0, Py_NewRef(seen));
        for (Py_ssize_t at = 2; at < count; at++)
            PyTuple_SetItem(given, at - 1, Py_NewRef(PyTuple_GetItem(args, at)));
        view = PyObject_Call(PyTuple_GetItem(args, 1), given, NULL);
        Py_DECREF(given);
    }
    int is_view = view && Py_TYPE(view) == &PyArray_Type &&
                  PyArray_BASE(AS_ARRAY(view)) == PyArray_BASE(AS_ARRAY(seen)) &&
                  PyArray_SIZE(AS_ARRAY(view));
    Py_XDECREF(seen);
    if (is_view)
        return make(x, view, SLOT(x, at_block));
    Py_XDECREF(view);
    if (PyErr_Occurred() && !is_fallback_error())
        return NULL;
    Py_RETURN_NONE;
}

/* --- one element ------------------------------------------------------------------------------ */

static PyObject *number_seen(PyObject *x)
{
    PyObject *seen = seen_of(x);
    return seen && PyArray_NDIM(AS_ARRAY(seen)) == 0 && !is_tracing && is_ready(x, 0) ? seen : NULL;
}

static PyObject *as_float(PyObject *x)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_TYPE(AS_ARRAY(seen)) == NPY_DOUBLE)
        return PyFloat_FromDouble(*(double *)PyArray_DATA(AS_ARRAY(seen)));
    if (seen && PyArray_ISFLOAT(AS_ARRAY(seen)))
        return PyNumber_Float(seen);
    return general(slow_float, x, NULL, NULL);
}

static PyObject *as_int(PyObject *x)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_ISINTEGER(AS_ARRAY(seen)))
        return PyNumber_Long(seen);
    return general(slow_int, x, NULL, NULL);
}

static PyObject *as_index(PyObject *x)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_ISINTEGER(AS_ARRAY(seen)))
        return PyNumber_Index(seen);
    return general(slow_index, x, NULL, NULL);
}

static int as_bool(PyObject *x)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_ISBOOL(AS_ARRAY(seen)))
        return *(npy_bool *)PyArray_DATA(AS_ARRAY(seen)) != 0;
    if (seen && PyArray_ISNUMBER(AS_ARRAY(seen)))
        return PyObject_IsTrue(seen);
    PyObject *result = general(slow_bool, x, NULL, NULL);
    int is_true = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return is_true;
}

/* --- what arrays say of themselves -------------------------------------------------------------- */

static PyObject *shape_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return general(slow_shape, x, NULL, NULL);
    int count = PyArray_NDIM(AS_ARRAY(seen));
    return PyArray_IntTupleFromIntp(count, PyArray_DIMS(AS_ARRAY(seen)));
}

static PyObject *dimensions_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return general(slow_ndim, x, NULL, NULL);
    return PyLong_FromLong(PyArray_NDIM(AS_ARRAY(seen)));
}

static PyObject *size_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return general(slow_size, x, NULL, NULL);
    return PyLong_FromSsize_t(PyArray_SIZE(AS_ARRAY(seen)));
}

static PyObject *dtype_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return general(slow_dtype, x, NULL, NULL);
    return Py_NewRef((PyObject *)PyArray_DESCR(AS_ARRAY(seen)));
}

static PyObject *transposed(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x), *base = seen ? PyArray_BASE(AS_ARRAY(seen)) : NULL;
    if (base && PyArray_SIZE(AS_ARRAY(seen))) {
        PyObject *found = PyArray_Transpose(AS_ARRAY(seen), NULL);
        if (!found)
            return NULL;
        if (PyArray_BASE(AS_ARRAY(found)) == base)
            return make(x, found, SLOT(x, at_block));
        Py_DECREF(found);
    }
    return general(slow_transposed, x, NULL, NULL);
}

/* --- random words -------------------------------------------------------------------------------- */

/* philox_words(counter, stream, key, words): fill words, a vector of uint32 of whole blocks of four,
 * with Philox-4x32-10 (Salmon et al., 2011), as the kernels of `kernels/philox.py` do. */
static PyObject *philox_words(PyObject *module, PyObject *args)
{
    unsigned long long counter, stream, key;
    PyObject *words;
    if (!PyArg_ParseTuple(args, "KKKO!", &counter, &stream, &key, &PyArray_Type, &words))
        return NULL;
    if (PyArray_TYPE(AS_ARRAY(words)) != NPY_UINT || !PyArray_ISCARRAY(AS_ARRAY(words)) ||
        PyArray_SIZE(AS_ARRAY(words)) % 4) {
        PyErr_SetString(PyExc_TypeError, "philox_words(counter, stream, key, words)");
        return NULL;
    }
    npy_uint *out = PyArray_DATA(AS_ARRAY(words)), *end = out + PyArray_SIZE(AS_ARRAY(words));
    for (; out < end; out += 4, counter++) {
        npy_uint c0 = (npy_uint)counter, c1 = (npy_uint)(counter >> 32);
        npy_uint c2 = (npy_uint)stream, c3 = (npy_uint)(stream >> 32);
        npy_uint k0 = (npy_uint)key, k1 = (npy_uint)(key >> 32);
        for (int round = 0; round < 10; round++) {
            npy_uint64 product_0 = (npy_uint64)0xD2511F53 * c0;
            npy_uint64 product_1 = (npy_uint64)0xCD9E8D57 * c2;
            c0 = (npy_uint)(product_1 >> 32) ^ c1 ^ k0;
            c1 = (npy_uint)product_1;
            c2 = (npy_uint)(product_0 >> 32) ^ c3 ^ k1;
            c3 = (npy_uint)product_0;
            k0 += 0x9E3779B9;
            k1 += 0xBB67AE85;
        }
        out[0] = c0;
        out[1] = c1;
        out[2] = c2;
        out[3] = c3;
    }
    Py_RETURN_NONE;
}
