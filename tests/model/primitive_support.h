// Programs with one primitive changed.
#pragma once

#include "model/program.h"

namespace fuseline::test {

// The primitive must be a P.
template <class P, class Change>
void change(Primitive& primitive, const Change& how) {
  P changed = *primitive.as<P>();
  how(changed);
  primitive = changed;
}

}  // namespace fuseline::test
