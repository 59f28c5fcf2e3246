/* Threads that share the parts of a parallel loop of native code (`dparray/_jit/parts.py`).
 *
 * The calling thread takes part. The other threads wait actively for a short time after a loop, then
 * sleep. Each begins with parts of its own, so that it finds its rows in its cache at the next call,
 * and then takes parts of others. The parts do not depend on the number of threads, only who runs
 * them does. One loop at a time: another one meanwhile, or inside a part, runs on its calling thread.
 */

#include <stdatomic.h>
#include "_fastpath_threads.c"

#define MAX_POOL 256
#define PARTS_PER_THREAD 16
#define MAX_PARTS 512            /* as in `dparray/_jit/parts.py` */
#define SPIN_NS 50000            /* waiting actively: waking a thread takes about as long */
#define WAKE_NS 10000            /* sleeping threads are not woken for less work */
#define LOOK_NS 5000             /* time between two looks at the clock, about */
#define SIGNALS_NS 20000000      /* time between two checks for Ctrl-C */

/* The status is that of functions compiled by Numba, 0 without an exception. */
typedef int (*loop_part)(void *data, void **error, int64_t part, int64_t first, int64_t last);

struct share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
};

struct job {
    loop_part run;
    void *data;
    int64_t total, parts, done, look_at, failed, started_at, checked_at;
    int threads, joined, has_woken, heeds_signals, status;
    void *error;
    _Atomic int is_stopped;
    struct share shares[MAX_POOL];
};

static struct job *current; /* the loop that threads may join */
static _Atomic unsigned generation;
static _Atomic int busy, is_taken;
static int pool_size, sleeping, is_caller_asleep;
static lock gate = NEW_LOCK;
static condition wake = NEW_CONDITION, idle = NEW_CONDITION;
static _Thread_local int threads_to_use = 1;

static int64_t first_of(const struct job *job, int64_t part)
{
    int64_t more = job->total % job->parts;
    return job->total / job->parts * part + (part < more ? part : more);
}

static THREAD_RESULT serve(void *seen_before);

/* Wake, or start, as many threads as can still join. */
static void call_threads(struct job *job)
{
    job->has_woken = 1;
    take_lock(&gate);
    for (int at = job->joined; at < job->threads && at - job->joined < sleeping; at++)
        wake_one(&wake);
    while (pool_size < job->threads - 1 /* the others do the work if no thread starts */
           && start_thread(serve, (void *)(uintptr_t)(generation - 1)))
        pool_size++;
    leave_lock(&gate);
}

/* Run the handlers of signals that have arrived; an exception of theirs ends the loop. */
static void check_signals(struct job *job, int64_t now)
{
    if (!job->heeds_signals)
        return;
    job->checked_at = now;
    PyGILState_STATE state = PyGILState_Ensure();
    int has_raised = PyErr_CheckSignals() < 0;
    PyGILState_Release(state);
    if (has_raised) {
        take_lock(&gate);
        job->failed = job->status = -1; /* before any part; Numba's status for Python's exceptions */
        atomic_store(&job->is_stopped, 1);
        leave_lock(&gate);
    }
}

/* What the calling thread does after each of its parts. Reading the clock takes as long as a short
 * part, so that the next time is estimated. */
static void tend(struct job *job)
{
    if (++job->done < job->look_at)
        return;
    int64_t now = now_ns(), spent = now - job->started_at + 1, others = job->parts - job->done;
    double rate = (double)job->done / spent;
    job->look_at = job->done + 1 + (int64_t)(rate < 1 ? LOOK_NS * rate : job->done);
    if (!job->has_woken && job->threads > 1 && others > WAKE_NS * rate)
        call_threads(job);
    if (now - job->checked_at > SIGNALS_NS)
        check_signals(job, now);
}

/* The blocks of memory of the native functions that run in a thread; those from `first_taken` on are
 * of the innermost, or of the part of a loop. Those of results leave. */
typedef struct {
    char *start;
    size_t size;
} taken_block;
static _Thread_local taken_block *taken;
static _Thread_local int count_taken, first_taken, room_taken;

/* Return whether one of the addresses is in a block. */
static int is_read(const taken_block *block, int count, char **addresses)
{
    for (int at = 0; at < count; at++)
        if (addresses[at] >= block->start && addresses[at] < block->start + block->size)
            return 1;
    return 0;
}

