/* A library for LD_PRELOAD that counts, logs and breaks file operations below FAULT_DIR.
 *
 *   cc -O2 -shared -fPIC -o faultio.so faultio.c -ldl -lpthread
 *
 * FAULT_DIR   an absolute path; files outside of it are not watched, and neither are WAL indexes
 *             (`-shm`), which are memory and rebuilt after a crash.
 * FAULT_CTL   a file of one `struct control`, mapped shared: another process arms it and reads it.
 * FAULT_LOG   gets every change in the order in which it happened, for images of a power loss.
 * FAULT_FAST  if set, flushes do nothing: a test without a power loss then does not wait for them.
 *
 * Statically linked programs, and system calls that bypass the C library, are not watched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* shim.rs has the same numbers. */
enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, RENAME = 8, UNLINK = 16, OPEN = 32, MKDIR = 64 };
enum { NONE, ONCE, FROM, SHORT, KILL_BEFORE, KILL_AFTER, KILL_TORN, STOP };

struct control {
    uint64_t count;   /* operations of the classes in `mask` while armed */
    uint64_t fail_at; /* the number of the operation to break, from 1 */
    uint64_t fired;   /* the number of broken operations */
    uint32_t mode, mask, error, armed;
    char hit[216];    /* the first broken operation and its path */
};

static struct control idle, *control = &idle;
static char dir[PATH_MAX];
static size_t dir_length;
static int log_fd = -1, is_fast;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The path of each watched descriptor. */
enum { DESCRIPTORS_MAX = 65536 };
static char *paths[DESCRIPTORS_MAX];

#define REAL(type, name, ...) static type (*real_##name)(__VA_ARGS__)
REAL(ssize_t, write, int, const void *, size_t);
REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
REAL(ssize_t, writev, int, const struct iovec *, int);
REAL(int, fdatasync, int);
REAL(int, fsync, int);
REAL(int, ftruncate64, int, off64_t);
REAL(int, rename, const char *, const char *);
REAL(int, unlink, const char *);
REAL(int, mkdir, const char *, mode_t);
REAL(int, close, int);
REAL(int, open64, const char *, int, ...);
REAL(int, openat64, int, const char *, int, ...);

