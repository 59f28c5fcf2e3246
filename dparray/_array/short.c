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
static Py_ssize_t at_seen, at_block, at_packed, at_queue, at_usm_type, array_bytes;
static PyObject *working;       /* queues with work that may not be complete */
static PyObject *config_values; /* the options; one is read here */
static PyObject *at_once;       /* up to how many elements, by an operation's weight */
static PyObject *scalar_types;  /* classes of scalars that stand beside arrays */
static PyObject *context;       /* in it NumPy warns of nothing */
static PyObject *ufuncs;        /* NumPy's ufuncs: the numbers of operations */
static PyObject *host_tier, *readers, *one, *call_method;

static PyObject *slow_getitem, *slow_setitem, *slow_matmul, *slow_ufunc;
static PyObject *slow_float, *slow_int, *slow_index, *slow_bool;
static PyObject *slow_shape, *slow_ndim, *slow_size, *slow_dtype, *slow_product;
static PyObject *numpy_matmul;

#define MOST_OPERATIONS 24
typedef PyObject *(*binary_function)(PyObject *, PyObject *);
static struct {
    PyObject *compute;          /* of NumPy's arrays and scalars */
    PyObject *slow, *slow_in_place;
    PyObject *compute_in_place; /* None where there is none */
    PyObject *weight;
    int of_numbers;             /* which operator of Python's does the same of two numbers */
} operations[MOST_OPERATIONS];

static npy_intp heap_elements, one_core_products;
static PyObject *slow_iter;
static PyTypeObject *parts_type;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
#define AS_ARRAY(object) ((PyArrayObject *)(object))

/* --- small questions -------------------------------------------------------------------------- */

static int is_idle(void)
{
    return PyDict_Size(working) == 0 && PyDict_GetItem(config_values, host_tier) == Py_True;
}

