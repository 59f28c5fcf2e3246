/* The short way of small arrays, compiled: indexing, arithmetic and conversions of arrays that the
 * host computes at the call. Each function here does what the Python function that it stands for
 * does in the common case, and calls that function in every other: `dparray/_functions/compiled.py`
 * hands them over, and arrays have the Python functions alone where this is not compiled.
 *
 * Python's stable interface from 3.10 on. The slots of arrays are read where they lie; an array of
 * a subclass, which there is not, would go the Python function's way.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <string.h>

/* Exported since Python 3.7, and not declared for the stable interface. */
extern int PyContext_Enter(PyObject *context);
extern int PyContext_Exit(PyObject *context);

/* --- what is handed over ---------------------------------------------------------------------- */

static PyTypeObject *array_type;
static Py_ssize_t at_seen, at_block, at_packed, at_queue, at_usm_type;
static Py_ssize_t at_node, at_alias, at_shape, at_dtype, at_size;
static PyTypeObject *node_type, *scalar_type, *canonical_type, *layout_type;
static PyObject *slow_order, *placement, *holds_open, *options, *graph_operations, *square;
static PyObject *working;       /* queues with work that may not be complete */
static int is_host_tier_on;     /* the option `host_tier`, as `follow` sets it */
static int is_tracing;          /* then NumPy is called by `traced_call`, which emits events */
static npy_intp most_elements;  /* the largest addition that is computed immediately */
static PyObject *at_once;       /* up to how many elements, by an operation's weight */
static PyObject *scalar_types;  /* classes of scalars that stand beside arrays */
static PyObject *traced_call;   /* `host.call` */
static PyObject *context;       /* in it NumPy warns of nothing */
static PyObject *ufuncs;        /* NumPy's ufuncs: the numbers of operations */
static PyObject *readers, *call_method, *host_bytes, *memory_word, *node_word, *pointer_word;
static PyObject *allocate; /* memory of the pool */
static PyObject *look, *materialize;
static PyObject *block_is_ready; /* of a block, and whether it is to be written */

static PyObject *slow_getitem, *slow_setitem, *slow_matmul, *slow_ufunc;
static PyObject *slow_float, *slow_int, *slow_index, *slow_bool;
static PyObject *slow_shape, *slow_ndim, *slow_size, *slow_dtype, *slow_product;
static PyObject *slow_compute_small, *joins_word, *broadcasts_word;
static PyObject *is_whole_device, *slow_transposed;
static PyObject *slow_power, *slow_reflected_power, *slow_reflected_matmul;
static PyObject *numpy_matmul, *numpy_square, *square_weight;

#define MAX_OPERATIONS 256
#define MOST_JOINED 64 /* more are looked at by Python */

/* The elementwise operations of the graph: first those of operators, in the order of their slots. */
static struct operation {
    PyObject *compute; /* of NumPy arrays and scalars */
    PyObject *into;    /* the same into an output, its last argument; None if there is none */
    PyObject *weight;
    PyObject *general; /* a Python function that computes it of any operands */
    PyObject *general_in_place;
    const char *kept_types; /* type characters that operands and result share */
} operations[MAX_OPERATIONS];

static npy_intp heap_elements, one_core_products;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
#define AS_ARRAY(object) ((PyArrayObject *)(object))

/* --- small questions -------------------------------------------------------------------------- */

static int is_idle(void)
{
    return is_host_tier_on && PyDict_Size(working) == 0;
}

/* follow(host_tier, elements, is_tracing): the options as they are now. */
static PyObject *follow(PyObject *module, PyObject *args)
{
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "pnp", &is_host_tier_on, &count, &is_tracing))
        return NULL;
    most_elements = count;
    Py_RETURN_NONE;
}

static npy_intp most_of(PyObject *weight)
{
    PyObject *found = PyDict_GetItem(at_once, weight);
    return found ? (npy_intp)PyLong_AsSsize_t(found) : 0;
}

/* The effective size of `size` elements of an array's dtype: in numbers of eight bytes, the unit of
 * the limits. NumPy computes with halves one by one. */
static npy_intp effective_size(PyArrayObject *x, npy_intp size)
{
    npy_intp nbytes = PyArray_ITEMSIZE(x);
    return nbytes < 8 && PyArray_TYPE(x) != NPY_HALF ? (size * nbytes + 7) / 8 : size;
}

/* The effective size of an array that is written. */
static npy_intp counted_bytes(PyArrayObject *x)
{
    return effective_size(x, PyArray_SIZE(x));
}

/* The same of an operand: NumPy takes 2.5 times as long where elements are not contiguous. */
static npy_intp counted(PyArrayObject *x)
{
    int is_whole = PyArray_FLAGS(x) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    return is_whole ? counted_bytes(x) : 5 * counted_bytes(x) / 2;
}

/* Call the general way, a Python function. An array that was never initialized, as
 * object.__new__(dp.ndarray) makes it, has NULL in its slots: that is an error here. */
static PyObject *general(PyObject *function, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *args[] = {a, b, c};
    if (!function) {
        PyErr_SetString(PyExc_SystemError, "the compiled fast path has not been set up");
        return NULL;
    }
    for (int at = 0; at < 3 && args[at]; at++)
        if (Py_TYPE(args[at]) == array_type && !SLOT(args[at], at_queue)) {
            PyErr_SetString(PyExc_TypeError,
                            "the array was never initialized: it was made by __new__ alone; "
                            "make arrays by dp.empty(shape) or dp.ndarray(shape)");
            return NULL;
        }
    return PyObject_CallFunctionObjArgs(function, a, b, c, NULL);
}

/* What the host sees of an array; NULL of anything else, and where it sees nothing. */
static PyObject *seen_of(PyObject *x)
{
    if (Py_TYPE(x) != array_type)
        return NULL;
    PyObject *seen = SLOT(x, at_seen);
    return seen == Py_None ? NULL : seen;
}

static int is_scalar(PyObject *x)
{
    PyTypeObject *type = Py_TYPE(x);
    return type == &PyFloat_Type || type == &PyLong_Type ||
           PySet_Contains(scalar_types, (PyObject *)type) == 1;
}

static int is_plain_entry(PyObject *entry)
{
    PyTypeObject *type = Py_TYPE(entry);
    return type == &PyLong_Type || type == &PySlice_Type || entry == Py_None ||
           entry == Py_Ellipsis;
}

static int is_plain(PyObject *index)
{
    if (Py_TYPE(index) != &PyTuple_Type)
        return is_plain_entry(index);
    for (Py_ssize_t at = 0; at < PyTuple_Size(index); at++)
        if (!is_plain_entry(PyTuple_GetItem(index, at)))
            return 0;
    return 1;
}


/* What another way finds the right words for; an interrupt, say, goes on. */
static int is_refusal(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return 0;
    PyErr_Clear();
    return 1;
}

/* Whether the host may read an array now, or write it; never waits. Memory is asked for only where
 * a queue is at work. What is no array is ready. */
static int is_ready(PyObject *x, int writes)
{
    if (is_idle() || Py_TYPE(x) != array_type)
        return is_host_tier_on;
    PyObject *block = SLOT(x, at_block);
    if (!is_host_tier_on || !block || block == Py_None)
        return is_host_tier_on;
    PyObject *answer = PyObject_CallFunctionObjArgs(block_is_ready, block,
                                                    writes ? Py_True : Py_False, NULL);
    int is_so = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return is_so == 1;
}

/* Whether the host may write an array now, and nothing pending reads it. */
static int is_free_to_write(PyObject *x)
{
    if (!is_ready(x, 1))
        return 0;
    PyObject *block = SLOT(x, at_block);
    if (!block || block == Py_None)
        return 1;
    PyObject *found = PyObject_GetAttr(block, readers);
    if (!found)
        return 0;
    int are_some = PyObject_IsTrue(found);
    Py_DECREF(found);
    return are_some == 0;
}

/* The host's view of an array that is about to be indexed: a large one gets its view here. A new
 * reference; NULL without an exception where the host may not look. */
