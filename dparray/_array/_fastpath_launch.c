/* Launches of expressions whose kernel is known. */

/* --- launches of known expressions ------------------------------------------------------------ */

/* The arguments of a kernel with a few numbers in them: the addresses of all but the arrays and the
 * numbers of the expression never change. */
#define MAX_ARGUMENTS 64
#define MAX_NEW 8
static Py_ssize_t block_slots[3], segment_slots[2]; /* pointer, segment, readers; used, written */
static PyObject *in_order, *in_order_word, *others_work, *note_recent, *lock_order, *unlock_order;
static PyObject *count_word, *done_word, *last_word, *launched_word, *others_word;
static PyObject *before_launch_word, *add_launch_word, *address_word, *queue_word, *record_word;
static PyObject *lock_word, *acquire_word, *release_word, *submitted_word, *complete_word;
static PyObject *number_word, *refuse_word, *host_queues, *host_event;
/* Functions of SYCL's interface, and of NVIDIA's driver. */
static void *(*submit_range)(void *, void *, void **, const int *, size_t, const size_t *, size_t,
                             void *const *, size_t);
static void *(*submit_groups)(void *, void *, void **, const int *, size_t, const size_t *,
                              const size_t *, size_t, void *const *, size_t);
static PyObject *(*make_event)(void *);
static void (*delete_event)(void *);
static int (*launch_cuda)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
static int (*current_context)(void **), (*push_context)(void *), (*pop_context)(void **);
enum { SYCL, CUDA, HOST, DRIVERS };
static const char *driver_names[DRIVERS] = {"sycl", "cuda", "host"};
static PyObject *orders_of[DRIVERS];
/* The kinds of arguments, `dparray/_driver/arguments.py`: numbers of these sizes, and two more. */
static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
enum { POINTER = sizeof sizes, LOCAL };
/* The words of a launch on the host, `for_launch` of `dparray/_driver/host/submission.py`. */
enum { RUN, UNITS, THREADS, SHORT_TIME, HEAD, HEAD_WORDS = 12, LOCAL_BYTES = 11,
       WORDS = HEAD + HEAD_WORDS };

