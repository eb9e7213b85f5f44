// What a primitive writes its part of a GEMM's epilogue with (the struct of
// cuda/kernels/README.md): the emitter composes the calls.
#pragma once

#include <string>
#include <string_view>

#include "model/primitives/access.h"
#include "model/primitives/shapes.h"

namespace fuseline {

class EpilogueCode {
 public:
  virtual ~EpilogueCode() = default;

  // How statements name the value; what is loaded is loaded here if need be.
  virtual std::string use(Value v) = 0;
  [[nodiscard]] virtual Form form(Value v) const = 0;
  // Columns of a thread where the part's accumulator has 2.
  [[nodiscard]] virtual int each(Value v) const = 0;
  // The columns in which statements run: "slab".
  [[nodiscard]] virtual std::string place() const = 0;
  // Whether a part of the columns begins within a slab, so that threads share its units of 16
  // bytes.
  [[nodiscard]] virtual bool within_slab() const = 0;

  // A device function of the primitive's own, written once in front of the kernel, for what
  // cuda/kernels does not have. It sees all that the kernel's own code sees.
  virtual void device_function(const std::string& text) = 0;
  virtual void line(const std::string& text) = 0;
  // `const auto NAME = CODE;`
  virtual void define(Value v, const std::string& code) = 0;
  // The same of what is no value; returns the name.
  virtual std::string variable(const std::string& wanted, const std::string& code) = 0;
  // A value that a statement made already.
  virtual void name(Value v, const std::string& text) = 0;
  // `out` is `in`, in columns of its own.
  virtual void alias(Value out, Value in) = 0;
  virtual void load(Value out, const Access& access) = 0;

  // A parameter for what moves; `stored`: the value, of a stored tile. Returns its name.
  virtual std::string parameter(const Access& access, Value stored) = 0;
  std::string parameter(const Access& access) { return parameter(access, -1); }
  // The same of one number for every group of columns.
  virtual std::string groups_parameter(const Access& access) = 0;
  // A member that the thread keeps from slab to slab; returns its name.
  virtual std::string state(const std::string& type, const std::string& wanted) = 0;
  // Reserves scratch memory to reduce columns of a value with `each` columns a thread; returns the
  // reduction's number.
  virtual int column_reduction(int each) = 0;

  // Columns of the accumulator that statements see at once.
  [[nodiscard]] virtual std::int64_t slab_cols() const = 0;
  // Defines `out` as what the reducer makes of every `group` columns of `in`, where a group is
  // wider than that: a pass over the tile ahead of these statements gathers it.
  virtual void gather_group(Value out, Value in, const char* reducer, std::int64_t group) = 0;

  // InternalError: no epilogue has the primitive.
  [[noreturn]] virtual void refuse(std::string_view primitive) const = 0;

  // A number per row, the same for all columns of the tile: `code` loads it at `place`, once, ahead
  // of the mainloop.
  virtual void row_vector(Value out, const std::string& code) = 0;
};

}  // namespace fuseline
