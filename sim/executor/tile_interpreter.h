// Runs a program's primitives on one tile, one after the other. What a primitive computes stands in
// its own file; primitives, policies and kernels are not known here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/batch_corner.h"
#include "model/primitives/tile_context.h"
#include "model/primitives/values.h"
#include "model/program.h"
#include "sim/executor/fault.h"
#include "sim/executor/memory.h"
#include "sim/executor/partial_sums.h"

namespace fuseline::executor {

class TileInterpreter final : public TileContext {
 public:
  // All must outlive the interpreter. `fault`: the primitive at which a fault acts.
  TileInterpreter(std::span<const Primitive> primitives, const ValueAnalysis& values,
                  PartialSums& partials, std::optional<FaultPoint> fault = std::nullopt);

  // Takes the tile. Values of the tile before are gone.
  void begin(const TileArea& area);
  // Runs what `wanted` values, and with `effects` the stores of this tile, depend on: a tile loads
  // nothing that it does not need.
  void run(Port& port, std::span<const Value> wanted, bool effects);

  [[nodiscard]] const TileArea& area() const override { return area_; }
  TileMemory& memory() override { return *port_; }
  // A value of the tile; the mainloop writes its result into value 0 before run().
  Matrix& value(Value v) override { return matrices_.at(index(v)); }
  Matrix& result(Value v) override;
  const Matrix& operand(Value v, Value out, Matrix& turned) const override;
  [[nodiscard]] Form form(Value v) const override { return values_.form(v); }
  [[nodiscard]] std::int64_t width(Value v) const override { return values_.width(v); }
  [[nodiscard]] ColumnRange columns(Value v) const override {
    return values_.columns(v, area_.columns);
  }
  [[nodiscard]] const std::vector<Value>& partners(Value table) const override {
    return values_.partners(table);
  }
  [[nodiscard]] Corner place(const Operand& operand, std::int64_t width,
                             std::int64_t r) const override;
  void leave(Partials partials, const PartialRule& rule) override;
  [[nodiscard]] EvaluationFault fault() const override;

 private:
  void choose(std::span<const Value> wanted, bool effects);
  [[nodiscard]] bool stores_here(std::size_t primitive) const;

  static std::size_t index(Value v) { return static_cast<std::size_t>(v); }

  std::span<const Primitive> primitives_;
  const ValueAnalysis& values_;
  PartialSums& partials_;
  std::optional<FaultPoint> fault_;
  TileArea area_;
  Port* port_ = nullptr;
  std::size_t current_ = 0;
  std::vector<Matrix> matrices_;  // by value
  std::vector<char> needed_;      // by value
  std::vector<char> chosen_;      // by primitive
  std::vector<std::vector<Value>> reads_;
  std::vector<std::vector<Value>> makes_;
  std::vector<std::optional<Reach>> stores_;  // by primitive: what it stores, if anything
};

}  // namespace fuseline::executor
