// What a primitive writes its part of a stream or row kernel with (cuda/kernels/stream).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/operators/attributes.h"
#include "model/primitives/access.h"
#include "model/primitives/reduce_function.h"
#include "model/primitives/shapes.h"

namespace fuseline {

class StreamCode {
 public:
  virtual ~StreamCode() = default;

  // How statements of this scope name the value; computes it first if need be.
  virtual std::string use(Value v) = 0;
  // Statements that compute a value at a place of its own, `cols` wide: `[&](const auto& half) {
  // ...; return VALUE; }`.
  virtual std::string computed_at(const char* place, std::int64_t cols, Value v) = 0;
  [[nodiscard]] virtual std::int64_t cols(Value v) const = 0;
  // Columns of a thread's unit: 4 where the space has pairs of them.
  [[nodiscard]] virtual int each(Value v) const = 0;

  // Where the value's columns are, where statements run, and where the whole scope runs.
  virtual std::string place_of(Value v) = 0;
  virtual std::string here() = 0;
  virtual std::string scope_place() = 0;
  // InternalError: the columns where statements run begin within a block of partials.
  virtual void whole_blocks() const = 0;
  // MissingError: no stream kernel has the primitive yet.
  [[noreturn]] virtual void refuse(std::string_view primitive) const = 0;
  // InternalError, naming `what`: the rows of the space are walked or kept by many threads.
  virtual void not_in_rows(const char* what) const = 0;
  // InternalError: not at the first place of a kernel of tiles.
  virtual void only_as_tile(const char* what) = 0;
  // Whether a thread has both columns of pairs that are so far apart.
  [[nodiscard]] virtual bool pairs_in_thread(std::int64_t distance) const = 0;

  // A device function of the primitive's own, written once in front of the kernel, for what
  // cuda/kernels does not have. It sees all that the kernel's own code sees.
  virtual void device_function(const std::string& text) = 0;
  virtual void line(const std::string& text) = 0;
  // A word of the kernel's name.
  virtual void step(const std::string& what) = 0;
  // `const auto NAME = CODE;`
  virtual void define(Value v, const std::string& code) = 0;
  virtual void define(Value v, const std::string& wanted, const std::string& code) = 0;
  // A value that a statement made already; a name that nothing has yet.
  virtual void name(Value v, const std::string& text) = 0;
  virtual std::string unique(const std::string& wanted) = 0;
  // `out` is `in`, at a place of its own.
  virtual void alias(Value out, Value in) = 0;
  virtual void row_reduction(Value out, Value in, ReduceFn fn) = 0;

  // Parameters; each returns its name. `made`: the same one wherever the value is made.
  virtual std::string parameter(const char* name, const Access& access) = 0;
  virtual std::string parameter(Value made, const char* name, const Access& access) = 0;
  virtual std::string constant(Value made, double number) = 0;
  virtual std::string visible(Value made, const AttentionShape& attention, std::int64_t keys) = 0;
  virtual std::string count(const char* name, std::int64_t number) = 0;
  // A member that gathers columns on the way down them, and what it has in the end.
  virtual std::string column_state(const char* reducer) = 0;
  [[nodiscard]] virtual std::string column_total(const std::string& member) const = 0;
  // Whether neighbouring lanes hold every `group` columns of the space, where statements run.
  [[nodiscard]] virtual bool lanes_hold(std::int64_t group) const = 0;

  // Statements in other scopes: of the walk; behind each of its blocks of 128 rows; after it; where
  // `v` is stored, as a tile or not. What a member gathered until the end of a block belongs to it.
  virtual void in_walk(const std::function<void()>& statements) = 0;
  virtual void after_block(const std::string& member, const std::function<void()>& statements) = 0;
  virtual void after_walk(const std::function<void()>& statements) = 0;
  virtual void where_stored(Value v, bool as_tile, const std::function<void()>& statements) = 0;

  // A parameter: groups of rows that lie behind each other, by their lengths.
  virtual std::string row_groups(Value made, const std::vector<std::int64_t>& lengths) = 0;
};

}  // namespace fuseline
