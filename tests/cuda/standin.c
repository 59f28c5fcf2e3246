/* A stand-in for NVIDIA's driver, libcuda.so.1, for tests on machines without a GPU.
 *
 * Memory is one file of anonymous memory that is mapped twice. The addresses that callers see cannot
 * be read or written by the host, except in managed and pinned memory; this library and the emulator
 * use the other mapping. A stray access of the host is thus a segmentation fault.
 *
 * Streams are queues. One thread works them off, with random delays, and takes a random stream each
 * time, so that a missing wait shows. Kernels are run by a Python function (standin_connect), which
 * gets the interpreter's lock; waits release that lock if the caller holds it.
 *
 * Environment: CUDA_STANDIN_DEVICES (2), _MEMORY (bytes of each, 4 GiB), _SEED, _DELAY (longest usual
 * delay in microseconds, 100), _WRITTEN (1: keep which bytes were written).
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEVICES 8
#define MAX_PARAMETERS 512
#define PAGE 4096ul
#define ARENA (64ul << 30)
#define HOST_ZONE (48ul << 30) /* pinned and managed memory begin here */
#define POISONED (4ul << 20)   /* fresh memory has garbage, up to this many bytes */

typedef struct CUctx_st Context;
typedef struct CUstream_st Stream;
typedef struct CUevent_st Event;

/* The kinds of calls that can be refused; tests/cuda/standin.py has the same list. */
enum { ALLOCATION, FREE, COPY, FILL, LAUNCH, EXECUTION, MODULE, KERNEL, RECORD, WAIT, STREAM, KINDS };

enum { STREAM_MAGIC = 0x57, EVENT_MAGIC = 0xE7, FUNCTION_MAGIC = 0xF7, DEAD = 0xDE };

struct CUctx_st {
    int device, flags, retained;
    CUresult error; /* once set, each call returns it */
    Stream *legacy, *per_thread;
    unsigned peers; /* bits: the devices whose memory it may access */
    unsigned long long id;
};

typedef struct {
    uintptr_t start;
    size_t size;
    int kind, device, pending; /* kind: CU_MEMORYTYPE_DEVICE, _HOST, or _UNIFIED for managed memory */
    unsigned flags;
    unsigned long long id;
    CUmemoryPool pool;
} Area;

struct CUmemPoolHandle_st {
    int device;
    uint64_t attributes[32];
};

typedef struct {
    Stream *stream;
    unsigned long number;
} Moment; /* the end of a piece of work */

typedef struct Work {
    enum { DO_NOTHING, DO_COPY, DO_FILL, DO_LAUNCH, DO_RECORD, DO_FREE } kind;
    struct Work *next;
    unsigned long number;
    Moment *after;
    int count;
    char *target, *source; /* addresses of this library's mapping, or of the host */
    void *staged;
    size_t target_pitch, source_pitch, width, height;
    unsigned value, unit;
    Event *event;
    CUfunction function;
    unsigned dims[6], shared;
    uintptr_t address;
} Work;

struct CUstream_st {
    int magic, priority, is_running, is_capturing;
    unsigned flags;
    Context *context;
    unsigned long long id;
    Work *first, *last;
    unsigned long submitted, done;
    Stream *next;
};

struct CUevent_st {
    int magic, pending;
    unsigned flags;
    Context *context;
    Moment moment;
    double time;
};

typedef struct {
    int number, count, shared, threads;
    size_t offsets[MAX_PARAMETERS], sizes[MAX_PARAMETERS];
} Parameters;

struct CUfunc_st {
    int magic, module;
    char name[512];
    Parameters parameters;
    int dynamic[MAX_DEVICES];
    struct CUfunc_st *next;
};

struct CUlib_st {
    int number;
    struct CUfunc_st *functions;
};

static struct {
    int number;
    CUresult lost;
    size_t memory, used;
    Context primary;
    struct CUmemPoolHandle_st pool;
} devices[MAX_DEVICES];
static int device_count, is_initialized, is_forked, is_over, keeps_written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER, work_done = PTHREAD_COND_INITIALIZER;
static pthread_t worker;
static int waiters;
static long longest_delay;
static int is_held;
static uint64_t seed;
static Stream *streams;
static unsigned long long ids;
static char *face, *inside, *written;
static int file;
static Area *areas;
static int area_count, area_room;
static long calls[KINDS], refused_at[KINDS];
static CUresult refused_with[KINDS];
static __thread struct {
    Context *stack[64];
    int depth;
} thread;

/* --- the interpreter ---------------------------------------------------------------------------- */

static struct {
    int (*has_lock)(void);
    void *(*release)(void);
    void (*take)(void *);
    int (*load)(const char *image, char *log, size_t size, int registers);
    int (*find)(int module, const char *name, Parameters *);
    int (*launch)(int kernel, int device, const unsigned *dims, unsigned shared, const char *values);
    int (*find_global)(int module, const char *name, int device, uint64_t *address, uint64_t *size);
} python;

void standin_connect(void *const *functions) { memcpy(&python, functions, sizeof python); }

/* In a process that has not installed the stand-in, such as a child of a test, do it now. */
static void connect_python(void) {
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int (*run)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (python.load || !ensure || !run)
        return;
    int state = ensure();
    run("import os, sys\n"
        "sys.path.append(os.environ['CUDA_STANDIN_ROOT'])\n"
        "from tests.cuda import standin\n"
        "standin.install()\n"
        "sys.path.remove(os.environ['CUDA_STANDIN_ROOT'])\n", NULL);
    release(state);
}

static void *release_interpreter(void) {
    return !is_over && python.has_lock && python.has_lock() ? python.release() : NULL;
}

static void take_interpreter(void *state) {
    if (state)
        python.take(state);
}

/* --- requests of tests -------------------------------------------------------------------------- */

