/* Nodes of the commonest lazy operations, and the keys of expressions. */

/* --- recorded operations --------------------------------------------------------------- */

/* What `dparray/_graph/node.py` calls the parts of a node. */
enum { OP, OPERANDS, SIGNATURE, DTYPE, SHAPE, ELEMENTS, QUEUE, USM_TYPE, LAYOUT, AXES, USERS, ARRAY, COST,
       LEAVES, NODE_SLOTS };
static const char *node_slot_names[NODE_SLOTS] = {
    "op", "operands", "signature", "dtype", "shape", "size", "queue", "usm_type", "layout", "axes",
    "users", "array", "cost", "leaves",
};
static Py_ssize_t node_slots[NODE_SLOTS];
static const char *canonical_slot_names[] = {"arrays", "key", "numbers", "scalars"};
static Py_ssize_t canonical_slots[4];
#define PART(node, which) SLOT(node, node_slots[which])

#define MAX_NOTES 64  /* of readers, before those that are gone are dropped */
#define MAX_COST 512 /* as in `dparray/_evaluate/limits.py` */
#define MAX_LEAVES 24

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
        put(node, node_slots[SIGNATURE], nothing);
        put(node, node_slots[DTYPE], (PyObject *)PyArray_DESCR(seen));
        put(node, node_slots[SHAPE], PyTuple_GetItem(layout, 2));
        PART(node, ELEMENTS) = PyLong_FromSsize_t(PyArray_SIZE(seen));
        put(node, node_slots[QUEUE], SLOT(x, at_queue));
        put(node, node_slots[USM_TYPE], SLOT(x, at_usm_type));
        put(node, node_slots[LAYOUT], layout);
        put(node, node_slots[AXES], Py_None);
        put(node, node_slots[USERS], Py_None);
        put(node, node_slots[ARRAY], Py_None);
        PART(node, COST) = PyLong_FromLong(0);
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
    return PyList_CheckExact(found) && PyList_Size(found) <= MAX_NOTES ? found : NULL;
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

static PyObject *signature_of(PyObject *dtype, int count)
{
    static PyObject *known[2][2];
    PyObject **place = &known[count - 1][PyArray_DescrCheck(dtype) &&
                                         ((PyArray_Descr *)dtype)->type_num == NPY_DOUBLE];
    if (!*place)
        *place = count == 1 ? PyTuple_Pack(2, dtype, dtype) : PyTuple_Pack(3, dtype, dtype, dtype);
    return *place && PyTuple_GetItem(*place, 0) == dtype ? *place : NULL;
}

/* Whether a node is an expression without dimensions, such as the sum of an array. */
static int is_pending_number(PyObject *node)
{
    return PART(node, LAYOUT) == Py_None && PyTuple_Size(PART(node, SHAPE)) == 0;
}

/* An operation on one or two pending arrays and arrays in memory, or on one and a number of Python's,
 * as `defer` makes it, or a reduction of one to a shape; NULL without an exception where it is not this
 * simple. */
