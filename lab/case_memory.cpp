#include "lab/case_memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/executor/float_formats.h"

namespace fuseline::lab {

namespace {

using fuseline_lab::Ask;
using fuseline_lab::Greeting;
using fuseline_lab::Request;

template <std::size_t size>
void copy_name(const std::string& name, char (&to)[size]) {
  FUSELINE_ASSERT(name.size() < size, name);
  std::copy(name.begin(), name.end(), to);
}

void append(std::string& reply, float value) {
  reply.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// To nearest, ties to even; NaN stays NaN.
double stored(float value) { return executor::bf16_to_float(executor::float_to_bf16(value)); }

}  // namespace

CaseMemory::CaseMemory(const FunctionCase& what, std::uint64_t nonce)
    : case_(what), nonce_(nonce), counts_(what.matrices.size()), written_(what.matrices.size()) {
  for (std::size_t i = 0; i < what.matrices.size(); ++i) {
    const CaseMatrix& m = what.matrices[i];
    if (m.target) written_[i].assign(static_cast<std::size_t>(m.rows * m.cols), 0.0);
  }
}

std::string CaseMemory::greeting() const {
  Greeting g;
  FUSELINE_ASSERT(case_.matrices.size() <= fuseline_lab::kMostNamed, case_.name);
  FUSELINE_ASSERT(case_.numbers.size() <= fuseline_lab::kMostNamed, case_.name);
  g.nonce = nonce_;
  for (const CaseMatrix& m : case_.matrices) {
    Greeting::Shape& shape = g.matrices[g.matrix_count++];
    copy_name(m.name, shape.name);
    shape.rows = m.rows;
    shape.cols = m.cols;
  }
  for (const auto& [name, value] : case_.numbers) {
    Greeting::Number& number = g.numbers[g.number_count++];
    copy_name(name, number.name);
    number.value = value;
  }
  return {reinterpret_cast<const char*>(&g), sizeof g};
}

bool CaseMemory::take(std::string_view received, std::string& reply) {
  cut_.append(received);
  std::size_t at = 0;
  bool go_on = true;
  for (; go_on && cut_.size() - at >= sizeof(Request); at += sizeof(Request)) {
    Request request;
    std::memcpy(&request, cut_.data() + at, sizeof request);
    go_on = serve(request, reply);
  }
  cut_.erase(0, at);
  return go_on;
}

bool CaseMemory::serve(const Request& r, std::string& reply) {
  if (done_) return refuse_trick("it went on after its end");
  if (r.what == Ask::ready) return true;
  if (r.what == Ask::tile) return serve_tile(r, reply);
  if (r.what == Ask::done) {
    if (static_cast<std::uint64_t>(r.col) != nonce_ || r.row < 0) {
      return refuse_trick("it said itself that it was done, in place of the check");
    }
    on_chip_ = Bytes(r.row);
    done_ = true;
    append(reply, 0);
    return true;
  }
  if ((r.what != Ask::load && r.what != Ask::store) || r.matrix >= case_.matrices.size()) {
    return refuse_trick("it spoke to the memory in place of the check");
  }
  const CaseMatrix& m = case_.matrices[r.matrix];
  const bool store = r.what == Ask::store;
  if (store != m.target) {
    return refuse(fmt::format("it ended early: {} '{}', which is {}",
                              store ? "a store to" : "a load from", m.name,
                              m.target ? "a target" : "a source"));
  }
  if (r.row < 0 || r.row >= m.rows || r.col < 0 || r.col >= m.cols) {
    return refuse(
        fmt::format("it ended early: {} outside the matrix: row {}, column {} of {} [{}, {}]",
                    store ? "store" : "load", r.row, r.col, m.name, m.rows, m.cols));
  }
  const auto at = static_cast<std::size_t>(r.row * m.cols + r.col);
  if (store) {
    ++counts_[r.matrix].stores;
    written_[r.matrix][at] = stored(r.value);
  } else {
    ++counts_[r.matrix].loads;
    append(reply, static_cast<float>(m.values[at]));
  }
  return true;
}

bool CaseMemory::serve_tile(const Request& r, std::string& reply) {
  const Mainloop& loop = case_.mainloop;
  if (loop.tile <= 0 || r.row < 0 || r.row >= loop.rows || r.col < 0 || r.col >= loop.cols) {
    return refuse_trick("it spoke to the memory in place of the check");
  }
  const std::int64_t last_row = std::min(r.row + loop.tile, loop.rows);
  const std::int64_t last_col = std::min(r.col + loop.tile, loop.cols);
  for (std::int64_t i = r.row; i < last_row; ++i) {
    for (std::int64_t j = r.col; j < last_col; ++j) {
      append(reply, loop.values[static_cast<std::size_t>(i * loop.cols + j)]);
    }
  }
  return true;
}

bool CaseMemory::refuse(std::string problem) {
  problem_ = std::move(problem);
  return false;
}

bool CaseMemory::refuse_trick(std::string problem) {
  trick_ = true;
  return refuse(std::move(problem));
}

std::map<std::string, AccessCounts> CaseMemory::counts() const {
  std::map<std::string, AccessCounts> out;
  for (std::size_t i = 0; i < counts_.size(); ++i) out[case_.matrices[i].name] = counts_[i];
  return out;
}

std::map<std::string, std::vector<double>> CaseMemory::targets() const {
  std::map<std::string, std::vector<double>> out;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (case_.matrices[i].target) out[case_.matrices[i].name] = written_[i];
  }
  return out;
}

}  // namespace fuseline::lab