static uint64_t random_number(void) { /* xorshift */
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

/* Let the nth call of a kind from now on return an error; 0 takes it back. */
void standin_refuse(int kind, long nth, int code) {
    pthread_mutex_lock(&lock);
    refused_at[kind] = nth ? calls[kind] + nth : 0;
    refused_with[kind] = code;
    pthread_mutex_unlock(&lock);
}

long standin_calls(int kind) { return calls[kind]; }

/* Let a device fail from now on; 0 repairs it and its primary context. */
void standin_lose(int device, int code) {
    pthread_mutex_lock(&lock);
    devices[device].lost = code;
    if (!code)
        devices[device].primary.error = 0;
    pthread_cond_broadcast(&work_done);
    pthread_mutex_unlock(&lock);
}

void standin_configure(uint64_t new_seed, long delay) {
    pthread_mutex_lock(&lock);
    seed = new_seed * 2654435761u + 88172645463325252u;
    longest_delay = delay;
    pthread_mutex_unlock(&lock);
}

/* Let no work begin until this is called with 0. */
void standin_hold(int is_to_wait) {
    pthread_mutex_lock(&lock);
    is_held = is_to_wait;
    pthread_cond_broadcast(&work_came);
    pthread_mutex_unlock(&lock);
}

static CUresult refusal(int kind) {
    pthread_mutex_lock(&lock);
    int is_refused = ++calls[kind] == refused_at[kind];
    pthread_mutex_unlock(&lock);
    return is_refused ? refused_with[kind] : CUDA_SUCCESS;
}

/* --- checks at the head of functions ------------------------------------------------------------ */

static CUresult started(void) {
    return is_initialized && !is_forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult health(const Context *context) {
    return devices[context->device].lost ? devices[context->device].lost : context->error;
}

#define TRY(expression)                                                                                  \
    do {                                                                                                 \
        CUresult result_ = (expression);                                                                 \
        if (result_)                                                                                     \
            return result_;                                                                              \
    } while (0)
#define START TRY(started())
#define NEED(condition, error)                                                                           \
    do {                                                                                                 \
        if (!(condition))                                                                                \
            return CUDA_ERROR_##error;                                                                   \
    } while (0)
#define NEED_DEVICE(dev) NEED((dev) >= 0 && (dev) < device_count, INVALID_DEVICE)

static Context *current(void) { return thread.depth ? thread.stack[thread.depth - 1] : NULL; }

static CUresult current_context(Context **context) {
    START;
    *context = current();
    NEED(*context, INVALID_CONTEXT);
    return health(*context);
}

#define CURRENT                                                                                          \
    Context *context;                                                                                    \
    TRY(current_context(&context))

/* --- memory ------------------------------------------------------------------------------------- */

static int is_ours(uintptr_t address) {
    return address >= (uintptr_t)face && address < (uintptr_t)face + ARENA;
}

/* The area of an address; the lock is held. */
static Area *area_at(uintptr_t address) {
    int low = 0, high = area_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (areas[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < areas[low - 1].start + areas[low - 1].size ? &areas[low - 1] : NULL;
}

static size_t pages(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static CUresult allocate(uintptr_t *address, size_t size, int kind, int device, unsigned flags,
                         CUmemoryPool pool) {
    NEED(size, INVALID_VALUE);
    TRY(refusal(ALLOCATION));
    pthread_mutex_lock(&lock);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    int is_device = kind == CU_MEMORYTYPE_DEVICE;
    if (size > ARENA || (is_device && devices[device].used + size > devices[device].memory))
        goto end;
    uintptr_t at = (uintptr_t)face + (is_device ? PAGE : HOST_ZONE);
    uintptr_t stop = (uintptr_t)face + (is_device ? HOST_ZONE : ARENA);
    int place = 0;
    for (; place < area_count; place++) { /* a page between two areas belongs to none */
        if (areas[place].start < at)
            continue;
        if (areas[place].start >= stop || areas[place].start - at >= pages(size) + PAGE)
            break;
        at = areas[place].start + pages(areas[place].size) + PAGE;
    }
    if (at + pages(size) + PAGE > stop)
        goto end;
    if (area_count == area_room)
        areas = realloc(areas, sizeof *areas * (area_room = 2 * area_room + 64));
    memmove(areas + place + 1, areas + place, sizeof *areas * (area_count++ - place));
    areas[place] = (Area){at, size, kind, device, 0, flags, ++ids, pool};
    if (is_device)
        devices[device].used += size;
    else
        mprotect((void *)at, pages(size), PROT_READ | PROT_WRITE);
    if (written && !is_device) /* the host writes without a call */
        memset(written + (at - (uintptr_t)face), 1, size);
    memset(inside + (at - (uintptr_t)face), 0xA5, size < POISONED ? size : POISONED);
    *address = at;
    result = CUDA_SUCCESS;
end:
    pthread_mutex_unlock(&lock);
    return result;
}

/* Give an area back; the lock is held. */
static void give_back(Area *area) {
    size_t offset = area->start - (uintptr_t)face;
    mprotect((void *)area->start, pages(area->size), PROT_NONE);
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, pages(area->size));
    if (written)
        madvise(written + offset, pages(area->size), MADV_DONTNEED);
    if (area->kind == CU_MEMORYTYPE_DEVICE)
        devices[area->device].used -= area->size;
    memmove(area, area + 1, sizeof *area * (areas + --area_count - area));
}

/* Find this library's address of memory, or the host's own; `is_pageable` if it is the host's. */
static CUresult reach(uintptr_t address, size_t size, char **place, int *is_pageable) {
    *is_pageable = !is_ours(address);
    *place = (char *)address;
    if (*is_pageable)
        return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    Area *area = area_at(address);
    int is_inside = area && !area->pending && size <= area->start + area->size - address;
    pthread_mutex_unlock(&lock);
    *place = inside + (address - (uintptr_t)face);
    return is_inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void mark_written(const char *place, size_t size) {
    if (written && place >= inside && place < inside + ARENA)
        memset(written + (place - inside), 1, size);
}

/* The two mappings, and which bytes were written, or NULL. */
void standin_memory(char **out_face, char **out_inside, char **out_written, size_t *size) {
    *out_face = face, *out_inside = inside, *out_written = written, *size = ARENA;
}

/* The areas that kernels of a device may access, as starts and ends; return their number. */
int standin_bounds(int device, int64_t *bounds, int room) {
    pthread_mutex_lock(&lock);
    int count = 0;
    unsigned reached = devices[device].primary.peers | 1u << device;
    for (int i = 0; i < area_count; i++) {
        if (areas[i].kind == CU_MEMORYTYPE_DEVICE && !(reached >> areas[i].device & 1))
            continue;
        if (count < room) {
            bounds[2 * count] = areas[i].start;
            bounds[2 * count + 1] = areas[i].start + areas[i].size;
        }
        count++;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

/* Device memory for a module's variables. */
uint64_t standin_allocate(int device, size_t size) {
    uintptr_t address = 0;
    long counted = calls[ALLOCATION], nth = refused_at[ALLOCATION];
    refused_at[ALLOCATION] = 0;
    CUresult result = allocate(&address, size, CU_MEMORYTYPE_DEVICE, device, 0, NULL);
    calls[ALLOCATION] = counted, refused_at[ALLOCATION] = nth;
    return result ? 0 : address;
}

/* --- streams ------------------------------------------------------------------------------------ */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

static Stream *new_stream(Context *context, unsigned flags, int priority) {
    Stream *stream = calloc(1, sizeof *stream);
    stream->magic = STREAM_MAGIC, stream->flags = flags, stream->priority = priority;
    stream->context = context;
    pthread_mutex_lock(&lock);
    stream->id = ++ids;
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    return stream;
}

static CUresult find_stream(CUstream handle, Stream **stream) {
    START;
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        CURRENT;
        *stream = handle == CU_STREAM_PER_THREAD ? context->per_thread : context->legacy;
        return CUDA_SUCCESS;
    }
    NEED(handle->magic == STREAM_MAGIC, INVALID_HANDLE);
    *stream = handle;
    return health(handle->context);
}

static int is_past(Moment moment) {
    return !moment.stream || is_over || moment.stream->done >= moment.number ||
           devices[moment.stream->context->device].lost;
}

static int is_ready(const Stream *stream) {
    if (stream->is_running || !stream->first)
        return 0;
    for (int i = 0; i < stream->first->count; i++)
        if (!is_past(stream->first->after[i]))
            return 0;
    return 1;
}

/* Choose a stream whose next work may begin; the lock is held. */
static Stream *choose(void) {
    Stream *chosen = NULL;
    unsigned count = 0;
    for (Stream *each = streams; each; each = each->next)
        if (is_ready(each) && random_number() % ++count == 0)
            chosen = each;
    return chosen;
}

static void add_moment(Work *work, Moment moment) {
    if (is_past(moment))
        return;
    work->after = realloc(work->after, sizeof *work->after * (work->count + 1));
    work->after[work->count++] = moment;
}

/* Append work to a stream; the lock is not held. */
static Moment submit(Stream *stream, Work *work) {
    pthread_mutex_lock(&lock);
    Stream *legacy = stream->context->legacy;
    if (stream == legacy) { /* the default stream and blocking streams wait for each other */
        for (Stream *each = streams; each; each = each->next)
            if (each != stream && each->context == stream->context && !(each->flags & CU_STREAM_NON_BLOCKING))
                add_moment(work, (Moment){each, each->submitted});
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
        add_moment(work, (Moment){legacy, legacy->submitted});
    }
    work->number = ++stream->submitted;
    if (stream->last)
        stream->last->next = work;
    else
        stream->first = work;
    stream->last = work;
    pthread_cond_broadcast(&work_came);
    pthread_mutex_unlock(&lock);
    return (Moment){stream, work->number};
}

static void do_copy(const Work *work) {
    for (size_t row = 0; row < work->height; row++) {
        char *target = work->target + row * work->target_pitch;
        memmove(target, work->source + row * work->source_pitch, work->width);
        mark_written(target, work->width);
    }
}

static void do_fill(const Work *work) {
    for (size_t row = 0; row < work->height; row++) {
        char *target = work->target + row * work->target_pitch;
        if (work->unit == 1)
            memset(target, work->value, work->width);
        for (size_t at = 0; work->unit > 1 && at < work->width; at += work->unit)
            memcpy(target + at, &work->value, work->unit);
        mark_written(target, work->width);
    }
}

static void execute(Work *work, Context *context) {
    if (work->kind == DO_RECORD) {
        work->event->time = now();
        return;
    }
    if (work->kind == DO_FREE) {
        pthread_mutex_lock(&lock);
        Area *area = area_at(work->address);
        if (area)
            give_back(area);
        pthread_mutex_unlock(&lock);
        return;
    }
    if (health(context) || is_over)
        return;
    if (work->kind == DO_COPY)
        do_copy(work);
    if (work->kind == DO_FILL)
        do_fill(work);
    if (work->kind == DO_LAUNCH) {
        CUresult result = refusal(EXECUTION);
        if (!result)
            result = python.launch(work->function->parameters.number, context->device, work->dims,
                                   work->shared, work->staged);
        if (result) {
            pthread_mutex_lock(&lock);
            context->error = result;
            pthread_mutex_unlock(&lock);
        }
    }
}

static void *work_off(void *unused) {
    pthread_mutex_lock(&lock);
    while (!is_over) {
        Stream *stream = choose();
        if (!stream || is_held) {
            pthread_cond_wait(&work_came, &lock);
            continue;
        }
        if (!waiters && longest_delay) { /* a waiting host ends the delay */
            long delay = random_number() % (longest_delay * 1000);
            if (random_number() % 16 == 0)
                delay *= 16;
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += (until.tv_nsec + delay) / 1000000000;
            until.tv_nsec = (until.tv_nsec + delay) % 1000000000;
            while (!waiters && !is_over && pthread_cond_timedwait(&work_done, &lock, &until) != ETIMEDOUT)
                ;
            if (!(stream = choose()))
                continue;
        }
        Work *work = stream->first;
        stream->first = work->next;
        if (!stream->first)
            stream->last = NULL;
        stream->is_running = 1;
        pthread_mutex_unlock(&lock);
        execute(work, stream->context);
        pthread_mutex_lock(&lock);
        stream->is_running = 0;
        stream->done = work->number;
        if (work->event)
            work->event->pending--;
        free(work->staged), free(work->after), free(work);
        pthread_cond_broadcast(&work_done);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

/* Wait for moments. The interpreter's lock is released, since a launch needs it. */
static void wait_for(const Moment *moments, int count) {
    if (pthread_equal(pthread_self(), worker)) /* objects that die during a launch do not wait */
        return;
    void *state = release_interpreter();
    pthread_mutex_lock(&lock);
    waiters++;
    pthread_cond_broadcast(&work_done);
    for (int i = 0; i < count; i++)
        while (!is_past(moments[i]))
            pthread_cond_wait(&work_done, &lock);
    waiters--;
    pthread_mutex_unlock(&lock);
    take_interpreter(state);
}

/* Wait for all work of a context, or of a device. */
static void wait_for_all(const Context *context, int device) {
    pthread_mutex_lock(&lock);
    int count = 0;
    for (Stream *each = streams; each; each = each->next)
        count++;
    Moment moments[count + 1];
    count = 0;
    for (Stream *each = streams; each; each = each->next)
        if (context ? each->context == context : each->context->device == device)
            moments[count++] = (Moment){each, each->submitted};
    pthread_mutex_unlock(&lock);
    wait_for(moments, count);
}

static CUresult wait_for_one(Moment moment) {
    wait_for(&moment, 1);
    return moment.stream ? health(moment.stream->context) : CUDA_SUCCESS;
}

/* End the worker, before the interpreter ends. */
void standin_quit(void) {
    void *state = release_interpreter();
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&work_came);
    pthread_cond_broadcast(&work_done);
    pthread_mutex_unlock(&lock);
    if (is_initialized && !is_forked)
        pthread_join(worker, NULL);
    if (state)
        python.take(state);
}

/* --- start and devices -------------------------------------------------------------------------- */

static void note_fork(void) { is_forked = 1; }

static unsigned long number_of(const char *name, unsigned long usual) {
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 10) : usual;
}

static void start(void) {
    device_count = number_of("CUDA_STANDIN_DEVICES", 2);
    if (device_count > MAX_DEVICES)
        device_count = MAX_DEVICES;
    keeps_written = number_of("CUDA_STANDIN_WRITTEN", 0);
    standin_configure(number_of("CUDA_STANDIN_SEED", 1), number_of("CUDA_STANDIN_DELAY", 100));
    file = memfd_create("standin", MFD_CLOEXEC);
    if (ftruncate(file, ARENA))
        abort();
    face = mmap(NULL, ARENA, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    inside = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (keeps_written)
        written = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
    if (face == MAP_FAILED || inside == MAP_FAILED || written == MAP_FAILED)
        abort();
    for (int i = 0; i < device_count; i++) {
        devices[i].memory = number_of("CUDA_STANDIN_MEMORY", 4ul << 30);
        devices[i].pool.device = i;
        devices[i].primary = (Context){.device = i, .id = ++ids};
        devices[i].primary.legacy = new_stream(&devices[i].primary, 0, 0);
        devices[i].primary.per_thread = new_stream(&devices[i].primary, 0, 0);
    }
    pthread_atfork(NULL, NULL, note_fork);
    pthread_create(&worker, NULL, work_off, NULL);
    is_initialized = 1;
}

CUresult cuInit(unsigned flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    NEED(!flags, INVALID_VALUE);
    NEED(!is_forked, NOT_INITIALIZED);
    pthread_once(&once, start);
    connect_python();
    NEED(device_count, NO_DEVICE);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    START;
    *count = device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    START;
    NEED_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    snprintf(name, length, "Stand-in H100");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    memset(uuid->bytes, 0xC0 + dev, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    *bytes = devices[dev].memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    snprintf(text, length, "0000:%02X:00.0", dev + 1);
    return CUDA_SUCCESS;
}

#define ATTRIBUTE(name) CU_DEVICE_ATTRIBUTE_##name
static const int attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
    [ATTRIBUTE(MAX_THREADS_PER_BLOCK)] = 1024,
    [ATTRIBUTE(MAX_BLOCK_DIM_X)] = 1024,
    [ATTRIBUTE(MAX_BLOCK_DIM_Y)] = 1024,
    [ATTRIBUTE(MAX_BLOCK_DIM_Z)] = 64,
    [ATTRIBUTE(MAX_GRID_DIM_X)] = 2147483647,
    [ATTRIBUTE(MAX_GRID_DIM_Y)] = 65535,
    [ATTRIBUTE(MAX_GRID_DIM_Z)] = 65535,
    [ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK)] = 48 << 10,
    [ATTRIBUTE(TOTAL_CONSTANT_MEMORY)] = 64 << 10,
    [ATTRIBUTE(WARP_SIZE)] = 32,
    [ATTRIBUTE(MAX_PITCH)] = 2147483647,
    [ATTRIBUTE(MAX_REGISTERS_PER_BLOCK)] = 65536,
    [ATTRIBUTE(CLOCK_RATE)] = 1980000,
    [ATTRIBUTE(TEXTURE_ALIGNMENT)] = 512,
    [ATTRIBUTE(GPU_OVERLAP)] = 1,
    [ATTRIBUTE(MULTIPROCESSOR_COUNT)] = 132,
    [ATTRIBUTE(CAN_MAP_HOST_MEMORY)] = 1,
    [ATTRIBUTE(SURFACE_ALIGNMENT)] = 512,
    [ATTRIBUTE(CONCURRENT_KERNELS)] = 1,
    [ATTRIBUTE(ECC_ENABLED)] = 1,
    [ATTRIBUTE(MEMORY_CLOCK_RATE)] = 2619000,
    [ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH)] = 5120,
    [ATTRIBUTE(L2_CACHE_SIZE)] = 50 << 20,
    [ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR)] = 2048,
    [ATTRIBUTE(ASYNC_ENGINE_COUNT)] = 3,
    [ATTRIBUTE(UNIFIED_ADDRESSING)] = 1,
    [ATTRIBUTE(TEXTURE_PITCH_ALIGNMENT)] = 32,
    [ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR)] = 9,
    [ATTRIBUTE(COMPUTE_CAPABILITY_MINOR)] = 0,
    [ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED)] = 1,
    [ATTRIBUTE(GLOBAL_L1_CACHE_SUPPORTED)] = 1,
    [ATTRIBUTE(LOCAL_L1_CACHE_SUPPORTED)] = 1,
    [ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)] = 228 << 10,
    [ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR)] = 65536,
    [ATTRIBUTE(MANAGED_MEMORY)] = 1,
    [ATTRIBUTE(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)] = 2,
    [ATTRIBUTE(CONCURRENT_MANAGED_ACCESS)] = 1,
    [ATTRIBUTE(COMPUTE_PREEMPTION_SUPPORTED)] = 1,
    [ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)] = 1,
    [ATTRIBUTE(COOPERATIVE_LAUNCH)] = 1,
    [ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)] = 227 << 10,
    [ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR)] = 32,
    [ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK)] = 1024,
    [ATTRIBUTE(MEMORY_POOLS_SUPPORTED)] = 1,
    [ATTRIBUTE(CLUSTER_LAUNCH)] = 1,
    [ATTRIBUTE(UNIFIED_FUNCTION_POINTERS)] = 1,
    [ATTRIBUTE(NUMA_ID)] = -1,
    [ATTRIBUTE(HOST_NUMA_ID)] = 0,
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    NEED(attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX, INVALID_VALUE);
    *value = attribute == ATTRIBUTE(PCI_BUS_ID) ? dev + 1 : attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer) {
    START;
    NEED_DEVICE(dev);
    NEED_DEVICE(peer);
    *can = dev != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice a, CUdevice b) {
    START;
    NEED_DEVICE(a);
    NEED_DEVICE(b);
    *value = a != b && attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
    return CUDA_SUCCESS;
}

