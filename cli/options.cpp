#include "cli/options.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "model/config/several_gpus.h"

namespace fuseline {

namespace {

constexpr std::size_t kHelpColumn = 34;

std::string footer(const std::vector<std::string>& examples) {
  if (examples.empty()) return {};
  std::string text = "Examples:\n";
  for (const std::string& e : examples) text += "  " + e + "\n";
  return text;
}

// "--modle=llama" → "--modle"
std::string option_name(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

}  // namespace

Options::Options(const std::string& command, const std::string& summary,
                 const std::vector<std::string>& examples)
    : app_(std::make_unique<CLI::App>(summary, "fuseline " + command)), names_({"--help"}) {
  description_.name = command;
  description_.summary = summary;
  description_.examples = examples;
  app_->footer(footer(examples));
  app_->allow_extras();
  app_->get_formatter()->column_width(kHelpColumn);
}

Options::~Options() = default;

void Options::text(const std::string& name, const std::string& placeholder, const std::string& help,
                   std::optional<std::string>& value) {
  const auto take = [&value](const std::string& given) { value = given; };
  app_->add_option_function<std::string>(name, take, help)
      ->type_name(placeholder)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  names_.push_back(name);
  description_.options.push_back({name, placeholder, help});
}

void Options::flag(const std::string& name, const std::string& help, bool& value) {
  app_->add_flag_callback(
      name, [&value] { value = true; }, help);
  names_.push_back(name);
  description_.options.push_back({name, {}, help});
}

void Options::words(std::vector<std::string> words, bool commands) {
  description_.words = std::move(words);
  description_.words_are_commands = commands;
}

void Options::positional(const std::string& name, const std::string& help,
                         std::vector<std::string>& values, std::size_t at_most) {
  app_->add_option(name, values, help)
      ->type_name(" ")
      ->expected(0, CLI::detail::expected_max_vector_size);
  description_.argument = name;
  description_.argument_help = help;
  positionals_ = &values;
  positionals_at_most_ = at_most;
}

bool Options::parse(const std::vector<std::string>& args) {
  if (args.size() == 1 && args.front() == kDescribe) {
    describing_ = true;
    return false;
  }
  // CLI11 reads from the back.
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app_->parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    throw InputError({.file = kCommandLine, .message = error.what(), .allowed = "see --help"});
  }
  // An unknown option comes before its value, which then passes for an argument without a name.
  const std::vector<std::string> extras = app_->remaining();
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& e) { return e.starts_with("-"); });
  if (option != extras.end()) {
    const std::string name = option_name(*option);
    if (asks_for_several_gpus(name)) {
      throw InputError({.file = kCommandLine,
                        .value = name,
                        .message = kSeveralGpusMessage,
                        .allowed = "--gpu with the name of one GPU"});
    }
    throw InputError({.file = kCommandLine,
                      .value = name,
                      .message = "there is no such option",
                      .allowed = fmt::format("{}", fmt::join(names_, ", ")),
                      .nearest = nearest_name(name, names_)});
  }
  const std::size_t given = positionals_ == nullptr ? 0 : positionals_->size();
  if (extras.empty() && given <= positionals_at_most_) return true;
  throw InputError(
      {.file = kCommandLine,
       .value = extras.empty() ? (*positionals_)[positionals_at_most_] : extras.front(),
       .message = "one argument too many",
       .allowed = positionals_at_most_ == 0
                      ? "options only"
                      : fmt::format("at most {} without an option's name", positionals_at_most_)});
}

std::string Options::help() const {
  return describing_ ? description_json(description_) : app_->help();
}

}  // namespace fuseline