static PyObject *view_to_index(PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (seen || Py_TYPE(x) != array_type || !SLOT(x, at_block) || SLOT(x, at_block) == Py_None)
        return seen ? Py_NewRef(seen) : NULL;
    PyObject *found = PyObject_CallFunctionObjArgs(look, x, NULL);
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

/* The same in memory of the pool, so that views of the array can share it. */
static PyObject *view_to_share(PyObject *x)
{
    PyObject *seen = view_to_index(x);
    if (!seen || PyArray_BASE(AS_ARRAY(seen)))
        return seen;
    Py_DECREF(seen);
    PyObject *layout = PyObject_CallFunctionObjArgs(materialize, x, NULL);
    Py_XDECREF(layout);
    seen = layout ? seen_of(x) : NULL;
    return seen && PyArray_BASE(AS_ARRAY(seen)) ? Py_NewRef(seen) : NULL;
}

/* --- results ---------------------------------------------------------------------------------- */

/* An array like another, of which the host sees `seen`; takes that reference. */
static PyObject *make(PyObject *like, PyObject *seen, PyObject *block)
{
    PyObject *made = PyType_GenericAlloc(array_type, 0);
    if (!made) {
        Py_DECREF(seen);
        return NULL;
    }
    SLOT(made, at_seen) = seen;
    SLOT(made, at_block) = Py_NewRef(block ? block : Py_None);
    SLOT(made, at_packed) = Py_NewRef(Py_None);
    SLOT(made, at_queue) = Py_XNewRef(SLOT(like, at_queue));
    SLOT(made, at_usm_type) = Py_XNewRef(SLOT(like, at_usm_type));
    /* Nothing that an array refers to refers back, so the collector of cycles need not walk it:
     * that takes a list of arrays longer than to make them. */
    PyObject_GC_UnTrack(made);
    return made;
}

/* The same of a number or an array that NumPy has computed; takes the reference. */
static PyObject *make_of(PyObject *like, PyObject *values)
{
    if (Py_TYPE(values) != &PyArray_Type) {
        PyObject *whole = PyArray_CheckScalar(values)
                              ? PyArray_FromScalar(values, NULL)
                              : PyArray_FromAny(values, NULL, 0, 0, 0, NULL);
        Py_DECREF(values);
        if (!whole)
            return NULL;
        values = whole;
    }
    return make(like, values, NULL);
}

static void put(PyObject *x, Py_ssize_t offset, PyObject *value)
{
    PyObject *before = SLOT(x, offset);
    if (before != value) {
        SLOT(x, offset) = Py_XNewRef(value);
        Py_XDECREF(before);
    }
}

static void put_static(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = Py_NewRef(value);
    Py_XDECREF(before);
}

/* An array without dimensions, like another in its place, with the element stored at `value`. */
static PyObject *make_number(PyObject *like, PyArray_Descr *dtype, const void *value)
{
    Py_INCREF(dtype);
    PyObject *number = PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    if (!number)
        return NULL;
    memcpy(PyArray_DATA(AS_ARRAY(number)), value, PyDataType_ELSIZE(dtype));
    return make(like, number, NULL);
}

static int enter(void)
{
    if (PyContext_Enter(context) == 0)
        return 1;
    PyErr_Clear(); /* another thread is in it */
    return 0;
}

static int leave(int is_right)
{
    PyObject *type, *value, *trace;
    if (is_right)
        return PyContext_Exit(context);
    PyErr_Fetch(&type, &value, &trace);
    PyContext_Exit(context);
    PyErr_Restore(type, value, trace);
    return 0;
}

/* Call a NumPy function without warnings; `owner` is an array among the operands. NULL without an
 * exception where NumPy does not take the arguments. */
static PyObject *call_numpy(PyObject *owner, PyObject *function, PyObject *args)
{
    PyObject *result;
    if (is_tracing) {
        Py_ssize_t count = PyTuple_Size(args);
        PyObject *all = PyTuple_New(count + 1), *named = Py_BuildValue("{sO}", "owner", owner);
        if (all) {
            PyTuple_SetItem(all, 0, Py_NewRef(function));
            for (Py_ssize_t at = 0; at < count; at++)
                PyTuple_SetItem(all, at + 1, Py_NewRef(PyTuple_GetItem(args, at)));
        }
        result = all && named ? PyObject_Call(traced_call, all, named) : NULL;
        Py_XDECREF(all);
        Py_XDECREF(named);
        if (result == Py_None)
            Py_CLEAR(result);
        return result;
    }
    if (!enter())
        return NULL;
    result = PyObject_Call(function, args, NULL);
    leave(result != NULL);
    if (!result)
        is_refusal();
    return result;
}

/* The same with operands; `b` and `out` may be NULL. */
static PyObject *silently(PyObject *owner, PyObject *function, PyObject *a, PyObject *b,
                          PyObject *out)
{
    if (is_tracing) {
        PyObject *args = PyTuple_Pack(b ? out ? 3 : 2 : 1, a, b, out), *result;
        result = args ? call_numpy(owner, function, args) : NULL;
        Py_XDECREF(args);
        return result;
    }
    if (!enter())
        return NULL;
    /* While NumPy computes without the interpreter's lock, another thread may give an array other
     * memory, and release the view that it had until then. */
    Py_XINCREF(a);
    Py_XINCREF(b);
    Py_XINCREF(out);
    PyObject *result = PyObject_CallFunctionObjArgs(function, a, b, out, NULL);
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(out);
    leave(result != NULL);
    if (!result)
        is_refusal();
    return result;
}

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
    return is_refusal() ? general(slow_getitem, self, index, NULL) : NULL;
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
        if (!is_refusal())
            return NULL;
        PyObject *chosen = chosen_of(self, seen, index, 0);
        if (chosen)
            return of_chosen(self, seen, index, chosen);
        goto slow;
    }
    found = PyObject_GetItem(seen, plain);
    Py_DECREF(plain);
    if (!found) {
        if (!is_refusal())
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
                return is_refusal() ? general(slow_getitem, self, index, NULL) : NULL;
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

static PyObject *getitem(PyObject *self, PyObject *index)
{
    /* A reference of its own: another thread may give the array other memory meanwhile. */
    PyObject *seen = view_to_index(self);
    if (!seen)
        return is_refusal() ? general(slow_getitem, self, index, NULL) : NULL;
    PyObject *found = getitem_of(self, seen, index);
    Py_DECREF(seen);
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
    if (!is_free_to_write(self) || !is_ready(value, 0))
        return 0;
    char *element = element_at(target, index);
    if (source == value) {
        if (element || counted_bytes(target) <= most_elements)
            return write_silently(seen, index, value);
    } else if (element) {
        if (PyArray_NDIM(AS_ARRAY(source)))
            return 0;
        if (PyArray_DESCR(AS_ARRAY(source)) != PyArray_DESCR(target))
            return write_silently(seen, index, source);
        memmove(element, PyArray_DATA(AS_ARRAY(source)), PyArray_ITEMSIZE(target));
        return 1;
    }
    if (!(part = PyObject_GetItem(seen, index)))
        return 0;
    if (Py_TYPE(part) != &PyArray_Type) /* one element, which an index of another array selects */
        done = source == value || PyArray_NDIM(AS_ARRAY(source)) == 0
                   ? write_silently(seen, index, source)
                   : 0;
    else if (PyArray_SIZE(AS_ARRAY(part)) == 0 || counted_bytes(AS_ARRAY(part)) > most_elements)
        done = 0;
    else if (source == value || lie_apart(AS_ARRAY(part), AS_ARRAY(source)))
        done = write_silently(part, Py_Ellipsis, source);
    else if (PyArray_DESCR(AS_ARRAY(source)) == PyArray_DESCR(target) &&
             lie_alike(AS_ARRAY(part), AS_ARRAY(source))) /* as after x[1:] += 1 */
        done = 1;
    else { /* NumPy takes x[::2] = x[:n] for an assignment that needs no copy */
        PyObject *apart = PyArray_NewCopy(AS_ARRAY(source), NPY_KEEPORDER);
        done = apart ? write_silently(part, Py_Ellipsis, apart) : 0;
        Py_XDECREF(apart);
    }
    Py_DECREF(part);
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
    return !done && PyErr_Occurred() && !is_refusal() ? -1 : done;
}

static int setitem(PyObject *self, PyObject *index, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    int done = write_now(self, index, value);
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

/* --- operators -------------------------------------------------------------------------------- */

/* As Python hands them over: the numbers of operations, in the order of their slots. */
enum { OF_ADD, OF_SUBTRACT, OF_MULTIPLY, OF_DIVIDE, OF_FLOOR_DIVIDE, OF_REMAINDER, OF_AND, OF_OR,
       OF_XOR, OF_LEFT_SHIFT, OF_RIGHT_SHIFT, OF_LESS, OF_LESS_EQUAL, OF_GREATER, OF_GREATER_EQUAL,
       OF_EQUAL, OF_NOT_EQUAL, OF_NEGATIVE, OF_POSITIVE, OF_ABSOLUTE, OF_INVERT, OPERATORS };

/* Whether the axes lie in memory as in C, not all elements beside each other: then those of a
 * result of NumPy's do, too. */
static int lies_as_in_c(PyArrayObject *x)
{
    npy_intp before = NPY_MAX_INTP;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++) {
        if (PyArray_DIM(x, axis) == 1)
            continue;
        if (PyArray_STRIDE(x, axis) <= 0 || PyArray_STRIDE(x, axis) > before)
            return 0;
        before = PyArray_STRIDE(x, axis);
    }
    return 1;
}

/* An operation on large arrays of one shape and dtype, or on one and a number of Python's, whose
 * result lies in memory that has been used before: that of the system is fresh, and to touch it the
 * first time costs more than the operation. NULL without an exception where Python is to decide. */
static PyObject *in_pool(struct operation *op, PyObject *owner, PyObject *a, PyObject *b)
{
    PyArrayObject *like = AS_ARRAY(Py_TYPE(a) == &PyArray_Type ? a : b);
    PyObject *operands[] = {a, b};
    int type = PyArray_TYPE(like);
    if (op->into == Py_None || !strchr(op->kept_types, PyArray_DESCR(like)->type))
        return NULL;
    for (int which = 0; which < (b ? 2 : 1); which++) {
        PyObject *each = operands[which];
        if (Py_TYPE(each) != &PyArray_Type) {
            if (!PyFloat_CheckExact(each) && !PyLong_CheckExact(each))
                return NULL;
        } else if (PyArray_TYPE(AS_ARRAY(each)) != type || PyArray_ISBYTESWAPPED(AS_ARRAY(each)) ||
                   !PyArray_SAMESHAPE(AS_ARRAY(each), like) || !lies_as_in_c(AS_ARRAY(each)))
            return NULL;
    }
    PyObject *block = PyObject_CallFunction(allocate, "OOn", SLOT(owner, at_queue),
                                            SLOT(owner, at_usm_type), PyArray_NBYTES(like));
    if (!block)
        return NULL;
    PyObject *bytes = NULL, *made = NULL, *free = is_idle() ? Py_NewRef(Py_True) : NULL;
    if (!free) /* the block may have been another array's before */
        free = PyObject_CallFunctionObjArgs(block_is_ready, block, Py_True, NULL);
    if (free && PyObject_IsTrue(free) == 1)
        bytes = PyObject_GetAttr(block, host_bytes);
    Py_XDECREF(free);
    if (bytes && Py_TYPE(bytes) == &PyArray_Type) {
        PyArray_Descr *dtype = PyArray_DESCR(like);
        Py_INCREF(dtype);
        PyObject *out = PyArray_NewFromDescr(&PyArray_Type, dtype, PyArray_NDIM(like),
                                             PyArray_DIMS(like), NULL,
                                             PyArray_DATA(AS_ARRAY(bytes)), NPY_ARRAY_CARRAY, NULL);
        if (out && PyArray_SetBaseObject(AS_ARRAY(out), Py_NewRef(bytes)) == 0) {
            PyObject *result = b ? silently(owner, op->into, a, b, out)
                                 : silently(owner, op->into, a, out, NULL);
            if (result) {
                Py_DECREF(result);
                made = make(owner, Py_NewRef(out), block);
            }
        }
        Py_XDECREF(out);
    }
    Py_XDECREF(bytes);
    Py_DECREF(block);
    return made;
}

/* --- operators of two operands ------------------------------------------------------------------ */

static PyObject *noted(int at, PyObject *x, PyObject *y);
static PyObject *noted_as(PyObject *op, PyObject *weight_of_op, PyObject *x, PyObject *y);

/* The size of the shape to which two arrays broadcast; more than any limit if they do not. */
static npy_intp broadcast_size(PyArrayObject *a, PyArrayObject *b)
{
    npy_intp size = 1;
    int count = PyArray_NDIM(a) > PyArray_NDIM(b) ? PyArray_NDIM(a) : PyArray_NDIM(b);
    for (int axis = 1; axis <= count; axis++) {
        npy_intp one_ = axis <= PyArray_NDIM(a) ? PyArray_DIM(a, PyArray_NDIM(a) - axis) : 1;
        npy_intp other = axis <= PyArray_NDIM(b) ? PyArray_DIM(b, PyArray_NDIM(b) - axis) : 1;
        if (one_ != other && one_ != 1 && other != 1)
            return NPY_MAX_INTP;
        size *= one_ == 1 ? other : one_;
    }
    return size;
}

/* Whether the operands are small, in one place; the host's views and the size are stored. */
static int are_small(struct operation *op, PyObject *x, PyObject *y, PyObject **a, PyObject **b,
                     npy_intp *size)
{
    npy_intp most = most_of(op->weight), other;
    if (*a && *b) {
        if (SLOT(x, at_queue) != SLOT(y, at_queue) || SLOT(x, at_usm_type) != SLOT(y, at_usm_type))
            return 0;
        *size = counted(AS_ARRAY(*a));
        other = counted(AS_ARRAY(*b));
        if (other > *size)
            *size = other;
        if (!PyArray_SAMESHAPE(AS_ARRAY(*a), AS_ARRAY(*b))) {
            npy_intp whole = broadcast_size(AS_ARRAY(*a), AS_ARRAY(*b));
            if (whole / 8 > most)
                return 0;
            for (int at = 0; at < 2; at++)
                if ((other = effective_size(AS_ARRAY(at ? *b : *a), whole)) > *size)
                    *size = other;
        }
    } else if (*a && Py_TYPE(y) != array_type && is_scalar(y)) {
        *b = y;
        *size = counted(AS_ARRAY(*a));
    } else if (*b && Py_TYPE(x) != array_type && is_scalar(x)) {
        *a = x;
        *size = counted(AS_ARRAY(*b));
    } else
        return 0;
    return *size <= most;
}

/* The operation, computed by NumPy; `b` is NULL for one operand. NULL without an exception where
 * the general way is to do it. */
static PyObject *compute_now(struct operation *op, PyObject *owner, PyObject *a, PyObject *b,
                             npy_intp size)
{
    PyObject *result = size > heap_elements ? in_pool(op, owner, a, b) : NULL;
    if (result || PyErr_Occurred())
        return result;
    result = silently(owner, op->compute, a, b, NULL);
    return result ? make_of(owner, result) : NULL;
}

static PyObject *binary(int at, PyObject *x, PyObject *y)
{
    struct operation *op = &operations[at];
    PyObject *seen = seen_of(x), *others = seen_of(y), *a = seen, *b = others, *result = NULL;
    npy_intp size = 0;
    Py_XINCREF(seen); /* as in getitem */
    Py_XINCREF(others);
    if (!are_small(op, x, y, &a, &b, &size))
        result = noted(at, x, y);
    else if (is_ready(x, 0) && is_ready(y, 0))
        result = compute_now(op, Py_TYPE(x) == array_type ? x : y, a, b, size);
    Py_XDECREF(seen);
    Py_XDECREF(others);
    return result || PyErr_Occurred() ? result : general(op->general, x, y, NULL);
}

/* Compute an operation into a small array: 1 if it is done, 0 if the general way is to do it, -1
 * with an exception. `y` is NULL for one operand. */
static int compute_into(struct operation *op, PyObject *out, PyObject *x, PyObject *y)
{
    PyObject *target = seen_of(out), *given[] = {x, y}, *seen[2] = {NULL, NULL}, *result;
    if (!target || op->into == Py_None || counted(AS_ARRAY(target)) > most_of(op->weight))
        return 0;
    for (int at = 0; at < 2 && given[at]; at++) {
        if (Py_TYPE(given[at]) == array_type) {
            if (SLOT(out, at_queue) == SLOT(given[at], at_queue))
                seen[at] = seen_of(given[at]);
        } else if (is_scalar(given[at]))
            seen[at] = given[at];
        if (!seen[at])
            return 0;
    }
    if (!is_free_to_write(out) || !is_ready(x, 0) || (y && !is_ready(y, 0)))
        return is_refusal() ? 0 : -1;
    Py_INCREF(target);
    result = y ? silently(out, op->into, seen[0], seen[1], target)
               : silently(out, op->into, seen[0], target, NULL);
    Py_DECREF(target);
    Py_XDECREF(result);
    return result ? 1 : PyErr_Occurred() ? -1 : 0;
}

static PyObject *in_place(int at, PyObject *x, PyObject *y)
{
    int done = compute_into(&operations[at], x, x, y);
    if (done)
        return done < 0 ? NULL : Py_NewRef(x);
    return general(operations[at].general_in_place, x, y, NULL);
}

static PyObject *unary(int at, PyObject *x)
{
    struct operation *op = &operations[at];
    PyObject *seen = seen_of(x), *result = NULL;
    npy_intp size = seen ? counted(AS_ARRAY(seen)) : 0;
    Py_XINCREF(seen);
    if (seen && size <= most_of(op->weight)) {
        if (is_ready(x, 0))
            result = compute_now(op, x, seen, NULL, size);
    } else if (at == OF_NEGATIVE)
        result = noted_as(PyList_GetItem(graph_operations, at), op->weight, x, NULL);
    Py_XDECREF(seen);
    return result || PyErr_Occurred() ? result : general(op->general, x, NULL, NULL);
}

/* The operation whose number is `self`, called with its operands. */
static PyObject *operate(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    int at = (int)PyLong_AsLong(self);
    if (count == 1)
        return unary(at, args[0]);
    if (count == 2)
        return binary(at, args[0], args[1]);
    PyErr_Format(PyExc_TypeError, "an operation takes 1 or 2 operands, not %zd", count);
    return NULL;
}

static PyMethodDef operate_definition = {
    "operate", (PyCFunction)(void (*)(void))operate, METH_FASTCALL, NULL,
};

/* operation(number): the function of its operands; `setup` describes the operation later. */
static PyObject *operation_of(PyObject *module, PyObject *number)
{
    return PyCFunction_New(&operate_definition, number);
}

/* operate_into(number, out, x[, y]): whether a small array was written. */
static PyObject *operate_into(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 && count != 4) {
        PyErr_SetString(PyExc_TypeError, "operate_into(number, out, x[, y])");
        return NULL;
    }
    struct operation *op = &operations[PyLong_AsLong(args[0])];
    int done = compute_into(op, args[1], args[2], count == 4 ? args[3] : NULL);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

#define OPERATION(name, at)                                                               \
    static PyObject *name(PyObject *x, PyObject *y) { return binary(at, x, y); }          \
    static PyObject *name##_in_place(PyObject *x, PyObject *y) { return in_place(at, x, y); }
OPERATION(add, OF_ADD)
OPERATION(subtract, OF_SUBTRACT)
OPERATION(multiply, OF_MULTIPLY)
OPERATION(divide, OF_DIVIDE)
OPERATION(floor_divide, OF_FLOOR_DIVIDE)
OPERATION(remainder_of, OF_REMAINDER)
OPERATION(and_of, OF_AND)
OPERATION(or_of, OF_OR)
OPERATION(xor_of, OF_XOR)
OPERATION(left_shift, OF_LEFT_SHIFT)
OPERATION(right_shift, OF_RIGHT_SHIFT)

static PyObject *compare(PyObject *x, PyObject *y, int which)
{
    switch (which) {
    case Py_LT: return binary(OF_LESS, x, y);
    case Py_LE: return binary(OF_LESS_EQUAL, x, y);
    case Py_GT: return binary(OF_GREATER, x, y);
    case Py_GE: return binary(OF_GREATER_EQUAL, x, y);
    case Py_EQ: return binary(OF_EQUAL, x, y);
    default: return binary(OF_NOT_EQUAL, x, y);
    }
}

/* Whether an array is pending, or of more elements than are computed at once. */
static int is_large(PyObject *x, PyObject *weight)
{
    PyObject *seen = seen_of(x);
    return !seen || counted(AS_ARRAY(seen)) > most_of(weight);
}

static PyObject *power(PyObject *x, PyObject *y, PyObject *modulus)
{
    PyObject *seen = seen_of(x);
    int is_whole;
    if (modulus == Py_None && seen && PyLong_CheckExact(y) &&
        (PyArray_ISFLOAT(AS_ARRAY(seen)) || PyArray_ISCOMPLEX(AS_ARRAY(seen))) &&
        PyLong_AsLongLongAndOverflow(y, &is_whole) == 2 &&
        PyArray_SIZE(AS_ARRAY(seen)) <= most_of(square_weight) &&
        PyArray_SIZE(AS_ARRAY(seen)) <= heap_elements && is_ready(x, 0)) {
        PyObject *result = silently(x, numpy_square, seen, NULL, NULL);
        if (result)
            return make_of(x, result);
        if (PyErr_Occurred())
            return NULL;
    }
    if (modulus == Py_None && Py_TYPE(x) == array_type && PyLong_CheckExact(y) &&
        PyLong_AsLongLongAndOverflow(y, &is_whole) == 2 && is_large(x, square_weight)) {
        PyObject *result = noted_as(square, square_weight, x, NULL);
        if (result || PyErr_Occurred())
            return result;
    }
    if (Py_TYPE(x) != array_type)
        return general(slow_reflected_power, y, x, NULL);
    return general(slow_power, x, y, modulus);
}


/* --- operations that are noted down --------------------------------------------------------------- */

/* What `dparray/_graph/node.py` calls the parts of a node. */
enum { OP, OPERANDS, LOOP, DTYPE, SHAPE, SIZE, QUEUE, USM_TYPE, LAYOUT, AXES, USERS, ARRAY, WEIGHT,
       LEAVES, NODE_SLOTS };
static const char *node_slot_names[NODE_SLOTS] = {
    "op", "operands", "loop", "dtype", "shape", "size", "queue", "usm_type", "layout", "axes",
    "users", "array", "weight", "leaves",
};
static Py_ssize_t node_slots[NODE_SLOTS];
static const char *canonical_slot_names[] = {"arrays", "key", "numbers", "scalars"};
static Py_ssize_t canonical_slots[4];
#define PART(node, which) SLOT(node, node_slots[which])

#define MOST_NOTES 64  /* of readers, before those that are gone are dropped */
#define MOST_WEIGHT 512 /* as in `dparray/_evaluate/limits.py` */
#define MOST_LEAVES 24

static int is_option(const char *name)
{
    PyObject *value = PyDict_GetItemString(options, name);
    return value == Py_True;
}

/* Whether an array has more than one element along each axis, and its axes lie in memory as in C. */
static int has_axes_of_c(PyArrayObject *x)
{
    for (int axis = 0; axis < PyArray_NDIM(x); axis++)
        if (PyArray_DIM(x, axis) < 2 || PyArray_STRIDE(x, axis) <= 0 ||
            (axis && PyArray_STRIDE(x, axis) >= PyArray_STRIDE(x, axis - 1)))
            return 0;
    return 1;
}

/* Give an array in memory its node, `Node.leaf`, from what the host sees; no where Python is to. */
static int give_leaf(PyObject *x)
{
    PyArrayObject *seen = AS_ARRAY(SLOT(x, at_seen));
    if ((PyObject *)seen == Py_None || !PyArray_BASE(seen) || !has_axes_of_c(seen))
        return 0;
    PyObject *block = SLOT(x, at_block), *pointer = PyObject_GetAttr(block, pointer_word);
    PyObject *layout = PyType_GenericAlloc(layout_type, 5), *nothing = PyTuple_New(0);
    PyObject *node = PyType_GenericAlloc(node_type, 0);
    int count = PyArray_NDIM(seen), is_made = pointer && layout && nothing && node;
    if (is_made) {
        char *first = PyLong_AsVoidPtr(pointer);
        PyObject *parts[] = {
            Py_NewRef(block), PyLong_FromSsize_t(PyArray_BYTES(seen) - first),
            PyArray_IntTupleFromIntp(count, PyArray_DIMS(seen)),
            PyArray_IntTupleFromIntp(count, PyArray_STRIDES(seen)),
            Py_NewRef((PyObject *)PyArray_DESCR(seen)),
        };
        for (int at = 0; at < 5; at++)
            is_made = parts[at] && PyTuple_SetItem(layout, at, parts[at]) == 0 && is_made;
    }
    if (is_made) {
        put(node, node_slots[OP], Py_None);
        put(node, node_slots[OPERANDS], nothing);
        put(node, node_slots[LOOP], nothing);
        put(node, node_slots[DTYPE], (PyObject *)PyArray_DESCR(seen));
        put(node, node_slots[SHAPE], PyTuple_GetItem(layout, 2));
        PART(node, SIZE) = PyLong_FromSsize_t(PyArray_SIZE(seen));
        put(node, node_slots[QUEUE], SLOT(x, at_queue));
        put(node, node_slots[USM_TYPE], SLOT(x, at_usm_type));
        put(node, node_slots[LAYOUT], layout);
        put(node, node_slots[AXES], Py_None);
        put(node, node_slots[USERS], Py_None);
        put(node, node_slots[ARRAY], Py_None);
        PART(node, WEIGHT) = PyLong_FromLong(0);
        PART(node, LEAVES) = PyLong_FromLong(1);
        put(x, at_node, node);
    }
    Py_XDECREF(pointer);
    Py_XDECREF(layout);
    Py_XDECREF(nothing);
    Py_XDECREF(node);
    return is_made;
}

/* The node of an array, pending or in memory; borrowed, NULL without an exception of others. */
static PyObject *node_of_array(PyObject *x)
{
    if (Py_TYPE(x) != array_type || !SLOT(x, at_seen) || !SLOT(x, at_block) || !SLOT(x, at_queue) ||
        (SLOT(x, at_seen) != Py_None && SLOT(x, at_block) == Py_None))
        return NULL;
    PyObject *node = SLOT(x, at_node);
    if (!node && give_leaf(x))
        node = SLOT(x, at_node);
    else if (!node) {
        node = PyObject_GetAttr(x, node_word); /* the array keeps it */
        Py_XDECREF(node);
    }
    return node && Py_TYPE(node) == node_type ? node : NULL;
}

/* The list of those that read what a node is, which is made; borrowed. NULL without an exception
 * where others may write it, and where Python is to look through it. */
static PyObject *readers_of(PyObject *node)
{
    PyObject *layout = PART(node, LAYOUT), *holder = NULL, *found;
    if (layout == Py_None)
        found = Py_NewRef(PART(node, USERS));
    else {
        holder = PyTuple_GetItem(layout, 0);
        found = holder ? PyObject_GetAttr(holder, readers) : NULL;
    }
    if (found == Py_None) {
        Py_DECREF(found);
        found = PyList_New(0);
        if (found && !holder)
            put(node, node_slots[USERS], found);
        else if (found && PyObject_SetAttr(holder, readers, found) < 0)
            Py_CLEAR(found);
    }
    if (!found)
        return NULL;
    Py_DECREF(found); /* the holder has it */
    return PyList_CheckExact(found) && PyList_Size(found) <= MOST_NOTES ? found : NULL;
}

/* A number of Python's as an operand in floating point. */
static PyObject *scalar_of(PyObject *value)
{
    double real = PyFloat_CheckExact(value) ? PyFloat_AsDouble(value) : PyLong_AsDouble(value);
    if (real == -1 && PyErr_Occurred())
        return NULL;
    PyObject *made = PyType_GenericAlloc(scalar_type, 1), *kept = PyFloat_FromDouble(real);
    if (!made || !kept || PyTuple_SetItem(made, 0, kept) < 0)
        Py_CLEAR(made);
    return made;
}

static PyObject *loop_of(PyObject *dtype, int count)
{
    static PyObject *known[2][2];
    PyObject **place = &known[count - 1][PyArray_DescrCheck(dtype) &&
                                         ((PyArray_Descr *)dtype)->type_num == NPY_DOUBLE];
    if (!*place)
        *place = count == 1 ? PyTuple_Pack(2, dtype, dtype) : PyTuple_Pack(3, dtype, dtype, dtype);
    return *place && PyTuple_GetItem(*place, 0) == dtype ? *place : NULL;
}

/* An operation on one or two pending arrays and arrays in memory, or on one and a number of Python's,
 * as `defer` makes it, or a fold of all elements of one; NULL without an exception where it is not
 * this simple. */
static PyObject *noted_node(PyObject *op, PyObject *weight_of_op, PyObject *x, PyObject *y, int folds)
{
    int count = y ? 2 : 1;
    PyObject *operands[] = {x, y}, *nodes[2] = {NULL, NULL}, *notes[2] = {NULL, NULL}, *like = NULL;
    long weight = 0, leaves = 0;
    if (is_tracing || !is_option("lazy") || PyList_Size(holds_open) ||
        PyObject_IsTrue(PyDict_GetItemString(placement, "in_force")))
        goto refused;
    for (int which = 0; which < count; which++) {
        PyObject *each = operands[which];
        if (PyFloat_CheckExact(each) || PyLong_CheckExact(each))
            continue;
        PyObject *node = nodes[which] = node_of_array(each);
        if (!node || PART(node, AXES) != Py_None)
            goto refused;
        if (!like)
            like = node;
        else if (PART(node, QUEUE) != PART(like, QUEUE) ||
                 PART(node, USM_TYPE) != PART(like, USM_TYPE) ||
                 PART(node, DTYPE) != PART(like, DTYPE) ||
                 (PART(node, SHAPE) != PART(like, SHAPE) &&
                  PyObject_RichCompareBool(PART(node, SHAPE), PART(like, SHAPE), Py_EQ) != 1))
            goto refused;
        weight += PyLong_AsLong(PART(node, WEIGHT));
        leaves += PyLong_AsLong(PART(node, LEAVES));
    }
    PyArray_Descr *dtype = like ? (PyArray_Descr *)PART(like, DTYPE) : NULL;
    if (!dtype || (dtype->type_num != NPY_DOUBLE && dtype->type_num != NPY_FLOAT))
        goto refused;
    PyObject *loop = loop_of((PyObject *)dtype, count);
    weight += PyLong_AsLong(weight_of_op);
    if (!loop || weight > MOST_WEIGHT || leaves > MOST_LEAVES)
        goto refused;
    for (int which = 0; which < count; which++)
        if (nodes[which] && !(notes[which] = readers_of(nodes[which])))
            goto refused;
    PyObject *node = PyType_GenericAlloc(node_type, 0), *reference = NULL;
    PyObject *parts = PyTuple_New(count), *made = NULL;
    for (int which = 0; node && parts && which < count; which++) {
        PyObject *part = nodes[which] ? Py_NewRef(nodes[which]) : scalar_of(operands[which]);
        if (!part || PyTuple_SetItem(parts, which, part) < 0)
            Py_CLEAR(parts);
    }
    if (!node || !parts)
        goto failed;
    put(node, node_slots[OP], op);
    put(node, node_slots[OPERANDS], parts);
    put(node, node_slots[LOOP], loop);
    for (int which = DTYPE; which <= USM_TYPE; which++)
        put(node, node_slots[which], PART(like, which));
    if (folds) {
        PyObject *nothing = PyTuple_New(0), *one = PyLong_FromLong(1);
        if (nothing && one) {
            put(node, node_slots[SHAPE], nothing);
            put(node, node_slots[SIZE], one);
        }
        Py_XDECREF(nothing);
        Py_XDECREF(one);
        if (!nothing || !one)
            goto failed;
    }
    for (int which = LAYOUT; which <= ARRAY; which++)
        put(node, node_slots[which], Py_None);
    PART(node, WEIGHT) = PyLong_FromLong(weight);
    PART(node, LEAVES) = PyLong_FromLong(leaves);
    if (!PART(node, WEIGHT) || !PART(node, LEAVES) || !(reference = PyWeakref_NewRef(node, NULL)))
        goto failed;
    for (int which = 0; which < count; which++)
        if (notes[which] && PyList_Append(notes[which], reference) < 0)
            goto failed;
    made = PyType_GenericAlloc(array_type, 0);
    PyObject *holder = made ? PyWeakref_NewRef(made, NULL) : NULL;
    if (!holder) {
        Py_CLEAR(made);
        goto failed;
    }
    put(node, node_slots[ARRAY], holder);
    Py_DECREF(holder);
    put(made, at_node, node);
    put(made, at_block, Py_None);
    put(made, at_seen, Py_None);
    put(made, at_alias, Py_None);
    put(made, at_packed, Py_None);
    put(made, at_shape, PART(node, SHAPE));
    put(made, at_dtype, PART(node, DTYPE));
    put(made, at_size, PART(node, SIZE));
    put(made, at_queue, PART(node, QUEUE));
    put(made, at_usm_type, PART(node, USM_TYPE));
failed:
    Py_XDECREF(reference);
    Py_XDECREF(parts);
    Py_XDECREF(node);
    return made;
refused:
    if (PyErr_Occurred())
        is_refusal();
    return NULL;
}

static PyObject *noted_as(PyObject *op, PyObject *weight_of_op, PyObject *x, PyObject *y)
{
    return noted_node(op, weight_of_op, x, y, 0);
}

/* noted_fold(x, op, weight): the array of a fold of all elements; None where it is not this simple. */
static PyObject *noted_fold(PyObject *module, PyObject *args)
{
    PyObject *x, *op, *weight;
    if (!PyArg_ParseTuple(args, "OOO", &x, &op, &weight))
        return NULL;
    PyObject *made = noted_node(op, weight, x, NULL, 1);
    if (made || PyErr_Occurred())
        return made;
    Py_RETURN_NONE;
}

static PyObject *noted(int at, PyObject *x, PyObject *y)
{
    if (at > OF_DIVIDE)
        return NULL;
    return noted_as(PyList_GetItem(graph_operations, at), operations[at].weight, x, y);
}

/* --- forms of expressions ----------------------------------------------------------------------- */

static int is_node(PyObject *x) { return Py_TYPE(x) == node_type; }

/* Where an object is in a list, by identity; -1 if it is not. Expressions are short: larger ones
 * are left to Python. */
static Py_ssize_t place_of(PyObject *list, PyObject *x)
{
    for (Py_ssize_t at = 0; at < PyList_Size(list); at++)
        if (PyList_GetItem(list, at) == x)
            return at;
    return -1;
}

/* Add the pending nodes that a node needs, and it, operands before users; as `pending_order`, which
 * looks at the last operand first. 0 where there are too many, with no exception. */
static int add_pending(PyObject *order, PyObject *node, int depth)
{
    if (place_of(order, node) >= 0)
        return 1;
    if (depth > MOST_LEAVES || PyList_Size(order) >= MOST_NOTES)
        return 0;
    PyObject *operands = PART(node, OPERANDS);
    for (Py_ssize_t at = PyTuple_Size(operands); at-- > 0;) {
        PyObject *operand = PyTuple_GetItem(operands, at);
        if (is_node(operand) && PART(operand, LAYOUT) == Py_None &&
            !add_pending(order, operand, depth + 1))
            return 0;
    }
    return PyList_Append(order, node) == 0;
}

/* pending_order(roots) */
static PyObject *pending_order(PyObject *module, PyObject *roots)
{
    PyObject *order = PyTuple_CheckExact(roots) && PyTuple_Size(roots) == 1 ? PyList_New(0) : NULL;
    PyObject *root = order ? PyTuple_GetItem(roots, 0) : NULL;
    if (root && is_node(root) &&
        (PART(root, LAYOUT) != Py_None || add_pending(order, root, 0)))
        return order;
    Py_XDECREF(order);
    if (!is_refusal())
        return NULL;
    return PyObject_CallFunctionObjArgs(slow_order, roots, NULL);
}

/* The number of a leaf among the arrays so far, by what it shows; a new one has its form in the
 * key. -1 with an exception. */
static Py_ssize_t number_of_leaf(PyObject *layout, PyObject *arrays, PyObject *key)
{
    Py_ssize_t count = PyList_Size(arrays);
    PyObject *block = PyTuple_GetItem(layout, 0);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *other = PyList_GetItem(arrays, at);
        int is_same = other == layout || PyTuple_GetItem(other, 0) == block;
        for (Py_ssize_t part = 1; other != layout && is_same && part < 5; part++)
            is_same = PyObject_RichCompareBool(PyTuple_GetItem(other, part),
                                               PyTuple_GetItem(layout, part), Py_EQ) == 1;
        if (is_same)
            return at;
    }
    PyObject *memory = PyObject_GetAttr(block, memory_word);
    PyObject *form = memory ? PyTuple_Pack(4, PyTuple_GetItem(layout, 4), PyTuple_GetItem(layout, 2),
                                           PyTuple_GetItem(layout, 3),
                                           memory == Py_None ? Py_True : Py_False)
                            : NULL;
    int is_added = form && PyList_Append(arrays, layout) == 0 && PyList_Append(key, form) == 0;
    Py_XDECREF(memory);
    Py_XDECREF(form);
    return is_added ? count : -1;
}

