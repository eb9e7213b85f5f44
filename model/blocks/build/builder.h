// Walks through a block's text and makes its graph. builder.cpp has scopes and statements,
// expressions.cpp what they compute, operators.cpp calls of operators, functions.cpp and
// attention.cpp the functions of the language itself, codes.cpp what they store in few bits, call.*
// their arguments.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/used_names.h"
#include "model/blocks/block_text.h"
#include "model/blocks/build/value.h"
#include "model/operators/operator.h"

namespace fuseline {

// A call as it is written, before its arguments are computed: a function of the language computes
// them in its own order, which is the order of tensors in the graph.
class Call;

class BlockBuilder {
 public:
  BlockBuilder(const BlockText& text, const ParameterValues& values, const Workload& workload);

  Graph build();
  ParameterValues defaults();

 private:
  friend class Call;
  friend class TextCall;

  // Names that hold in the block, or in a part of it, and the words before the names of its tensors
  // and operators.
  struct Scope {
    const SourceText* source = nullptr;
    std::map<std::string, TextValue> names;
    std::map<std::string, Position> places;  // where they were given
    std::string prefix;                      // "image_"
    std::optional<TextValues> given;
    int depth = 0;
  };
  // What the statement that is being computed calls its results.
  struct Naming {
    std::string site{}, op{};  // of its label; empty without
    std::vector<std::string> targets{};
    bool outermost = true;  // of the whole right side, not of a call within it
  };

  // builder.cpp
  void bind_letters();
  void bind_parameters(const ParameterValues& values);
  void words_of_defaults(const Definition& block);
  void statements(const std::vector<Statement>& all);
  void statement(const Statement& s);
  void assign(const Statement& s);
  void declare(const Statement& s, Role role);
  void outputs(const Statement& s);
  void finish();
  void own_programs();
  void check_free(const std::string& name, Position at) const;
  void give_name(const std::string& name, TextValue value, Position at);

  // expressions.cpp
  TextValue evaluate(const Expression& e, const Naming& naming);
  TextValue name_value(const Expression& e);
  TextValue number_value(const Expression& e);
  TextValue binary_value(const Expression& e, const Naming& naming);
  TextValue sized(const Expression& e, const TextValue& a, const TextValue& b);
  TextValue compared(const Expression& e, const TextValue& a, const TextValue& b);
  TextValue of_tensors(const Expression& e, const TextValue& a, const TextValue& b,
                       const Naming& naming);
  TextValue weight(const Expression& e);
  [[nodiscard]] ShapeSize size_of_shape(const Expression& e);
  bool truth(const Expression& e);

  // operators.cpp
  TextValue operator_call(const Operator& kind, const Expression& e, const Naming& naming);
  // What an operator writes besides its result: a tensor of its own, or an operand in place.
  struct SecondResult {
    ShapeSize rows{1}, cols{1};
    Dtype type = Dtype::bf16;
    std::optional<TensorValue> place{};
  };
  TextValue apply(const Operator& kind, const std::vector<TensorValue>& reads,
                  const std::vector<Position>& places, const Attributes& attributes,
                  const Naming& naming, Position at,
                  std::optional<std::pair<ShapeSize, ShapeSize>> shape = {},
                  const std::optional<SecondResult>& second = {});
  TensorValue second_tensor(const Operator& kind, const SecondResult& second, const Naming& naming,
                            Position at);

  // functions.cpp
  using Function = TextValue (BlockBuilder::*)(Call&, const Naming&);
  static const std::map<std::string, Function>& functions();
  TextValue call(const Expression& e, const Naming& naming);
  TextValue part_call(const BlockText::Found& part, const Expression& e, const Naming& naming);
  TextValue linear(Call& call, const Naming& naming);
  TextValue expert_linear(Call& call, const Naming& naming);
  TextValue rows(Call& call, const Naming& naming);
  TextValue split(Call& call, const Naming& naming);
  TextValue split_tokens(Call& call, const Naming& naming);
  TextValue join_tokens(Call& call, const Naming& naming);
  TextValue cache(Call& call, const Naming& naming);
  TextValue attention(Call& call, const Naming& naming);
  std::optional<TensorValue> new_cache_scale(const std::string& name, const TensorValue& cache,
                                             const std::optional<ShapeSize>& heads, Position at);
  std::optional<TensorValue> cache_scale_of(const TensorValue& rows, std::int64_t heads,
                                            Position at);
  TextValue kept(Call& call, const Naming& naming);
  TextValue recent(Call& call, const Naming& naming);
  TextValue exact(Call& call, const Naming& naming);
  TextValue square_root(Call& call, const Naming& naming);
  TextValue smaller(Call& call, const Naming& naming);
  TextValue larger(Call& call, const Naming& naming);

  // codes.cpp
  std::vector<TensorValue> stored_weight(const TensorValue& w, Position at);
  // What a product multiplies its weight by, in codes, and the scales of the codes.
  struct CodedRows {
    TensorValue codes, scale;
  };
  std::optional<CodedRows> coded_rows(const TensorValue& x, const std::string& site, Position at);

  // Tensors and operators -----------------------------------------------------------------------

  TensorValue new_tensor(const std::string& name, Role role, const ShapeSize& rows,
                         const ShapeSize& cols, Position at, const std::string& symbol = {});
  void add_op(const std::string& name, OpKind kind, const std::string& site,
              const std::vector<TensorValue>& reads, const std::vector<TensorValue>& writes,
              const Attributes& attributes, Position at);
  [[nodiscard]] std::string symbol_of(const ShapeSize& rows, const ShapeSize& cols) const;
  [[nodiscard]] std::string op_name(const Naming& naming, const std::string& otherwise) const;
  [[nodiscard]] std::string site_name(const Naming& naming, const std::string& otherwise) const;
  [[nodiscard]] std::string result_name(const Naming& naming, const std::string& otherwise);
  [[nodiscard]] std::string shape_in_words(const TensorValue& t) const;

  [[noreturn]] void fail(Position at, InputProblem problem) const;
  Scope& scope() { return *scope_; }

  const BlockText& text_;
  const ParameterValues& values_;
  const Workload& workload_;
  Graph graph_;
  ShapeWords words_;
  Scope* scope_ = nullptr;
  std::map<std::string, TextValue> letters_;  // B, T, S, M, forward, decode, train
  UsedNames tensor_names_, op_names_;
  std::map<TensorId, std::vector<TensorValue>> beside_;  // of weights in few bits
  std::vector<std::pair<Operand, CodedRows>> coded_;     // of activations in few bits
  std::vector<const Statement*> computed_;               // by programs of one's own
  // Of caches in few bits: heads, and the tensor that has a scale for each, if any.
  struct CachedHeads {
    std::int64_t heads = 1;
    std::optional<TensorId> scale{};
  };
  std::map<TensorId, CachedHeads> cached_;
};

}  // namespace fuseline