static void begin(void) __attribute__((constructor));
static void begin(void) {
    static int done;
    if (done) return;
    done = 1;
#define LOAD(name) real_##name = dlsym(RTLD_NEXT, #name)
    LOAD(write); LOAD(pwrite64); LOAD(writev); LOAD(fdatasync); LOAD(fsync); LOAD(ftruncate64);
    LOAD(rename); LOAD(unlink); LOAD(mkdir); LOAD(close); LOAD(open64); LOAD(openat64);
    const char *folder = getenv("FAULT_DIR"), *shared = getenv("FAULT_CTL"), *log = getenv("FAULT_LOG");
    if (!folder) return;
    snprintf(dir, sizeof dir, "%s", folder);
    dir_length = strlen(dir);
    is_fast = getenv("FAULT_FAST") != NULL;
    if (shared) {
        int fd = real_open64(shared, O_RDWR | O_CLOEXEC);
        if (fd >= 0) {
            void *map = mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (map != MAP_FAILED) control = map;
            real_close(fd);
        }
    }
    if (log) log_fd = real_open64(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static const char *absolute(const char *path, char *full) {
    char cwd[PATH_MAX];
    if (!path || path[0] == '/' || !getcwd(cwd, sizeof cwd)) return path;
    snprintf(full, PATH_MAX, "%.2000s/%.2000s", cwd, path);
    return full;
}

static int is_watched(const char *path) {
    if (!dir_length || !path || strncmp(path, dir, dir_length)) return 0;
    size_t length = strlen(path);
    return length < 4 || strcmp(path + length - 4, "-shm");
}

static int has_path(int fd) { return fd >= 0 && fd < DESCRIPTORS_MAX && paths[fd]; }

/* Appends a record: type, length of the path, offset, length, path, data; in native byte order. */
static void note(uint32_t type, const char *path, uint64_t offset, const void *data, uint64_t length) {
    if (log_fd < 0) return;
    uint32_t path_length = (uint32_t)strlen(path);
    struct { uint32_t type, path_length; uint64_t offset, length; } head = { type, path_length, offset, length };
    struct iovec parts[3] = {
        { &head, sizeof head }, { (void *)path, path_length }, { (void *)data, data ? length : 0 }
    };
    if (real_writev(log_fd, parts, 3) < 0) abort();
}

/* Counts an operation. Returns the mode in which it must be broken, or NONE. */
static int judge(uint32_t operation, const char *path, const char *name) {
    if (!control->armed || !(control->mask & operation)) return NONE;
    uint64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    int is_hit = control->mode == FROM ? number >= control->fail_at : number == control->fail_at;
    if (control->mode == NONE || !control->fail_at || !is_hit) return NONE;
    if (!control->fired++) snprintf(control->hit, sizeof control->hit, "%s %.150s", name, path + dir_length);
    if (control->mode == KILL_BEFORE) { kill(getpid(), SIGKILL); for (;;) pause(); }
    if (control->mode == STOP) { kill(getpid(), SIGSTOP); return NONE; }
    return (int)control->mode;
}

static int is_error(int verdict) {
    if (verdict != ONCE && verdict != FROM) return 0;
    errno = (int)control->error;
    return 1;
}

static void end_if_told(int verdict) {
    if (verdict == KILL_AFTER || verdict == KILL_TORN) { kill(getpid(), SIGKILL); for (;;) pause(); }
}

#define ENTER begin(); pthread_mutex_lock(&lock)
#define LEAVE do { int saved = errno; pthread_mutex_unlock(&lock); errno = saved; } while (0)
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

static int open_path(int at, const char *path, int flags, mode_t mode) {
    begin();
    char buffer[PATH_MAX];
    const char *full = absolute(path, buffer);
    if (!is_watched(full)) return real_openat64(at, path, flags, mode);
    ENTER;
    int verdict = judge(OPEN, full, "open");
    if (is_error(verdict)) { LEAVE; return -1; }
    struct stat found;
    int is_new = (flags & O_CREAT) && stat(full, &found) != 0;
    int fd = real_openat64(at, path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS_MAX) {
        free(paths[fd]);
        paths[fd] = strdup(full);
        if (is_new) note('C', full, 0, NULL, 0);
        else if (flags & O_TRUNC) note('T', full, 0, NULL, 0);
    }
    end_if_told(verdict);
    LEAVE;
    return fd;
}
int open64(const char *path, int flags, ...) { MODE; return open_path(AT_FDCWD, path, flags, mode); }
int open(const char *path, int flags, ...) { MODE; return open_path(AT_FDCWD, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE; return open_path(at, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE; return open_path(at, path, flags, mode); }

int close(int fd) {
    begin();
    if (has_path(fd)) { ENTER; free(paths[fd]); paths[fd] = NULL; LEAVE; }
    return real_close(fd);
}

ssize_t pwrite64(int fd, const void *buffer, size_t length, off64_t offset) {
    begin();
    if (!has_path(fd)) return real_pwrite64(fd, buffer, length, offset);
    ENTER;
    int verdict = judge(WRITE, paths[fd], "pwrite");
    if (is_error(verdict)) { LEAVE; return -1; }
    if ((verdict == SHORT || verdict == KILL_TORN) && length > 1) length /= 2;
    ssize_t done = real_pwrite64(fd, buffer, length, offset);
    if (done > 0) note('W', paths[fd], (uint64_t)offset, buffer, (uint64_t)done);
    end_if_told(verdict);
    LEAVE;
    return done;
}
ssize_t pwrite(int fd, const void *buffer, size_t length, off_t offset) { return pwrite64(fd, buffer, length, offset); }

ssize_t write(int fd, const void *buffer, size_t length) {
    begin();
    if (!has_path(fd)) return real_write(fd, buffer, length);
    ENTER;
    int verdict = judge(WRITE, paths[fd], "write");
    if (is_error(verdict)) { LEAVE; return -1; }
    if ((verdict == SHORT || verdict == KILL_TORN) && length > 1) length /= 2;
    off64_t offset = lseek64(fd, 0, SEEK_CUR);
    ssize_t done = real_write(fd, buffer, length);
    if (done > 0) note('W', paths[fd], (uint64_t)offset, buffer, (uint64_t)done);
    end_if_told(verdict);
    LEAVE;
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    begin();
    if (!has_path(fd)) return real_writev(fd, parts, count);
    ssize_t all = 0;
    for (int at = 0; at < count; at++) {
        ssize_t done = write(fd, parts[at].iov_base, parts[at].iov_len);
        if (done < 0) return all ? all : done;
        all += done;
        if ((size_t)done < parts[at].iov_len) break;
    }
    return all;
}

static int sync_file(int fd, int (*real)(int), const char *name) {
    if (!has_path(fd)) return real(fd);
    ENTER;
    int verdict = judge(SYNC, paths[fd], name);
    /* After a failed flush, Linux considers the pages clean: 'F' records that they were lost. */
    if (is_error(verdict)) { note('F', paths[fd], 0, NULL, 0); LEAVE; return -1; }
    int failed = is_fast ? 0 : real(fd);
    if (!failed) note('S', paths[fd], 0, NULL, 0);
    end_if_told(verdict);
    LEAVE;
    return failed;
}
int fdatasync(int fd) { begin(); return sync_file(fd, real_fdatasync, "fdatasync"); }
int fsync(int fd) { begin(); return sync_file(fd, real_fsync, "fsync"); }

int ftruncate64(int fd, off64_t length) {
    begin();
    if (!has_path(fd)) return real_ftruncate64(fd, length);
    ENTER;
    int verdict = judge(TRUNCATE, paths[fd], "ftruncate");
    if (is_error(verdict)) { LEAVE; return -1; }
    int failed = real_ftruncate64(fd, length);
    if (!failed) note('T', paths[fd], (uint64_t)length, NULL, 0);
    end_if_told(verdict);
    LEAVE;
    return failed;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int rename(const char *from, const char *to) {
    begin();
    char buffers[2][PATH_MAX];
    const char *old = absolute(from, buffers[0]), *new = absolute(to, buffers[1]);
    if (!is_watched(old) && !is_watched(new)) return real_rename(from, to);
    ENTER;
    int verdict = judge(RENAME, old, "rename");
    if (is_error(verdict)) { LEAVE; return -1; }
    int failed = real_rename(from, to);
    if (!failed) note('R', old, 0, new, strlen(new));
    end_if_told(verdict);
    LEAVE;
    return failed;
}

int unlink(const char *path) {
    begin();
    char buffer[PATH_MAX];
    const char *full = absolute(path, buffer);
    if (!is_watched(full)) return real_unlink(path);
    ENTER;
    int verdict = judge(UNLINK, full, "unlink");
    if (is_error(verdict)) { LEAVE; return -1; }
    int failed = real_unlink(path);
    if (!failed) note('U', full, 0, NULL, 0);
    end_if_told(verdict);
    LEAVE;
    return failed;
}

int mkdir(const char *path, mode_t mode) {
    begin();
    char buffer[PATH_MAX];
    const char *full = absolute(path, buffer);
    if (!is_watched(full)) return real_mkdir(path, mode);
    ENTER;
    int verdict = judge(MKDIR, full, "mkdir");
    if (is_error(verdict)) { LEAVE; return -1; }
    int failed = real_mkdir(path, mode);
    if (!failed) note('D', full, 0, NULL, 0);
    end_if_told(verdict);
    LEAVE;
    return failed;
}
