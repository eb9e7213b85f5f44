// In how many bits a cache keeps keys and values, and by what they are scaled: a number format of
// caches, said once in its own file beside this one. Nothing else lists them.
//   key or value = code × scale
#pragma once

#include "base/described.h"
#include "model/config/dtype.h"

namespace fuseline {

struct CacheFormat {
  Fact<const char*> name;  // as --kv takes it
  Fact<Dtype> element;     // of the codes
  // Whether each token has a scale for each of its heads, which is stored beside the codes.
  // Otherwise one number scales the whole tensor: kernels are launched with it, and it is 1 here.
  Fact<bool> scale_of_heads;
  Dtype scale = Dtype::fp32;  // of those that are stored
  Fact<double> largest;       // the code that the largest number of a head becomes
  Fact<const char*> about;    // one line for people
  Fact<const char*> source;   // who stores caches so
};

}  // namespace fuseline