static npy_intp most_of(PyObject *weight)
{
    PyObject *found = PyDict_GetItem(at_once, weight);
    return found ? (npy_intp)PyLong_AsSsize_t(found) : 0;
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

static int is_free_to_write(PyObject *x)
{
    if (!is_idle())
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

/* What another way finds the right words for; an interrupt, say, goes on. */
static int is_refusal(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return 0;
    PyErr_Clear();
    return 1;
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
    SLOT(made, at_queue) = Py_NewRef(SLOT(like, at_queue));
    SLOT(made, at_usm_type) = Py_NewRef(SLOT(like, at_usm_type));
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

/* A function of NumPy's, without warnings. NULL without an exception: to be done another way. */
static PyObject *silently(PyObject *function, PyObject *a, PyObject *b, PyObject *out)
{
    if (!enter())
        return NULL;
    PyObject *result = PyObject_CallFunctionObjArgs(function, a, b, out, NULL);
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
        if (PyArray_NDIM(array) || !PyArray_ISINTEGER(array) || !is_idle())
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

/* An array without dimensions with one element of those dtypes that are copied byte by byte. */
static PyObject *copy_of_element(PyArrayObject *like, const char *at)
{
    PyArray_Descr *dtype = PyArray_DESCR(like);
    Py_INCREF(dtype);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    if (made)
        memcpy(PyArray_DATA(AS_ARRAY(made)), at, PyArray_ITEMSIZE(like));
    return made;
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

/* Whether an array holds few positions or a mask, on the queue of another. */
static PyObject *chosen_of(PyObject *self, PyObject *seen, PyObject *index)
{
    PyObject *chosen = seen_of(index);
    if (!chosen || SLOT(index, at_queue) != SLOT(self, at_queue) ||
        SLOT(index, at_usm_type) != SLOT(self, at_usm_type) || !PyArray_NDIM(AS_ARRAY(chosen)))
        return NULL;
    npy_intp most = most_of(one), size = PyArray_SIZE(AS_ARRAY(chosen));
    int is_mask = PyArray_ISBOOL(AS_ARRAY(chosen));
    if (!is_mask && !PyArray_ISINTEGER(AS_ARRAY(chosen)))
        return NULL;
    if (!is_mask) /* rows */
        for (int axis = 1; axis < PyArray_NDIM(AS_ARRAY(seen)); axis++)
            size *= PyArray_DIM(AS_ARRAY(seen), axis);
    if (size > most || (is_mask && PyArray_SIZE(AS_ARRAY(seen)) > most) || !is_idle())
        return NULL;
    return chosen;
}

static PyObject *getitem(PyObject *self, PyObject *index)
{
    PyObject *seen = seen_of(self), *plain, *found;
    if (!seen)
        goto slow;
    if (Py_TYPE(index) == array_type && PyArray_NDIM(AS_ARRAY(seen))) {
        PyObject *chosen = chosen_of(self, seen, index);
        if (chosen) {
            found = PyObject_GetItem(seen, chosen);
            if (found && Py_TYPE(found) == &PyArray_Type && !PyArray_BASE(AS_ARRAY(found)))
                return make(self, found, NULL);
            Py_XDECREF(found);
            if (!is_refusal())
                return NULL;
            goto slow;
        }
    }
    char *element = element_at(AS_ARRAY(seen), index);
    if (element) {
        if (!is_idle())
            goto slow;
        found = copy_of_element(AS_ARRAY(seen), element);
        return found ? make(self, found, NULL) : NULL;
    }
    plain = plain_of(index);
    if (!plain) {
        if (!is_refusal())
            return NULL;
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
        PyObject *base = PyArray_BASE(AS_ARRAY(seen));
        if (!PyArray_SIZE(AS_ARRAY(found))) { /* what has no elements shares no memory */
            PyObject *empty = PyArray_NewCopy(AS_ARRAY(found), NPY_CORDER);
            Py_DECREF(found);
            return empty ? make(self, empty, NULL) : NULL;
        }
        if (base && PyArray_BASE(AS_ARRAY(found)) == base)
            return make(self, found, SLOT(self, at_block));
    } else if (is_idle()) /* integers select a scalar, which is a copy */
        return make_of(self, found);
    Py_DECREF(found);
slow:
    return PyObject_CallFunctionObjArgs(slow_getitem, self, index, NULL);
}

/* --- the parts of an array, one after another ------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *whole, *seen;
    PyObject *last, *before; /* the elements that were given out last, or NULL */
    Py_ssize_t done, count;
} parts_object;

static PyObject *parts_of(PyObject *self, PyObject *unused)
{
    PyObject *seen = seen_of(self);
    /* What is pending is computed by the Python function, and rows share memory, if there is. */
    if (!seen || PyArray_NDIM(AS_ARRAY(seen)) == 0 || PyArray_SIZE(AS_ARRAY(seen)) == 0 ||
        (PyArray_NDIM(AS_ARRAY(seen)) > 1 && !PyArray_BASE(AS_ARRAY(seen))))
        return PyObject_CallFunctionObjArgs(slow_iter, self, NULL);
    parts_object *parts = PyObject_New(parts_object, parts_type);
    if (!parts)
        return NULL;
    parts->whole = Py_NewRef(self);
    parts->seen = Py_NewRef(seen);
    parts->last = parts->before = NULL;
    parts->done = 0;
    parts->count = PyArray_DIM(AS_ARRAY(seen), 0);
    return (PyObject *)parts;
}

static void free_parts(parts_object *parts)
{
    PyTypeObject *type = Py_TYPE(parts);
    Py_DECREF(parts->whole);
    Py_DECREF(parts->seen);
    Py_XDECREF(parts->last);
    Py_XDECREF(parts->before);
    PyObject_Free(parts);
    Py_DECREF(type);
}

/* Whether an element is as `make` made it, and nobody but the iterator has it. */
static int is_spare(PyObject *element, PyArrayObject *seen)
{
    if (!element || Py_REFCNT(element) != 1)
        return 0;
    int filled = 0;
    for (Py_ssize_t at = sizeof(PyObject); at < array_bytes; at += sizeof(PyObject *))
        filled += SLOT(element, at) != NULL; /* with what weak references need */
    PyObject *number = SLOT(element, at_seen);
    return filled == 5 && Py_TYPE(number) == &PyArray_Type && Py_REFCNT(number) == 1 &&
           !PyArray_BASE(AS_ARRAY(number)) && SLOT(element, at_block) == Py_None && SLOT(element, at_packed) == Py_None &&
           PyArray_DESCR(AS_ARRAY(number)) == PyArray_DESCR(seen);
}

/* A copy of an element. A loop that lets them go has two, in turns: to make one is half its time. */
static PyObject *next_element(parts_object *parts, const char *first)
{
    PyArrayObject *seen = AS_ARRAY(parts->seen);
    PyObject *element = parts->before;
    if (is_spare(element, seen)) {
        memcpy(PyArray_DATA(AS_ARRAY(SLOT(element, at_seen))), first, PyArray_ITEMSIZE(seen));
    } else {
        PyArray_Descr *dtype = PyArray_DESCR(seen);
        Py_INCREF(dtype);
        PyObject *number = PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
        if (!number)
            return NULL;
        memcpy(PyArray_DATA(AS_ARRAY(number)), first, PyArray_ITEMSIZE(seen));
        PyObject *made = make(parts->whole, number, NULL);
        if (!made)
            return NULL;
        Py_XDECREF(element);
        element = made;
    }
    parts->before = parts->last;
    parts->last = element;
    return Py_NewRef(element);
}

static PyObject *next_part(parts_object *parts)
{
    if (parts->done >= parts->count)
        return NULL;
    Py_ssize_t at = parts->done++;
    PyObject *whole = parts->whole;
    PyArrayObject *seen = AS_ARRAY(parts->seen);
    /* What the loop did meanwhile may have put values elsewhere, or still compute them. */
    if (SLOT(whole, at_seen) != parts->seen || !is_idle()) {
        PyObject *position = PyLong_FromSsize_t(at);
        if (!position)
            return NULL;
        PyObject *part = PyObject_CallFunctionObjArgs(slow_getitem, whole, position, NULL);
        Py_DECREF(position);
        return part;
    }
    char *first = PyArray_BYTES(seen) + at * PyArray_STRIDE(seen, 0);
    int dimensions = PyArray_NDIM(seen) - 1;
    if (!dimensions)
        return next_element(parts, first);
    PyArray_Descr *dtype = PyArray_DESCR(seen);
    Py_INCREF(dtype);
    PyObject *row = PyArray_NewFromDescr(&PyArray_Type, dtype, dimensions, PyArray_DIMS(seen) + 1,
                                         PyArray_STRIDES(seen) + 1, first,
                                         PyArray_FLAGS(seen) & NPY_ARRAY_WRITEABLE, NULL);
    if (!row)
        return NULL;
    if (PyArray_SetBaseObject(AS_ARRAY(row), Py_NewRef(PyArray_BASE(seen))) < 0) {
        Py_DECREF(row);
        return NULL;
    }
    return make(whole, row, SLOT(whole, at_block));
}

static PyType_Slot slots_of_parts[] = {
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next_part},
    {Py_tp_dealloc, free_parts},
    {0, NULL},
};

static PyType_Spec parts_spec = {
    "dparray.parts", sizeof(parts_object), 0, Py_TPFLAGS_DEFAULT, slots_of_parts,
};

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

/* Write to a part of what the host sees: 1 if it is done, 0 if not, -1 with an exception. */
static int write_part(PyObject *self, PyObject *seen, PyObject *index, PyObject *value)
{
    PyArrayObject *target = AS_ARRAY(seen);
    npy_intp most = most_of(one);
    for (int axis = 0; axis < PyArray_NDIM(target); axis++)
        if (PyArray_STRIDE(target, axis) == 0) /* elements that share memory are not written */
            return 0;
    int is_number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
    PyObject *source = is_number ? NULL : seen_of(value);
    char *element = element_at(target, index);
    if (is_number) {
        int is_double = PyArray_TYPE(target) == NPY_DOUBLE;
        if (!is_double && !(PyLong_CheckExact(value) && PyArray_ISINTEGER(target)))
            return 0;
        if (!element && PyArray_SIZE(target) > most)
            return 0;
        if (!is_free_to_write(self))
            return is_refusal() ? 0 : -1;
        if (element && is_double && PyFloat_CheckExact(value)) {
            *(double *)element = PyFloat_AsDouble(value);
            return 1;
        }
        if (PyObject_SetItem(seen, index, value) == 0)
            return 1;
        return is_refusal() ? 0 : -1;
    }
    if (!source || SLOT(value, at_queue) != SLOT(self, at_queue) ||
        PyArray_DESCR(AS_ARRAY(source)) != PyArray_DESCR(target) ||
        PyArray_SIZE(AS_ARRAY(source)) == 0)
        return 0;
    if (!is_free_to_write(self))
        return is_refusal() ? 0 : -1;
    if (element) {
        if (PyArray_SIZE(AS_ARRAY(source)) != 1 || PyArray_NDIM(AS_ARRAY(source)))
            return 0;
        memmove(element, PyArray_DATA(AS_ARRAY(source)), PyArray_ITEMSIZE(target));
        return 1;
    }
    PyObject *part = PyObject_GetItem(seen, index);
    if (!part)
        return is_refusal() ? 0 : -1;
    int done = 0;
    if (Py_TYPE(part) != &PyArray_Type) /* one element, of another array or of this */
        done = PyArray_NDIM(AS_ARRAY(source)) == 0 ? PyObject_SetItem(seen, index, source) + 1 : 0;
    else if (PyArray_SIZE(AS_ARRAY(part)) == 0 || PyArray_SIZE(AS_ARRAY(part)) > most)
        done = 0;
    else if (lie_apart(AS_ARRAY(part), AS_ARRAY(source)))
        done = PyArray_CopyInto(AS_ARRAY(part), AS_ARRAY(source)) + 1;
    else
        done = lie_alike(AS_ARRAY(part), AS_ARRAY(source)); /* as after x[1:] += 1 */
    Py_DECREF(part);
    if (!done && PyErr_Occurred() && !is_refusal())
        return -1;
    return done;
}

/* Write to elements that a mask or positions select, as write_part. */
static int write_chosen(PyObject *self, PyObject *seen, PyObject *index, PyObject *value)
{
    PyArrayObject *target = AS_ARRAY(seen);
    PyObject *chosen = chosen_of(self, seen, index), *source = value;
    if (!chosen || PyArray_SIZE(target) > most_of(one) ||
        !lie_apart(target, AS_ARRAY(chosen)) || PyArray_SIZE(AS_ARRAY(chosen)) == 0)
        return 0;
    for (int axis = 0; axis < PyArray_NDIM(target); axis++)
        if (PyArray_STRIDE(target, axis) == 0)
            return 0;
    if (Py_TYPE(value) == array_type) {
        source = seen_of(value);
        if (!source || SLOT(value, at_queue) != SLOT(self, at_queue) ||
            PyArray_DESCR(AS_ARRAY(source)) != PyArray_DESCR(target) ||
            PyArray_SIZE(AS_ARRAY(source)) == 0 || !lie_apart(target, AS_ARRAY(source)))
            return 0;
    } else if (!(PyFloat_CheckExact(value) && PyArray_TYPE(target) == NPY_DOUBLE) &&
               !(PyLong_CheckExact(value) &&
                 (PyArray_TYPE(target) == NPY_DOUBLE || PyArray_ISINTEGER(target))))
        return 0;
    if (!is_free_to_write(self))
        return is_refusal() ? 0 : -1;
    if (PyObject_SetItem(seen, chosen, source) == 0)
        return 1;
    return is_refusal() ? 0 : -1;
}

static PyObject *setitem(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *seen = count == 2 ? seen_of(self) : NULL;
    if (seen) {
        int done = 0;
        PyObject *plain = NULL;
        if (Py_TYPE(args[0]) == array_type && PyArray_NDIM(AS_ARRAY(seen)))
            done = write_chosen(self, seen, args[0], args[1]);
        if (!done && (plain = plain_of(args[0])))
            done = write_part(self, seen, plain, args[1]);
        Py_XDECREF(plain);
        if (done < 0 || (!done && PyErr_Occurred() && !is_refusal()))
            return NULL;
        if (done)
            Py_RETURN_NONE;
    }
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "__setitem__ takes an index and a value");
        return NULL;
    }
    return PyObject_CallFunctionObjArgs(slow_setitem, self, args[0], args[1], NULL);
}

/* --- operators -------------------------------------------------------------------------------- */

enum { NO_NUMBERS, ADD, SUBTRACT, MULTIPLY, DIVIDE, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL,
       EQUAL, NOT_EQUAL, AND, OR, XOR };

/* Numbers of NumPy's are computed by their own operators, in a fifth of a ufunc's time. */
static PyObject *of_numbers(int which, PyObject *a, PyObject *b)
{
    switch (which) {
    case ADD: return PyNumber_Add(a, b);
    case SUBTRACT: return PyNumber_Subtract(a, b);
    case MULTIPLY: return PyNumber_Multiply(a, b);
    case DIVIDE: return PyNumber_TrueDivide(a, b);
    case LESS: return PyObject_RichCompare(a, b, Py_LT);
    case LESS_EQUAL: return PyObject_RichCompare(a, b, Py_LE);
    case GREATER: return PyObject_RichCompare(a, b, Py_GT);
    case GREATER_EQUAL: return PyObject_RichCompare(a, b, Py_GE);
    case EQUAL: return PyObject_RichCompare(a, b, Py_EQ);
    case AND: return PyNumber_And(a, b);
    case OR: return PyNumber_Or(a, b);
    case XOR: return PyNumber_Xor(a, b);
    default: return PyObject_RichCompare(a, b, Py_NE);
    }
}

/* The value of a float64 without dimensions, or of a Python number beside one. */
static int is_double(PyObject *x, double *value)
{
    if (PyFloat_CheckExact(x)) {
        *value = PyFloat_AsDouble(x);
        return 1;
    }
    if (PyLong_CheckExact(x)) {
        int is_too_large;
        long long whole = PyLong_AsLongLongAndOverflow(x, &is_too_large);
        *value = (double)whole;
        return !is_too_large && -(1LL << 53) < whole && whole < 1LL << 53;
    }
    if (Py_TYPE(x) != &PyArray_Type)
        return 0;
    PyArrayObject *array = AS_ARRAY(x);
    if (PyArray_NDIM(array) || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISNOTSWAPPED(array))
        return 0;
    *value = *(double *)PyArray_DATA(array);
    return 1;
}

static PyObject *whole_of(int dtype, const void *value, size_t nbytes)
{
    PyObject *made = PyArray_SimpleNew(0, NULL, dtype);
    if (made)
        memcpy(PyArray_DATA(AS_ARRAY(made)), value, nbytes);
    return made;
}

/* An operation on two numbers in double precision, as the processor has it and NumPy does. */
static int compute_doubles(int which, double a, double b, double *number, npy_bool *is_so)
{
    switch (which) {
    case ADD: *number = a + b; return NPY_DOUBLE;
    case SUBTRACT: *number = a - b; return NPY_DOUBLE;
    case MULTIPLY: *number = a * b; return NPY_DOUBLE;
    case DIVIDE: *number = a / b; return NPY_DOUBLE;
    case LESS: *is_so = a < b; return NPY_BOOL;
    case LESS_EQUAL: *is_so = a <= b; return NPY_BOOL;
    case GREATER: *is_so = a > b; return NPY_BOOL;
    case GREATER_EQUAL: *is_so = a >= b; return NPY_BOOL;
    case EQUAL: *is_so = a == b; return NPY_BOOL;
    case NOT_EQUAL: *is_so = a != b; return NPY_BOOL;
    default: return NPY_NOTYPE;
    }
}

/* A number of NumPy's that an array without dimensions holds, or a Python number. */
static PyObject *number_of(PyObject *x)
{
    if (Py_TYPE(x) != &PyArray_Type)
        return PyFloat_CheckExact(x) || PyLong_CheckExact(x) ? Py_NewRef(x) : NULL;
    PyArrayObject *array = AS_ARRAY(x);
    if (PyArray_NDIM(array) || PyArray_ISBOOL(array))
        return NULL;
    return PyArray_ToScalar(PyArray_DATA(array), array);
}

static PyObject *compute_numbers(int which, PyObject *a, PyObject *b)
{
    double left, right, number;
    npy_bool is_so;
    if (is_double(a, &left) && is_double(b, &right))
        switch (compute_doubles(which, left, right, &number, &is_so)) {
        case NPY_DOUBLE: return whole_of(NPY_DOUBLE, &number, sizeof number);
        case NPY_BOOL: return whole_of(NPY_BOOL, &is_so, sizeof is_so);
        }
    PyObject *first = number_of(a);
    PyObject *second = first ? number_of(b) : NULL;
    PyObject *result = NULL;
    if (second && enter()) {
        result = of_numbers(which, first, second);
        leave(result != NULL);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return result;
}

static PyObject *binary(int number, PyObject *x, PyObject *y)
{
    PyObject *owner = Py_TYPE(x) == array_type ? x : y;
    PyObject *a = seen_of(x), *b = seen_of(y);
    npy_intp most = most_of(operations[number].weight), size = 0;
    if (most > heap_elements) /* larger results lie in the pool's memory */
        most = heap_elements;
    if (a && b) {
        if (SLOT(x, at_queue) != SLOT(y, at_queue) || SLOT(x, at_usm_type) != SLOT(y, at_usm_type))
            goto slow;
        npy_intp second = PyArray_SIZE(AS_ARRAY(b));
        size = PyArray_SIZE(AS_ARRAY(a));
        if (size > most || second > most ||
            (size * second > most && !PyArray_SAMESHAPE(AS_ARRAY(a), AS_ARRAY(b))))
            goto slow;
    } else if (a && Py_TYPE(y) != array_type && is_scalar(y)) {
        b = y;
        size = PyArray_SIZE(AS_ARRAY(a));
    } else if (b && Py_TYPE(x) != array_type && is_scalar(x)) {
        a = x;
        size = PyArray_SIZE(AS_ARRAY(b));
    } else
        goto slow;
    if (size > most || !is_idle())
        goto slow;
    PyObject *result = NULL;
    if (size == 1 && operations[number].of_numbers)
        result = compute_numbers(operations[number].of_numbers, a, b);
    if (!result) {
        if (!is_refusal())
            return NULL;
        result = silently(operations[number].compute, a, b, NULL);
    }
    if (result)
        return make_of(owner, result);
    if (PyErr_Occurred())
        return NULL;
slow:
    return PyObject_CallFunctionObjArgs(operations[number].slow, x, y, NULL);
}

static PyObject *in_place(int number, PyObject *x, PyObject *y)
{
    PyObject *target = seen_of(x), *operand = NULL;
    if (!target || operations[number].compute_in_place == Py_None ||
        PyArray_SIZE(AS_ARRAY(target)) > most_of(operations[number].weight))
        goto slow;
    if (Py_TYPE(y) == array_type) {
        if (SLOT(x, at_queue) == SLOT(y, at_queue))
            operand = seen_of(y);
    } else if (is_scalar(y))
        operand = y;
    if (!operand)
        goto slow;
    if (!is_free_to_write(x)) {
        if (!is_refusal())
            return NULL;
        goto slow;
    }
    double left, right, value;
    npy_bool is_so;
    if (PyArray_SIZE(AS_ARRAY(target)) == 1 && Py_TYPE(target) == &PyArray_Type &&
        PyArray_NDIM(AS_ARRAY(target)) == 0 && PyArray_TYPE(AS_ARRAY(target)) == NPY_DOUBLE &&
        is_double(target, &left) && is_double(operand, &right) &&
        compute_doubles(operations[number].of_numbers, left, right, &value, &is_so) == NPY_DOUBLE) {
        *(double *)PyArray_DATA(AS_ARRAY(target)) = value;
        return Py_NewRef(x);
    }
    PyObject *result = silently(operations[number].compute_in_place, target, operand, target);
    if (result) {
        Py_DECREF(result);
        return Py_NewRef(x);
    }
    if (PyErr_Occurred())
        return NULL;
slow:
    return PyObject_CallFunctionObjArgs(operations[number].slow_in_place, x, y, NULL);
}

#define OPERATION(n)                                                                    \
    static PyObject *left_##n(PyObject *x, PyObject *y) { return binary(n, x, y); }     \
    static PyObject *right_##n(PyObject *x, PyObject *y) { return binary(n, y, x); }    \
    static PyObject *in_place_##n(PyObject *x, PyObject *y) { return in_place(n, x, y); }
OPERATION(0) OPERATION(1) OPERATION(2) OPERATION(3) OPERATION(4) OPERATION(5) OPERATION(6)
OPERATION(7) OPERATION(8) OPERATION(9) OPERATION(10) OPERATION(11) OPERATION(12) OPERATION(13)
OPERATION(14) OPERATION(15) OPERATION(16) OPERATION(17)

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
        PyArray_SIZE(AS_ARRAY(a)) > one_core_products ||
        PyArray_SIZE(AS_ARRAY(b)) > one_core_products ||
        PyArray_SIZE(AS_ARRAY(a)) * columns > one_core_products ||
        (dimensions == 2 ? PyArray_DIM(AS_ARRAY(a), 0) : 1) * columns > heap_elements ||
        !is_idle())
        return NULL;
    PyObject *result = silently(numpy_matmul, a, b, NULL);
    return result ? make_of(x, result) : NULL;
}

