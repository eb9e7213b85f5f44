#include "cuda/compile/compile_apart.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/temporary_folder.h"

extern char** environ;

namespace fuseline::cuda {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Files of the folder between the two processes. The answer is written last and under another name
// first, so that half an answer is none.
constexpr const char* kQuestion = "question.json";
constexpr const char* kText = "source.cu";
constexpr const char* kPtx = "code.ptx";
constexpr const char* kCubin = "code.cubin";
constexpr const char* kAnswer = "answer.json";

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& file, const char* data, std::size_t size) {
  std::ofstream out(file, std::ios::binary);
  out.write(data, static_cast<std::streamsize>(size));
  if (!out.flush()) throw MissingError(fmt::format("{} cannot be written", file.string()));
}

void write_bytes(const fs::path& file, const std::string& text) {
  write_bytes(file, text.data(), text.size());
}

// What the compiler quotes may be no UTF-8.
std::string as_json(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace);
}

json answer_to(const fs::path& folder) {
  const json question = parse_json(bytes_of(folder / kQuestion), kQuestion);
  const SmCode code{static_cast<SmTarget>(question.at("target").get<int>()),
                    question.at("capability").get<int>()};
  const CompiledApart made =
      compile_here({question.at("name").get<std::string>(), bytes_of(folder / kText)}, code,
                   question.at("line_numbers").get<bool>());
  write_bytes(folder / kPtx, made.compiled.ptx);
  write_bytes(folder / kCubin, made.compiled.cubin.data(), made.compiled.cubin.size());
  const ResourceUse& use = made.compiled.use;
  return {
      {"log", made.compiled.log},         {"registers", use.registers},
      {"stack_bytes", use.stack_bytes},   {"spill_bytes", use.spill_bytes},
      {"shared_bytes", use.shared_bytes}, {"toolkit", {made.toolkit.major, made.toolkit.minor}}};
}

CompiledApart read_answer(const fs::path& folder) {
  const json answer = parse_json(bytes_of(folder / kAnswer), kAnswer);
  if (answer.contains("missing")) throw MissingError(answer["missing"].get<std::string>());
  if (answer.contains("wrong")) throw InternalError(answer["wrong"].get<std::string>());
  CompiledApart made;
  const std::string cubin = bytes_of(folder / kCubin);
  made.compiled.cubin.assign(cubin.begin(), cubin.end());
  made.compiled.ptx = bytes_of(folder / kPtx);
  made.compiled.log = answer.at("log").get<std::string>();
  made.compiled.use = {
      answer.at("registers").get<int>(), answer.at("stack_bytes").get<std::int64_t>(),
      answer.at("spill_bytes").get<std::int64_t>(), answer.at("shared_bytes").get<std::int64_t>()};
  made.toolkit = {answer.at("toolkit").at(0).get<int>(), answer.at("toolkit").at(1).get<int>()};
  return made;
}

pid_t start_compiler(const fs::path& program, const fs::path& folder) {
  std::string name = program.string(), option = kCompileOption, where = folder.string();
  char* const arguments[] = {name.data(), option.data(), where.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawn(&child, name.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw MissingError(fmt::format("{} cannot be started to compile a kernel: {}", name,
                                   std::generic_category().message(failed)));
  return child;
}

// The status that waitpid() gives; none where `stop` came first, and the process is gone then.
std::optional<int> status_of(pid_t child, const std::stop_token& stop) {
  using namespace std::chrono_literals;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;  // somebody else took it: the answer tells
    if (stop.stop_requested()) break;
    std::this_thread::sleep_for(5ms);
  }
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return std::nullopt;
}

}  // namespace

CompiledApart compile_here(const Source& source, const SmCode& code, bool line_numbers) {
  const Compiler compiler;
  return {compiler.compile(source, code, line_numbers), compiler.version()};
}

std::optional<CompiledApart> compile_apart(const fs::path& program, const Source& source,
                                           const SmCode& code, bool line_numbers,
                                           const std::stop_token& stop) {
  const TemporaryFolder folder("fuseline-compile");
  write_bytes(folder.path() / kText, source.text);
  write_bytes(folder.path() / kQuestion, as_json({{"name", source.name},
                                                  {"target", static_cast<int>(code.target)},
                                                  {"capability", code.capability},
                                                  {"line_numbers", line_numbers}}));
  const std::optional<int> status = status_of(start_compiler(program, folder.path()), stop);
  if (!status) return std::nullopt;
  if (fs::exists(folder.path() / kAnswer)) return read_answer(folder.path());
  const std::string how = WIFSIGNALED(*status)
                              ? fmt::format("signal {}", WTERMSIG(*status))
                              : fmt::format("exit status {}", WEXITSTATUS(*status));
  throw InternalError(
      fmt::format("the compiler's process ended with {} and without an answer", how));
}

bool answer_compile(const fs::path& folder) {
  try {
    json answer;
    try {
      answer = answer_to(folder);
    } catch (const MissingError& error) {
      answer = {{"missing", error.what()}};
    } catch (const std::exception& error) {
      answer = {{"wrong", error.what()}};
    }
    const fs::path half = folder / "answer.half";
    write_bytes(half, as_json(answer));
    fs::rename(half, folder / kAnswer);
    return true;
  } catch (const std::exception&) {  // the folder is gone: nobody waits
    return false;
  }
}

}  // namespace fuseline::cuda
