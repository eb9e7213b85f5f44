#include "lab/walls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

// The path of a program as exec would find it; empty when it is not there.
std::string program_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string folder = folders.substr(at, end - at);
    const std::string program = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code failed;
    if (access(program.c_str(), X_OK) == 0 && fs::is_regular_file(program, failed)) {
      return program;
    }
    at = end + 1;
  }
  return {};
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  const fs::path way = path.lexically_relative(folder);
  return !way.empty() && *way.begin() != "..";
}

// What a compiler outside /usr needs beside itself: the folder around its bin/. Nothing for one
// that would bring a whole home or the root with it.
fs::path folder_of_program(const std::string& program) {
  std::error_code failed;
  const fs::path real = fs::canonical(program, failed);
  if (failed || lies_below(real, "/usr")) return {};
  const fs::path around = real.parent_path().parent_path();
  const auto depth = std::distance(around.begin(), around.end());  // "/" counts one
  return depth < 3 ? fs::path{} : around;
}

// The system's folders as they are: links into /usr, or folders of their own.
void add_system(std::vector<std::string>& words) {
  words.insert(words.end(), {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code failed;
    const fs::file_status status = fs::symlink_status(name, failed);
    if (fs::is_symlink(status)) {
      words.insert(words.end(), {"--symlink", fs::read_symlink(name, failed).string(), name});
    } else if (fs::is_directory(status)) {
      words.insert(words.end(), {"--ro-bind", name, name});
    }
  }
  // Which compiler `c++` is, and where the loader finds libraries.
  for (const char* name : {"/etc/alternatives", "/etc/ld.so.cache"}) {
    words.insert(words.end(), {"--ro-bind-try", name, name});
  }
  // No /dev/zero and no /dev/urandom: a source could include what has no end.
  words.insert(words.end(), {"--dev-bind", "/dev/null", "/dev/null"});
}

// Builds a filter line by line. See seccomp(2): the number of a call is compared with each entry.
class CallFilter {
 public:
  CallFilter() {
#if defined(__x86_64__)
    constexpr unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
#else
    constexpr unsigned architecture = 0;
#endif
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, architecture);
    add(BPF_RET | BPF_K, 0, 0, kRefuse);
    load_number();
#if defined(__x86_64__)
    // Calls of the x32 interface have the same meaning and other numbers.
    add(BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000U);
    add(BPF_RET | BPF_K, 0, 0, kRefuse);
#endif
  }

  void refuse(long number, unsigned error = EPERM) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<unsigned>(number));
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error);
  }

  // clone() with one of these flags, or without the flag that it must have (0: none must).
  void refuse_clone(unsigned flags, unsigned needed) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, needed == 0 ? 4 : 6, __NR_clone);
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args));
    add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, flags);
    add(BPF_RET | BPF_K, 0, 0, kRefuse);
    if (needed != 0) {
      add(BPF_JMP | BPF_JSET | BPF_K, 1, 0, needed);
      add(BPF_RET | BPF_K, 0, 0, kRefuse);
    }
    load_number();
  }

  std::vector<sock_filter> finished() {
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    return lines_;
  }

 private:
  static constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EPERM;
  void add(unsigned short code, unsigned char yes, unsigned char no, unsigned value) {
    lines_.push_back(sock_filter{code, yes, no, value});
  }
  void load_number() { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)); }
  std::vector<sock_filter> lines_;
};

}  // namespace

std::string find_bubblewrap() { return program_in_path("bwrap"); }

std::vector<std::string> walled_command(const std::string& bubblewrap,
                                        const std::vector<std::string>& command,
                                        const fs::path& folder, const WallRules& rules) {
  std::error_code failed;
  const fs::path inside = fs::canonical(folder, failed);
  const bool in_folder = command.front().starts_with("./");
  const std::string program =
      in_folder ? (inside / command.front()).string() : program_in_path(command.front());
  if (failed || program.empty()) return {};
  std::vector<std::string> words = {bubblewrap,      "--unshare-all", "--die-with-parent",
                                    "--new-session", "--cap-drop",    "ALL"};
  add_system(words);
  if (!in_folder) {
    if (const fs::path around = folder_of_program(program); !around.empty()) {
      words.insert(words.end(), {"--ro-bind", around.string(), around.string()});
    }
  }
  words.insert(words.end(), {rules.may_write ? "--bind" : "--ro-bind", inside.string(),
                             inside.string(), "--remount-ro", "/", "--chdir", inside.string(),
                             "--seccomp", std::to_string(kFilterNumber), "--", program});
  words.insert(words.end(), command.begin() + 1, command.end());
  return words;
}

std::vector<std::string> walled_environment(const fs::path& folder) {
  std::error_code failed;
  const std::string inside = fs::canonical(folder, failed).string();
  std::vector<std::string> out = {"LANG=C.UTF-8", "HOME=" + inside, "TMPDIR=" + inside,
                                  "CCACHE_DISABLE=1"};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) out.push_back(std::string(name) + "=" + value);
  }
  return out;
}

int open_call_filter(const WallRules& rules) {
  CallFilter filter;
  for (const long number :
       {__NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_unshare, __NR_setns,
        __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_keyctl, __NR_add_key,
        __NR_request_key, __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_io_uring_setup,
        __NR_open_by_handle_at}) {
    filter.refuse(number);
  }
  // Its flags lie in memory, where a filter does not see them: programs then take clone().
  filter.refuse(__NR_clone3, ENOSYS);
  filter.refuse_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET,
                      rules.may_start_processes ? 0 : CLONE_THREAD);
#if defined(__NR_fork)
  if (!rules.may_start_processes) {
    filter.refuse(__NR_fork);
    filter.refuse(__NR_vfork);
  }
#endif
  const std::vector<sock_filter> lines = filter.finished();
  const int to = memfd_create("fuseline-calls", MFD_CLOEXEC);
  if (to < 0) return -1;
  const std::size_t bytes = lines.size() * sizeof(sock_filter);
  if (::write(to, lines.data(), bytes) == static_cast<ssize_t>(bytes) &&
      lseek(to, 0, SEEK_SET) == 0) {
    return to;
  }
  close(to);
  return -1;
}

}  // namespace fuseline::lab
