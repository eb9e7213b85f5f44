// How a mainloop runs an epilogue for one slab.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

// An epilogue may have loads that need no sums and take long: `early` begins them, and `run` has
// what they brought as its last argument. Who has something else to do first calls begin_loads()
// ahead of it.
struct NoLoads {};
template <class Epilogue, class = void>
struct EarlyLoads {
  using Type = NoLoads;
};
template <class Epilogue>
struct EarlyLoads<Epilogue, decltype(void(sizeof(typename Epilogue::Early)))> {
  using Type = typename Epilogue::Early;
};
template <class Epilogue>
using EarlyOf = typename EarlyLoads<Epilogue>::Type;

template <class Epilogue, class Slab>
FUSELINE_DEVICE EarlyOf<Epilogue> begin_loads(const typename Epilogue::Params& p,
                                              const Slab& slab) {
  if constexpr (sizeof(EarlyOf<Epilogue>) > sizeof(NoLoads))
    return Epilogue::early(p, slab);
  else
    return {};
}
template <class Epilogue, class State, class Slab, class Tile>
FUSELINE_DEVICE void run_epilogue(const typename Epilogue::Params& p, State& state,
                                  const Slab& slab, const Tile& y, const EarlyOf<Epilogue>& early) {
  if constexpr (sizeof(EarlyOf<Epilogue>) > sizeof(NoLoads))
    Epilogue::run(p, state, slab, y, early);
  else
    Epilogue::run(p, state, slab, y);
}
template <class Epilogue, class State, class Slab, class Tile>
FUSELINE_DEVICE void run_epilogue(const typename Epilogue::Params& p, State& state,
                                  const Slab& slab, const Tile& y) {
  run_epilogue<Epilogue>(p, state, slab, y, begin_loads<Epilogue>(p, slab));
}

}  // namespace fuseline::gpu
