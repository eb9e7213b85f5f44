// The predictions that an audit needs, each made once however many claims ask for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/sharing.h"
#include "model/config/config.h"
#include "sim/gpu/gpu.h"

namespace fuseline::audit {

struct PredictedKernel {
  Seconds time;
  Flops flops;
  bool is_gemm = false;
  std::string site;  // of its GEMM, or else of its first operator; "_dw": a weight's gradient
};

// FLOPs of a part of the block, and those of them in kernels with a GEMM.
struct Coverage {
  Flops all, with_gemm;

  // 1 where there are none.
  [[nodiscard]] double share() const {
    return all.value() == 0 ? 1 : with_gemm.as_double() / all.as_double();
  }
};

struct PredictedWork {
  Seconds time;
  Flops flops;
  Bytes hbm_read, hbm_write;
  std::int64_t launches = 0;
};

// One block, and the whole model with it.
struct Predicted {
  PredictedWork block;
  std::vector<PredictedKernel> kernels;
  PredictedWork model;
  Bytes activations;           // at once, of the whole model
  Coverage attention, others;  // others: neither attention's nor GEMMs
};

// What limits_of() says: the same as `predict` shows as limits.
struct Ceilings {
  Seconds block;
  Seconds model;      // all blocks and the LM head
  Bytes block_bytes;  // the least through HBM
  Bytes model_bytes;
};

struct PolicyCase {
  std::string model, gpu, policy;
  Workload workload;
  bool whole_model = false;  // with the layers around the blocks
};

class Predictions {
 public:
  // The GPU will be asked for. InputError as load_gpu.
  void want_gpu(const std::string& name);
  // Notes that the case will be asked for. InputError as load_model, load_gpu, check_workload.
  void want(const PolicyCase& c);
  // Makes what is noted, at all that share the work: a piece is all predictions of one workload of
  // a model. False when it was stopped.
  bool make(Sharing& sharing, const Sharing::Progress& progress);

  [[nodiscard]] const Predicted& of(const PolicyCase& c) const;
  // Made once for all policies and claims. Not for several threads at once.
  [[nodiscard]] const Ceilings& ceilings(const std::string& model, const std::string& gpu,
                                         const Workload& workload) const;
  // Of the fastest products of the workload: those of codes where both operands are.
  [[nodiscard]] FlopsPerSecond tensor_ceiling(const std::string& gpu,
                                              const Workload& workload) const;
  [[nodiscard]] const ModelConfig& model(const std::string& name) const;
  [[nodiscard]] const Gpu& gpu(const std::string& name) const;

 private:
  struct Entry {
    PolicyCase what;
    std::unique_ptr<const Predicted> result;
  };
  static std::string key(const PolicyCase& c);
  [[nodiscard]] std::vector<std::vector<Entry*>> open_by_workload();
  [[nodiscard]] Ceilings ceilings_of(const std::string& model, const std::string& gpu,
                                     const Workload& workload) const;

  std::map<std::string, ModelConfig> models_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, Entry> entries_;
  mutable std::map<std::string, Ceilings> ceilings_;
};

}  // namespace fuseline::audit
