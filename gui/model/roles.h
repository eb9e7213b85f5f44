// What a colour means. Widgets turn roles into colours of the palette, light or dark.
#pragma once

#include <cstdint>

namespace fuseline::gui {

enum class ColourRole : std::uint8_t {
  text,
  muted,
  grid,
  ceiling,    // rooflines, limits of the machine
  limit,      // the least that HBM must move
  baseline,   // the baseline run
  run,        // any other run; `shade` is its place in the list
  predicted,  // solid
  measured,   // hatched
  better,     // deltas; `shade` 1 small, 2 medium, 3 large
  worse,
  neutral,
  kind_gemm,  // kernels by kind; `shade` counts kernels of that kind, so that neighbours differ
  kind_attention,
  kind_norm,
  kind_pointwise,
  kind_reduction,
  kind_block,
  bound_tensor,  // what sets a kernel's time
  bound_hbm,
  bound_l2,
  bound_smem,
  bound_launch,
  bound_sync,
  tensor_input,  // tensors by role; `shade` counts
  tensor_weight,
  tensor_table,
  tensor_cache,
  tensor_activation,
  tensor_output,
  on_chip,
  gap,  // launch gaps
  highlight,
  rest,     // what cannot be attributed
  allowed,  // places where what is carried can be dropped, and where it cannot
  refused,
  heat,  // of maps: `shade` 0 is the least, kMostHeat the most
};

inline constexpr int kMostHeat = 9;

struct Colour {
  ColourRole role = ColourRole::text;
  int shade = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

}  // namespace fuseline::gui
