#include "gui/model/kept_walks.h"

#include "sim/kernels/walk_memo.h"

namespace fuseline::gui {

void bound_walks(std::size_t most) {
  WalkMemo& walks = WalkMemo::shared();
  if (walks.use().memory > most) walks.forget();
}

}  // namespace fuseline::gui
