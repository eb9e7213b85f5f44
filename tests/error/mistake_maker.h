// What makes mistaken programs of a right one.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/error/program_mistakes.h"
#include "tests/error/program_text.h"

namespace fuseline::test {

class MistakeMaker {
 public:
  MistakeMaker(std::string base, const std::string& text, int each)
      : base_(std::move(base)), right_(text), each_(each) {}

  std::vector<Mistake> run() {
    of_partials();
    of_memory();
    of_values();
    of_mainloops();
    of_the_file();
    typing_errors();
    return std::move(all_);
  }

 private:
  // Line numbers count from 0 here and from 1 there.
  void add(const std::string& what, const Text& text, std::set<std::string> rules,
           std::set<std::size_t> lines, bool typing = false);

  // The program that reads a tensor as a tile, and no other line does.
  [[nodiscard]] const Place* reader_of(const std::string& tensor) const {
    for (const Place& p : right_.programs)
      for (std::size_t i = p.begin(); i < p.end; ++i)
        if (right_.code(i).find("= load " + tensor + "[") != std::string::npos) return &p;
    return nullptr;
  }

  void of_partials();

  void of_memory();

  // A tensor that the mainloop reads for all tiles is stored by the tile.
  void in_place(const Place& p, const std::vector<std::size_t>& stores);

  void out_of_order();

  void of_values();

  // Whether the name stands behind "=", as a word of its own.
  static bool mentions(const std::string& code, const std::string& name) {
    for (std::size_t at = code.find(" = "); (at = code.find(name, at)) != std::string::npos; ++at) {
      const std::size_t end = at + name.size();
      if (!in_name(code[at - 1]) &&
          (end == code.size() || (!in_name(code[end]) && code[end] != '[')))
        return true;
    }
    return false;
  }

  void of_mainloops();

  void of_the_file();

  void typing_errors();

  std::string base_;
  Text right_;
  int each_;
  std::vector<Mistake> all_;
};

}  // namespace fuseline::test
