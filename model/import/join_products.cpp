// q_proj, k_proj and v_proj of one tensor become one product, as frameworks that serve models run
// them; so do gate_proj and up_proj.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/import/draft.h"

namespace fuseline {

namespace {

constexpr std::size_t kWeight = 1;  // of linear's reads: x, w, b
constexpr std::size_t kBias = 2;

// The step whose result the columns are, before rotations and norms of heads.
std::optional<std::size_t> product_behind(const Draft& draft, MatrixColumns range) {
  for (;;) {
    const auto maker = draft.matrices[range.matrix].made_by;
    if (!maker) return std::nullopt;
    const DraftStep& step = draft.steps[*maker];
    if (step.call == "linear") return range == draft.all_of(range.matrix) ? maker : std::nullopt;
    if (!step.hands_on) return std::nullopt;
    const auto place = std::find(step.writes.begin(), step.writes.end(), range.matrix);
    range = step.reads[static_cast<std::size_t>(place - step.writes.begin())];
  }
}

bool may_join(const DraftStep& a, const DraftStep& b) {
  return a.reads.front() == b.reads.front() && a.reads.size() == b.reads.size();
}

class Joiner {
 public:
  explicit Joiner(Draft& draft) : draft_(draft) {}

  void join(const DraftStep& meeting) {
    std::vector<std::size_t> products;
    for (const MatrixColumns& read : meeting.reads) {
      const auto product = product_behind(draft_, read);
      if (!product || std::find(products.begin(), products.end(), *product) != products.end())
        continue;
      products.push_back(*product);
    }
    while (!products.empty()) {
      std::vector<std::size_t> together;
      for (const std::size_t product : products)
        if (may_join(draft_.steps[products.front()], draft_.steps[product]))
          together.push_back(product);
      std::erase_if(products, [&](std::size_t product) {
        return std::find(together.begin(), together.end(), product) != together.end();
      });
      if (together.size() > 1) make_one(together, *meeting.joint);
    }
  }

 private:
  std::size_t joint_weight(const std::vector<std::size_t>& products, std::size_t read) {
    DraftMatrix weight{.kind = MatrixKind::weight, .rows = 0, .columns = 0};
    std::vector<std::string> names;
    for (const std::size_t product : products) {
      const DraftMatrix& part = draft_.matrices[draft_.steps[product].reads[read].matrix];
      names.push_back(part.name);
      if (read == kBias) {
        weight.rows = 1;
        weight.columns += part.columns;
      } else {
        weight.rows += part.rows;
        weight.columns = part.columns;
      }
    }
    weight.name = fmt::format("{}", fmt::join(names, ", "));
    return draft_.add(std::move(weight));
  }

  void make_one(const std::vector<std::size_t>& products, const StepName& name) {
    const std::size_t joint = draft_.add(
        DraftMatrix{.rows = draft_.matrices[first_result(products.front())].rows, .columns = 0});
    std::map<std::size_t, std::int64_t> begins;
    for (const std::size_t product : products) {
      begins[first_result(product)] = draft_.matrices[joint].columns;
      draft_.matrices[joint].columns += draft_.matrices[first_result(product)].columns;
    }
    DraftStep step = draft_.steps[*std::min_element(products.begin(), products.end())];
    for (std::size_t read = kWeight; read < step.reads.size(); ++read) {
      const std::size_t weight = joint_weight(products, read);
      step.reads[read] = draft_.all_of(weight);
    }
    step.writes = {joint};
    step.name = name;
    step.equal.clear();
    step.remarks.clear();
    for (const std::size_t product : products) {
      const DraftStep& one = draft_.steps[product];
      step.remarks.insert(step.remarks.end(), one.remarks.begin(), one.remarks.end());
    }
    step.remarks.push_back(
        fmt::format("One product has the weights {} as w_{}, as frameworks that serve models run "
                    "them (--separate keeps them apart)",
                    draft_.matrices[step.reads[kWeight].matrix].name, name.weight));
    const auto moved = [&](MatrixColumns& range) {
      const auto found = begins.find(range.matrix);
      if (found == begins.end()) return;
      range.matrix = joint;
      range.first += found->second;
    };
    // In the place of the first of them: the others come later, and so does all that reads them.
    const std::size_t place = *std::min_element(products.begin(), products.end());
    draft_.steps[place] = std::move(step);
    draft_.matrices[joint].made_by = place;
    for (DraftStep& other : draft_.steps) {
      for (MatrixColumns& read : other.reads) moved(read);
      for (auto& [a, b] : other.equal) {
        moved(a);
        moved(b);
      }
      for (auto& [range, width] : other.widths) moved(range);
    }
    for (MatrixColumns& output : draft_.outputs) moved(output);
  }

  [[nodiscard]] std::size_t first_result(std::size_t product) const {
    return draft_.steps[product].writes.front();
  }

  Draft& draft_;
};

// swiglu(gate, up): one matrix where they stand behind each other, else silu(gate) * up.
void put_apart(Draft& draft, std::size_t at) {
  DraftStep step = draft.steps[at];
  const MatrixColumns gate = step.reads[0];
  const MatrixColumns up = step.reads[1];
  if (gate.matrix == up.matrix && gate.first + gate.count == up.first) {
    draft.steps[at].reads = {{gate.matrix, gate.first, gate.count + up.count}};
    draft.steps[at].behind = {*step.joint};
    return;
  }
  const std::size_t opened =
      draft.add(DraftMatrix{.rows = draft.matrices[gate.matrix].rows, .columns = gate.count});
  DraftStep activation{.call = step.apart, .reads = {gate}, .writes = {opened}};
  activation.name = {.site = "act", .result = "opened"};
  activation.equal = {{gate, draft.all_of(opened)}};
  activation.behind = {step.behind.front()};
  activation.live = true;
  step.call = "*";
  step.apart.clear();
  step.reads = {draft.all_of(opened), up};
  step.name.op = "gated";
  draft.steps[at] = std::move(step);
  draft.steps.insert(draft.steps.begin() + static_cast<std::ptrdiff_t>(at), std::move(activation));
  for (DraftMatrix& matrix : draft.matrices)
    if (matrix.made_by && *matrix.made_by >= at) ++*matrix.made_by;
  draft.matrices[opened].made_by = at;
}

}  // namespace

void join_products(Draft& draft, bool separate) {
  for (std::size_t i = 0; i < draft.steps.size() && !separate; ++i) {
    const DraftStep meeting = draft.steps[i];
    if (meeting.live && meeting.joint) Joiner(draft).join(meeting);
  }
  draft.mark_live();
  for (std::size_t i = 0; i < draft.steps.size(); ++i)
    if (draft.steps[i].live && !draft.steps[i].apart.empty()) put_apart(draft, i);
}

}  // namespace fuseline
