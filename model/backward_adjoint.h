// The joint graph while reverse mode builds it; what the rules of the operators see of it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/backward.h"
#include "model/graph.h"

namespace fuseline {

class Adjoint {
 public:
  Adjoint(Graph forward, const BackwardOptions& options);
  Graph run();

  // The forward operator whose rule runs, and the gradient of its first result.
  [[nodiscard]] const Op& op() const { return op_; }
  [[nodiscard]] const Operand& dy() const { return dy_; }
  // Whether read i of the operator takes part in a gradient; tables do not.
  [[nodiscard]] bool wants(std::size_t i) const;
  // Where the operator's contribution to the gradient of read i goes.
  Operand target(std::size_t i);
  // The contribution to read i is an operand that exists: the gradient passes through.
  void pass(std::size_t i, const Operand& gradient);
  // A forward value as the backward pass reads it: stored, or computed again.
  Operand forward_value(const Operand& operand);

  // The statistics of a norm of the forward pass; makes it write them.
  Operand row_statistics(const std::string& norm);
  // A further result that the forward operator at hand writes for its gradient.
  Operand also_write(const std::string& name, const std::string& symbol, Dtype dtype,
                     std::int64_t rows, std::int64_t cols);
  [[nodiscard]] Dtype type_of(const Operand& operand) const {
    return graph_.tensor(operand.tensor).dtype;
  }
  // The log-sum-exp that the cross entropy at hand writes for its gradient.
  Operand log_sum_exp();
  // Softmax at hand: whether its probabilities are computed again from the log-sum-exp, and the
  // row sums that attention_context's rule left for it.
  [[nodiscard]] bool saves_log_sum_exp() const { return options_.save_log_sum_exp; }
  void leave_delta(TensorId probs, const Operand& delta);
  [[nodiscard]] const Operand* delta(TensorId probs) const;
  // Where a recomputed result of the operator at hand goes when someone asked for it, else null.
  [[nodiscard]] const Operand* wanted_again() const;

  Operand make(const std::string& name, const std::string& symbol, Dtype dtype, std::int64_t rows,
               std::int64_t cols);
  // A tensor of the operand's shape and type.
  Operand make_like(const std::string& name, const Operand& operand);
  void emit(const std::string& name, OpKind kind, std::vector<Operand> reads,
            std::vector<Operand> writes, const Attributes& attributes = {});

 private:
  // Readers of one slice of a tensor, and their contributions to its gradient.
  struct Slice {
    Operand read;
    std::size_t readers = 0;
    std::vector<Operand> parts;
    std::string site;            // of the last reader
    std::optional<Operand> sum;  // of the contributions, once it is asked for
  };

  [[nodiscard]] bool needs_gradient(TensorId id) const;
  void find_needs();
  void find_readers();
  Slice& slice_of(std::size_t i);
  Operand whole_gradient(TensorId id);
  bool concatenates(TensorId id);
  Operand place(const Slice& slice);
  Operand own_part(const Operand& part);
  Operand total(Slice& slice);
  Operand gradient(const Operand& part);
  void finish_leaf(TensorId id);
  Operand* recomputed(TensorId id);
  void recompute(OpId producer, TensorId id);

  Graph graph_;
  BackwardOptions options_;
  Op op_;
  Operand dy_;
  std::string site_;
  std::vector<OpId> order_;  // of the forward operators
  std::vector<bool> needs_;  // by tensor: depends on an input or weight
  std::vector<bool> live_;   // by tensor: an output depends on it
  std::map<TensorId, std::vector<Slice>> slices_;
  std::map<TensorId, Operand> recomputed_;
  std::map<TensorId, Operand> deltas_;
};

}  // namespace fuseline
