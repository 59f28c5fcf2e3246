/* NumPy functions of small arrays, conversions to Python numbers, attributes, random words. */

/* --- functions of NumPy's ----------------------------------------------------------------------- */

static int is_number_dtype(PyArrayObject *array)
{
    int type = PyArray_TYPE(array);
    return (type <= NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE || type == NPY_HALF) &&
           PyArray_ISNOTSWAPPED(array);
}

/* What NumPy functions do: the first letters of the words in `dparray/_functions/public.py`. */
enum { JOINS = 'j', BROADCASTS = 'b', VIEWS = 'v', CREATES = 'c', CONVERTS = 'd' };

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
    npy_intp size = PyArray_MultiIter_SIZE((PyArrayMultiIterObject *)together);
    Py_DECREF(together);
    for (int at = 0; at < count && 5 * size / 2 > most; at++) {
        PyArrayObject *x = AS_ARRAY(arrays[at]);
        is_small &= (PyArray_SIZE(x) == size ? effective_read_size(x) : effective_size(x, size)) <= most;
    }
    return is_small;
}

/* NumPy's dtype for what a user wrote, of an array that is to be converted; NULL of unusual ones, and
 * where a conversion would lose imaginary parts. */
static PyObject *dtype_for(PyObject *written, PyObject *array)
{
    PyObject *dtype = written == Py_None ? NULL : PyDict_GetItemWithError(usual_dtypes, written);
    if (dtype && PyArray_ISCOMPLEX(AS_ARRAY(array)) &&
        !PyTypeNum_ISCOMPLEX(((PyArray_Descr *)dtype)->type_num))
        return NULL;
    return dtype;
}

/* The arguments of a fast reduction of all elements, (x, axis, ...), up to the larger size for
 * which the calling thread reduces them: the result is one number, which the program usually waits
 * for, and NumPy reduces contiguous elements at the speed of caches. NULL where the general way is to
 * decide. NumPy sums elements of any width at one rate, and compares bytes at one. `kinds` are those
 * of the dtypes that it reduces with vector instructions, after a "+" for sums. */
static PyObject *whole_seen(PyObject *const *given, Py_ssize_t count, const char *kinds)
{
    PyObject *x = given[0], *seen = NULL, *made = NULL;
    if (count > 1 && Py_TYPE(x) == array_type && SLOT(x, at_block) && SLOT(x, at_block) != Py_None)
        seen = view_to_index(x);
    if (!seen)
        return NULL;
    PyArrayObject *array = AS_ARRAY(seen);
    npy_intp size = PyArray_SIZE(array);
    if (kinds[0] != '+')
        size = size * PyArray_ITEMSIZE(array) / 8;
    int is_whole = given[1] == Py_None ||
                   (PyArray_NDIM(array) == 1 && Py_TYPE(given[1]) == &PyLong_Type &&
                    PyLong_AsLong(given[1]) == 0);
    if (is_whole && size <= most_folded && PyArray_IS_C_CONTIGUOUS(array) &&
        PyArray_TYPE(array) != NPY_HALF && strchr(kinds, PyArray_DESCR(array)->kind) &&
        is_ready(x, 0))
        made = PyTuple_New(count);
    for (Py_ssize_t at = 0; made && at < count; at++)
        PyTuple_SetItem(made, at, Py_NewRef(at == 0 ? seen : at == 1 ? Py_None : given[at]));
    Py_DECREF(seen);
    return made;
}

/* The arguments that NumPy is called with, of which there is at least one; NULL where the general
 * way is to decide. For `mode` and `special` see `struct small_function`. */
static PyObject *arguments_seen(PyObject *const *given, Py_ssize_t count, char mode,
                                Py_ssize_t special, PyObject **owner)
{
    PyObject *first = given[0], *seen = NULL;
    if (mode == JOINS)
        seen = parts_seen(first, owner);
    else if ((seen = seen_of(first)) && PyArray_SIZE(AS_ARRAY(seen)) <= most_elements &&
             is_ready(first, 0)) {
        *owner = first;
        Py_INCREF(seen);
    } else
        seen = NULL;
    PyObject *made = seen ? PyTuple_New(count) : NULL;
    if (!made) {
        Py_XDECREF(seen);
        return NULL;
    }
    PyTuple_SetItem(made, 0, seen);
    for (Py_ssize_t at = 1; made && at < count; at++) {
        PyObject *arg = given[at], *part = arg;
        if (at == special && mode == CONVERTS)
            part = dtype_for(arg, seen);
        else if (Py_TYPE(arg) == array_type)
            part = is_ready(arg, 0) ? host_view_at(arg, *owner) : NULL;
        else if (PyArray_Check(arg) || PyArray_CheckScalar(arg))
            part = at == special && Py_TYPE(arg) == &PyArray_Type && is_number_dtype(AS_ARRAY(arg)) &&
                           PyArray_SIZE(AS_ARRAY(arg)) <= most_elements
                       ? arg
                       : NULL;
        if (!part || PyTuple_SetItem(made, at, Py_NewRef(part)) < 0)
            Py_CLEAR(made);
    }
    if (made && mode == BROADCASTS && !broadcast_is_small(made, most_elements))
        Py_CLEAR(made);
    return made;
}

