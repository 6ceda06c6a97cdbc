/* A small libnvidia-ml.so.1 for the tests: it answers what a text file says, and reads that file anew at every call.
 *
 * NVML_STUB      path of the file: one "key value" a line, as "count 2", "gpu0.used 1000", "gpu0.mig1.uuid MIG-x".
 * NVML_STUB_LOG  path of a log: init, shutdown, and each misuse (a call after shutdown, in a forked child, in mid-shutdown).
 *
 * error.FUNCTION CODE          that function answers CODE
 * error.FUNCTION.gpu0 CODE     it does so for one device (gpu0.mig1 for a MIG instance)
 * error.gpu0 CODE              every function does so for that device
 * sleep_ms.FUNCTION N          that function takes N milliseconds
 * A number that is not there is answered as NVML's own "not available" (all ones); a text as NOT_SUPPORTED.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, VERSION = 25 };
enum { GPUS = 8, MIGS = 8 };

typedef struct { char key[32]; int gpu, mig; } Device;
typedef unsigned long long u64;

static Device devices[GPUS * (MIGS + 1)];
static atomic_int opened, in_flight;
static pid_t opener;

static void note(const char *what, const char *function) {
    const char *path = getenv("NVML_STUB_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    fprintf(log, "%s %s\n", what, function);
    fclose(log);
}

static int look(const char *key, char *value, size_t size) {
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    size_t n = strlen(key);
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, n) || line[n] != ' ') continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(value, size, "%s", line + n + 1);
        found = 1;
    }
    fclose(file);
    return found;
}

static u64 number(const char *device, const char *what, u64 otherwise) {
    char key[96], value[128];
    snprintf(key, sizeof key, "%s%s%s", device, *device ? "." : "", what);
    return look(key, value, sizeof value) ? strtoull(value, NULL, 0) : otherwise;
}

static int text(const char *device, const char *what, char *out, unsigned size) {
    char key[96];
    snprintf(key, sizeof key, "%s%s%s", device, *device ? "." : "", what);
    return look(key, out, size) ? OK : NOT_SUPPORTED;
}

/* Every function passes here: misuse, made-up delays and errors. Then "leave" must be called. */
static int enter(const char *function, const Device *device) {
    char key[128];
    const char *name = device ? device->key : "";
    int code = OK;
    atomic_fetch_add(&in_flight, 1);
    if (opener && opener != getpid()) note("IN_FORKED_CHILD", function);
    snprintf(key, sizeof key, "sleep_ms.%s", function);
    usleep((useconds_t)(1000 * number("", key, 0)));
    if (!opened) {
        note("AFTER_SHUTDOWN", function);
        return UNINITIALIZED;
    }
    if (device) {
        snprintf(key, sizeof key, "error.%s.%s", function, name);
        code = (int)number("", key, 0);
        snprintf(key, sizeof key, "error.%s", name);
        if (!code) code = (int)number("", key, 0);
    }
    snprintf(key, sizeof key, "error.%s", function);
    return code ? code : (int)number("", key, 0);
}

static int leave(int code) {
    atomic_fetch_sub(&in_flight, 1);
    return code;
}

#define ENTER(device) int code = enter(__func__ , device); if (code) return leave(code)

static Device *slot(int gpu, int mig) {
    Device *d = &devices[gpu * (MIGS + 1) + mig + 1];
    d->gpu = gpu, d->mig = mig;
    if (mig < 0) snprintf(d->key, sizeof d->key, "gpu%d", gpu);
    else snprintf(d->key, sizeof d->key, "gpu%d.mig%d", gpu, mig);
    return d;
}

int nvmlInitWithFlags(unsigned flags) {
    int code = (int)number("", "error.nvmlInit", 0);
    (void)flags;
    if (opener && opener != getpid()) note("IN_FORKED_CHILD", __func__);
    if (code) return code;
    atomic_fetch_add(&opened, 1);
    opener = getpid();
    note("init", "");
    return OK;
}

int nvmlShutdown(void) {
    if (opener && opener != getpid()) note("IN_FORKED_CHILD", __func__);
    if (!opened) return UNINITIALIZED;
    if (in_flight) note("SHUTDOWN_IN_MID_CALL", "");
    atomic_fetch_sub(&opened, 1);
    note("shutdown", "");
    return OK;
}

