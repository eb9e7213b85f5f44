#include "cli/description.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace fuseline {

std::string description_json(const CommandDescription& command) {
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const OptionDescription& o : command.options)
    options.push_back({{"name", o.name}, {"value", o.value}, {"help", o.help}});
  return json_text({{"name", command.name},
                    {"summary", command.summary},
                    {"argument", command.argument},
                    {"argument_help", command.argument_help},
                    {"words", command.words},
                    {"words_are_commands", command.words_are_commands},
                    {"options", options},
                    {"examples", command.examples}});
}

CommandDescription read_description(const std::string& json) {
  const nlohmann::json read = parse_json(json, "a command's description");
  CommandDescription out{.name = read["name"],
                         .summary = read["summary"],
                         .argument = read["argument"],
                         .argument_help = read["argument_help"],
                         .words = read["words"],
                         .words_are_commands = read["words_are_commands"],
                         .options = {},
                         .examples = read["examples"]};
  for (const auto& o : read["options"])
    out.options.push_back({.name = o["name"], .value = o["value"], .help = o["help"]});
  return out;
}

}  // namespace fuseline
