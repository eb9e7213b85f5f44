#include "sim/block/block_walk.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "base/error.h"
#include "model/chain.h"
#include "model/operators/operator_table.h"
#include "sim/kernels/chain_kernel.h"
#include "sim/kernels/program_streams.h"
#include "sim/memory/traffic.h"

namespace fuseline {
namespace {

class Walker {
 public:
  Walker(const Plan& plan, const Gpu& gpu, const WalkOptions& options)
      : plan_(plan),
        gpu_(gpu),
        addresses_(plan),
        l2_(effective_l2_capacity(gpu), gpu.constants.l2.set_spread, options.memo),
        phases_(plan, gpu, addresses_, l2_),
        gap_(gpu.constants.launch.gap),
        chained_(!options.replay),
        by_tensor_(options.by_tensor),
        watcher_(options.watcher) {
    if (options.watched) watch(*options.watched);
  }

  // Walks the blocks that come before the one that counts, or as much of them as L2 remembers.
  void warm_up(const WalkOptions& options) {
    const int blocks = options.runs - 1;
    if (blocks == 0) return;
    if (!options.whole_layers && options.copies == 0 &&
        warm_up_by_last_phases(layer_of(blocks - 1, options)))
      return;
    for (int block = 0; block < blocks; ++block) run(layer_of(block, options), false);
  }

  static std::int64_t layer_of(int block, const WalkOptions& options) {
    if (options.replay && !options.rotating) return 0;
    return options.copies > 0 ? block % options.copies : block;
  }

  // One block. `detailed`: also what does not depend on the cache (requested bytes, FLOPs).
  std::vector<WalkedKernel> run(std::int64_t layer, bool detailed) {
    addresses_.enter_layer(layer, chained_);
    l2_.forget_missed();
    const Bytes waiting = detailed ? dirty_bytes_of_layers() : Bytes();
    watching_ = detailed && watcher_ != nullptr;
    if (watching_) {
      watcher_->block_begins(plan_, addresses_, l2_.watch(watcher_));
    }
    std::vector<WalkedKernel> launches;
    std::vector<std::size_t> launch_of(plan_.kernels.size());
    for (const Kernel& kernel : plan_.kernels) {
      WalkedPhase merged = walk_kernel(kernel, detailed);
      const Bytes resident = watched_resident();
      merged.kernel.resident = resident;
      launch_of[static_cast<std::size_t>(&kernel - plan_.kernels.data())] = launches.size();
      launches.push_back(std::move(merged.kernel));
      for (WalkedKernel& follower : merged.followers) {
        follower.resident = resident;
        launches.push_back(std::move(follower));
      }
      if (watching_) watcher_->kernel_ends(1 + merged.followers.size());
    }
    if (detailed) charge_late_writes(waiting, launch_of, launches);
    return launches;
  }

 private:
  bool warm_up_by_last_phases(std::int64_t layer);
  [[nodiscard]] bool tensors_have_one_shape() const;
  WalkedPhase walk_kernel(const Kernel& kernel, bool detailed);
  WalkedPhase walk_pieces(const Kernel& kernel, std::vector<TileShape>& tiles);
  WalkedPhase walk_single(const Kernel& kernel, std::vector<TileShape>& tiles);
  WalkedPhase walk_chain(const Kernel& kernel, std::vector<TileShape>& tiles);
  WalkedPhase walk_persistent(const Kernel& kernel, std::vector<TileShape>& tiles);
  WalkedPhase walk_program(const Kernel& kernel, const Program& program);
  WalkedKernel walk_launch(const Kernel& kernel, const FrameworkLaunch& launch, std::size_t number);
  void describe(const Kernel& kernel, const std::vector<TileShape>& tiles, KernelEstimate& e);
  void note_residence(const Kernel& kernel, KernelEstimate& e);
  [[nodiscard]] std::vector<Operand> stored_for_layer(const Kernel& kernel) const;
  [[nodiscard]] Bytes dirty_bytes_of_layers();
  void charge_late_writes(Bytes waiting, const std::vector<std::size_t>& launch_of,
                          std::vector<WalkedKernel>& launches);
  void watch(TensorId tensor);
  [[nodiscard]] Bytes watched_resident();