const char *nvmlErrorString(int code) {
    static char out[32];
    snprintf(out, sizeof out, "stub error %d", code);
    return out;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) { ENTER(NULL); return leave(text("", "driver", out, size)); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { ENTER(NULL); return leave(text("", "nvml", out, size)); }

int nvmlDeviceGetCount_v2(unsigned *out) {
    ENTER(NULL);
    *out = (unsigned)number("", "count", 0);
    return leave(OK);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    Device *d = index < GPUS ? slot((int)index, -1) : NULL;
    ENTER(d);
    if (!d || index >= number("", "count", 0)) return leave(INVALID);
    *out = d;
    return leave(OK);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **out) {
    ENTER(NULL);
    for (int gpu = 0; gpu < (int)number("", "count", 0); gpu++) {
        for (int mig = -1; mig < MIGS; mig++) {
            char value[96], key[64];
            Device *d = slot(gpu, mig);
            if (text(d->key, "uuid", value, sizeof value) || strcmp(value, uuid)) continue;
            snprintf(key, sizeof key, "error.%s", d->key);
            code = (int)number("", key, 0);
            if (!code) *out = d;
            return leave(code);
        }
        { /* as the real one: a lost GPU on the way ends the search */
            char key[64];
            snprintf(key, sizeof key, "error.gpu%d", gpu);
            code = (int)number("", key, 0);
            if (code) return leave(code);
        }
    }
    return leave(NOT_FOUND);
}

int nvmlDeviceGetUUID(Device *d, char *out, unsigned size) { ENTER(d); return leave(text(d->key, "uuid", out, size)); }
int nvmlDeviceGetName(Device *d, char *out, unsigned size) { ENTER(d); return leave(text(d->key, "name", out, size)); }

int nvmlDeviceGetMigMode(Device *d, unsigned *current, unsigned *pending) {
    ENTER(d);
    u64 mode = number(d->key, "mig_mode", NOT_SUPPORTED);
    *current = *pending = (unsigned)mode;
    return leave(mode == NOT_SUPPORTED ? NOT_SUPPORTED : OK);
}

int nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *out) { ENTER(d); *out = MIGS; return leave(OK); }

int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned index, Device **out) {
    char value[96];
    ENTER(d);
    if (d->mig >= 0 || index >= MIGS) return leave(INVALID);
    Device *mig = slot(d->gpu, (int)index);
    if (text(mig->key, "uuid", value, sizeof value)) return leave(NOT_FOUND);
    *out = mig;
    return leave(OK);
}

static int whole(Device *d, const char *what, unsigned *out) {
    u64 value = number(d->key, what, NOT_SUPPORTED + (1ull << 40));
    *out = (unsigned)value;
    return value >> 40 ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetGpuInstanceId(Device *d, unsigned *out) { ENTER(d); return leave(whole(d, "gi", out)); }
int nvmlDeviceGetComputeInstanceId(Device *d, unsigned *out) { ENTER(d); return leave(whole(d, "ci", out)); }
int nvmlDeviceGetPowerUsage(Device *d, unsigned *out) { ENTER(d); return leave(whole(d, "power_mw", out)); }

int nvmlDeviceGetTemperature(Device *d, unsigned sensor, unsigned *out) {
    (void)sensor;
    ENTER(d);
    return leave(whole(d, "temperature", out));
}

typedef struct { unsigned version, sensor; int temperature; } Temperature;
int nvmlDeviceGetTemperatureV(Device *d, Temperature *t) {
    ENTER(d);
    if (t->version != (sizeof *t | 1u << 24)) return leave(VERSION);
    return leave(whole(d, "temperature", (unsigned *)&t->temperature));
}

int nvmlDeviceGetClockInfo(Device *d, unsigned type, unsigned *out) {
    ENTER(d);
    return leave(whole(d, type == 1 ? "sm_mhz" : "memory_mhz", out));
}

typedef struct { unsigned gpu, memory; } Utilization;
int nvmlDeviceGetUtilizationRates(Device *d, Utilization *u) {
    ENTER(d);
    int bad = whole(d, "gpu_percent", &u->gpu);
    u->memory = (unsigned)number(d->key, "memory_percent", ~0u);
    return leave(bad);
}

typedef struct { unsigned version, mode; } Addressing;
int nvmlDeviceGetAddressingMode(Device *d, Addressing *a) {
    ENTER(d);
    if (a->version != (sizeof *a | 1u << 24)) return leave(VERSION);
    return leave(whole(d, "addressing", &a->mode));
}

typedef struct { u64 total, free, used; } Memory;
int nvmlDeviceGetMemoryInfo(Device *d, Memory *m) {
    ENTER(d);
    m->total = number(d->key, "total", ~0ull);
    m->free = number(d->key, "free", ~0ull);
    m->used = number(d->key, "used", ~0ull);
    if (m->used != ~0ull) m->used += number(d->key, "reserved", 0);
    return leave(OK);
}

typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryV2;
int nvmlDeviceGetMemoryInfo_v2(Device *d, MemoryV2 *m) {
    ENTER(d);
    if (m->version != (sizeof *m | 2u << 24)) return leave(VERSION);
    m->total = number(d->key, "total", ~0ull);
    m->reserved = number(d->key, "reserved", ~0ull);
    m->free = number(d->key, "free", ~0ull);
    m->used = number(d->key, "used", ~0ull);
    return leave(OK);
}

typedef struct { unsigned pid; u64 used; unsigned gi, ci; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *count, Process *out) {
    unsigned room = *count;
    ENTER(d);
    *count = (unsigned)number(d->key, "processes", 0);
    if (!*count) return leave(OK);
    if (!out || room < *count) return leave(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < *count; i++) {
        char what[32];
        snprintf(what, sizeof what, "pid%u", i);
        out[i].pid = (unsigned)number(d->key, what, 0);
        snprintf(what, sizeof what, "pid%u.used", i);
        out[i].used = number(d->key, what, ~0ull);
        out[i].gi = out[i].ci = ~0u;
    }
    return leave(OK);
}