static int add_number(PyObject *numbers, PyObject *node, Py_ssize_t value)
{
    PyObject *id = PyLong_FromVoidPtr(node), *number_ = PyLong_FromSsize_t(value);
    int is_added = id && number_ && PyDict_SetItem(numbers, id, number_) == 0;
    Py_XDECREF(id);
    Py_XDECREF(number_);
    return is_added;
}

/* Canonical(order) of `dparray/_codegen/canonical.py`. */
static PyObject *canonical(PyObject *module, PyObject *args)
{
    PyObject *order = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;
    PyObject *value = PyTuple_Size(args) == 2 ? PyTuple_GetItem(args, 1) : Py_None;
    if (!order || !PyList_CheckExact(order) || value != Py_None || PyList_Size(order) > MOST_NOTES)
        return PyObject_Call((PyObject *)canonical_type, args, NULL);
    PyObject *arrays = PyList_New(0), *scalars = PyList_New(0), *numbers = PyDict_New();
    PyObject *key = PyList_New(0), *leaves = PyList_New(0), *made = NULL, *whole = NULL;
    Py_ssize_t counts[2 * MOST_NOTES];
    int is_right = arrays && scalars && numbers && key && leaves;
    for (Py_ssize_t step = 0; is_right && step < PyList_Size(order); step++) {
        PyObject *node = PyList_GetItem(order, step);
        if (!(is_right = is_node(node))) /* Python's way has the words */
            break;
        PyObject *operands = PART(node, OPERANDS);
        for (Py_ssize_t at = 0; is_right && at < PyTuple_Size(operands); at++) {
            PyObject *operand = PyTuple_GetItem(operands, at);
            Py_ssize_t number_ = 0;
            if (!is_node(operand)) {
                is_right = PyList_Append(scalars, PyTuple_GetItem(operand, 0)) == 0 &&
                           PyList_Append(key, Py_None) == 0;
                continue;
            }
            if (PART(operand, LAYOUT) == Py_None) {
                number_ = -1 - place_of(order, operand);
                if (!number_) { /* not before its user */
                    PyErr_SetString(PyExc_AssertionError, "canonical: an operand is missing");
                    is_right = 0;
                }
            } else {
                Py_ssize_t place = place_of(leaves, operand);
                if (place < 0 && (place = PyList_Size(leaves)) < 2 * MOST_NOTES) {
                    number_ = number_of_leaf(PART(operand, LAYOUT), arrays, key);
                    counts[place] = number_;
                    is_right = number_ >= 0 && PyList_Append(leaves, operand) == 0 &&
                               add_number(numbers, operand, number_);
                } else if (place < 2 * MOST_NOTES)
                    number_ = counts[place];
                else
                    is_right = 0;
            }
            PyObject *noted_ = is_right ? PyLong_FromSsize_t(number_) : NULL;
            is_right = noted_ && PyList_Append(key, noted_) == 0;
            Py_XDECREF(noted_);
        }
        const int parts[] = {OP, LOOP, SHAPE, USM_TYPE, AXES};
        for (int at = 0; is_right && at < 5; at++)
            is_right = PyList_Append(key, PART(node, parts[at])) == 0;
        is_right = is_right && add_number(numbers, node, -1 - step);
    }
    if (is_right && (whole = PyList_AsTuple(key)) &&
        (made = PyType_GenericAlloc(canonical_type, 0))) {
        put(made, canonical_slots[0], arrays);
        put(made, canonical_slots[1], whole);
        put(made, canonical_slots[2], numbers);
        put(made, canonical_slots[3], scalars);
    }
    Py_XDECREF(arrays);
    Py_XDECREF(scalars);
    Py_XDECREF(numbers);
    Py_XDECREF(key);
    Py_XDECREF(leaves);
    Py_XDECREF(whole);
    if (!made && is_refusal())
        return PyObject_Call((PyObject *)canonical_type, args, NULL);
    return made;
}