/* Return a block of the function that no address points into, if it is not much larger than needed. */
static void *free_block(size_t nbytes, int count, char **addresses)
{
    for (int at = first_taken; at < count_taken; at++) {
        size_t size = taken[at].size;
        if (size >= nbytes && size <= 4 * nbytes + 4096 && !is_read(&taken[at], count, addresses))
            return taken[at].start;
    }
    return NULL;
}

static void *more_memory(size_t nbytes, int is_zero)
{
    if (count_taken == room_taken) {
        void *grown = realloc(taken, (2 * room_taken + 16) * sizeof *taken);
        if (!grown)
            return NULL;
        taken = grown;
        room_taken = 2 * room_taken + 16;
    }
    char *memory = is_zero ? calloc(1, nbytes) : malloc(nbytes);
    if (memory) {
        taken[count_taken].start = memory;
        taken[count_taken++].size = nbytes;
    }
    return memory;
}

/* Give back the blocks from a number on. */
static void free_blocks(int count)
{
    while (count_taken > count)
        free(taken[--count_taken].start);
    if (!count) {
        free(taken);
        taken = NULL;
        room_taken = 0;
    }
}

static void *new_memory(int64_t count, int64_t size, int is_zero, int live, char **addresses)
{
    size_t nbytes = (size_t)(count > 0 ? count : 1) * size;
    int is_possible = count >= 0 && count <= INT64_MAX / 2 / size;
    void *memory = is_possible ? free_block(nbytes, live, addresses) : NULL;
    if (memory && is_zero)
        memset(memory, 0, nbytes);
    return memory || !is_possible ? memory : more_memory(nbytes, is_zero);
}

static void work(struct job *job, int me)
{
    for (int at = 0; at < job->threads; at++) {
        struct share *from = &job->shares[(me + at) % job->threads];
        while (!atomic_load_explicit(&job->is_stopped, memory_order_relaxed)) {
            int64_t part = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
            if (part >= from->end)
                break;
            void *error = NULL;
            int before = count_taken, first_before = first_taken;
            first_taken = before;
            int status = job->run(job->data, &error, part, first_of(job, part),
                                  first_of(job, part + 1));
            free_blocks(before);
            first_taken = first_before;
            if (status) {
                take_lock(&gate);
                if (part < job->failed) {
                    job->failed = part;
                    job->status = status;
                    job->error = error;
                }
                atomic_store(&job->is_stopped, 1);
                leave_lock(&gate);
            }
            if (!me)
                tend(job);
        }
    }
}

static THREAD_RESULT serve(void *seen_before)
{
    unsigned seen = (unsigned)(uintptr_t)seen_before;
    for (;;) {
        int64_t end = now_ns() + SPIN_NS;
        while (atomic_load_explicit(&generation, memory_order_acquire) == seen && now_ns() < end)
            for (int at = 0; at < 8; at++)
                pause_briefly();
        take_lock(&gate);
        sleeping++;
        while (generation == seen)
            wait_for(&wake, &gate);
        sleeping--;
        seen = generation;
        struct job *job = current;
        int me = job && job->joined < job->threads ? job->joined++ : 0;
        busy += me > 0;
        leave_lock(&gate);
        if (me) {
            work(job, me);
            take_lock(&gate);
            if (!--busy && is_caller_asleep)
                wake_one(&idle);
            leave_lock(&gate);
        }
    }
    return 0;
}

static void wait_for_threads(struct job *job)
{
    int64_t end = now_ns() + SPIN_NS;
    while (atomic_load_explicit(&busy, memory_order_acquire) && now_ns() < end)
        pause_briefly();
    while (busy) {
        take_lock(&gate);
        is_caller_asleep = 1;
        if (busy)
            wait_briefly(&idle, &gate, SIGNALS_NS);
        is_caller_asleep = 0;
        leave_lock(&gate);
        if (busy && job->status != -1)
            check_signals(job, now_ns());
    }
}

