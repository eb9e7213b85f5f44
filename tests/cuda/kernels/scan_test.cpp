// A scan's thread block on the host, one host thread for each of its threads, against the executor:
// the code of cuda/kernels/scan/walk.cuh with the layouts that kernels are made with.
#include "cuda/kernels/scan/walk.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "cuda/emit/scan_shape.h"
#include "model/policy.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "tests/model/scan_support.h"

namespace fuseline::cuda {
namespace {

using namespace gpu::stream;

// ---- a matrix in the host's memory, in the place of the device's Tile ----

struct HostTile {
  std::vector<float>* values = nullptr;
  int cols = 0;
  [[nodiscard]] float& at(int row, int col) const {
    return values->at(static_cast<std::size_t>(row) * static_cast<std::size_t>(cols) +
                      static_cast<std::size_t>(col));
  }
};
template <int width>
void read_row(const HostTile& from, int row, int col, int end, float (&to)[width]) {
  for (int e = 0; e < width; ++e) to[e] = col + e < end ? from.at(row, col + e) : 0.0F;
}
float read_number(const HostTile& from, int row, int col) { return from.at(row, col); }
template <int width>
void write_row(const HostTile& to, int row, int col, int end, const float (&from)[width]) {
  for (int e = 0; e < width && col + e < end; ++e) to.at(row, col + e) = from[e];
}

struct Operands {
  HostTile x, step, k, q, rates, state, state_after, y;
};

// ---- a block of host threads ----

struct SharedBlock {
  explicit SharedBlock(int threads) : all(threads), given(static_cast<std::size_t>(threads)) {}
  std::barrier<> all;
  std::vector<float> given;
};
struct HostBlock {
  SharedBlock* shared;
  int the_thread, the_number;
  [[nodiscard]] int thread() const { return the_thread; }
  [[nodiscard]] int number() const { return the_number; }
  void sync() const { shared->all.arrive_and_wait(); }
  // All threads of the block exchange at the same time, so one barrier serves every warp.
  [[nodiscard]] float exchange(float x, int apart) const {
    EXPECT_EQ(the_thread / 32, (the_thread ^ apart) / 32) << "lanes of another warp";
    shared->given[static_cast<std::size_t>(the_thread)] = x;
    sync();
    const float other = shared->given[static_cast<std::size_t>(the_thread ^ apart)];
    sync();
    return other;
  }
};

// ---- kernels with the constants of a layout ----

template <Decay decay_, bool state, int lanes_, int numbers_, int columns_, int groups_,
          int tokens_>
struct TestKernel {
  static constexpr int threads = 32, lanes = lanes_, numbers = numbers_, columns = columns_,
                       groups = groups_, tokens = tokens_, together = std::min(tokens_, 4),
                       units = std::min(tokens_, 2);
  static constexpr Decay decay = decay_;
  static constexpr bool begins = state, ends = state;
  static constexpr int kept_tokens = 0;
  using Params = Operands;
  struct State {};
  template <class Place>
  static void run(const Params& p, State&, const Place& place) {
    const auto y = place.result();
    for_each<Strip<Place::units>>([&](int u, int e) {
      if (place.row(u) < place.rows && place.col(u) + e < place.cols)
        p.y.at(place.row(u), place.col(u) + e) = y.at(u, e);
    });
  }
};

template <class Kernel>
void run_blocks(const Operands& operands, const ScanSpace& space, int batch) {
  std::vector<float> memory(static_cast<std::size_t>(ScanTile<Kernel>::shared_floats) + 4, NAN);
  void* at = memory.data();
  std::size_t room = memory.size() * sizeof(float);
  auto* shared = static_cast<float*>(std::align(16, room - 16, at, room));
  SharedBlock block(Kernel::threads);
  std::vector<std::thread> threads;
  for (int t = 0; t < Kernel::threads; ++t)
    threads.emplace_back([&, t] {
      for (int number = 0; number < scan_blocks<Kernel>(space, batch); ++number)
        walk_tokens<Kernel>(operands, space, shared, HostBlock{&block, t, number});
    });
  for (std::thread& thread : threads) thread.join();
}

using Run = void (*)(const Operands&, const ScanSpace&, int);
template <Decay decay, bool state, int... numbers>
constexpr Run run_of = run_blocks<TestKernel<decay, state, numbers...>>;

// ---- the comparison ----

std::vector<float> floats(const executor::Storage& from) {
  std::vector<float> all(static_cast<std::size_t>(from.rows() * from.cols()));
  for (std::int64_t r = 0; r < from.rows(); ++r)
    from.read(r, 0, from.cols(), all.data() + r * from.cols());
  return all;
}

// Both compute in fp32 in other orders: a result sums up to T · N products whose decays are known
// to some units in the last place.
void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                  const std::string& what) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i])) << what << ' ' << i;
    difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  EXPECT_GT(size, 0) << what;
  EXPECT_LT(std::sqrt(difference / size), 1e-5) << what;
}

struct Compared {
  Graph graph;
  ScanShape shape;
  bool state = false;
  std::string text;
};