/* --- contexts ----------------------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    TRY(devices[dev].lost);
    __atomic_add_fetch(&devices[dev].primary.retained, 1, __ATOMIC_SEQ_CST);
    *context = &devices[dev].primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    NEED(devices[dev].primary.retained > 0, INVALID_CONTEXT);
    __atomic_sub_fetch(&devices[dev].primary.retained, 1, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active) {
    START;
    NEED_DEVICE(dev);
    *flags = devices[dev].primary.flags;
    *active = devices[dev].primary.retained > 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    START;
    *context = current();
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    START;
    NEED(context, INVALID_VALUE);
    NEED(thread.depth < 64, INVALID_CONTEXT);
    thread.stack[thread.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    START;
    NEED(thread.depth, INVALID_CONTEXT);
    thread.depth--;
    if (context)
        *context = thread.stack[thread.depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    START;
    if (thread.depth)
        thread.depth--;
    return context ? cuCtxPushCurrent_v2(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    START;
    NEED(current(), INVALID_CONTEXT);
    *device = current()->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    if (!context)
        return cuCtxGetDevice(device);
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags) {
    CURRENT;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    START;
    context = context ? context : current();
    NEED(context, INVALID_CONTEXT);
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CURRENT;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    CURRENT;
    *value = limit == CU_LIMIT_STACK_SIZE ? 1024 : 8 << 20;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
    CURRENT;
    TRY(refusal(WAIT));
    wait_for_all(context, 0);
    return health(context);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    CURRENT;
    NEED(peer && peer->device != context->device, INVALID_CONTEXT);
    NEED(!(context->peers >> peer->device & 1), PEER_ACCESS_ALREADY_ENABLED);
    context->peers |= 1u << peer->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CURRENT;
    NEED(peer && context->peers >> peer->device & 1, PEER_ACCESS_NOT_ENABLED);
    context->peers &= ~(1u << peer->device);
    return CUDA_SUCCESS;
}

/* --- functions of streams and events ------------------------------------------------------------ */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    CURRENT;
    TRY(refusal(STREAM));
    NEED(flags <= CU_STREAM_NON_BLOCKING, INVALID_VALUE);
    *stream = new_stream(context, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream) { /* its work still ends */
    START;
    NEED(stream && stream->magic == STREAM_MAGIC, INVALID_HANDLE);
    stream->magic = DEAD;
    return CUDA_SUCCESS;
}