/* The array whose memory `values` shows as a whole, if nothing else refers to it: several functions of
 * NumPy return their own array in another shape. Takes and returns a reference. */
static PyObject *with_own_memory(PyObject *values)
{
    PyArrayObject *view = AS_ARRAY(values), *base = AS_ARRAY(PyArray_BASE(view));
    if (!base || Py_TYPE(base) != &PyArray_Type || Py_REFCNT(base) != 1 || PyArray_BASE(base) ||
        PyArray_DATA(view) != PyArray_DATA(base) || PyArray_NBYTES(view) != PyArray_NBYTES(base) ||
        PyArray_TYPE(view) != PyArray_TYPE(base) || !PyArray_IS_C_CONTIGUOUS(view))
        return values;
    PyArray_Dims shape = {PyArray_DIMS(view), PyArray_NDIM(view)};
    PyObject *done = PyArray_Resize(base, &shape, 0, NPY_CORDER); /* of as many bytes: nothing moves */
    if (!done)
        PyErr_Clear();
    PyObject *found = Py_NewRef(done ? (PyObject *)base : values);
    Py_XDECREF(done);
    Py_DECREF(values);
    return found;
}

/* The array of what NumPy computes from arguments of `arguments_seen`, whose reference is taken;
 * None where the general way is to compute it. */
