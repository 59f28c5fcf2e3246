/* Threads, locks, stacks and clocks, by POSIX or by Windows, for `_fastpath_pool.c`. */

#include <stdint.h>

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

typedef SRWLOCK lock;
typedef CONDITION_VARIABLE condition;
#define NEW_LOCK SRWLOCK_INIT
#define NEW_CONDITION CONDITION_VARIABLE_INIT
#define THREAD_RESULT DWORD WINAPI /* of a function that `start_thread` takes */

static void take_lock(lock *gate) { AcquireSRWLockExclusive(gate); }
static void leave_lock(lock *gate) { ReleaseSRWLockExclusive(gate); }
static void wake_one(condition *event) { WakeConditionVariable(event); }
static void wait_for(condition *event, lock *gate) { SleepConditionVariableSRW(event, gate, INFINITE, 0); }

static void wait_briefly(condition *event, lock *gate, int64_t nanoseconds)
{
    SleepConditionVariableSRW(event, gate, (DWORD)(nanoseconds / 1000000), 0);
}

static int start_thread(LPTHREAD_START_ROUTINE function, void *argument)
{
    HANDLE thread = CreateThread(NULL, 0, function, argument, 0, NULL);
    return thread && CloseHandle(thread);
}

static int64_t now_ns(void)
{
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return ticks.QuadPart / rate.QuadPart * INT64_C(1000000000)
           + ticks.QuadPart % rate.QuadPart * INT64_C(1000000000) / rate.QuadPart;
}

static char *stack_of_thread(size_t *size)
{
    ULONG_PTR lowest, highest;
    GetCurrentThreadStackLimits(&lowest, &highest);
    *size = highest - lowest;
    return (char *)lowest;
}

/* A process of Windows cannot be forked. */
static int call_in_forks(void (*function)(void)) { return function != NULL; }

#else

#include <pthread.h>
#include <signal.h>
#include <time.h>

typedef pthread_mutex_t lock;
typedef pthread_cond_t condition;
#define NEW_LOCK PTHREAD_MUTEX_INITIALIZER
#define NEW_CONDITION PTHREAD_COND_INITIALIZER
#define THREAD_RESULT void *

static void take_lock(lock *gate) { pthread_mutex_lock(gate); }
static void leave_lock(lock *gate) { pthread_mutex_unlock(gate); }
static void wake_one(condition *event) { pthread_cond_signal(event); }
static void wait_for(condition *event, lock *gate) { pthread_cond_wait(event, gate); }

static void wait_briefly(condition *event, lock *gate, int64_t nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(event, gate, &until);
}

static int start_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for Python's threads */
    int has_started = !pthread_create(&thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return has_started && !pthread_detach(thread);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The lowest address of the calling thread's stack, or NULL if it is not known. */
static char *stack_of_thread(size_t *size)
{
#ifdef __APPLE__
    *size = pthread_get_stacksize_np(pthread_self());
    return (char *)pthread_get_stackaddr_np(pthread_self()) - *size;
#else
    pthread_attr_t attributes;
    void *lowest = NULL;
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        if (pthread_attr_getstack(&attributes, &lowest, size))
            lowest = NULL;
        pthread_attr_destroy(&attributes);
    }
    return lowest;
#endif
}

static int call_in_forks(void (*function)(void)) { return !pthread_atfork(NULL, NULL, function); }

#endif

/* Whether the calling thread has stack left for a call of a recursive function (`_language/recursion.py`).
 * A quarter stays free for functions without this check. */
static int has_stack(void)
{
    static _Thread_local char *end;
    char here;
    size_t size;
    char *lowest = end ? NULL : stack_of_thread(&size);
    if (lowest)
        end = lowest + size / 4;
    return &here > end;
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