/* --- launches of known expressions ------------------------------------------------------------ */

/* The arguments of a kernel with a few numbers in them: the addresses of all but the arrays and the
 * numbers of the expression never change. */
#define MOST_ARGUMENTS 64
#define MOST_NEW 8
static PyTypeObject *block_type;
static Py_ssize_t block_slots[3], segment_slots[2]; /* pointer, segment, readers; used, written */
static PyObject *in_order, *met_word, *order_of, *others_work, *note_recent, *lock_order, *unlock_order;
static PyObject *count_word, *done_word, *last_word, *launched_word, *others_word;
static PyObject *before_launch_word, *add_launch_word, *address_word;
static void *(*submit_range)(void *, void *, void **, const int *, size_t, const size_t *, size_t,
                             void *const *, size_t);
static void *(*submit_groups)(void *, void *, void **, const int *, size_t, const size_t *,
                              const size_t *, size_t, void *const *, size_t);
static PyObject *(*make_event)(void *);
static void (*delete_event)(void *);

typedef struct {
    PyObject *spec, *queue, *name, *new;
    void *kernel, *queue_at;
    size_t extents[3], local[3], dimensions, has_local, count;
    int kinds[MOST_ARGUMENTS];
    void *addresses[MOST_ARGUMENTS];
    int arrays, reads, numbers, leaves, output;
    unsigned long thread; /* whose counters of groups are among the arguments, if any are */
    struct { int at, slot; } array[MOST_ARGUMENTS];
    struct { int at, number, type; } number[MOST_ARGUMENTS];
} known_launch;