static PyObject *record_node(PyObject *op, PyObject *cost_of_op, PyObject *x, PyObject *y,
                             PyObject *shape)
{
    int count = y ? 2 : 1;
    PyObject *operands[] = {x, y}, *nodes[2] = {NULL, NULL}, *notes[2] = {NULL, NULL}, *like = NULL;
    long cost = 0, leaves = 0;
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
                 PART(node, DTYPE) != PART(like, DTYPE))
            goto refused;
        else if (PART(node, SHAPE) != PART(like, SHAPE) &&
                 PyObject_RichCompareBool(PART(node, SHAPE), PART(like, SHAPE), Py_EQ) != 1) {
            if (is_pending_number(like))
                like = node;
            else if (!is_pending_number(node))
                goto refused;
        }
        cost += PyLong_AsLong(PART(node, COST));
        leaves += PyLong_AsLong(PART(node, LEAVES));
    }
    PyArray_Descr *dtype = like ? (PyArray_Descr *)PART(like, DTYPE) : NULL;
    if (!dtype || (dtype->type_num != NPY_DOUBLE && dtype->type_num != NPY_FLOAT))
        goto refused;
    PyObject *signature = signature_of((PyObject *)dtype, count);
    cost += PyLong_AsLong(cost_of_op);
    if (!signature || cost > MAX_COST || leaves > MAX_LEAVES)
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
    put(node, node_slots[SIGNATURE], signature);
    for (int which = DTYPE; which <= USM_TYPE; which++)
        put(node, node_slots[which], PART(like, which));
    if (shape) {
        Py_ssize_t elements = 1;
        for (Py_ssize_t axis = 0; axis < PyTuple_Size(shape); axis++)
            elements *= PyLong_AsSsize_t(PyTuple_GetItem(shape, axis));
        PyObject *size = PyLong_FromSsize_t(elements);
        if (!size)
            goto failed;
        put(node, node_slots[SHAPE], shape);
        put(node, node_slots[ELEMENTS], size);
        Py_DECREF(size);
    }
    for (int which = LAYOUT; which <= ARRAY; which++)
        put(node, node_slots[which], Py_None);
    PART(node, COST) = PyLong_FromLong(cost);
    PART(node, LEAVES) = PyLong_FromLong(leaves);
    if (!PART(node, COST) || !PART(node, LEAVES) || !(reference = PyWeakref_NewRef(node, NULL)))
        goto failed;
    for (int which = 0; which < count; which++)
        if (notes[which] && PyList_Append(notes[which], reference) < 0)
            goto failed;
    made = new_array(PART(node, QUEUE), PART(node, USM_TYPE));
    PyObject *holder = made ? PyWeakref_NewRef(made, NULL) : NULL;
    if (!holder) {
        Py_CLEAR(made);
        goto failed;
    }
    put(node, node_slots[ARRAY], holder);
    Py_DECREF(holder);
    put(made, at_node, node);
    put(made, at_shape, PART(node, SHAPE));
    put(made, at_dtype, PART(node, DTYPE));
    put(made, at_size, PART(node, ELEMENTS));
failed:
    Py_XDECREF(reference);
    Py_XDECREF(parts);
    Py_XDECREF(node);
    return made;
refused:
    if (PyErr_Occurred())
        is_fallback_error();
    return NULL;
}

static PyObject *lazy_operation_as(PyObject *op, PyObject *cost_of_op, PyObject *x, PyObject *y)
{
    return record_node(op, cost_of_op, x, y, NULL);
}

/* lazy_fold(x, op, cost, shape): the array of a reduction; None where it is not this simple. */
static PyObject *lazy_fold(PyObject *module, PyObject *args)
{
    PyObject *x, *op, *cost, *shape;
    if (!PyArg_ParseTuple(args, "OOOO!", &x, &op, &cost, &PyTuple_Type, &shape))
        return NULL;
    PyObject *made = record_node(op, cost, x, NULL, shape);
    if (made || PyErr_Occurred())
        return made;
    Py_RETURN_NONE;
}

/* Operations whose result has the dtype of the operands; others are left to Python. */
static PyObject *lazy_operation(int at, PyObject *x, PyObject *y)
{
    const char *kept = operations[at].kept_types;
    if (!strchr(kept, 'f') || !strchr(kept, 'd'))
        return NULL;
    return lazy_operation_as(PyList_GetItem(graph_operations, at), operations[at].cost, x, y);
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
    if (depth > MAX_LEAVES || PyList_Size(order) >= MAX_NOTES)
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
    if (!is_fallback_error())
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
    if (!order || !PyList_CheckExact(order) || value != Py_None || PyList_Size(order) > MAX_NOTES)
        return PyObject_Call((PyObject *)canonical_type, args, NULL);
    PyObject *arrays = PyList_New(0), *scalars = PyList_New(0), *numbers = PyDict_New();
    PyObject *key = PyList_New(0), *leaves = PyList_New(0), *made = NULL, *whole = NULL;
    Py_ssize_t counts[2 * MAX_NOTES];
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
                if (place < 0 && (place = PyList_Size(leaves)) < 2 * MAX_NOTES) {
                    number_ = number_of_leaf(PART(operand, LAYOUT), arrays, key);
                    counts[place] = number_;
                    is_right = number_ >= 0 && PyList_Append(leaves, operand) == 0 &&
                               add_number(numbers, operand, number_);
                } else if (place < 2 * MAX_NOTES)
                    number_ = counts[place];
                else
                    is_right = 0;
            }
            PyObject *noted_ = is_right ? PyLong_FromSsize_t(number_) : NULL;
            is_right = noted_ && PyList_Append(key, noted_) == 0;
            Py_XDECREF(noted_);
        }
        const int parts[] = {OP, SIGNATURE, SHAPE, USM_TYPE, AXES};
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
    if (!made && is_fallback_error())
        return PyObject_Call((PyObject *)canonical_type, args, NULL);
    return made;
}