/* Run a loop in parts, as many as the call requests or, for 0, as threads need. */
static int share(loop_part run, void *data, int64_t total, int64_t parts, int threads,
                 int heeds_signals, void **error)
{
    struct job job;
    int is_free = 0;
    job.threads = threads < MAX_POOL ? threads : MAX_POOL;
    job.heeds_signals = heeds_signals;
    if (!parts)
        parts = job.threads * PARTS_PER_THREAD < MAX_PARTS ? job.threads * PARTS_PER_THREAD
                                                           : MAX_PARTS;
    if (parts > total)
        parts = total;
    if (job.threads > parts)
        job.threads = (int)parts;
    if (job.threads > 1 && !(is_free = atomic_compare_exchange_strong(&is_taken, &is_free, 1)))
        job.threads = 1;
    job.run = run;
    job.data = data;
    job.total = total;
    job.failed = job.parts = parts;
    job.done = job.look_at = job.status = job.has_woken = job.is_stopped = 0;
    job.error = NULL;
    job.joined = 1;
    job.started_at = job.checked_at = now_ns();
    for (int at = 0; at < job.threads; at++) {
        job.shares[at].next = parts * at / job.threads;
        job.shares[at].end = parts * (at + 1) / job.threads;
    }
    if (is_free) {
        take_lock(&gate);
        current = &job;
        generation++;
        leave_lock(&gate);
    }
    work(&job, 0);
    if (is_free) {
        take_lock(&gate);
        current = NULL;
        leave_lock(&gate);
        wait_for_threads(&job);
        is_taken = 0;
    }
    *error = job.error;
    return job.status;
}

static int share_parts(loop_part run, void *data, int64_t total, int64_t parts, void **error)
{
    if (parts == 1 && total > 0)
        return run(data, error, 0, 0, total);
    return share(run, data, total, parts, threads_to_use, 1, error);
}

/* Run the units of a kernel of the host device, which a signal cannot end. */
static void share_units(loop_part run, void *data, int64_t units, int64_t threads)
{
    void *error;
    if (threads == 1 || units == 1)
        run(data, NULL, 0, 0, units);
    else
        share(run, data, units, 0, (int)threads, 0, &error);
}

/* A forked process has none of the threads. */
static void forget_threads(void)
{
    gate = (lock)NEW_LOCK;
    wake = idle = (condition)NEW_CONDITION;
    current = NULL;
    busy = is_taken = pool_size = sleeping = is_caller_asleep = 0;
}

/* use_threads(count): on how many threads the loops that this thread calls run. */
static PyObject *use_threads(PyObject *module, PyObject *count)
{
    long given = PyLong_AsLong(count);
    if (given == -1 && PyErr_Occurred())
        return NULL;
    threads_to_use = given < 1 ? 1 : given < MAX_POOL ? (int)given : MAX_POOL;
    Py_RETURN_NONE;
}

struct rows {
    char *to;
    const char *from;
    int64_t to_step, from_step, nbytes;
};

/* The C library's copies are up to 14 times slower than a loop on some processors, if the target begins
 * less than 32 bytes after the source modulo the page size. */
static int copy_some_rows(void *data, void **error, int64_t part, int64_t first, int64_t last)
{
    enum { RUN = 64 };
    struct rows *rows = data;
    for (int64_t row = first; row < last; row++) {
        char *to = rows->to + row * rows->to_step;
        const char *from = rows->from + row * rows->from_step, *end = from + rows->nbytes;
        for (; end - from >= RUN; to += RUN, from += RUN)
            memcpy(to, from, RUN);
        memcpy(to, from, (size_t)(end - from));
    }
    return 0;
}

/* copy_rows(to, from, to_step, from_step, rows, nbytes, threads): copy rows of bytes, given by
 * addresses and strides, on several threads. */