#define FIND_STREAM                                                                                      \
    Stream *stream;                                                                                      \
    TRY(find_stream(handle, &stream))

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
    FIND_STREAM;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
    FIND_STREAM;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
    FIND_STREAM;
    *context = stream->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green) {
    if (green)
        *green = NULL;
    return cuStreamGetCtx(handle, context);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
    FIND_STREAM;
    *device = stream->context->device;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
    FIND_STREAM;
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    FIND_STREAM;
    NEED(!stream->is_capturing, ILLEGAL_STATE);
    stream->is_capturing = 1;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) { /* the graph is empty */
    FIND_STREAM;
    NEED(stream->is_capturing, ILLEGAL_STATE);
    stream->is_capturing = 0;
    *graph = NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    FIND_STREAM;
    *status = stream->is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes,
                                   const CUgraphEdgeData **edges, size_t *count) {
    return cuStreamIsCapturing(handle, status);
}

static CUresult query(Moment moment) {
    pthread_mutex_lock(&lock);
    int past = is_past(moment);
    pthread_mutex_unlock(&lock);
    if (moment.stream)
        TRY(health(moment.stream->context));
    return past ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamQuery(CUstream handle) {
    FIND_STREAM;
    return query((Moment){stream, stream->submitted});
}

CUresult cuStreamSynchronize(CUstream handle) {
    FIND_STREAM;
    TRY(refusal(WAIT));
    return wait_for_one((Moment){stream, stream->submitted});
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
    FIND_STREAM;
    NEED(event && event->magic == EVENT_MAGIC, INVALID_HANDLE);
    Work *work = calloc(1, sizeof *work);
    pthread_mutex_lock(&lock);
    if (event->moment.stream)
        add_moment(work, event->moment);
    pthread_mutex_unlock(&lock);
    submit(stream, work);
    return CUDA_SUCCESS;
}

/* Callbacks are refused: dparray must not need any, since they may want the interpreter's lock. */
CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *data, unsigned flags) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    CURRENT;
    *event = calloc(1, sizeof **event);
    (*event)->magic = EVENT_MAGIC, (*event)->flags = flags, (*event)->context = context;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
    static Event *dead[4096]; /* freed late, so that a use of one is found */
    static int at;
    START;
    NEED(event && event->magic == EVENT_MAGIC, INVALID_HANDLE);
    pthread_mutex_lock(&lock);
    event->magic = DEAD;
    at = (at + 1) % 4096;
    if (dead[at] && !dead[at]->pending)
        free(dead[at]);
    dead[at] = event;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
    FIND_STREAM;
    NEED(event && event->magic == EVENT_MAGIC, INVALID_HANDLE);
    NEED(event->context == stream->context, INVALID_HANDLE);
    TRY(refusal(RECORD));
    Work *work = calloc(1, sizeof *work);
    work->kind = DO_RECORD, work->event = event;
    pthread_mutex_lock(&lock);
    event->pending++;
    pthread_mutex_unlock(&lock);
    Moment moment = submit(stream, work);
    pthread_mutex_lock(&lock);
    event->moment = moment;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags) {
    return cuEventRecord(event, handle);
}

