// Calls the function of a lab in a process that holds nothing else: loads, stores and tiles are
// asked of the checker, which counts them. Before any code of the student runs, the process gives
// up every system call but those that computing and printing need. What is on chip is counted here:
// the heap, and the stack beyond what calls need anyway. Exit status 0; 86 memory; 87 an exception.
#include "harness.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "protocol.h"

namespace {

using fuseline_lab::Ask;
using fuseline_lab::Greeting;
using fuseline_lab::Request;

// Where these lie differs from check to check (padding.cpp). So the function gets no address of
// this file's variables: what it is handed lies in memory of its own.
Greeting greeting;
std::size_t held = 0;
std::size_t most_held = 0;

constexpr std::size_t kStackBytes = std::size_t{1} << 20;
// What printf, exp and the check's own calls may use of it uncounted.
constexpr std::size_t kFreeStackBytes = std::size_t{16} << 10;
constexpr unsigned char kPaint = 0xa5;

[[noreturn]] void leave(int status) { _exit(status); }

void send(const Request& request) {
  const char* at = reinterpret_cast<const char*>(&request);
  for (std::size_t left = sizeof request; left > 0;) {
    const ssize_t n = write(fuseline_lab::kChannel, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) leave(88);  // the checker has seen enough
    at += n;
    left -= static_cast<std::size_t>(n);
  }
}

void receive(void* to, std::size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = read(fuseline_lab::kChannel, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) leave(88);
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

// The system calls that are left; all others fail with EPERM. No file can be opened, no process
// started or signalled but this one.
void give_up_rights() {
  const rlimit files{fuseline_lab::kChannel + 1, fuseline_lab::kChannel + 1};
  setrlimit(RLIMIT_NOFILE, &files);
#if defined(__x86_64__)
  constexpr unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
#else
  return;
#endif
  constexpr unsigned allowed[] = {
      __NR_read,      __NR_write,      __NR_writev,         __NR_mmap,         __NR_munmap,
      __NR_mremap,    __NR_mprotect,   __NR_madvise,        __NR_brk,          __NR_futex,
      __NR_exit,      __NR_exit_group, __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_rt_sigreturn,
      __NR_getpid,    __NR_gettid,     __NR_clock_gettime,  __NR_clock_getres, __NR_gettimeofday,
      __NR_getrandom, __NR_lseek,      __NR_fstat,          __NR_ioctl,        __NR_sched_yield,
      __NR_sysinfo,   __NR_newfstatat,
  };
  constexpr std::size_t count = sizeof allowed / sizeof allowed[0];
  sock_filter program[count * 2 + 12];
  unsigned short length = 0;
  const auto add = [&](unsigned short code, unsigned char yes, unsigned char no, unsigned value) {
    program[length++] = sock_filter{code, yes, no, value};
  };
  const unsigned refuse = SECCOMP_RET_ERRNO | EPERM;
  add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, architecture);
  add(BPF_RET | BPF_K, 0, 0, refuse);
  add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr));
  for (const unsigned number : allowed) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
  }
  // abort() signals its own process.
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, __NR_tgkill);
  add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args));
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<unsigned>(getpid()));
  add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
  add(BPF_RET | BPF_K, 0, 0, refuse);
  const sock_fprog filter{length, program};
  // A kernel without filters leaves the limits above.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  }
}

void begin() {
  receive(&greeting, sizeof greeting);
  give_up_rights();
}

// Runs before the constructors of any other source, as this one is linked first.
__attribute__((section(".preinit_array"), used)) void (*const first_of_all)() = begin;

int index_of(const char* name) {
  for (std::uint32_t i = 0; i < greeting.matrix_count; ++i) {
    if (std::strcmp(greeting.matrices[i].name, name) == 0) return static_cast<int>(i);
  }
  leave(84);
}

const Greeting::Shape& shape(int index) {
  static constexpr Greeting::Shape nothing{};
  const auto at = static_cast<std::uint32_t>(index);
  return at < greeting.matrix_count ? greeting.matrices[at] : nothing;
}

extern "C" {
void* __real_malloc(std::size_t size);
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void __real_free(void* pointer);
}

// The blocks that are held and their sizes, by address: a hash table with linear probing. It lies
// apart from the blocks, so that writing before or behind one does not change what is counted.
constexpr std::size_t kMostBlocks = std::size_t{1} << 16;
struct Block {
  std::uintptr_t at = 0;
  std::size_t size = 0;
} blocks[2 * kMostBlocks];
std::size_t block_count = 0;
constexpr std::size_t kMask = 2 * kMostBlocks - 1;

std::size_t home_of(std::uintptr_t at) { return (at * 0x9e3779b97f4a7c15U) >> 20U & kMask; }

// The block's place, or the free one where it belongs.
std::size_t place_of(std::uintptr_t at) {
  std::size_t i = home_of(at);
  while (blocks[i].at != 0 && blocks[i].at != at) i = (i + 1) & kMask;
  return i;
}

void forget(std::size_t gap) {
  // Those behind it that belong at the gap or before move up.
  for (std::size_t i = (gap + 1) & kMask; blocks[i].at != 0; i = (i + 1) & kMask) {
    if (((i - home_of(blocks[i].at)) & kMask) < ((i - gap) & kMask)) continue;
    blocks[gap] = blocks[i];
    gap = i;
  }
  blocks[gap] = {};
  --block_count;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (size > SIZE_MAX / 2 || block_count == kMostBlocks) return nullptr;
  void* block = alignment <= alignof(std::max_align_t) ? __real_malloc(size)
                                                       : __real_aligned_alloc(alignment, size);
  if (block == nullptr) return nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  blocks[place_of(at)] = {at, size};
  ++block_count;
  held += size;
  if (held > most_held) most_held = held;
  return block;
}