  const Plan& plan_;
  const Gpu& gpu_;
  AddressMap addresses_;
  RememberingL2 l2_;
  PhaseWalker phases_;
  Seconds gap_;
  bool chained_;  // layers read what the one before has written
  bool by_tensor_;
  WalkWatcher* watcher_;
  bool watching_ = false;
  std::vector<Operand> watched_;  // all that kernels touch of the watched tensor
};

// A block that moves many times what L2 holds leaves there what its last kernels touched, whatever
// came before them. Walks only those, and says whether that was enough. If not, L2 is empty again.
bool Walker::warm_up_by_last_phases(std::int64_t layer) {
  struct Part {
    const Kernel* kernel;
    const Program* phase;
    double bytes;
  };
  std::vector<Part> parts;
  double all = 0;
  for (const Kernel& kernel : plan_.kernels) {
    for (const Program& phase : kernel.phases) {
      const Bytes moved =
          distinct_bytes(plan_.graph, loads(phase)) + distinct_bytes(plan_.graph, stores(phase));
      parts.push_back({&kernel, &phase, moved.as_double()});
      all += moved.as_double();
    }
  }
  // Once to push out what is older, once more to replace what was there at that time, and a rest
  // for what is touched several times.
  constexpr double kFillings = 2.5;
  constexpr double kWorthwhile = 0.2;  // of the bytes left out
  const double enough = kFillings * l2_.capacity().as_double();
  std::size_t first = parts.size();
  double walked = 0;
  while (first > 0 && walked < enough) walked += parts[--first].bytes;
  if (walked > (1 - kWorthwhile) * all || !tensors_have_one_shape()) return false;

  addresses_.enter_layer(layer, chained_);
  std::vector<AnyWalk> walks;
  WalkKey key;
  for (; first < parts.size(); ++first) {
    walks.push_back(phases_.walk_of(*parts[first].kernel, *parts[first].phase));
    std::visit([&](const auto& one) { fuseline::describe(one, key); }, walks.back());
  }
  return l2_.refill(key, [&](L2Cache& cache) {
    for (const AnyWalk& w : walks) {
      if (!cache.contents_may_be_certain()) break;
      std::visit([&](const auto& one) { walk(one, cache); }, w);
    }
    return WalkTraffic{};
  });
}

// Otherwise a whole chunk of one view of a tensor is a part of one for another.
bool Walker::tensors_have_one_shape() const {
  std::map<std::uint32_t, CachedMatrix> seen;
  for (const Kernel& kernel : plan_.kernels) {
    for (const Program& phase : kernel.phases) {
      for (const std::vector<Operand>& touched : {loads(phase), stores(phase)}) {
        for (const Operand& o : touched) {
          const CachedMatrix matrix = addresses_.locate(o).matrix;
          const CachedMatrix& known = seen.try_emplace(matrix.tensor, matrix).first->second;
          if (known.rows != matrix.rows || known.cols != matrix.cols) return false;
        }
      }
    }
  }
  return true;
}

// What the kernel stores into tensors of which every layer has its own: new cache rows, gradients
// of weights. One operand a tensor in the cache.
std::vector<Operand> Walker::stored_for_layer(const Kernel& kernel) const {
  std::vector<Operand> own;
  std::set<std::uint32_t> seen;
  for (const Program& phase : kernel.phases) {
    for (const Operand& o : stores(phase)) {
      const bool first =
          addresses_.per_layer(o.tensor) && seen.insert(addresses_.locate(o).matrix.tensor).second;
      if (first) own.push_back(o);
    }
  }
  return own;
}

// Of these tensors, what all layers so far have written and L2 still has to write to HBM.
Bytes Walker::dirty_bytes_of_layers() {
  std::set<std::uint32_t> ids;
  for (const Kernel& kernel : plan_.kernels) {
    for (const Operand& o : stored_for_layer(kernel)) {
      for (std::int64_t layer = 0; layer <= addresses_.layer(); ++layer)
        ids.insert(addresses_.locate(o, layer).matrix.tensor);
    }
  }
  Bytes sum;
  for (const std::uint32_t id : ids) sum += l2_.dirty(id);
  return sum;
}

// No later layer overwrites these tensors, so all their bytes are written to HBM some time. A block
// that is small beside the L2 leaves them dirty when the walk ends; in a long row of layers as many
// bytes of earlier layers are written meanwhile. Charges them to the kernels that stored them, the
// last first; writing back goes on behind other kernels' work and takes no time of its own.
// `waiting`: bytes that waited before this layer.
void Walker::charge_late_writes(Bytes waiting, const std::vector<std::size_t>& launch_of,
                                std::vector<WalkedKernel>& launches) {
  Bytes late = dirty_bytes_of_layers() - waiting;
  for (std::size_t i = plan_.kernels.size(); i-- > 0 && late > Bytes();) {
    for (const Operand& o : stored_for_layer(plan_.kernels[i])) {
      const Bytes share = std::min(late, l2_.dirty(addresses_.locate(o).matrix.tensor));
      launches[launch_of[i]].estimate.hbm_write += share;
      late -= share;
      if (late == Bytes()) break;
    }
  }
}

void Walker::watch(TensorId tensor) {
  for (const Kernel& kernel : plan_.kernels) {
    for (const Program& phase : kernel.phases) {
      for (const std::vector<Operand>& touched : {loads(phase), stores(phase)}) {
        for (const Operand& o : touched) {
          if (o.tensor == tensor) watched_.push_back(o);
        }
      }
    }
  }
}

Bytes Walker::watched_resident() {
  std::set<std::uint32_t> ids;
  for (const Operand& o : watched_) ids.insert(addresses_.locate(o).matrix.tensor);
  Bytes sum;
  for (const std::uint32_t id : ids) sum += l2_.resident(id);
  return sum;
}

// What of its loads the kernel just walked did not find in L2.
void Walker::note_residence(const Kernel& kernel, KernelEstimate& e) {
  for (const Program& phase : kernel.phases) {
    for (const Operand& o : loads(phase)) {
      const Bytes missed = l2_.take_missed(addresses_.locate(o).matrix.tensor);
      for (RequestedBytes& r : e.requested) {
        if (r.tensor == o.tensor) r.hbm_read += missed;
      }
    }
  }
}

void Walker::describe(const Kernel& kernel, const std::vector<TileShape>& tiles,
                      KernelEstimate& e) {
  for (const OpId op : kernel.ops) e.operators.push_back(plan_.graph.op(op).name);
  e.flops = flops(plan_.graph, kernel);
  if (!by_tensor_) return;
  const DistinctBytes distinct = distinct_bytes(plan_.graph, kernel);
  e.compulsory = distinct.loaded + distinct.stored;
  const std::optional<Operand> kept = handed_over(kernel);
  for (std::size_t i = 0; i < kernel.phases.size(); ++i) {
    for (const RequestedBytes& r : requested_bytes(plan_.graph, kernel.phases[i], tiles[i])) {
      if (kept && kept->tensor == r.tensor) continue;
      auto found = std::find_if(e.requested.begin(), e.requested.end(),
                                [&](const RequestedBytes& x) { return x.tensor == r.tensor; });
      if (found == e.requested.end()) {
        e.requested.push_back(r);
      } else {
        found->loaded += r.loaded;
        found->stored += r.stored;
      }
    }
  }
  note_residence(kernel, e);
}

// Sums of traffic and times of the parts; time, bound and tile stay.
void accumulate(KernelEstimate& sum, const KernelEstimate& part) {
  sum.hbm_read += part.hbm_read;
  sum.hbm_write += part.hbm_write;
  sum.l2 += part.l2;
  sum.smem += part.smem;
  sum.spared += part.spared;
  sum.tensor_time += part.tensor_time;
  sum.hbm_time += part.hbm_time;
  sum.l2_time += part.l2_time;
  sum.smem_time += part.smem_time;
}

// Two launches of the same phases are of one kernel only if all phases chose alike: the choice of
// the launch lists what each of them chose.
void note_choice(const KernelEstimate& phase, KernelEstimate& whole) {
  whole.choice.insert(whole.choice.end(), phase.tile.begin(), phase.tile.end());
  whole.choice.insert(whole.choice.end(), phase.choice.begin(), phase.choice.end());
  whole.choice.push_back(phase.launches);
}

WalkedPhase Walker::walk_program(const Kernel& kernel, const Program& program) {
  if (watching_) watcher_->phase_begins({&kernel, &program, nullptr, 0}, addresses_);
  WalkedPhase phase = phases_.walk(kernel, program);
  if (watching_) watcher_->phase_ends(phase.kernel, gpu_);
  return phase;
}

WalkedKernel Walker::walk_launch(const Kernel& kernel, const FrameworkLaunch& launch,
                                 std::size_t number) {
  if (watching_) watcher_->phase_begins({&kernel, nullptr, &launch, number}, addresses_);
  WalkedKernel walked = phases_.walk(kernel, launch);
  if (watching_) watcher_->phase_ends(walked, gpu_);
  return walked;
}

// Phases of one launch: what would follow as a launch of its own is one more phase. A barrier takes
// the place of a launch, and after the first phase a GEMM's first weights are on chip when it
// falls.
WalkedPhase Walker::walk_persistent(const Kernel& kernel, std::vector<TileShape>& tiles) {
  const Seconds barrier = gpu_.constants.sync.barrier;
  WalkedPhase result;
  WalkedKernel& whole = result.kernel;
  whole.fixed = gpu_.tiny_kernel;
  std::map<Bound, Seconds> by_bound;
  Seconds synchronising;
  for (std::size_t i = 0; i < kernel.phases.size(); ++i) {
    WalkedPhase phase = walk_program(kernel, kernel.phases[i]);
    tiles.push_back(phase.tile);
    accumulate(whole.estimate, phase.kernel.estimate);
    note_choice(phase.kernel.estimate, whole.estimate);
    WalkedKernel& part = phase.kernel;
    for (const WalkedGemm& gemm : part.gemms) {
      part.fixed -= i == 0 ? gpu_.tiny_kernel : gemm.estimate.time.launch;
    }
    for (const WalkedKernel& extra : phase.followers) {
      accumulate(whole.estimate, extra.estimate);
      part.fixed += extra.fixed - extra.estimate.launch_time;
      synchronising += barrier;
    }
    if (i + 1 < kernel.phases.size()) synchronising += barrier;
    by_bound[part.estimate.bound] += time_at(part, gpu_, 1.0);
    whole.fixed += part.fixed;
    whole.compute += part.compute;
    for (WalkedGemm& gemm : part.gemms) whole.gemms.push_back(std::move(gemm));
  }
  whole.fixed += synchronising;
  by_bound[Bound::sync] += synchronising;
  const auto most =
      std::max_element(by_bound.begin(), by_bound.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  whole.estimate.bound = most->first;
  whole.estimate.launch_time = gpu_.tiny_kernel + synchronising;
  return result;
}

WalkedPhase Walker::walk_single(const Kernel& kernel, std::vector<TileShape>& tiles) {
  WalkedPhase result = walk_program(kernel, kernel.phases.front());
  tiles.push_back(result.tile);
  // A GEMM's own time includes the launch of an empty kernel.
  result.kernel.fixed += gap_;
  if (result.kernel.gemms.empty()) result.kernel.fixed += gpu_.tiny_kernel;
  result.kernel.estimate.launch_time = gpu_.tiny_kernel + gap_;
  return result;
}

// Both products of a chain, in one launch.
WalkedPhase Walker::walk_chain(const Kernel& kernel, std::vector<TileShape>& tiles) {
  WalkedPhase result;
  WalkedKernel& whole = result.kernel;
  for (const Program& program : kernel.phases) {
    const WalkedPhase part = walk_program(kernel, program);
    tiles.push_back(part.tile);
    accumulate(whole.estimate, part.kernel.estimate);
  }
  const KernelEstimate& moved = whole.estimate;
  const ChainEstimate e = estimate_chain(kernel, gpu_, {moved.hbm_read, moved.hbm_write});
  describe_chain(e, whole.estimate);
  whole.fixed = gpu_.tiny_kernel + gap_ + e.work - e.compute;
  whole.compute = e.compute;
  whole.estimate.launch_time = gpu_.tiny_kernel + gap_;
  return result;
}

// What a framework launches in the kernel's place. The first launch stands for the kernel: its name
// and its operators.
WalkedPhase Walker::walk_pieces(const Kernel& kernel, std::vector<TileShape>& tiles) {
  WalkedPhase result;
  result.kernel = walk_launch(kernel, kernel.beside.front(), 0);
  result.kernel.estimate.name = kernel.name;
  for (std::size_t i = 1; i < kernel.beside.size(); ++i)
    result.followers.push_back(walk_launch(kernel, kernel.beside[i], i));
  for (const Program& phase : kernel.phases) tiles.push_back(default_tile(phase));
  return result;
}

WalkedPhase Walker::walk_kernel(const Kernel& kernel, bool detailed) {
  FUSELINE_ASSERT(!kernel.phases.empty(), kernel.name);
  std::vector<TileShape> tiles;
  if (kernel.in_pieces) {
    WalkedPhase pieces = walk_pieces(kernel, tiles);
    if (detailed) describe(kernel, tiles, pieces.kernel.estimate);
    return pieces;
  }
  WalkedPhase result = chain_layout(kernel, gpu_)  ? walk_chain(kernel, tiles)
                       : kernel.phases.size() == 1 ? walk_single(kernel, tiles)
                                                   : walk_persistent(kernel, tiles);
  for (const FrameworkLaunch& launch : kernel.beside)
    result.followers.push_back(walk_launch(kernel, launch, 1 + result.followers.size()));
  KernelEstimate& e = result.kernel.estimate;
  e.time = time_at(result.kernel, gpu_, 1.0);
  e.name = kernel.name;
  e.kind = kernel.kind;
  if (detailed) describe(kernel, tiles, e);
  return result;
}

}  // namespace

std::vector<WalkedKernel> walk_block(const Plan& plan, const Gpu& gpu, const WalkOptions& options) {
  FUSELINE_ASSERT(options.runs >= 1, "a walk needs at least one block");
  Walker walker(plan, gpu, options);
  walker.warm_up(options);
  return walker.run(Walker::layer_of(options.runs - 1, options), true);
}

}  // namespace fuseline