static PyObject *matmul(PyObject *x, PyObject *y)
{
    PyObject *result = product(x, y);
    if (result || PyErr_Occurred())
        return result;
    return PyObject_CallFunctionObjArgs(slow_matmul, x, y, NULL);
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
    return PyObject_CallFunctionObjArgs(slow_product, args[0], args[1], NULL);
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

/* --- one element ------------------------------------------------------------------------------ */

static PyObject *number_seen(PyObject *x)
{
    PyObject *seen = seen_of(x);
    return seen && PyArray_NDIM(AS_ARRAY(seen)) == 0 && is_idle() ? seen : NULL;
}

static PyObject *as_float(PyObject *x, PyObject *unused)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_TYPE(AS_ARRAY(seen)) == NPY_DOUBLE)
        return PyFloat_FromDouble(*(double *)PyArray_DATA(AS_ARRAY(seen)));
    if (seen && PyArray_ISFLOAT(AS_ARRAY(seen)))
        return PyNumber_Float(seen);
    return PyObject_CallFunctionObjArgs(slow_float, x, NULL);
}

static PyObject *as_int(PyObject *x, PyObject *unused)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_ISINTEGER(AS_ARRAY(seen)))
        return PyNumber_Long(seen);
    return PyObject_CallFunctionObjArgs(slow_int, x, NULL);
}

