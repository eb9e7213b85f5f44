#include "sim/instructions/block_maths.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/primitives/basics.h"

namespace fuseline::executor {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// A partial softmax takes one more key.
void take(Partial& p, std::size_t g, float score, const std::vector<float>& value) {
  const std::size_t d = value.size();
  const float most = std::max(p.most[g], score);
  const float old = std::exp(p.most[g] - most), now = std::exp(score - most);
  p.most[g] = most;
  p.all[g] = p.all[g] * old + now;
  for (std::size_t c = 0; c < d; ++c)
    p.context[g * d + c] = p.context[g * d + c] * old + now * value[c];
}

}  // namespace

BlockMaths::BlockMaths(const BlockInstructions& all, Memory& memory, HappenedBefore& order)
    : all_(all), b_(all.block), memory_(memory), order_(order) {
  const std::int64_t sums = b_.batch * all.first_sum.back();
  q_ = order.elements("q", b_.batch * b_.q_rows());
  new_k_ = order.elements("the new keys", b_.batch * b_.kv_rows());
  new_v_ = order.elements("the new values", b_.batch * b_.kv_rows());
  attn_ = order.elements("attn", b_.batch * b_.q_rows());
  h_ = order.elements("h", b_.batch * b_.model);
  act_ = order.elements("act", b_.batch * b_.inner);
  y_ = order.elements("y", b_.batch * b_.model);
  r1_ = order.elements("r_norm1", b_.batch);
  r2_ = order.elements("r_norm2", b_.batch);
  h_sums_ = order.elements("sums of squares of h", sums);
  y_sums_ = order.elements("sums of squares of y", sums);
  partials_ = order.elements("partial softmaxes", all.attention_slots);
  h_sum_.resize(at(sums));
  y_sum_.resize(at(sums));
  partial_.resize(at(all.attention_slots));
}

std::int64_t BlockMaths::slices(const Instruction& i) const {
  if (i.step == Step::attend) return ceil_of(i.count, all_.keys_of_slice());
  return is_product(i.step) ? ceil_of(operand_of(b_, i.step).cols, all_.sizes.slice_columns) : 0;
}

float BlockMaths::read(const Operand& o, std::int64_t row, std::int64_t col) const {
  float value = 0;
  memory_.at(o.tensor).read(o.tensor_row(row), o.col_begin + col, 1, &value);
  return value;
}

void BlockMaths::write(const Operand& o, std::int64_t row, std::int64_t col, float value) {
  memory_.writable(o.tensor).write(o.tensor_row(row), o.col_begin + col, 1, &value);
}

LoadedSlice BlockMaths::load(const Instruction& i, std::int64_t slice, std::size_t loader) {
  if (!is_product(i.step)) return {};
  const Operand o = operand_of(b_, i.step);
  const std::int64_t begin = slice * all_.sizes.slice_columns;
  const std::int64_t count = std::min(all_.sizes.slice_columns, o.cols - begin);
  LoadedSlice values(at(o.rows * count));
  for (std::int64_t m = 0; m < o.rows; ++m) {
    memory_.at(o.tensor).read(o.tensor_row(m), o.col_begin + begin, count, &values[at(m * count)]);
    if (i.step == Step::qkv) continue;  // x is given
    const Elements& from = i.step == Step::out ? attn_ : (i.step == Step::gate_up ? h_ : act_);
    for (std::int64_t c = begin; c < begin + count; ++c) order_.reads(loader, from, m * o.cols + c);
  }
  return values;
}

void BlockMaths::consume(const Instruction& i, std::int64_t slice, const LoadedSlice& operand,
                         Partial& p, std::size_t consumer, std::size_t loader) {
  if (i.step == Step::attend) return attend(i, slice, p, consumer, loader);
  const Operand w = weight_of(b_, i.step);
  const std::int64_t begin = slice * all_.sizes.slice_columns;
  const std::int64_t count = std::min(all_.sizes.slice_columns, w.cols - begin);
  p.sums.resize(at(b_.batch * i.count));
  std::vector<float> row(at(count));
  for (std::int64_t n = 0; n < i.count; ++n) {
    memory_.at(w.tensor).read(i.begin + n, begin, count, row.data());
    for (std::int64_t m = 0; m < b_.batch; ++m) {
      float sum = 0;
      for (std::int64_t c = 0; c < count; ++c) sum += operand[at(m * count + c)] * row[at(c)];
      p.sums[at(m * i.count + n)] += sum;
    }
  }
}

