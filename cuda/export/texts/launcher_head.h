// The kernels of this folder, for programs in C: the CUDA driver and nothing else. libcuda is
// opened while the program runs (link with -ldl where the C library wants it); no header of the
// toolkit is needed. README.md lists operators, tensors, shapes and what was checked.
//
//   fuseline_kernels *k;
//   const char *problem = fuseline_open("FOLDER", &k);       // with a context current
//   uint64_t at[FUSELINE_TENSORS] = {0};
//   at[FUSELINE_TENSOR_x] = address_of_x;                     // of every tensor of the operator
//   problem = fuseline_run(k, FUSELINE_OPERATOR_all, at, stream);
//   fuseline_close(k);
//
// Every function returns NULL, or what went wrong. Tensors are row-major; rows are row_bytes apart
// (fuseline_tensors), and a tensor's memory has `bytes` bytes.
#ifndef FUSELINE_KERNELS_H
#define FUSELINE_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fuseline_kernels fuseline_kernels;

typedef struct {
  const char *name, *shape, *type, *role;
  int64_t rows, cols, row_bytes, bytes;
} fuseline_tensor;

const char* fuseline_open(const char* folder, fuseline_kernels** kernels);
const char* fuseline_run(fuseline_kernels* kernels, int op, const uint64_t* addresses,
                         void* stream);
void fuseline_close(fuseline_kernels* kernels);