typedef struct {
    PyObject *spec, *queue, *name, *new;
    int driver, is_long; /* whether the host's last run was long */
    void *kernel, *queue_at;
    int64_t words[WORDS]; /* from the driver's `for_launch`; for CUDA the context */
    size_t extents[3], local[3], dimensions, has_local, count, filled; /* addresses from the start */
    int kinds[MAX_ARGUMENTS];
    void *addresses[MAX_ARGUMENTS];
    int arrays, reads, numbers, leaves, output;
    unsigned long thread; /* whose counters of groups are among the arguments, if any are */
    struct { int at, slot; } array[MAX_ARGUMENTS];
    struct { int at, number, type; } number[MAX_ARGUMENTS];
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
    PyObject *kept, *extents, *local, *kinds, *addresses, *arrays, *numbers, *words, *capsule = NULL;
    unsigned long long kernel, queue_at;
    const char *driver;
    size_t nbytes, places;
    if (!known)
        return PyErr_NoMemory();
    if (!PyArg_ParseTuple(spec, "OOOKKOOOOOiOOiiksO", &kept, &known->queue, &known->name, &kernel,
                          &queue_at, &extents, &local, &kinds, &addresses, &arrays, &known->reads,
                          &numbers, &known->new, &known->output, &known->leaves, &known->thread,
                          &driver, &words))
        goto failed;
    while (known->driver < DRIVERS && strcmp(driver, driver_names[known->driver]))
        known->driver++;
    known->kernel = (void *)(size_t)kernel;
    known->queue_at = (void *)(size_t)queue_at;
    known->has_local = local != Py_None;
    known->arrays = (int)PyTuple_Size(arrays);
    known->numbers = (int)PyTuple_Size(numbers);
    if (!copy_bytes(extents, known->extents, sizeof known->extents, &nbytes) ||
        (known->has_local && !copy_bytes(local, known->local, sizeof known->local, &places)) ||
        !copy_bytes(kinds, known->kinds, sizeof known->kinds, &known->count) ||
        !copy_bytes(words, known->words, sizeof known->words, &places) ||
        !copy_bytes(addresses, known->addresses, sizeof known->addresses, &places) ||
        PyTuple_Size(known->new) > MAX_NEW || known->driver == DRIVERS || !orders_of[known->driver] ||
        (known->driver == CUDA && !known->has_local)) {
        PyMem_Free(known);
        Py_RETURN_NONE;
    }
    known->dimensions = nbytes / sizeof(size_t);
    known->count /= sizeof(int);
    known->filled = places / sizeof(void *);
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
        for (int at = 0; is_added && at < count; at++)
            if (memory[at] == Py_None)
                is_other = is_other || set_number(order, others_word, added);
            else {
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

/* Submit to SYCL after some events: 1 and the event, 0 if it is left to Python, -1 with an
 * exception. */
static int submit_sycl(known_launch *known, void **addresses, PyObject *after, PyObject **event)
{
    void *events[MAX_ARGUMENTS], *reference;
    size_t count = PyList_Size(after);
    for (size_t at = 0; at < count; at++) {
        PyObject *address = PyObject_GetAttr(PyList_GetItem(after, at), address_word);
        PyObject *number_ = address ? PyObject_CallFunctionObjArgs(address, NULL) : NULL;
        events[at] = number_ ? PyLong_AsVoidPtr(number_) : NULL;
        Py_XDECREF(address);
        Py_XDECREF(number_);
        if (!events[at])
            return -1;
    }
    /* No work is submitted with the interpreter's lock held, from the first queue in order on. */
    if (PyDict_GetItemWithError(in_order, in_order_word) != Py_False)
        return PyErr_Occurred() ? -1 : 0;
    reference = known->has_local
                    ? submit_groups(known->kernel, known->queue_at, addresses, known->kinds,
                                    known->count, known->extents, known->local, known->dimensions,
                                    events, count)
                    : submit_range(known->kernel, known->queue_at, addresses, known->kinds,
                                   known->count, known->extents, known->dimensions, events, count);
    if (!reference)
        return 0;
    *event = make_event(reference); /* a copy */
    delete_event(reference);
    return *event ? 1 : -1;
}

/* Whether all events that a launch waits for are of its queue; -1 with an exception. */
static int is_after_own(known_launch *known, PyObject *after)
{
    for (Py_ssize_t at = 0; at < PyList_Size(after); at++) {
        PyObject *queue = PyObject_GetAttr(PyList_GetItem(after, at), queue_word);
        Py_XDECREF(queue);
        if (queue != known->queue)
            return queue ? 0 : -1;
    }
    return 1;
}

/* The size of local memory: dimensions, the number of the elements' type, extents. */
static size_t local_nbytes(const size_t *memory)
{
    size_t nbytes = sizes[*(const int *)(memory + 1)];
    for (size_t axis = 0; axis < memory[0]; axis++)
        nbytes *= memory[2 + axis];
    return nbytes;
}

/* Submit to CUDA, `dparray/_driver/cuda/submission.py`. The stream orders events of its own queue,
 * and Python waits for others. It also explains errors. */
static int submit_cuda(known_launch *known, void **addresses, PyObject *after, PyObject **event)
{
    void *parameters[MAX_ARGUMENTS], *before = NULL, *context = (void *)(size_t)known->words[0];
    unsigned long long offsets[MAX_ARGUMENTS], local = 0;
    unsigned groups[3] = {1, 1, 1}, parts[3] = {1, 1, 1};
    int is_own = is_after_own(known, after);
    if (is_own <= 0)
        return is_own;
    for (size_t at = 0; at < known->count; at++)
        if (known->kinds[at] == LOCAL) {
            offsets[at] = local;
            parameters[at] = &offsets[at];
            local += (local_nbytes(addresses[at]) + 15) / 16 * 16;
        } else
            parameters[at] = known->kinds[at] == POINTER ? &addresses[at] : addresses[at];
    for (size_t axis = 0; axis < known->dimensions; axis++) {
        parts[axis] = (unsigned)known->local[axis];
        groups[axis] = (unsigned)(known->extents[axis] / known->local[axis]);
    }
    if (current_context(&before) || (before != context && push_context(context)))
        return 0;
    if (!launch_cuda(known->kernel, groups[0], groups[1], groups[2], parts[0], parts[1], parts[2],
                     (unsigned)local, known->queue_at, parameters, NULL)) {
        PyObject *record = PyObject_GetAttr(known->queue, record_word);
        *event = record ? PyObject_CallFunctionObjArgs(record, NULL) : NULL;
        Py_XDECREF(record);
    }
    if (before != context)
        pop_context(&before);
    return *event ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Run a short kernel on the host if its queue has no other work, as `Queue.submit` of
 * `dparray/_driver/host/queues.py` does. Python submits the others. */
static int submit_host(known_launch *known, void **addresses, PyObject *after, PyObject **event)
{
    int64_t data[HEAD_WORDS + MAX_ARGUMENTS];
    int found = known->is_long ? 0 : is_after_own(known, after);
    if (found <= 0 || PyDict_GetItemWithError(host_queues, refuse_word) != Py_None)
        return PyErr_Occurred() ? -1 : 0;
    memcpy(data, known->words + HEAD, HEAD_WORDS * sizeof *data);
    for (size_t at = 0; at < known->count; at++) {
        int64_t *slot = &data[HEAD_WORDS + at];
        if (known->kinds[at] == LOCAL) {
            *slot = (data[LOCAL_BYTES] + 63) / 64 * 64;
            data[LOCAL_BYTES] = *slot + (int64_t)local_nbytes(addresses[at]);
        } else if (known->kinds[at] == POINTER)
            *slot = (int64_t)(intptr_t)addresses[at];
        else
            memcpy(slot, addresses[at], sizes[known->kinds[at]]);
    }
    PyObject *made = PyObject_CallFunctionObjArgs(host_event, known->queue, NULL);
    PyObject *lock = made ? PyObject_GetAttr(known->queue, lock_word) : NULL;
    PyObject *held = lock ? PyObject_CallMethodObjArgs(lock, acquire_word, NULL) : NULL;
    if (held) {
        Py_ssize_t number = number_at(known->queue, submitted_word) + 1;
        found = number_at(known->queue, complete_word) + 1 == number &&
                set_number(made, number_word, number) &&
                set_number(known->queue, submitted_word, number);
        if (found) {
            PyThreadState *state = PyEval_SaveThread();
            int64_t begun = now_ns();
            share_units((loop_part)(intptr_t)known->words[RUN], data, known->words[UNITS],
                        known->words[THREADS]);
            known->is_long = now_ns() - begun > known->words[SHORT_TIME];
            PyEval_RestoreThread(state);
            set_number(known->queue, complete_word, number);
            *event = Py_NewRef(made);
        }
        Py_DECREF(held);
        Py_XDECREF(PyObject_CallMethodObjArgs(lock, release_word, NULL));
    }
    Py_XDECREF(made);
    Py_XDECREF(lock);
    return PyErr_Occurred() ? -1 : found;
}

static int (*const submit_to[DRIVERS])(known_launch *, void **, PyObject *, PyObject **) = {
    submit_sycl, submit_cuda, submit_host};

/* With so many unfinished launches a full stream may block the call, which then must not hold the
 * interpreter's lock. */
#define MAX_UNFINISHED 512

/* Submit a kernel whose addresses are there, in order with its queue, `launch` of
 * `dparray/_runtime/launch.py`. Its event; NULL if the driver refuses it, or with an exception. The first
 * `reads` of `count` segments are only read. */
static PyObject *submit_known(known_launch *known, void **addresses, PyObject *const *memory,
                              int count, int reads)
{
    PyObject *order = PyObject_CallFunctionObjArgs(orders_of[known->driver], known->queue, NULL);
    PyObject *done = NULL, *last = NULL, *after = NULL, *event = NULL, *noted_ = NULL;
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
    /* Python's way has no limit. */
    if (PyList_Size(after) > MAX_ARGUMENTS ||
        (known->driver == CUDA && seen - complete > MAX_UNFINISHED)) {
        found = 0;
        goto out;
    }
    noted_ = Py_BuildValue("(OsOk)", known->name, "kernel", known->queue,
                           PyThread_get_thread_ident());
    if (!noted_ || !(done = PyObject_CallFunctionObjArgs(note_recent, noted_, NULL)))
        goto out;
    found = submit_to[known->driver](known, addresses, after, &event);
    if (found == 1 &&
        !((complete < seen || PyList_Append(after, last) == 0) &&
          add_launch(order, event, last, after, seen, memory, count, reads) &&
          note_work(known->queue)))
        found = -1;
out:
    Py_XDECREF(order);
    Py_XDECREF(done);
    Py_XDECREF(last);
    Py_XDECREF(after);
    Py_XDECREF(noted_);
    if (found != 1)
        Py_CLEAR(event);
    return event;
}

/* take_driver(name, order_of, functions, guards): how launches of a driver are submitted. */
static PyObject *take_driver(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *order, *guards;
    unsigned long long at[4];
    if (!PyArg_ParseTuple(args, "sO(KKKK)O", &name, &order, &at[0], &at[1], &at[2], &at[3],
                          &guards))
        return NULL;
    void *unused, *places[DRIVERS][4] = {
        {&submit_range, &submit_groups, &make_event, &delete_event},
        {&launch_cuda, &current_context, &push_context, &pop_context},
        {&unused, &unused, &unused, &unused}};
    for (int driver = 0; driver < DRIVERS; driver++)
        if (!strcmp(name, driver_names[driver])) {
            for (int function = 0; function < 4; function++)
                memcpy(places[driver][function], &at[function], sizeof(void *));
            orders_of[driver] = Py_NewRef(order);
            if (driver == SYCL)
                in_order = Py_NewRef(guards);
            if (driver == HOST) {
                host_queues = Py_NewRef(guards);
                host_event = PyDict_GetItemString(guards, "Event");
            }
        }
    Py_RETURN_NONE;
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
    put(node, node_slots[COST], zero);
    put(node, node_slots[LEAVES], one);
    Py_DECREF(operands);
}

/* launch_known(known, canonical, node): whether a pending node was computed by one known launch;
 * None if the driver must choose anew, since the last run was long. */
static PyObject *launch_known(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    known_launch *known = given == 3 ? PyCapsule_GetPointer(args[0], "known") : NULL;
    if (!known || Py_TYPE(args[1]) != canonical_type || !is_node(args[2])) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "launch_known(known, canonical, node)");
        return NULL;
    }
    PyObject *node = args[2], *arrays = SLOT(args[1], canonical_slots[0]);
    PyObject *scalars = SLOT(args[1], canonical_slots[3]), *layouts[MAX_NEW] = {NULL};
    void *addresses[MAX_ARGUMENTS];
    union { float single; double whole; } values[MAX_ARGUMENTS];
    PyObject *memory[MAX_ARGUMENTS];
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
    PyObject *event = submit_known(known, addresses, memory, known->arrays, known->reads);
    is_done = event ? 1 : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(event);
    for (int at = 0; is_done == 1 && at < made; at++)
        if (PyLong_AsLong(PyTuple_GetItem(PyTuple_GetItem(known->new, at), 0)) == known->output &&
            PART(node, LAYOUT) == Py_None)
            complete(node, layouts[at]);
refused:
    for (int at = 0; at < made; at++)
        Py_XDECREF(layouts[at]);
    if (is_done < 0 || (!is_done && !is_fallback_error()))
        return NULL;
    if (!is_done && known->is_long)
        Py_RETURN_NONE;
    return PyBool_FromLong(is_done);
}

/* launch_packed(known, arguments, memory, reads): the event of a launch of packed arguments, which follow
 * those of `known`; None if Python is to launch it. */
static PyObject *launch_packed(PyObject *module, PyObject *args)
{
    PyObject *capsule, *arguments, *segments, *packed[2 * MAX_ARGUMENTS], *memory[MAX_ARGUMENTS];
    PyObject *event = NULL;
    void *addresses[MAX_ARGUMENTS];
    int reads;
    if (!PyArg_ParseTuple(args, "OOOi", &capsule, &arguments, &segments, &reads))
        return NULL;
    known_launch *known = PyCapsule_GetPointer(capsule, "known");
    Py_ssize_t given = PySequence_Size(arguments), count = PySequence_Size(segments), held = 0;
    size_t filled = known ? known->filled : 0, nbytes;
    if (!known || given < 0 || count < 0)
        return NULL;
    /* On the host, the arguments decide whether a user's kernel is short, so Python launches it. */
    if (count > MAX_ARGUMENTS || given > MAX_ARGUMENTS || known->driver == HOST)
        Py_RETURN_NONE;
    memcpy(addresses, known->addresses, filled * sizeof(void *));
    for (; held < given; held++) {
        packed[held] = PySequence_GetItem(arguments, held);
        PyObject *bytes = packed[held] ? PyTuple_GetItem(packed[held], 1) : NULL;
        if (!copy_bytes(bytes, addresses + filled, sizeof addresses - filled * sizeof(void *), &nbytes)) {
            held++;
            goto refused;
        }
        filled += nbytes / sizeof(void *);
    }
    for (; held < given + count; held++)
        packed[held] = memory[held - given] = PySequence_GetItem(segments, held - given);
    if (filled == known->count && !PyErr_Occurred())
        event = submit_known(known, addresses, memory, (int)count, reads);
refused:
    while (held)
        Py_XDECREF(packed[--held]);
    return event || PyErr_Occurred() ? event : Py_NewRef(Py_None);
}
