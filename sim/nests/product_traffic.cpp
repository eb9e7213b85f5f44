#include "sim/nests/product_traffic.h"

#include <algorithm>
#include <cmath>

#include "sim/nests/held_tiles.h"

namespace fuseline {

namespace {

constexpr std::int64_t kSmallLoop = 32;  // of which every edge is tried
constexpr std::size_t kEdges = 16;
constexpr std::size_t kOrders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

std::int64_t whole_below(double bytes) {
  return static_cast<std::int64_t>(std::floor(std::max(0.0, bytes)));
}

}  // namespace

double ProductShape::a_total() const {
  return a_bytes * static_cast<double>(m) * static_cast<double>(k);
}
double ProductShape::b_total() const {
  return b_bytes * static_cast<double>(n) * static_cast<double>(k);
}
double ProductShape::c_total() const {
  return c_bytes * static_cast<double>(m) * static_cast<double>(n);
}

// Of p q r with a p r + b q r + c p q <= W and edges that end, the optimum has each edge at its end
// or free. Where two or three are free, what their faces take is equal. All eight cases are tried;
// those that fit count.
double most_multiplications(const ProductShape& s, double bytes) {
  struct BoxEdge {
    double end;
    double face;  // bytes of an element of the face across from it
  };
  // The face across from p is q × r: b.
  const BoxEdge axes[3] = {{static_cast<double>(s.m), s.b_bytes},
                           {static_cast<double>(s.n), s.a_bytes},
                           {static_cast<double>(s.k), s.c_bytes}};
  double best = 0;
  const auto consider = [&](const double(&e)[3]) {
    for (int i = 0; i < 3; ++i)
      if (!(e[i] > 0) || e[i] > axes[i].end * (1 + 1e-12)) return;
    const double taken =
        axes[0].face * e[1] * e[2] + axes[1].face * e[0] * e[2] + axes[2].face * e[0] * e[1];
    if (taken <= bytes * (1 + 1e-9)) best = std::max(best, e[0] * e[1] * e[2]);
  };
  consider({axes[0].end, axes[1].end, axes[2].end});
  for (int free = 0; free < 3; ++free) {
    const int i = (free + 1) % 3, j = (free + 2) % 3;
    // One free edge x: x (face_j end_i + face_i end_j) + face_free end_i end_j = W.
    double e[3];
    e[i] = axes[i].end;
    e[j] = axes[j].end;
    e[free] = (bytes - axes[free].face * e[i] * e[j]) / (axes[j].face * e[i] + axes[i].face * e[j]);
    e[free] = std::min(e[free], axes[free].end);
    consider(e);
    // Two free edges beside `free` at its end: faces u = face_j end x_i = face_i end x_j are equal,
    // and 2 u + face_free x_i x_j = W.
    const double end = axes[free].end;
    const double square = axes[free].face / (axes[j].face * axes[i].face * end * end);
    const double u = (std::sqrt(1 + square * bytes) - 1) / square;
    e[free] = end;
    e[i] = u / (axes[j].face * end);
    e[j] = u / (axes[i].face * end);
    consider(e);
  }
  // All three free: every face takes a third.
  const double third = bytes / 3;
  const double f = axes[0].face * axes[1].face * axes[2].face;
  double e[3];
  for (int i = 0; i < 3; ++i) e[i] = axes[i].face * std::sqrt(third / f);
  consider(e);
  return best;
}

double moved_in(const ProductShape& s, double capacity, std::int64_t memories) {
  const double volume =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  double most = 0;
  for (double part = 1.0 / 16; part <= 64; part *= 2) {
    const double step = capacity * part;
    const double parts = std::ceil(volume / most_multiplications(s, capacity + step)) -
                         static_cast<double>(memories);
    most = std::max(most, step * parts);
  }
  return most;
}

Bytes least_traffic(const ProductShape& s, Bytes capacity) {
  const double once = s.a_total() + s.b_total();
  double moved = once;
  if (capacity.value() > 0)
    moved = std::max(once, moved_in(s, capacity.as_double(), 1) - s.c_total());
  return Bytes(whole_below(moved * static_cast<double>(s.count) * (1 - 1e-9))) + s.other;
}

std::vector<std::int64_t> tile_edges(std::int64_t size, std::size_t about, std::int64_t unit) {
  if (unit > 1 && size % unit == 0) {
    std::vector<std::int64_t> edges = tile_edges(size / unit, about);
    for (std::int64_t& e : edges) e *= unit;
    return edges;
  }
  std::vector<std::int64_t> edges;
  if (size <= kSmallLoop) {
    for (std::int64_t e = 1; e <= size; ++e) edges.push_back(e);
    return edges;
  }
  for (std::int64_t e = 1; e < size; e *= 2) edges.push_back(e);
  for (std::int64_t parts = 1; edges.size() < about; ++parts)
    edges.push_back((size + parts - 1) / parts);
  edges.push_back(size);
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

std::vector<TiledTraffic> tiled_traffic(const ProductShape& s) {
  TrafficFront front;
  const std::vector<std::int64_t> edges[3] = {
      tile_edges(s.m, kEdges), tile_edges(s.n, kEdges, s.n_unit), tile_edges(s.k, kEdges)};
  const double c_elements = static_cast<double>(s.m) * static_cast<double>(s.n);
  const auto count = static_cast<double>(s.count);
  for (const std::int64_t tm : edges[0]) {
    for (const std::int64_t tn : edges[1]) {
      for (const std::int64_t tk : edges[2]) {
        const TiledLoop of[3] = {{"m", s.m, tm}, {"n", s.n, tn}, {"k", s.k, tk}};
        for (const auto& order : kOrders) {
          const std::vector<TiledLoop> loops = {of[order[0]], of[order[1]], of[order[2]]};
          for (const HeldTensor& a : ways_to_hold(loops, {"m", "k"})) {
            for (const HeldTensor& b : ways_to_hold(loops, {"n", "k"})) {
              for (const HeldTensor& c : ways_to_hold(loops, {"m", "n"})) {
                const double capacity =
                    a.elements * s.a_bytes + b.elements * s.b_bytes + c.elements * kSumBytes;
                const double moved =
                    count * (static_cast<double>(a.passes) * s.a_total() +
                             static_cast<double>(b.passes) * s.b_total() +
                             2 * kSumBytes * static_cast<double>(c.passes - 1) * c_elements) +
                    s.other.as_double();
                if (!front.takes(std::ceil(capacity), std::ceil(moved))) continue;
                TiledTraffic t{Bytes(static_cast<std::int64_t>(std::ceil(capacity))),
                               Bytes(static_cast<std::int64_t>(std::ceil(moved)))};
                for (const TiledLoop& loop : loops)
                  t.tiles.order.push_back({loop.name, loop.edge >= loop.size ? 0 : loop.edge});
                front.add(std::move(t));
              }
            }
          }
        }
      }
    }
  }
  return front.take();
}

std::optional<TiledTraffic> best_within(const std::vector<TiledTraffic>& curve, Bytes capacity) {
  const auto at = std::ranges::upper_bound(curve, capacity, {}, &TiledTraffic::capacity);
  if (at == curve.begin()) return std::nullopt;
  return *std::prev(at);
}

}  // namespace fuseline
