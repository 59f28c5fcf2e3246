/* The fast path of small arrays: indexing, arithmetic and conversions that NumPy computes at the
 * call, and the nodes of the commonest lazy operations. It is the only implementation: everything
 * that a function here does not do, the general way does, a Python function that
 * `dparray/_functions/install_fastpath.py` hands over.
 *
 * One translation unit, in files by job, so that all of it is static and inlined:
 *
 *   _fastpath_index.c      x[index] and x[index] = value
 *   _fastpath_operators.c  elementwise operations, products
 *   _fastpath_functions.c  NumPy functions, conversions, attributes, random words
 *   _fastpath_nodes.c      nodes of lazy operations, keys of expressions
 *   _fastpath_launch.c     launches of known expressions
 *   _fastpath_pool.c       threads for parallel loops of native code
 *   _fastpath_threads.c    the same threads on POSIX systems and on Windows
 *
 * Python's stable interface from 3.10 on. The slots of arrays are read at their offsets; instances
 * of subclasses go the general way.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <math.h>
#include <string.h>

/* --- what is handed over ---------------------------------------------------------------------- */

static PyTypeObject *array_type;
static Py_ssize_t at_seen, at_block, at_packed, at_queue, at_usm_type;
static Py_ssize_t at_node, at_alias, at_shape, at_dtype, at_size, at_strides, at_offset;
static PyTypeObject *node_type, *scalar_type, *canonical_type, *layout_type, *block_type;
static PyObject *slow_order, *placement, *holds_open, *options, *graph_operations, *square;
static PyObject *working;       /* queues with work that may not be complete */
static int is_host_tier_on;     /* the option `host_tier`, as `follow` sets it */
static int is_tracing;          /* then NumPy is called by `traced_call`, which emits events */
static npy_intp most_folded;    /* the most elements that are reduced to one number immediately */
static npy_intp most_elements;  /* the largest addition that is computed immediately */
static PyObject *at_once;       /* up to how many elements, by an operation's cost */
static PyObject *scalar_types;  /* classes of scalars that stand beside arrays */
static PyObject *traced_call;   /* `host.call` */
static PyObject *context;       /* in it NumPy warns of nothing */
/* Of all Pythons since 3.7, but not of the stable interface, so that `setup` is passed their addresses. */
static int (*enter_context)(PyObject *context), (*exit_context)(PyObject *context);
static PyObject *ufuncs;        /* NumPy's ufuncs: the numbers of operations */
static PyObject *readers, *call_method, *host_bytes, *memory_word, *node_word, *pointer_word;
static PyObject *allocate; /* memory of the pool */
static PyObject *host_view, *materialize;
static PyObject *block_is_ready; /* of a block, and whether it is to be written */

static PyObject *slow_getitem, *slow_setitem, *slow_element, *slow_assign, *slow_matmul, *slow_ufunc;
static PyObject *slow_float, *slow_int, *slow_index, *slow_bool;
static PyObject *slow_shape, *slow_ndim, *slow_size, *slow_dtype, *slow_product;
static PyObject *joins_word, *broadcasts_word, *folds_word, *device_word;
static PyObject *usual_dtypes; /* of NumPy by how they are written */
static PyObject *usual_queue;  /* the default queue; None where the host makes no arrays */
static PyObject *is_whole_device, *slow_transposed;
static PyObject *slow_power, *slow_reflected_power, *slow_reflected_matmul;
static PyObject *numpy_matmul, *square_cost;

#define MAX_OPERATIONS 256
#define MAX_JOINED 64  /* more arrays are joined the general way */
#define MAX_BROADCAST 8 /* the same of arrays that broadcast together */
#define MAX_PARAMETERS 24
#define MAX_DIMENSIONS 32

