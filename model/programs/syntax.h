// How a line of a program stands in its text. A primitive names the parts of its line in order, and
// the same walk writes the line or reads it: so what is printed is what is read. See README.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/primitives/basics.h"
#include "model/primitives/primitive.h"

namespace fuseline {

class Meaning;
class ProgramAdjoint;

class Syntax {
 public:
  virtual ~Syntax() = default;

  // "o = ", "dgu, o = ": what the line makes. Stands first in it.
  virtual void makes(std::span<Value* const> results) = 0;
  void makes(Value& v) {
    Value* const one[] = {&v};
    makes(one);
  }
  void makes(Value& a, Value& b) {
    Value* const two[] = {&a, &b};
    makes(two);
  }
  virtual void makes_some(Value& first, Value& second) = 0;  // the second one may be left out: -1
  // "store h[M,D] = ": what the line stores instead; `add`: whether the sign is "+=".
  virtual void stores(std::string_view keyword, Operand& to, bool* add = nullptr) = 0;

  virtual void word(std::string_view word) = 0;  // one of the language's own: load, pairs
  virtual void open() = 0;                       // "(", and a comma between what follows
  virtual void close() = 0;                      // ")"
  virtual void value(Value& v) = 0;
  virtual void operand(Operand& o) = 0;
  virtual void slice(Value& in, std::int64_t& begin, std::int64_t& count) = 0;  // y[:, 0:64]
  // "{} + {}" with values, the last of them a number where there is a constant.
  virtual void pattern(std::string_view text, std::vector<Value>& in, double* constant) = 0;

  // Further operands and values without names, until none follows.
  virtual void more(std::vector<Operand>& operands) = 0;
  virtual void more(std::vector<Value>& values) = 0;

  // Arguments by name, "group = 128". They come last, in any order, and one that has its usual
  // value is left out. A flag is its name alone.
  virtual void number(std::string_view name, std::int64_t& n, std::int64_t usual) = 0;
  void number(std::string_view name, std::int64_t& n) { number(name, n, kNeeded); }
  virtual void real(std::string_view name, double& x, double usual) = 0;
  virtual void numbers(std::string_view name, std::vector<std::int64_t>& all) = 0;
  virtual void flag(std::string_view name, bool& on) = 0;
  virtual void named(std::string_view name, std::optional<Operand>& o) = 0;
  virtual void named(std::string_view name, std::vector<Operand>& all) = 0;
  virtual void named(std::string_view name, Value& v) = 0;  // -1: left out
  // One of these words, the first of which is usual.
  virtual void choice(std::string_view name, int& which,
                      std::span<const std::string_view> words) = 0;
  // A word of a table of the project's, such as a number format; "": left out. InputError of `set`.
  virtual void text(std::string_view name, const std::string& now,
                    const std::function<void(const std::string&)>& set) = 0;

  // What a person likes to know beside the line; it is not read.
  virtual void remark(const std::string& words) = 0;

  static constexpr std::int64_t kNeeded = INT64_MIN;  // has no usual value
};

// What is known of a kind of primitives: how its line is walked, what it computes on whole values
// in fp64, and how it hands the gradient back, where it states that.
struct LineKind {
  bool (*is)(const Primitive&) = nullptr;
  std::function<Primitive(const Primitive&, Syntax&)> walk;
  std::function<void(const Primitive&, Meaning&)> meaning;
  std::function<void(const Primitive&, ProgramAdjoint&)> adjoint;
};

// The lines that there are. Each primitive's file adds its own: first how they are walked, then one
// for each word that begins one, with the struct that the line then fills.
class LineForms {
 public:
  virtual ~LineForms() = default;

  template <class P>
  void of(void (*walk)(P&, Syntax&), void (*meaning)(const P&, Meaning&) = nullptr,
          void (*adjoint)(const P&, ProgramAdjoint&) = nullptr) {
    LineKind kind{.is = [](const Primitive& p) { return p.is<P>(); },
                  .walk =
                      [walk](const Primitive& p, Syntax& line) {
                        P copy = *p.as<P>();
                        walk(copy, line);
                        return Primitive(std::move(copy));
                      },
                  .meaning = {},
                  .adjoint = {}};
    if (meaning != nullptr)
      kind.meaning = [meaning](const Primitive& p, Meaning& exact) { meaning(*p.as<P>(), exact); };
    if (adjoint != nullptr)
      kind.adjoint = [adjoint](const Primitive& p, ProgramAdjoint& back) {
        adjoint(*p.as<P>(), back);
      };
    begin(std::move(kind));
  }

  // "o = word ...".
  virtual void makes(const std::string& word, const Primitive& filled) = 0;
  // "keyword t[M,N] = word(...)"; without a word the line stores a value as it is.
  virtual void stores(const std::string& keyword, const std::string& word,
                      const Primitive& filled) = 0;
  // "o = {} + {}".
  virtual void pattern(const std::string& text, const Primitive& filled) = 0;

 private:
  virtual void begin(LineKind kind) = 0;
};
using AddLines = void (*)(LineForms&);

// Adds the lines of a primitive from outside this project, for as long as the program runs.
struct AddedLines {
  explicit AddedLines(AddLines lines);
};

}  // namespace fuseline