static PyObject *computed(PyObject *owner, PyObject *function, PyObject *given)
{
    PyObject *values = NULL;
    int is_own = 1; /* what NumPy returns as it is given belongs to another array */
    if (given) {
        values = call_numpy(owner, function, given);
        for (Py_ssize_t at = 0; at < PyTuple_Size(given); at++)
            is_own &= PyTuple_GetItem(given, at) != values;
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
        values = with_own_memory(values);
        if (is_own && !PyArray_BASE(AS_ARRAY(values)))
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

/* compute_small(function, x, *args, broadcasts=False, joins=False, folds=""): what a NumPy function makes of
 * small arrays, whose result the caller knows to be small; None where the general way is to compute
 * it.
 *
 * `function` is called with the host's views of `x` and of the arrays among `args`. With
 * `broadcasts` the size of the shape that the arrays broadcast to is checked; with `joins`, `x` is a
 * sequence of arrays, and the result has the elements of all; for `folds` see `whole_seen`. */
static PyObject *compute_small(PyObject *module, PyObject *const *args, Py_ssize_t count,
                               PyObject *words)
{
    PyObject *owner = NULL;
    const char *kinds = NULL;
    char mode = 0;
    for (Py_ssize_t at = 0; words && at < PyTuple_Size(words); at++) {
        PyObject *word = PyTuple_GetItem(words, at);
        if (word == joins_word && args[count + at] == Py_True)
            mode = JOINS;
        else if (word == broadcasts_word && args[count + at] == Py_True)
            mode = BROADCASTS;
        else if (word == folds_word)
            kinds = PyUnicode_AsUTF8AndSize(args[count + at], NULL);
        else
            return PyErr_Format(PyExc_TypeError, "compute_small has no parameter %R", word);
    }
    PyObject *given = NULL;
    if (count > 1 && kinds && (given = whole_seen(args + 1, count - 1, kinds)))
        owner = args[1];
    else if (count > 1 && !kinds)
        given = arguments_seen(args + 1, count - 1, mode, -1, &owner);
    return computed(owner, args[0], given);
}

/* The view of an array that a NumPy function makes; None if it makes none. */
static PyObject *view_made(PyObject *x, PyObject *function, PyObject *const *args, Py_ssize_t count)
{
    PyObject *view = NULL, *seen = view_to_share(x), *given = seen ? PyTuple_New(count + 1) : NULL;
    if (given) {
        PyTuple_SetItem(given, 0, Py_NewRef(seen));
        for (Py_ssize_t at = 0; at < count; at++)
            PyTuple_SetItem(given, at + 1, Py_NewRef(args[at]));
        view = PyObject_Call(function, given, NULL);
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

/* view_small(x, function, *args): the same from Python. */
static PyObject *view_small(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return view_made(args[0], args[1], args + 2, count - 2);
}

/* The number of elements of a shape; -1 where the general way is to look at it. */
static npy_intp elements_of(PyObject *shape)
{
    int is_tuple = Py_TYPE(shape) == &PyTuple_Type;
    Py_ssize_t count = is_tuple ? PyTuple_Size(shape) : 1;
    npy_intp size = 1;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *part = is_tuple ? PyTuple_GetItem(shape, at) : shape;
        npy_intp extent = Py_TYPE(part) == &PyLong_Type ? PyLong_AsSsize_t(part) : -1;
        if (extent < 0 || (extent && size > most_elements / extent))
            return -1;
        size *= extent;
    }
    return count <= MAX_DIMENSIONS ? size : -1;
}

/* A Python float, or an integer of at most 64 bits. */
static int is_python_number(PyObject *value)
{
    if (Py_TYPE(value) == &PyFloat_Type)
        return 1;
    if (Py_TYPE(value) != &PyLong_Type)
        return 0;
    PyLong_AsSsize_t(value);
    return PyErr_Occurred() == NULL;
}

/* A small array on the default device: what NumPy's function makes of a shape and of Python numbers.
 * None where the general way is to make it. */
static PyObject *created(PyObject *function, PyObject *const *args, Py_ssize_t count, Py_ssize_t dtype)
{
    PyObject *queue = NULL, *given = NULL, *values = NULL, *made = NULL;
    if (is_host_tier_on && elements_of(args[0]) >= 0)
        given = PyTuple_New(count);
    for (Py_ssize_t at = 0; given && at < count; at++) {
        PyObject *part = args[at];
        if (at == dtype)
            part = PyDict_GetItemWithError(usual_dtypes, part);
        else if (at && !is_python_number(part))
            part = NULL;
        if (!part || PyTuple_SetItem(given, at, Py_NewRef(part)) < 0)
            Py_CLEAR(given);
    }
    if (given && (queue = PyObject_CallNoArgs(usual_queue)) && queue != Py_None)
        values = PyObject_CallObject(function, given);
    Py_XDECREF(given);
    values = values ? with_own_memory(values) : NULL;
    if (values && PyArray_BASE(AS_ARRAY(values))) {
        PyObject *own = PyArray_NewCopy(AS_ARRAY(values), NPY_CORDER);
        Py_DECREF(values);
        values = own;
    }
    if (values && (made = new_array(queue, device_word))) {
        put(made, at_seen, values);
        PyObject_GC_UnTrack(made);
    }
    Py_XDECREF(values);
    Py_XDECREF(queue);
    if (made)
        return made;
    if (!is_fallback_error())
        return NULL;
    Py_RETURN_NONE;
}

/* --- public functions ------------------------------------------------------------------------- */

/* How a public function computes small arrays. Never freed: public functions live as long. */
struct small_function {
    PyObject *small;           /* NumPy's function */
    PyObject *when;            /* whether it may have these arguments; None of all */
    PyObject *names, *defaults; /* of the parameters; a required one has the default `absent` */
    PyObject *absent;
    Py_ssize_t parameters, by_position, arguments;
    Py_ssize_t special;        /* among the arguments: what may be NumPy's indices, or a dtype */
    const char *kinds;         /* of dtypes that are reduced fast; NULL of other functions */
    char mode;                 /* see `dparray/_functions/public.py` */
    signed char places[MAX_PARAMETERS]; /* among the arguments of `small`; -1 of what it lacks */
};

/* small_function(small, when, names, defaults, absent, places, by_position, special, mode): what
 * `call_small` needs to know. */
static PyObject *small_function(PyObject *module, PyObject *args)
{
    struct small_function *made = PyMem_Calloc(1, sizeof *made);
    PyObject *places;
    const char *mode;
    if (!made)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "OOO!O!OO!nns", &made->small, &made->when, &PyTuple_Type,
                          &made->names, &PyTuple_Type, &made->defaults, &made->absent,
                          &PyTuple_Type, &places, &made->by_position, &made->special, &mode))
        goto wrong;
    made->mode = strcmp(mode, "convert") == 0 ? CONVERTS : mode[0];
    made->kinds = strncmp(mode, "fold ", 5) == 0 ? mode + 5 : NULL;
    made->parameters = PyTuple_Size(places);
    if (made->parameters > MAX_PARAMETERS) {
        PyErr_SetString(PyExc_ValueError, "small_function: too many parameters");
        goto wrong;
    }
    for (Py_ssize_t at = 0; at < made->parameters; at++) {
        made->places[at] = (signed char)PyLong_AsLong(PyTuple_GetItem(places, at));
        made->arguments += made->places[at] >= 0;
    }
    Py_INCREF(args);
    return PyCapsule_New(made, NULL, NULL);
wrong:
    PyMem_Free(made);
    return NULL;
}

/* The position of the parameter with a name; -1 without one. */
static Py_ssize_t parameter_of(struct small_function *function, PyObject *name)
{
    for (Py_ssize_t at = 0; at < function->parameters; at++)
        if (PyTuple_GetItem(function->names, at) == name)
            return at;
    return -1;
}

/* Whether the NumPy function may have these arguments; -1 with an exception. */
static int may_compute(struct small_function *function, PyObject *const *arguments)
{
    if (function->when == Py_None)
        return 1;
    PyObject *all = PyTuple_New(function->arguments), *answer = NULL;
    for (Py_ssize_t at = 0; all && at < function->arguments; at++)
        PyTuple_SetItem(all, at, Py_NewRef(arguments[at]));
    if (all)
        answer = PyObject_CallObject(function->when, all);
    int may = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(all);
    Py_XDECREF(answer);
    return may;
}

/* call_small(function, args, kwargs): what a public function makes of small arrays, as its NumPy
 * function; None where the general way is to compute it, which also checks the arguments. */
static PyObject *call_small(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct small_function *function = PyCapsule_GetPointer(args[0], NULL);
    PyObject *values[MAX_PARAMETERS], *arguments[MAX_PARAMETERS], *name, *value, *owner = NULL;
    Py_ssize_t given = PyTuple_Size(args[1]), next = 0;
    if (!function)
        return NULL;
    if (given > function->by_position)
        Py_RETURN_NONE;
    for (Py_ssize_t at = 0; at < function->parameters; at++)
        values[at] = at < given ? PyTuple_GetItem(args[1], at) : NULL;
    while (PyDict_Next(args[2], &next, &name, &value)) {
        Py_ssize_t at = parameter_of(function, name);
        if (at < 0 || values[at])
            Py_RETURN_NONE;
        values[at] = value;
    }
    for (Py_ssize_t at = 0; at < function->parameters; at++) {
        PyObject *otherwise = PyTuple_GetItem(function->defaults, at);
        int place = function->places[at];
        if (place >= 0) {
            arguments[place] = values[at] ? values[at] : otherwise;
            if (arguments[place] == function->absent)
                Py_RETURN_NONE;
        } else if (values[at] && values[at] != otherwise)
            Py_RETURN_NONE;
    }
    if (function->mode == VIEWS || function->mode == CREATES) {
        int may = may_compute(function, arguments);
        if (may < 0)
            return NULL;
        if (!may)
            Py_RETURN_NONE;
        return function->mode == VIEWS ? view_made(arguments[0], function->small, arguments + 1,
                                                 function->arguments - 1)
                                     : created(function->small, arguments, function->arguments,
                                               function->special);
    }
    PyObject *seen = arguments_seen(arguments, function->arguments, function->mode,
                                    function->special, &owner);
    if (!seen && function->kinds && (seen = whole_seen(arguments, function->arguments, function->kinds)))
        owner = arguments[0];
    if (seen) {
        int may = may_compute(function, arguments);
        if (may <= 0)
            Py_CLEAR(seen);
        if (may < 0)
            return NULL;
    }
    return computed(owner, function->small, seen);
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

/* What a slot keeps of an array that the host does not see: a pending or a large one. */
static PyObject *kept_of(PyObject *x, Py_ssize_t slot, PyObject *slow)
{
    PyObject *kept = Py_TYPE(x) == array_type ? SLOT(x, slot) : NULL;
    return kept ? Py_NewRef(kept) : general(slow, x, NULL, NULL);
}

static PyObject *shape_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return kept_of(x, at_shape, slow_shape);
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
        return kept_of(x, at_size, slow_size);
    return PyLong_FromSsize_t(PyArray_SIZE(AS_ARRAY(seen)));
}

static PyObject *dtype_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return kept_of(x, at_dtype, slow_dtype);
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
