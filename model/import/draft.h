// What an imported block will say, before steps that nobody reads are left out, products are
// joined, and names and letters are chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/import/tensor_view.h"

namespace fuseline {

enum class MatrixKind : std::uint8_t { activation, input, weight, table };

// A size that becomes a letter of the block: "H", 32. Another number under the same letter becomes
// "H2".
struct Letter {
  std::string name{};
  std::int64_t number = 0;
  friend bool operator==(const Letter&, const Letter&) = default;
};

struct DraftMatrix {
  MatrixKind kind = MatrixKind::activation;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::string name{};                    // wanted; of a weight or table what its module calls it
  std::optional<std::size_t> made_by{};  // the step
  std::optional<Letter> each_of{};       // of a weight: one matrix for each of so many experts
};

// A product of letters: H d.
using Width = std::vector<Letter>;

// A number that steps share as a parameter, while it is the same: norm_eps.
struct Setting {
  std::string name{};
  double number = 0;
};

struct DraftValue {
  std::string name{};                                          // "eps"
  std::variant<Letter, Setting, double, std::string> value{};  // a text stands as it is: "causal"
};

// What a step is called in plans and its text: "gateup/gate_up: gu = ... w_gate_up".
struct StepName {
  std::string site{};
  std::string op{};      // empty: as the site
  std::string result{};  // of a product behind which columns are taken: of those columns
  std::string second{};  // of a second result
  std::string weight{};  // empty: as op
  bool counted = false;  // norm1, norm2; "#" in result is the number
};

struct DraftStep {
  std::string call{};  // "linear", or "+" and "*" between its reads
  std::vector<MatrixColumns> reads{};
  std::vector<std::string> read_names{};  // empty: in order
  std::vector<DraftValue> values{};
  std::vector<std::size_t> writes{};
  StepName name{};
  std::vector<std::string> remarks{};

  // What it knows of widths: equal ones, and those made of letters.
  std::vector<std::pair<MatrixColumns, MatrixColumns>> equal{};
  std::vector<std::pair<MatrixColumns, Width>> widths{};

  // Names for the products whose results are its reads, and for one that reads its result.
  std::vector<StepName> behind{};
  std::optional<StepName> ahead{};
  bool hands_on = false;  // a rotation, a norm of heads: what reads it gives it its name

  // Products of one tensor behind its reads may be one product of this name.
  std::optional<StepName> joint{};
  // Its reads must be columns behind each other; else this activation of the first, times the
  // second.
  std::string apart{};

  bool live = false;
};

struct Draft {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::vector<DraftMatrix> matrices;
  std::vector<DraftStep> steps;  // behind those that they read
  std::vector<MatrixColumns> outputs;
  std::vector<std::string> remarks;

  [[nodiscard]] std::int64_t rows() const { return batch * tokens; }
  std::size_t add(DraftMatrix matrix);
  std::size_t add(DraftStep step);  // its result's number
  [[nodiscard]] MatrixColumns all_of(std::size_t matrix) const;
  // Whether the columns follow from those of `from`.
  [[nodiscard]] bool follows(const MatrixColumns& range, const MatrixColumns& from) const;
  void mark_live();
  // Live steps alone, each as soon as one that it is for asks: x + o before the branch beside it.
  // Products that meet in one step, and what stands behind them on the way there, go side by side:
  // the products of Q, K and V, then norms of their heads, then rotations.
  void put_in_order_of_need();

 private:
  void number_makers();
  void put_side_by_side(std::size_t meeting);
};

// Products of one tensor that meet in one step become one product, unless `separate`. Steps that
// need their reads behind each other and do not find them so become an activation and a product.
void join_products(Draft& draft, bool separate);

// The text in the one way that we write block files; the remarks stand before the block.
std::string draft_text(const Draft& draft, const std::string& name,
                       const std::vector<std::string>& remarks);

}  // namespace fuseline
