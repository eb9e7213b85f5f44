#include "lab/student_code.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "lab/embedded_files.h"
#include "lab/object_file.h"
#include "lab/shown.h"
#include "lab/trick.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCompilerLines = 12;
constexpr std::size_t kCompilerColumns = 160;
constexpr std::size_t kPrintedCharacters = 400;
constexpr int kException = 87;  // exit status of harness.cpp

// What a function could take memory with, or leave its process with, uncounted. Names as the linker
// sees them.
constexpr std::array<const char*, 22> kForbidden = {
    "mmap",    "mmap64", "mremap",      "brk",        "sbrk",           "syscall",
    "dlsym",   "dlopen", "dlvsym",      "shmat",      "memfd_create",   "fork",
    "vfork",   "clone",  "ptrace",      "memalign",   "pthread_create", "valloc",
    "pvalloc", "prctl",  "swapcontext", "makecontext"};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> compiler() {
  const char* given = std::getenv("CXX");
  std::vector<std::string> words = words_of(given == nullptr ? "" : given);
  if (words.empty()) words.emplace_back("c++");
  return words;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw MissingError(fmt::format("cannot write {}", path.string()));
}

// The first lines, each cut to a terminal's width.
std::string trimmed_message(const std::string& output) {
  std::istringstream in(output);
  std::string text;
  std::size_t lines = 0;
  std::size_t more = 0;
  for (std::string line; std::getline(in, line);) {
    if (++lines > kCompilerLines) {
      ++more;
      continue;
    }
    if (line.size() > kCompilerColumns) line = line.substr(0, kCompilerColumns) + "...";
    text += "\n  " + line;
  }
  if (more > 0) text += fmt::format("\n  ({} more lines)", more);
  return text;
}

SandboxLimits compiler_limits() {
  SandboxLimits limits;
  limits.cpu_seconds = 60;
  limits.wall_seconds = 180;
  limits.memory = Bytes(std::int64_t{2} << 30);
  limits.stack = Bytes(std::int64_t{64} << 20);
  limits.may_start_processes = true;
  return limits;
}

const std::string& embedded(const std::string& path) {
  const auto found = embedded_files().find(path);
  FUSELINE_ASSERT(found != embedded_files().end(), path);
  return found->second;
}

std::string last_line(const std::string& output) {
  std::string text = output.substr(0, output.find_last_not_of('\n') + 1);
  const std::size_t at = text.find_last_of('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

// Runs the compiler in the folder with these words.
void compile(const std::vector<std::string>& words, const fs::path& source,
             const fs::path& folder) {
  std::vector<std::string> command = compiler();
  command.insert(command.end(), words.begin(), words.end());
  const SandboxLimits limits = compiler_limits();
  const SandboxResult result = run_sandboxed(command, folder, limits);
  if (result.ending == Ending::not_started) {
    throw MissingError(
        fmt::format("the C++ compiler '{}' cannot be started: install one (g++) or name it in CXX",
                    command.front()));
  }
  if (result.ending != Ending::finished) {
    throw InputError({.file = source.string(),
                      .message = "the compiler was stopped: " + describe(result, limits)});
  }
  if (result.exit_status == 0) return;
  throw InputError({.file = source.string(),
                    .message = "does not compile:" + shown(trimmed_message(result.output))});
}

bool is_forbidden(const std::string& name) {
  return std::ranges::find(kForbidden, name) != kForbidden.end() || name.starts_with("__real_") ||
         name.starts_with("__wrap_") || name.starts_with("__libc_");
}

// C++ names, and what the compiler makes for exceptions.
bool is_of_a_function(const std::string& name) {
  return name.starts_with("_Z") || name.starts_with("DW.ref.");
}

// A source may use the system's names, but not those around the counting, and it may not take the
// place of any: the check calls some.
void refuse_tricks(const ObjectFile& object, const fs::path& source) {
  const auto refuse = [&](const std::string& name, const char* message, const char* allowed) {
    throw TrickError(
        {.file = source.string(), .value = name, .message = message, .allowed = allowed});
  };
  if (const auto name = std::ranges::find_if(object.needs, is_forbidden);
      name != object.needs.end()) {
    refuse(*name, "is called, which would get around the counting of what is on chip",
           "std::vector, new, malloc, and the functions of fuseline_lab.h");
  }
  if (const auto name = std::ranges::find_if_not(object.defines, is_of_a_function);
      name != object.defines.end()) {
    refuse(*name, "is defined, which could take the place of a function of the system",
           "functions of C++, without extern \"C\"");
  }
  if (object.runs_early) refuse({}, "holds code that runs before the check", "functions of C++");
}

// What a check consists of besides the student's object and the padding.
struct HarnessObjects {
  std::string harness, case_of_lab;
};

// Compiled once a process for each lab and compiler, in a folder that no student's source is in.
HarnessObjects harness_objects(const std::string& harness) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::vector<std::string>>, HarnessObjects> made;
  const std::lock_guard lock(mutex);
  const auto key = std::pair(harness, compiler());
  if (const auto found = made.find(key); found != made.end()) return found->second;
  const ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  for (const char* file : {"fuseline_lab.h", "harness.h", "harness.cpp", "protocol.h"})
    write(folder / file, embedded(std::string("lab/harness/") + file));
  write(folder / "case.cpp", embedded(harness));
  compile({"-std=c++20", "-O1", "-fdiagnostics-color=never", "-fno-lto", "-c", "harness.cpp",
           "case.cpp"},
          harness, folder);
  const auto object = [&](const char* name) {
    return read_input_file(folder / name, Bytes(std::int64_t{64} << 20));
  };
  return made.emplace(key, HarnessObjects{object("harness.o"), object("case.o")}).first->second;
}

// Source of an object of random size.
std::string padding_source() {
  std::random_device random;
  return fmt::format("#define FUSELINE_LAB_PADDING {}\n", 64 + random() % 60000) +
         embedded("lab/harness/padding.cpp");
}

}  // namespace