static void free_known(PyObject *capsule)
{
    known_launch *known = PyCapsule_GetPointer(capsule, "known");
    Py_XDECREF(known->spec);
    PyMem_Free(known);
}

static int copy_bytes(PyObject *bytes, void *to, size_t most, size_t *nbytes)
{
    *nbytes = bytes && PyBytes_Check(bytes) ? PyBytes_Size(bytes) : most + 1;
    if (*nbytes > most)
        return 0;
    memcpy(to, PyBytes_AsString(bytes), *nbytes);
    return 1;
}

/* known_launch(...): a launch as `_spec_of` of `dparray/_evaluate/bound_plan.py` gives it; None if it is too large. */
static PyObject *known_launch_of(PyObject *module, PyObject *spec)
{
    known_launch *known = PyMem_Calloc(1, sizeof *known);
    PyObject *kept, *extents, *local, *kinds, *addresses, *arrays, *numbers, *capsule = NULL;
    unsigned long long kernel, queue_at;
    size_t nbytes, places;
    if (!known)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(spec, "OOOKKOOOOOiOOiik", &kept, &known->queue, &known->name, &kernel,
                          &queue_at, &extents, &local, &kinds, &addresses, &arrays, &known->reads,
                          &numbers, &known->new, &known->output, &known->leaves, &known->thread))
        goto failed;
    known->kernel = (void *)(size_t)kernel;
    known->queue_at = (void *)(size_t)queue_at;
    known->has_local = local != Py_None;
    known->arrays = (int)PyTuple_Size(arrays);
    known->numbers = (int)PyTuple_Size(numbers);
    if (!copy_bytes(extents, known->extents, sizeof known->extents, &nbytes) ||
        (known->has_local && !copy_bytes(local, known->local, sizeof known->local, &places)) ||
        !copy_bytes(kinds, known->kinds, sizeof known->kinds, &known->count) ||
        !copy_bytes(addresses, known->addresses, sizeof known->addresses, &places) ||
        PyTuple_Size(known->new) > MOST_NEW) {
        PyMem_Free(known);
        Py_RETURN_NONE;
    }
    known->dimensions = nbytes / sizeof(size_t);
    known->count /= sizeof(int);
    for (int at = 0; at < known->arrays; at++)
        if (!PyArg_ParseTuple(PyTuple_GetItem(arrays, at), "ii", &known->array[at].at,
                              &known->array[at].slot))
            goto failed;
    for (int at = 0; at < known->numbers; at++)
        if (!PyArg_ParseTuple(PyTuple_GetItem(numbers, at), "iii", &known->number[at].at,
                              &known->number[at].number, &known->number[at].type))
            goto failed;
    if (!(capsule = PyCapsule_New(known, "known", free_known)))
        goto failed;
    known->spec = Py_NewRef(spec);
    return capsule;
failed:
    PyMem_Free(known);
    return NULL;
}

