/* Elementwise operations on small arrays, their operators, and products. */

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
    npy_intp most = most_of(op->cost), other;
    if (*a && *b) {
        if (SLOT(x, at_queue) != SLOT(y, at_queue) || SLOT(x, at_usm_type) != SLOT(y, at_usm_type))
            return 0;
        *size = effective_read_size(AS_ARRAY(*a));
        other = effective_read_size(AS_ARRAY(*b));
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
        *size = effective_read_size(AS_ARRAY(*a));
    } else if (*b && Py_TYPE(x) != array_type && is_scalar(x)) {
        *a = x;
        *size = effective_read_size(AS_ARRAY(*b));
    } else
        return 0;
    return *size <= most;
}

/* The value of a float64 without dimensions, or of a Python number that is exact as one. */
static int float_of(PyObject *x, double *value)
{
    int overflow = 0;
    if (Py_TYPE(x) == &PyArray_Type && !PyArray_NDIM(AS_ARRAY(x)) &&
        PyArray_TYPE(AS_ARRAY(x)) == NPY_DOUBLE && PyArray_ISBEHAVED_RO(AS_ARRAY(x)))
        *value = *(double *)PyArray_DATA(AS_ARRAY(x));
    else if (PyFloat_CheckExact(x))
        *value = PyFloat_AsDouble(x);
    else if (PyLong_CheckExact(x)) {
        long long whole = PyLong_AsLongLongAndOverflow(x, &overflow);
        *value = (double)whole;
        return !overflow && whole <= 1LL << 53 && whole >= -(1LL << 53);
    } else
        return 0;
    return 1;
}

/* An operation of these as IEEE 754 defines it, of which `b` may be NULL: a call of NumPy takes four
 * times as long. NULL without an exception where NumPy is to compute it. */
static PyObject *of_floats(Py_ssize_t at, PyObject *owner, PyObject *a, PyObject *b)
{
    double x, y = 0, value = 0;
    npy_bool is_so = 0;
    if (!float_of(a, &x) || (b && !float_of(b, &y)))
        return NULL;
    switch (at) {
    case OF_ADD: value = x + y; break;
    case OF_SUBTRACT: value = x - y; break;
    case OF_MULTIPLY: value = x * y; break;
    case OF_DIVIDE: value = x / y; break;
    case OF_NEGATIVE: value = -x; break;
    case OF_POSITIVE: value = x; break;
    case OF_ABSOLUTE: value = fabs(x); break;
    case OF_LESS: is_so = x < y; break;
    case OF_LESS_EQUAL: is_so = x <= y; break;
    case OF_GREATER: is_so = x > y; break;
    case OF_GREATER_EQUAL: is_so = x >= y; break;
    case OF_EQUAL: is_so = x == y; break;
    case OF_NOT_EQUAL: is_so = x != y; break;
    default: return NULL;
    }
    int compares = at >= OF_LESS && at <= OF_NOT_EQUAL;
    PyArray_Descr *dtype = PyArray_DescrFromType(compares ? NPY_BOOL : NPY_DOUBLE);
    PyObject *made = make_number(owner, dtype, compares ? (void *)&is_so : (void *)&value);
    Py_DECREF(dtype);
    return made;
}

/* A number as a NumPy scalar, a Python number as it is; NULL of an array with elements. */
static PyObject *number_of(PyObject *x)
{
    if (Py_TYPE(x) != &PyArray_Type)
        return Py_NewRef(x);
    if (PyArray_NDIM(AS_ARRAY(x)) || PyArray_TYPE(AS_ARRAY(x)) > NPY_CDOUBLE)
        return NULL;
    return PyArray_ToScalar(PyArray_DATA(AS_ARRAY(x)), AS_ARRAY(x));
}

/* An operator of numbers, of which `b` may be NULL: those of NumPy's scalars compute the same in a
 * fifth of the time of its ufuncs. NULL without an exception where the ufunc is to do it. */