std::vector<float> BlockMaths::query(std::int64_t sequence, std::int64_t head, std::size_t reader) {
  std::vector<float> values(at(b_.width));
  memory_.at(b_.q.tensor)
      .read(b_.q.tensor_row(sequence), b_.q.col_begin + head * b_.width, b_.width, values.data());
  for (std::int64_t c = 0; c < b_.width; ++c)
    order_.reads(reader, q_, sequence * b_.q_rows() + head * b_.width + c);
  return values;
}

void BlockMaths::attend(const Instruction& i, std::int64_t slice, Partial& p, std::size_t consumer,
                        std::size_t loader) {
  const auto groups = at(b_.group());
  if (slice == 0) {
    p.most.assign(groups, kNothing);
    p.all.assign(groups, 0);
    p.context.assign(groups * at(b_.width), 0);
  }
  std::vector<std::vector<float>> queries;
  for (std::int64_t g = 0; g < b_.group(); ++g)
    queries.push_back(query(i.sequence, i.kv_head * b_.group() + g, consumer));
  const std::int64_t first = slice * all_.keys_of_slice();
  const std::int64_t behind = std::min(first + all_.keys_of_slice(), i.count);
  std::vector<float> key(at(b_.width)), value(at(b_.width));
  for (std::int64_t s = i.begin + first; s < i.begin + behind; ++s) {
    const std::int64_t row = i.sequence * b_.context + s, col = i.kv_head * b_.width;
    memory_.at(b_.k.tensor).read(row, col, b_.width, key.data());
    memory_.at(b_.v.tensor).read(row, col, b_.width, value.data());
    if (s == b_.context - 1)  // no instruction should: the loader asks no counter
      order_.reads(loader, new_k_, i.sequence * b_.kv_rows() + col);
    for (std::size_t g = 0; g < groups; ++g)
      take(p, g, static_cast<float>(b_.scale) * dot(queries[g], key), value);
  }
}

void BlockMaths::join(const Instruction& i, std::size_t consumer) {
  const std::int64_t d = b_.width, col = i.kv_head * d;
  std::vector<float> key(at(d)), value(at(d));
  for (std::int64_t c = 0; c < d; ++c) {
    order_.reads(consumer, new_k_, i.sequence * b_.kv_rows() + col + c);
    order_.reads(consumer, new_v_, i.sequence * b_.kv_rows() + col + c);
    key[at(c)] = read(b_.new_k, i.sequence, col + c);
    value[at(c)] = read(b_.new_v, i.sequence, col + c);
  }
  for (std::int64_t s = i.slot; s < i.slot + i.slots; ++s) order_.reads(consumer, partials_, s);
  for (std::int64_t g = 0; g < b_.group(); ++g) {
    const std::int64_t head = i.kv_head * b_.group() + g;
    Partial sum{{}, {kNothing}, {0}, std::vector<float>(at(d))};
    take(sum, 0, static_cast<float>(b_.scale) * dot(query(i.sequence, head, consumer), key), value);
    for (std::int64_t s = i.slot; s < i.slot + i.slots; ++s) {
      const Partial& part = partial_[at(s)];
      if (part.most.empty()) continue;  // a race, which is reported
      const float most = std::max(sum.most[0], part.most[at(g)]);
      const float ours = std::exp(sum.most[0] - most), its = std::exp(part.most[at(g)] - most);
      sum.most[0] = most;
      sum.all[0] = sum.all[0] * ours + part.all[at(g)] * its;
      for (std::int64_t c = 0; c < d; ++c)
        sum.context[at(c)] = sum.context[at(c)] * ours + part.context[at(g * d + c)] * its;
    }
    for (std::int64_t c = 0; c < d; ++c) {
      order_.writes(consumer, attn_, i.sequence * b_.q_rows() + head * d + c);
      write(b_.attn, i.sequence, head * d + c, sum.context[at(c)] / sum.all[0]);
    }
  }
}

// Each SM's own: 1 / sqrt(mean of squares + eps).
float BlockMaths::factor(Step step, std::int64_t m, std::size_t consumer) {
  const bool first = step == Step::qkv || step == Step::finish_norm1;
  float sum = 0;
  if (first) {
    for (std::int64_t g = 0; g < b_.x_stats.cols; ++g) sum += read(b_.x_stats, m, g);
  } else {
    for (std::int64_t s = 0; s < all_.first_sum.back(); ++s) {
      order_.reads(consumer, h_sums_, s * b_.batch + m);
      sum += h_sum_[at(s * b_.batch + m)];
    }
  }
  return 1 / std::sqrt(sum / static_cast<float>(b_.model) +
                       static_cast<float>(first ? b_.eps1 : b_.eps2));
}