void release(void* pointer) {
  if (pointer == nullptr) return;
  const std::size_t i = place_of(reinterpret_cast<std::uintptr_t>(pointer));
  if (blocks[i].at != 0) {  // else it is the library's own
    held -= blocks[i].size;
    forget(i);
  }
  __real_free(pointer);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  void* block = allocate(size, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

std::size_t number_of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

// A stack of the function's own, painted, so that it can be seen how deep it went.
unsigned char* stack = nullptr;
int ending = 0;

void* fresh_memory(std::size_t bytes) {
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) leave(86);
  return room;
}

void make_stack() {
  void* room = fresh_memory(kStackBytes + 4096);
  mprotect(room, 4096, PROT_NONE);  // deeper than this is a crash
  stack = static_cast<unsigned char*>(room) + 4096;
  std::memset(stack, kPaint, kStackBytes);
}

std::size_t counted_stack() {
  std::size_t untouched = 0;
  while (untouched < kStackBytes && stack[untouched] == kPaint) ++untouched;
  const std::size_t used = kStackBytes - untouched;
  return used > kFreeStackBytes ? used - kFreeStackBytes : 0;
}

void run() {
  try {
    fuseline_lab::run_case();
  } catch (const std::bad_alloc&) {
    ending = 86;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "an exception left the function: %s\n", error.what());
    ending = 87;
  } catch (...) {
    std::fprintf(stderr, "an exception left the function\n");
    ending = 87;
  }
}

}  // namespace

extern "C" {
void* __wrap_malloc(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* __wrap_calloc(std::size_t count, std::size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  void* block = __wrap_malloc(count * size);
  if (block != nullptr) std::memset(block, 0, count * size);
  return block;
}
void* __wrap_realloc(void* old, std::size_t size) {
  void* block = __wrap_malloc(size);
  if (block == nullptr || old == nullptr) return block;
  const std::size_t had = malloc_usable_size(old);
  std::memcpy(block, old, had < size ? had : size);
  release(old);
  return block;
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return allocate(size, alignment);
}
int __wrap_posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  *block = __wrap_aligned_alloc(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
void __wrap_free(void* pointer) { release(pointer); }
}

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, std::align_val_t a) {
  return allocate_or_throw(size, number_of(a));
}
void* operator new[](std::size_t size, std::align_val_t a) {
  return allocate_or_throw(size, number_of(a));
}
void operator delete(void* pointer) noexcept { release(pointer); }
void operator delete[](void* pointer) noexcept { release(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { release(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { release(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { release(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { release(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { release(pointer); }
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept { release(pointer); }

namespace fuseline_lab {

float Source::load(std::int64_t row, std::int64_t col) const {
  send({Ask::load, static_cast<std::uint32_t>(index_), row, col});
  float value = 0;
  receive(&value, sizeof value);
  return value;
}
std::int64_t Source::rows() const { return shape(index_).rows; }
std::int64_t Source::cols() const { return shape(index_).cols; }

void Target::store(std::int64_t row, std::int64_t col, float value) const {
  send({Ask::store, static_cast<std::uint32_t>(index_), row, col, value});
}
std::int64_t Target::rows() const { return shape(index_).rows; }
std::int64_t Target::cols() const { return shape(index_).cols; }

double constant(const char* name) {
  for (std::uint32_t i = 0; i < greeting.number_count; ++i) {
    if (std::strcmp(greeting.numbers[i].name, name) == 0) return greeting.numbers[i].value;
  }
  leave(84);
}
std::int64_t size(const char* name) { return static_cast<std::int64_t>(constant(name)); }
Source source(const char* name) { return Source(index_of(name)); }
Target target(const char* name) { return Target(index_of(name)); }

Accumulator tile(std::int64_t first_row, std::int64_t first_col, std::int64_t rows,
                 std::int64_t cols) {
  constexpr std::size_t most = 64 * 64;
  static float* const values = static_cast<float*>(fresh_memory(most * sizeof(float)));
  if (static_cast<std::size_t>(rows * cols) > most) leave(84);
  send({Ask::tile, 0, first_row, first_col});
  receive(values, static_cast<std::size_t>(rows * cols) * sizeof(float));
  return {first_row, first_col, rows, cols, values};
}

}  // namespace fuseline_lab

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what was printed before a crash helps
  make_stack();
  send({Ask::ready});
  ucontext_t back;  // its address lies on the function's stack
  ucontext_t function;
  getcontext(&function);
  function.uc_stack.ss_sp = stack;
  function.uc_stack.ss_size = kStackBytes;
  function.uc_link = &back;
  makecontext(&function, run, 0);
  swapcontext(&back, &function);
  std::fflush(stdout);
  if (ending == 86) std::fprintf(stderr, "out of memory\n");
  if (ending != 0) leave(ending);
  send({Ask::done, 0, static_cast<std::int64_t>(most_held + counted_stack()),
        static_cast<std::int64_t>(greeting.nonce)});
  float goodbye = 0;
  receive(&goodbye, sizeof goodbye);
  return 0;
}