CUresult cuEventQuery(CUevent event) {
    START;
    NEED(event && event->magic == EVENT_MAGIC, INVALID_HANDLE);
    return query(event->moment);
}

CUresult cuEventSynchronize(CUevent event) {
    START;
    NEED(event && event->magic == EVENT_MAGIC, INVALID_HANDLE);
    TRY(refusal(WAIT));
    return wait_for_one(event->moment);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    START;
    NEED(start && end && start->magic == EVENT_MAGIC && end->magic == EVENT_MAGIC, INVALID_HANDLE);
    NEED(!((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING), INVALID_HANDLE);
    NEED(start->moment.stream && end->moment.stream, INVALID_HANDLE);
    TRY(query(start->moment));
    TRY(query(end->moment));
    *milliseconds = end->time - start->time;
    return CUDA_SUCCESS;
}

/* --- functions of memory ------------------------------------------------------------------------ */

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
    CURRENT;
    return allocate((uintptr_t *)pointer, size, CU_MEMORYTYPE_DEVICE, context->device, 0, NULL);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned flags) {
    CURRENT;
    NEED(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST, INVALID_VALUE);
    return allocate((uintptr_t *)pointer, size, CU_MEMORYTYPE_UNIFIED, context->device, flags, NULL);
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
    CURRENT;
    return allocate((uintptr_t *)pointer, size, CU_MEMORYTYPE_HOST, context->device, flags, NULL);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t size) { return cuMemHostAlloc(pointer, size, 0); }

/* Take an area at its start; the lock is not held. */
static CUresult take_area(uintptr_t address, int is_host, Area *copy) {
    pthread_mutex_lock(&lock);
    Area *area = area_at(address);
    int is_valid = area && area->start == address && !area->pending &&
                   (area->kind == CU_MEMORYTYPE_HOST) == is_host;
    if (is_valid) {
        area->pending = 1;
        *copy = *area;
    }
    pthread_mutex_unlock(&lock);
    return is_valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult free_area(uintptr_t address, int is_host) {
    Area area;
    START;
    if (!address)
        return CUDA_SUCCESS;
    TRY(refusal(FREE));
    TRY(take_area(address, is_host, &area));
    if (pthread_equal(pthread_self(), worker)) { /* a launch is at work: free after it */
        Work *work = calloc(1, sizeof *work);
        work->kind = DO_FREE, work->address = address;
        submit(devices[area.device].primary.legacy, work);
        return CUDA_SUCCESS;
    }
    wait_for_all(NULL, area.device); /* as the hardware's driver */
    pthread_mutex_lock(&lock);
    give_back(area_at(address));
    pthread_mutex_unlock(&lock);
    return health(&devices[area.device].primary);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) { return free_area(pointer, 0); }

CUresult cuMemFreeHost(void *pointer) { return free_area((uintptr_t)pointer, 1); }

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
    CURRENT;
    *total = devices[context->device].memory;
    *unused = *total - devices[context->device].used;
    return CUDA_SUCCESS;
}

static CUresult find_area(uintptr_t address, Area *copy) {
    START;
    pthread_mutex_lock(&lock);
    Area *area = is_ours(address) ? area_at(address) : NULL;
    if (area)
        *copy = *area;
    pthread_mutex_unlock(&lock);
    return area ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr pointer) {
    Area area;
    NEED(!find_area(pointer, &area), NOT_FOUND);
    if (start)
        *start = area.start;
    if (size)
        *size = area.size;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pointer, void *host, unsigned flags) {
    Area area;
    TRY(find_area((uintptr_t)host, &area));
    *pointer = (CUdeviceptr)host;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
    Area area;
    TRY(find_area((uintptr_t)host, &area));
    *flags = area.flags;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    Area area;
    TRY(find_area(pointer, &area));
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = &devices[area.device].primary;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = area.kind == CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        NEED(area.kind != CU_MEMORYTYPE_DEVICE, INVALID_VALUE);
        *(CUdeviceptr *)value = pointer;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = pointer;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = area.id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = area.kind == CU_MEMORYTYPE_UNIFIED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = area.device;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = area.start;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = area.size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(char *)value = 1;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)value = area.pool;
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *asked, void **values,
                                CUdeviceptr pointer) {
    START;
    for (unsigned i = 0; i < count; i++)
        if (cuPointerGetAttribute(values[i], asked[i], pointer)) /* a pointer of the host has zeros */
            memset(values[i], 0, asked[i] == CU_POINTER_ATTRIBUTE_MAPPED ? 1 : 4);
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    Area area;
    return find_area(pointer, &area);
}

