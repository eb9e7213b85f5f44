#include "cli/app.h"
#include "cli/options.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <ostream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"
#include "base/version.h"
#include "cli/command_table.h"
#include "cli/completions.h"
#include "cli/description.h"
#include "cli/long_work.h"
#include "cli/man_page.h"
#include "sim/report/listing.h"
#include "sim/selection/words.h"

namespace fuseline {

namespace {

constexpr std::size_t kLongestMessages = 100'000;

constexpr const char* kExitStatus =
    "0 done, 1 a check failed, 2 wrong input, 3 something needed is not here,\n"
    "70 a bug of fuseline";

std::string help() {
  std::string text =
      "fuseline: what fusing a Transformer block is worth on a GPU.\n\n"
      "usage: fuseline COMMAND [OPTIONS]\n\ncommands:\n";
  for (const Command& c : all_commands()) text += fmt::format("  {:<10} {}\n", c.name, c.summary);
  text +=
      "\nexamples:\n"
      "  fuseline predict\n"
      "  fuseline predict --model llama3-8b --gpu h200 --phase decode --batch 16 --context 8192\n"
      "  fuseline explain --model llama2-7b --gpu h100 --policy coda\n"
      "  fuseline gemm --m 2048 --n 12288 --k 4096 --gpu h200\n"
      "  fuseline compare scenarios/measurements/h200-pytorch\n"
      "  fuseline audit whole-block-fusion\n"
      "\n'fuseline COMMAND --help' lists a command's options; docs/cli.md has an example of each.\n"
      "'fuseline --man' prints the manual page, 'fuseline --completion bash' completions for a "
      "shell.\n";
  return text + "exit status: " + kExitStatus + "\n";
}

// Every command but the window, which is a program of its own, and the commands below others.
std::vector<CommandDescription> descriptions() {
  std::vector<CommandDescription> out;
  for (const Command& c : all_commands()) {
    if (c.name == "gui") continue;
    const CommandDescription command = read_description(c.run({kDescribe}).output);
    out.push_back(command);
    if (!command.words_are_commands) continue;
    for (const std::string& word : command.words) {
      if (command.name == "lab" && word == "list") continue;  // it takes nothing
      CommandDescription below = read_description(c.run({word, kDescribe}).output);
      if (below.name != command.name) out.push_back(std::move(below));
    }
  }
  return out;
}

CommandResult completion_script(const std::vector<std::string>& args) {
  const std::string shell = args.size() > 1 ? args[1] : "";
  if (shell == "bash")
    return {bash_completions(descriptions(), listing_topics()), {}, ExitStatus::done};
  throw InputError({.file = kCommandLine,
                    .field = "--completion",
                    .value = shell,
                    .message = shell.empty() ? "the shell is missing" : "there is no such shell",
                    .allowed = "bash"});
}

// The first column of a list, a name a line: what completions offer.
CommandResult names_of_topic(const std::vector<std::string>& args) {
  const std::string topic = parse_word("--names", args.size() > 1 ? args[1] : "", listing_topics());
  std::string out;
  for (const std::vector<std::string>& row : listing_of(topic).rows) out += row.front() + "\n";
  return {std::move(out), {}, ExitStatus::done};
}

CommandResult dispatch(const std::vector<std::string>& args) {
  if (args.empty()) return {{}, help(), ExitStatus::wrong_input};
  const std::string& verb = args.front();
  if (verb == "--help" || verb == "-h" || verb == "help") return {help(), {}, ExitStatus::done};
  if (verb == "--version") return {fmt::format("fuseline {}\n", kVersion), {}, ExitStatus::done};
  if (verb == "--man") return {man_page(descriptions(), kExitStatus), {}, ExitStatus::done};
  if (verb == "--completion") return completion_script(args);
  if (verb == "--names") return names_of_topic(args);
  std::vector<std::string> commands;
  for (const Command& c : all_commands()) commands.emplace_back(c.name);
  for (const Command& c : all_commands()) {
    if (c.name == verb) return c.run({args.begin() + 1, args.end()});
  }
  throw InputError({.file = kCommandLine,
                    .value = verb,
                    .message = "there is no such command",
                    .allowed = fmt::format("{}", fmt::join(commands, ", ")),
                    .nearest = nearest_name(verb, commands)});
}

// A title or a name from a file may hold what a terminal obeys.
std::string without_controls(const std::string& output) {
  const bool obeyed = std::any_of(output.begin(), output.end(), [](char c) {
    return (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == '\x7F';
  });
  return obeyed ? printable_lines(output, output.size()) : output;
}

int status_of(ExitStatus status) { return static_cast<int>(status); }

}  // namespace

std::string version() { return kVersion; }

int run_cli(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  try {
    const CommandResult result = [&] {
      const StillWorking still_working;  // ends before anything is printed
      return dispatch(args);
    }();
    err << printable_lines(result.messages, kLongestMessages) << std::flush;
    out << without_controls(result.output) << std::flush;
    if (!out) throw MissingError("standard output cannot be written");
    return status_of(result.status);
  } catch (const InputError& error) {
    err << "fuseline: error: " << error.what() << "\n";
    return status_of(ExitStatus::wrong_input);
  } catch (const MissingError& error) {
    err << "fuseline: not available: " << printable_lines(error.what(), kLongestMessages) << "\n";
    return status_of(ExitStatus::something_missing);
  } catch (const std::filesystem::filesystem_error& error) {
    // The surroundings took away what was there: the folder we stand in, a disk.
    err << "fuseline: not available: " << printable(error.path1().string(), kLongestMessages)
        << (error.path1().empty() ? "" : ": ") << error.code().message() << "\n";
    return status_of(ExitStatus::something_missing);
  } catch (const std::system_error& error) {
    err << "fuseline: not available: " << error.what() << "\n";  // no more threads, say
    return status_of(ExitStatus::something_missing);
  } catch (const std::bad_alloc&) {
    err << "fuseline: not available: out of memory\n";
    return status_of(ExitStatus::something_missing);
  } catch (const std::exception& error) {
    err << "fuseline: internal error (a bug of fuseline, please report it): "
        << printable_lines(error.what(), kLongestMessages) << "\n";
    return status_of(ExitStatus::our_bug);
  }
}

}  // namespace fuseline
