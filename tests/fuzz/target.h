// A fuzz target: one reader of text or bytes that a stranger may have written.
#pragma once

#include <string>
#include <vector>

namespace fuseline::fuzz {

struct Target {
  std::string name;        // of its folder below tests/fuzz/corpora too
  std::string dictionary;  // a file of tests/fuzz/dictionaries, without ".dict"
  // Good files of the repository that are tried beside the corpus, relative to its root. "a/*.toml"
  // is all of a folder.
  std::vector<std::string> seeds;
  // Reads the bytes. It may throw InputError or MissingError; anything else is a bug.
  void (*read)(const std::string& bytes);
};

// A file of tests/fuzz/targets holds one of these for its reader. Nothing else names the target.
class Registered {
 public:
  explicit Registered(Target target);
};

// All targets by name.
std::vector<Target> targets();

// The inputs of a target's corpus folder and its seeds, in the order of their names.
struct Input {
  std::string name;
  std::string bytes;
};
std::vector<Input> inputs_of(const Target& target);

// The words of its dictionary.
std::vector<std::string> words_of(const Target& target);

enum class Outcome { accepted, refused };

// Reads once. Where the reader throws something else than its errors, or an error without a
// message, this throws std::logic_error that says so.
Outcome read_once(const Target& target, const std::string& bytes);

// The bytes as a file for readers that take a path: always the same file of this process.
std::string file_with(const std::string& bytes, const std::string& name);

}  // namespace fuseline::fuzz
