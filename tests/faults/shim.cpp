// Preloaded into a program (LD_PRELOAD): lets one system call or allocation of it fail, or writes down what it asks of
// the disk. From main on, so that what the loader does is left alone. It serves one thread: OMP_NUM_THREADS=1.
//
//   TESSERA_FAULT=CALL:N       the N-th CALL fails (0: none)
//   TESSERA_FAULT=CALL:N:on    and so does every one after it; the N-th write writes a half first, as a disk that fills
//   up TESSERA_FAULT_COUNT=FILE   gets the number of CALLs TESSERA_DISK_LOG=FILE      gets a record for each change of
//   the disk (tests/faults/disk_log.hpp)
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

bool armed = false, accumulates_fp32 = false;
const char* call = nullptr;  // what fails
long place = 0, count = 0;
int log_file = -1;

/// Whether this one fails; counts it.
bool fails(const char* name) {
  if (!armed || !call || strcmp(call, name) != 0) return false;
  ++count;
  return place != 0 && (count == place || (accumulates_fp32 && count > place));
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) (real(&::name, #name))

template <class Result>
Result failed(int error) {
  errno = error;
  return static_cast<Result>(-1);
}

void put(const void* bytes, size_t size) {
  for (const char* at = static_cast<const char*>(bytes); size > 0;) {
    const long written = syscall(SYS_write, log_file, at, size);
    if (written <= 0) _exit(99);
    at += written, size -= static_cast<size_t>(written);
  }
}

/// kind, two numbers, two texts.
void record(char kind, long number, long second, const void* text, size_t size, const char* other = "") {
  if (log_file < 0 || !armed) return;
  const int error = errno;
  const long header[] = {kind, number, second, static_cast<long>(size), static_cast<long>(strlen(other))};
  put(header, sizeof header);
  put(text, size);
  put(other, strlen(other));
  errno = error;
}
void record_path(char kind, long number, const char* path, const char* other = "") {
  record(kind, number, 0, path, strlen(path), other);
}

int (*program_main)(int, char**, char**) = nullptr;

int armed_main(int argc, char** argv, char** environment) {
  static char name[32];
  if (const char* fault = getenv("TESSERA_FAULT")) {
    char on[8] = "";
    if (sscanf(fault, "%31[a-z]:%ld:%7s", name, &place, on) < 2) _exit(99);
    call = name;
    accumulates_fp32 = on[0] != 0;
  }
  if (const char* path = getenv("TESSERA_DISK_LOG"))
    log_file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  armed = true;
  return program_main(argc, argv, environment);
}

__attribute__((destructor)) void tell() {
  armed = false;
  const char* const path = getenv("TESSERA_FAULT_COUNT");
  if (!path) return;
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", count);
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  syscall(SYS_write, file, text, size);
}

int opened(int folder, const char* path, int flags, mode_t mode) {
  if (fails("open")) return failed<int>(flags & O_CREAT ? ENOSPC : EMFILE);
  const long file = syscall(SYS_openat, folder, path, flags, mode);
  if (file < 0) return static_cast<int>(file);
  record_path('o', file, path);
  if (flags & O_TRUNC) record('t', file, 0, "", 0);
  return static_cast<int>(file);
}

mode_t mode_of(int flags, va_list list) { return flags & O_CREAT ? va_arg(list, mode_t) : 0; }

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  program_main = main;
  using Start = int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  return reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"))(armed_main, argc, argv, init, fini,
                                                                         loader_fini, stack_end);
}