/* Copy rows. Pageable memory is read before this returns, and has been written when it returns. */
static CUresult copy(CUstream handle, uintptr_t target, size_t target_pitch, uintptr_t source,
                     size_t source_pitch, size_t width, size_t height, int is_async) {
    FIND_STREAM;
    TRY(refusal(COPY));
    if (!width || !height)
        return CUDA_SUCCESS;
    int to_host, from_host;
    Work *work = calloc(1, sizeof *work);
    *work = (Work){.kind = DO_COPY, .target_pitch = target_pitch, .source_pitch = source_pitch};
    work->width = width, work->height = height;
    CUresult result = reach(target, target_pitch * (height - 1) + width, &work->target, &to_host);
    if (!result)
        result = reach(source, source_pitch * (height - 1) + width, &work->source, &from_host);
    if (result) {
        free(work);
        return result;
    }
    if (from_host) {
        char *staged = work->staged = malloc(width * height);
        for (size_t row = 0; row < height; row++)
            memcpy(staged + row * width, work->source + row * source_pitch, width);
        work->source = staged, work->source_pitch = width;
    }
    Moment moment = submit(stream, work);
    return to_host || !is_async ? wait_for_one(moment) : CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
    return copy(stream, target, size, source, size, size, 1, 1);
}

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t size) {
    return copy(NULL, target, size, source, size, size, 1, 0);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t size, CUstream stream) {
    return cuMemcpyAsync(target, (CUdeviceptr)source, size, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t size, CUstream stream) {
    return cuMemcpyAsync((CUdeviceptr)target, source, size, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
    return cuMemcpyAsync(target, source, size, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size) {
    return cuMemcpy(target, (CUdeviceptr)source, size);
}

CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size) {
    return cuMemcpy((CUdeviceptr)target, source, size);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t size) {
    return cuMemcpy(target, source, size);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from,
                           size_t size, CUstream stream) {
    return cuMemcpyAsync(target, source, size, stream);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copied, CUstream stream, int is_async) {
    uintptr_t target = copied->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)copied->dstHost
                                                                   : copied->dstDevice;
    uintptr_t source = copied->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)copied->srcHost
                                                                   : copied->srcDevice;
    NEED(!copied->srcArray && !copied->dstArray, NOT_SUPPORTED);
    return copy(stream, target + copied->dstY * copied->dstPitch + copied->dstXInBytes, copied->dstPitch,
                source + copied->srcY * copied->srcPitch + copied->srcXInBytes, copied->srcPitch,
                copied->WidthInBytes, copied->Height, is_async);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copied, CUstream stream) {
    return copy_2d(copied, stream, 1);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copied) { return copy_2d(copied, NULL, 0); }

static CUresult fill(CUstream handle, CUdeviceptr target, size_t pitch, unsigned value, unsigned unit,
                     size_t count, size_t height, int is_async) {
    FIND_STREAM;
    TRY(refusal(FILL));
    if (!count || !height)
        return CUDA_SUCCESS;
    int is_pageable;
    char *place;
    NEED(target % unit == 0, INVALID_VALUE);
    TRY(reach(target, pitch * (height - 1) + count * unit, &place, &is_pageable));
    NEED(!is_pageable, INVALID_VALUE);
    Work *work = calloc(1, sizeof *work);
    *work = (Work){.kind = DO_FILL, .target = place, .target_pitch = pitch, .value = value, .unit = unit};
    work->width = count * unit, work->height = height;
    Moment moment = submit(stream, work);
    return is_async ? CUDA_SUCCESS : wait_for_one(moment);
}

#define FILLS(bits, type)                                                                                \
    CUresult cuMemsetD##bits##Async(CUdeviceptr target, type value, size_t count, CUstream stream) {     \
        return fill(stream, target, 0, value, bits / 8, count, 1, 1);                                    \
    }                                                                                                    \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr target, type value, size_t count) {                        \
        return fill(NULL, target, 0, value, bits / 8, count, 1, 0);                                      \
    }                                                                                                    \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr target, size_t pitch, type value, size_t width,        \
                                      size_t height, CUstream stream) {                                  \
        return fill(stream, target, pitch, value, bits / 8, width, height, 1);                           \
    }
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned flags,
                               CUstream handle) {
    FIND_STREAM;
    Area area;
    TRY(find_area(pointer, &area));
    NEED(area.kind == CU_MEMORYTYPE_UNIFIED, INVALID_VALUE);
    submit(stream, calloc(1, sizeof(Work)));
    return CUDA_SUCCESS;
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location) {
    Area area;
    TRY(find_area(pointer, &area));
    NEED(area.kind == CU_MEMORYTYPE_UNIFIED, INVALID_VALUE);
    return CUDA_SUCCESS;
}

/* Memory pools: one a device. */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev) {
    START;
    NEED_DEVICE(dev);
    *pool = &devices[dev].pool;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    return cuDeviceGetDefaultMemPool(pool, dev);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    START;
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int *)value = pool->attributes[attribute];
    else
        *(uint64_t *)value = pool->attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    START;
    int is_short = attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
    pool->attributes[attribute] = is_short ? (uint64_t) * (int *)value : *(uint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream handle) {
    FIND_STREAM;
    return allocate((uintptr_t *)pointer, size, CU_MEMORYTYPE_DEVICE, pool->device, 0, pool);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream handle) {
    FIND_STREAM;
    return cuMemAllocFromPoolAsync(pointer, size, &devices[stream->context->device].pool, handle);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
    FIND_STREAM;
    Area area;
    TRY(refusal(FREE));
    TRY(take_area(pointer, 0, &area));
    Work *work = calloc(1, sizeof *work);
    work->kind = DO_FREE, work->address = pointer;
    submit(stream, work);
    return CUDA_SUCCESS;
}

/* --- modules ------------------------------------------------------------------------------------ */