/* The elementwise operations of the graph: first those of operators, in the order of their slots. */
static struct operation {
    PyObject *compute; /* of NumPy arrays and scalars */
    PyObject *into;    /* the same into an output, its last argument; None if there is none */
    PyObject *cost;
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

/* follow(host_tier, elements, folded_elements, is_tracing): the options as they are now. */
static PyObject *follow(PyObject *module, PyObject *args)
{
    Py_ssize_t count, folded;
    if (!PyArg_ParseTuple(args, "pnnp", &is_host_tier_on, &count, &folded, &is_tracing))
        return NULL;
    most_elements = count;
    most_folded = folded;
    Py_RETURN_NONE;
}

static npy_intp most_of(PyObject *cost)
{
    PyObject *found = PyDict_GetItem(at_once, cost);
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
static npy_intp effective_write_size(PyArrayObject *x)
{
    return effective_size(x, PyArray_SIZE(x));
}

/* The same of an operand: NumPy takes 2.5 times as long where elements are not contiguous. */
static npy_intp effective_read_size(PyArrayObject *x)
{
    int is_whole = PyArray_FLAGS(x) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    return is_whole ? effective_write_size(x) : 5 * effective_write_size(x) / 2;
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
static int is_fallback_error(void)
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
 * reference; NULL without an exception where the host may not read. */
static PyObject *view_to_index(PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (seen || Py_TYPE(x) != array_type || !SLOT(x, at_block) || SLOT(x, at_block) == Py_None)
        return seen ? Py_NewRef(seen) : NULL;
    PyObject *found = PyObject_CallFunctionObjArgs(host_view, x, NULL);
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

static void put(PyObject *x, Py_ssize_t offset, PyObject *value)
{
    PyObject *before = SLOT(x, offset);
    if (before != value) {
        SLOT(x, offset) = Py_XNewRef(value);
        Py_XDECREF(before);
    }
}

/* A new array in a place, of which neither values nor an expression are set: the constructor, as
 * `ndarray._new` in Python. */
static PyObject *new_array(PyObject *queue, PyObject *usm_type)
{
    PyObject *made = PyType_GenericAlloc(array_type, 0);
    if (!made)
        return NULL;
    SLOT(made, at_seen) = Py_NewRef(Py_None);
    SLOT(made, at_block) = Py_NewRef(Py_None);
    SLOT(made, at_packed) = Py_NewRef(Py_None);
    SLOT(made, at_alias) = Py_NewRef(Py_None);
    SLOT(made, at_queue) = Py_XNewRef(queue);
    SLOT(made, at_usm_type) = Py_XNewRef(usm_type);
    return made;
}

/* A buffer in the place of another array, of which the host sees `seen`; takes that reference. */
static PyObject *make(PyObject *like, PyObject *seen, PyObject *block)
{
    PyObject *made = new_array(SLOT(like, at_queue), SLOT(like, at_usm_type));
    if (made) {
        put(made, at_seen, seen);
        if (block)
            put(made, at_block, block);
        /* Nothing that an array refers to refers back, so the collector of cycles need not walk it:
         * that takes a list of arrays longer than to make them. */
        PyObject_GC_UnTrack(made);
    }
    Py_DECREF(seen);
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
    if (enter_context(context) == 0)
        return 1;
    PyErr_Clear(); /* another thread is in it */
    return 0;
}

static int leave(int is_right)
{
    PyObject *type, *value, *trace;
    if (is_right)
        return exit_context(context);
    PyErr_Fetch(&type, &value, &trace);
    exit_context(context);
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
        is_fallback_error();
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
        is_fallback_error();
    return result;
}

/* --- the jobs --------------------------------------------------------------------------------- */

static PyObject *lazy_operation(int at, PyObject *x, PyObject *y);
static PyObject *lazy_operation_as(PyObject *op, PyObject *cost_of_op, PyObject *x, PyObject *y);

#include "_fastpath_index.c"
#include "_fastpath_operators.c"
#include "_fastpath_functions.c"
#include "_fastpath_nodes.c"
#include "_fastpath_pool.c"
#include "_fastpath_launch.c"

/* --- the module ------------------------------------------------------------------------------- */

#define SLOTS(slot, name) \
    {Py_nb_##slot, name}, {Py_nb_inplace_##slot, name##_in_place}

#ifndef Py_bf_getbuffer /* part of the stable interface from 3.11 on; 3.10 takes the same number */
#define Py_bf_getbuffer 1
#endif

/* Buffers have no owner that could order the device's work, so that they are of copies. NumPy drops
 * this error, and asks for `__array__`. */
static int no_buffer(PyObject *Py_UNUSED(x), void *Py_UNUSED(view), int Py_UNUSED(flags))
{
    PyErr_SetString(PyExc_TypeError,
                    "the memory of a dparray array is not a buffer; copy it: x.asnumpy()");
    return -1;
}

/* What arrays inherit, and use where they have no method of Python's of that name. */
static PyType_Slot slots_of_base[] = {
    {Py_mp_subscript, getitem}, {Py_mp_ass_subscript, setitem},
    {Py_nb_matrix_multiply, matmul}, {Py_nb_float, as_float}, {Py_nb_int, as_int},
    {Py_nb_index, as_index}, {Py_nb_bool, as_bool}, {Py_tp_richcompare, compare},
    {Py_bf_getbuffer, no_buffer},
    {Py_nb_negative, negative}, {Py_nb_positive, positive}, {Py_nb_absolute, absolute},
    {Py_nb_invert, invert}, {Py_nb_power, power},
    SLOTS(add, add), SLOTS(subtract, subtract), SLOTS(multiply, multiply),
    SLOTS(true_divide, divide), SLOTS(floor_divide, floor_divide), SLOTS(remainder, remainder_of),
    SLOTS(and, and_of), SLOTS(or, or_of), SLOTS(xor, xor_of), SLOTS(lshift, left_shift),
    SLOTS(rshift, right_shift),
    {0, NULL},
};

static PyType_Spec base_spec = {
    "dparray._array._fastpath.Base", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots_of_base,
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
    PyObject *type, *block;
    PyTypeObject *segment_type;
    struct { const char *name; PyObject **where; } parts[] = {
        {"ndarray", &type}, {"working", &working}, {"at_once", &at_once}, {"scalar_types", &scalar_types}, {"context", &context},
        {"traced_call", &traced_call},
        {"getitem", &slow_getitem}, {"setitem", &slow_setitem},
        {"element", &slow_element}, {"assign", &slow_assign}, {"matmul", &slow_matmul},
        {"array_ufunc", &slow_ufunc}, {"float", &slow_float}, {"int", &slow_int},
        {"index", &slow_index}, {"bool", &slow_bool}, {"numpy_matmul", &numpy_matmul},
        {"shape", &slow_shape}, {"ndim", &slow_ndim}, {"size", &slow_size},
        {"dtype", &slow_dtype}, {"small_product", &slow_product},
        {"is_whole_device", &is_whole_device}, {"T", &slow_transposed},
        {"pow", &slow_power}, {"rpow", &slow_reflected_power}, {"rmatmul", &slow_reflected_matmul},
        {"square_cost", &square_cost},
        {"allocate", &allocate}, {"host_view", &host_view}, {"is_ready", &block_is_ready}, {"materialize", &materialize}, {"Node", (PyObject **)&node_type},
        {"Scalar", (PyObject **)&scalar_type}, {"Canonical", (PyObject **)&canonical_type},
        {"pending_order", &slow_order}, {"placement", &placement}, {"holds", &holds_open},
        {"options", &options}, {"operations", &graph_operations},
        {"square", &square}, {"Layout", (PyObject **)&layout_type},
        {"block", &block}, {"Segment", (PyObject **)&segment_type},
        {"others_work", &others_work}, {"note_recent", &note_recent},
        {"usual_dtypes", &usual_dtypes}, {"usual_queue", &usual_queue},
        {"lock_order", &lock_order}, {"unlock_order", &unlock_order},
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
    PyObject *enters = PyDict_GetItemString(named, "enter_context");
    PyObject *exits = PyDict_GetItemString(named, "exit_context");
    if (!heap || !products || !enters || !exits || count < OPERATORS || count > MAX_OPERATIONS) {
        PyErr_SetString(PyExc_TypeError, "setup: limits, and all operations");
        return NULL;
    }
    heap_elements = PyLong_AsSsize_t(heap);
    one_core_products = PyLong_AsSsize_t(products);
    enter_context = (int (*)(PyObject *))PyLong_AsVoidPtr(enters);
    exit_context = (int (*)(PyObject *))PyLong_AsVoidPtr(exits);
    array_type = (PyTypeObject *)type;
    readers = PyUnicode_InternFromString("readers");
    host_bytes = PyUnicode_InternFromString("host_bytes");
    pointer_word = PyUnicode_InternFromString("pointer");
    node_word = PyUnicode_InternFromString("_node");
    memory_word = PyUnicode_InternFromString("memory");
    call_method = PyUnicode_InternFromString("__call__");
    joins_word = PyUnicode_InternFromString("joins");
    broadcasts_word = PyUnicode_InternFromString("broadcasts");
    folds_word = PyUnicode_InternFromString("folds");
    device_word = PyUnicode_InternFromString("device");
    struct { const char *name; PyObject **where; } words[] = {
        {"_has_in_order_queue", &in_order_word}, {"count", &count_word}, {"_done_at", &done_word},
        {"_last", &last_word}, {"_launched_at", &launched_word}, {"_others_at", &others_word},
        {"before_launch", &before_launch_word},
        {"add_launch", &add_launch_word}, {"addressof_ref", &address_word}, {"queue", &queue_word}, {"record", &record_word},
        {"lock", &lock_word}, {"acquire", &acquire_word}, {"release", &release_word},
        {"submitted", &submitted_word}, {"done", &complete_word}, {"number", &number_word},
        {"_refuse", &refuse_word},
    };
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if (!(*words[at].where = PyUnicode_InternFromString(words[at].name)))
            return NULL;
    if (!call_method)
        return NULL;
    struct { const char *name; Py_ssize_t *where; } slots[] = {
        {"_host_view", &at_seen}, {"_block", &at_block}, {"_packed", &at_packed},
        {"queue", &at_queue}, {"usm_type", &at_usm_type}, {"_node_kept", &at_node},
        {"_alias", &at_alias}, {"_shape", &at_shape}, {"_dtype", &at_dtype}, {"_size", &at_size},
        {"_strides", &at_strides}, {"_offset", &at_offset},
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
    for (Py_ssize_t at = 0; at < count; at++) {
        struct operation *op = &operations[at];
        if (!PyArg_ParseTuple(PyList_GetItem(given, at), "OOOOOs", &op->compute, &op->into,
                              &op->cost, &op->general, &op->general_in_place, &op->kept_types))
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

static PyMethodDef functions[] = {
    {"philox_words", philox_words, METH_VARARGS, NULL},
    {"setup", setup, METH_VARARGS, NULL},
    {"take_driver", take_driver, METH_VARARGS, NULL},
    {"small_product", (PyCFunction)(void (*)(void))small_product, METH_FASTCALL, NULL},
    {"follow", follow, METH_VARARGS, NULL},
    {"compute_small", (PyCFunction)(void (*)(void))compute_small, METH_FASTCALL | METH_KEYWORDS,
     NULL},
    {"small_function", small_function, METH_VARARGS, NULL},
    {"call_small", (PyCFunction)(void (*)(void))call_small, METH_FASTCALL, NULL},
    {"view_small", (PyCFunction)(void (*)(void))view_small, METH_FASTCALL, NULL},
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
    {"lazy_fold", lazy_fold, METH_VARARGS, NULL},
    {"known_launch", known_launch_of, METH_O, NULL},
    {"launch_known", (PyCFunction)(void (*)(void))launch_known, METH_FASTCALL, NULL},
    {"launch_packed", launch_packed, METH_VARARGS, NULL},
    {"call_function", (PyCFunction)(void (*)(void))call_function, METH_FASTCALL, NULL},
    {"copy_rows", copy_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_fastpath", "The fast path of small arrays.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__fastpath(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition);
    PyObject *base = PyType_FromSpec(&base_spec);
    PyObject *parts = PyLong_FromVoidPtr((void *)(size_t)share_parts);
    PyObject *units = PyLong_FromVoidPtr((void *)(size_t)share_units);
    PyObject *stack = PyLong_FromVoidPtr((void *)(size_t)has_stack);
    PyObject *launch = PyLong_FromVoidPtr((void *)(size_t)launch_kernel);
    PyObject *stop = PyLong_FromVoidPtr((void *)(size_t)note_stop);
    PyObject *memory = PyLong_FromVoidPtr((void *)(size_t)new_memory);
    if (!call_in_forks(forget_threads))
        PyErr_NoMemory();
    if (module && (!base || PyErr_Occurred() || PyModule_AddObjectRef(module, "share_parts", parts) < 0 ||
                   PyModule_AddObjectRef(module, "share_units", units) < 0 ||
                   PyModule_AddObjectRef(module, "has_stack", stack) < 0 ||
                   PyModule_AddObjectRef(module, "new_memory", memory) < 0 ||
                   PyModule_AddObjectRef(module, "note_stop", stop) < 0 ||
                   PyModule_AddObjectRef(module, "launch_kernel", launch) < 0 ||
                   PyModule_AddStringConstant(module, "made_from", MADE_FROM) < 0 ||
                   PyModule_AddObjectRef(module, "Base", base) < 0))
        Py_CLEAR(module);
    Py_XDECREF(base);
    Py_XDECREF(parts);
    Py_XDECREF(units);
    Py_XDECREF(stack);
    Py_XDECREF(memory);
    Py_XDECREF(stop);
    Py_XDECREF(launch);
    return module;
}