void compare(const Compared& c, std::mt19937& random, Run run) {
  const executor::Inputs inputs =
      executor::round_inputs(c.graph, fuseline::test::scan_inputs(c.graph, random));
  const Plan plan = make_plan("per-operator", c.graph);
  const executor::Execution done = executor::execute(plan, inputs, load_gpu("h200"), {});
  const Op& op = c.graph.ops()[0];
  std::vector<std::vector<float>> memory(op.reads.size() + 2);
  const auto given = [&](std::size_t read) {
    const Tensor& t = c.graph.tensor(op.reads[read].tensor);
    memory[read] = floats(*inputs.at(t.name));
    return HostTile{&memory[read], static_cast<int>(t.cols)};
  };
  const auto made = [&](std::size_t place, std::int64_t cols, std::int64_t rows) {
    memory[place].assign(static_cast<std::size_t>(rows * cols), NAN);
    return HostTile{&memory[place], static_cast<int>(cols)};
  };
  const ScanShape& s = c.shape;
  const std::size_t last = op.reads.size();
  const bool rates = op.kind == operators::selective_scan;
  Operands operands{.x = given(0), .step = given(1), .k = given(2), .q = given(3)};
  if (rates) operands.rates = given(4);
  if (c.state) {
    operands.state = given(rates ? 5 : 4);
    operands.state_after = rates ? operands.state  // overwritten in place
                                 : made(last + 1, s.state_width, s.batch * s.heads * s.head_width);
  }
  operands.y = made(last, s.heads * s.head_width, s.batch * s.tokens);
  const ScanSpace space{static_cast<int>(s.tokens), static_cast<int>(s.heads),
                        static_cast<int>(s.head_width), static_cast<int>(s.state_width),
                        static_cast<int>(s.heads / s.groups)};
  run(operands, space, static_cast<int>(s.batch));
  expect_close(memory[last], floats(done.memory->at(op.writes[0].tensor)), "y " + c.text);
  if (c.state)
    expect_close(*operands.state_after.values, floats(done.memory->at(op.writes[1].tensor)),
                 "state " + c.text);
}

// Shapes that the constants of a kernel hold: any heads, groups, widths up to `columns_multiple`
// times something, states up to lanes · numbers, tokens over several chunks.
template <Decay decay, int lanes, int numbers, int columns, int tokens>
void compare_random(std::mt19937& random, int rounds) {
  constexpr int cols = 32 / lanes * columns;
  for (int round = 0; round < rounds; ++round) {
    fuseline::test::ScanCase c = fuseline::test::random_scan(random);
    c.dtype = Dtype::fp32;
    ScanShape& s = c.shape;
    s.head_width = columns * fuseline::test::pick(random, 1, 5);
    s.state_width = fuseline::test::pick(random, 1, lanes * numbers);
    s.tokens = fuseline::test::pick(random, 1, 2 * tokens + 1);
    c.state = c.state_after = round % 2 == 0;
    const Graph graph = decay == Decay::given
                            ? fuseline::test::scan_graph(c)
                            : fuseline::test::selective_graph(c, decay == Decay::of_columns);
    if (decay == Decay::of_columns && s.state_width == 1) continue;  // a rate of the head
    const Compared compared{graph, s, c.state, fuseline::test::describe(c)};
    // A block may meet every group, or one alone.
    const std::int64_t group_cols = s.heads * s.head_width / s.groups;
    constexpr int most = 9;
    const bool one = s.groups == 1 || group_cols % cols == 0;
    if (c.state)
      compare(compared, random,
              one ? run_of<decay, true, lanes, numbers, columns, 1, tokens>
                  : run_of<decay, true, lanes, numbers, columns, most, tokens>);
    else
      compare(compared, random,
              one ? run_of<decay, false, lanes, numbers, columns, 1, tokens>
                  : run_of<decay, false, lanes, numbers, columns, most, tokens>);
  }
}

TEST(Scan, GivenDecaysAgreeWithTheExecutor) {
  std::mt19937 random(51);
  compare_random<Decay::given, 1, 8, 1, 8>(random, 4);
  compare_random<Decay::given, 4, 8, 2, 4>(random, 4);
  compare_random<Decay::given, 16, 8, 4, 4>(random, 4);
}

TEST(Scan, StepsAndRatesOfHeadsAgreeWithTheExecutor) {
  std::mt19937 random(52);
  compare_random<Decay::of_heads, 2, 8, 4, 8>(random, 4);
  compare_random<Decay::of_heads, 16, 8, 4, 1>(random, 4);
  compare_random<Decay::of_heads, 4, 16, 2, 2>(random, 4);
}

TEST(Scan, RatesOfColumnsAgreeWithTheExecutor) {
  std::mt19937 random(53);
  compare_random<Decay::of_columns, 4, 4, 1, 8>(random, 4);
  compare_random<Decay::of_columns, 2, 4, 1, 1>(random, 4);
  compare_random<Decay::of_columns, 1, 8, 1, 16>(random, 4);
}

float number_of(int lane, int i) {
  return 17.0F * static_cast<float>(lane) + static_cast<float>(i);
}

