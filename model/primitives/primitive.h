// A primitive of a program: any struct that describes itself. Passes ask these questions and do not
// know which primitives there are, so that a new one is one file. See README.md of this folder.
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/primitives/access.h"
#include "model/primitives/basics.h"
#include "model/primitives/program_names.h"
#include "model/primitives/shapes.h"

namespace fuseline {

class ShapeCheck;
class TileContext;
class EpilogueCode;
class StreamCode;

// Asked first: what has no name is no primitive, and nothing else is asked of it.
template <class P>
concept HasName = requires {
  { P::name } -> std::convertible_to<std::string_view>;
};

// The facts that each primitive states; none has a default.
template <class P>
concept DescribesItself = HasName<P> && std::copyable<P> && std::equality_comparable<P> &&
    requires(const P& p, const ValueShapes& shapes, ShapeCheck& check, const ProgramNames& names,
             TileContext& tile, EpilogueCode& epilogue, StreamCode& stream) {
  // Values that it reads, and values that it makes.
  { p.uses() } -> std::same_as<std::vector<Value>>;
  { p.defines() } -> std::same_as<std::vector<Value>>;
  // What moves, in order; of a load, the first made value is what it loads.
  { p.accesses() } -> std::same_as<std::vector<Access>>;
  // Shapes of what it makes, in the order of defines(). `heads`: those that tiles in memory
  // hold side by side for one row of the index space.
  { p.results(shapes, std::int64_t{}) } -> std::same_as<std::vector<ValueShape>>;
  { p.relations() } -> std::same_as<std::vector<ColumnRelation>>;
  { p.demands() } -> std::same_as<TileDemands>;
  // Reports what is wrong; false: so wrong that its results have no shape.
  { p.check(check) } -> std::same_as<bool>;
  // As a line of the program's text.
  { p.text(names) } -> std::same_as<CodeLine>;
  // Computes it on one tile in fp32.
  { p.evaluate(tile) } -> std::same_as<void>;
  // Writes its device code: in a GEMM's epilogue; in a stream or row kernel.
  { p.epilogue(epilogue) } -> std::same_as<void>;
  { p.stream(stream) } -> std::same_as<void>;
};

// What a primitive may say besides: instructions for each number of its last result. Those of plain
// loads and stores are in the rates of the bytes that they move.
template <class P>
concept CountsInstructions = requires(const P& p) {
  { p.instructions() } -> std::same_as<double>;
};

class Primitive {
 public:
  template <DescribesItself P>
  requires(!std::same_as<P, Primitive>)
      Primitive(P primitive)  // NOLINT: a primitive is each of its structs
      : self_(std::make_shared<const Model<P>>(std::move(primitive))) {}

  // The struct, or null when it is another one: for those who look for one pattern.
  template <class P>
  [[nodiscard]] const P* as() const {
    const auto* model = dynamic_cast<const Model<P>*>(self_.get());
    return model == nullptr ? nullptr : &model->primitive;
  }
  template <class P>
  [[nodiscard]] bool is() const {
    return as<P>() != nullptr;
  }

  [[nodiscard]] std::string_view name() const { return self_->name(); }
  [[nodiscard]] std::vector<Value> uses() const { return self_->uses(); }
  [[nodiscard]] std::vector<Value> defines() const { return self_->defines(); }
  [[nodiscard]] std::vector<Access> accesses() const { return self_->accesses(); }
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const {
    return self_->results(made, heads);
  }
  [[nodiscard]] std::vector<ColumnRelation> relations() const { return self_->relations(); }
  [[nodiscard]] TileDemands demands() const { return self_->demands(); }
  [[nodiscard]] double instructions() const { return self_->instructions(); }
  bool check(ShapeCheck& check) const { return self_->check(check); }
  [[nodiscard]] CodeLine text(const ProgramNames& names) const { return self_->text(names); }
  void evaluate(TileContext& tile) const { self_->evaluate(tile); }
  void epilogue(EpilogueCode& code) const { self_->epilogue(code); }
  void stream(StreamCode& code) const { self_->stream(code); }

  friend bool operator==(const Primitive& a, const Primitive& b) {
    return a.self_ == b.self_ || a.self_->equals(*b.self_);
  }

 private:
  struct Described {
    virtual ~Described() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual std::vector<Value> uses() const = 0;
    [[nodiscard]] virtual std::vector<Value> defines() const = 0;
    [[nodiscard]] virtual std::vector<Access> accesses() const = 0;
    [[nodiscard]] virtual std::vector<ValueShape> results(const ValueShapes& made,
                                                          std::int64_t heads) const = 0;
    [[nodiscard]] virtual std::vector<ColumnRelation> relations() const = 0;
    [[nodiscard]] virtual TileDemands demands() const = 0;
    [[nodiscard]] virtual double instructions() const = 0;
    virtual bool check(ShapeCheck& check) const = 0;
    [[nodiscard]] virtual CodeLine text(const ProgramNames& names) const = 0;
    virtual void evaluate(TileContext& tile) const = 0;
    virtual void epilogue(EpilogueCode& code) const = 0;
    virtual void stream(StreamCode& code) const = 0;
    [[nodiscard]] virtual bool equals(const Described& other) const = 0;
  };

  template <class P>
  struct Model final : Described {
    explicit Model(P p) : primitive(std::move(p)) {}
    [[nodiscard]] std::string_view name() const override { return P::name; }
    [[nodiscard]] std::vector<Value> uses() const override { return primitive.uses(); }
    [[nodiscard]] std::vector<Value> defines() const override { return primitive.defines(); }
    [[nodiscard]] std::vector<Access> accesses() const override { return primitive.accesses(); }
    [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made,
                                                  std::int64_t heads) const override {
      return primitive.results(made, heads);
    }
    [[nodiscard]] std::vector<ColumnRelation> relations() const override {
      return primitive.relations();
    }
    [[nodiscard]] TileDemands demands() const override { return primitive.demands(); }
    [[nodiscard]] double instructions() const override {
      if constexpr (CountsInstructions<P>) return primitive.instructions();
      return 0;
    }
    bool check(ShapeCheck& check) const override { return primitive.check(check); }
    [[nodiscard]] CodeLine text(const ProgramNames& names) const override {
      return primitive.text(names);
    }
    void evaluate(TileContext& tile) const override { primitive.evaluate(tile); }
    void epilogue(EpilogueCode& code) const override { primitive.epilogue(code); }
    void stream(StreamCode& code) const override { primitive.stream(code); }
    [[nodiscard]] bool equals(const Described& other) const override {
      const auto* same = dynamic_cast<const Model*>(&other);
      return same != nullptr && same->primitive == primitive;
    }
    P primitive;
  };

  std::shared_ptr<const Described> self_;
};

}  // namespace fuseline
