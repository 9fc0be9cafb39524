#include "python_kernel.h"

#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "autograd.h"

namespace neuronqa {
namespace {

namespace py = pybind11;

py::object results_of(const Stack& stack, size_t returns) {
  const auto first = stack.size() - returns;
  if (returns == 0) {
    return py::none();
  }
  if (returns == 1) {
    return torch::jit::toPyObject(stack.back());
  }
  py::tuple results(returns);
  for (size_t i = 0; i < returns; ++i) {
    results[i] = torch::jit::toPyObject(stack[first + i]);
  }
  return results;
}

void push_results(const c10::FunctionSchema& schema, const py::object& value, Stack& stack) {
  const auto& returns = schema.returns();
  if (returns.empty()) {
    return;
  }
  if (returns.size() == 1) {
    stack.push_back(torch::jit::toIValue(value, returns[0].type()));
    return;
  }
  const auto items = py::cast<py::tuple>(value);
  TORCH_CHECK(
      items.size() == returns.size(), schema.name(), " returns ", returns.size(), " values, not ", items.size());
  for (size_t i = 0; i < returns.size(); ++i) {
    const auto item = py::reinterpret_borrow<py::object>(items[i]);
    stack.push_back(item.is_none() ? c10::IValue(at::Tensor()) : torch::jit::toIValue(item, returns[i].type()));
  }
}

// One use of an operator, as a Python kernel sees it.
struct Call {
  const Operator& entry;
  const c10::OperatorHandle& op;
  Stack arguments;

  std::string name() const {
    return entry.name();
  }
  py::tuple args() const {
    py::tuple all(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      all[i] = torch::jit::toPyObject(arguments[i]);
    }
    return all;
  }
  py::list arg_names() const {
    py::list names;
    for (const auto& argument : op.schema().arguments()) {
      names.append(argument.name());
    }
    return names;
  }
  py::object standard() const {
    auto stack = arguments;
    {
      py::gil_scoped_release no_gil;
      entry.run_native(op, stack);
    }
    return results_of(stack, entry.signature().returns);
  }
};

// Python objects must be released with the GIL held; kernels may outlive it at exit, so they are never released.
struct Held {
  py::function function;
};

}  // namespace

Kernel python_kernel(Operator& entry, py::function function) {
  auto* held = new Held{std::move(function)};
  return [held, &entry](const c10::OperatorHandle& op, Stack& stack) {
    const py::gil_scoped_acquire gil;
    const auto count = entry.signature().arguments;
    Call call{entry, op, Stack(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end())};
    torch::jit::drop(stack, count);
    const auto result = held->function(py::cast(&call, py::return_value_policy::reference));
    push_results(op.schema(), result, stack);
  };
}

void bind_python_kernels(py::module& module) {
  py::class_<Call>(module, "Call")
      .def_property_readonly("name", &Call::name)
      .def_property_readonly("args", &Call::args)
      .def_property_readonly("arg_names", &Call::arg_names)
      .def_property_readonly("in_backward", [](const Call&) { return in_backward(); })
      .def("standard", &Call::standard);
}

}  // namespace neuronqa
