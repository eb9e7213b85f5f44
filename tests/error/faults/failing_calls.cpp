// Loaded ahead of the program (LD_PRELOAD): lets one call of a kind fail, or all from one on, as on
// a full disk, without permission or without memory. What is counted begins with main().
//   FUSELINE_FAIL_CALL   open, write, rename, sync, folder or memory
//   FUSELINE_FAIL_AT     which call of this kind fails, from 1 on; 0: none
//   FUSELINE_FAIL_ERROR  the error's number
//   FUSELINE_FAIL_ON     1: all later calls of this kind fail too
//   FUSELINE_CALL_COUNT  a file that gets the number of calls at the end
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);

namespace {

enum class Call { none, open, write, rename, sync, folder, memory };

Call chosen = Call::none;
long fail_at = 0;
int error_number = EIO;
bool and_later = false;
std::atomic<long> calls{0};
int (*program_main)(int, char**, char**) = nullptr;

bool fails(Call call) {
  if (call != chosen) return false;
  const long n = ++calls;
  if (fail_at == 0 || n < fail_at || (n > fail_at && !and_later)) return false;
  errno = call == Call::memory ? ENOMEM : error_number;
  return true;
}

void begin() {
  const char* call = std::getenv("FUSELINE_FAIL_CALL");
  const char* at = std::getenv("FUSELINE_FAIL_AT");
  const char* error = std::getenv("FUSELINE_FAIL_ERROR");
  const char* on = std::getenv("FUSELINE_FAIL_ON");
  fail_at = at == nullptr ? 0 : std::atol(at);
  if (error != nullptr) error_number = std::atoi(error);
  and_later = on != nullptr && *on == '1';
  constexpr struct {
    const char* name;
    Call call;
  } kNames[] = {{"open", Call::open}, {"write", Call::write},   {"rename", Call::rename},
                {"sync", Call::sync}, {"folder", Call::folder}, {"memory", Call::memory}};
  for (const auto& k : kNames)
    if (call != nullptr && std::strcmp(call, k.name) == 0) chosen = k.call;
}

void end() {
  const long count = calls;
  chosen = Call::none;
  const char* file = std::getenv("FUSELINE_CALL_COUNT");
  if (file == nullptr) return;
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%ld\n", count);
  const long to = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (to < 0) return;
  static_cast<void>(syscall(SYS_write, to, text, length));
  static_cast<void>(syscall(SYS_close, to));
}

int counted_main(int argc, char** argv, char** environment) {
  begin();
  const int status = program_main(argc, argv, environment);
  std::fflush(nullptr);
  end();
  return status;
}

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                      int (*init)(int, char**, char**), void (*fini)(), void (*rtld_fini)(),
                      void* stack_end) {
  using Start = int (*)(int (*)(int, char**, char**), int, char**, int (*)(int, char**, char**),
                        void (*)(), void (*)(), void*);
  program_main = main;
  return real<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails(Call::open)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open(path, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails(Call::open)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
FILE* fopen(const char* path, const char* how) {
  if (fails(Call::open)) return nullptr;
  static const auto next = real<FILE* (*)(const char*, const char*)>("fopen");
  return next(path, how);
}
FILE* fopen64(const char* path, const char* how) { return fopen(path, how); }

ssize_t write(int file, const void* bytes, std::size_t count) {
  if (fails(Call::write)) return -1;
  return syscall(SYS_write, file, bytes, count);
}
ssize_t writev(int file, const iovec* parts, int count) {
  if (fails(Call::write)) return -1;
  return syscall(SYS_writev, file, parts, count);
}
ssize_t pwrite64(int file, const void* bytes, std::size_t count, off64_t at) {
  if (fails(Call::write)) return -1;
  return syscall(SYS_pwrite64, file, bytes, count, at);
}

int rename(const char* from, const char* to) {
  if (fails(Call::rename)) return -1;
  return static_cast<int>(syscall(SYS_rename, from, to));
}
int fsync(int file) {
  if (fails(Call::sync)) return -1;
  return static_cast<int>(syscall(SYS_fsync, file));
}
int mkdir(const char* path, mode_t mode) {
  if (fails(Call::folder)) return -1;
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}

void* malloc(std::size_t bytes) { return fails(Call::memory) ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return fails(Call::memory) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  return fails(Call::memory) ? nullptr : __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails(Call::memory) ? nullptr : __libc_memalign(alignment, bytes);
}

}  // extern "C"
