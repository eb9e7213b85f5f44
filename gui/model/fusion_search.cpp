#include "gui/model/fusion_search.h"

#include <algorithm>

#include "model/backward.h"

namespace fuseline::gui {

namespace {

// Collects legal candidates that keep the wanted edge on chip.
class Search {
 public:
  Search(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge)
      : block_(block), custom_(custom), edge_(edge), plan_(legal_plan(block, custom)) {
    if (!plan_) return;
    for (const Edge& e : edges(plan_->graph)) {
      const bool same =
          plan_->graph.op(e.from).name == edge.from && plan_->graph.op(e.to).name == edge.to;
      if (same) tensors_.push_back(plan_->graph.tensor(e.tensor).name);
    }
  }

  std::vector<Suggestion> run() {
    if (!plan_) return {};
    with_one_rewrite();
    with_another_edge();
    without_edges(1);
    if (found_.empty()) with_two_rewrites();
    if (found_.empty()) without_edges(2);
    if (found_.empty()) another_edge_instead();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool is_full() const { return found_.size() >= kMostSuggestions; }

  void offer(CustomFusion candidate, const std::string& text) {
    if (!is_full() && legal_plan(block_, candidate)) {
      found_.push_back({std::move(candidate), text});
    }
  }

  CustomFusion wanted() const {
    CustomFusion out = custom_;
    out.on_chip.push_back(edge_);
    return out;
  }

  static std::vector<std::string> other_rewrites(const std::vector<std::string>& chosen) {
    std::vector<std::string> names = rewrite_names();
    std::erase_if(names, [&](const std::string& name) {
      return std::ranges::find(chosen, name) != chosen.end();
    });
    return names;
  }

  // Rewrites that apply behind the chosen ones.
  std::vector<std::string> applicable(const std::vector<std::string>& after) const {
    std::vector<std::string> names;
    for (const std::string& name : other_rewrites(after)) {
      CustomFusion only{after, {}};
      only.rewrites.push_back(name);
      if (legal_plan(block_, only)) names.push_back(name);
    }
    return names;
  }

  void with_one_rewrite() {
    for (const std::string& name : other_rewrites(custom_.rewrites)) {
      if (is_full()) return;
      CustomFusion candidate = wanted();
      candidate.rewrites.push_back(name);
      offer(std::move(candidate), "first the rewrite " + name);
      without_the_tensor(name);
    }
  }

  // A rewrite after which what goes along the edge is not made any more: a norm that is split needs
  // no normalised tensor.
  void without_the_tensor(const std::string& name) {
    CustomFusion candidate = custom_;
    candidate.rewrites.push_back(name);
    const std::optional<Plan> plan = is_full() ? std::nullopt : legal_plan(block_, candidate);
    if (!plan) return;
    for (const std::string& tensor : tensors_) {
      if (plan->graph.find_tensor(tensor)) return;
    }
    if (!tensors_.empty()) {
      found_.push_back({std::move(candidate), "the rewrite " + name + " instead: then no " +
                                                  tensors_.front() + " is made"});
    }
  }

  void with_two_rewrites() {
    if (has_backward(block_)) return;  // too many to try
    for (const std::string& first : applicable(custom_.rewrites)) {
      CustomFusion candidate = wanted();
      candidate.rewrites.push_back(first);
      for (const std::string& second : applicable(candidate.rewrites)) {
        if (is_full()) return;
        CustomFusion both = candidate;
        both.rewrites.push_back(second);
        offer(std::move(both), "first the rewrites " + first + " and " + second);
      }
    }
  }

  // Edges from or to one of the two operators' kernels.
  std::vector<OnChipEdge> neighbours() const {
    std::vector<OnChipEdge> out;
    for (const Edge& e : edges(plan_->graph)) {
      const OnChipEdge edge{plan_->graph.op(e.from).name, plan_->graph.op(e.to).name};
      if (edge == edge_ || share_kernel(*plan_, edge)) continue;
      const auto near = [&](const std::string& op) {
        return op == edge_.from || op == edge_.to || share_kernel(*plan_, {op, edge_.from}) ||
               share_kernel(*plan_, {op, edge_.to});
      };
      if (!near(edge.from) && !near(edge.to)) continue;
      if (std::ranges::find(out, edge) == out.end()) out.push_back(edge);
    }
    return out;
  }

  void with_another_edge() {
    for (const OnChipEdge& other : neighbours()) {
      if (is_full()) return;
      CustomFusion candidate = wanted();
      candidate.on_chip.push_back(other);
      offer(std::move(candidate), "also fuse " + arrow_text(other));
    }
  }

  void without_edges(int count) {
    const std::vector<OnChipEdge>& chosen = custom_.on_chip;
    for (std::size_t i = 0; i < chosen.size() && !is_full(); ++i) {
      CustomFusion candidate = wanted();
      std::erase(candidate.on_chip, chosen[i]);
      if (count == 1) {
        offer(std::move(candidate), "without " + arrow_text(chosen[i]));
        continue;
      }
      for (std::size_t j = i + 1; j < chosen.size() && !is_full(); ++j) {
        CustomFusion fewer = candidate;
        std::erase(fewer.on_chip, chosen[j]);
        offer(std::move(fewer),
              "without " + arrow_text(chosen[i]) + " and " + arrow_text(chosen[j]));
      }
    }
  }

  void another_edge_instead() {
    for (const OnChipEdge& other : neighbours()) {
      CustomFusion candidate = custom_;
      candidate.on_chip.push_back(other);
      offer(std::move(candidate), "fuse " + arrow_text(other) + " instead");
    }
  }

  const Graph& block_;
  const CustomFusion& custom_;
  const OnChipEdge& edge_;
  std::optional<Plan> plan_;
  std::vector<std::string> tensors_;  // that go along the edge
  std::vector<Suggestion> found_;
};

}  // namespace

std::vector<Suggestion> nearest_fusions(const Graph& block, const CustomFusion& custom,
                                        const OnChipEdge& edge) {
  return Search(block, custom, edge).run();
}

std::vector<Suggestion> largest_fusions(const Graph& block, const CustomFusion& custom,
                                        const std::vector<OnChipEdge>& wanted) {
  std::vector<Suggestion> found;
  for (std::size_t left_out = 0; left_out < wanted.size(); ++left_out) {
    if (found.size() >= kMostSuggestions) return found;
    CustomFusion candidate = custom;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (i != left_out) candidate.on_chip.push_back(wanted[i]);
    }
    if (candidate == custom || !legal_plan(block, candidate)) continue;
    found.push_back({std::move(candidate), "all but " + arrow_text(wanted[left_out])});
  }
  if (!found.empty()) return found;
  CustomFusion kept = custom;
  std::string text;
  for (const OnChipEdge& edge : wanted) {
    kept.on_chip.push_back(edge);
    if (legal_plan(block, kept)) {
      text += (text.empty() ? "only " : ", ") + arrow_text(edge);
    } else {
      kept.on_chip.pop_back();
    }
  }
  if (!text.empty()) found.push_back({std::move(kept), text});
  return found;
}

}  // namespace fuseline::gui