static CUresult load(CUlibrary *library, const void *image, const CUjit_option *options, void **values,
                     unsigned count) {
    char *log = NULL, unused[1];
    size_t size = 0, registers = 255;
    START;
    TRY(refusal(MODULE));
    NEED(image, INVALID_VALUE);
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)values[i];
        if (options[i] == CU_JIT_MAX_REGISTERS)
            registers = (unsigned)(size_t)values[i];
    }
    int number = python.load(image, log ? log : unused, log ? size : 0, (int)registers);
    if (number < 0)
        return -number;
    *library = calloc(1, sizeof **library);
    (*library)->number = number;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
                           unsigned count, CUlibraryOption *library_options, void **library_values,
                           unsigned library_count) {
    return load(library, image, options, values, count);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                            void **values) {
    CURRENT;
    return load((CUlibrary *)module, image, options, values, count);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuLibraryUnload(CUlibrary library) { return started(); }

CUresult cuModuleUnload(CUmodule module) { return started(); }

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    START;
    *module = (CUmodule)library;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static CUresult find_function(CUfunction *function, CUlibrary library, const char *name) {
    START;
    TRY(refusal(KERNEL));
    pthread_mutex_lock(&lock);
    CUfunction found = library->functions;
    while (found && strcmp(found->name, name))
        found = found->next;
    pthread_mutex_unlock(&lock);
    if (!found) {
        Parameters parameters;
        NEED(python.find(library->number, name, &parameters), NOT_FOUND);
        found = calloc(1, sizeof *found);
        found->magic = FUNCTION_MAGIC, found->module = library->number, found->parameters = parameters;
        snprintf(found->name, sizeof found->name, "%s", name);
        for (int i = 0; i < MAX_DEVICES; i++)
            found->dynamic[i] = (48 << 10) - parameters.shared;
        pthread_mutex_lock(&lock);
        found->next = library->functions;
        library->functions = found;
        pthread_mutex_unlock(&lock);
    }
    *function = found;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    return find_function((CUfunction *)kernel, library, name);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    return find_function(function, (CUlibrary)module, name);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    CURRENT;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *size, CUlibrary library, const char *name) {
    CURRENT;
    uint64_t address, nbytes;
    NEED(python.find_global(library->number, name, context->device, &address, &nbytes), NOT_FOUND);
    if (pointer)
        *pointer = address;
    if (size)
        *size = nbytes;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *size, CUmodule module, const char *name) {
    return cuLibraryGetGlobal(pointer, size, (CUlibrary)module, name);
}

CUresult cuFuncGetName(const char **name, CUfunction function) {
    START;
    *name = function->name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel) {
    return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    START;
    NEED(index < (size_t)function->parameters.count, INVALID_VALUE);
    *offset = function->parameters.offsets[index];
    if (size)
        *size = function->parameters.sizes[index];
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
    return cuFuncGetParamInfo((CUfunction)kernel, index, offset, size);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice dev) {
    CUfunction function = (CUfunction)kernel;
    START;
    NEED_DEVICE(dev);
    NEED(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX, INVALID_VALUE);
    NEED(function && function->magic == FUNCTION_MAGIC, INVALID_HANDLE);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK   ? function->parameters.threads
             : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES     ? function->parameters.shared
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS              ? 32
             : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION           ? 75
             : attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION        ? 90
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? function->dynamic[dev]
             : attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? -1
                                                                     : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    CURRENT;
    return cuKernelGetAttribute(value, attribute, (CUkernel)function, context->device);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice dev) {
    CUfunction function = (CUfunction)kernel;
    START;
    NEED_DEVICE(dev);
    NEED(function && function->magic == FUNCTION_MAGIC, INVALID_HANDLE);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        NEED(value >= 0 && value + function->parameters.shared <= 227 << 10, INVALID_VALUE);
        function->dynamic[dev] = value;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CURRENT;
    return cuKernelSetAttribute(attribute, value, (CUkernel)function, context->device);
}

static int blocks_of(CUfunction function, int threads, size_t shared) {
    size_t bytes = function->parameters.shared + shared + 1024;
    int by_threads = threads > 0 ? 2048 / ((threads + 31) / 32 * 32) : 0;
    int by_memory = (228ul << 10) / bytes;
    int count = by_threads < by_memory ? by_threads : by_memory;
    return count < 32 ? count : 32;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function, int threads,
                                                              size_t shared, unsigned flags) {
    CURRENT;
    *count = blocks_of(function, threads, shared);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                     size_t shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                          CUoccupancyB2DSize bytes_of, size_t shared, int limit) {
    CURRENT;
    *block = limit && limit < function->parameters.threads ? limit : function->parameters.threads;
    *grid = 132 * blocks_of(function, *block, shared);
    return CUDA_SUCCESS;
}

/* --- launches ----------------------------------------------------------------------------------- */

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream handle, void **values, void **extra) {
    CURRENT;
    FIND_STREAM;
    TRY(refusal(LAUNCH));
    NEED(function && function->magic == FUNCTION_MAGIC, INVALID_HANDLE);
    NEED(stream->context == context, INVALID_HANDLE);
    NEED(!extra, NOT_SUPPORTED);
    NEED(gx && gy && gz && bx && by && bz, INVALID_VALUE);
    NEED(gx <= 2147483647 && gy <= 65535 && gz <= 65535, INVALID_VALUE);
    NEED(bx <= 1024 && by <= 1024 && bz <= 64 && bx * by * bz <= 1024, INVALID_VALUE);
    NEED(bx * by * bz <= (unsigned)function->parameters.threads, LAUNCH_OUT_OF_RESOURCES);
    NEED(shared <= (unsigned)function->dynamic[context->device], INVALID_VALUE);
    const Parameters *parameters = &function->parameters;
    size_t size = 0;
    for (int i = 0; i < parameters->count; i++) {
        NEED(values && values[i], INVALID_VALUE);
        size = parameters->offsets[i] + parameters->sizes[i];
    }
    Work *work = calloc(1, sizeof *work);
    char *staged = calloc(1, size + 1);
    for (int i = 0; i < parameters->count; i++)
        memcpy(staged + parameters->offsets[i], values[i], parameters->sizes[i]);
    *work = (Work){.kind = DO_LAUNCH, .function = function, .dims = {gx, gy, gz, bx, by, bz}};
    work->shared = shared, work->staged = staged;
    submit(stream, work);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **values, void **extra) {
    NEED(config, INVALID_VALUE);
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                          config->blockDimX, config->blockDimY, config->blockDimZ,
                          config->sharedMemBytes, config->hStream, values, extra);
}

/* --- errors and the table of functions ---------------------------------------------------------- */

#define ERRORS(X)                                                                                        \
    X(SUCCESS, "no error")                                                                               \
    X(ERROR_INVALID_VALUE, "invalid argument")                                                           \
    X(ERROR_OUT_OF_MEMORY, "out of memory")                                                              \
    X(ERROR_NOT_INITIALIZED, "initialization error")                                                     \
    X(ERROR_DEINITIALIZED, "driver shutting down")                                                       \
    X(ERROR_DEVICE_UNAVAILABLE, "device(s) is/are busy or unavailable")                                  \
    X(ERROR_NO_DEVICE, "no device was found")                                                            \
    X(ERROR_INVALID_DEVICE, "invalid device ordinal")                                                    \
    X(ERROR_INVALID_IMAGE, "device kernel image is invalid")                                             \
    X(ERROR_INVALID_CONTEXT, "invalid device context")                                                   \
    X(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")               \
    X(ERROR_INVALID_PTX, "a PTX JIT compilation failed")                                                 \
    X(ERROR_INVALID_HANDLE, "invalid resource handle")                                                   \
    X(ERROR_NOT_FOUND, "named symbol not found")                                                         \
    X(ERROR_NOT_READY, "device not ready")                                                               \
    X(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")                                 \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")                          \
    X(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")                                   \
    X(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")                               \
    X(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")                                 \
    X(ERROR_MISALIGNED_ADDRESS, "misaligned address")                                                    \
    X(ERROR_LAUNCH_FAILED, "unspecified launch failure")                                                 \
    X(ERROR_NOT_SUPPORTED, "operation not supported")                                                    \
    X(ERROR_UNKNOWN, "unknown error")