// Every lane's numbers are summed once, whatever lanes and numbers there are.
template <int lanes, int count>
void expect_sums() {
  std::vector<float> sums(count, 0.0F);
  std::vector<std::array<float, count>> left(lanes);
  std::vector<int> first(lanes);
  SharedBlock block(lanes);
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < count; ++i) sums[static_cast<std::size_t>(i)] += number_of(lane, i);
    threads.emplace_back([&, lane] {
      float v[count];
      for (int i = 0; i < count; ++i) v[i] = number_of(lane, i);
      const auto at = static_cast<std::size_t>(lane);
      first[at] = sum_over_lanes<lanes / 2, count>(v, lane, HostBlock{&block, lane, 0});
      std::copy_n(v, count, left[at].begin());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> held(count, 0);
  constexpr int kept = count > lanes ? count / lanes : 1;
  for (std::size_t lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < kept; ++i) {
      const int number = first[lane] + i;
      const auto at = static_cast<std::size_t>(number);
      EXPECT_EQ(left[lane][static_cast<std::size_t>(i)], sums[at]) << lane << ' ' << i;
      ++held[at];
    }
  for (const int times : held) EXPECT_EQ(times, std::max(1, lanes / count));
}

TEST(Scan, LanesShareTheirSums) {
  expect_sums<1, 4>();
  expect_sums<2, 8>();
  expect_sums<16, 16>();
  expect_sums<32, 4>();
  expect_sums<8, 1>();
}

// ---- the layouts ----

ScanMainloop mainloop(const ScanShape& shape, std::int64_t rates) {
  ScanMainloop m;
  m.shape = shape;
  if (rates > 0) m.rates = Operand{.tensor = {}, .cols = rates, .rows = shape.heads};
  return m;
}

TEST(ScanLayout, RealModelsFillTheirThreads) {
  // Mamba-2 2.7B alone and in a batch; Mamba 2.8B; decode.
  const ScanShape mamba2{80, 1, 64, 128, 1, 2048, 256};
  const ScanLayout one = scan_layout(mainloop(mamba2, 1));
  EXPECT_EQ(one, (ScanLayout{128, 16, 8, 2, 1, 32, 4, 2}));
  ScanShape batch = mamba2;
  batch.batch = 8;
  EXPECT_EQ(scan_layout(mainloop(batch, 1)).columns, 4);
  const ScanShape mamba{5120, 1, 1, 16, 1, 2048, 64};
  EXPECT_EQ(scan_layout(mainloop(mamba, 16)), (ScanLayout{64, 4, 4, 1, 1, 64, 4, 2}));
  ScanShape step = mamba;
  step.tokens = 1;
  EXPECT_EQ(scan_layout(mainloop(step, 16)), (ScanLayout{64, 4, 4, 1, 1, 1, 1, 1}));
  step.batch = 16;
  EXPECT_EQ(scan_layout(mainloop(step, 16)), (ScanLayout{128, 1, 16, 1, 1, 1, 1, 1}));
}

// Whatever the sizes: whole vectors of columns, states that the lanes hold, heads that no thread
// crosses, groups that a block has room for.
TEST(ScanLayout, HoldsAnyShape) {
  std::mt19937 random(54);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return fuseline::test::pick(random, low, high);
  };
  for (int round = 0; round < 2000; ++round) {
    ScanShape s;
    s.groups = pick(1, 9);
    s.heads = s.groups * pick(1, 40);
    s.head_width = pick(1, 130);
    s.state_width = round % 3 == 0 ? pick(1, widest_state) : pick(1, 70);
    s.batch = pick(1, 9);
    s.tokens = pick(1, 300);
    const std::int64_t rates = round % 3 == 0 ? 0 : round % 3 == 1 ? 1 : s.state_width;
    const ScanMainloop m = mainloop(s, rates);
    const ScanLayout l = scan_layout(m);
    SCOPED_TRACE(fuseline::test::describe({s}));
    EXPECT_EQ(l.cols() % 8, 0);
    EXPECT_EQ(l.lanes * l.numbers % 8, 0);
    EXPECT_EQ(l.numbers % 4, 0);
    EXPECT_LE(l.lanes, 32);
    EXPECT_LE(l.columns * l.numbers, 32);
    EXPECT_GE(std::int64_t{l.lanes} * l.numbers, s.state_width);
    EXPECT_EQ(s.head_width % l.columns, 0);
    EXPECT_EQ(l.tokens % l.together + l.tokens % l.units, 0);
    EXPECT_LE(l.threads, 256);
    EXPECT_LE(l.shared_bytes(), 99 << 10);
    const std::int64_t cols = s.heads * s.head_width, group = cols / s.groups;
    EXPECT_GE(scan_blocks(m, l) / s.batch * l.cols(), cols);
    for (std::int64_t first = 0; first < cols; first += l.cols()) {
      const std::int64_t end = std::min(cols, first + l.cols());
      EXPECT_LE((end - 1) / group - first / group + 1, l.groups);
    }
  }
}

}  // namespace
}  // namespace fuseline::cuda
