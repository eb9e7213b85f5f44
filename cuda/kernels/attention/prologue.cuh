// What happens to rows of q, k and v ahead of attention: RoPE, and the cache's new rows. Attention
// reads a key as often as there are tiles of queries, so rotating is done once, in a launch of its
// own.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

enum class Pairs { none, adjacent, apart };  // columns c and c + 1 of a head, or c and c + distance

// Rows b·T + t of some heads, rotated or not, to rows b·to_rows + to_first + t.
template <class Element>
struct AttentionRows {
  const Element* from;
  Element* to;
  long long from_ld, to_ld;
  int heads;
  Pairs pairs;
  int to_rows, to_first;
  int distance;  // of columns apart: a multiple of 8, and twice as many are a part of a head
  int rotated;   // columns of a head, from the first on
};

// Rows of all operands start at multiples of 16 bytes.
template <class Element>
struct AttentionPrologueArgs {
  static constexpr int most_parts = 4;
  AttentionRows<Element> parts[most_parts];
  const Element *cos, *sin;  // [period, d], row b·T + t takes row (b·T + t) mod period
  long long table_ld;
  int period;
  int count;  // of the parts
  int batch, tokens;
};

template <class Element>
struct EightValues {
  float v[8];
  FUSELINE_DEVICE explicit EightValues(const Element* from) {
    const uint4 x = *reinterpret_cast<const uint4*>(from);
    const u32 words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const FloatPair pair = unpack<Element>(words[i]);
      v[2 * i] = pair.low;
      v[2 * i + 1] = pair.high;
    }
  }
  FUSELINE_DEVICE void store(Element* to) const {
    *reinterpret_cast<uint4*>(to) =
        make_uint4(pack<Element>(v[0], v[1]), pack<Element>(v[2], v[3]), pack<Element>(v[4], v[5]),
                   pack<Element>(v[6], v[7]));
  }
};

// The body of a kernel with 256 threads a block; a thread has 16 columns of a head, so that there
// are batch · tokens · heads of all parts · d / 16 threads.
template <class Element, int d>
FUSELINE_DEVICE void attention_prologue(const AttentionPrologueArgs<Element>& args) {
  static_assert(d % 16 == 0, "head width");
  using Eight = EightValues<Element>;
  constexpr int units = d / 16;
  long long unit = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long rows = static_cast<long long>(args.batch) * args.tokens;
#pragma unroll
  for (int i = 0; i < AttentionPrologueArgs<Element>::most_parts; ++i) {
    if (i == args.count) return;
    const AttentionRows<Element>& part = args.parts[i];
    const long long here = rows * part.heads * units;
    if (unit >= here) {
      unit -= here;
      continue;
    }
    const long long row = unit / (part.heads * units);
    const int rest = static_cast<int>(unit % (part.heads * units));
    const bool apart = part.pairs == Pairs::apart;
    const int unit_of_head = rest % units;
    const int low = apart ? 8 * unit_of_head + 8 * unit_of_head / part.distance * part.distance
                          : 16 * unit_of_head;
    const int high = low + (apart ? part.distance : 8);
    const Element* from = part.from + row * part.from_ld + rest / units * d;
    Eight a(from + low), b(from + high);
    if (part.pairs != Pairs::none && low < part.rotated) {
      const bool both = high < part.rotated;
      const long long angles = row % args.period * args.table_ld;
      const Eight cos_a(args.cos + angles + low), cos_b(args.cos + angles + (both ? high : low));
      const Eight sin_a(args.sin + angles + low), sin_b(args.sin + angles + (both ? high : low));
      const Eight x = a, y = b;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        // The first of a pair loses sin times the second, the second gains sin times the first.
        const float other_a = apart ? -y.v[j] : j % 2 == 0 ? -x.v[j + 1] : x.v[j - 1];
        const float other_b = apart ? x.v[j] : j % 2 == 0 ? -y.v[j + 1] : y.v[j - 1];
        a.v[j] = x.v[j] * cos_a.v[j] + other_a * sin_a.v[j];
        if (both) b.v[j] = y.v[j] * cos_b.v[j] + other_b * sin_b.v[j];
      }
    }
    const long long to_row = row / args.tokens * part.to_rows + part.to_first + row % args.tokens;
    Element* to = part.to + to_row * part.to_ld + rest / units * d;
    a.store(to + low);
    b.store(to + high);
    return;
  }
}

}  // namespace fuseline::gpu