static PyObject *of_numbers(struct operation *op, PyObject *owner, PyObject *a, PyObject *b)
{
    static PyObject *(*const operators[])(PyObject *, PyObject *) = {
        PyNumber_Add, PyNumber_Subtract, PyNumber_Multiply, PyNumber_TrueDivide,
        PyNumber_FloorDivide, PyNumber_Remainder, PyNumber_And, PyNumber_Or, PyNumber_Xor,
        PyNumber_Lshift, PyNumber_Rshift,
    };
    static PyObject *(*const of_one[])(PyObject *) = {
        PyNumber_Negative, PyNumber_Positive, PyNumber_Absolute, PyNumber_Invert,
    };
    static const int comparisons[] = {Py_LT, Py_LE, Py_GT, Py_GE, Py_EQ, Py_NE};
    Py_ssize_t at = op - operations;
    if (at >= OPERATORS || is_tracing || Py_TYPE(op->compute) != Py_TYPE(numpy_matmul))
        return NULL;
    PyObject *result = of_floats(at, owner, a, b);
    if (result || PyErr_Occurred())
        return result;
    PyObject *x = number_of(a), *y = x && b ? number_of(b) : NULL;
    if (x && (y || !b) && enter()) {
        result = !b             ? of_one[at - OF_NEGATIVE](x)
                 : at < OF_LESS ? operators[at](x, y)
                                : PyObject_RichCompare(x, y, comparisons[at - OF_LESS]);
        leave(result != NULL);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (!result)
        is_fallback_error();
    else if (!PyArray_CheckScalar(result))
        Py_CLEAR(result);
    return result ? make_of(owner, result) : NULL;
}

/* The operation, computed by NumPy; `b` is NULL for one operand. NULL without an exception where
 * the general way is to do it. */
static PyObject *compute_now(struct operation *op, PyObject *owner, PyObject *a, PyObject *b,
                             npy_intp size)
{
    PyObject *result = size > heap_elements ? in_pool(op, owner, a, b)
                       : size == 1          ? of_numbers(op, owner, a, b)
                                            : NULL;
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
        result = lazy_operation(at, x, y);
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
    if (!target || op->into == Py_None || effective_read_size(AS_ARRAY(target)) > most_of(op->cost))
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
        return is_fallback_error() ? 0 : -1;
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
    npy_intp size = seen ? effective_read_size(AS_ARRAY(seen)) : 0;
    Py_XINCREF(seen);
    if (seen && size <= most_of(op->cost)) {
        if (is_ready(x, 0))
            result = compute_now(op, x, seen, NULL, size);
    } else
        result = lazy_operation(at, x, NULL);
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
static int is_large(PyObject *x, PyObject *cost)
{
    PyObject *seen = seen_of(x);
    return !seen || effective_read_size(AS_ARRAY(seen)) > most_of(cost);
}

static PyObject *power(PyObject *x, PyObject *y, PyObject *modulus)
{
    PyObject *seen = seen_of(x);
    int is_whole;
    if (modulus == Py_None && seen && PyLong_CheckExact(y) &&
        (PyArray_ISFLOAT(AS_ARRAY(seen)) || PyArray_ISCOMPLEX(AS_ARRAY(seen))) &&
        PyLong_AsLongLongAndOverflow(y, &is_whole) == 2 &&
        PyArray_SIZE(AS_ARRAY(seen)) <= most_of(square_cost) &&
        PyArray_SIZE(AS_ARRAY(seen)) <= heap_elements && is_ready(x, 0))
        return binary(OF_MULTIPLY, x, x);
    if (modulus == Py_None && Py_TYPE(x) == array_type && PyLong_CheckExact(y) &&
        PyLong_AsLongLongAndOverflow(y, &is_whole) == 2 && is_large(x, square_cost)) {
        PyObject *result = lazy_operation_as(square, square_cost, x, NULL);
        if (result || PyErr_Occurred())
            return result;
    }
    if (Py_TYPE(x) != array_type)
        return general(slow_reflected_power, y, x, NULL);
    return general(slow_power, x, y, modulus);
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
            is_fallback_error();
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