static PyObject *copy_rows(PyObject *module, PyObject *args)
{
    unsigned long long to, from;
    long long to_step, from_step, count, nbytes;
    int threads, status;
    if (!PyArg_ParseTuple(args, "KKLLLLi", &to, &from, &to_step, &from_step, &count, &nbytes, &threads))
        return NULL;
    struct rows rows = {(char *)(uintptr_t)to, (char *)(uintptr_t)from, to_step, from_step, nbytes};
    void *error = NULL;
    PyThreadState *state = PyEval_SaveThread();
    status = share(copy_some_rows, &rows, count, 0, threads, 1, &error);
    PyEval_RestoreThread(state);
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

/* The most 64-bit words of the arguments and results of a native function. */
#define MAX_WORDS 512
#define MAX_RESULTS 16 /* as in `dparray/_jit/host_code.py` */

/* Why a native function ends, besides its own exceptions; as in `dparray/_compiler/abi.py`. */
#define NO_MEMORY -101
#define NEGATIVE -102
#define NO_STACK -103

/* The number of the exception with which a thread's native function has ended, or 0. */
static _Thread_local int stopped;

static void note_stop(int number)
{
    stopped = number;
}

/* Run a kernel of the host over a range, of `Kernel` of `dparray/_driver/host/modules.py`: `data` has
 * the words before its arguments, then its arguments, of which the first are the extents. */
static int launch_kernel(int64_t run, int64_t *data, int ndim, int64_t multiple, int64_t least)
{
    enum { EXTENTS, GROUPS = 3, COUNTS = 6, ITEMS = 9, PIECES, LOCAL, HEAD };
    int64_t rows = 1, pieces = 1, wanted = 8 * threads_to_use;
    for (int axis = 0; axis < 3; axis++) {
        data[EXTENTS + axis] = data[COUNTS + axis] = axis < ndim ? data[HEAD + axis] : 1;
        data[GROUPS + axis] = 1;
        rows *= axis < ndim - 1 ? data[EXTENTS + axis] : 1;
    }
    int64_t inner = data[HEAD + ndim - 1];
    if (inner <= 0 || rows <= 0)
        return 0;
    if (rows < wanted) {
        int64_t most = inner / (least > multiple ? least : multiple);
        wanted = (wanted + rows - 1) / rows;
        pieces = most < wanted ? most : wanted;
        pieces = pieces < 1 ? 1 : pieces;
    }
    int64_t items = (inner + pieces - 1) / pieces;
    data[ITEMS] = items = (items + multiple - 1) / multiple * multiple;
    data[PIECES] = (inner + items - 1) / items;
    data[LOCAL] = 0;
    void *error;
    return share((loop_part)(intptr_t)run, data, rows * data[PIECES], 0, threads_to_use, 1, &error);
}

static void free_taken(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

/* The array of a result, from the words of its address and shape; for an argument, these as a tuple. */
static PyObject *taken_array(const int64_t *words, int ndim, char letter)
{
    npy_intp shape[NPY_MAXDIMS];
    void *memory = (void *)(intptr_t)words[0];
    for (int axis = 0; axis < ndim; axis++)
        shape[axis] = (npy_intp)words[1 + axis];
    int own = first_taken;
    while (own < count_taken && taken[own].start != memory)
        own++;
    if (own == count_taken) {
        PyObject *numbers = PyTuple_New(1 + ndim);
        for (int at = 0; numbers && at <= ndim; at++)
            PyTuple_SetItem(numbers, at, PyLong_FromLongLong(words[at]));
        return numbers;
    }
    PyObject *owner = PyCapsule_New(memory, NULL, free_taken);
    if (!owner)
        return NULL;
    taken[own].start = NULL;
    PyArray_Descr *dtype = PyArray_DescrFromType(letter);
    PyObject *array = dtype ? PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, memory,
                                                   NPY_ARRAY_CARRAY, NULL)
                            : NULL;
    if (!array || PyArray_SetBaseObject(AS_ARRAY(array), owner) < 0) {
        if (!array)
            Py_DECREF(owner);
        Py_CLEAR(array);
    }
    return array;
}

/* A number of a result. */
static PyObject *result_number(void *value, char letter)
{
    if (letter == 'd')
        return PyFloat_FromDouble(*(double *)value);
    if (letter == 'q')
        return PyLong_FromLongLong(*(int64_t *)value);
    PyArray_Descr *dtype = PyArray_DescrFromType(letter);
    PyObject *array =
        dtype ? PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, value, 0, NULL) : NULL;
    PyObject *number = array ? PyArray_GETITEM(AS_ARRAY(array), value) : NULL;
    Py_XDECREF(array);
    return number;
}

/* A number as a word; 0 with an exception if it is none. */
static int scalar_word(PyObject *value, char type, int64_t *word)
{
    PyArray_Descr *dtype;
    if (type == 'd') {
        double number = PyFloat_AsDouble(value);
        memcpy(word, &number, sizeof number);
        return !PyErr_Occurred();
    }
    if (type == 'q') {
        *word = PyLong_AsLongLong(value);
        if (!PyErr_Occurred())
            return 1;
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return 0;
        PyErr_Clear();
    }
    if (!(dtype = PyArray_DescrFromType(type)))
        return 0;
    PyObject *array = PyArray_FromAny(value, dtype, 0, 0, NPY_ARRAY_FORCECAST, NULL);
    if (array)
        memcpy(word, PyArray_DATA(AS_ARRAY(array)), (size_t)PyArray_ITEMSIZE(AS_ARRAY(array)));
    Py_XDECREF(array);
    return array != NULL;
}