#define OPEN(name)                              \
  int name(const char* path, int flags, ...) {  \
    va_list list;                               \
    va_start(list, flags);                      \
    const mode_t mode = mode_of(flags, list);   \
    va_end(list);                               \
    return opened(AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
#define OPEN_AT(name)                                      \
  int name(int folder, const char* path, int flags, ...) { \
    va_list list;                                          \
    va_start(list, flags);                                 \
    const mode_t mode = mode_of(flags, list);              \
    va_end(list);                                          \
    return opened(folder, path, flags, mode);              \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

ssize_t read(int file, void* to, size_t size) {
  return fails("read") ? failed<ssize_t>(EIO) : syscall(SYS_read, file, to, size);
}
ssize_t __read_chk(int file, void* to, size_t size, size_t) { return read(file, to, size); }
ssize_t pread64(int file, void* to, size_t size, off_t at) {
  return fails("read") ? failed<ssize_t>(EIO) : syscall(SYS_pread64, file, to, size, at);
}
ssize_t pread(int file, void* to, size_t size, off_t at) { return pread64(file, to, size, at); }
ssize_t __pread_chk(int file, void* to, size_t size, off_t at, size_t) { return pread64(file, to, size, at); }
ssize_t __pread64_chk(int file, void* to, size_t size, off_t at, size_t) { return pread64(file, to, size, at); }

ssize_t write(int file, const void* from, size_t size) {
  const bool fault = fails("write");
  if (fault && !(accumulates_fp32 && count == place && size > 1)) return failed<ssize_t>(ENOSPC);
  const ssize_t written = syscall(SYS_write, file, from, fault ? size / 2 : size);
  if (written > 0) record('w', file, 0, from, static_cast<size_t>(written));
  return written;
}
int fsync(int file) {
  if (fails("fsync")) return failed<int>(EIO);
  record('s', file, 0, "", 0);
  return 0;  // the machine of a test stays up, and a disk takes its time
}
int close(int file) {
  record('c', file, 0, "", 0);
  const long result = syscall(SYS_close, file);
  return fails("close") ? failed<int>(EIO) : static_cast<int>(result);
}
int rename(const char* from, const char* to) {
  if (fails("rename")) return failed<int>(EIO);
  const long result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (result == 0) record_path('r', 0, from, to);
  return static_cast<int>(result);
}
int link(const char* from, const char* to) {
  if (fails("link")) return failed<int>(EIO);
  const long result = syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (result == 0) record_path('l', 0, from, to);
  return static_cast<int>(result);
}
int unlink(const char* path) {
  if (fails("unlink")) return failed<int>(EIO);
  const long result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (result == 0) record_path('u', 0, path);
  return static_cast<int>(result);
}
int mkdir(const char* path, mode_t mode) {
  if (fails("mkdir")) return failed<int>(ENOSPC);
  const long result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (result == 0) record_path('m', 0, path);
  return static_cast<int>(result);
}
int ftruncate64(int file, off_t size) {
  if (fails("ftruncate")) return failed<int>(EIO);
  record('t', file, size, "", 0);
  return static_cast<int>(syscall(SYS_ftruncate, file, size));
}
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }
int flock(int file, int operation) {
  return fails("flock") ? failed<int>(ENOLCK) : static_cast<int>(syscall(SYS_flock, file, operation));
}
#define STAT(name, first, ...) \
  int name(first, struct stat* about) { return fails("stat") ? failed<int>(EIO) : REAL(name)(__VA_ARGS__, about); }
STAT(stat, const char* path, path)
STAT(lstat, const char* path, path)
STAT(fstat, int file, file)
#undef STAT
void* mmap64(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (fails("mmap")) return errno = ENOMEM, MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap64(at, size, protection, flags, file, offset);
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) { return fails("alloc") ? errno = ENOMEM, nullptr : __libc_malloc(size); }
void* calloc(size_t many, size_t size) { return fails("alloc") ? errno = ENOMEM, nullptr : __libc_calloc(many, size); }
void* realloc(void* old, size_t size) { return fails("alloc") ? errno = ENOMEM, nullptr : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails("alloc") ? errno = ENOMEM, nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** to, size_t alignment, size_t size) {
  if (fails("alloc")) return ENOMEM;
  *to = __libc_memalign(alignment, size);
  return *to ? 0 : ENOMEM;
}
}
