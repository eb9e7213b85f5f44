// What a command takes, as data: the same words that its help shows. Man page and completions are
// made of it.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

struct OptionDescription {
  std::string name;   // "--model"
  std::string value;  // "NAME|FILE"; empty for a flag
  std::string help;
};

struct CommandDescription {
  std::string name;  // "predict", "import trace"
  std::string summary;
  std::string argument, argument_help;  // without an option's name; empty where there is none
  std::vector<std::string> words;       // what the first such argument may be, where that is known
  bool words_are_commands = false;      // each of them has options of its own: "import trace"
  std::vector<OptionDescription> options;
  std::vector<std::string> examples;
};

// The argument with which a command prints its description in the place of its help.
inline constexpr const char* kDescribe = "--describe";

std::string description_json(const CommandDescription& command);
CommandDescription read_description(const std::string& json);

}  // namespace fuseline
