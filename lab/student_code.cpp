#include "lab/student_code.h"

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>

#include "lab/embedded_files.h"
#include "model/data_files.h"
#include "model/error.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCompilerLines = 12;
constexpr std::size_t kCompilerColumns = 160;
constexpr std::size_t kPrintedCharacters = 400;

// Exit statuses of harness.cpp.
constexpr int kBadCase = 84;

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
  limits.memory = Bytes(std::int64_t{4} << 30);
  limits.stack = Bytes(std::int64_t{64} << 20);
  limits.may_start_processes = true;
  return limits;
}

const std::string& embedded(const std::string& path) {
  const auto found = embedded_files().find(path);
  FUSELINE_ASSERT(found != embedded_files().end(), path);
  return found->second;
}

void write_case(const FunctionCase& what, const std::string& token, const fs::path& path) {
  std::ofstream out(path, std::ios::binary);
  out << "token " << token << "\n";
  for (const auto& [name, value] : what.numbers)
    out << fmt::format("number {} {:.17g}\n", name, value);
  for (const CaseMatrix& m : what.matrices) {
    out << fmt::format("{} {} {} {}\n", m.target ? "target" : "source", m.name, m.rows, m.cols);
  }
  out << "end\n";
  for (const CaseMatrix& m : what.matrices) {
    if (m.target) continue;
    std::vector<float> values(m.values.begin(), m.values.end());
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  out.flush();
  if (!out) throw MissingError(fmt::format("cannot write {}", path.string()));
}

// False: not what the harness writes; the code may have ended the program by itself.
bool read_result(const FunctionCase& what, const std::string& token, const fs::path& path,
                 CaseRun& run) {
  std::ifstream in(path, std::ios::binary);
  std::string word, echoed;
  in >> word >> echoed;
  if (word != "token" || echoed != token) return false;
  while (in >> word && word != "end") {
    if (word == "on_chip") {
      std::int64_t held = 0;
      in >> held;
      run.on_chip = Bytes(held);
    } else {
      std::string name;
      AccessCounts counts;
      in >> name >> counts.loads >> counts.stores;
      run.counts[name] = counts;
    }
  }
  in.get();
  for (const CaseMatrix& m : what.matrices) {
    if (!run.counts.contains(m.name)) return false;
    if (!m.target) continue;
    std::vector<float> values(static_cast<std::size_t>(m.rows * m.cols));
    in.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
    run.targets[m.name].assign(values.begin(), values.end());
  }
  return static_cast<bool>(in);
}

// Without control characters, which a terminal would obey.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') c = ' ';
  }
  return text;
}

std::string last_line(const std::string& output) {
  std::string text = output.substr(0, output.find_last_not_of('\n') + 1);
  const std::size_t at = text.find_last_of('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

SandboxLimits student_limits() {
  SandboxLimits limits;
  limits.cpu_seconds = 10;
  limits.wall_seconds = 30;
  limits.memory = Bytes(std::int64_t{512} << 20);
  return limits;
}

void compile_student_code(const fs::path& source, const std::string& harness,
                          const ScratchFolder& scratch) {
  // Under its own name and without its folder, as the messages shall say.
  const std::string name = source.filename().string();
  write(scratch.path() / name, read_input_file(source));
  for (const char* file : {"fuseline_lab.h", "harness.h", "harness.cpp"}) {
    write(scratch.path() / file, embedded(std::string("lab/harness/") + file));
  }
  write(scratch.path() / "case.cpp", embedded(harness));

  std::vector<std::string> command = compiler();
  for (const char* word : {"-std=c++20", "-O1", "-fdiagnostics-color=never", "-o", "check",
                           "case.cpp", "harness.cpp"}) {
    command.emplace_back(word);
  }
  command.push_back(name);
  const SandboxLimits limits = compiler_limits();
  const SandboxResult result = run_sandboxed(command, scratch.path(), limits);
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
  throw InputError(
      {.file = source.string(), .message = "does not compile:" + trimmed_message(result.output)});
}

CaseRun run_student_code(const FunctionCase& what, const ScratchFolder& scratch) {
  const fs::path result_file = scratch.path() / "result";
  fs::remove(result_file);
  std::random_device random;
  const std::string token = fmt::format("{:08x}{:08x}", random(), random());
  write_case(what, token, scratch.path() / "case");
  const SandboxLimits limits = student_limits();
  const SandboxResult ended = run_sandboxed({"./check", "case", "result"}, scratch.path(), limits);
  CaseRun run;
  run.printed = printable(ended.output.substr(0, kPrintedCharacters));
  run.problem = describe(ended, limits);
  if (!run.problem.empty()) return run;
  FUSELINE_ASSERT(ended.exit_status != kBadCase, ended.output);
  if (ended.exit_status != 0) {
    run.problem = fmt::format("it ended early: {}", last_line(ended.output));
    return run;
  }
  if (!read_result(what, token, result_file, run)) {
    run.counts.clear();
    run.targets.clear();
    run.problem = "it ended the program before its results could be read";
  }
  return run;
}

}  // namespace fuseline::lab
