// A block file as it is written: what the parser makes, the printer prints and the builder walks
// through. docs/handbook has the language; scenarios/blocks has blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/source_text.h"

namespace fuseline {

struct Expression;
using ExpressionPtr = std::shared_ptr<const Expression>;

// One argument of a call; `name` is empty where it stands in order.
struct Argument {
  std::string name{};
  ExpressionPtr value{};
  Position at{};
};

enum class ExpressionKind : std::uint8_t {
  number,  // 2, 1e-6
  name,    // D, x, yes
  quoted,  // "text"
  tensor,  // w_qkv[N, D]: a weight, declared where it is used first; parts are its sizes
  call,    // rope(q, cos, sin, d = d)
  negate,  // -a
  invert,  // not a
  binary,  // a + b; text is the sign, "·" for a product without one
  choice,  // a if c else b: parts are a, c and, where it is written, b
};

struct Expression {
  ExpressionKind kind = ExpressionKind::number;
  Position at{};
  std::string text{};                  // name, number as written, sign
  std::vector<ExpressionPtr> parts{};  // operands, sizes
  std::vector<Argument> arguments{};   // of a call
  bool in_brackets = false;            // written in round brackets, which the printer keeps
};

// A name with sizes, as inputs and tables are declared, or one name of an `output`.
struct Declared {
  std::string name{};
  std::vector<ExpressionPtr> sizes{};
  std::string next{};    // output y -> x: the next layer's x
  bool numbers = false;  // input ids[M, 1] of numbers: rows of a table, 32 bits each
  Position at{};
};

enum class StatementKind : std::uint8_t {
  assign,
  input,
  table,
  output,
  require,
  choose,
  give,
  computed,
};

struct Statement {
  StatementKind kind = StatementKind::assign;
  Position at{};
  std::string site, op;              // "rope/rope_q:" before an assignment
  std::vector<std::string> targets;  // of an assignment; operators that a program computes
  std::vector<Declared> declared;    // of input, table, output
  ExpressionPtr value{};             // right side, condition
  std::string message;               // of require; the program's file
  std::vector<ExpressionPtr> given;  // of give
  std::vector<Statement> body, otherwise;
  std::vector<std::string> remarks;  // lines above it
  std::string remark;                // behind it
};

struct Parameter {
  std::string name{};
  ExpressionPtr absent{};  // its value where the caller gives none; null: it must be given
  Position at{};
};

// A block, or a part that blocks use.
struct Definition {
  bool is_part = false;
  std::string name{};
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
  std::vector<std::string> remarks;
  Position at{};
};

struct Use {
  std::string file{};
  Position at{};
};

struct BlockFile {
  std::shared_ptr<const SourceText> source;
  std::vector<std::string> remarks;  // before everything else
  std::vector<Use> uses;
  std::vector<Definition> definitions;
  std::vector<std::string> remarks_below;  // behind everything else
};

// InputError with place and line. Sizes are not known here, and no names but the language's own.
BlockFile parse_block_file(const std::string& text, const std::string& file);

// Words of the language, which no tensor, size or part can be called by.
std::span<const std::string_view> block_words();

// The file as text, in the one way that we write it; parse_block_file() gives the same again.
std::string block_file_text(const BlockFile& file);
std::string expression_text(const Expression& expression);

}  // namespace fuseline
