// All layers of the model in one graph: each layer is its block's graph, under the plan of one run.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/block_graph.h"
#include "gui/model/compute.h"
#include "gui/model/dot_layout.h"
#include "gui/model/table.h"

namespace fuseline::gui {

// What of a kernel a layer shows from afar: a band as high as its share of the layer's time.
struct LayerBand {
  std::string kernel;
  double begin = 0, end = 0;  // parts of the layer's time
  Colour colour{};
};

// Layers that are alike.
struct LayerKind {
  std::string name;  // of the block: "local"
  std::int64_t layers = 0;
  Seconds time;  // of one of them
  BlockGraph graph;
  GraphLayout layout;
  std::vector<LayerBand> bands;
  std::int64_t operators = 0;
  bool is_first = false;  // the session's block: its operators are those of all other views
};

struct LayerStack {
  std::string title;  // "coda: LLaMA-2-7B, 32 layers, 416 operators"
  std::vector<LayerKind> kinds;
  std::string note;     // what is left out, and why
  std::string problem;  // in place of the graph
  Subject about{};

  [[nodiscard]] std::int64_t layers() const;
  [[nodiscard]] std::int64_t operators() const;
};

struct StackQuestion {
  Document document;
  RunView view;
  std::string dot = "dot";
};
// Each further kind of layers is simulated, and laid out: 20 to 200 ms each. Cancelled. Kinds come
// in the model's order of them, all layers of one behind each other: in which order a model has
// them, its file does not say.
LayerStack layer_stack(const StackQuestion& question, ResultCache& cache,
                       const std::stop_token& stop = {});

// Where each layer is: in rows, from left to right, as wide as fits the given ratio of width to
// height. The same order as the stack's layers.
struct LayerPlace {
  std::size_t kind = 0;
  std::int64_t number = 0;  // of the layer, from 1
  double x = 0, y = 0;      // its upper left corner
};
struct StackPlaces {
  std::vector<LayerPlace> layers;
  double width = 0, height = 0;
};
StackPlaces stack_places(const LayerStack& stack, double ratio);

// A row for each kind.
Table to_table(const LayerStack& stack);

}  // namespace fuseline::gui
