#include "sim/judge/audit/predictions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/piece_text.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "sim/block/limits.h"
#include "sim/judge/audit/one_workload.h"

namespace fuseline::audit {

namespace {

// A prediction on its way between processes.
class PredictedText {
 public:
  static std::string packed(const Predicted& p) {
    PieceWriter out;
    put(out, p.block);
    put(out, p.model);
    out.whole(p.activations.value());
    for (const Coverage* c : {&p.attention, &p.others})
      out.whole(c->all.value()).whole(c->with_gemm.value());
    for (const PredictedKernel& k : p.kernels)
      out.real(k.time.value()).whole(k.flops.value()).flag(k.is_gemm).word(k.site);
    return std::move(out).text();
  }
  static Predicted unpacked(const std::string& text) {
    PieceReader in(text);
    Predicted p;
    get(in, p.block);
    get(in, p.model);
    p.activations = Bytes(in.whole());
    for (Coverage* c : {&p.attention, &p.others}) {
      c->all = Flops(in.whole());
      c->with_gemm = Flops(in.whole());
    }
    while (in.more()) {
      PredictedKernel k;
      k.time = Seconds(in.real());
      k.flops = Flops(in.whole());
      k.is_gemm = in.flag();
      k.site = in.word();
      p.kernels.push_back(std::move(k));
    }
    return p;
  }

 private:
  static void put(PieceWriter& out, const PredictedWork& w) {
    out.real(w.time.value()).whole(w.flops.value());
    out.whole(w.hbm_read.value()).whole(w.hbm_write.value()).whole(w.launches);
  }
  static void get(PieceReader& in, PredictedWork& w) {
    w.time = Seconds(in.real());
    w.flops = Flops(in.whole());
    w.hbm_read = Bytes(in.whole());
    w.hbm_write = Bytes(in.whole());
    w.launches = in.whole();
  }
};

}  // namespace

std::string Predictions::key(const PolicyCase& c) {
  const Workload& w = c.workload;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", c.model, c.gpu, c.policy,
                     name_of(w.phase), w.batch, w.seq, w.context, name_of(w.dtype),
                     w.formats.weights.name(), w.formats.cache.name(), w.formats.activations.name(),
                     c.whole_model);
}

void Predictions::want_gpu(const std::string& name) {
  if (!gpus_.contains(name)) gpus_.emplace(name, load_gpu(name));
}

void Predictions::want(const PolicyCase& c) {
  if (!models_.contains(c.model)) models_.emplace(c.model, load_model(c.model));
  want_gpu(c.gpu);
  check_workload(c.workload, models_.at(c.model));
  if (!c.policy.empty()) entries_.try_emplace(key(c), Entry{c, nullptr});
}

// What is open, parted by workloads: all of one has the same block, and predictions one after the
// other of a block share most of their walks. The longest work first, so that no thread is left
// alone with it at the end.
std::vector<std::vector<Predictions::Entry*>> Predictions::open_by_workload() {
  std::map<std::string, std::vector<Entry*>> by_workload;
  for (auto& [name, entry] : entries_) {
    if (entry.result != nullptr) continue;
    const PolicyCase& c = entry.what;
    by_workload[key({.model = c.model, .gpu = {}, .policy = {}, .workload = c.workload})].push_back(
        &entry);
  }
  std::vector<std::vector<Entry*>> open;
  for (auto& [name, entries] : by_workload) {
    // GPUs under one policy side by side: some of them have equal L2s and tiles.
    std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
      return a->what.policy < b->what.policy;
    });
    open.push_back(std::move(entries));
  }
  const auto about = [](const std::vector<Entry*>& entries) {
    return std::ssize(entries) * entries.front()->what.workload.rows();
  };
  std::stable_sort(open.begin(), open.end(),
                   [&](const auto& a, const auto& b) { return about(a) > about(b); });
  return open;
}

bool Predictions::make(Sharing& sharing, const Sharing::Progress& progress) {
  const std::vector<std::vector<Entry*>> open = open_by_workload();
  std::string name = "predictions by workloads";
  for (const std::vector<Entry*>& entries : open)
    for (const Entry* entry : entries) name += "\n" + key(entry->what);
  const auto work = [&](std::size_t i) {
    std::optional<OneWorkload> one;
    PieceWriter all;
    for (const Entry* entry : open[i]) {
      const PolicyCase& c = entry->what;
      try {
        if (!one) one.emplace(models_.at(c.model), c.workload);
        all.word(PredictedText::packed(one->predict(c.policy, gpus_.at(c.gpu), c.whole_model)));
      } catch (const InputError& error) {  // several claims may ask for it
        InputProblem problem = error.problem();
        problem.field = "setting";
        problem.value = key(c);
        throw InputError(std::move(problem));
      }
    }
    return std::move(all).text();
  };
  const SharedTexts made = sharing.texts(name, open.size(), work, progress);
  for (std::size_t i = 0; i < open.size() && made.all; ++i) {
    PieceReader all(made.texts[i]);
    for (Entry* entry : open[i])
      entry->result = std::make_unique<const Predicted>(PredictedText::unpacked(all.word()));
  }
  return made.all;
}

const Predicted& Predictions::of(const PolicyCase& c) const {
  const auto found = entries_.find(key(c));
  FUSELINE_ASSERT(found != entries_.end() && found->second.result != nullptr, key(c));
  return *found->second.result;
}

const Ceilings& Predictions::ceilings(const std::string& model_name, const std::string& gpu_name,
                                      const Workload& workload) const {
  const auto [found, is_new] = ceilings_.try_emplace(
      key({.model = model_name, .gpu = gpu_name, .policy = {}, .workload = workload}));
  if (is_new) found->second = ceilings_of(model_name, gpu_name, workload);
  return found->second;
}

Ceilings Predictions::ceilings_of(const std::string& model_name, const std::string& gpu_name,
                                  const Workload& workload) const {
  const ModelConfig& config = model(model_name);
  const Gpu& machine = gpu(gpu_name);
  const Limits block = limits_of(build_block(config, workload), machine);
  Ceilings all{block.time, Seconds(), block.least, Bytes()};
  const auto add = [&](const Limits& limits, std::int64_t times) {
    all.model += limits.time * static_cast<double>(times);
    all.model_bytes += limits.least * times;
  };
  for (const BlockUse& use : config.blocks) {
    if (workload.phase == Phase::decode && !use.decodes) continue;
    const Workload work = workload_of(config, use, workload);
    add(limits_of(build_block(config, use, work), machine), config.layers_of(use));
    if (!use.exit.empty()) add(limits_of(build_end(config, use.exit, work), machine), 1);
  }
  if (!config.exit.empty()) add(limits_of(build_exit(config, workload), machine), 1);
  return all;
}

FlopsPerSecond Predictions::tensor_ceiling(const std::string& gpu_name, const Workload& w) const {
  const StoredWeight& activations = w.formats.activations;
  return boosted_tensor_peak(gpu(gpu_name),
                             activations.quantised() ? activations.element() : w.dtype);
}

const ModelConfig& Predictions::model(const std::string& name) const { return models_.at(name); }
const Gpu& Predictions::gpu(const std::string& name) const { return gpus_.at(name); }

}  // namespace fuseline::audit
