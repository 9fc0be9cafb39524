// A kernel written in Python: the numerics of a profile, an overlay, or a planted fault.
#pragma once

#include <pybind11/pybind11.h>

#include "operator.h"

namespace neuronqa {

// The function is called with one argument, the call: `call.name`, `call.args` (host tensors), `call.standard()` (runs
// the standard kernel on them). It returns what the operator returns. Tensors it returns must lie on the CPU.
Kernel python_kernel(Operator& entry, pybind11::function function);

void bind_python_kernels(pybind11::module& module);

}  // namespace neuronqa
