#include "sim/nests/chain_traffic.h"

#include <algorithm>
#include <cmath>

#include "sim/nests/held_tiles.h"

namespace fuseline {

namespace {

constexpr std::size_t kChainEdges = 10;

double product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

// What a tensor takes while its own phase runs, and all the time.
struct Room {
  double always = 0, first = 0, second = 0;

  void take(const HeldTensor& held, double bytes, bool in_first) {
    const double room = held.elements * bytes;
    // Inside all three loops: only while its phase runs.
    if (held.inside < 3)
      always += room;
    else
      (in_first ? first : second) += room;
  }
  [[nodiscard]] double most() const { return always + std::max(first, second); }
};

class Tilings {
 public:
  explicit Tilings(const ChainShape& chain) : s_(chain) {}

  std::vector<TiledTraffic> run() {
    const auto f_edges = tile_edges(s_.f, kChainEdges, s_.narrowed);
    for (const std::int64_t tm : tile_edges(s_.m, kChainEdges))
      for (const std::int64_t tf : f_edges)
        for (const std::int64_t tk : tile_edges(s_.k, kChainEdges))
          for (const std::int64_t tn : tile_edges(s_.n, kChainEdges)) {
            const TiledLoop m{"m", s_.m, tm}, f{"f", s_.f, tf}, k{"k", s_.k, tk}, n{"n", s_.n, tn};
            try_order({m, f, k}, {m, f, n});
            try_order({f, m, k}, {f, m, n});
          }
    return front_.take();
  }

 private:
  void try_order(const std::vector<TiledLoop>& first, const std::vector<TiledLoop>& second) {
    const TiledLoop& m = first[0].name == "m" ? first[0] : first[1];
    const TiledLoop& f = first[0].name == "m" ? first[1] : first[0];
    const double h = product(std::min(m.edge, m.size), std::min(f.edge, f.size)) * kSumBytes;
    for (const HeldTensor& a : ways_to_hold(first, {"m", "k"}))
      for (const HeldTensor& b : ways_to_hold(first, {"f", "k"}))
        for (const HeldTensor& c : ways_to_hold(second, {"n", "f"}))
          for (const HeldTensor& y : ways_to_hold(second, {"m", "n"})) {
            Room room{.always = h};
            room.take(a, s_.a_bytes, true);
            room.take(b, s_.b_bytes, true);
            room.take(c, s_.c_bytes / static_cast<double>(s_.narrowed), false);
            room.take(y, kSumBytes, false);
            add(first, second, room.most(), moved(a, b, c, y));
          }
  }

  // What an element meets is computed for a share of all pairs only; what is loaded for a tile is
  // loaded for all of it, so that this is at most too much.
  [[nodiscard]] double moved(const HeldTensor& a, const HeldTensor& b, const HeldTensor& c,
                             const HeldTensor& y) const {
    const auto times = [](std::int64_t n) { return static_cast<double>(n); };
    const double f2 = product(s_.f, 1) / static_cast<double>(s_.narrowed);
    const double bytes = times(a.passes) * s_.a_bytes * product(s_.m, s_.k) +
                         times(b.passes) * s_.b_bytes * product(s_.f, s_.k) +
                         times(c.passes) * s_.c_bytes * product(s_.n, 1) * f2 +
                         2 * kSumBytes * times(y.passes - 1) * product(s_.m, s_.n);
    return bytes * static_cast<double>(s_.count) + s_.other.as_double();
  }

  void add(const std::vector<TiledLoop>& first, const std::vector<TiledLoop>& second,
           double capacity, double bytes) {
    if (!front_.takes(std::ceil(capacity), std::ceil(bytes))) return;
    TiledTraffic t{Bytes(static_cast<std::int64_t>(std::ceil(capacity))),
                   Bytes(static_cast<std::int64_t>(std::ceil(bytes)))};
    for (const TiledLoop& loop : {first[0], first[1], first[2], second[2]})
      t.tiles.order.push_back({loop.name, loop.edge >= loop.size ? 0 : loop.edge});
    front_.add(std::move(t));
  }

  const ChainShape& s_;
  TrafficFront front_;
};

}  // namespace

double ChainShape::moved_once() const {
  const double f2 = static_cast<double>(f) / static_cast<double>(narrowed);
  return static_cast<double>(count) * (a_bytes * product(m, k) + b_bytes * product(f, k) +
                                       c_bytes * static_cast<double>(n) * f2);
}

Bytes least_traffic(const ChainShape& s, Bytes capacity) {
  // Each product by itself, with nothing stored: its operand that never leaves the chip counts as
  // moved in once in the proof, and is taken off.
  const ProductShape first{.m = s.m,
                           .n = s.f,
                           .k = s.k,
                           .count = s.count,
                           .a_bytes = s.a_bytes,
                           .b_bytes = s.b_bytes,
                           .c_bytes = s.h_bytes};
  const ProductShape second{.m = s.m,
                            .n = s.n,
                            .k = s.f / s.narrowed,
                            .count = s.count,
                            .a_bytes = s.h_bytes,
                            .b_bytes = s.c_bytes,
                            .c_bytes = s.y_bytes};
  const auto whole = [&](double bytes) {
    return Bytes(static_cast<std::int64_t>(bytes * static_cast<double>(s.count) * (1 - 1e-9)));
  };
  const Bytes of_h = whole(second.a_total());
  // A mask leaves out parts: then only what each matrix moves once is certain.
  const Bytes room = s.share < 1 ? Bytes(std::int64_t{1} << 50) : capacity;
  const Bytes one = std::max(least_traffic(first, room), whole(first.a_total() + first.b_total()));
  const Bytes two = std::max(least_traffic(second, room) - of_h, whole(second.b_total()));
  return one + two + s.other;
}

std::vector<TiledTraffic> tiled_traffic(const ChainShape& chain) { return Tilings(chain).run(); }

}  // namespace fuseline