static Py_ssize_t number_at(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    Py_ssize_t value = found ? PyLong_AsSsize_t(found) : -1;
    Py_XDECREF(found);
    return value;
}

static int set_number(PyObject *object, PyObject *name, Py_ssize_t value)
{
    PyObject *made = PyLong_FromSsize_t(value);
    int is_set = made && PyObject_SetAttr(object, name, made) == 0;
    Py_XDECREF(made);
    return is_set;
}

/* Add a launch to its queue's order, `Order.add_launch`. `last` was the last launch before it. */
static int add_launch(PyObject *order, PyObject *event, PyObject *last, PyObject *after,
                      Py_ssize_t seen, PyObject *const *memory, int count, int reads)
{
    PyObject *held = PyObject_CallFunctionObjArgs(lock_order, NULL);
    if (!held)
        return 0;
    Py_DECREF(held);
    PyObject *now = PyObject_GetAttr(order, last_word), *mark = NULL;
    int is_added = 0;
    if (now && (now == Py_None || now == last)) {
        Py_ssize_t added = number_at(order, count_word) + 1;
        int is_other = number_at(order, launched_word) > seen;
        mark = Py_BuildValue("(On)", event, seen);
        is_added = mark && PyObject_SetAttr(order, last_word, event) == 0 &&
                   set_number(order, launched_word, added) && set_number(order, count_word, added) &&
                   (!is_other || set_number(order, others_word, added));
        for (int at = 0; is_added && at < count; at++) {
            put(memory[at], segment_slots[0], mark);
            if (at >= reads)
                put(memory[at], segment_slots[1], mark);
        }
    } else if (now) { /* another thread has launched meanwhile */
        PyObject *all = PyTuple_New(count);
        for (int at = 0; all && at < count; at++)
            PyTuple_SetItem(all, at, Py_NewRef(memory[at]));
        PyObject *add = all ? PyObject_GetAttr(order, add_launch_word) : NULL;
        PyObject *done = add ? PyObject_CallFunction(add, "OOnOi", event, after, seen, all, reads)
                             : NULL;
        is_added = done != NULL;
        Py_XDECREF(all);
        Py_XDECREF(add);
        Py_XDECREF(done);
    }
    Py_XDECREF(now);
    Py_XDECREF(mark);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(PyObject_CallFunctionObjArgs(unlock_order, NULL));
    if (type)
        PyErr_Restore(type, value, trace);
    return is_added;
}

static int note_work(PyObject *queue)
{
    PyObject *mark = PyDict_GetItemWithError(working, queue);
    if (mark == others_work || PyErr_Occurred())
        return mark == others_work;
    PyObject *made = PyObject_CallFunctionObjArgs((PyObject *)&PyBaseObject_Type, NULL);
    int is_noted = made && PyDict_SetItem(working, queue, made) == 0;
    Py_XDECREF(made);
    return is_noted;
}

/* Submit a kernel whose addresses are there, in order with its queue, `launch` of
 * `dparray/_runtime/launch.py`; 1 if it was, 0 if the driver refuses it, -1 with an exception. */
static int submit_known(known_launch *known, void **addresses, PyObject *const *memory)
{
    PyObject *order = PyObject_CallFunctionObjArgs(order_of, known->queue, NULL);
    PyObject *done = NULL, *last = NULL, *after = NULL, *event = NULL, *noted_ = NULL;
    void *events[MOST_ARGUMENTS], *reference = NULL;
    size_t count = 0;
    int found = -1;
    if (!order)
        goto out;
    Py_ssize_t seen = number_at(order, count_word), complete = number_at(order, done_word);
    if (!(last = PyObject_GetAttr(order, last_word)) || PyErr_Occurred())
        goto out;
    if (complete >= seen) /* all that was added: there is nothing to wait for */
        after = PyList_New(0);
    else {
        PyObject *before = PyObject_GetAttr(order, before_launch_word);
        after = before ? PyObject_CallFunctionObjArgs(before, NULL) : NULL;
        Py_XDECREF(before);
    }
    if (!after || !PyList_CheckExact(after))
        goto out;
    count = PyList_Size(after);
    if (count > MOST_ARGUMENTS) { /* Python's way has no limit */
        found = 0;
        goto out;
    }
    for (size_t at = 0; at < count; at++) {
        PyObject *address = PyObject_GetAttr(PyList_GetItem(after, at), address_word);
        PyObject *number_ = address ? PyObject_CallFunctionObjArgs(address, NULL) : NULL;
        events[at] = number_ ? PyLong_AsVoidPtr(number_) : NULL;
        Py_XDECREF(address);
        Py_XDECREF(number_);
        if (!events[at])
            goto out;
    }
    /* No work is submitted with the interpreter's lock held, from the first queue in order on. */
    if (PyDict_GetItemWithError(in_order, met_word) != Py_False) {
        found = PyErr_Occurred() ? -1 : 0;
        goto out;
    }
    noted_ = Py_BuildValue("(OsOk)", known->name, "kernel", known->queue,
                           PyThread_get_thread_ident());
    if (!noted_ || !(done = PyObject_CallFunctionObjArgs(note_recent, noted_, NULL)))
        goto out;
    reference = known->has_local
                    ? submit_groups(known->kernel, known->queue_at, addresses, known->kinds,
                                    known->count, known->extents, known->local, known->dimensions,
                                    events, count)
                    : submit_range(known->kernel, known->queue_at, addresses, known->kinds,
                                   known->count, known->extents, known->dimensions, events, count);
    if (!reference) {
        found = 0;
        goto out;
    }
    event = make_event(reference); /* a copy */
    delete_event(reference);
    if (event && (complete < seen || PyList_Append(after, last) == 0) &&
        add_launch(order, event, last, after, seen, memory, known->arrays, known->reads) &&
        note_work(known->queue))
        found = 1;
out:
    Py_XDECREF(order);
    Py_XDECREF(done);
    Py_XDECREF(last);
    Py_XDECREF(after);
    Py_XDECREF(event);
    Py_XDECREF(noted_);
    return found;
}

/* A pending node whose values are about to lie there, `Node.complete`. */
static void complete(PyObject *node, PyObject *layout)
{
    static PyObject *nothing, *zero, *one;
    if (!nothing) {
        nothing = PyTuple_New(0);
        zero = PyLong_FromLong(0);
        one = PyLong_FromLong(1);
    }
    put(node, node_slots[LAYOUT], layout);
    put(PyTuple_GetItem(layout, 0), block_slots[2], PART(node, USERS));
    put(node, node_slots[USERS], Py_None);
    put(node, node_slots[OP], Py_None);
    PyObject *operands = Py_NewRef(PART(node, OPERANDS)); /* what it keeps may go with it */
    put(node, node_slots[OPERANDS], nothing);
    put(node, node_slots[WEIGHT], zero);
    put(node, node_slots[LEAVES], one);
    Py_DECREF(operands);
}

/* launch_known(known, canonical, node): whether a pending node was computed by one known launch. */
static PyObject *launch_known(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    known_launch *known = given == 3 ? PyCapsule_GetPointer(args[0], "known") : NULL;
    if (!known || Py_TYPE(args[1]) != canonical_type || !is_node(args[2])) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "launch_known(known, canonical, node)");
        return NULL;
    }
    PyObject *node = args[2], *arrays = SLOT(args[1], canonical_slots[0]);
    PyObject *scalars = SLOT(args[1], canonical_slots[3]), *layouts[MOST_NEW] = {NULL};
    void *addresses[MOST_ARGUMENTS];
    union { float single; double whole; } values[MOST_ARGUMENTS];
    PyObject *memory[MOST_ARGUMENTS];
    int made = (int)PyTuple_Size(known->new), is_done = 0;
    if (PART(node, QUEUE) != known->queue || PyList_Size(arrays) != known->leaves ||
        (known->thread && known->thread != PyThread_get_thread_ident()))
        Py_RETURN_FALSE;
    memcpy(addresses, known->addresses, known->count * sizeof(void *));
    for (int at = 0; at < known->numbers; at++) {
        PyObject *value = PyList_GetItem(scalars, known->number[at].number);
        if (!value || (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)))
            goto refused;
        double real = PyFloat_AsDouble(value);
        if (real == -1 && PyErr_Occurred())
            goto refused;
        if (known->number[at].type == NPY_FLOAT)
            values[at].single = (float)real;
        else
            values[at].whole = real;
        addresses[known->number[at].at] = &values[at];
    }
    for (int at = 0; at < known->leaves; at++)
        if (Py_TYPE(PyTuple_GetItem(PyList_GetItem(arrays, at), 0)) != block_type)
            goto refused;
    for (int at = 0; at < made; at++) {
        PyObject *one = PyTuple_GetItem(known->new, at), *layout;
        PyObject *block = PyObject_CallFunctionObjArgs(allocate, known->queue,
                                                       PyTuple_GetItem(one, 3),
                                                       PyTuple_GetItem(one, 4), NULL);
        PyObject *offset = PyLong_FromLong(0);
        layout = layouts[at] = block && offset ? PyType_GenericAlloc(layout_type, 5) : NULL;
        if (!layout || Py_TYPE(block) != block_type) {
            Py_XDECREF(block);
            Py_XDECREF(offset);
            goto refused; /* Python's way finds the words for want of memory */
        }
        PyTuple_SetItem(layout, 0, block);
        PyTuple_SetItem(layout, 1, offset);
        PyTuple_SetItem(layout, 2, Py_NewRef(PyTuple_GetItem(one, 1)));
        PyTuple_SetItem(layout, 3, Py_NewRef(PyTuple_GetItem(one, 5)));
        PyTuple_SetItem(layout, 4, Py_NewRef(PyTuple_GetItem(one, 2)));
    }
    for (int at = 0; at < known->arrays; at++) {
        int slot = known->array[at].slot, new = 0;
        PyObject *layout = slot < known->leaves ? PyList_GetItem(arrays, slot) : NULL;
        while (!layout && new < made) {
            if (PyLong_AsLong(PyTuple_GetItem(PyTuple_GetItem(known->new, new), 0)) == slot)
                layout = layouts[new];
            new++;
        }
        if (!layout)
            goto refused;
        PyObject *block = PyTuple_GetItem(layout, 0);
        char *first = PyLong_AsVoidPtr(SLOT(block, block_slots[0]));
        addresses[known->array[at].at] = first + PyLong_AsSsize_t(PyTuple_GetItem(layout, 1));
        memory[at] = SLOT(block, block_slots[1]);
    }
    is_done = submit_known(known, addresses, memory);
    for (int at = 0; is_done == 1 && at < made; at++)
        if (PyLong_AsLong(PyTuple_GetItem(PyTuple_GetItem(known->new, at), 0)) == known->output &&
            PART(node, LAYOUT) == Py_None)
            complete(node, layouts[at]);
