#include "sim/search/distribution.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/piece_text.h"
#include "sim/search/call_block.h"

namespace fuseline {

namespace {

constexpr double kAssumedCalls = 100'000;  // where the distribution counted none
constexpr double kNothing = 1e-12;         // relative: a gain that is rounding

// All that a size is, without its weight.
std::string text_of_size(const ShapeWeight& s) {
  std::string text = fmt::format("{} x {} of {}", s.batch, s.tokens, s.context);
  for (const SequenceGroup& g : s.sequences) text += " + " + describe(g);
  return text;
}

// Each group of the range's calls as large as the largest one in its place; a call with fewer
// groups leaves places empty.
std::vector<SequenceGroup> padded_groups(std::vector<SequenceGroup> all,
                                         const std::vector<SequenceGroup>& more) {
  if (all.size() < more.size()) all.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    all[i].sequences = std::max(all[i].sequences, more[i].sequences);
    all[i].tokens = std::max(all[i].tokens, more[i].tokens);
    all[i].context = std::max(all[i].context, more[i].context);
  }
  return all;
}

class Shapes {
 public:
  Shapes(const PredictionCase& c, const CallSizes& sizes, const DistributionOptions& how,
         const SearchOptions& options)
      : case_(c),
        options_(options),
        sharing_(options.sharing != nullptr ? *options.sharing : alone_) {
    out_.sizes = sizes;
    out_.options = how;
    out_.calls_assumed = !how.calls && sizes.calls <= 0;
    out_.calls = how.calls.value_or(sizes.calls > 0 ? sizes.calls : kAssumedCalls);
    for (const ShapeWeight& s : sizes.shapes) all_weights_ += s.weight;
  }

