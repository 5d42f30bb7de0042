#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "infer/host/pool.h"

#include <stdbool.h>
#include <unistd.h>

static void run_alone(const qi_pool_job *job)
{
    for (int32_t round = 0; round < job->rounds; round++)
        job->fn(job->context, round, 0, job->threads * job->pieces, 0);
}

#ifndef QI_THREADS

int qi_pool_threads(int wanted)
{
    (void)wanted;
    return 1;
}

void qi_pool_run(const qi_pool_job *job)
{
    run_alone(job);
}

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

/** How many processors this process may use, at least 1. */
static int processors_now(void)
{
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long const online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int qi_pool_threads(int wanted)
{
    int const threads = wanted < 1 ? processors_now() : wanted;
    return threads < QI_POOL_MOST_THREADS ? threads : QI_POOL_MOST_THREADS;
}

/* ------------------------------------------------------------------ teams */

enum {
    MOST_TEAMS = 32,
    LINE = 64,         /* bytes of a cache line: what threads write at the same time lies apart */
    SPIN_NS = 50000,   /* a thread that waits longer sleeps: waking it takes about 5000 */
    GRACE_PAUSES = 20, /* before a thread takes parts of others; a pause takes up to 50 ns */
    RETRY_RUNS = 1000, /* after the system refused a thread, runs until it is asked again */
    THREADS_BITS = 9,  /* of a state, below the number of the round */
    PIECES_BITS = 7,
    NEXT_BITS = 16 /* of a share, below the number of the round */
};

/**
 * Who may take which part. A share's word is (round << NEXT_BITS) + the next piece of the share
 * that nobody has taken. A word of an earlier round means: none is taken yet. So nobody has to
 * reset the words between rounds, and a thread that slept through a round finds that it is over.
 */
typedef struct share {
    _Alignas(LINE) atomic_ullong word;
    /* Of the thread whose share it is, if that was started: */
    struct team *team;
    int thread;
    unsigned long long born; /* the state then */
    pthread_t id;
} share;

/**
 * The threads of one caller. state is (round << 16) + (threads << 7) + pieces. The number of a
 * round is never used again. threads is 0 between two jobs.
 */
typedef struct team {
    _Alignas(LINE) atomic_ullong state;
    atomic_int workers_asleep, caller_asleep;
    atomic_bool patient;              /* each thread has its own processor: it may spin */
    atomic_int done;                  /* parts of this round that have ended */
    _Alignas(LINE) atomic_bool taken; /* by a caller */
    /* From here on: written by the caller before it changes the state, else only read. */
    qi_pool_job job;
    unsigned long long first; /* round 0 of the job */
    int workers;              /* threads that were started */
    int processors;           /* when that was */
    int retry;                /* runs until the system is asked for threads again */
    pthread_mutex_t lock;     /* of the two conditions */
    pthread_cond_t work, rest;
    share shares[QI_POOL_MOST_THREADS];
} team;

/** All teams, in the order of their use. A team is ready when its mutex is made: see prepare. */
static team teams[MOST_TEAMS];
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool usable;

/** Is this thread inside a job? */
static _Thread_local bool inside;

static unsigned long long state_of(unsigned long long round, int threads, int pieces)
{
    return round << (THREADS_BITS + PIECES_BITS) | (unsigned)threads << PIECES_BITS |
           (unsigned)pieces;
}

static unsigned long long round_of(unsigned long long state)
{
    return state >> (THREADS_BITS + PIECES_BITS);
}

static int threads_of(unsigned long long state)
{
    return (int)(state >> PIECES_BITS & ((1u << THREADS_BITS) - 1));
}

static int pieces_of(unsigned long long state)
{
    return (int)(state & ((1u << PIECES_BITS) - 1));
}

/* ------------------------------------------------------------------ waiting */

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/** The state, once it is another than `old` or the time is over. */
static unsigned long long spin(team *t, unsigned long long old)
{
    enum { PAUSES = 8 }; /* between two looks at the clock */
    long long const end = now_ns() + SPIN_NS;
    unsigned long long state;
    do {
        for (int i = 0; i < PAUSES; i++) {
            state = atomic_load_explicit(&t->state, memory_order_acquire);
            if (state != old)
                return state;
            pause_briefly();
        }
    } while (now_ns() < end);
    return state;
}

/**
 * Sleep until the state is another than `old`. Who changes the state looks at `asleep` afterwards,
 * who sleeps looks at the state after it has said so: one of them sees the other.
 */
static unsigned long long sleep_on(team *t, unsigned long long old, atomic_int *asleep,
                                   pthread_cond_t *condition)
{
    unsigned long long state;
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(asleep, 1);
    while ((state = atomic_load(&t->state)) == old)
        pthread_cond_wait(condition, &t->lock);
    atomic_fetch_sub(asleep, 1);
    pthread_mutex_unlock(&t->lock);
    return state;
}

/** The state, once it is another than `old`. */
static unsigned long long wait_for_change(team *t, unsigned long long old, int thread)
{
    unsigned long long state = atomic_load_explicit(&t->state, memory_order_acquire);
    if (state == old && atomic_load_explicit(&t->patient, memory_order_relaxed))
        state = spin(t, old);
    if (state != old)
        return state;
    return thread == 0 ? sleep_on(t, old, &t->caller_asleep, &t->rest)
                       : sleep_on(t, old, &t->workers_asleep, &t->work);
}

/**
 * Let all threads see a new state, the sleeping ones too. The state must be seen before `asleep` is
 * looked at. A store would do by the rules of C, but QEMU 7.2 lets the loads of an ARM program
 * overtake it, and a thread then slept for ever; it does not do so with an exchange.
 */
static void change(team *t, unsigned long long state)
{
    (void)atomic_exchange(&t->state, state);
    bool const workers = threads_of(state) > 0 && atomic_load(&t->workers_asleep);
    bool const caller = atomic_load(&t->caller_asleep);
    if (!workers && !caller)
        return;
    pthread_mutex_lock(&t->lock); /* whoever says that it sleeps does so, from here on */
    if (workers)
        pthread_cond_broadcast(&t->work);
    if (caller)
        pthread_cond_signal(&t->rest);
    pthread_mutex_unlock(&t->lock);
}

/* ------------------------------------------------------------------ rounds */

/**
 * Take the next half of what is left of a share, so that few takings leave small pieces at the end;
 * returns how many pieces, from *first on. 0: there are none, or the round is over. A round cannot
 * end while a piece is taken and not done; so whoever has one may read the job.
 */
static int take_pieces(share *s, unsigned long long round, int pieces, int *first)
{
    unsigned long long word = atomic_load_explicit(&s->word, memory_order_relaxed);
    for (;;) {
        unsigned long long const its = word >> NEXT_BITS;
        int const next = its == round ? (int)(word & ((1u << NEXT_BITS) - 1)) : 0;
        if (its > round || next == pieces)
            return 0;
        int const count = (pieces - next + 1) / 2;
        if (atomic_compare_exchange_weak_explicit(&s->word, &word,
                                                  round << NEXT_BITS | (unsigned)(next + count),
                                                  memory_order_acquire, memory_order_relaxed)) {
            *first = next;
            return count;
        }
    }
}

/** Do what is left of the share `whose`; returns how many parts that were. */
static int do_share(team *t, int whose, unsigned long long state, int thread)
{
    int const pieces = pieces_of(state);
    int done = 0, first, count;
    while ((count = take_pieces(&t->shares[whose], round_of(state), pieces, &first)) > 0) {
        int32_t const part = whose * pieces + first;
        t->job.fn(t->job.context, (int32_t)(round_of(state) - t->first), part, part + count,
                  thread);
        done += count;
    }
    return done;
}

/** A round has ended: begin the next, or end the job. */
static void end_round(team *t, unsigned long long state)
{
    unsigned long long const next = round_of(state) + 1;
    bool const over = next - t->first == (unsigned long long)t->job.rounds;
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    change(t, state_of(next, over ? 0 : threads_of(state), pieces_of(state)));
}

/** Note that parts of a round have ended; was it all of them? */
static bool note_done(team *t, unsigned long long state, int done)
{
    int const parts = threads_of(state) * pieces_of(state);
    if (!done || atomic_fetch_add_explicit(&t->done, done, memory_order_acq_rel) + done < parts)
        return false;
    end_round(t, state);
    return true;
}

static bool has_ended(team *t, unsigned long long state)
{
    return atomic_load_explicit(&t->state, memory_order_relaxed) != state;
}

/**
 * Work in a round until all its parts are taken: on the own share, and then, if the others are not
 * done soon, on theirs. In small rounds that would only take cache lines away from them.
 */
static void do_round(team *t, unsigned long long state, int thread)
{
    int const threads = threads_of(state);
    if (note_done(t, state, do_share(t, thread, state, thread)))
        return;
    for (int i = 0; i < GRACE_PAUSES; i++) {
        if (has_ended(t, state))
            return;
        pause_briefly();
    }
    for (int i = 1; i < threads && !has_ended(t, state); i++) {
        int const whose = thread + i < threads ? thread + i : thread + i - threads;
        if (note_done(t, state, do_share(t, whose, state, thread)))
            return;
    }
}

/* ------------------------------------------------------------------ threads */

static void *work(void *context)
{
    const share *s = context;
    team *t = s->team;
    unsigned long long state = s->born;
    inside = true;
    for (;;) {
        state = wait_for_change(t, state, s->thread);
        if (s->thread < threads_of(state))
            do_round(t, state, s->thread);
        else if (threads_of(state) == 0 && pieces_of(state) == 0)
            return NULL; /* stop_all */
    }
}

/** Start the next worker. Signals are for the program's own threads. */
static bool start_worker(team *t)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    share *s = &t->shares[t->workers + 1];
    s->team = t;
    s->thread = t->workers + 1;
    s->born = atomic_load_explicit(&t->state, memory_order_relaxed);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool const started = pthread_create(&s->id, NULL, work, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->workers += started;
    return started;
}

/** Start what is missing for a job, as far as the system allows. */
static void start_workers(team *t, int workers)
{
    if (t->workers >= workers || t->retry-- > 0)
        return;
    t->processors = processors_now();
    t->retry = 0;
    while (t->workers < workers)
        if (!start_worker(t)) {
            t->retry = RETRY_RUNS;
            return;
        }
}

/** The threads of this process are gone after a fork, so all teams are new. */
static void make_teams(void)
{
    usable = true;
    for (int i = 0; i < MOST_TEAMS; i++) {
        team *t = &teams[i];
        usable &= !pthread_mutex_init(&t->lock, NULL) && !pthread_cond_init(&t->work, NULL) &&
                  !pthread_cond_init(&t->rest, NULL);
        atomic_store(&t->taken, false);
        atomic_store(&t->workers_asleep, 0);
        atomic_store(&t->caller_asleep, 0);
        atomic_store(&t->done, 0);
        atomic_store(&t->state, state_of(round_of(atomic_load(&t->state)) + 1, 0, 1));
        t->workers = t->retry = 0;
    }
}

static void prepare(void)
{
    make_teams();
    usable &= !pthread_atfork(NULL, NULL, make_teams);
}

/** When the program ends, or unloads the library: end the threads that wait for work. */
__attribute__((destructor)) static void stop_all(void)
{
    for (int i = 0; i < MOST_TEAMS; i++) {
        team *t = &teams[i];
        if (atomic_exchange(&t->taken, true) || t->workers == 0)
            continue;
        pthread_mutex_lock(&t->lock);
        atomic_store(&t->state, state_of(round_of(atomic_load(&t->state)) + 1, 0, 0));
        pthread_cond_broadcast(&t->work);
        pthread_mutex_unlock(&t->lock);
        for (int k = 1; k <= t->workers; k++)
            pthread_join(t->shares[k].id, NULL);
    }
}

/* ------------------------------------------------------------------ jobs */

/** A team for this caller, or NULL. */
static team *take_team(void)
{
    pthread_once(&prepared, prepare);
    for (int i = 0; usable && i < MOST_TEAMS; i++)
        if (!atomic_load_explicit(&teams[i].taken, memory_order_relaxed) &&
            !atomic_exchange(&teams[i].taken, true))
            return &teams[i];
    return NULL;
}

static void run_together(team *t, const qi_pool_job *job)
{
    unsigned long long state = atomic_load_explicit(&t->state, memory_order_relaxed);
    t->job = *job;
    t->first = round_of(state) + 1;
    state = state_of(t->first, job->threads, job->pieces);
    atomic_store_explicit(&t->patient, job->threads <= t->processors, memory_order_relaxed);
    inside = true;
    change(t, state);
    while (threads_of(state) > 0) {
        do_round(t, state, 0);
        state = wait_for_change(t, state, 0);
    }
    inside = false;
}

void qi_pool_run(const qi_pool_job *job)
{
    team *t = job->threads > 1 && job->rounds > 0 && !inside ? take_team() : NULL;
    if (!t) {
        run_alone(job);
        return;
    }
    start_workers(t, job->threads - 1);
    if (t->workers > 0)
        run_together(t, job);
    else
        run_alone(job);
    atomic_store_explicit(&t->taken, false, memory_order_release);
}

#endif
