// Host kernels for operators that only accelerators implement, or that the CPU implements more narrowly.
#pragma once

#include "operator.h"

namespace neuronqa {

struct NamedKernel {
  const char* schema;  // the dispatcher's name
  const char* name;  // what it is recorded as
  Kernel kernel;
};

const std::vector<NamedKernel>& standard_kernels();

}  // namespace neuronqa