refused:
    for (int at = 0; at < made; at++)
        Py_XDECREF(layouts[at]);
    if (is_done < 0 || (!is_done && !is_refusal()))
        return NULL;
    return PyBool_FromLong(is_done);
}

/* --- operators of one operand ----------------------------------------------------------------- */

static PyObject *negative(PyObject *x) { return unary(OF_NEGATIVE, x); }
static PyObject *positive(PyObject *x) { return unary(OF_POSITIVE, x); }
static PyObject *absolute(PyObject *x) { return unary(OF_ABSOLUTE, x); }
static PyObject *invert(PyObject *x) { return unary(OF_INVERT, x); }

/* Whether NumPy's BLAS may multiply so much: on as many cores as it likes only where the device is a
 * whole one. */
static int may_multiply(PyObject *queue, PyArrayObject *a, PyArrayObject *b, npy_intp columns)
{
    static PyObject *whole;
    if (PyArray_SIZE(a) <= one_core_products && PyArray_SIZE(b) <= one_core_products &&
        PyArray_SIZE(a) * columns <= one_core_products)
        return 1;
    if (queue == whole)
        return 1;
    PyObject *answer = PyObject_CallFunctionObjArgs(is_whole_device, queue, NULL);
    int is_so = answer ? PyObject_IsTrue(answer) : 0;
    Py_XDECREF(answer);
    if (is_so == 1)
        put_static(&whole, queue);
    else
        PyErr_Clear();
    return is_so == 1;
}

/* The product of small vectors or matrices. NULL without an exception: to be done another way. */
static PyObject *product(PyObject *x, PyObject *y)
{
    PyObject *a = seen_of(x), *b = seen_of(y);
    if (!a || !b)
        return NULL;
    int dimensions = PyArray_NDIM(AS_ARRAY(a)), others = PyArray_NDIM(AS_ARRAY(b));
    /* As many products as the one has elements, for each column of the other. */
    npy_intp columns = others == 2 ? PyArray_DIM(AS_ARRAY(b), 1) : 1;
    if (dimensions < 1 || dimensions > 2 || others < 1 || others > 2 ||
        SLOT(x, at_queue) != SLOT(y, at_queue) || SLOT(x, at_usm_type) != SLOT(y, at_usm_type) ||
        !may_multiply(SLOT(x, at_queue), AS_ARRAY(a), AS_ARRAY(b), columns) ||
        (dimensions == 2 ? PyArray_DIM(AS_ARRAY(a), 0) : 1) * columns > heap_elements ||
        !is_ready(x, 0) || !is_ready(y, 0))
        return NULL;
    PyObject *result;
    int type = PyArray_TYPE(AS_ARRAY(a));
    if (dimensions == 1 && others == 1 && (type == NPY_DOUBLE || type == NPY_FLOAT) &&
        PyArray_DESCR(AS_ARRAY(a)) == PyArray_DESCR(AS_ARRAY(b)) && !is_tracing) {
        if (!enter())
            return NULL;
        result = PyArray_MatrixProduct2(a, b, NULL);
        leave(result != NULL);
        if (!result)
            is_refusal();
    } else
        result = silently(x, numpy_matmul, a, b, NULL);
    return result ? make_of(x, result) : NULL;
}

static PyObject *matmul(PyObject *x, PyObject *y)
{
    PyObject *result = product(x, y);
    if (result || PyErr_Occurred())
        return result;
    if (Py_TYPE(x) != array_type)
        return general(slow_reflected_matmul, y, x, NULL);
    return general(slow_matmul, x, y, NULL);
}

static PyObject *small_product(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result = count == 2 ? product(args[0], args[1]) : NULL;
    if (result || PyErr_Occurred())
        return result;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "small_product takes two arrays");
        return NULL;
    }
    return general(slow_product, args[0], args[1], NULL);
}

/* np.float64(2) * x comes here. */
static PyObject *array_ufunc(PyObject *self, PyObject *args, PyObject *named)
{
    if (!named && PyTuple_Size(args) == 4 &&
        PyUnicode_Compare(PyTuple_GetItem(args, 1), call_method) == 0) {
        PyObject *number = PyDict_GetItem(ufuncs, PyTuple_GetItem(args, 0));
        PyObject *x = PyTuple_GetItem(args, 2), *y = PyTuple_GetItem(args, 3);
        if (number && (Py_TYPE(x) == array_type || is_scalar(x)) &&
            (Py_TYPE(y) == array_type || is_scalar(y)))
            return binary((int)PyLong_AsLong(number), x, y);
    }
    PyObject *all = PyTuple_New(PyTuple_Size(args) + 1);
    if (!all)
        return NULL;
    PyTuple_SetItem(all, 0, Py_NewRef(self));
    for (Py_ssize_t at = 0; at < PyTuple_Size(args); at++)
        PyTuple_SetItem(all, at + 1, Py_NewRef(PyTuple_GetItem(args, at)));
    PyObject *result = PyObject_Call(slow_ufunc, all, named);
    Py_DECREF(all);
    return result;
}

/* --- functions of NumPy's ------------------------------------------------------------------------ */

static int is_number_dtype(PyArrayObject *array)
{
    int type = PyArray_TYPE(array);
    return (type <= NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE || type == NPY_HALF) &&
           PyArray_ISNOTSWAPPED(array);
}

/* What the host sees of an array beside another, in the same place. */
static PyObject *seen_beside(PyObject *x, PyObject *like)
{
    PyObject *seen = seen_of(x);
    return seen && SLOT(x, at_queue) == SLOT(like, at_queue) &&
                   SLOT(x, at_usm_type) == SLOT(like, at_usm_type)
               ? seen
               : NULL;
}

/* Small arrays of a sequence as the host sees them, in a tuple; NULL without an exception where
 * they are to be looked at by Python. The first is stored. */
static PyObject *parts_seen(PyObject *arrays, PyObject **owner)
{
    int is_list = Py_TYPE(arrays) == &PyList_Type;
    if (!is_list && Py_TYPE(arrays) != &PyTuple_Type)
        return NULL;
    Py_ssize_t count = is_list ? PyList_Size(arrays) : PyTuple_Size(arrays);
    npy_intp most = most_elements, size = 0;
    if (count == 0 || count > MOST_JOINED)
        return NULL;
    PyObject *seen = PyTuple_New(count);
    for (Py_ssize_t at = 0; seen && at < count; at++) {
        PyObject *x = is_list ? PyList_GetItem(arrays, at) : PyTuple_GetItem(arrays, at);
        if (at == 0)
            *owner = x;
        PyObject *part = Py_TYPE(*owner) == array_type ? seen_beside(x, *owner) : NULL;
        if (part)
            size += PyArray_SIZE(AS_ARRAY(part));
        if (!part || size > most || PyTuple_SetItem(seen, at, Py_NewRef(part)) < 0)
            Py_CLEAR(seen);
    }
    return seen;
}

/* What NumPy is called with, by the rules of compute_small in Python; NULL without an exception
 * where that one is to decide. */
static PyObject *arguments_seen(PyObject *args, int joins, int broadcasts, PyObject **owner)
{
    Py_ssize_t count = PyTuple_Size(args);
    PyObject *first = count > 1 ? PyTuple_GetItem(args, 1) : NULL, *seen = NULL;
    if (!first)
        return NULL;
    if (joins)
        seen = parts_seen(first, owner);
    else if ((seen = seen_of(first))) {
        *owner = first;
        Py_INCREF(seen);
    }
    if (!seen)
        return NULL;
    npy_intp most = most_elements, size = joins ? 0 : PyArray_SIZE(AS_ARRAY(seen));
    PyArrayObject *widest = joins ? NULL : AS_ARRAY(seen);
    PyObject *made = size <= most && is_idle() ? PyTuple_New(count - 1) : NULL;
    if (!made || PyTuple_SetItem(made, 0, seen) < 0) {
        if (!made)
            Py_DECREF(seen);
        Py_XDECREF(made);
        return NULL;
    }
    for (Py_ssize_t at = 2; made && at < count; at++) {
        PyObject *arg = PyTuple_GetItem(args, at), *part = arg;
        if (Py_TYPE(arg) == array_type) {
            part = seen_beside(arg, *owner);
            if (part && broadcasts && PyArray_SIZE(AS_ARRAY(part)) != 1 &&
                !PyArray_SAMESHAPE(AS_ARRAY(part), widest)) {
                /* a result of more elements than either, perhaps */
                size *= PyArray_SIZE(AS_ARRAY(part));
                widest = AS_ARRAY(part);
            }
        } else if (PyArray_Check(arg) || PyArray_CheckScalar(arg))
            part = NULL;
        if (!part || (broadcasts && size > most) ||
            PyTuple_SetItem(made, at - 1, Py_NewRef(part)) < 0)
            Py_CLEAR(made);
    }
    return made;
}

