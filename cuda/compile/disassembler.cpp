#include "cuda/compile/disassembler.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace fuseline::cuda {

namespace {

constexpr const char* kOwnDisassembler = "FUSELINE_DISASSEMBLER";

struct KnownTool {
  const char* name;
  const char* arguments;
};
constexpr std::array<KnownTool, 2> kTools = {
    {{"nvdisasm", "--print-code --print-line-info-inline"}, {"cuobjdump", "--dump-sass"}}};

// As one word for the shell.
std::string one_word(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::filesystem::path> tool_folders() {
  std::vector<std::filesystem::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
      folders.push_back(std::filesystem::path(value) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  const char* path = std::getenv("PATH");
  std::istringstream all(path == nullptr ? "" : path);
  for (std::string folder; std::getline(all, folder, ':');)
    if (!folder.empty()) folders.emplace_back(folder);
  return folders;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Calls f(line) for each line.
template <class F>
void for_lines(std::string_view text, F&& f) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    f(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

// The number at the text's beginning, behind blanks; moves behind it.
std::optional<int> take_number(std::string_view& text) {
  text = trimmed(text);
  std::size_t end = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  if (end == 0 || end > 8) return std::nullopt;
  const int number = std::stoi(std::string(text.substr(0, end)));
  text.remove_prefix(end);
  return number;
}

// What stands between the next two quotes; moves behind them.
std::optional<std::string> take_quoted(std::string_view& text) {
  const std::size_t begin = text.find('"');
  const std::size_t end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  std::string found(text.substr(begin + 1, end - begin - 1));
  text.remove_prefix(end + 1);
  return found;
}

bool is_file(const std::string& path, const std::string& source) {
  return std::filesystem::path(path).filename() == std::filesystem::path(source).filename();
}

// The places of one mark: the instruction's own, then where it was inlined.
int line_in_source(const std::vector<std::pair<std::string, int>>& places,
                   const std::string& source) {
  for (const auto& [file, line] : places)
    if (is_file(file, source)) return line;
  return 0;
}

}  // namespace

Disassembler find_disassembler() {
  if (const char* own = std::getenv(kOwnDisassembler); own != nullptr && *own != '\0')
    return {own, kOwnDisassembler};
  for (const KnownTool& tool : kTools)
    for (const std::filesystem::path& folder : tool_folders()) {
      const std::filesystem::path file = folder / tool.name;
      std::error_code error;
      if (std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0)
        return {one_word(file.string()) + " " + tool.arguments, tool.name};
    }
  throw MissingError(fmt::format(
      "no disassembler: nvdisasm and cuobjdump are in neither $CUDA_HOME/bin, $CUDA_PATH/bin, "
      "/usr/local/cuda/bin nor $PATH. Both come with NVIDIA's CUDA toolkit; packages that have "
      "only "
      "one of them are cuda-nvdisasm and cuda-cuobjdump. {} can name another command",
      kOwnDisassembler));
}

std::string disassemble(const Disassembler& tool, const std::vector<char>& cubin) {
  const TemporaryFolder folder("fuseline-sass");
  const std::string file = folder.path() / "kernel.cubin", said = folder.path() / "said";
  std::ofstream(file, std::ios::binary)
      .write(cubin.data(), static_cast<std::streamsize>(cubin.size()));
  const std::string command =
      "{ " + tool.command + " " + one_word(file) + "; } 2>" + one_word(said);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw MissingError("no command can be started: " + tool.command);
  std::string text;
  std::array<char, 65536> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), n);
  const int status = pclose(pipe);
  if (status == 0 && !text.empty()) return text;
  std::ostringstream why;
  why << std::ifstream(said).rdbuf();
  throw MissingError(fmt::format("{} does not read this code: {}", tool.name,
                                 why.str().empty() ? "it says nothing" : why.str()));
}

std::vector<MachineLine> ptx_lines(std::string_view ptx, const std::string& source) {
  std::map<int, std::string> files;  // their table is at the end
  for_lines(ptx, [&](std::string_view line) {
    line = trimmed(line);
    if (!line.starts_with(".file")) return;
    line.remove_prefix(5);
    const std::optional<int> number = take_number(line);
    const std::optional<std::string> name = take_quoted(line);
    if (number && name) files[*number] = *name;
  });
  std::vector<MachineLine> lines;
  // Which line of the source a place belongs to. What is inlined names the place of its call, which
  // may itself be inlined: that place was told before.
  using At = std::array<int, 3>;  // file, line, column
  std::map<At, int> known;
  const auto take_place = [](std::string_view& rest) {
    At at{};
    for (int& number : at) number = take_number(rest).value_or(0);
    return at;
  };
  const auto line_of = [&](const At& at) {
    if (is_file(files[at[0]], source)) return at[1];
    const auto found = known.find(at);
    return found == known.end() ? 0 : found->second;
  };
  int now = 0;
  for_lines(ptx, [&](std::string_view line) {
    const std::string_view text = trimmed(line);
    if (text.starts_with(".loc")) {
      std::string_view rest = text.substr(4);
      const At at = take_place(rest);
      now = is_file(files[at[0]], source) ? at[1] : 0;
      constexpr std::string_view kInlined = "inlined_at";
      if (const std::size_t in = rest.find(kInlined); in != std::string_view::npos && now == 0) {
        rest.remove_prefix(in + kInlined.size());
        now = line_of(take_place(rest));
      }
      known[at] = now;
      return;
    }
    // The tables of line numbers are behind the code.
    if (text.starts_with(".file") || text.starts_with(".section")) now = 0;
    if (text.starts_with(".file")) return;
    if (text == "}") now = 0;
    lines.push_back({std::string(line), text.empty() ? 0 : now});
  });
  return lines;
}

std::vector<MachineLine> sass_lines(std::string_view text, const std::string& source) {
  std::vector<MachineLine> lines;
  std::vector<std::pair<std::string, int>> places;
  bool in_mark = false;
  for_lines(text, [&](std::string_view line) {
    constexpr std::string_view kMark = "//##";
    std::string_view rest = trimmed(line);
    if (rest.starts_with(kMark)) {
      if (!in_mark) places.clear();
      in_mark = true;
      // File "a.cuh", line 12 inlined at "a.cu", line 30; more places may follow in a next mark.
      while (const std::optional<std::string> file = take_quoted(rest)) {
        const std::size_t word = rest.find("line");
        if (word == std::string_view::npos) break;
        rest.remove_prefix(word + 4);
        if (const std::optional<int> at = take_number(rest)) places.emplace_back(*file, *at);
      }
      return;
    }
    in_mark = false;
    // A section begins anew.
    if (rest.starts_with(".section") || rest.starts_with(".text")) places.clear();
    lines.push_back({std::string(line), rest.empty() ? 0 : line_in_source(places, source)});
  });
  return lines;
}

}  // namespace fuseline::cuda