CUresult cuGetErrorName(CUresult error, const char **text) {
    switch (error) {
#define NAME(name, words)                                                                                \
    case CUDA_##name:                                                                                    \
        *text = "CUDA_" #name;                                                                           \
        return CUDA_SUCCESS;
        ERRORS(NAME)
    default:
        *text = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    switch (error) {
#define WORDS(name, words)                                                                               \
    case CUDA_##name:                                                                                    \
        *text = words;                                                                                   \
        return CUDA_SUCCESS;
        ERRORS(WORDS)
    default:
        *text = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

#undef cuGetProcAddress
CUresult cuGetProcAddress_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* Names as they are asked for, the first CUDA version with this form, and the function. */
static const struct {
    const char *name;
    int since;
    void *function;
} table[] = {
#define PLAIN(name) {#name, 0, (void *)name},
#define FORM(name, since, suffix) {#name, since, (void *)name##suffix},
    PLAIN(cuInit) PLAIN(cuDriverGetVersion) PLAIN(cuGetErrorName) PLAIN(cuGetErrorString)
    PLAIN(cuDeviceGetCount) PLAIN(cuDeviceGet) PLAIN(cuDeviceGetName) PLAIN(cuDeviceGetAttribute)
    PLAIN(cuDeviceGetPCIBusId) PLAIN(cuDeviceCanAccessPeer) PLAIN(cuDeviceGetP2PAttribute)
    PLAIN(cuDeviceGetDefaultMemPool) PLAIN(cuDeviceGetMemPool)
    PLAIN(cuDevicePrimaryCtxRetain) PLAIN(cuDevicePrimaryCtxGetState)
    PLAIN(cuCtxGetCurrent) PLAIN(cuCtxSetCurrent) PLAIN(cuCtxGetFlags) PLAIN(cuCtxGetId)
    PLAIN(cuCtxGetApiVersion) PLAIN(cuCtxGetStreamPriorityRange) PLAIN(cuCtxGetLimit)
    PLAIN(cuCtxEnablePeerAccess) PLAIN(cuCtxDisablePeerAccess)
    PLAIN(cuStreamCreate) PLAIN(cuStreamCreateWithPriority) PLAIN(cuStreamGetFlags)
    PLAIN(cuStreamGetPriority) PLAIN(cuStreamGetDevice) PLAIN(cuStreamGetId) PLAIN(cuStreamIsCapturing)
    PLAIN(cuStreamQuery) PLAIN(cuStreamSynchronize) PLAIN(cuStreamWaitEvent) PLAIN(cuStreamAddCallback)
    PLAIN(cuLaunchHostFunc)
    PLAIN(cuEventCreate) PLAIN(cuEventRecord) PLAIN(cuEventRecordWithFlags) PLAIN(cuEventQuery)
    PLAIN(cuEventSynchronize)
    PLAIN(cuMemAllocManaged) PLAIN(cuMemHostAlloc) PLAIN(cuMemFreeHost) PLAIN(cuMemHostGetFlags)
    PLAIN(cuPointerGetAttribute) PLAIN(cuPointerGetAttributes) PLAIN(cuPointerSetAttribute)
    PLAIN(cuMemcpyAsync) PLAIN(cuMemcpy) PLAIN(cuMemcpyPeerAsync)
    PLAIN(cuMemsetD8Async) PLAIN(cuMemsetD16Async) PLAIN(cuMemsetD32Async)
    PLAIN(cuMemsetD2D8Async) PLAIN(cuMemsetD2D16Async) PLAIN(cuMemsetD2D32Async)
    PLAIN(cuMemPoolGetAttribute) PLAIN(cuMemPoolSetAttribute) PLAIN(cuMemAllocFromPoolAsync)
    PLAIN(cuMemAllocAsync) PLAIN(cuMemFreeAsync)
    PLAIN(cuLibraryLoadData) PLAIN(cuLibraryUnload) PLAIN(cuLibraryGetKernel) PLAIN(cuLibraryGetModule)
    PLAIN(cuLibraryGetGlobal) PLAIN(cuModuleLoadData) PLAIN(cuModuleLoadDataEx) PLAIN(cuModuleUnload)
    PLAIN(cuModuleGetFunction) PLAIN(cuModuleGetLoadingMode) PLAIN(cuKernelGetFunction)
    PLAIN(cuKernelGetName) PLAIN(cuKernelGetParamInfo) PLAIN(cuKernelGetAttribute)
    PLAIN(cuKernelSetAttribute) PLAIN(cuFuncGetName) PLAIN(cuFuncGetParamInfo) PLAIN(cuFuncGetAttribute)
    PLAIN(cuFuncSetAttribute) PLAIN(cuOccupancyMaxActiveBlocksPerMultiprocessor)
    PLAIN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) PLAIN(cuOccupancyMaxPotentialBlockSize)
    PLAIN(cuLaunchKernel) PLAIN(cuLaunchKernelEx)
    FORM(cuGetProcAddress, 11030, ) FORM(cuGetProcAddress, 12000, _v2)
    {"cuGetProcAddress_v2", 0, (void *)cuGetProcAddress_v2},
    FORM(cuDeviceGetUuid, 11040, _v2) FORM(cuDeviceTotalMem, 3020, _v2)
    FORM(cuDevicePrimaryCtxRelease, 11000, _v2)
    FORM(cuCtxPushCurrent, 4000, _v2) FORM(cuCtxPopCurrent, 4000, _v2)
    FORM(cuCtxGetDevice, 2000, ) FORM(cuCtxSynchronize, 2000, )
    FORM(cuStreamGetCtx, 9020, ) FORM(cuStreamGetCtx, 12050, _v2)
    FORM(cuStreamBeginCapture, 10010, _v2) FORM(cuStreamEndCapture, 10000, )
    FORM(cuStreamDestroy, 4000, _v2) FORM(cuStreamGetCaptureInfo, 12030, _v3)
    FORM(cuEventDestroy, 4000, _v2) FORM(cuEventElapsedTime, 2000, _v2)
    FORM(cuMemAlloc, 3020, _v2) FORM(cuMemAllocHost, 3020, _v2) FORM(cuMemFree, 3020, _v2)
    FORM(cuMemGetInfo, 3020, _v2) FORM(cuMemGetAddressRange, 3020, _v2)
    FORM(cuMemHostGetDevicePointer, 3020, _v2)
    FORM(cuMemcpyHtoD, 3020, _v2) FORM(cuMemcpyDtoH, 3020, _v2) FORM(cuMemcpyDtoD, 3020, _v2)
    FORM(cuMemcpyHtoDAsync, 3020, _v2) FORM(cuMemcpyDtoHAsync, 3020, _v2)
    FORM(cuMemcpyDtoDAsync, 3020, _v2) FORM(cuMemcpy2D, 3020, _v2) FORM(cuMemcpy2DAsync, 3020, _v2)
    FORM(cuMemsetD8, 3020, _v2) FORM(cuMemsetD16, 3020, _v2) FORM(cuMemsetD32, 3020, _v2)
    FORM(cuMemPrefetchAsync, 12020, _v2) FORM(cuMemAdvise, 12020, _v2)
    FORM(cuModuleGetGlobal, 3020, _v2)
};

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    int best = -1;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name) && table[i].since <= version && table[i].since > best) {
            *function = table[i].function;
            best = table[i].since;
        }
    if (best < 0)
        *function = NULL;
    if (status)
        *status = best < 0 ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    return best < 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
