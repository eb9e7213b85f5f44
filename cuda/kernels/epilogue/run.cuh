// How a mainloop runs an epilogue for one slab.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

// An epilogue may have loads that need no sums and take long: `early` begins them, and `run` has
// what they brought as its last argument. Who has something else to do first calls begin_loads()
// ahead of it. All others give it `Late`, and it loads where it wants: nothing takes registers
// before.
struct NoLoads {};
template <class Epilogue, class = void>
struct LoadsOf {
  static constexpr bool any = false;
  using Early = NoLoads;
};
template <class Epilogue>
struct LoadsOf<Epilogue, decltype(void(sizeof(typename Epilogue::Early)))> {
  static constexpr bool any = true;
  using Early = typename Epilogue::Early;
};
template <class Epilogue>
using EarlyOf = typename LoadsOf<Epilogue>::Early;

template <class Epilogue, class Slab>
FUSELINE_DEVICE EarlyOf<Epilogue> begin_loads(const typename Epilogue::Params& p,
                                              const Slab& slab) {
  if constexpr (LoadsOf<Epilogue>::any)
    return Epilogue::early(p, slab);
  else
    return {};
}
template <class Epilogue, class State, class Slab, class Tile>
FUSELINE_DEVICE void run_epilogue(const typename Epilogue::Params& p, State& state,
                                  const Slab& slab, const Tile& y,
                                  const EarlyOf<Epilogue>& early) {
  if constexpr (LoadsOf<Epilogue>::any)
    Epilogue::run(p, state, slab, y, early);
  else
    Epilogue::run(p, state, slab, y);
}
template <class Epilogue, class State, class Slab, class Tile>
FUSELINE_DEVICE void run_epilogue(const typename Epilogue::Params& p, State& state,
                                  const Slab& slab, const Tile& y) {
  if constexpr (LoadsOf<Epilogue>::any)
    Epilogue::run(p, state, slab, y, typename Epilogue::Late{});
  else
    Epilogue::run(p, state, slab, y);
}

}  // namespace fuseline::gpu
