#include "gui/model/missions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "gui/model/fusion_edits.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

constexpr double kFewerBytes = 0.05;  // of the first mission
constexpr double kMoreBytesBySmallL2 = 0.05;
constexpr double kFewBitsOfBytes = 1.0 / 3;
constexpr std::int64_t kMostRidgeBatch = 256;

Document mission_document(const std::string& title, Setup setup,
                          const std::vector<std::string>& policies) {
  Document document;
  document.title = title;
  document.setup = std::move(setup);
  document.runs = runs_for(document.setup, policies, {}, "");
  return document;
}

Setup forward_setup() { return {}; }  // LLaMA-2-7B on an H200, 2,048 tokens

Setup decode_setup() { return with_phase({}, Phase::decode); }

// The setup to compare with stays, whatever the controls say: a pinned run, the baseline.
Document with_pinned_start(Document document, const std::string& policy) {
  const RunId start = document.runs.add(
      {.name = policy + " at the start", .policy = policy, .setup = document.setup});
  document.runs.set_baseline(start);
  return document;
}

const RunView* fastest(const Results& results, const std::function<bool(const RunView&)>& fits) {
  const RunView* best = nullptr;
  for (const RunView& view : results.runs) {
    if (!view.ok() || view.run.is_measurement() || !fits(view)) continue;
    if (best == nullptr || view.result->totals.time < best->result->totals.time) best = &view;
  }
  return best;
}

bool follows_setup(const RunView& view) { return !view.run.setup; }

const RunView* baseline_of(const Results& results) {
  const RunView* base = results.baseline_view();
  return base != nullptr && base->ok() ? base : nullptr;
}

MissionState no_numbers() { return {.done = false, .now = "not predicted yet"}; }

MissionState judge_first_fusion(const Document&, const Results& results) {
  const RunView* base = baseline_of(results);
  if (base == nullptr) return no_numbers();
  const RunView* best = nullptr;
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.run.is_custom() || !same_block(*view.result, *base->result)) continue;
    if (best == nullptr || view.result->totals.hbm() < best->result->totals.hbm()) best = &view;
  }
  if (best == nullptr) return {.done = false, .now = "nothing is fused by hand yet"};
  const double change =
      best->result->totals.hbm().as_double() / base->result->totals.hbm().as_double() - 1;
  return {.done = change <= -kFewerBytes,
          .now = fmt::format("HBM traffic of {}: {}; wanted −{:.0f} %", best->label(),
                             signed_percent_text(change), 100 * kFewerBytes)};
}

MissionState judge_epilogue(const Document&, const Results& results) {
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.run.is_custom() || !view.result->plan) continue;
    if (share_kernel(*view.result->plan, {"gate_up", "swiglu"}))
      return {.done = true, .now = "gate_up and swiglu are one kernel in " + view.label()};
  }
  return {.done = false, .now = "gate_up and swiglu are apart in all runs of yours"};
}

MissionState judge_compiler(const Document&, const Results& results) {
  const RunView* base = baseline_of(results);
  if (base == nullptr) return no_numbers();
  const RunView* best = fastest(results, [&](const RunView& view) {
    return view.run.is_custom() && same_block(*view.result, *base->result);
  });
  if (best == nullptr) return {.done = false, .now = "nothing is fused by hand yet"};
  const Seconds mine = best->result->totals.time, theirs = base->result->totals.time;
  return {.done = mine < theirs,
          .now = fmt::format("{}: {}; {}: {}", best->label(), short_time(mine), base->label(),
                             short_time(theirs))};
}

MissionState judge_ridge(const Document& document, const Results& results) {
  const Workload& w = document.setup.workload;
  if (w.phase != Phase::decode) return {.done = false, .now = "the phase is not decode"};
  for (const RunView& view : results.runs) {
    if (!view.ok() || view.run.policy != "coda" || !follows_setup(view)) continue;
    for (const KernelRow& row : view.result->kernels) {
      if (row.estimate.name.find("gate_up") == std::string::npos) continue;
      const bool tensor = row.estimate.bound == Bound::tensor;
      return {.done = tensor && w.batch <= kMostRidgeBatch,
              .now = fmt::format(
                  "batch {}: gate_up is bound by {}{}", w.batch,
                  tensor ? "the tensor cores" : "something else",
                  tensor && w.batch > kMostRidgeBatch ? "; a smaller batch will do" : "")};
    }
  }
  return no_numbers();
}

MissionState judge_small_l2(const Document& document, const Results& results) {
  const RunView* base = baseline_of(results);
  const RunView* now = fastest(results, follows_setup);
  if (base == nullptr || now == nullptr) return no_numbers();
  WhatIf others = document.setup.what_if;
  others.l2_capacity = 1;
  if (!others.is_neutral())
    return {.done = false, .now = "change the capacity of L2 alone: reset the other sliders"};
  if (!is_comparable(*base, *now) || now->run.policy != base->run.policy)
    return {.done = false, .now = "compare coda with itself, of the same sizes"};
  const double change =
      now->result->totals.hbm().as_double() / base->result->totals.hbm().as_double() - 1;
  return {.done = change >= kMoreBytesBySmallL2,
          .now = fmt::format("HBM traffic {}; wanted +{:.0f} %", signed_percent_text(change),
                             100 * kMoreBytesBySmallL2)};
}