void BlockMaths::finish(const Instruction& i, std::size_t consumer) {
  const bool first = i.step == Step::finish_norm1, second = i.step == Step::finish_norm2;
  const Operand& stats = second ? b_.h_stats : b_.y_stats;
  for (std::int64_t m = 0; m < b_.batch; ++m) {
    if (first || second) {
      order_.writes(consumer, first ? r1_ : r2_, m);
      write(first ? b_.r_norm1 : b_.r_norm2, m, 0, factor(i.step, m, consumer));
    }
    for (std::int64_t g = 0; !first && g < stats.cols; ++g) {
      float part = 0;
      for (std::int64_t s = all_.first_sum[at(g)]; s < all_.first_sum[at(g + 1)]; ++s) {
        order_.reads(consumer, second ? h_sums_ : y_sums_, s * b_.batch + m);
        part += (second ? h_sum_ : y_sum_)[at(s * b_.batch + m)];
      }
      write(stats, m, g, part);
    }
  }
}

void BlockMaths::end_qkv(const Instruction& i, std::int64_t m, const float* row,
                         std::size_t consumer) {
  const std::int64_t q = b_.q_rows(), kv = b_.kv_rows();
  for (std::int64_t n = 0; n < i.count; ++n) {
    std::int64_t col = i.begin + n;
    float value = row[n];
    if (col < q + kv) {
      const float cos = read(b_.cos, 0, col % b_.width), sin = read(b_.sin, 0, col % b_.width);
      const float other = col % 2 == 0 ? -row[n + 1] : row[n - 1];
      value = value * cos + other * sin;
    }
    const bool query = col < q, key = !query && col < q + kv;
    if (!query) col -= key ? q : q + kv;
    order_.writes(consumer, query ? q_ : (key ? new_k_ : new_v_), m * (query ? q : kv) + col);
    write(query ? b_.q : (key ? b_.new_k : b_.new_v), m, col, value);
  }
}

void BlockMaths::end_rows(const Instruction& i, std::int64_t m, const float* row,
                          std::size_t consumer) {
  const bool out = i.step == Step::out;
  std::vector<float>& sums = out ? h_sum_ : y_sum_;
  const std::int64_t cut = std::min(i.count, partial_tile - i.begin % partial_tile);
  float square[2] = {0, 0};
  for (std::int64_t n = 0; n < i.count; ++n) {
    const std::int64_t col = i.begin + n;
    if (!out) order_.reads(consumer, h_, m * b_.model + col);
    const float value = row[n] + read(out ? b_.residual : b_.h, m, col);
    square[n < cut ? 0 : 1] += value * value;
    order_.writes(consumer, out ? h_ : y_, m * b_.model + col);
    write(out ? b_.h : b_.y, m, col, value);
  }
  for (std::int64_t s = 0; s < (cut < i.count ? 2 : 1); ++s) {
    order_.writes(consumer, out ? h_sums_ : y_sums_, (i.slot + s) * b_.batch + m);
    sums[at((i.slot + s) * b_.batch + m)] = square[s];
  }
}

void BlockMaths::end_product(const Instruction& i, const Partial& p, std::size_t consumer) {
  std::vector<float> row(at(i.count));
  for (std::int64_t m = 0; m < b_.batch; ++m) {
    std::copy_n(p.sums.begin() + m * i.count, i.count, row.begin());
    if (i.step == Step::qkv || i.step == Step::gate_up) {
      const float r = factor(i.step, m, consumer);
      for (float& value : row) value *= r;
    }
    if (i.step == Step::qkv) end_qkv(i, m, row.data(), consumer);
    if (i.step == Step::out || i.step == Step::down) end_rows(i, m, row.data(), consumer);
    if (i.step != Step::gate_up) continue;
    for (std::int64_t n = 0; n < i.count; n += 2) {
      const float gate = row[at(n)];
      const std::int64_t col = (i.begin + n) / 2;
      order_.writes(consumer, act_, m * b_.inner + col);
      write(b_.act, m, col, gate / (1 + std::exp(-gate)) * row[at(n + 1)]);
    }
  }
}

void BlockMaths::end(const Instruction& i, const Partial& p, std::size_t consumer) {
  if (is_product(i.step)) return end_product(i, p, consumer);
  if (i.step == Step::join) return join(i, consumer);
  if (i.step != Step::attend) return finish(i, consumer);
  order_.writes(consumer, partials_, i.slot);
  partial_[at(i.slot)] = p;
}

}  // namespace fuseline::executor