  DistributionResult run() {
    search_each();
    cross_times();
    buckets();
    padded_buckets();
    servings();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t count() const { return out_.sizes.shapes.size(); }
  [[nodiscard]] double share(std::size_t shape) const {
    return out_.sizes.shapes[shape].weight / all_weights_;
  }
  [[nodiscard]] double share(const ShapeRange& range) const {
    double sum = 0;
    for (std::size_t j = range.first; j <= range.last; ++j) sum += share(j);
    return sum;
  }
  template <class Time>
  [[nodiscard]] Seconds mean(Time time) const {
    Seconds sum;
    for (std::size_t j = 0; j < count(); ++j) sum += time(j) * share(j);
    return sum;
  }

  void search_each() {
    SearchOptions each = options_;
    each.objective = Objective::time;
    each.front_with.reset();
    each.decisions = false;
    each.sharing = nullptr;  // a shape is a piece
    each.progress = {};
    each.budget_seconds = options_.budget_seconds *
                          static_cast<double>(std::min(sharing_.width(), count())) /
                          static_cast<double>(count());
    for (const ShapeWeight& shape : out_.sizes.shapes) {
      blocks_.push_back(std::make_unique<CallBlock>(case_, shape, options_, out_.options.page));
      out_.shapes.push_back({.shape = shape});
    }
    const SharedTexts found = sharing_.texts(
        "shapes", count(), [&](std::size_t j) { return searched(j, each); },
        progress_of("shapes searched", 0, 0.9));
    for (std::size_t j = 0; j < count(); ++j) {
      ShapeResult& shape = out_.shapes[j];
      if (found.texts[j].empty()) {  // stopped before it was begun
        out_.stopped = true;
        choices_.push_back(fallback_choices());
        shape.own = shape.fallback = blocks_[j]->time(fallback_choices());
        continue;
      }
      PieceReader in(found.texts[j]);
      shape.complete = in.flag();
      out_.stopped = in.flag() || out_.stopped;
      shape.own = Seconds(in.real());
      shape.fallback = Seconds(in.real());
      choices_.push_back(choices_from(in.word()));
    }
  }

  std::string searched(std::size_t j, const SearchOptions& each) {
    const SearchResult r =
        search_block(blocks_[j]->block(), case_.gpu, blocks_[j]->workload(), case_.launching, each);
    PieceWriter out;
    const bool mixed = out_.sizes.shapes[j].mixed();
    const Seconds own = mixed ? blocks_[j]->time(choices_of(r)) : r.estimate.time;
    out.flag(r.complete).flag(r.stopped).real(own.value());
    out.real(blocks_[j]->time(fallback_choices()).value()).word(text_of(choices_of(r)));
    return std::move(out).text();
  }

  // Of one stage of the work, from one share of all of it to another.
  [[nodiscard]] Sharing::Progress progress_of(const std::string& what, double from,
                                              double to) const {
    if (!options_.progress) return {};
    return [this, what, from, to](std::size_t done, std::size_t of) {
      options_.progress(fmt::format("{} of {} {}", done, of, what),
                        from + (to - from) * static_cast<double>(done) / static_cast<double>(of));
    };
  }

  // times_[i][j]: the choices of shape i at shape j. Equal choices are tried once.
  void cross_times() {
    const std::size_t n = count();
    times_.assign(n, std::vector<Seconds>(n));
    std::vector<std::size_t> same(n);  // the first shape with these choices
    for (std::size_t i = 0; i < n; ++i) {
      const auto before = choices_.begin() + static_cast<std::ptrdiff_t>(i);
      same[i] = static_cast<std::size_t>(std::find(choices_.begin(), before, choices_[i]) -
                                         choices_.begin());
      if (same[i] == i) ++out_.different;
    }
    std::string name = "choices";
    for (const PlanChoices& c : choices_) name += "\n" + text_of(c);
    const auto at_shape = [&](std::size_t j) {
      PieceWriter out;
      for (std::size_t i = 0; i < n; ++i)
        if (same[i] == i)
          out.real(i == j ? out_.shapes[j].own.value() : blocks_[j]->time(choices_[i]).value());
      return std::move(out).text();
    };
    const SharedTexts found =
        sharing_.texts(name, n, at_shape, progress_of("shapes compared", 0.9, 1));
    for (std::size_t j = 0; j < n; ++j) {
      PieceReader in(found.texts[j]);
      for (std::size_t i = 0; i < n; ++i) {
        if (same[i] != i)
          times_[i][j] = times_[same[i]][j];
        else  // where it was stopped, the choices count as no better
          times_[i][j] = in.more() ? Seconds(in.real()) : out_.shapes[j].fallback;
        if (i == j) times_[i][j] = std::min(times_[i][j], out_.shapes[j].own);
      }
    }
    // Another shape's choices may be better than what a search found before its time was up.
    own_choices_.resize(n);
    for (std::size_t j = 0; j < n; ++j) {
      own_choices_[j] = j;
      for (std::size_t i = 0; i < n; ++i)
        if (times_[i][j] < times_[own_choices_[j]][j]) own_choices_[j] = i;
      out_.shapes[j].own = times_[own_choices_[j]][j];
    }
    out_.each = mean([&](std::size_t j) { return out_.shapes[j].own; });
    out_.fallback = mean([&](std::size_t j) { return out_.shapes[j].fallback; });
  }

  // Whose choices serve the range best; the sum over its shapes of time by share.
  [[nodiscard]] std::pair<std::size_t, Seconds> best_for(const ShapeRange& range) const {
    std::pair<std::size_t, Seconds> best{0, Seconds(std::numeric_limits<double>::infinity())};
    for (std::size_t i = 0; i < count(); ++i) {
      Seconds sum;
      for (std::size_t j = range.first; j <= range.last; ++j) sum += times_[i][j] * share(j);
      if (sum < best.second) best = {i, sum};
    }
    return best;
  }

  void buckets() {
    const std::vector<Parting> partings = best_partings(
        count(), count(), [&](const ShapeRange& r) { return best_for(r).second.value(); });
    for (const Parting& p : partings) out_.by_buckets.emplace_back(p.cost);
    out_.for_all = best_for({0, count() - 1}).first;
    out_.one = out_.by_buckets.front();
    const Parting& chosen = partings[std::min(out_.options.buckets, count()) - 1];
    out_.bucketed = Seconds(chosen.cost);
    for (const ShapeRange& range : chosen.ranges) {
      const auto [whose, sum] = best_for(range);
      Bucket bucket{.shapes = range, .choices = whose, .time = sum / share(range)};
      bucket.size.weight = share(range);
      out_.buckets.push_back(bucket);
      for (std::size_t j = range.first; j <= range.last; ++j) {
        ShapeResult& s = out_.shapes[j];
        s.shared = times_[out_.for_all][j];
        s.choices = whose;
        s.bucketed = times_[whose][j];
      }
    }
  }

  // What all of the range are padded to.
  [[nodiscard]] ShapeWeight padded_size(const ShapeRange& range) const {
    ShapeWeight size{.batch = 1, .tokens = 1, .context = 0, .weight = share(range)};
    if (out_.sizes.shapes[range.first].mixed()) {
      std::vector<SequenceGroup> groups;
      for (std::size_t j = range.first; j <= range.last; ++j)
        groups = padded_groups(std::move(groups), out_.sizes.shapes[j].sequences);
      return mixed_shape(std::move(groups), share(range));
    }
    for (std::size_t j = range.first; j <= range.last; ++j) {
      const ShapeWeight& s = out_.sizes.shapes[j];
      size.batch = std::max(size.batch, s.batch);
      size.tokens = std::max(size.tokens, s.tokens);
      size.context = std::max(size.context, s.context);
    }
    return size;
  }

  // The time at the size that a range is padded to: that of one of its shapes, or, where none of
  // them is the largest in everything, the better of the last one's choices and those for all.
  Seconds padded_time(const ShapeRange& range) {
    const ShapeWeight size = padded_size(range);
    for (std::size_t j = range.first; j <= range.last; ++j) {
      const ShapeWeight& s = out_.sizes.shapes[j];
      if (text_of_size(s) == text_of_size(size)) return out_.shapes[j].own;
    }
    const auto [entry, first] = padded_times_.try_emplace(text_of_size(size));
    if (first) {
      if (options_.progress) options_.progress("sizes that shapes are padded to", 0.99);
      check_shape(size, case_);
      CallBlock block(case_, size, options_, out_.options.page);
      entry->second = std::min(block.time(choices_[out_.for_all]),
                               block.time(choices_[own_choices_[range.last]]));
    }
    return entry->second;
  }

  void padded_buckets() {
    const std::vector<Parting> partings = best_partings(
        count(), count(), [&](const ShapeRange& r) { return padded_time(r).value() * share(r); });
    for (const Parting& p : partings) out_.by_padded.emplace_back(p.cost);
    const Parting& chosen = partings[std::min(out_.options.buckets, count()) - 1];
    out_.padded_mean = Seconds(chosen.cost);
    for (const ShapeRange& range : chosen.ranges) {
      Bucket bucket{.shapes = range,
                    .choices = own_choices_[range.last],
                    .size = padded_size(range),
                    .time = padded_time(range)};
      for (std::size_t j = range.first; j <= range.last; ++j) {
        out_.shapes[j].padded = bucket.time;
        if (out_.shapes[j].fallback < bucket.time) bucket.slower += share(j) / share(range);
      }
      out_.padded.push_back(bucket);
    }
  }

  // How many kernels serve these pairs of choices and shapes.
  template <class WhoseChoices>
  double kernels_of(WhoseChoices whose) {
    std::set<std::string> all;
    for (std::size_t j = 0; j < count(); ++j)
      for (std::string& k : kernels_at(whose(j), j)) all.insert(std::move(k));
    return static_cast<double>(all.size());
  }
  std::vector<std::string> kernels_at(std::size_t whose, std::size_t shape) {
    std::vector<std::string> all = blocks_[shape]->kernels(choices_[whose]);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  void servings() {
    std::set<std::string> plain;
    for (std::size_t j = 0; j < count(); ++j)
      for (std::string& k : blocks_[j]->kernels(fallback_choices())) plain.insert(std::move(k));
    const auto fallbacks = static_cast<double>(plain.size());
    double own_kernels = 0;  // of the plan of one size
    for (std::size_t j = 0; j < count(); ++j)
      own_kernels += share(j) * static_cast<double>(kernels_at(own_choices_[j], j).size());
    double padded_kernels = 0;  // a compiler of fixed sizes shares none between buckets
    for (const Bucket& b : out_.padded)
      padded_kernels += static_cast<double>(kernels_at(b.choices, b.shapes.last).size());
    const SizeCounts& counts = out_.sizes.counts;
    const auto different = static_cast<double>(counts.different);
    const std::int64_t kept = std::min(out_.options.cached, counts.different);
    const double found = counts.share_of(kept);

    add({.way = "fallback", .plans = 1, .kernels = fallbacks, .block = out_.fallback});
    add({.way = "one-plan",
         .plans = 1,
         .kernels = kernels_of([&](std::size_t) { return out_.for_all; }),
         .block = out_.one});
    add({.way = "buckets",
         .plans = static_cast<std::int64_t>(out_.buckets.size()),
         .kernels = kernels_of([&](std::size_t j) { return out_.shapes[j].choices; }),
         .block = out_.bucketed});
    add({.way = "best-plan-each",
         .plans = static_cast<std::int64_t>(out_.different),
         .kernels = kernels_of([&](std::size_t j) { return own_choices_[j]; }),
         .block = out_.each});
    add({.way = "padded-buckets",
         .plans = static_cast<std::int64_t>(out_.padded.size()),
         .kernels = padded_kernels,
         .block = out_.padded_mean});
    add({.way = "compiled-each",
         .plans = counts.different,
         .kernels = different * own_kernels,
         .block = out_.each});
    add({.way = "compiled-cached",
         .plans = kept,
         .kernels = static_cast<double>(kept) * own_kernels + (found < 1 ? fallbacks : 0),
         .block = out_.each * found + out_.fallback * (1 - found),
         .fallback = 1 - found});
    out_.fallback_negates_one = negated_by_fallback(out_.one);
    out_.fallback_negates_padded = negated_by_fallback(out_.padded_mean);
  }

  void add(Serving s) {
    const auto layers = static_cast<double>(case_.model.layers);
    s.compile = out_.options.compile * s.kernels;
    s.call = s.block * layers + s.compile / out_.calls;
    if (!out_.servings.empty()) {
      const Serving& plain = out_.servings.front();
      const Seconds gain = (plain.block - s.block) * layers, more = s.compile - plain.compile;
      if (gain > plain.block * (layers * kNothing)) s.earned_after = std::max(0.0, more / gain);
    }
    out_.servings.push_back(std::move(s));
  }

  // (1 - f) each + f fallback = other.
  [[nodiscard]] std::optional<double> negated_by_fallback(Seconds other) const {
    if (other <= out_.each * (1 + kNothing) || out_.fallback <= other) return std::nullopt;
    return (other - out_.each) / (out_.fallback - out_.each);
  }

  const PredictionCase& case_;
  const SearchOptions& options_;
  NoSharing alone_;
  Sharing& sharing_;
  double all_weights_ = 0;
  std::vector<std::unique_ptr<CallBlock>> blocks_;
  std::vector<PlanChoices> choices_;
  std::vector<std::vector<Seconds>> times_;
  std::vector<std::size_t> own_choices_;  // whose choices are the best at a shape
  std::map<std::string, Seconds> padded_times_;
  DistributionResult out_;
};

}  // namespace

DistributionResult search_distribution(const PredictionCase& c, const CallSizes& sizes,
                                       const DistributionOptions& how,
                                       const SearchOptions& options) {
  FUSELINE_ASSERT(!sizes.shapes.empty() && how.buckets > 0,
                  "a distribution without shapes or plans");
  for (const ShapeWeight& shape : sizes.shapes) check_shape(shape, c);
  return Shapes(c, sizes, how, options).run();
}

}  // namespace fuseline
