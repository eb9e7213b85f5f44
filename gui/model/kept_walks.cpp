#include "gui/model/kept_walks.h"

#include "sim/kernels/walk_memo.h"

namespace fuseline::gui {

void bound_walks() {
  WalkMemo& walks = WalkMemo::shared();
  if (walks.use().memory > kMostKeptWalks) walks.forget();
}

}  // namespace fuseline::gui