SandboxLimits student_limits() {
  SandboxLimits limits;
  limits.cpu_seconds = 10;
  limits.wall_seconds = 30;
  limits.memory = Bytes(std::int64_t{512} << 20);
  limits.file_size = Bytes(0);
  return limits;
}

Bytes compile_student_code(const fs::path& source, const std::string& harness,
                           const ScratchFolder& scratch) {
  const fs::path student = scratch.path() / "student";
  fs::create_directory(student);
  // Under its own name and with fuseline_lab.h alone beside it; the check's sources come later.
  const std::string name = source.filename().string();
  require_plain_file(source);
  write(student / name, read_input_file(source));
  write(student / "fuseline_lab.h", embedded("lab/harness/fuseline_lab.h"));

  compile(
      {"-std=c++20", "-O1", "-fdiagnostics-color=never", "-fno-lto", "-c", "-o", "student.o", name},
      source, student);
  const ObjectFile object =
      read_object(read_input_file(student / "student.o", Bytes(std::int64_t{64} << 20)));
  refuse_tricks(object, source);

  const HarnessObjects objects = harness_objects(harness);
  const fs::path check = scratch.path() / "check-sources";
  fs::create_directory(check);
  write(check / "harness.o", objects.harness);
  write(check / "case.o", objects.case_of_lab);
  for (const char* file : {"before.cpp", "behind.cpp"}) write(check / file, padding_source());
  std::vector<std::string> link = {
      "-std=c++20", "-O1", "-fdiagnostics-color=never", "-fno-lto", "-o", "check",
      // In this order: what the harness does before everything else comes first.
      "check-sources/before.cpp", "check-sources/harness.o", "check-sources/behind.cpp",
      "check-sources/case.o", "student/student.o"};
  for (const char* call :
       {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "free"})
    link.push_back(fmt::format("-Wl,--wrap={}", call));
  compile(link, source, scratch.path());
  for (const fs::path& folder : {student, check}) fs::remove_all(folder);
  return object.static_storage;
}

CaseRun run_student_code(const FunctionCase& what, const ScratchFolder& scratch) {
  std::random_device random;
  CaseMemory memory(what, (std::uint64_t{random()} << 32U) | random());
  const SandboxChannel channel{memory.greeting(), [&](std::string_view text, std::string& reply) {
                                 return memory.take(text, reply);
                               }};
  const SandboxLimits limits = student_limits();
  const SandboxResult ended = run_sandboxed({"./check"}, scratch.path(), limits, &channel);
  CaseRun run;
  run.printed = shown(ended.output.substr(0, kPrintedCharacters));
  run.problem = memory.problem();
  run.trick = memory.is_trick();
  if (run.problem.empty()) run.problem = describe(ended, limits);
  if (run.problem.empty() && !memory.is_done()) {
    const std::string said = shown(last_line(ended.output));
    run.problem = ended.exit_status == kException
                      ? fmt::format("it ended early: {}", said)
                      : "it ended the program before its results could be read";
  }
  if (!run.problem.empty()) return run;
  run.counts = memory.counts();
  run.targets = memory.targets();
  run.on_chip = memory.on_chip();
  return run;
}

}  // namespace fuseline::lab
