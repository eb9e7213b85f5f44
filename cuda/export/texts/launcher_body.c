
// ---- the launcher; all tables are above ----

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int (*load)(void **module, const void *image);
  int (*unload)(void *module);
  int (*function)(void **function, void *module, const char *name);
  int (*attribute)(void *function, int which, int value);
  int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
  int (*allocate)(uint64_t *address, size_t bytes);
  int (*free)(uint64_t address);
  int (*fill)(uint64_t address, unsigned char value, size_t bytes);
  int (*upload)(uint64_t to, const void *from, size_t bytes);
  int (*map)(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
             const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
             int swizzle, int promotion, int fill);
  int (*text)(int result, const char **text);
} driver;

struct fuseline_kernels {
  void *library;
  driver cuda;
  void *modules[CODES];
  void *functions[LAUNCHES];
  uint64_t workspaces[WORKSPACES + 1];
  char problem[512];
};

static const char *failed(fuseline_kernels *k, int result, const char *doing) {
  const char *text = NULL;
  if (k->cuda.text == NULL || k->cuda.text(result, &text) != 0 || text == NULL) text = "unknown";
  snprintf(k->problem, sizeof k->problem, "CUDA, %s: %s", doing, text);
  return k->problem;
}

// A function of the driver as an object pointer, which POSIX lets one read as a function's.
static int find(fuseline_kernels *k, void *function, const char *name) {
  void *symbol = dlsym(k->library, name);
  if (symbol == NULL) {
    snprintf(k->problem, sizeof k->problem, "the NVIDIA driver has no %s: it is too old", name);
    return 0;
  }
  memcpy(function, &symbol, sizeof symbol);
  return 1;
}

static char *read_file(const char *folder, const char *name, const char *ending) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *data = NULL;
  long size = 0;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0)
    data = malloc((size_t)size);
  if (data != NULL && fread(data, 1, (size_t)size, file) != (size_t)size) {
    free(data);
    data = NULL;
  }
  fclose(file);
  return data;
}

static const char *start(fuseline_kernels *k, const char *folder) {
  k->library = dlopen("libcuda.so.1", RTLD_NOW);
  if (k->library == NULL) return "no NVIDIA driver on this machine: libcuda.so.1 is not here";
  if (!find(k, &k->cuda.load, "cuModuleLoadData") || !find(k, &k->cuda.unload, "cuModuleUnload") ||
      !find(k, &k->cuda.function, "cuModuleGetFunction") ||
      !find(k, &k->cuda.attribute, "cuFuncSetAttribute") ||
      !find(k, &k->cuda.launch, "cuLaunchKernel") ||
      !find(k, &k->cuda.allocate, "cuMemAlloc_v2") || !find(k, &k->cuda.free, "cuMemFree_v2") ||
      !find(k, &k->cuda.fill, "cuMemsetD8_v2") || !find(k, &k->cuda.upload, "cuMemcpyHtoD_v2") ||
      !find(k, &k->cuda.text, "cuGetErrorString"))
    return k->problem;
  if (NEEDS_MAPS && !find(k, &k->cuda.map, "cuTensorMapEncodeTiled")) return k->problem;
  for (int i = 0; i < CODES; ++i) {
    char *image = read_file(folder, codes[i], ".cubin");
    if (image == NULL) {
      snprintf(k->problem, sizeof k->problem, "%s/%s.cubin cannot be read", folder, codes[i]);
      return k->problem;
    }
    const int result = k->cuda.load(&k->modules[i], image);
    free(image);
    if (result != 0) return failed(k, result, codes[i]);
  }
  for (int i = 0; i < LAUNCHES; ++i) {
    const launch *l = &launches[i];
    int result = k->cuda.function(&k->functions[i], k->modules[l->code], l->function);
    if (result == 0 && l->shared > 48 * 1024)
      result = k->cuda.attribute(k->functions[i], 8, (int)l->shared);
    if (result != 0) return failed(k, result, l->function);
  }
  for (int i = 0; i < WORKSPACES; ++i) {
    int result = k->cuda.allocate(&k->workspaces[i], (size_t)workspaces[i].bytes);
    if (result == 0) result = k->cuda.fill(k->workspaces[i], 0, (size_t)workspaces[i].bytes);
    if (result == 0 && workspaces[i].contents != NULL)
      result = k->cuda.upload(k->workspaces[i], workspaces[i].contents, (size_t)workspaces[i].bytes);
    if (result != 0) return failed(k, result, "allocating memory");
  }
  return NULL;
}

const char *fuseline_open(const char *folder, fuseline_kernels **kernels) {
  static char problem[512];
  *kernels = calloc(1, sizeof **kernels);
  if (*kernels == NULL) return "out of memory";
  const char *what = start(*kernels, folder);
  if (what == NULL) return NULL;
  snprintf(problem, sizeof problem, "%s", what);
  fuseline_close(*kernels);
  *kernels = NULL;
  return problem;
}

const char *fuseline_run(fuseline_kernels *k, int op, const uint64_t *addresses, void *stream) {
  static const uint32_t steps[4] = {1, 1, 1, 1};
  if (op < 0 || op >= OPERATORS) return "there is no such operator";
  for (int n = 0; n < operators[op].count; ++n) {
    const int which = operators[op].launches[n];
    const launch *l = &launches[which];
    _Alignas(64) unsigned char parameters[MOST_PARAMETER_BYTES];
    void *pointers[MOST_PARAMETERS];
    for (int p = 0; p < l->parameters; ++p) pointers[p] = parameters + l->begin[p];
    memcpy(parameters, l->bytes, l->size);
    for (int i = 0; i < l->places_count; ++i) {
      const place *at = &l->places[i];
      const uint64_t address = (at->target >= 0 ? addresses[at->target] : k->workspaces[-1 - at->target]) +
                               (uint64_t)at->addend;
      if (at->target >= 0 && addresses[at->target] == 0) {
        snprintf(k->problem, sizeof k->problem, "%s needs the tensor %s", l->function,
                 fuseline_tensors[at->target].name);
        return k->problem;
      }
      unsigned char *to = (unsigned char *)pointers[at->parameter] + at->offset;
      if (at->map < 0) {
        memcpy(to, &address, sizeof address);
        continue;
      }
      const map *m = &maps[at->map];
      const int result = k->cuda.map(to, m->type, m->rank, (void *)(uintptr_t)address, m->sizes,
                                     m->strides, m->box, steps, 0, m->swizzle, m->promotion, 0);
      if (result != 0) return failed(k, result, "describing a tensor to the copy engine");
    }
    const int result =
        k->cuda.launch(k->functions[which], l->grid[0], l->grid[1], l->grid[2], l->block[0],
                       l->block[1], l->block[2], l->shared, stream, pointers, NULL);
    if (result != 0) return failed(k, result, l->function);
  }
  return NULL;
}

void fuseline_close(fuseline_kernels *k) {
  if (k == NULL) return;
  for (int i = 0; i < WORKSPACES; ++i)
    if (k->workspaces[i] != 0) (void)k->cuda.free(k->workspaces[i]);
  for (int i = 0; i < CODES; ++i)
    if (k->modules[i] != NULL) (void)k->cuda.unload(k->modules[i]);
  if (k->library != NULL) dlclose(k->library);
  free(k);
}
