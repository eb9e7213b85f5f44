#include "sim/traces/kernel_alignment.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/measured/measurement.h"

namespace fuseline {

namespace {

// Points of a pair. Only their differences matter: a name outweighs a time, an order nothing.
constexpr double kSameKind = 2;
constexpr double kSameRareKind = 4;  // GEMM and attention, whose names are sure
constexpr double kSpeaks = 2;        // the name speaks of the operators
constexpr double kSpeaksOfOthers = -1.5;
constexpr double kOtherMaker = -1;  // compiled by Triton, and planned as a library's; or otherwise
constexpr double kFurtherLaunch = 0.5;
constexpr double kCompanion = 1;
constexpr double kLaunchLeftOut = -0.5;
constexpr double kKernelLeftOut = -1;
constexpr double kRefused = -std::numeric_limits<double>::infinity();
// Out of order, a time may be off by this factor.
constexpr double kFittingTime = 1.7;

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string in_lower_case(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// A part of a launch's name, in lower case, and a part of the operators' names that it stands for.
struct Word {
  std::string_view launch, op;
};
constexpr std::array<Word, 50> kSpokenWords = {{
    {"norm", "norm"},
    {"silu", "silu"},
    {"silu", "swiglu"},
    {"swiglu", "swiglu"},
    {"gelu", "gelu"},
    {"gelu", "geglu"},
    {"relu", "relu"},
    {"functor_add", "add"},
    {"functoronself_add", "add"},
    {"_add_", "add"},
    {"add_kernel", "add"},
    {"neg_kernel", "negate"},
    {"neg_kernel", "rope"},
    {"_neg_", "rope"},
    {"_neg_", "negate"},
    {"rotary", "rope"},
    {"rope", "rope"},
    {"catarray", "concat"},
    {"catarray", "rope"},
    {"_cat_", "rope"},
    {"_cat_", "concat"},
    {"binaryfunctor", "mul"},
    {"mulfunctor", "mul"},
    {"binaryfunctor", "rope"},
    {"_mul_", "mul"},
    {"_mul_", "swiglu"},
    {"softmax", "softmax"},
    {"copy", "copy"},
    {"copy", "cast"},
    {"copy", "append"},
    {"copy", "transpos"},
    {"pow_tensor", "square"},
    {"rsqrt", "rsqrt"},
    {"meanops", "row_mean"},
    {"meanops", "mean"},
    {"topk", "choose"},
    {"sort", "choose"},
    {"topk", "route"},
    {"sort", "route"},
    {"embedding", "embedding"},
    {"vectorized_gather", "embedding"},
    {"indexselect", "embedding"},
    {"nll_loss", "cross_entropy"},
    {"logsoftmax", "cross_entropy"},
    {"conv1d", "conv"},
    {"scan", "scan"},
    {"flash", "attention"},
    {"fmha", "attention"},
    {"indexfunc", "sum"},
    {"bias", "bias"},
}};

using SpokenWords = std::bitset<kSpokenWords.size()>;

// Which words a launch's name has.
SpokenWords words_in(const std::string& name) {
  const std::string lower = in_lower_case(name) + "_";
  SpokenWords found;
  for (std::size_t i = 0; i < kSpokenWords.size(); ++i)
    found[i] = holds(lower, kSpokenWords.at(i).launch);
  return found;
}

// Which words stand for one of the operators.
SpokenWords words_for(std::span<const std::string> operators) {
  SpokenWords found;
  for (std::size_t i = 0; i < kSpokenWords.size(); ++i)
    found[i] = std::ranges::any_of(
        operators, [&](const std::string& op) { return holds(op, kSpokenWords.at(i).op); });
  return found;
}

std::optional<bool> speaks_of(const SpokenWords& in_name, const SpokenWords& for_operators) {
  if (in_name.none()) return std::nullopt;
  return (in_name & for_operators).any();
}

bool is_rare(KernelKind kind) {
  return kind == KernelKind::gemm || kind == KernelKind::attention || kind == KernelKind::scan ||
         kind == KernelKind::conv;
}

// 1 for equal times, 0 for a factor of 4, -1 for 16 and beyond.
double closeness(Seconds a, Seconds b) {
  if (a <= Seconds(0) || b <= Seconds(0)) return 0;
  return std::max(-1.0, 1 - std::abs(std::log(a / b)) / std::log(4.0));
}

// All that alignment asks of a pair.
class PairPoints {
 public:
  PairPoints(std::span<const SeenLaunch> launches, std::span<const PlannedKernel> planned)
      : launches_(launches), planned_(planned) {
    // Texts are searched once each, not for every pair: a trace is aligned hundreds of times.
    std::vector<SpokenWords> words;
    for (const PlannedKernel& p : planned) words.push_back(words_for(p.operators));
    for (const SeenLaunch& l : launches) {
      kinds_.push_back(kind_of_launch(l.name));
      companions_.push_back(belongs_to_launch_before(l.name));
      const SpokenWords in_name = words_in(l.name);
      for (const SpokenWords& for_operators : words)
        speaks_.push_back(speaks_of(in_name, for_operators));
    }
  }

  [[nodiscard]] KernelKind kind(std::size_t launch) const { return kinds_[launch]; }
  [[nodiscard]] std::optional<bool> speaks(std::size_t l, std::size_t p) const {
    return speaks_[l * planned_.size() + p];
  }
  [[nodiscard]] double match(std::size_t l, std::size_t p) const {
    const KernelKind planned = planned_[p].kind;
    const double close = closeness(launches_[l].time, planned_[p].time);
    if (planned == KernelKind::block) return kSameKind + close;
    const bool same = kinds_[l] == planned;
    if (!same && (is_rare(kinds_[l]) || is_rare(planned))) return kRefused;
    double points = !same ? 0 : is_rare(planned) ? kSameRareKind : kSameKind;
    const std::optional<bool> spoken = speaks(l, p);
    if (spoken) points += *spoken ? kSpeaks : kSpeaksOfOthers;
    if (!same && !spoken.value_or(false)) points -= 1;
    const bool generated = launches_[l].name.starts_with("triton_");
    if (!is_rare(planned) && generated != planned_[p].generated) points += kOtherMaker;
    return points + close;
  }
  // As a further launch of kernel p.
  [[nodiscard]] double join(std::size_t l, std::size_t p) const {
    if (companions_[l] && is_rare(planned_[p].kind)) return kCompanion;
    if (companions_[l]) return kRefused;
    if (planned_[p].kind == KernelKind::block) return kFurtherLaunch;
    if (is_rare(kinds_[l]) || is_rare(planned_[p].kind)) return kRefused;
    if (speaks(l, p).value_or(false)) return kFurtherLaunch;
    return kRefused;
  }

 private:
  std::span<const SeenLaunch> launches_;
  std::span<const PlannedKernel> planned_;
  std::vector<KernelKind> kinds_;
  std::vector<bool> companions_;
  std::vector<std::optional<bool>> speaks_;
};

// The best points of launches l... and kernels p..., where kernel p - 1 may take further launches
// (open) or not. Filled from the back.
class AlignmentTable {
 public:
  enum class Step : std::uint8_t { end, match, join, skip_launch, skip_kernel };

  AlignmentTable(std::size_t launches, std::size_t planned, const PairPoints& pairs)
      : launches_(launches), planned_(planned), cells_((launches + 1) * (planned + 1) * 2) {
    for (std::size_t l = launches + 1; l-- > 0;)
      for (std::size_t p = planned + 1; p-- > 0;)
        for (const bool open : {false, true}) fill(l, p, open, pairs);
  }

  struct Cell {
    double points = 0;
    Step step = Step::end;
  };
  [[nodiscard]] const Cell& at(std::size_t l, std::size_t p, bool open) const {
    return cells_[(l * (planned_ + 1) + p) * 2 + (open ? 1 : 0)];
  }

 private:
  void fill(std::size_t l, std::size_t p, bool open, const PairPoints& pairs) {
    Cell best{l == launches_ && p == planned_ ? 0 : kRefused, Step::end};
    const auto offer = [&](double points, Step step) {
      if (points > best.points) best = {points, step};
    };
    if (l < launches_ && p < planned_)
      offer(pairs.match(l, p) + at(l + 1, p + 1, true).points, Step::match);
    if (l < launches_ && open && p > 0)
      offer(pairs.join(l, p - 1) + at(l + 1, p, true).points, Step::join);
    if (l < launches_) offer(kLaunchLeftOut + at(l + 1, p, open).points, Step::skip_launch);
    if (p < planned_) offer(kKernelLeftOut + at(l, p + 1, false).points, Step::skip_kernel);
    cells_[(l * (planned_ + 1) + p) * 2 + (open ? 1 : 0)] = best;
  }

  std::size_t launches_, planned_;
  std::vector<Cell> cells_;
};

// Schedulers move whole products: the gradients of weights to the end, say.
void match_out_of_order(std::span<const SeenLaunch> launches,
                        std::span<const PlannedKernel> planned, const PairPoints& pairs,
                        KernelAlignment& out) {
  std::vector<bool> taken(planned.size(), false);
  for (const LaunchMatch& m : out.launches)
    if (m.planned) taken[*m.planned] = true;
  for (std::size_t l = 0; l < launches.size(); ++l) {
    if (out.launches[l].planned || !is_rare(pairs.kind(l))) continue;
    std::optional<std::size_t> best;
    double least = std::log(kFittingTime);
    for (std::size_t p = 0; p < planned.size(); ++p) {
      if (taken[p] || planned[p].kind != pairs.kind(l)) continue;
      if (launches[l].time <= Seconds(0) || planned[p].time <= Seconds(0)) continue;
      const double off = std::abs(std::log(launches[l].time / planned[p].time));
      if (off < least) {
        least = off;
        best = p;
      }
    }
    if (!best) continue;
    taken[*best] = true;
    out.launches[l] = {best, MatchedBy::time};
    out.score += kSameKind - kLaunchLeftOut - kKernelLeftOut;
  }
}

}  // namespace

KernelKind kind_of_launch(const std::string& name) {
  // A fused kernel's name lists the operators that it ends in, attention among them.
  if (name.starts_with("triton_poi")) return KernelKind::pointwise;
  if (name.starts_with("triton_red") || name.starts_with("triton_per")) return KernelKind::norm;
  const std::string lower = in_lower_case(name);
  if (lower.starts_with("triton_mm") || lower.starts_with("triton_tem_fused_mm") ||
      lower.starts_with("triton_tem_fused_addmm"))
    return KernelKind::gemm;
  for (const std::string_view part : {"causal_conv1d", "conv_depthwise"})
    if (holds(lower, part)) return KernelKind::conv;
  for (const std::string_view part : {"selective_scan", "chunk_scan", "chunk_state"})
    if (holds(lower, part)) return KernelKind::scan;
  // Only these two say "attention" and are no attention: a copy of its result, its preparation.
  if (!holds(lower, "elementwise") && !holds(lower, "copy"))
    for (const std::string_view part : {"attention", "_attn", "attn_", "mha_"})
      if (holds(lower, part)) return KernelKind::attention;
  if (holds(lower, "rmsnorm") || holds(lower, "layernorm")) return KernelKind::norm;
  for (const std::string_view part : {"xmma", "wgrad", "dgrad", "hgemm", "matmul"})
    if (holds(lower, part)) return KernelKind::gemm;
  MeasuredKernel of_that_name{};
  of_that_name.kernel = name;
  return of_that_name.kind();
}

bool belongs_to_launch_before(const std::string& name) {
  return holds(name, "splitKreduce") || holds(name, "lean_reduction") ||
         holds(name, "splitkv_combine") || holds(name, "flash_fwd_splitkv_combine");
}

std::optional<bool> name_speaks_of(const std::string& name,
                                   std::span<const std::string> operators) {
  return speaks_of(words_in(name), words_for(operators));
}

KernelAlignment align_launches(std::span<const SeenLaunch> launches,
                               std::span<const PlannedKernel> planned) {
  const PairPoints pairs(launches, planned);
  const AlignmentTable table(launches.size(), planned.size(), pairs);
  KernelAlignment out{.launches = std::vector<LaunchMatch>(launches.size()),
                      .score = table.at(0, 0, false).points};
  bool open = false;
  for (std::size_t l = 0, p = 0; l < launches.size() || p < planned.size();) {
    switch (table.at(l, p, open).step) {
      case AlignmentTable::Step::match: {
        const bool speaks = pairs.speaks(l, p).value_or(false);
        const bool same = pairs.kind(l) == planned[p].kind;
        out.launches[l] = {p, speaks ? MatchedBy::name : same ? MatchedBy::kind : MatchedBy::order};
        ++l, ++p;
        open = true;
        break;
      }
      case AlignmentTable::Step::join:
        out.launches[l] = {p - 1, MatchedBy::part};
        ++l;
        break;
      case AlignmentTable::Step::skip_launch:
        ++l;
        break;
      default:
        ++p;
        open = false;
    }
  }
  match_out_of_order(launches, planned, pairs, out);
  return out;
}

const char* name_of(MatchedBy by) {
  switch (by) {
    case MatchedBy::nothing:
      return "nothing";
    case MatchedBy::name:
      return "name";
    case MatchedBy::kind:
      return "kind";
    case MatchedBy::order:
      return "order";
    case MatchedBy::part:
      return "part";
    case MatchedBy::time:
      return "time";
    case MatchedBy::hand:
      return "hand";
  }
  return "?";
}

}  // namespace fuseline