static PyObject *as_index(PyObject *x, PyObject *unused)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_ISINTEGER(AS_ARRAY(seen)))
        return PyNumber_Index(seen);
    return PyObject_CallFunctionObjArgs(slow_index, x, NULL);
}

static PyObject *as_bool(PyObject *x, PyObject *unused)
{
    PyObject *seen = number_seen(x);
    if (seen && PyArray_ISBOOL(AS_ARRAY(seen)))
        return PyBool_FromLong(*(npy_bool *)PyArray_DATA(AS_ARRAY(seen)));
    if (seen && PyArray_ISNUMBER(AS_ARRAY(seen))) {
        int is_true = PyObject_IsTrue(seen);
        return is_true < 0 ? NULL : PyBool_FromLong(is_true);
    }
    return PyObject_CallFunctionObjArgs(slow_bool, x, NULL);
}

/* --- what arrays say of themselves -------------------------------------------------------------- */

static PyObject *shape_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return PyObject_CallFunctionObjArgs(slow_shape, x, NULL);
    int count = PyArray_NDIM(AS_ARRAY(seen));
    return PyArray_IntTupleFromIntp(count, PyArray_DIMS(AS_ARRAY(seen)));
}

static PyObject *dimensions_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return PyObject_CallFunctionObjArgs(slow_ndim, x, NULL);
    return PyLong_FromLong(PyArray_NDIM(AS_ARRAY(seen)));
}

