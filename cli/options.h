// One subcommand's options: names, help, parsing. CLI11 does the work behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/description.h"
#include "sim/selection/words.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
}

namespace fuseline {

class Options {
 public:
  // `examples`: command lines shown at the end of the help.
  Options(const std::string& command, const std::string& summary,
          const std::vector<std::string>& examples);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Bound variables must outlive parse(). A text option that is given twice keeps the last value.
  void text(const std::string& name, const std::string& placeholder, const std::string& help,
            std::optional<std::string>& value);
  void flag(const std::string& name, const std::string& help, bool& value);
  void positional(const std::string& name, const std::string& help,
                  std::vector<std::string>& values, std::size_t at_most);
  // What the first argument without a name may be. `commands`: each has options of its own.
  void words(std::vector<std::string> words, bool commands = false);

  // False when the help was asked for, or the description (kDescribe alone), which help() then
  // gives. InputError: unknown option (nearest name), missing value,
  // too many arguments.
  [[nodiscard]] bool parse(const std::vector<std::string>& args);
  [[nodiscard]] std::string help() const;

 private:
  std::unique_ptr<CLI::App> app_;
  CommandDescription description_;
  bool describing_ = false;
  std::vector<std::string> names_;
  std::size_t positionals_at_most_ = 0;
  std::vector<std::string>* positionals_ = nullptr;
};

}  // namespace fuseline