MissionState judge_few_bits(const Document&, const Results& results) {
  const RunView* base = baseline_of(results);
  const RunView* now = fastest(results, follows_setup);
  if (base == nullptr || now == nullptr) return no_numbers();
  if (!is_comparable(*base, *now))
    return {.done = false, .now = "the sizes are other ones than at the start"};
  const double part =
      now->result->totals.hbm().as_double() / base->result->totals.hbm().as_double();
  const double time = now->result->totals.time / base->result->totals.time;
  return {.done = part <= kFewBitsOfBytes,
          .now = fmt::format("HBM traffic {:.0f} % of that at the start, wanted {:.0f} %; time "
                             "{:.0f} %",
                             100 * part, 100 * kFewBitsOfBytes, 100 * time)};
}

std::vector<Mission> make_missions() {
  return {
      {.id = "first-fusion",
       .title = "A first fusion",
       .lab = 3,
       .task =
           "This block runs one kernel for each operator. Fuse by hand until it moves 5 % fewer "
           "bytes through HBM.",
       .hints = {"Edges with a plus can be fused. Point at one: the details say what it saves.",
                 "The sums of the residual stream can ride in the GEMM before them: down → "
                 "residual2, oproj → residual1."},
       .learnt = "A tensor that one kernel makes and the next one reads need not go through HBM.",
       .start =
           [] {
             return mission_document("Mission: a first fusion", forward_setup(), {"per-operator"});
           },
       .judge = judge_first_fusion},
      {.id = "epilogue",
       .title = "An epilogue that is refused at first",
       .lab = 4,
       .task = "Put swiglu into the kernel of gate_up. The plan checker refuses it as the block "
               "stands.",
       .hints = {"Drag swiglu onto gate_up, and read the reason.",
                 "The pairs that swiglu multiplies are in different tiles. A rewrite puts their "
                 "columns beside each other.",
                 "Rewrites, interleave_gate_up; then the edge has a plus."},
       .learnt = "What an epilogue reads has to be in the tile that it belongs to; a rewrite of "
                 "the weights can see to that.",
       .start =
           [] {
             return mission_document("Mission: an epilogue", forward_setup(), {"per-operator"});
           },
       .judge = judge_epilogue},
      {.id = "small-l2",
       .title = "What L2 hides",
       .lab = 6,
       .task = "Shrink L2 with the slider of What if, and nothing else, until coda moves 5 % more "
               "bytes through HBM.",
       .hints = {"The tab What if is beside Setup. The run at the start is pinned: it keeps the "
                 "whole L2."},
       .learnt = "GEMMs read their operands more often than once; L2 is why HBM does not see it.",
       .start =
           [] {
             return with_pinned_start(
                 mission_document("Mission: what L2 hides", forward_setup(), {"coda"}), "coda");
           },
       .judge = judge_small_l2},
      {.id = "ridge",
       .title = "Over the ridge",
       .lab = 2,
       .task = "In decode every GEMM waits for its weights. Find a batch of at most 256 at which "
               "gate_up of coda is bound by the tensor cores.",
       .hints = {"Setup has the batch; the kernel table says what sets each kernel's time.",
                 "A GEMM of M rows has about M FLOPs for each byte of bf16 weights; the GPU has "
                 "some 200."},
       .learnt = "Requests that are decoded together share the weights that are read.",
       .start =
           [] { return mission_document("Mission: over the ridge", decode_setup(), {"coda"}); },
       .judge = judge_ridge},
      {.id = "few-bits",
       .title = "Weights of few bits",
       .lab = 11,
       .task = "Let a decode step of coda read less than a third of the bytes.",
       .hints = {"Setup has the number formats of the weights.",
                 "int4 has a quarter of the bits, "
                 "and its scales besides."},
       .learnt = "The bytes fall with the bits, and the time does not fall as much: the codes have "
                 "to be unpacked, and eight kernels have to be started.",
       .start =
           [] {
             return with_pinned_start(
                 mission_document("Mission: weights of few bits", decode_setup(), {"coda"}),
                 "coda");
           },
       .judge = judge_few_bits},
      {.id = "compiler",
       .title = "Faster than the compiler",
       .lab = 7,
       .task = "Fuse by hand until the block is predicted to be faster than torch-compile.",
       .hints = {"Begin with the fusions that save most; Why slow has them in order.",
                 "Best fusion finds one; then look at what it did."},
       .learnt = "A compiler fuses what is pointwise. The epilogue of a GEMM takes more than that.",
       .start =
           [] {
             return mission_document("Mission: faster than the compiler", forward_setup(),
                                     {"torch-compile", "per-operator"});
           },
       .judge = judge_compiler},
  };
}

}  // namespace

const std::vector<Mission>& missions() {
  static const std::vector<Mission> all = make_missions();
  return all;
}

MissionState judge(const Mission& mission, const Document& document, const Results& results) {
  return mission.judge(document, results);
}

}  // namespace fuseline::gui