static PyObject *size_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return PyObject_CallFunctionObjArgs(slow_size, x, NULL);
    return PyLong_FromSsize_t(PyArray_SIZE(AS_ARRAY(seen)));
}

static PyObject *dtype_of(PyObject *module, PyObject *x)
{
    PyObject *seen = seen_of(x);
    if (!seen)
        return PyObject_CallFunctionObjArgs(slow_dtype, x, NULL);
    return Py_NewRef((PyObject *)PyArray_DESCR(AS_ARRAY(seen)));
}

/* --- the module ------------------------------------------------------------------------------- */

#define OPERATORS(n) \
    {"left_" #n, left_##n, METH_O, NULL}, {"right_" #n, right_##n, METH_O, NULL}, \
        {"in_place_" #n, in_place_##n, METH_O, NULL}

static PyMethodDef of_arrays[] = {
    {"__getitem__", getitem, METH_O, NULL},
    {"__setitem__", (PyCFunction)(void (*)(void))setitem, METH_FASTCALL, NULL},
    {"__iter__", parts_of, METH_NOARGS, NULL},
    {"__matmul__", matmul, METH_O, NULL},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc, METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"__float__", as_float, METH_NOARGS, NULL},
    {"__int__", as_int, METH_NOARGS, NULL},
    {"__index__", as_index, METH_NOARGS, NULL},
    {"__bool__", as_bool, METH_NOARGS, NULL},
    OPERATORS(0), OPERATORS(1), OPERATORS(2), OPERATORS(3), OPERATORS(4), OPERATORS(5),
    OPERATORS(6), OPERATORS(7), OPERATORS(8), OPERATORS(9), OPERATORS(10), OPERATORS(11),
    OPERATORS(12), OPERATORS(13), OPERATORS(14), OPERATORS(15), OPERATORS(16), OPERATORS(17),
    {NULL, NULL, 0, NULL},
};

/* Where a slot lies: an object is looked for that was put there. */
static Py_ssize_t offset_of(const char *name, Py_ssize_t size)
{
    Py_ssize_t found = -1;
    PyObject *sample = PyType_GenericAlloc(array_type, 0);
    PyObject *mark = PyList_New(0);
    if (sample && mark && PyObject_SetAttrString(sample, name, mark) == 0)
        for (Py_ssize_t at = 2 * sizeof(PyObject *); at + (Py_ssize_t)sizeof(PyObject *) <= size;
             at += sizeof(PyObject *))
            if (SLOT(sample, at) == mark)
                found = at;
    Py_XDECREF(sample);
    Py_XDECREF(mark);
    if (found < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "arrays have no slot %s", name);
    return found;
}

/* setup(named, operations, ufuncs): the methods, by name. What is handed over lives for ever. */
static PyObject *setup(PyObject *module, PyObject *args)
{
    PyObject *named, *given;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyDict_Type, &named, &PyList_Type, &given,
                          &PyDict_Type, &ufuncs))
        return NULL;
    PyObject *type;
    struct { const char *name; PyObject **where; } parts[] = {
        {"ndarray", &type}, {"working", &working}, {"config_values", &config_values},
        {"at_once", &at_once}, {"scalar_types", &scalar_types}, {"context", &context},
        {"getitem", &slow_getitem}, {"setitem", &slow_setitem}, {"matmul", &slow_matmul},
        {"iter", &slow_iter},
        {"array_ufunc", &slow_ufunc}, {"float", &slow_float}, {"int", &slow_int},
        {"index", &slow_index}, {"bool", &slow_bool}, {"numpy_matmul", &numpy_matmul},
        {"shape", &slow_shape}, {"ndim", &slow_ndim}, {"size", &slow_size},
        {"dtype", &slow_dtype}, {"small_product", &slow_product},
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
    if (!heap || !products || count > MOST_OPERATIONS) {
        PyErr_SetString(PyExc_TypeError, "setup: limits, and no more operations than there are");
        return NULL;
    }
    heap_elements = PyLong_AsSsize_t(heap);
    one_core_products = PyLong_AsSsize_t(products);
    array_type = (PyTypeObject *)type;
    parts_type = (PyTypeObject *)PyType_FromSpec(&parts_spec);
    host_tier = PyUnicode_InternFromString("host_tier");
    readers = PyUnicode_InternFromString("readers");
    call_method = PyUnicode_InternFromString("__call__");
    one = PyLong_FromLong(1);
    PyObject *basic_size = PyObject_GetAttrString(type, "__basicsize__");
    if (!basic_size || !one || !call_method || !parts_type)
        return NULL;
    Py_ssize_t size = array_bytes = PyLong_AsSsize_t(basic_size);
    Py_DECREF(basic_size);
    if ((at_seen = offset_of("_on_host", size)) < 0 || (at_block = offset_of("_block", size)) < 0 ||
        (at_packed = offset_of("_packed", size)) < 0 ||
        (at_queue = offset_of("sycl_queue", size)) < 0 ||
        (at_usm_type = offset_of("usm_type", size)) < 0)
        return NULL;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *of_one = PyList_GetItem(given, at);
        if (!PyArg_ParseTuple(of_one, "OOOOOi", &operations[at].compute, &operations[at].slow,
                              &operations[at].compute_in_place, &operations[at].slow_in_place,
                              &operations[at].weight, &operations[at].of_numbers))
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
    {"setup", setup, METH_VARARGS, NULL},
    {"small_product", (PyCFunction)(void (*)(void))small_product, METH_FASTCALL, NULL},
    {"shape", shape_of, METH_O, NULL},
    {"ndim", dimensions_of, METH_O, NULL},
    {"size", size_of, METH_O, NULL},
    {"dtype", dtype_of, METH_O, NULL},
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
    if (module && PyModule_AddStringConstant(module, "made_from", MADE_FROM) < 0)
        Py_CLEAR(module);
    return module;
}