/* The words of an array: those of `FrontEnd.parameter` (`dparray/_language/frontend.py`). */
static int array_words(PyObject *value, char kind, int64_t *words)
{
    if (!PyArray_Check(value))
        return 0;
    PyArrayObject *array = AS_ARRAY(value);
    int ndim = PyArray_NDIM(array), flags = PyArray_FLAGS(array), at = 3;
    if ((kind == 'C' && !(flags & NPY_ARRAY_C_CONTIGUOUS)) ||
        !(flags & NPY_ARRAY_WRITEABLE) != (kind == 'R'))
        return 0;
    words[0] = PyArray_SIZE(array);
    words[1] = PyArray_ITEMSIZE(array);
    words[2] = (int64_t)(intptr_t)PyArray_DATA(array);
    for (int axis = 0; axis < ndim; axis++)
        words[at++] = PyArray_DIM(array, axis);
    for (int axis = 0; axis < ndim; axis++)
        words[at++] = PyArray_STRIDE(array, axis);
    return at;
}

/* call_function(address, kinds, arguments, results, threads): `_call_function` of
 * `dparray/_jit/parts.py`. */
static PyObject *call_function(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    int64_t words[MAX_WORDS], values[MAX_RESULTS][1 + NPY_MAXDIMS];
    PyObject *set = NULL, *made = NULL;
    int count = 0;
    char *kinds, *results;
    Py_ssize_t arguments, letters;
    void (*run)(int64_t *) = given == 5 ? PyLong_AsVoidPtr(args[0]) : NULL;
    if (!run || !PyTuple_Check(args[2]) || PyBytes_AsStringAndSize(args[1], &kinds, &arguments) ||
        PyBytes_AsStringAndSize(args[3], &results, &letters) ||
        PyTuple_Size(args[2]) != arguments || letters > 2 * MAX_RESULTS ||
        !(set = use_threads(module, args[4]))) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError,
                            "call_function(address, kinds, arguments, results, threads)");
        return NULL;
    }
    Py_DECREF(set);
    for (Py_ssize_t at = 0; at < arguments; at++) {
        PyObject *value = PyTuple_GetItem(args[2], at);
        if (count > MAX_WORDS - 3 - 2 * NPY_MAXDIMS)
            Py_RETURN_NOTIMPLEMENTED;
        if (kinds[at] == 'C' || kinds[at] == 'S' || kinds[at] == 'R') {
            int added = array_words(value, kinds[at], words + count);
            if (!added)
                Py_RETURN_NOTIMPLEMENTED;
            count += added;
        } else if (!scalar_word(value, kinds[at], &words[count++]))
            return NULL;
    }
    for (Py_ssize_t at = 0; at < letters / 2; at++) {
        int64_t length = 1 + results[2 * at], own[5] = {length, 8, (intptr_t)values[at], length, 8};
        if (count > MAX_WORDS - 5)
            Py_RETURN_NOTIMPLEMENTED;
        memcpy(words + count, own, sizeof own);
        count += 5;
    }
    int before = count_taken, first_before = first_taken;
    first_taken = before;
    stopped = 0;
    PyThreadState *state = PyEval_SaveThread();
    run(words);
    PyEval_RestoreThread(state);
    if (PyErr_Occurred()) /* a signal has ended a loop */
        stopped = 0;
    else if (stopped == NO_MEMORY)
        PyErr_NoMemory();
    else if (stopped == NEGATIVE)
        PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
    else if (stopped == NO_STACK)
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    if (!PyErr_Occurred())
        made = stopped ? PyLong_FromLong(stopped) : PyTuple_New(letters / 2);
    for (Py_ssize_t at = 0; made && !stopped && at < letters / 2; at++) {
        int ndim = results[2 * at];
        char letter = results[2 * at + 1];
        PyObject *value =
            ndim ? taken_array(values[at], ndim, letter) : result_number(values[at], letter);
        if (!value)
            Py_CLEAR(made);
        else
            PyTuple_SetItem(made, at, value);
    }
    free_blocks(before);
    first_taken = first_before;
    return made;
}