static PyObject *compute_small(PyObject *module, PyObject *args, PyObject *named)
{
    PyObject *owner = NULL, *given = NULL, *joins = NULL, *broadcasts = NULL;
    if (named) {
        joins = PyDict_GetItem(named, joins_word);
        broadcasts = PyDict_GetItem(named, broadcasts_word);
    }
    if (!named || PyDict_Size(named) == (joins != NULL) + (broadcasts != NULL))
        given = arguments_seen(args, joins == Py_True, broadcasts == Py_True, &owner);
    if (given) {
        PyObject *values = call_numpy(owner, PyTuple_GetItem(args, 0), given);
        Py_CLEAR(given);
        if (values && Py_TYPE(values) != &PyArray_Type && PyArray_CheckScalar(values)) {
            PyObject *whole = PyArray_FromScalar(values, NULL);
            Py_DECREF(values);
            values = whole;
        }
        if (values && Py_TYPE(values) == &PyArray_Type && is_number_dtype(AS_ARRAY(values))) {
            if (!PyArray_BASE(AS_ARRAY(values)))
                return make(owner, values, NULL);
            PyObject *copy = PyArray_NewCopy(AS_ARRAY(values), NPY_CORDER);
            Py_DECREF(values);
            return copy ? make(owner, copy, NULL) : NULL;
        }
        Py_XDECREF(values);
    }
    if (!is_refusal())
        return NULL;
    return PyObject_Call(slow_compute_small, args, named);
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
    if (PyErr_Occurred() && !is_refusal())
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

/* --- the module ------------------------------------------------------------------------------- */

#define SLOTS(slot, name) \
    {Py_nb_##slot, name}, {Py_nb_inplace_##slot, name##_in_place}

/* What arrays inherit, and use where they have no method of Python's of that name. */
static PyType_Slot slots_of_base[] = {
    {Py_mp_subscript, getitem}, {Py_mp_ass_subscript, setitem},
    {Py_nb_matrix_multiply, matmul}, {Py_nb_float, as_float}, {Py_nb_int, as_int},
    {Py_nb_index, as_index}, {Py_nb_bool, as_bool}, {Py_tp_richcompare, compare},
    {Py_nb_negative, negative}, {Py_nb_positive, positive}, {Py_nb_absolute, absolute},
    {Py_nb_invert, invert}, {Py_nb_power, power},
    SLOTS(add, add), SLOTS(subtract, subtract), SLOTS(multiply, multiply),
    SLOTS(true_divide, divide), SLOTS(floor_divide, floor_divide), SLOTS(remainder, remainder_of),
    SLOTS(and, and_of), SLOTS(or, or_of), SLOTS(xor, xor_of), SLOTS(lshift, left_shift),
    SLOTS(rshift, right_shift),
    {0, NULL},
};

static PyType_Spec base_spec = {
    "dparray._array._short.Base", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots_of_base,
};

static PyMethodDef of_arrays[] = {
    {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc, METH_VARARGS | METH_KEYWORDS,
     NULL},
    {NULL, NULL, 0, NULL},
};

static Py_ssize_t size_of_instances(PyTypeObject *type)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
    Py_ssize_t size = found ? PyLong_AsSsize_t(found) : 0;
    Py_XDECREF(found);
    return size;
}

/* Where a slot lies: an object is looked for that was put there. */
static Py_ssize_t offset_of(PyTypeObject *type, const char *name)
{
    Py_ssize_t found = -1, size = size_of_instances(type);
    PyObject *sample = PyType_GenericAlloc(type, 0);
    PyObject *mark = PyList_New(0);
    if (sample && mark && PyObject_SetAttrString(sample, name, mark) == 0)
        for (Py_ssize_t at = 2 * sizeof(PyObject *); at + (Py_ssize_t)sizeof(PyObject *) <= size;
             at += sizeof(PyObject *))
            if (SLOT(sample, at) == mark)
                found = at;
    Py_XDECREF(sample);
    Py_XDECREF(mark);
    if (found < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "there is no slot %s", name);
    return found;
}

/* The same of an object whose slots have values of their own. */
static Py_ssize_t offset_in(PyObject *sample, const char *name)
{
    Py_ssize_t size = size_of_instances(Py_TYPE(sample)), found = -1;
    PyObject *mark = PyObject_GetAttrString(sample, name);
    for (Py_ssize_t at = 2 * sizeof(PyObject *); mark && at < size; at += sizeof(PyObject *))
        if (SLOT(sample, at) == mark)
            found = at;
    Py_XDECREF(mark);
    if (found < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "there is no slot %s", name);
    return found;
}

/* setup(named, operations, ufuncs): methods, by name. What is handed over lives for ever. */
static PyObject *setup(PyObject *module, PyObject *args)
{
    PyObject *named, *given;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyDict_Type, &named, &PyList_Type, &given, &PyDict_Type,
                          &ufuncs))
        return NULL;
    PyObject *type, *driver, *block;
    PyTypeObject *segment_type;
    struct { const char *name; PyObject **where; } parts[] = {
        {"ndarray", &type}, {"working", &working}, {"at_once", &at_once}, {"scalar_types", &scalar_types}, {"context", &context},
        {"traced_call", &traced_call},
        {"getitem", &slow_getitem}, {"setitem", &slow_setitem}, {"matmul", &slow_matmul},
        {"array_ufunc", &slow_ufunc}, {"float", &slow_float}, {"int", &slow_int},
        {"index", &slow_index}, {"bool", &slow_bool}, {"numpy_matmul", &numpy_matmul},
        {"shape", &slow_shape}, {"ndim", &slow_ndim}, {"size", &slow_size},
        {"dtype", &slow_dtype}, {"small_product", &slow_product},
        {"is_whole_device", &is_whole_device}, {"T", &slow_transposed},
        {"compute_small", &slow_compute_small},
        {"pow", &slow_power}, {"rpow", &slow_reflected_power}, {"rmatmul", &slow_reflected_matmul},
        {"numpy_square", &numpy_square}, {"square_weight", &square_weight},
        {"allocate", &allocate}, {"look", &look}, {"is_ready", &block_is_ready}, {"materialize", &materialize}, {"Node", (PyObject **)&node_type},
        {"Scalar", (PyObject **)&scalar_type}, {"Canonical", (PyObject **)&canonical_type},
        {"pending_order", &slow_order}, {"placement", &placement}, {"holds", &holds_open},
        {"options", &options}, {"operations", &graph_operations},
        {"square", &square}, {"Layout", (PyObject **)&layout_type},
        {"block", &block}, {"Segment", (PyObject **)&segment_type},
        {"in_order", &in_order}, {"order_of", &order_of}, {"others_work", &others_work}, {"note_recent", &note_recent},
        {"lock_order", &lock_order}, {"unlock_order", &unlock_order}, {"driver", &driver},
    };
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
        *parts[at].where = PyDict_GetItemString(named, parts[at].name);
        if (!*parts[at].where) {
            PyErr_SetString(PyExc_KeyError, parts[at].name);
            return NULL;
        }
    }
    PyObject *heap = PyDict_GetItemString(named, "heap_elements");
    PyObject *products = PyDict_GetItemString(named, "one_core_products");
    Py_ssize_t count = PyList_Size(given);
    if (!heap || !products || count < OPERATORS || count > MAX_OPERATIONS) {
        PyErr_SetString(PyExc_TypeError, "setup: limits, and all operations");
        return NULL;
    }
    heap_elements = PyLong_AsSsize_t(heap);
    one_core_products = PyLong_AsSsize_t(products);
    array_type = (PyTypeObject *)type;
    readers = PyUnicode_InternFromString("readers");
    host_bytes = PyUnicode_InternFromString("host_bytes");
    pointer_word = PyUnicode_InternFromString("pointer");
    node_word = PyUnicode_InternFromString("_node");
    memory_word = PyUnicode_InternFromString("memory");
    call_method = PyUnicode_InternFromString("__call__");
    joins_word = PyUnicode_InternFromString("joins");
    broadcasts_word = PyUnicode_InternFromString("broadcasts");
    struct { const char *name; PyObject **where; } words[] = {
        {"_is_met", &met_word}, {"count", &count_word}, {"_done_at", &done_word},
        {"_last", &last_word}, {"_launched_at", &launched_word}, {"_others_at", &others_word},
        {"before_launch", &before_launch_word},
        {"add_launch", &add_launch_word}, {"addressof_ref", &address_word},
    };
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if (!(*words[at].where = PyUnicode_InternFromString(words[at].name)))
            return NULL;
    if (!call_method)
        return NULL;
    struct { const char *name; Py_ssize_t *where; } slots[] = {
        {"_on_host", &at_seen}, {"_block", &at_block}, {"_packed", &at_packed},
        {"sycl_queue", &at_queue}, {"usm_type", &at_usm_type}, {"_node_kept", &at_node},
        {"_alias", &at_alias}, {"_shape", &at_shape}, {"_dtype", &at_dtype}, {"_size", &at_size},
    };
    for (size_t at = 0; at < sizeof slots / sizeof *slots; at++)
        if ((*slots[at].where = offset_of(array_type, slots[at].name)) < 0)
            return NULL;
    for (size_t at = 0; at < NODE_SLOTS; at++)
        if ((node_slots[at] = offset_of(node_type, node_slot_names[at])) < 0)
            return NULL;
    for (size_t at = 0; at < 4; at++)
        if ((canonical_slots[at] = offset_of(canonical_type, canonical_slot_names[at])) < 0)
            return NULL;
    const char *names_of_block[] = {"pointer", "segment", "readers"};
    for (size_t at = 0; at < 3; at++)
        if ((block_slots[at] = offset_in(block, names_of_block[at])) < 0)
            return NULL;
    block_type = Py_TYPE(block);
    const char *names_of_segment[] = {"used", "written"};
    for (size_t at = 0; at < 2; at++)
        if ((segment_slots[at] = offset_of(segment_type, names_of_segment[at])) < 0)
            return NULL;
    unsigned long long functions_of_driver[4];
    if (!PyArg_ParseTuple(driver, "KKKK", &functions_of_driver[0], &functions_of_driver[1],
                          &functions_of_driver[2], &functions_of_driver[3]))
        return NULL;
    memcpy(&submit_range, &functions_of_driver[0], sizeof(void *));
    memcpy(&submit_groups, &functions_of_driver[1], sizeof(void *));
    memcpy(&make_event, &functions_of_driver[2], sizeof(void *));
    memcpy(&delete_event, &functions_of_driver[3], sizeof(void *));
    for (Py_ssize_t at = 0; at < count; at++) {
        struct operation *op = &operations[at];
        if (!PyArg_ParseTuple(PyList_GetItem(given, at), "OOOOOs", &op->compute, &op->into,
                              &op->weight, &op->general, &op->general_in_place, &op->kept_types))
            return NULL;
    }
    PyObject *methods = PyDict_New();
    for (PyMethodDef *each = of_arrays; methods && each->ml_name; each++) {
        PyObject *method = PyDescr_NewMethod(array_type, each);
        if (!method || PyDict_SetItemString(methods, each->ml_name, method) < 0)
            Py_CLEAR(methods);
        Py_XDECREF(method);
    }
    if (methods) {
        Py_INCREF(named);
        Py_INCREF(given);
        Py_INCREF(ufuncs);
    }
    return methods;
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

static PyMethodDef functions[] = {
    {"philox_words", philox_words, METH_VARARGS, NULL},
    {"setup", setup, METH_VARARGS, NULL},
    {"small_product", (PyCFunction)(void (*)(void))small_product, METH_FASTCALL, NULL},
    {"follow", follow, METH_VARARGS, NULL},
    {"compute_small", (PyCFunction)(void (*)(void))compute_small, METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"view_small", view_small, METH_VARARGS, NULL},
    {"write_small", (PyCFunction)(void (*)(void))write_small, METH_FASTCALL, NULL},
    {"operation", operation_of, METH_O, NULL},
    {"operate_into", (PyCFunction)(void (*)(void))operate_into, METH_FASTCALL, NULL},
    {"shape", shape_of, METH_O, NULL},
    {"ndim", dimensions_of, METH_O, NULL},
    {"size", size_of, METH_O, NULL},
    {"dtype", dtype_of, METH_O, NULL},
    {"T", transposed, METH_O, NULL},
    {"pending_order", pending_order, METH_O, NULL},
    {"Canonical", canonical, METH_VARARGS, NULL},
    {"noted_fold", noted_fold, METH_VARARGS, NULL},
    {"known_launch", known_launch_of, METH_O, NULL},
    {"launch_known", (PyCFunction)(void (*)(void))launch_known, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_short", "The short way of small arrays, compiled.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__short(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition);
    PyObject *base = PyType_FromSpec(&base_spec);
    if (module && (!base || PyModule_AddStringConstant(module, "made_from", MADE_FROM) < 0 ||
                   PyModule_AddObjectRef(module, "Base", base) < 0))
        Py_CLEAR(module);
    Py_XDECREF(base);
    return module;
}
